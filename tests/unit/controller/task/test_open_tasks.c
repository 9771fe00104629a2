/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../common/status.h"
#include "../../../../controller/task/open_tasks.h"

#define TASKS 20000u /* some times as many as the first table holds */

static const uint8_t *id_of (uint32_t number)
{
  static uint8_t id[WEFT_TASK_ID_SIZE];
  memset (id, 0xa5, sizeof id);
  memcpy (id + 6, &number, sizeof number);
  return id;
}

/* Several tasks of each hash, many of neighbouring ones. */
static uint32_t hash_of (uint32_t number)
{
  return number / 3 * 7;
}

static uint32_t take (ctl_open_tasks_t *self, uint32_t number, int want_made)
{
  uint32_t at = CTL_NIL;
  int made = 99;
  assert_int_equal (ctl_open_tasks_take (self, id_of (number), hash_of (number), &at, &made), 0);
  assert_int_equal (made, want_made);
  return at;
}

static void end_task (ctl_open_tasks_t *self, uint32_t number)
{
  ctl_open_tasks_drop (self, number);
  ctl_open_tasks_forget (self, number);
}

static void test_what_a_slot_tells_is_checked_by_the_id (void **state)
{
  (void) state;
  ctl_open_tasks_t self = {0};
  assert_int_equal (ctl_open_tasks_begin (&self, TASKS, 1), 0);
  assert_int_equal (ctl_open_tasks_fetch_task (&self, 9), CTL_NIL);
  uint32_t first = take (&self, 0, 1), second = take (&self, 1, 1);
  assert_int_not_equal (first, second);
  /* both have one hash: the slot tells of the first */
  assert_int_equal (hash_of (0), hash_of (1));
  assert_int_equal (ctl_open_tasks_fetch_task (&self, hash_of (1)), first);
  assert_int_equal (ctl_open_tasks_is (&self, first, id_of (0)), 1);
  assert_int_equal (ctl_open_tasks_is (&self, first, id_of (1)), 0);
  assert_int_equal (ctl_open_tasks_is (&self, second, id_of (1)), 1);
  for (uint32_t bit = 0; bit < 8 * WEFT_TASK_ID_SIZE; bit++) {
    uint8_t other[WEFT_TASK_ID_SIZE];
    memcpy (other, id_of (0), sizeof other);
    other[bit / 8] ^= (uint8_t) (1u << bit % 8);
    assert_int_equal (ctl_open_tasks_is (&self, first, other), 0);
  }
  /* what was told holds while the table grows, not when the task is gone */
  for (uint32_t i = 2; i < TASKS; i++)
    take (&self, i, 1);
  assert_int_equal (ctl_open_tasks_is (&self, first, id_of (0)), 1);
  assert_int_equal (ctl_open_tasks_find (&self, id_of (0), hash_of (0)), first);
  end_task (&self, first);
  assert_int_equal (ctl_open_tasks_is (&self, first, id_of (0)), 0);
  assert_int_equal (ctl_open_tasks_find (&self, id_of (0), hash_of (0)), CTL_NIL);
  assert_int_equal (ctl_open_tasks_find (&self, id_of (1), hash_of (1)), second);
  ctl_open_tasks_end (&self);
}

static void test_all_are_found_however_their_hashes_lie (void **state)
{
  (void) state;
  static uint32_t number[TASKS];
  ctl_open_tasks_t self = {0};
  assert_int_equal (ctl_open_tasks_begin (&self, TASKS, 1), 0);
  for (uint32_t i = 0; i < TASKS; i++)
    number[i] = take (&self, i, 1);
  uint32_t at;
  int made;
  assert_int_equal (ctl_open_tasks_take (&self, id_of (TASKS), 1, &at, &made), WEFT_E_FULL);
  for (uint32_t i = 0; i < TASKS; i++)
    assert_int_equal (take (&self, i, 0), number[i]);
  for (uint32_t i = 0; i < TASKS; i += 2)
    end_task (&self, number[i]);
  assert_int_equal (self.open, TASKS / 2);
  for (uint32_t i = 0; i < TASKS; i++)
    assert_int_equal (ctl_open_tasks_find (&self, id_of (i), hash_of (i)), i % 2 ? number[i] : CTL_NIL);
  ctl_open_tasks_end (&self);
}

/* Writes so many lines, each with what it is, before the task's others. */
static int add (ctl_open_tasks_t *self, uint32_t task, uint32_t lines, uint64_t *link)
{
  ctl_entry_t *place = ctl_open_tasks_place (self);
  if (!place)
    return WEFT_E_FULL;
  for (uint32_t i = 0; i < CTL_ENTRY_LINES_MAX; i++)
    memset (&place[i], 0xee, sizeof *place); /* all of it may be written to */
  for (uint32_t i = 0; i < lines; i++)
    place[i] = (ctl_entry_t){.link = (*link)++};
  ctl_open_tasks_add (self, &self->task[task], lines);
  assert_in_range (self->at, self->end - CTL_OPEN_SEGMENT, self->end);
  return 0;
}

static void assert_lines (const ctl_open_tasks_t *self, uint32_t task, uint64_t first, uint64_t count)
{
  uint64_t seen = 0;
  for (uint32_t i = self->task[task].first; i != CTL_NIL; i = self->entry[i].next, seen++)
    assert_int_equal (self->entry[i].link, first + count - 1 - seen);
  assert_int_equal (seen, count);
  assert_int_equal (self->task[task].count, count);
}

/* One line, then two, and so on: the two of one report stand together, at the end of a segment, too. */
static void test_lines_are_kept_in_order (void **state)
{
  (void) state;
  ctl_open_tasks_t self = {0};
  uint64_t a = 0, b = 1000000;
  assert_int_equal (ctl_open_tasks_begin (&self, 2, 10 * CTL_OPEN_SEGMENT), 0);
  take (&self, 0, 1);
  take (&self, 1, 1);
  for (uint32_t i = 0; i < 2 * CTL_OPEN_SEGMENT; i++) {
    assert_int_equal (add (&self, 0, 1 + i % 2, &a), 0);
    if (i % 5 == 0)
      assert_int_equal (add (&self, 1, 2, &b), 0);
  }
  assert_lines (&self, 0, 0, a);
  assert_lines (&self, 1, 1000000, b - 1000000);
  ctl_open_tasks_end (&self);
}

/* Until something is written there. */
static void test_what_was_dropped_is_regained (void **state)
{
  (void) state;
  ctl_open_tasks_t self = {0};
  uint64_t a = 0, b = 5000000, c = 9000000;
  assert_int_equal (ctl_open_tasks_begin (&self, 4, 8 * CTL_OPEN_SEGMENT), 0);
  uint32_t first = take (&self, 0, 1), second = take (&self, 1, 1), third = take (&self, 2, 1);
  for (uint32_t i = 0; i < CTL_OPEN_SEGMENT; i++)
    assert_int_equal (add (&self, first, 1, &a), 0);
  for (uint32_t i = 0; i < 2 * CTL_OPEN_SEGMENT; i++)
    assert_int_equal (add (&self, second, 1, &b), 0);
  uint64_t bytes = ctl_open_tasks_bytes (&self);
  ctl_open_tasks_drop (&self, first);
  ctl_open_tasks_drop (&self, second);
  assert_true (ctl_open_tasks_bytes (&self) < bytes);
  ctl_open_tasks_regain (&self, second);
  ctl_open_tasks_regain (&self, first);
  assert_int_equal (ctl_open_tasks_bytes (&self), bytes);
  for (uint32_t i = 0; i < CTL_OPEN_SEGMENT; i++)
    assert_int_equal (add (&self, third, 1, &c), 0);
  assert_lines (&self, first, 0, a);
  assert_lines (&self, second, 5000000, b - 5000000);
  assert_lines (&self, third, 9000000, c - 9000000);
  ctl_open_tasks_end (&self);
}

static void test_segments_are_used_again (void **state)
{
  (void) state;
  ctl_open_tasks_t self = {0};
  assert_int_equal (ctl_open_tasks_begin (&self, 4, 3 * CTL_OPEN_SEGMENT), 0);
  uint32_t stays = take (&self, 0, 1);
  uint64_t link = 0, kept = 5000000;
  assert_int_equal (add (&self, stays, 1, &kept), 0);
  for (uint32_t round = 0; round < 20; round++) {
    uint32_t goes = take (&self, 1, 1);
    uint64_t first = link;
    for (uint32_t i = 0; i < CTL_OPEN_SEGMENT; i++)
      assert_int_equal (add (&self, goes, 1, &link), 0);
    assert_lines (&self, goes, first, CTL_OPEN_SEGMENT);
    end_task (&self, goes);
  }
  assert_lines (&self, stays, 5000000, 1);
  /* with one that stays in each there is an end */
  uint32_t fills = take (&self, 2, 1);
  uint32_t added = 0;
  while (added < 10 * CTL_OPEN_SEGMENT && add (&self, fills, 1, &link) == 0)
    added++;
  assert_in_range (added, 2 * CTL_OPEN_SEGMENT, 4 * CTL_OPEN_SEGMENT);
  ctl_open_tasks_end (&self);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_what_a_slot_tells_is_checked_by_the_id),
      cmocka_unit_test (test_all_are_found_however_their_hashes_lie),
      cmocka_unit_test (test_lines_are_kept_in_order),
      cmocka_unit_test (test_what_was_dropped_is_regained),
      cmocka_unit_test (test_segments_are_used_again),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
