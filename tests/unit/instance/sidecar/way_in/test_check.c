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

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../../instance/sidecar/way_in/check.h"

static void refuse (car_target_t *target, const char *line)
{
  char out[512];
  car_check_t check;
  car_check (target, 0, &check);
  assert_int_equal (check.way, CAR_WAY_NONE);
  car_check_line (target, check.why, out, sizeof out);
  assert_string_equal (out, line);
}

/* A process without a probe that is given the looks of others. */
static car_target_t looks_like (const char *vm, const char *version)
{
  car_target_t target;
  assert_int_equal (car_target_identify (getpid (), NULL, &target), 0);
  target.pid = 4377;
  snprintf (target.vm, sizeof target.vm, "%s", vm);
  snprintf (target.version, sizeof target.version, "%s", version);
  snprintf (target.comm, sizeof target.comm, "nginx");
  return target;
}

static void every_refusal_says_what_why_and_what_next (void **state)
{
  car_target_t target = looks_like ("", "");
  target.pid = 1 << 29; /* nobody's */
  refuse (&target,
          "pid 536870912 is not a process VM (nginx, no known runtime); `weft profile` without a pid lists "
          "what can be joined");
  target = looks_like ("cpython", "3.11.2");
  target.pid = 1 << 29;
  refuse (&target,
          "cannot join 536870912 (CPython 3.11.2): its memory map cannot be read (input or output failed); "
          "run weft as root");
  target = looks_like ("node", "20.1");
  target.pid = 1 << 29;
  refuse (&target,
          "cannot join 536870912 (Node.js 20.1): a running Node.js cannot be joined by this version; "
          "start it with `weft run`");
  target = looks_like ("cpython", "3.11.2");
  target.pid = 1 << 29;
  target.bits32 = 1;
  refuse (&target,
          "cannot join 536870912 (CPython 3.11.2): it is a 32-bit program; run it on a 64-bit runtime");
  target.bits32 = 0, target.musl = 1;
  refuse (
      &target,
      "cannot join 536870912 (CPython 3.11.2): its C library is musl; run it on a runtime built for glibc");
  target.zombie = 1;
  refuse (&target,
          "cannot join 536870912 (CPython 3.11.2): it has ended and waits for its parent (a zombie); give "
          "the pid of a running process");
  target = looks_like ("jvm", "17.0.1");
  target.pid = target.nspid = 1 << 29;
  target.signals_caught = 0;
  refuse (&target,
          "cannot join 536870912 (HotSpot 17.0.1): it has no attach socket and does not catch SIGQUIT (still "
          "starting, or its signals were replaced); try again, or start it with `weft run`");
}

static void somebody_elses_process (void **state)
{
  char line[256];
  car_check_t check;
  pid_t child = fork ();
  if (child == 0) {
    car_target_t target = looks_like ("jvm", "17");
    target.uid = 54321;
    if (geteuid () == 0 && seteuid (12345) < 0)
      _exit (2);
    car_check (&target, 0, &check);
    car_check_line (&target, check.why, line, sizeof line);
    _exit (strcmp (
        line, "cannot join 4377 (HotSpot 17): it belongs to uid 54321; run weft as uid 54321 or as root"));
  }
  int code;
  assert_int_equal (waitpid (child, &code, 0), child);
  assert_int_equal (code, 0);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (every_refusal_says_what_why_and_what_next),
      cmocka_unit_test (somebody_elses_process),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
