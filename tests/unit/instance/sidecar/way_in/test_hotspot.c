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

#include "../../../../../common/status.h"
#include "../../../../../instance/sidecar/way_in/hotspot.h"

static void only_return_code_zero_is_success (void **state)
{
  char why[256] = "untouched";
  assert_int_equal (car_hotspot_answer ("0\nreturn code: 0\n", why, sizeof why), 0);
  assert_string_equal (why, "untouched");
  assert_int_equal (car_hotspot_answer ("0\nreturn code: 100\n", why, sizeof why), WEFT_E_UNSUPPORTED);
  assert_non_null (strstr (why, "(100)"));
  /* JDK 25: the request had status 0, the load did not */
  assert_int_equal (
      car_hotspot_answer ("0\n/x/libweft_probe.so: cannot open shared object file\n", why, sizeof why),
      WEFT_E_UNSUPPORTED);
  assert_non_null (strstr (why, "cannot open shared object file"));
}

static void refusals_name_the_flag (void **state)
{
  char why[256];
  assert_int_equal (car_hotspot_answer ("0\nDynamic agent loading is not enabled. Use "
                                        "-XX:+EnableDynamicAgentLoading to launch target VM.\n",
                                        why, sizeof why),
                    WEFT_E_UNSUPPORTED);
  assert_non_null (strstr (why, "-XX:-EnableDynamicAgentLoading"));
  assert_int_equal (car_hotspot_answer ("", why, sizeof why), WEFT_E_UNSUPPORTED);
  assert_non_null (strstr (why, "without an answer"));
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (only_return_code_zero_is_success),
      cmocka_unit_test (refusals_name_the_flag),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
