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

#include <errno.h>

#include "../../../common/ids.h"
#include "../../../common/status.h"

/* The generator's published outputs for the state (1, 2, 3, 4) are 11520, 0,
 * 1509978240, 1215971899390074240; the first is rotl (2 * 5, 7) * 9. The 0 is no
 * id and must be passed over. */
static void follows_xoshiro (void **state)
{
  weft_ids_t ids = {{1, 2, 3, 4}};
  assert_int_equal (weft_ids_next (&ids), 11520);
  assert_true (weft_ids_next (&ids) == 1509978240ull);
  assert_true (weft_ids_next (&ids) == 1215971899390074240ull);
}

static void seeds_differ_and_keep_errno (void **state)
{
  weft_ids_t a, b;
  errno = 77;
  weft_ids_seed (&a);
  weft_ids_seed (&b);
  assert_int_equal (errno, 77);
  assert_memory_not_equal (&a, &b, sizeof (a));
  assert_true (weft_ids_next (&a) != 0);
}

static void task_ids_are_never_zero_and_differ (void **state)
{
  static const uint8_t zero[16];
  uint8_t first[16], second[16];
  weft_ids_t ids;
  weft_ids_seed (&ids);
  weft_ids_task (&ids, first);
  weft_ids_task (&ids, second);
  assert_memory_not_equal (first, zero, 16);
  assert_memory_not_equal (first, second, 16);
}

static void hex_both_ways (void **state)
{
  static const uint8_t bytes[4] = {0x00, 0x9f, 0xa0, 0xff};
  uint8_t back[4] = {0};
  char text[17] = "________________";
  uint64_t value = 5;

  weft_hex_put (text, bytes, 4);
  assert_memory_equal (text, "009fa0ff________", 16);
  assert_int_equal (weft_hex_get (back, text, 4), 0);
  assert_memory_equal (back, bytes, 4);
  weft_hex_put_u64 (text, 0x0123456789abcdefull);
  assert_string_equal (text, "0123456789abcdef");
  assert_int_equal (weft_hex_get_u64 (&value, "fedcba9876543210"), 0);
  assert_true (value == 0xfedcba9876543210ull);
}

static void hex_refuses_and_leaves_alone (void **state)
{
  static const char *const bad[] = {"0123456789abcdeF", "0123456789abcde ", "g123456789abcdef",
                                    "01234567/9abcdef", "0123456789abcd:f", "0123456789`bcdef"};
  for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
    uint64_t value = 42;
    uint8_t bytes[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    assert_int_equal (weft_hex_get_u64 (&value, bad[i]), WEFT_E_MALFORMED);
    assert_int_equal (value, 42);
    assert_int_equal (weft_hex_get (bytes, bad[i], 8), WEFT_E_MALFORMED);
    assert_int_equal (bytes[0], 7);
  }
}

static void uuids (void **state)
{
  static const char *const bad[] = {"",
                                    "0192f3c4-0000-7000-8000-00000000000",
                                    "0192f3c4-0000-7000-8000-0000000000012",
                                    "0192f3c40-000-7000-8000-000000000001",
                                    "0192F3c4-0000-7000-8000-000000000001",
                                    "0192f3c4-0000-7000-8000+000000000001"};
  uint8_t uuid[16] = {9};
  char text[37];

  assert_int_equal (weft_uuid_get (uuid, "0192f3c4-0000-7000-8000-00000000abcd"), 0);
  assert_int_equal (uuid[0], 0x01);
  assert_int_equal (uuid[3], 0xc4);
  assert_int_equal (uuid[15], 0xcd);
  weft_uuid_put (text, uuid);
  assert_string_equal (text, "0192f3c4-0000-7000-8000-00000000abcd");
  for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
    uuid[0] = 9;
    assert_int_equal (weft_uuid_get (uuid, bad[i]), WEFT_E_MALFORMED);
    assert_int_equal (uuid[0], 9);
  }
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (follows_xoshiro),
      cmocka_unit_test (seeds_differ_and_keep_errno),
      cmocka_unit_test (task_ids_are_never_zero_and_differ),
      cmocka_unit_test (hex_both_ways),
      cmocka_unit_test (hex_refuses_and_leaves_alone),
      cmocka_unit_test (uuids),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
