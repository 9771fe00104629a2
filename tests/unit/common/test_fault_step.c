/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../../common/fault_step.h"

static void one_passage_fails (void **state)
{
  weft_fault_steps_begin (2, 0);
  assert_int_equal (weft_fault_step ("a"), 0);
  assert_null (weft_fault_steps_failed ());
  assert_int_equal (weft_fault_step ("b"), 1);
  assert_string_equal (weft_fault_steps_failed (), "b");
  assert_int_equal (weft_fault_step ("b"), 0);
}

static void all_later_ones_of_its_name_do (void **state)
{
  weft_fault_steps_begin (2, 1);
  assert_int_equal (weft_fault_step ("a"), 0);
  assert_int_equal (weft_fault_step ("b"), 1);
  assert_int_equal (weft_fault_step ("a"), 0);
  assert_int_equal (weft_fault_step ("b"), 1);
}

static void none_is_asked_for (void **state)
{
  weft_fault_steps_begin (0, 1);
  assert_int_equal (weft_fault_step ("a"), 0);
  assert_null (weft_fault_steps_failed ());
}

int main (void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test (one_passage_fails),
                                     cmocka_unit_test (all_later_ones_of_its_name_do),
                                     cmocka_unit_test (none_is_asked_for)};
  return cmocka_run_group_tests (tests, NULL, NULL);
}
