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
#include <unistd.h>

#include "../../../../../common/status.h"
#include "../../../../../instance/sidecar/way_in/rights.h"

static void expect (const car_target_t *target, int yama, int capable, const char *needed)
{
  char why[400] = "";
  int status = car_rights_judge (target, yama, capable, why, sizeof why);
  assert_int_equal (status, needed ? WEFT_E_UNSUPPORTED : 0);
  if (needed) {
    assert_non_null (strstr (why, needed));
    assert_non_null (strstr (why, "; ")); /* reason; remedy */
  } else
    assert_string_equal (why, "");
}

static void each_rule (void **state)
{
  const car_target_t plain = {.pid = 77, .dumpable = 1};
  car_target_t other = plain;
  expect (&plain, 0, 0, NULL);
  expect (&plain, 0, 1, NULL);
  expect (&plain, 1, 0, "ptrace_scope is 1");
  expect (&plain, 1, 1, NULL);
  expect (&plain, 2, 0, "ptrace_scope is 2");
  expect (&plain, 2, 1, NULL);
  expect (&plain, 3, 1, "nobody may trace");
  other.dumpable = 0;
  expect (&other, 0, 0, "not dumpable");
  expect (&other, 0, 1, NULL);
  other = plain, other.tracer = 4711;
  expect (&other, 0, 1, "process 4711 traces it");
  other = plain, other.seccomp = 1;
  expect (&other, 0, 1, "seccomp");
  other = plain, other.seccomp = 2; /* the filter is read when a thread is held */
  expect (&other, 0, 1, NULL);
  other = plain, other.shadow_stack = 1;
  expect (&other, 0, 1, "shadow stack");
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (each_rule),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
