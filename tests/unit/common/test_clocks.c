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

#include "../../../common/clocks.h"
#include "../../../common/status.h"

static void durations (void **state)
{
  static const struct {
    const char *text;
    uint64_t max_ms;
    int status;
    uint64_t ms;
  } row[] = {
      {"10s", 100000, 0, 10000},
      {"250ms", 250, 0, 250},
      {"5m", 300000, 0, 300000},
      {"1h", 3600000, 0, 3600000},
      {"0s", 1, 0, 0},
      {"007s", 7000, 0, 7000},
      {"251ms", 250, WEFT_E_RANGE, 0},
      {"99999999999999999999s", UINT64_MAX, WEFT_E_RANGE, 0},
      {"18446744073709551615h", UINT64_MAX, WEFT_E_RANGE, 0},
      {"", 1000, WEFT_E_MALFORMED, 0},
      {"s", 1000, WEFT_E_MALFORMED, 0},
      {"10", 1000, WEFT_E_MALFORMED, 0},
      {"-1s", 1000, WEFT_E_MALFORMED, 0},
      {"+1s", 1000, WEFT_E_MALFORMED, 0},
      {" 1s", 1000, WEFT_E_MALFORMED, 0},
      {"1 s", 1000, WEFT_E_MALFORMED, 0},
      {"1.5s", 9000, WEFT_E_MALFORMED, 0},
      {"1sec", 9000, WEFT_E_MALFORMED, 0},
      {"1S", 9000, WEFT_E_MALFORMED, 0},
      {"99999999999999999999", UINT64_MAX, WEFT_E_MALFORMED, 0},
  };
  for (size_t i = 0; i < sizeof (row) / sizeof (row[0]); i++) {
    uint64_t ms = 4711;
    int status = weft_duration_ms (row[i].text, row[i].max_ms, &ms);
    if (status != row[i].status)
      fail_msg ("'%s' gives %d", row[i].text, status);
    assert_int_equal (ms, row[i].status == 0 ? row[i].ms : 4711);
  }
}

static void anchor_lies_between (void **state)
{
  weft_anchor_t anchor;
  uint64_t boot = weft_boot_ns (), real = weft_clock_ns (CLOCK_REALTIME);
  weft_anchor_take (&anchor);
  assert_in_range (anchor.boot_ns, boot, weft_boot_ns ());
  assert_in_range (anchor.real_ns, real, weft_clock_ns (CLOCK_REALTIME));
}

static void boot_id_is_the_kernels (void **state)
{
  uint8_t first[16], second[16];
  static const uint8_t zero[16];
  assert_int_equal (weft_boot_id (first), 0);
  assert_int_equal (weft_boot_id (second), 0);
  assert_memory_equal (first, second, 16);
  assert_memory_not_equal (first, zero, 16);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (durations),
      cmocka_unit_test (anchor_lies_between),
      cmocka_unit_test (boot_id_is_the_kernels),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
