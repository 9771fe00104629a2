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

#include "../../../common/status.h"

static void names_and_texts (void **state)
{
  assert_string_equal (weft_status_name (0), "OK");
  assert_string_equal (weft_status_name (WEFT_E_MALFORMED), "MALFORMED");
  assert_string_equal (weft_status_text (WEFT_E_MALFORMED), "malformed data");
  assert_string_equal (weft_status_name (-14), "USAGE");
  assert_int_equal (WEFT_E_VERSION, -5);
}

static void foreign_numbers (void **state)
{
  static const int foreign[] = {1, -15, -1000, 2147483647, -2147483647 - 1};
  for (size_t i = 0; i < sizeof (foreign) / sizeof (foreign[0]); i++) {
    assert_string_equal (weft_status_name (foreign[i]), "UNKNOWN");
    assert_string_equal (weft_status_text (foreign[i]), "unknown status");
  }
}

int main (void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test (names_and_texts), cmocka_unit_test (foreign_numbers)};
  return cmocka_run_group_tests (tests, NULL, NULL);
}
