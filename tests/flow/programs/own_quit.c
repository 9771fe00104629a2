/* SPDX-License-Identifier: Apache-2.0 */
/* own_quit: a library that handles SIGQUIT, as native code in a process may, and says each time that it came. */
#include <signal.h>
#include <unistd.h>

static void on_quit (int number)
{
  static const char came[] = "SIGQUIT came\n";
  ssize_t done = write (STDOUT_FILENO, came, sizeof came - 1);
  (void) done;
}

__attribute__ ((constructor)) static void begin (void)
{
  signal (SIGQUIT, on_quit);
}
