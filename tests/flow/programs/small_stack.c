/* SPDX-License-Identifier: Apache-2.0 */
/* small_stack: a signal handler on an alternate stack of the customary size, 8 KiB, as crash
 * reporters and language runtimes have one, that writes to what it is given: a log, a socket.
 * Below the stack lies memory of somebody else, as malloc may put it; says at its end whether
 * that is as it was, and how many writes were whole. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STACK = 8192, BELOW = 65536, PATTERN = 0xa5 };
static const char line[] = "signal\n";
static int pair[2];
static volatile sig_atomic_t whole;

static void handler (int number)
{
  (void) number;
  whole += write (STDERR_FILENO, line, sizeof line - 1) == sizeof line - 1;
  whole += send (pair[0], line, sizeof line - 1, 0) == sizeof line - 1;
}

int main (void)
{
  static unsigned char memory[BELOW + STACK];
  char back[64];
  if (socketpair (AF_UNIX, SOCK_STREAM, 0, pair))
    return 1;
  memset (memory, PATTERN, sizeof memory);
  stack_t stack = {.ss_sp = memory + BELOW, .ss_size = STACK};
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  if (sigaltstack (&stack, NULL) || sigaction (SIGUSR1, &action, NULL))
    return 1;
  puts ("ready");
  fflush (stdout);
  if (read (STDIN_FILENO, back, sizeof back) <= 0)
    return 1;
  for (int i = 0; i < 20; i++) {
    raise (SIGUSR1);
    if (recv (pair[1], back, sizeof back, 0) != sizeof line - 1 || memcmp (back, line, sizeof line - 1) != 0)
      return 1;
  }
  size_t spoilt = 0;
  for (size_t i = 0; i < BELOW; i++)
    spoilt += memory[i] != PATTERN;
  printf ("%d writes, %zu bytes spoilt\n", (int) whole, spoilt);
  return 0;
}
