/* SPDX-License-Identifier: Apache-2.0 */
/* Any number of triples, with many that are equal, against the library's sort; and the ids of few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../common/ids.h"
#include "../../../../controller/task/few.h"
#include "../../../../controller/task/triples.h"

enum { MOST = 700 };

static int compare (const void *left, const void *right)
{
  const uint64_t *a = left, *b = right;
  for (int i = 0; i < 3; i++)
    if (a[i] != b[i])
      return a[i] < b[i] ? -1 : 1;
  return 0;
}

/* of: how many values there are; 0: all. */
static void draw (weft_ids_t *ids, uint64_t of, ctl_triple_t *list, uint32_t count)
{
  for (uint32_t i = 0; i < count; i++) {
    uint64_t value[3];
    for (int k = 0; k < 3; k++)
      value[k] = of ? weft_ids_next (ids) % of : weft_ids_next (ids);
    list[i] = (ctl_triple_t){value[0], value[1], value[2]};
  }
}

static void any_number_in_any_order (void **state)
{
  static const uint64_t values[] = {0, 1, 2, 5, 40};
  static ctl_triple_t list[MOST], wanted[MOST];
  weft_ids_t ids;
  (void) state;
  weft_ids_seed (&ids);
  for (uint32_t count = 0; count <= MOST; count += count < 70 ? 1 : 33)
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
      draw (&ids, values[v], list, count);
      memcpy (wanted, list, sizeof list);
      qsort (wanted, count, sizeof *wanted, compare);
      ctl_triples_sort (list, count);
      assert_memory_equal (list, wanted, sizeof list);
      for (uint32_t i = 0; i < count; i++) {
        uint32_t first = i;
        while (first > 0 && list[first - 1].first == list[i].first)
          first--;
        assert_int_equal (ctl_triples_first (list, count, list[i].first), first);
      }
      assert_int_equal (ctl_triples_first (list, count, 0), 0);
    }
}

static void the_first_place_of_an_id (void **state)
{
  weft_ids_t ids;
  ctl_few_t few;
  (void) state;
  weft_ids_seed (&ids);
  for (uint32_t round = 0; round < 2000; round++) {
    uint64_t id[CTL_FEW], of = round % 3 ? round % 50 + 1 : UINT64_MAX;
    uint32_t count = round % (CTL_FEW + 1);
    ctl_few_clear (&few);
    for (uint32_t i = 0; i < count; i++) {
      id[i] = weft_ids_next (&ids) % of;
      uint32_t before = ctl_few_find (&few, id[i]);
      assert_int_equal (ctl_few_add (&few, id[i], i), before == UINT32_MAX);
    }
    for (uint32_t i = 0; i < count; i++) {
      uint32_t first = 0;
      while (id[first] != id[i])
        first++;
      assert_int_equal (ctl_few_find (&few, id[i]), first);
    }
    assert_int_equal (ctl_few_find (&few, of), UINT32_MAX);
  }
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (any_number_in_any_order),
      cmocka_unit_test (the_first_place_of_an_id),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
