/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../common/status.h"
#include "../../../../controller/service/sequence.h"

static ctl_sequence_entry_t *entry_of (ctl_sequence_t *self, uint32_t who, uint64_t number)
{
  uint8_t instance[WEFT_UUID_SIZE] = {0}, start[WEFT_UUID_SIZE] = {9};
  memcpy (instance, &who, sizeof who);
  ctl_sequence_entry_t *entry = NULL;
  assert_int_equal (ctl_sequence_of (self, instance, start, number, &entry), 0);
  return entry;
}

static void test_in_order (void **state)
{
  ctl_sequence_t *self = ctl_sequence_new ();
  ctl_sequence_entry_t *entry = entry_of (self, 1, 1);
  for (uint64_t n = 1; n <= 200; n++) {
    assert_int_equal (ctl_sequence_look (entry, n), 0);
    ctl_sequence_take (entry, n);
    assert_int_equal (entry->done, n);
    assert_int_equal (ctl_sequence_look (entry, n), 1);
  }
  assert_int_equal (ctl_sequence_look (entry, 1), 1);
  ctl_sequence_destroy (&self);
  ctl_sequence_destroy (&self);
}

/* Only what is contiguous is done. */
static void test_gap (void **state)
{
  ctl_sequence_t *self = ctl_sequence_new ();
  ctl_sequence_entry_t *entry = entry_of (self, 1, 1);
  ctl_sequence_take (entry, 1);
  ctl_sequence_take (entry, 3);
  ctl_sequence_take (entry, 4);
  assert_int_equal (entry->done, 1);
  assert_int_equal (ctl_sequence_look (entry, 2), 0);
  assert_int_equal (ctl_sequence_look (entry, 3), 1);
  assert_int_equal (ctl_sequence_look (entry, 5), 0);
  ctl_sequence_take (entry, 2);
  assert_int_equal (entry->done, 4);
  assert_int_equal (ctl_sequence_look (entry, 4), 1);
  assert_int_equal (ctl_sequence_look (entry, 4 + WEFT_BATCH_AHEAD_MAX), 0);
  assert_int_equal (ctl_sequence_look (entry, 5 + WEFT_BATCH_AHEAD_MAX), WEFT_E_RANGE);
  assert_int_equal (ctl_sequence_look (entry, UINT64_MAX), WEFT_E_RANGE);
  ctl_sequence_take (entry, 4 + WEFT_BATCH_AHEAD_MAX);
  assert_int_equal (entry->done, 4);
  for (uint64_t n = 5; n < 4 + WEFT_BATCH_AHEAD_MAX; n++)
    ctl_sequence_take (entry, n);
  assert_int_equal (entry->done, 4 + WEFT_BATCH_AHEAD_MAX);
  ctl_sequence_destroy (&self);
}

/* What came before the first one seen was acknowledged by another controller. */
static void test_first_sight (void **state)
{
  ctl_sequence_t *self = ctl_sequence_new ();
  ctl_sequence_entry_t *entry = entry_of (self, 1, 57);
  assert_int_equal (entry->done, 56);
  assert_int_equal (ctl_sequence_look (entry, 57), 0);
  assert_int_equal (entry_of (self, 1, 99)->done, 56);
  ctl_sequence_destroy (&self);
}

/* Growing loses nobody. */
static void test_many (void **state)
{
  ctl_sequence_t *self = ctl_sequence_new ();
  for (uint32_t who = 0; who < 5000; who++)
    ctl_sequence_take (entry_of (self, who, who + 1), who + 1);
  for (uint32_t who = 0; who < 5000; who++)
    assert_int_equal (entry_of (self, who, 1)->done, who + 1);
  ctl_sequence_destroy (&self);
}

static void test_starts_are_apart (void **state)
{
  ctl_sequence_t *self = ctl_sequence_new ();
  uint8_t instance[WEFT_UUID_SIZE] = {1}, one[WEFT_UUID_SIZE] = {1}, two[WEFT_UUID_SIZE] = {2};
  ctl_sequence_entry_t *entry = NULL;
  ctl_sequence_of (self, instance, one, 1, &entry);
  ctl_sequence_take (entry, 1);
  ctl_sequence_of (self, instance, two, 1, &entry);
  assert_int_equal (entry->done, 0);
  ctl_sequence_destroy (&self);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_in_order),         cmocka_unit_test (test_gap),
      cmocka_unit_test (test_first_sight),      cmocka_unit_test (test_many),
      cmocka_unit_test (test_starts_are_apart),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
