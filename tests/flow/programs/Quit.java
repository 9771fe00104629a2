// SPDX-License-Identifier: Apache-2.0
/** Says that it is there, and sleeps. */
class Quit {
    public static void main(String[] words) throws Exception {
        System.out.println("at work");
        while (true)
            Thread.sleep(100);
    }
}
