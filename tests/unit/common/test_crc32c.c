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

#include "../../../common/crc32c.h"

/* RFC 3720, B.4, and the customary check value. */
static void vectors (void **state)
{
  uint8_t bytes[32];
  assert_int_equal (weft_crc32c (0, "123456789", 9), 0xe3069283u);
  assert_int_equal (weft_crc32c_portable (0, "123456789", 9), 0xe3069283u);
  assert_int_equal (weft_crc32c (0, "", 0), 0);
  memset (bytes, 0, sizeof (bytes));
  assert_int_equal (weft_crc32c (0, bytes, 32), 0x8a9136aau);
  memset (bytes, 0xff, sizeof (bytes));
  assert_int_equal (weft_crc32c (0, bytes, 32), 0x62a8ab43u);
  for (unsigned i = 0; i < 32; i++)
    bytes[i] = (uint8_t) i;
  assert_int_equal (weft_crc32c_portable (0, bytes, 32), 0x46dd794eu);
}

static void both_agree_and_continue (void **state)
{
  uint8_t bytes[1000];
  for (unsigned i = 0; i < sizeof (bytes); i++)
    bytes[i] = (uint8_t) (i * 7 + (i >> 3));
  for (size_t cut = 0; cut <= 40; cut++) {
    uint32_t whole = weft_crc32c_portable (0, bytes + cut, sizeof (bytes) - cut);
    assert_int_equal (weft_crc32c (0, bytes + cut, sizeof (bytes) - cut), whole);
    uint32_t first = weft_crc32c (0, bytes, cut);
    assert_int_equal (weft_crc32c (first, bytes + cut, sizeof (bytes) - cut),
                      weft_crc32c (0, bytes, sizeof (bytes)));
  }
}

/* The sizes about which the way of computing changes, each with a seed and off its alignment. */
static void long_ones_agree (void **state)
{
  static uint8_t bytes[70000];
  uint32_t word = 1;
  for (unsigned i = 0; i < sizeof (bytes); i++) {
    word = word * 1664525u + 1013904223u;
    bytes[i] = (uint8_t) (word >> 24);
  }
  for (size_t lanes = 1; lanes <= 12; lanes++)
    for (size_t off = 0; off < 18; off++) {
      size_t size = lanes * 512 + off - 9;
      assert_int_equal (weft_crc32c (word, bytes + off, size),
                        weft_crc32c_portable (word, bytes + off, size));
    }
  assert_int_equal (weft_crc32c (0, bytes + 1, 65536), weft_crc32c_portable (0, bytes + 1, 65536));
  assert_int_equal (weft_crc32c (0, bytes, sizeof (bytes)), weft_crc32c_portable (0, bytes, sizeof (bytes)));
}

int main (void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test (vectors), cmocka_unit_test (both_agree_and_continue),
                                     cmocka_unit_test (long_ones_agree)};
  return cmocka_run_group_tests (tests, NULL, NULL);
}
