/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of one batch are at different stages at the same time: none may be lost,
 * taken twice or given to another task, however many they are and wherever they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../../../common/status.h"
#include "forest.h"

#define SEED  7u
#define TASKS 9000u /* three times as many as the first table holds */

typedef struct {
  ctl_instances_t *instances;
  ctl_correlate_t *correlate;
  weft_batch_writer_t *writer;
  uint64_t number, subtask;
  uint8_t frame[WEFT_BATCH_MAX];
} stage_t;

static void begin (stage_t *self)
{
  *self = (stage_t){.instances = ctl_instances_new (), .writer = weft_batch_writer_new ()};
  forest_hello (self->instances);
  self->correlate = ctl_correlate_new (self->instances, 0);
  assert_non_null (self->correlate);
}

static void end (stage_t *self)
{
  weft_batch_writer_destroy (&self->writer);
  ctl_correlate_destroy (&self->correlate);
  ctl_instances_destroy (&self->instances);
}

static void id_of (uint32_t task, uint8_t ret_id[WEFT_TASK_ID_SIZE])
{
  memset (ret_id, 0x3c, WEFT_TASK_ID_SIZE);
  memcpy (ret_id + 4, &task, sizeof task);
}

/* A batch of captures, one subtask each, of these tasks. */
static size_t make (stage_t *self, const uint32_t *task, uint32_t count)
{
  weft_batch_head_t head;
  size_t size = 0;
  forest_head (0, ++self->number, &head);
  assert_int_equal (weft_batch_writer_begin (self->writer, self->frame, sizeof self->frame, &head), 0);
  for (uint32_t i = 0; i < count; i++) {
    weft_report_t report = {.kind = WEFT_REPORT_CAPTURE, .name = "GET /", .name_size = 5, .start_ns = 100};
    report.subtask = ++self->subtask;
    report.request = report.subtask + 1000000000;
    report.end_ns = 200;
    id_of (task[i], report.task);
    assert_int_equal (weft_batch_writer_add (self->writer, &report), 0);
  }
  assert_int_equal (weft_batch_writer_finish (self->writer, &head, &size), 0);
  return size;
}

static void assert_subtasks (const stage_t *self, uint32_t task, uint32_t count)
{
  uint8_t id[WEFT_TASK_ID_SIZE];
  ctl_execution_t *execution = NULL;
  id_of (task, id);
  int rc = ctl_correlate_find (self->correlate, id, &execution);
  assert_int_equal (rc, count ? 0 : WEFT_E_NOT_FOUND);
  if (count)
    assert_int_equal (execution->count, count);
  ctl_execution_destroy (&execution);
}

/* Few tasks, so that several reports of a new one are on their way together. */
static void test_batches_of_every_size (void **state)
{
  (void) state;
  static stage_t self;
  uint32_t task[300] = {0}, subtasks[40] = {0}, taken, draw = SEED;
  ctl_correlate_stats_t stats;
  uint64_t sent = 0;
  begin (&self);
  for (uint32_t size = 0; size < 300; size += size < 100 ? 1 : 17) {
    for (uint32_t i = 0; i < size; i++) {
      draw = draw * 1664525u + 1013904223u;
      task[i] = (draw >> 16) % 40;
      subtasks[task[i]]++;
    }
    size_t bytes = make (&self, task, size);
    assert_int_equal (ctl_correlate_batch (self.correlate, self.frame, bytes, &taken), 0);
    assert_int_equal (taken, size);
    sent += size;
  }
  ctl_correlate_stats (self.correlate, &stats);
  assert_int_equal (stats.reports, sent);
  assert_int_equal (stats.captures, sent);
  assert_int_equal (stats.open_tasks, 40);
  for (uint32_t i = 0; i < 40; i++)
    assert_subtasks (&self, i, subtasks[i]);
  end (&self);
}

/* New tasks make the table grow while reports are on their way. */
static void test_the_table_grows_within_a_batch (void **state)
{
  (void) state;
  static stage_t self;
  uint32_t task[400], taken;
  ctl_correlate_stats_t stats;
  begin (&self);
  for (uint32_t at = 0; at < TASKS; at += 100) {
    for (uint32_t i = 0; i < 400; i++) /* twice in a row, the whole of it twice */
      task[i] = at + i % 200 / 2;
    size_t bytes = make (&self, task, 400);
    assert_int_equal (ctl_correlate_batch (self.correlate, self.frame, bytes, &taken), 0);
    assert_int_equal (taken, 400);
  }
  ctl_correlate_stats (self.correlate, &stats);
  assert_int_equal (stats.open_tasks, TASKS);
  for (uint32_t i = 0; i < TASKS; i++)
    assert_subtasks (&self, i, 4);
  assert_subtasks (&self, TASKS, 0);
  end (&self);
}

/* A frame that ends too early: what stands whole before its end is taken, no more. */
static void test_what_stands_before_the_damage_is_taken (void **state)
{
  (void) state;
  enum { MOST = 90 };
  static stage_t self;
  uint32_t task[MOST] = {0}, taken;
  size_t size[MOST + 1];
  for (uint32_t i = 0; i < MOST; i++)
    task[i] = i;
  for (uint32_t count = 0; count <= MOST; count++) {
    begin (&self);
    size[count] = make (&self, task, count);
    end (&self);
  }
  for (uint32_t count = 1; count < MOST; count++)
    for (int short_by = 0; short_by < 2; short_by++) {
      begin (&self);
      make (&self, task, MOST);
      assert_int_equal (
          ctl_correlate_batch (self.correlate, self.frame, size[count] - (size_t) short_by, &taken),
          WEFT_E_MALFORMED);
      assert_int_equal (taken, count - (uint32_t) short_by);
      for (uint32_t i = 0; i < MOST; i++)
        assert_subtasks (&self, i, i < taken);
      end (&self);
    }
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_batches_of_every_size),
      cmocka_unit_test (test_the_table_grows_within_a_batch),
      cmocka_unit_test (test_what_stands_before_the_damage_is_taken),
  };
  printf ("seed %u\n", SEED);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
