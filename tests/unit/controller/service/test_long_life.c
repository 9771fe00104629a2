/* SPDX-License-Identifier: Apache-2.0 */
/* A task that is reported on for minutes goes into the store in parts, by age (R4), and is there what it
 * would have been if all of it had come at once. The clock is this test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../../../common/clocks.h"
#include "../../../../common/limits.h"
#include "../../../../controller/service/sink.h"
#include "../../../../controller/task/pack.h"
#include "../task/forest.h"

#define STEP_MS (WEFT_SETTLE_MS / 4 * 3) /* never quiet for long enough */
#define CALLS   120u                     /* three minutes */

static uint64_t later_ns; /* by so much this test's clock goes before the kernel's */

int clock_gettime (clockid_t id, struct timespec *ret_time)
{
  int rc = (int) syscall (SYS_clock_gettime, id, ret_time);
  if (rc || id != CLOCK_MONOTONIC)
    return rc;
  uint64_t ns = (uint64_t) ret_time->tv_sec * WEFT_NS_PER_S + (uint64_t) ret_time->tv_nsec + later_ns;
  ret_time->tv_sec = (time_t) (ns / WEFT_NS_PER_S);
  ret_time->tv_nsec = (long) (ns % WEFT_NS_PER_S);
  return 0;
}

typedef struct {
  char base[64];
  ctl_instances_t *instances;
  ctl_correlate_t *correlate;
  ctl_store_t *store;
  ctl_sink_t *sink;
  uint64_t number;
  uint32_t parts;
} life_t;

static int count_part (ctl_execution_t **execution_p, void *arg)
{
  (void) execution_p;
  ((life_t *) arg)->parts++;
  return 0;
}

static void life_new (life_t *self)
{
  char path[96], why[600];
  *self = (life_t){.base = "/tmp/weft-life-XXXXXX", .instances = ctl_instances_new ()};
  assert_non_null (mkdtemp (self->base));
  assert_true (snprintf (path, sizeof path, "%s/weft.db", self->base) > 0);
  forest_hello (self->instances);
  self->correlate = ctl_correlate_new (self->instances, 0);
  assert_int_equal (ctl_store_open (path, NULL, NULL, &self->store, why, sizeof why), 0);
  self->sink = ctl_sink_new (self->correlate, self->store);
  ctl_sink_onward (self->sink, count_part, self);
}

static void life_destroy (life_t *self)
{
  static const char *const end[] = {"", "-wal", "-shm"};
  char path[128];
  ctl_sink_destroy (&self->sink);
  ctl_store_destroy (&self->store);
  ctl_correlate_destroy (&self->correlate);
  ctl_instances_destroy (&self->instances);
  for (int i = 0; i < 3; i++) {
    snprintf (path, sizeof path, "%s/weft.db%s", self->base, end[i]);
    unlink (path);
  }
  assert_int_equal (rmdir (self->base), 0);
}

/* A batch with this report and no other. */
static void give (life_t *self, uint32_t instance, const weft_report_t *report)
{
  static uint8_t frame[WEFT_BATCH_MAX];
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  weft_batch_head_t head;
  size_t size;
  uint32_t taken;
  forest_head (instance, ++self->number, &head);
  head.anchor.real_ns = FOREST_ANCHOR + head.anchor.boot_ns;
  assert_int_equal (weft_batch_writer_begin (writer, frame, sizeof frame, &head), 0);
  assert_int_equal (weft_batch_writer_add (writer, report), 0);
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  assert_int_equal (ctl_correlate_batch (self->correlate, frame, size, &taken), 0);
  assert_int_equal (taken, 1);
  weft_batch_writer_destroy (&writer);
}

static uint64_t open_tasks (life_t *self)
{
  ctl_correlate_stats_t stats;
  ctl_correlate_stats (self->correlate, &stats);
  return stats.open_tasks;
}

static void pass (life_t *self, uint64_t ms)
{
  later_ns += ms * WEFT_NS_PER_MS;
  assert_int_equal (ctl_sink_run (self->sink, weft_mono_ns (), 0), 0);
}

/* What the store has of the only task in it. */
static ctl_execution_t *stored (life_t *self, const uint8_t task[WEFT_TASK_ID_SIZE])
{
  char hex[2 * WEFT_TASK_ID_SIZE + 1] = "";
  ctl_execution_t *found = NULL;
  uint32_t count = 0;
  weft_hex_put (hex, task, WEFT_TASK_ID_SIZE);
  assert_true (ctl_store_count (self->store, 0, UINT64_MAX) == 1);
  assert_int_equal (ctl_store_find (self->store, hex, &found, &count), 0);
  return found;
}

static void assert_same (const ctl_execution_t *one, const ctl_execution_t *other)
{
  void *data[2] = {NULL, NULL};
  size_t size[2];
  assert_int_equal (ctl_execution_pack (one, &data[0], &size[0]), 0);
  assert_int_equal (ctl_execution_pack (other, &data[1], &size[1]), 0);
  assert_int_equal (size[0], size[1]);
  assert_memory_equal (data[0], data[1], size[0]);
  free (data[0]);
  free (data[1]);
}

/* ---- one long task ------------------------------------------------------------- */

static const uint8_t the_task[WEFT_TASK_ID_SIZE] = {7, 7, 7};

static weft_report_t report_of (weft_report_kind_t kind, uint64_t request, uint64_t subtask, uint64_t from_ms,
                                uint64_t to_ms)
{
  weft_report_t report = {.kind = (uint8_t) kind,
                          .flags = request ? 0 : WEFT_REPORT_ROOT,
                          .status = 200,
                          .instruction = request ? 0 : 7,
                          .name = "GET /part",
                          .name_size = 9,
                          .request = request,
                          .subtask = subtask,
                          .start_ns = from_ms * WEFT_NS_PER_MS,
                          .end_ns = to_ms * WEFT_NS_PER_MS,
                          .cpu_ns = WEFT_NS_NONE};
  memcpy (report.task, the_task, sizeof the_task);
  return report;
}

/* The root goes on for three minutes and calls somebody at every step; each third call's embed comes a
 * minute and a half after its capture. step_ms 0: all at once. */
static void live (life_t *self, uint64_t step_ms)
{
  enum { LATE = 60 };
  weft_report_t root = report_of (WEFT_REPORT_CAPTURE, 0, 1, 1000, 1000 + STEP_MS), open;
  for (uint64_t i = 0; i < CALLS + LATE; i++) {
    uint64_t late = i - LATE, at_ms = 1000 + i * STEP_MS;
    weft_report_t embed = report_of (WEFT_REPORT_EMBED, 100 + i, 1, at_ms, at_ms + 800);
    weft_report_t capture = report_of (WEFT_REPORT_CAPTURE, 100 + i, 1000 + i, at_ms + 100, at_ms + 700);
    if (i < CALLS)
      give (self, 1, &capture);
    if (i < CALLS && i % 3)
      give (self, 0, &embed);
    if (i >= LATE && late % 3 == 0) {
      embed = report_of (WEFT_REPORT_EMBED, 100 + late, 1, 1000 + late * STEP_MS, 1800 + late * STEP_MS);
      give (self, 0, &embed);
    }
    open = root;
    open.flags |= WEFT_REPORT_OPEN;
    open.status = 0;
    open.end_ns = (at_ms + 900) * WEFT_NS_PER_MS;
    give (self, 0, &open);
    if (step_ms)
      pass (self, step_ms);
  }
  root.end_ns = (1000 + (CALLS + LATE) * STEP_MS) * WEFT_NS_PER_MS;
  give (self, 0, &root);
  pass (self, 2 * WEFT_SETTLE_MS);
  assert_true (open_tasks (self) == 0);
}

static void a_task_of_minutes_is_one (void **state)
{
  (void) state;
  life_t at_once, by_and_by;
  life_new (&at_once);
  live (&at_once, 0);
  life_new (&by_and_by);
  live (&by_and_by, STEP_MS);
  assert_int_equal (at_once.parts, 1);
  /* 270 s, and one part a minute, with the rest */
  assert_in_range (by_and_by.parts, 4, 5);
  ctl_execution_t *whole = stored (&at_once, the_task), *joined = stored (&by_and_by, the_task);
  assert_same (whole, joined);
  assert_int_equal (joined->count, 1 + CALLS);
  assert_int_equal (joined->hops[CTL_HOP_PROVEN], CALLS);
  assert_int_equal (joined->hops[CTL_HOP_ROOT], 1);
  assert_true (joined->complete && joined->kind == CTL_KIND_TASK);
  assert_true (joined->duration_ns == (uint64_t) (CALLS + 60) * STEP_MS * WEFT_NS_PER_MS);
  assert_true (joined->subtasks[0].self_ns == joined->duration_ns - CALLS * 800 * WEFT_NS_PER_MS);
  for (uint32_t i = 1; i < joined->count; i++)
    assert_int_equal (joined->subtasks[i].parent, 0);
  ctl_execution_destroy (&whole);
  ctl_execution_destroy (&joined);
  life_destroy (&at_once);
  life_destroy (&by_and_by);
}

/* By age it goes out though it is never quiet; as long as it is younger, it does not. */
static void it_is_written_when_it_is_a_minute_old (void **state)
{
  (void) state;
  life_t life;
  weft_report_t root = report_of (WEFT_REPORT_CAPTURE, 0, 1, 1000, 2000);
  root.flags |= WEFT_REPORT_OPEN;
  life_new (&life);
  uint64_t age_ms = 0;
  for (; life.parts == 0 && age_ms < 2 * WEFT_TASK_AGE_MS; age_ms += STEP_MS) {
    give (&life, 0, &root);
    assert_true (open_tasks (&life) == 1);
    pass (&life, STEP_MS);
  }
  assert_int_equal (life.parts, 1);
  assert_true (open_tasks (&life) == 0);
  assert_in_range (age_ms, WEFT_TASK_AGE_MS, WEFT_TASK_AGE_MS + WEFT_SETTLE_MS + STEP_MS);
  ctl_execution_t *early = stored (&life, the_task);
  assert_false (early->complete);
  ctl_execution_destroy (&early);
  life_destroy (&life);
}

/* ---- any task ------------------------------------------------------------------ */

/* A forest's only tree, its copies in any order, some of them twice. */
static void live_tree (life_t *self, forest_t *forest, uint64_t step_ms)
{
  for (uint32_t i = 0; i < forest->copies; i++) {
    give (self, forest->copy[i].instance, &forest->copy[i].report);
    if (step_ms)
      pass (self, step_ms);
  }
  pass (self, 2 * WEFT_SETTLE_MS);
  assert_true (open_tasks (self) == 0);
}

static void any_tree_is_what_it_would_have_been (void **state)
{
  (void) state;
  uint32_t cut = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    forest_t forest;
    life_t at_once, by_and_by;
    forest_new (&forest, seed, 1);
    for (uint32_t copies = forest.copies, i = 0; i < copies; i++)
      if (forest_draw (&forest, 2))
        forest.copy[forest.copies++] = forest.copy[i];
    forest_shuffle (&forest);
    life_new (&at_once);
    live_tree (&at_once, &forest, 0);
    life_new (&by_and_by);
    live_tree (&by_and_by, &forest, STEP_MS);
    ctl_execution_t *whole = stored (&at_once, forest.tree[0].task),
                    *joined = stored (&by_and_by, forest.tree[0].task);
    assert_int_equal (whole->count, forest.tree[0].count);
    assert_same (whole, joined);
    assert_int_equal (at_once.parts, 1);
    cut += by_and_by.parts > 1;
    ctl_execution_destroy (&whole);
    ctl_execution_destroy (&joined);
    life_destroy (&at_once);
    life_destroy (&by_and_by);
    forest_destroy (&forest);
  }
  print_message ("%u of 40 trees came in parts\n", cut);
  assert_true (cut >= 10);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (a_task_of_minutes_is_one),
      cmocka_unit_test (it_is_written_when_it_is_a_minute_old),
      cmocka_unit_test (any_tree_is_what_it_would_have_been),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
