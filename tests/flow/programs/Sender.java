// SPDX-License-Identifier: Apache-2.0

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.util.Random;

/**
 * Sender PORT: an ordinary client on HttpURLConnection. Waits for a byte on stdin, then sends the
 * same requests each time it is run and prints one line per case.
 */
public final class Sender {
  private static String base;

  public static void main(String[] arguments) throws IOException {
    base = "http://127.0.0.1:" + arguments[0];
    System.out.println("ready");
    System.in.read();
    for (int i = 0; i < 30; i++) {
      send("GET", "/items/" + i + "?secret=" + i, null, 0);
    }
    System.out.println("get ok");
    byte[] lookalike = "GET / HTTP/1.1\r\nHost: x\r\ntraceparent: none\r\n\r\n".repeat(60).getBytes();
    for (int i = 0; i < 10; i++) {
      send("POST", "/lookalike", lookalike, 0);
    }
    System.out.println("body_of_requests ok");
    byte[] large = new byte[5 * 1024 * 1024];
    new Random(20260101).nextBytes(large);
    send("PUT", "/upload", large, 0);
    System.out.println("upload ok");
    send("POST", "/chunks", large, 4096);
    System.out.println("post_chunked ok");
  }

  private static void send(String method, String path, byte[] body, int chunk) throws IOException {
    HttpURLConnection call = (HttpURLConnection) URI.create(base + path).toURL().openConnection();
    call.setRequestMethod(method);
    call.setConnectTimeout(20_000);
    call.setReadTimeout(20_000);
    if (body != null) {
      call.setDoOutput(true);
      if (chunk > 0) {
        call.setChunkedStreamingMode(chunk);
      } else {
        call.setFixedLengthStreamingMode(body.length);
      }
      try (OutputStream out = call.getOutputStream()) {
        out.write(body);
      }
    }
    try (InputStream in = call.getInputStream()) {
      String answer = new String(in.readAllBytes());
      if (!answer.equals("ok")) {
        throw new IOException("answer " + answer);
      }
    }
  }
}
