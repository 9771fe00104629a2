/* SPDX-License-Identifier: Apache-2.0 */
/* More that is settled than one run may take (K2), and more that is open than memory may hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../../../common/batch.h"
#include "../../../../common/clocks.h"
#include "../../../../common/ids.h"
#include "../../../../controller/service/sink.h"

enum { BATCH = 400, BATCHES = 500 }; /* 200,000 tasks: several times 50 ms of any store */

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
  if (ctl_store_open (path, NULL, NULL, &self->store, why, sizeof why) < 0)
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

/* Another report of the first task. */
static void give_late (fixture_t *self, uint64_t number)
{
  static uint8_t frame[WEFT_BATCH_MAX];
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  weft_batch_head_t head = {.major = 1, .instance = {1}, .start = {1}, .boot = {1}, .number = number};
  weft_report_t report = {.kind = WEFT_REPORT_CAPTURE,
                          .request = 5,
                          .subtask = UINT64_MAX,
                          .start_ns = 200,
                          .end_ns = 300,
                          .cpu_ns = UINT32_MAX + 7ull, /* takes a second line */
                          .name = "GET /late",
                          .name_size = 9};
  uint64_t first = BATCH;
  size_t size = 0;
  uint32_t reports = 0;
  memcpy (report.task, &first, sizeof first);
  assert_int_equal (weft_batch_writer_begin (writer, frame, sizeof frame, &head), 0);
  assert_int_equal (weft_batch_writer_add (writer, &report), 0);
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  assert_int_equal (ctl_correlate_batch (self->correlate, frame, size, &reports), 0);
  weft_batch_writer_destroy (&writer);
}

/* Memory holds a part of them: the oldest are written early and counted, nothing is lost, and what comes late
 * joins what was written. */
static void what_does_not_fit_is_written_early (void **state)
{
  fixture_t *self = *state;
  ctl_correlate_stats_t stats;
  ctl_sink_destroy (&self->sink);
  ctl_correlate_destroy (&self->correlate);
  self->correlate = ctl_correlate_new_within (self->instances, 0, WEFT_OPEN_BYTES_LEAST);
  self->sink = ctl_sink_new (self->correlate, self->store);
  uint64_t number = 0;
  while (++number <= 2 * BATCHES) {
    while (ctl_correlate_room (self->correlate))
      assert_true (ctl_sink_run (self->sink, 0, 0) >= 0);
    give (self, number);
    ctl_correlate_stats (self->correlate, &stats);
    assert_true (stats.bytes <= WEFT_OPEN_BYTES_LEAST + (1u << 20)); /* what one batch adds */
  }
  assert_true (stats.evicted > 0 && stats.open_tasks < 2 * BATCH * BATCHES);
  give_late (self, number);
  assert_int_equal (ctl_sink_run (self->sink, 0, 1), 0);
  assert_true (ctl_store_count (self->store, 0, UINT64_MAX) == 2 * BATCH * BATCHES);
  ctl_execution_t *found = NULL;
  uint32_t count = 0;
  uint64_t first = BATCH;
  char hex[2 * WEFT_TASK_ID_SIZE + 1] = "";
  uint8_t task[WEFT_TASK_ID_SIZE] = {0};
  memcpy (task, &first, sizeof first);
  weft_hex_put (hex, task, sizeof task);
  assert_int_equal (ctl_store_find (self->store, hex, &found, &count), 0);
  assert_int_equal (found->count, 2);
  assert_true (found->subtasks[1].cpu_ns == UINT32_MAX + 7ull);
  ctl_execution_destroy (&found);
}

static int count_onward (ctl_execution_t **execution_p, void *arg)
{
  assert_int_equal ((*execution_p)->count, 1);
  ++*(uint64_t *) arg;
  return 0;
}

/* K1. A file size limit stands for a disk that is full. */
static void what_a_commit_did_not_take_is_there_as_before (void **state)
{
  enum { FULL_BATCHES = 2 * WEFT_SINK_MAX / BATCH + 1 };
  fixture_t *self = *state;
  ctl_correlate_stats_t stats;
  struct rlimit before, low;
  uint64_t onward = 0, number = 0;
  signal (SIGXFSZ, SIG_IGN);
  ctl_sink_onward (self->sink, count_onward, &onward);
  while (++number <= FULL_BATCHES)
    give (self, number);
  give (self, 1); /* one copy of each of these tasks is a duplicate */
  assert_int_equal (getrlimit (RLIMIT_FSIZE, &before), 0);
  low = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
  assert_int_equal (setrlimit (RLIMIT_FSIZE, &low), 0);
  for (int n = 0; n < 5; n++) {
    int rc = ctl_sink_run (self->sink, 0, 1);
    assert_true (rc < 0);
    ctl_correlate_stats (self->correlate, &stats);
    assert_int_equal (stats.open_tasks, FULL_BATCHES * BATCH);
    assert_int_equal (stats.duplicates, 0);
  }
  assert_int_equal (setrlimit (RLIMIT_FSIZE, &before), 0);
  assert_int_equal (onward, 0);
  give (self, number); /* over nothing of what was handed out in vain */
  assert_int_equal (ctl_store_count (self->store, 0, UINT64_MAX), 0);
  assert_int_equal (ctl_sink_run (self->sink, 0, 1), 0);
  ctl_correlate_stats (self->correlate, &stats);
  assert_int_equal (stats.open_tasks, 0);
  assert_int_equal (stats.duplicates, BATCH);
  assert_int_equal (onward, (FULL_BATCHES + 1) * BATCH);
  assert_int_equal (ctl_store_count (self->store, 0, UINT64_MAX), (FULL_BATCHES + 1) * BATCH);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (a_run_takes_its_time_and_no_more, setup, teardown),
      cmocka_unit_test_setup_teardown (the_last_run_takes_all, setup, teardown),
      cmocka_unit_test_setup_teardown (what_does_not_fit_is_written_early, setup, teardown),
      cmocka_unit_test_setup_teardown (what_a_commit_did_not_take_is_there_as_before, setup, teardown),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
