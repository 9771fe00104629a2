/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h must follow these */
#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../../common/clocks.h"
#include "../../../../../instance/sidecar/way_in/turn.h"

#define HELD_MS 100

/* It is the kernel that gives the turn back: its owner is killed. */
static void one_at_a_time (void **state)
{
  int ends[2];
  char byte;
  assert_int_equal (pipe (ends), 0);
  pid_t child = fork ();
  if (child == 0) {
    int turn = car_turn_take (1 << 29);
    if (turn < 0 || write (ends[1], "x", 1) != 1)
      _exit (1);
    usleep (HELD_MS * 1000);
    raise (SIGKILL);
  }
  assert_int_equal (read (ends[0], &byte, 1), 1);
  uint64_t began_ns = weft_mono_ns ();
  int other = car_turn_take ((1 << 29) + 1); /* of another process: at once */
  assert_true (other >= 0 && weft_mono_ns () - began_ns < HELD_MS * WEFT_NS_PER_MS / 2);
  int turn = car_turn_take (1 << 29);
  assert_true (turn >= 0 && weft_mono_ns () - began_ns >= HELD_MS * WEFT_NS_PER_MS / 2);
  close (other);
  close (turn);
  assert_int_equal (waitpid (child, NULL, 0), child);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (one_at_a_time),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
