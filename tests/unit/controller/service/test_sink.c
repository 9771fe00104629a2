/* SPDX-License-Identifier: Apache-2.0 */
/* More that is settled than one run may take (K2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "../../../../common/batch.h"
#include "../../../../common/clocks.h"
#include "../../../../controller/service/sink.h"

enum { BATCH = 400, BATCHES = 200 }; /* 80,000 tasks: several times 50 ms of any store */

typedef struct {
  char base[64];
  ctl_instances_t *instances;
  ctl_correlate_t *correlate;
  ctl_store_t *store;
  ctl_sink_t *sink;
} fixture_t;

static int setup (void **state)
{
  char path[96], why[600];
  fixture_t *self = calloc (1, sizeof *self);
  strcpy (self->base, "/tmp/weft-sink-XXXXXX");
  if (!mkdtemp (self->base))
    return -1;
  snprintf (path, sizeof path, "%s/weft.db", self->base);
  self->instances = ctl_instances_new ();
  self->correlate = ctl_correlate_new (self->instances, 0);
  *state = self;
  if (ctl_store_open (path, &self->store, why, sizeof why) < 0)
    return -1;
  self->sink = ctl_sink_new (self->correlate, self->store);
  return 0;
}

static int teardown (void **state)
{
  fixture_t *self = *state;
  char command[128];
  snprintf (command, sizeof command, "rm -rf '%s'", self->base);
  ctl_sink_destroy (&self->sink);
  ctl_store_destroy (&self->store);
  ctl_correlate_destroy (&self->correlate);
  ctl_instances_destroy (&self->instances);
  free (self);
  return system (command);
}

static void give (fixture_t *self, uint64_t number)
{
  static uint8_t frame[WEFT_BATCH_MAX];
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  weft_batch_head_t head = {
      .major = 1, .instance = {1}, .start = {1}, .boot = {1}, .number = number, .reports = BATCH};
  weft_report_t report = {.kind = WEFT_REPORT_CAPTURE,
                          .flags = WEFT_REPORT_ROOT,
                          .instruction = 1,
                          .start_ns = 100,
                          .end_ns = 900,
                          .cpu_ns = WEFT_NS_NONE,
                          .name = "GET /",
                          .name_size = 5};
  size_t size = 0;
  uint32_t reports = 0;
  assert_int_equal (weft_batch_writer_begin (writer, frame, sizeof frame, &head), 0);
  for (uint64_t n = 0; n < BATCH; n++) {
    report.subtask = number * BATCH + n;
    memcpy (report.task, &report.subtask, sizeof report.subtask);
    assert_int_equal (weft_batch_writer_add (writer, &report), 0);
  }
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  assert_int_equal (ctl_correlate_batch (self->correlate, frame, size, &reports), 0);
  assert_int_equal (reports, BATCH);
  weft_batch_writer_destroy (&writer);
}

static uint64_t open_tasks (fixture_t *self)
{
  ctl_correlate_stats_t stats;
  ctl_correlate_stats (self->correlate, &stats);
  return stats.open_tasks;
}

static void a_run_takes_its_time_and_no_more (void **state)
{
  fixture_t *self = *state;
  for (uint64_t number = 1; number <= BATCHES; number++)
    give (self, number);
  uint64_t settled_ns = weft_mono_ns () + 2 * WEFT_SETTLE_MS * WEFT_NS_PER_MS;
  uint64_t before = open_tasks (self), runs = 0;
  assert_true (before == (uint64_t) BATCH * BATCHES);
  int rc;
  do {
    rc = ctl_sink_run (self->sink, settled_ns, 0);
    uint64_t now = open_tasks (self);
    assert_true (now < before); /* each run gets on, whole transactions at a time */
    assert_true (rc == 0 || (before - now) % WEFT_SINK_MAX == 0);
    assert_int_equal (ctl_sink_waiting (self->sink), 0);
    before = now;
    runs++;
  } while (rc == 1);
  assert_int_equal (rc, 0);
  assert_true (before == 0 && runs > 1);
}

static void the_last_run_takes_all (void **state)
{
  fixture_t *self = *state;
  for (uint64_t number = 1; number <= BATCHES; number++)
    give (self, number);
  assert_int_equal (ctl_sink_run (self->sink, weft_mono_ns (), 1), 0);
  assert_true (open_tasks (self) == 0);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (a_run_takes_its_time_and_no_more, setup, teardown),
      cmocka_unit_test_setup_teardown (the_last_run_takes_all, setup, teardown),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
