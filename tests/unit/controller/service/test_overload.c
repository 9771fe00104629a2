/* SPDX-License-Identifier: Apache-2.0 */
/* More batches than the correlator may hold, from two instances: each task is whole or not there, and
 * the sums are exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../common/clocks.h"
#include "../../../../controller/service/overload.h"
#include "life.h"

enum { OPEN_MAX = 4000, BATCH = 100, LAG = 7, BATCHES = 200 };

typedef struct {
  life_t life;
  ctl_overload_t overload;
} fixture_t;

static int setup (void **state)
{
  fixture_t *self = calloc (1, sizeof *self);
  self->life = begin_life (OPEN_MAX);
  *state = self;
  return 0;
}

static int teardown (void **state)
{
  fixture_t *self = *state;
  end_life (&self->life);
  free (self);
  return 0;
}

/* Front (1) has the root and the embed copy of each task, orders (2) the capture copy. */
static uint32_t fill (weft_batch_writer_t *writer, uint8_t who, uint64_t id)
{
  weft_report_t report = {
      .status = 200, .start_ns = 100, .end_ns = 900, .cpu_ns = WEFT_NS_NONE, .name = "GET /", .name_size = 5};
  memcpy (report.task + 8, &id, sizeof id);
  report.kind = WEFT_REPORT_CAPTURE;
  report.flags = who == 1 ? WEFT_REPORT_ROOT : 0;
  report.instruction = who == 1;
  report.subtask = 2 * id + who;
  report.request = who == 1 ? 0 : id;
  assert_int_equal (weft_batch_writer_add (writer, &report), 0);
  if (who == 2)
    return 1;
  report.kind = WEFT_REPORT_EMBED;
  report.flags = 0;
  report.request = id;
  report.start_ns = 200, report.end_ns = 800;
  assert_int_equal (weft_batch_writer_add (writer, &report), 0);
  return 2;
}

static void give (fixture_t *self, uint8_t who, uint64_t number)
{
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  weft_batch_head_t head = {.major = 1, .instance = {who}, .start = {1}, .number = number};
  uint8_t *frame = malloc (WEFT_BATCH_MAX);
  size_t size = 0;
  assert_int_equal (weft_batch_writer_begin (writer, frame, WEFT_BATCH_MAX, &head), 0);
  for (uint64_t n = 0; n < BATCH; n++)
    head.reports += fill (writer, who, number * BATCH + n + 1);
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  assert_int_equal (ctl_intake_frame (self->life.intake, frame, size), 0);
  free (frame);
  weft_batch_writer_destroy (&writer);
}

static int is_whole (ctl_execution_t **execution_p, void *arg)
{
  assert_int_equal ((*execution_p)->count, 2);
  assert_int_equal ((*execution_p)->complete, 1);
  ++*(uint64_t *) arg;
  return 0;
}

static uint32_t look (fixture_t *self, uint64_t now_ns)
{
  ctl_correlate_stats_t stats;
  ctl_correlate_stats (self->life.links.correlate, &stats);
  return ctl_overload_look (&self->overload, ctl_correlate_shedder (self->life.links.correlate),
                            stats.open_tasks, stats.open_max, ctl_intake_stats (self->life.intake)->deferred,
                            now_ns);
}

static void tasks_are_shed_whole_and_counted (void **state)
{
  fixture_t *self = *state;
  uint64_t whole = 0, now_ns = weft_mono_ns ();
  uint32_t kept = CTL_SHED_NOTHING;
  for (uint64_t number = 1; number <= BATCHES + LAG; number++) { /* orders is late */
    if (number <= BATCHES)
      give (self, 1, number);
    if (number > LAG)
      give (self, 2, number - LAG);
    if (number % 5 == 0)
      kept = look (self, now_ns);
  }
  assert_in_range (kept, CTL_SHED_NOTHING / 64, CTL_SHED_NOTHING / 2);
  assert_int_equal (ctl_correlate_settle (self->life.links.correlate, now_ns, 1, is_whole, &whole), 0);
  assert_in_range (whole, OPEN_MAX / 2, OPEN_MAX * 2);
  for (uint32_t n = 0; n < 2; n++) {
    const ctl_instance_t *instance = ctl_instances_at (self->life.links.instances, n);
    uint64_t copies = instance->uuid[0] == 1 ? 2 : 1;
    assert_true (instance->stored == whole * copies);
    assert_true (instance->losses[WEFT_LOSS_SHED] == (BATCHES * BATCH - whole) * copies);
  }
  /* At ease again it takes more, a step a second. */
  uint64_t steps = 0;
  while (look (self, now_ns += WEFT_NS_PER_S) < CTL_SHED_NOTHING)
    assert_true (++steps < 60);
  assert_true (steps > 2);
}

static void a_backlog_is_overload_when_it_lasts (void **state)
{
  fixture_t *self = *state;
  uint64_t start_ns = weft_mono_ns ();
  ctl_overload_backlog (&self->overload, 1, start_ns);
  assert_int_equal (look (self, start_ns + WEFT_NS_PER_S), CTL_SHED_NOTHING);
  ctl_overload_backlog (&self->overload, 0, start_ns + WEFT_NS_PER_S);
  ctl_overload_backlog (&self->overload, 1, start_ns + WEFT_NS_PER_S);
  assert_int_equal (look (self, start_ns + 2 * WEFT_NS_PER_S), CTL_SHED_NOTHING);
  ctl_overload_backlog (&self->overload, 1, start_ns + 3 * WEFT_NS_PER_S);
  assert_int_equal (look (self, start_ns + 3 * WEFT_NS_PER_S), CTL_SHED_NOTHING / 4 * 3);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (tasks_are_shed_whole_and_counted, setup, teardown),
      cmocka_unit_test_setup_teardown (a_backlog_is_overload_when_it_lasts, setup, teardown),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
