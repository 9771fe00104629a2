/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../../../common/ids.h"
#include "../../../../controller/view/lanes.h"

typedef struct {
  uint64_t start, end;
  uint32_t lane;
} span_t;

static int compare (const void *left, const void *right)
{
  const span_t *a = left, *b = right;
  if (a->start != b->start)
    return a->start < b->start ? -1 : 1;
  return a->end != b->end ? (a->end > b->end ? -1 : 1) : 0;
}

static int cross (const span_t *a, const span_t *b)
{
  int apart = a->end <= b->start || b->end <= a->start;
  int within = (a->start <= b->start && b->end <= a->end) || (b->start <= a->start && a->end <= b->end);
  return a->lane == b->lane && !apart && !within;
}

/* Drawn spans below drawn others: never across, and no more lanes than spans were open at once. */
static void test_spans_never_cross (void **state)
{
  (void) state;
  enum { SPANS = 300 };
  static span_t spans[SPANS];
  weft_ids_t ids;
  weft_ids_seed (&ids);
  for (int round = 0; round < 50; round++) {
    ctl_lanes_t *lanes = ctl_lanes_new ();
    for (int n = 0; n < SPANS; n++) {
      spans[n].start = weft_ids_next (&ids) % 1000;
      spans[n].end = spans[n].start + weft_ids_next (&ids) % (n % 3 ? 20 : 500);
    }
    qsort (spans, SPANS, sizeof *spans, compare);
    uint32_t most = 0;
    for (int n = 0; n < SPANS; n++) {
      uint32_t open = 1, wanted = n && weft_ids_next (&ids) % 2
                                      ? spans[weft_ids_next (&ids) % (unsigned) n].lane
                                      : CTL_LANE_NONE;
      assert_int_equal (ctl_lanes_take (lanes, spans[n].start, spans[n].end, wanted, &spans[n].lane), 0);
      for (int i = 0; i < n; i++) {
        assert_false (cross (&spans[i], &spans[n]));
        open += spans[i].end > spans[n].start;
      }
      most = open > most ? open : most;
    }
    assert_true (ctl_lanes_count (lanes) <= most);
    ctl_lanes_destroy (&lanes);
  }
}

static void test_a_child_lies_where_its_parent_does (void **state)
{
  (void) state;
  ctl_lanes_t *lanes = ctl_lanes_new ();
  uint32_t parent, first, second, beside, later;
  assert_int_equal (ctl_lanes_take (lanes, 0, 100, CTL_LANE_NONE, &parent), 0);
  assert_int_equal (ctl_lanes_take (lanes, 10, 30, parent, &first), 0);
  assert_int_equal (ctl_lanes_take (lanes, 20, 40, parent, &beside), 0); /* crosses the first */
  assert_int_equal (ctl_lanes_take (lanes, 30, 50, parent, &second), 0);
  assert_int_equal (ctl_lanes_take (lanes, 100, 120, CTL_LANE_NONE, &later), 0); /* all have ended */
  assert_int_equal (first, parent);
  assert_int_not_equal (beside, parent);
  assert_int_equal (second, parent);
  assert_int_equal (ctl_lanes_count (lanes), 2);
  ctl_lanes_destroy (&lanes);
  ctl_lanes_destroy (&lanes);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_spans_never_cross),
      cmocka_unit_test (test_a_child_lies_where_its_parent_does),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
