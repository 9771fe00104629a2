/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../controller/task/id_table.h"

#define IDS 20000

static void make_id (uint8_t id[16], uint64_t n)
{
  memset (id, 0, 16); /* the upper half is the same in all: ids of 64 bits */
  memcpy (id + 8, &n, sizeof n);
}

/* How many numbers are named for an id, and whether `number` is one of them. */
static unsigned named (const ctl_id_table_t *table, uint64_t n, int64_t end, int64_t number, int *ret_there)
{
  uint8_t id[16];
  make_id (id, n);
  ctl_id_search_t search = ctl_id_table_search (table, id);
  unsigned count = 0;
  int64_t found;
  *ret_there = 0;
  for (; ctl_id_table_next (table, &search, end, &found); count++)
    *ret_there |= found == number;
  return count;
}

static void add_all (ctl_id_table_t *table, int64_t first)
{
  uint8_t id[16];
  assert_int_equal (ctl_id_table_init (table), 0);
  for (int64_t n = 0; n < IDS; n++) {
    make_id (id, (uint64_t) n);
    assert_int_equal (ctl_id_table_add (table, id, first + n, first, first + n + 1), 0);
  }
}

/* Numbers of any size: 1, beyond 2^28, where the low bits wrap in the middle. */
static void test_all_are_found (void **state)
{
  static const int64_t firsts[] = {1, INT64_C (1) << 40, (INT64_C (3) << 28) - IDS / 2};
  for (unsigned k = 0; k < 3; k++) {
    ctl_id_table_t table;
    unsigned wrong = 0;
    int there;
    add_all (&table, firsts[k]);
    for (int64_t n = 0; n < IDS; n++) {
      wrong += named (&table, (uint64_t) n, firsts[k] + IDS, firsts[k] + n, &there) - 1;
      assert_true (there);
    }
    for (int64_t n = IDS; n < 2 * IDS; n++)
      wrong += named (&table, (uint64_t) n, firsts[k] + IDS, 0, &there);
    assert_true (wrong < 5); /* 2^-21 each: none, nearly always */
    assert_true (table.used == IDS && ((size_t) 1 << table.bits) < 4 * (size_t) IDS);
    ctl_id_table_clear (&table);
  }
}

/* What is gone makes room when it grows; the same id under the same number stands there once. */
static void test_what_is_gone_is_forgotten (void **state)
{
  ctl_id_table_t table;
  uint8_t id[16];
  int there;
  add_all (&table, 1);
  size_t used = table.used;
  make_id (id, 17);
  assert_int_equal (ctl_id_table_add (&table, id, 18, 1, IDS + 1), 0);
  assert_true (table.used == used);
  for (int64_t n = IDS; n < 60 * IDS; n++) { /* of which IDS are there at a time */
    make_id (id, (uint64_t) n);
    assert_int_equal (ctl_id_table_add (&table, id, 1 + n, 2 + n - IDS, n + 2), 0);
  }
  assert_true (((size_t) 1 << table.bits) <= 8 * (size_t) IDS);
  for (int64_t n = 59 * IDS; n < 60 * IDS; n++) {
    named (&table, (uint64_t) n, 60 * IDS + 1, n + 1, &there);
    assert_true (there);
  }
  ctl_id_table_clear (&table);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_all_are_found),
      cmocka_unit_test (test_what_is_gone_is_forgotten),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
