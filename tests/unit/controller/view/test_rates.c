/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include "../../../../controller/view/rates.h"

static void test_for_people (void **state)
{
  (void) state;
  golden_t golden;
  ctl_analysis_t *analysis = golden_analysis ();
  assert_int_equal (ctl_rates (golden_begin (&golden), &golden_wide, analysis, 60000 * GOLDEN_MS, 10), 0);
  golden_end (&golden, "rates.txt");
  assert_int_equal (ctl_rates (golden_begin (&golden), &golden_ascii, analysis, 2500 * GOLDEN_MS, 1), 0);
  golden_end (&golden, "rates-ascii.txt");
  ctl_analysis_destroy (&analysis);
}

static void test_for_programs (void **state)
{
  (void) state;
  golden_t golden;
  ctl_analysis_t *analysis = golden_analysis ();
  assert_int_equal (ctl_rates_csv (golden_begin (&golden), analysis, 60000 * GOLDEN_MS), 0);
  golden_end (&golden, "rates.csv");
  assert_int_equal (ctl_rates_json (golden_begin (&golden), analysis, 60000 * GOLDEN_MS), 0);
  golden_end (&golden, "rates.jsonl");
  ctl_analysis_destroy (&analysis);
}

int main (void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test (test_for_people),
                                     cmocka_unit_test (test_for_programs)};
  return cmocka_run_group_tests (tests, NULL, NULL);
}
