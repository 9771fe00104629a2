/* SPDX-License-Identifier: Apache-2.0 */
/* Opaque reports from the batch to the row of the store: leaves of their subtask, in any order,
 * twice, late, and through a pack and a merge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../../../common/clocks.h"
#include "../../../../common/status.h"
#include "../../../../controller/task/analyse.h"
#include "../../../../controller/task/pack.h"
#include "forest.h"

#define MS     1000000ull
#define COPIES 6

static const uint8_t task[WEFT_TASK_ID_SIZE] = {1, 2, 3};
static const weft_address_t database = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 5}, 5432, 4, 0};
static weft_report_t copies[COPIES];
static ctl_instances_t *instances;
static ctl_correlate_t *correlate;

static weft_report_t opaque (uint64_t id, uint64_t subtask, const char *protocol, uint64_t from, uint64_t to,
                             uint64_t wait, uint32_t calls)
{
  weft_report_t report = {
      .kind = WEFT_REPORT_OPAQUE,
      .request = id,
      .subtask = subtask,
      .start_ns = from * MS,
      .end_ns = to * MS,
      .cpu_ns = WEFT_NS_NONE,
      .peer = database,
      .name = protocol,
      .name_size = (uint16_t) strlen (protocol),
      .opaque = {.bytes_out = calls * 100, .bytes_in = 1ull << 40, .wait_ns = wait * MS, .calls = calls}};
  memcpy (report.task, task, sizeof task);
  return report;
}

/* A root of 100 ms; it waits 40 for 38 queries, 5 for a connect that times out, 1 for a name, and
 * 20 for another service, which asks the database once. */
static int setup (void **state)
{
  instances = ctl_instances_new ();
  forest_hello (instances);
  correlate = ctl_correlate_new (instances, 0);
  copies[0] = opaque (0, 70, "GET /", 1000, 1100, 0, 0);
  copies[0].kind = WEFT_REPORT_CAPTURE;
  copies[0].flags = WEFT_REPORT_ROOT;
  copies[0].instruction = 7;
  copies[1] = opaque (900, 70, "GET /b", 1050, 1070, 0, 0);
  copies[1].kind = WEFT_REPORT_EMBED;
  copies[2] = opaque (11, 70, "postgresql", 1001, 1090, 40, 38);
  copies[3] = opaque (12, 70, "tcp", 1002, 1007, 5, 1);
  copies[3].error = WEFT_ERROR_TIMEOUT;
  copies[4] = opaque (13, 70, "dns", 1000, 1001, 1, 1);
  memset (&copies[4].peer, 0, sizeof copies[4].peer);
  copies[5] = opaque (14, 70, "unix", 1000, 1001, 0, 1);
  copies[5].peer = (weft_address_t){{0}, 0, 1, 0};
  return 0;
}

static int teardown (void **state)
{
  ctl_correlate_destroy (&correlate);
  ctl_instances_destroy (&instances);
  return 0;
}

static void send_copies (const weft_report_t *const *report, uint32_t count)
{
  static uint8_t frame[WEFT_BATCH_MAX];
  static uint64_t number;
  size_t size;
  uint32_t taken;
  weft_batch_head_t head = {.number = ++number, .anchor = {0, FOREST_ANCHOR}};
  forest_uuid (0, head.instance);
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  assert_int_equal (weft_batch_writer_begin (writer, frame, sizeof frame, &head), 0);
  for (uint32_t i = 0; i < count; i++)
    assert_int_equal (weft_batch_writer_add (writer, report[i]), 0);
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  weft_batch_writer_destroy (&writer);
  assert_int_equal (ctl_correlate_batch (correlate, frame, size, &taken), 0);
  assert_int_equal (taken, count);
}

static const ctl_subtask_t *named (const ctl_execution_t *execution, const char *name)
{
  for (uint32_t i = 0; i < execution->count; i++)
    if (strcmp (execution->subtasks[i].name, name) == 0)
      return &execution->subtasks[i];
  fail_msg ("no %s", name);
  return NULL;
}

static void assert_whole (const ctl_execution_t *execution)
{
  assert_int_equal (execution->count, 6);
  assert_int_equal (execution->complete, 1);
  assert_int_equal (execution->hops[CTL_HOP_OPAQUE], 4);
  assert_int_equal (execution->hops[CTL_HOP_EMBED_ONLY], 1);
  const ctl_subtask_t *top = &execution->subtasks[0];
  assert_int_equal (top->self_ns, (100 - 40 - 5 - 1 - 20) * MS);
  for (uint32_t i = 1; i < execution->count; i++) {
    assert_int_equal (execution->subtasks[i].parent, 0);
    assert_int_equal (execution->subtasks[i].on_critical_path, execution->subtasks[i].hop != CTL_HOP_OPAQUE);
  }
  const ctl_subtask_t *leaf = named (execution, "postgresql");
  assert_int_equal (leaf->id, 11);
  assert_int_equal (leaf->hop, CTL_HOP_OPAQUE);
  assert_string_equal (leaf->service, "10.0.0.5:5432");
  assert_string_equal (leaf->vm, "");
  assert_int_equal (leaf->calls, 38);
  assert_int_equal (leaf->wait_ns, 40 * MS);
  assert_int_equal (leaf->self_ns, 40 * MS);
  assert_int_equal (leaf->bytes_out, 3800);
  assert_int_equal (leaf->bytes_in, 1ull << 40);
  assert_int_equal (leaf->start_ns, FOREST_ANCHOR + 1001 * MS);
  assert_int_equal (leaf->end_ns, FOREST_ANCHOR + 1090 * MS);
  assert_int_equal (named (execution, "tcp")->error, WEFT_ERROR_TIMEOUT);
  assert_string_equal (named (execution, "dns")->service, "");
  assert_string_equal (named (execution, "unix")->service, "unix socket");
}

static ctl_execution_t *found (void)
{
  ctl_execution_t *execution = NULL;
  assert_int_equal (ctl_correlate_find (correlate, task, &execution), 0);
  return execution;
}

static void test_leaves_of_their_subtask (void **state)
{
  const weft_report_t *all[COPIES];
  for (int i = 0; i < COPIES; i++)
    all[i] = &copies[i];
  send_copies (all, COPIES);
  ctl_execution_t *execution = found ();
  assert_whole (execution);
  ctl_execution_destroy (&execution);
  ctl_correlate_stats_t stats;
  ctl_correlate_stats (correlate, &stats);
  assert_int_equal (stats.opaques, 4);
  assert_int_equal (stats.reports, COPIES);
}

/* All 720 orders, each copy once or twice, one a batch. */
static void permute (uint32_t *order, uint32_t at, int twice)
{
  if (at == COPIES) {
    for (uint32_t i = 0; i < COPIES; i++)
      for (int k = 0; k <= twice; k++)
        send_copies (&(const weft_report_t *){&copies[order[i]]}, 1);
    ctl_execution_t *execution = found ();
    assert_whole (execution);
    ctl_execution_destroy (&execution);
    teardown (NULL);
    setup (NULL);
    return;
  }
  for (uint32_t i = at; i < COPIES; i++) {
    uint32_t kept = order[at];
    order[at] = order[i];
    order[i] = kept;
    permute (order, at + 1, twice);
    order[i] = order[at];
    order[at] = kept;
  }
}

static void test_any_order_and_twice (void **state)
{
  uint32_t order[COPIES] = {0, 1, 2, 3, 4, 5};
  permute (order, 0, 0);
  permute (order, 2, 1); /* the leaves among themselves */
}

typedef struct {
  void *row[4];
  size_t size[4];
  uint32_t rows;
} rows_t;

static int keep_row (ctl_execution_t **execution_p, void *arg)
{
  rows_t *rows = arg;
  uint32_t at = rows->rows++;
  return ctl_execution_pack (*execution_p, &rows->row[at], &rows->size[at]);
}

/* Settled and written out in the middle: the parts make the whole, whichever is there first, and
 * one that comes again changes nothing. */
static void test_late_parts_merge (void **state)
{
  for (uint32_t split = 1; split < COPIES; split++) {
    rows_t rows = {.rows = 0};
    const weft_report_t *all[COPIES];
    for (int i = 0; i < COPIES; i++)
      all[i] = &copies[i];
    send_copies (all, split);
    assert_int_equal (ctl_correlate_settle (correlate, weft_mono_ns (), 1, keep_row, &rows), 0);
    send_copies (all + split - 1, COPIES - split + 1); /* one of them again */
    assert_int_equal (ctl_correlate_settle (correlate, weft_mono_ns (), 1, keep_row, &rows), 0);
    assert_int_equal (rows.rows, 2);
    for (int first = 0; first < 2; first++) {
      ctl_execution_t *part[3];
      for (int i = 0; i < 3; i++)
        assert_int_equal (
            ctl_execution_unpack (rows.row[(i + first) % 2], rows.size[(i + first) % 2], &part[i]), 0);
      assert_int_equal (ctl_execution_merge (part[0], part[1]), 0);
      assert_int_equal (ctl_execution_merge (part[0], part[2]), 0);
      assert_whole (part[0]);
      for (int i = 0; i < 3; i++)
        ctl_execution_destroy (&part[i]);
    }
    free (rows.row[0]);
    free (rows.row[1]);
  }
}

/* Times, counts and ids that mean no harm only if nobody is careful. */
static void test_hostile_numbers (void **state)
{
  weft_report_t odd = opaque (11, 70, "postgresql", 5, 1, 0, UINT32_MAX);
  odd.opaque.wait_ns = odd.opaque.bytes_in = odd.start_ns = UINT64_MAX;
  odd.instruction = 9;
  odd.status = 500;
  odd.flags = WEFT_REPORT_OPEN | WEFT_REPORT_ROOT | WEFT_REPORT_ORPHAN;
  const weft_report_t *all[] = {&copies[0], &odd, &copies[2], &odd};
  send_copies (all, 4);
  ctl_execution_t *execution = found ();
  assert_int_equal (execution->count, 2);
  assert_int_equal (execution->kind, CTL_KIND_TASK);
  assert_int_equal (execution->instruction, 7);
  assert_true (execution->subtasks[0].self_ns <= 100 * MS);
  ctl_analyse_t *analyse = ctl_analyse_new ();
  ctl_analysis_t *analysis = NULL;
  assert_int_equal (ctl_analyse_add (analyse, execution), 0);
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  ctl_analysis_destroy (&analysis);
  ctl_analyse_destroy (&analyse);
  ctl_execution_destroy (&execution);

  /* nobody reported the subtask: a task that lost its top, not complete */
  odd = opaque (15, 71, "redis", 1, 2, 1, 1);
  odd.task[0] = 99;
  send_copies (&(const weft_report_t *){&odd}, 1);
  assert_int_equal (ctl_correlate_find (correlate, odd.task, &execution), 0);
  assert_int_equal (execution->complete, 0);
  ctl_execution_destroy (&execution);
}

static void test_rows_of_the_analysis (void **state)
{
  ctl_analyse_t *analyse = ctl_analyse_new ();
  ctl_analysis_t *analysis = NULL;
  const weft_report_t *all[COPIES];
  for (int i = 0; i < COPIES; i++)
    all[i] = &copies[i];
  send_copies (all, COPIES);
  ctl_execution_t *execution = found ();
  assert_int_equal (ctl_analyse_add (analyse, execution), 0);
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  const ctl_analysis_row_t *row = NULL;
  uint64_t sum_ns = 0;
  for (uint32_t i = 0; i < analysis->names[0].row_count; i++) {
    sum_ns += analysis->names[0].rows[i].self_ns;
    if (strcmp (analysis->names[0].rows[i].name, "postgresql") == 0)
      row = &analysis->names[0].rows[i];
  }
  assert_non_null (row);
  assert_int_equal ((int) row->calls, 38);
  assert_int_equal (row->self_ns, 40 * MS);
  assert_int_equal (row->hop, CTL_HOP_OPAQUE);
  assert_int_equal (sum_ns, 100 * MS); /* every millisecond once */
  assert_int_equal (analysis->hops[CTL_HOP_OPAQUE], 4);
  ctl_analysis_destroy (&analysis);
  ctl_analyse_destroy (&analyse);
  ctl_execution_destroy (&execution);
}

/* What is beyond the bounds, of lines and of subtasks, is said to be missing. */
#define MANY 36000u /* reports, two lines each: the last ones do not fit */
static void test_bounded_like_the_others (void **state)
{
  const weft_report_t *all[200];
  static weft_report_t many[200];
  for (uint32_t n = 0; n < MANY; n += 200) {
    for (uint32_t i = 0; i < 200; i++) {
      many[i] = opaque (1000 + n + i, 70, "postgresql", 1, 2, 1, 1);
      all[i] = &many[i];
    }
    send_copies (all, 200);
  }
  ctl_correlate_stats_t stats;
  ctl_correlate_stats (correlate, &stats);
  assert_int_equal (stats.truncated, MANY - 2 * WEFT_SUBTASKS_PER_TASK_MAX);
  ctl_execution_t *execution = found ();
  assert_int_equal (execution->count, WEFT_SUBTASKS_PER_TASK_MAX);
  assert_int_equal (execution->truncated, MANY - WEFT_SUBTASKS_PER_TASK_MAX);
  ctl_execution_destroy (&execution);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST (test_leaves_of_their_subtask), TEST (test_any_order_and_twice),
      TEST (test_late_parts_merge),        TEST (test_hostile_numbers),
      TEST (test_rows_of_the_analysis),    TEST (test_bounded_like_the_others),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
