/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../../../common/status.h"
#include "../../../../controller/task/pack.h"
#include "forest.h"

#define TREES 60u

typedef struct {
  ctl_instances_t *instances;
  ctl_correlate_t *correlate;
} pair_t;

static pair_t pair_new (uint32_t open_max)
{
  pair_t pair = {.instances = ctl_instances_new ()};
  forest_hello (pair.instances);
  pair.correlate = ctl_correlate_new (pair.instances, open_max);
  assert_non_null (pair.correlate);
  return pair;
}

static void pair_destroy (pair_t *pair)
{
  ctl_correlate_destroy (&pair->correlate);
  ctl_instances_destroy (&pair->instances);
}

static const forest_tree_t *tree_of (const forest_t *forest, const uint8_t task[WEFT_TASK_ID_SIZE])
{
  for (uint32_t i = 0; i < forest->trees; i++)
    if (memcmp (forest->tree[i].task, task, WEFT_TASK_ID_SIZE) == 0)
      return &forest->tree[i];
  fail_msg ("a task that was never sent");
  return NULL;
}

static const forest_node_t *node_of (const forest_tree_t *tree, uint64_t id)
{
  for (uint32_t i = 0; i < tree->count; i++)
    if (tree->node[i].id == id)
      return &tree->node[i];
  return NULL;
}

/* Nothing may be in the execution that the truth does not hold; a parent may be missing, never wrong. */
static void assert_sound (const forest_t *forest, const ctl_execution_t *execution)
{
  const forest_tree_t *tree = tree_of (forest, execution->task);
  for (uint32_t i = 0; i < execution->count; i++) {
    const ctl_subtask_t *subtask = &execution->subtasks[i];
    if (subtask->parent != CTL_NO_PARENT)
      assert_true (subtask->parent < i);
    if (subtask->hop == CTL_HOP_EMBED_ONLY) {
      const ctl_subtask_t *parent =
          subtask->parent == CTL_NO_PARENT ? NULL : &execution->subtasks[subtask->parent];
      for (uint32_t k = 0; k < tree->count; k++)
        if (tree->node[k].request == subtask->request && parent)
          assert_int_equal (tree->node[tree->node[k].parent].id, parent->id);
      continue;
    }
    const forest_node_t *node = node_of (tree, subtask->id);
    assert_non_null (node);
    assert_int_equal (subtask->request, node->request);
    assert_string_equal (subtask->name, node->name);
    assert_int_equal (subtask->start_ns, node->start_ns + FOREST_ANCHOR);
    assert_int_equal (subtask->end_ns, node->end_ns + FOREST_ANCHOR);
    assert_int_equal (subtask->status, node->status);
    assert_int_equal (subtask->pid, 100 + node->instance);
    if (subtask->parent != CTL_NO_PARENT)
      assert_int_equal (execution->subtasks[subtask->parent].id, tree->node[node->parent].id);
  }
}

static int take_whole (ctl_execution_t **execution_p, void *arg)
{
  const ctl_execution_t *execution = *execution_p;
  forest_t *forest = arg;
  const forest_tree_t *tree = tree_of (forest, execution->task);
  assert_sound (forest, execution);
  assert_int_equal (execution->count, tree->count);
  assert_int_equal (execution->hops[CTL_HOP_ROOT], 1);
  assert_int_equal (execution->hops[CTL_HOP_PROVEN], tree->count - 1);
  assert_int_equal (execution->kind, CTL_KIND_TASK);
  assert_int_equal (execution->complete, 1);
  assert_int_equal (execution->instruction, 7);
  assert_int_equal (execution->hosts, 1);
  assert_int_equal (execution->duration_ns, tree->node[0].end_ns - tree->node[0].start_ns);
  for (uint32_t i = 1; i < execution->count; i++)
    assert_int_not_equal (execution->subtasks[i].parent, CTL_NO_PARENT);
  forest->copies--; /* counts executions down for the caller */
  return 0;
}

static void test_random_trees_come_back_exactly (void **state)
{
  (void) state;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    forest_t forest;
    pair_t pair = pair_new (0);
    forest_new_of (&forest, seed, TREES, seed % 2 ? FOREST_USUAL : FOREST_NODES);
    forest_shuffle (&forest);
    assert_int_equal (forest_send (&forest, pair.correlate, 1 + forest_draw (&forest, 200)), forest.copies);
    ctl_correlate_stats_t stats;
    ctl_correlate_stats (pair.correlate, &stats);
    assert_int_equal (stats.reports, forest.copies);
    assert_int_equal (stats.open_tasks, TREES);
    assert_int_equal (ctl_correlate_waiting (pair.correlate, 7), 0);
    forest.copies = TREES;
    assert_int_equal (ctl_correlate_settle (pair.correlate, weft_mono_ns (), 1, take_whole, &forest), 0);
    assert_int_equal (forest.copies, 0);
    ctl_correlate_stats (pair.correlate, &stats);
    assert_int_equal (stats.open_tasks, 0);
    assert_int_equal (stats.duplicates, 0);
    forest_destroy (&forest);
    pair_destroy (&pair);
  }
}

typedef struct {
  void *data[TREES];
  size_t size[TREES];
  const forest_t *forest;
} packed_t;

static int take_packed (ctl_execution_t **execution_p, void *arg)
{
  packed_t *packed = arg;
  uint32_t i = 0;
  while (memcmp (packed->forest->tree[i].task, (*execution_p)->task, WEFT_TASK_ID_SIZE) != 0)
    i++;
  assert_null (packed->data[i]);
  return ctl_execution_pack (*execution_p, &packed->data[i], &packed->size[i]);
}

static void settle_packed (forest_t *forest, uint32_t run, packed_t *packed)
{
  pair_t pair = pair_new (0);
  *packed = (packed_t){.forest = forest};
  forest_send (forest, pair.correlate, run);
  assert_int_equal (ctl_correlate_settle (pair.correlate, 0, 1, take_packed, packed), 0);
  pair_destroy (&pair);
}

static void test_order_and_copies_change_nothing (void **state)
{
  (void) state;
  for (uint64_t seed = 100; seed < 108; seed++) {
    forest_t forest;
    packed_t one, other;
    forest_new_of (&forest, seed, TREES, seed % 2 ? FOREST_USUAL : FOREST_NODES);
    settle_packed (&forest, 50, &one);
    uint32_t copies = forest.copies;
    for (uint32_t i = 0; i < copies; i++)
      if (forest_draw (&forest, 3) == 0)
        forest.copy[forest.copies++] = forest.copy[i];
    forest_shuffle (&forest);
    settle_packed (&forest, 33, &other);
    for (uint32_t i = 0; i < TREES; i++) {
      assert_int_equal (one.size[i], other.size[i]);
      assert_memory_equal (one.data[i], other.data[i], one.size[i]);
      free (one.data[i]);
      free (other.data[i]);
    }
    forest_destroy (&forest);
  }
}

typedef struct {
  const forest_t *forest;
  uint64_t hops[CTL_HOP_COUNT];
  uint32_t complete, whole;
} seen_t;

static int take_holey (ctl_execution_t **execution_p, void *arg)
{
  seen_t *seen = arg;
  const ctl_execution_t *execution = *execution_p;
  const forest_tree_t *tree = tree_of (seen->forest, execution->task);
  assert_sound (seen->forest, execution);
  for (int i = 0; i < CTL_HOP_COUNT; i++)
    seen->hops[i] += execution->hops[i];
  if (execution->complete && execution->subtasks[0].hop == CTL_HOP_ROOT) {
    /* what says complete may lack only what left no trace at all */
    assert_int_equal (execution->hops[CTL_HOP_CAPTURE_ONLY], 0);
    for (uint32_t i = 1; i < execution->count; i++)
      assert_int_not_equal (execution->subtasks[i].parent, CTL_NO_PARENT);
  }
  seen->whole += execution->count == tree->count;
  seen->complete += execution->complete;
  return 0;
}

static void test_lost_copies_never_make_a_wrong_parent (void **state)
{
  (void) state;
  for (uint64_t seed = 200; seed < 220; seed++) {
    forest_t forest;
    pair_t pair = pair_new (0);
    forest_new (&forest, seed, TREES);
    forest_shuffle (&forest);
    uint32_t lost = forest.copies / (2 + forest_draw (&forest, 8));
    forest.copies -= lost;
    seen_t seen = {.forest = &forest};
    forest_send (&forest, pair.correlate, 64);
    assert_int_equal (ctl_correlate_settle (pair.correlate, 0, 1, take_holey, &seen), 0);
    /* every copy that arrived is in exactly one hop */
    uint64_t captures = 0, embeds = 0;
    for (uint32_t i = 0; i < forest.copies; i++)
      if (forest.copy[i].report.kind == WEFT_REPORT_CAPTURE)
        captures++;
      else
        embeds++;
    assert_int_equal (seen.hops[CTL_HOP_ROOT] + seen.hops[CTL_HOP_PROVEN] + seen.hops[CTL_HOP_CAPTURE_ONLY],
                      captures);
    assert_int_equal (seen.hops[CTL_HOP_PROVEN] + seen.hops[CTL_HOP_EMBED_ONLY], embeds);
    assert_true (seen.complete < TREES);
    forest_destroy (&forest);
    pair_destroy (&pair);
  }
}

/* ---- single cases ------------------------------------------------------------ */

static weft_report_t report_of (weft_report_kind_t kind, uint64_t request, uint64_t subtask,
                                uint64_t start_ms, uint64_t end_ms)
{
  weft_report_t report = {.kind = (uint8_t) kind,
                          .status = 200,
                          .name = "GET /x",
                          .name_size = 6,
                          .task = {1, 2, 3},
                          .request = request,
                          .subtask = subtask,
                          .start_ns = start_ms * WEFT_NS_PER_MS,
                          .end_ns = end_ms * WEFT_NS_PER_MS,
                          .cpu_ns = WEFT_NS_NONE};
  if (kind == WEFT_REPORT_CAPTURE && !request) {
    report.flags = WEFT_REPORT_ROOT;
    report.instruction = 7;
  }
  return report;
}

static weft_address_t address_of (uint8_t last, uint16_t port)
{
  return (weft_address_t){
      .ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = last}, .port = port, .family = 4};
}

static void send_one (ctl_correlate_t *correlate, uint32_t instance, const weft_report_t *report)
{
  static uint8_t frame[WEFT_BATCH_MAX];
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  weft_batch_head_t head;
  size_t size;
  uint32_t taken;
  forest_head (instance, 1, &head);
  assert_int_equal (weft_batch_writer_begin (writer, frame, sizeof frame, &head), 0);
  assert_int_equal (weft_batch_writer_add (writer, report), 0);
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  assert_int_equal (ctl_correlate_batch (correlate, frame, size, &taken), 0);
  assert_int_equal (taken, 1);
  weft_batch_writer_destroy (&writer);
}

static ctl_execution_t *the_task (const pair_t *pair)
{
  ctl_execution_t *execution = NULL;
  assert_int_equal (ctl_correlate_find (pair->correlate, (const uint8_t[16]){1, 2, 3}, &execution), 0);
  return execution;
}

static void test_one_request_captured_twice_has_one_parent (void **state)
{
  (void) state;
  pair_t pair = pair_new (0);
  weft_report_t report = report_of (WEFT_REPORT_CAPTURE, 0, 10, 0, 100);
  send_one (pair.correlate, 0, &report);
  report = report_of (WEFT_REPORT_EMBED, 77, 10, 10, 60);
  send_one (pair.correlate, 0, &report);
  report = report_of (WEFT_REPORT_CAPTURE, 77, 20, 15, 30);
  send_one (pair.correlate, 1, &report);
  report = report_of (WEFT_REPORT_CAPTURE, 77, 30, 40, 55);
  send_one (pair.correlate, 2, &report);
  ctl_execution_t *execution = the_task (&pair);
  assert_int_equal (execution->count, 3);
  assert_int_equal (execution->subtasks[1].parent, 0);
  assert_int_equal (execution->subtasks[2].parent, 0);
  assert_int_equal (execution->hops[CTL_HOP_PROVEN], 2);
  assert_int_equal (execution->subtasks[0].self_ns, 50 * WEFT_NS_PER_MS); /* the wait of 10..60 counts once */
  ctl_execution_destroy (&execution);
  pair_destroy (&pair);
}

/* A gateway passed the header on as it came: who called the last one, the first
 * sender or the gateway? Not known, whatever the order. */
static void test_one_request_sent_by_two_has_no_parent (void **state)
{
  (void) state;
  for (int order = 0; order < 2; order++) {
    pair_t pair = pair_new (0);
    weft_report_t root = report_of (WEFT_REPORT_CAPTURE, 0, 10, 0, 100);
    weft_report_t sent = report_of (WEFT_REPORT_EMBED, 77, 10, 10, 60);
    weft_report_t gateway = report_of (WEFT_REPORT_CAPTURE, 77, 20, 15, 55);
    weft_report_t passed_on = report_of (WEFT_REPORT_EMBED, 77, 20, 20, 50);
    weft_report_t last = report_of (WEFT_REPORT_CAPTURE, 77, 30, 25, 45);
    send_one (pair.correlate, 1, order ? &gateway : &passed_on);
    send_one (pair.correlate, 0, &sent);
    send_one (pair.correlate, 2, &last);
    send_one (pair.correlate, 0, &root);
    send_one (pair.correlate, 1, order ? &passed_on : &gateway);
    ctl_execution_t *execution = the_task (&pair);
    assert_int_equal (execution->count, 3);
    for (uint32_t i = 0; i < execution->count; i++) {
      const ctl_subtask_t *subtask = &execution->subtasks[i];
      assert_true (subtask->parent == (subtask->id == 20 ? 0 : CTL_NO_PARENT));
    }
    assert_int_equal (execution->hops[CTL_HOP_PROVEN], 1);
    assert_false (execution->complete);
    ctl_execution_destroy (&execution);
    pair_destroy (&pair);
  }
}

static void test_an_answer_replaces_open (void **state)
{
  (void) state;
  pair_t pair = pair_new (0);
  weft_report_t final = report_of (WEFT_REPORT_CAPTURE, 0, 10, 0, 100), open = final;
  open.flags |= WEFT_REPORT_OPEN;
  open.end_ns = 500 * WEFT_NS_PER_MS;
  open.status = 0;
  send_one (pair.correlate, 0, &open);
  ctl_execution_t *execution = the_task (&pair);
  assert_int_equal (execution->complete, 0);
  assert_int_equal (execution->subtasks[0].error, WEFT_ERROR_OPEN);
  ctl_execution_destroy (&execution);
  assert_int_equal (ctl_correlate_waiting (pair.correlate, 7), 1);
  assert_int_equal (ctl_correlate_waiting (pair.correlate, 8), 0);
  send_one (pair.correlate, 0, &final);
  send_one (pair.correlate, 0, &open);
  execution = the_task (&pair);
  assert_int_equal (execution->count, 1);
  assert_int_equal (execution->complete, 1);
  assert_int_equal (execution->subtasks[0].error, WEFT_ERROR_NONE);
  assert_int_equal (execution->subtasks[0].status, 200);
  assert_int_equal (execution->duration_ns, 100 * WEFT_NS_PER_MS);
  ctl_execution_destroy (&execution);
  assert_int_equal (ctl_correlate_waiting (pair.correlate, 7), 0);
  pair_destroy (&pair);
}

static void given_up (weft_error_t callee, weft_error_t wanted)
{
  pair_t pair = pair_new (0);
  weft_report_t report = report_of (WEFT_REPORT_CAPTURE, 0, 10, 0, 100);
  send_one (pair.correlate, 0, &report);
  report = report_of (WEFT_REPORT_CAPTURE, 77, 20, 15, 90);
  report.error = (uint8_t) callee;
  report.flags |= callee == WEFT_ERROR_OPEN ? WEFT_REPORT_OPEN : 0;
  send_one (pair.correlate, 1, &report);
  report = report_of (WEFT_REPORT_EMBED, 77, 10, 10, 60);
  report.error = WEFT_ERROR_TIMEOUT;
  report.status = 0;
  send_one (pair.correlate, 0, &report);
  ctl_execution_t *execution = the_task (&pair);
  assert_int_equal (execution->subtasks[1].error, wanted);
  assert_int_equal (execution->subtasks[1].status, 200);
  assert_int_equal (execution->complete, callee != WEFT_ERROR_OPEN);
  ctl_execution_destroy (&execution);
  pair_destroy (&pair);
}

/* The callee answered, or found its connection gone, when the caller had given up: the sender's
 * word counts. A callee that is still at work is open all the same. */
static void test_a_timeout_is_the_senders_to_tell (void **state)
{
  (void) state;
  given_up (WEFT_ERROR_NONE, WEFT_ERROR_TIMEOUT);
  given_up (WEFT_ERROR_CLOSED, WEFT_ERROR_TIMEOUT);
  given_up (WEFT_ERROR_RESET, WEFT_ERROR_TIMEOUT);
  given_up (WEFT_ERROR_OPEN, WEFT_ERROR_OPEN);
}

/* A circle of two and one that calls itself: every subtask is there, nothing loops. */
static void test_hostile_circles_end (void **state)
{
  (void) state;
  pair_t pair = pair_new (0);
  static const uint64_t circle[][3] = {/* subtask, request, caller */
                                       {10, 1, 20},
                                       {20, 2, 30},
                                       {30, 3, 20},
                                       {40, 4, 40},
                                       {50, 5, 10}};
  for (size_t i = 0; i < 5; i++) {
    weft_report_t report = report_of (WEFT_REPORT_CAPTURE, circle[i][1], circle[i][0], 10 * i, 90);
    send_one (pair.correlate, 0, &report);
    report = report_of (WEFT_REPORT_EMBED, circle[i][1], circle[i][2], 10 * i, 90);
    send_one (pair.correlate, 1, &report);
  }
  ctl_execution_t *execution = the_task (&pair);
  assert_int_equal (execution->count, 5);
  assert_int_equal (execution->complete, 0);
  uint32_t tops = 0;
  for (uint32_t i = 0; i < 5; i++)
    tops += execution->subtasks[i].parent == CTL_NO_PARENT;
  assert_int_equal (tops, 2);
  ctl_execution_destroy (&execution);
  pair_destroy (&pair);
}

static void test_an_orphan_says_whence_and_why (void **state)
{
  (void) state;
  pair_t pair = pair_new (0);
  weft_report_t embed = report_of (WEFT_REPORT_EMBED, 5, 0, 0, 50);
  embed.flags = WEFT_REPORT_ORPHAN;
  embed.reason = WEFT_REASON_EVENT_LOOP;
  weft_report_t capture = report_of (WEFT_REPORT_CAPTURE, 5, 10, 5, 45);
  capture.instruction = 7;
  send_one (pair.correlate, 1, &capture);
  send_one (pair.correlate, 3, &embed);
  ctl_execution_t *execution = the_task (&pair);
  assert_int_equal (execution->kind, CTL_KIND_ORPHAN);
  assert_int_equal (execution->reason, WEFT_REASON_EVENT_LOOP);
  assert_string_equal (execution->origin, "svc3");
  assert_int_equal (execution->complete, 0);
  assert_int_equal (execution->subtasks[0].hop, CTL_HOP_PROVEN);
  ctl_execution_destroy (&execution);
  assert_int_equal (ctl_correlate_waiting (pair.correlate, 7), 0); /* an orphan is not waited for */
  pair_destroy (&pair);
}

/* Another caller than weft's: its traceparent is taken up; the top has no embed, and is complete. */
static void test_a_caller_outside_makes_a_task (void **state)
{
  (void) state;
  pair_t pair = pair_new (0);
  weft_report_t capture = report_of (WEFT_REPORT_CAPTURE, 5, 10, 0, 50);
  capture.instruction = 9;
  send_one (pair.correlate, 0, &capture);
  ctl_execution_t *execution = the_task (&pair);
  assert_int_equal (execution->kind, CTL_KIND_TASK);
  assert_int_equal (execution->instruction, 9);
  assert_int_equal (execution->complete, 1);
  assert_int_equal (execution->hops[CTL_HOP_CAPTURE_ONLY], 1);
  ctl_execution_destroy (&execution);
  pair_destroy (&pair);
}

static void bare_case (uint8_t reason, uint8_t second, pair_t *pair)
{
  *pair = pair_new (0);
  weft_report_t root = report_of (WEFT_REPORT_CAPTURE, 0, 10, 0, 50);
  root.local = address_of (1, 8080);
  root.peer = address_of (2, 40000);
  send_one (pair->correlate, 0, &root);
  weft_report_t bare = {.kind = WEFT_REPORT_BARE, .reason = reason, .cpu_ns = WEFT_NS_NONE};
  bare.local = root.peer;
  bare.peer = root.local;
  send_one (pair->correlate, 4, &bare);
  bare.reason = second;
  send_one (pair->correlate, 4, &bare);
}

static int count_one (ctl_execution_t **execution_p, void *arg)
{
  (void) execution_p;
  ++*(uint32_t *) arg;
  return 0;
}

static void test_a_root_from_inside_is_none (void **state)
{
  (void) state;
  pair_t pair;
  ctl_execution_t *execution = NULL;
  uint32_t count = 0;
  ctl_correlate_stats_t stats;

  bare_case (WEFT_REASON_UNMATCHED, WEFT_REASON_UNPROVEN, &pair);
  execution = the_task (&pair);
  assert_int_equal (execution->kind, CTL_KIND_ORPHAN);
  assert_int_equal (execution->reason, WEFT_REASON_INSIDE);
  assert_string_equal (execution->origin, "svc4");
  ctl_execution_destroy (&execution);
  pair_destroy (&pair);

  bare_case (WEFT_REASON_UNMATCHED, WEFT_REASON_UNMATCHED, &pair);
  assert_int_equal (ctl_correlate_find (pair.correlate, (const uint8_t[16]){1, 2, 3}, &execution),
                    WEFT_E_NOT_FOUND);
  assert_int_equal (ctl_correlate_waiting (pair.correlate, 7), 0);
  assert_int_equal (ctl_correlate_settle (pair.correlate, 0, 1, count_one, &count), 0);
  assert_int_equal (count, 0);
  ctl_correlate_stats (pair.correlate, &stats);
  assert_int_equal (stats.discarded, 1);
  assert_int_equal (stats.bares, 2);
  pair_destroy (&pair);
}

/* The peer of an embed without a capture: inside if somebody captures there, else a call to the outside. */
static void test_a_request_nobody_captured (void **state)
{
  (void) state;
  for (int inside = 0; inside < 2; inside++) {
    pair_t pair = pair_new (0);
    weft_report_t root = report_of (WEFT_REPORT_CAPTURE, 0, 10, 0, 100);
    root.local = address_of (1, inside ? 9000 : 8080);
    root.peer = address_of (9, 50000);
    weft_report_t embed = report_of (WEFT_REPORT_EMBED, 77, 10, 10, 60);
    embed.peer = address_of (1, 9000);
    send_one (pair.correlate, 0, &root);
    send_one (pair.correlate, 0, &embed);
    ctl_execution_t *execution = the_task (&pair);
    assert_int_equal (execution->count, 2);
    assert_int_equal (execution->complete, !inside);
    assert_int_equal (execution->subtasks[1].hop, CTL_HOP_EMBED_ONLY);
    assert_string_equal (execution->subtasks[1].service, "127.0.0.1:9000");
    assert_string_equal (execution->subtasks[1].vm, "");
    assert_int_equal (execution->subtasks[1].id, 77);
    assert_int_equal (execution->subtasks[0].self_ns, 50 * WEFT_NS_PER_MS);
    ctl_execution_destroy (&execution);
    pair_destroy (&pair);
  }
}

/* ---- settling ---------------------------------------------------------------- */

static int refuse (ctl_execution_t **execution_p, void *arg)
{
  (void) execution_p;
  return ++*(int *) arg >= 5 ? WEFT_E_FULL : 0;
}

static void test_settling_waits_for_quiet_and_keeps_what_fails (void **state)
{
  (void) state;
  forest_t forest;
  pair_t pair = pair_new (0);
  ctl_correlate_stats_t stats;
  forest_new (&forest, 31, TREES);
  uint64_t before = weft_mono_ns ();
  forest_send (&forest, pair.correlate, 100);
  uint32_t count = 0;
  assert_int_equal (
      ctl_correlate_settle (pair.correlate, before + 1000 * WEFT_NS_PER_MS, 0, count_one, &count), 0);
  assert_int_equal (count, 0);
  int calls = 0;
  uint64_t later = weft_mono_ns () + (WEFT_SETTLE_MS + 200) * WEFT_NS_PER_MS;
  assert_int_equal (ctl_correlate_settle (pair.correlate, later, 0, refuse, &calls), WEFT_E_FULL);
  ctl_correlate_stats (pair.correlate, &stats);
  assert_int_equal (stats.open_tasks, TREES - 4);
  assert_int_equal (ctl_correlate_settle (pair.correlate, later, 0, count_one, &count), 0);
  assert_int_equal (count, TREES - 4);
  ctl_correlate_stats (pair.correlate, &stats);
  assert_int_equal (stats.open_tasks, 0);
  /* and the memory is used again */
  forest_send (&forest, pair.correlate, 100);
  forest.copies = TREES;
  assert_int_equal (ctl_correlate_settle (pair.correlate, 0, 1, take_whole, &forest), 0);
  assert_int_equal (forest.copies, 0);
  forest_destroy (&forest);
  pair_destroy (&pair);
}

static void test_the_oldest_gives_way (void **state)
{
  (void) state;
  forest_t forest;
  pair_t pair = pair_new (10);
  ctl_correlate_stats_t stats;
  uint32_t count = 0;
  forest_new (&forest, 5, TREES);
  forest_send (&forest, pair.correlate, 30);
  forest_send (&forest, pair.correlate, 30);
  ctl_correlate_stats (pair.correlate, &stats);
  assert_true (stats.evicted >= TREES - 10 - 30);
  assert_int_equal (stats.open_tasks, TREES); /* none is lost before it was handed out */
  assert_int_equal (ctl_correlate_settle (pair.correlate, 0, 0, count_one, &count), 0);
  assert_int_equal (count, stats.evicted);
  assert_int_equal (ctl_correlate_settle (pair.correlate, 0, 1, count_one, &count), 0);
  assert_int_equal (count, TREES);
  forest_destroy (&forest);
  pair_destroy (&pair);
}

static void test_a_task_without_end_is_cut (void **state)
{
  (void) state;
  static uint8_t frame[WEFT_BATCH_MAX];
  pair_t pair = pair_new (0);
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  weft_batch_head_t head;
  weft_report_t root = report_of (WEFT_REPORT_CAPTURE, 0, 1, 0, 100);
  send_one (pair.correlate, 0, &root);
  forest_head (0, 1, &head);
  uint64_t id = 2, sent = 0;
  while (sent < WEFT_SUBTASKS_PER_TASK_MAX + 100) {
    size_t size;
    uint32_t taken;
    assert_int_equal (weft_batch_writer_begin (writer, frame, sizeof frame, &head), 0);
    for (int i = 0; i < 300; i++, sent++, id++) {
      weft_report_t report = report_of (WEFT_REPORT_CAPTURE, id, id, 1, 2);
      assert_int_equal (weft_batch_writer_add (writer, &report), 0);
    }
    assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
    assert_int_equal (ctl_correlate_batch (pair.correlate, frame, size, &taken), 0);
  }
  ctl_execution_t *execution = the_task (&pair);
  assert_int_equal (execution->count, WEFT_SUBTASKS_PER_TASK_MAX);
  assert_int_equal (execution->truncated, 1 + sent - WEFT_SUBTASKS_PER_TASK_MAX);
  assert_int_equal (execution->complete, 0);
  assert_int_equal (execution->subtasks[0].id, 1);
  ctl_execution_destroy (&execution);
  weft_batch_writer_destroy (&writer);
  pair_destroy (&pair);
}

static void test_garbage_is_refused (void **state)
{
  (void) state;
  pair_t pair = pair_new (0);
  uint32_t taken = 99;
  assert_int_equal (ctl_correlate_batch (pair.correlate, "garbage", 7, &taken), WEFT_E_MALFORMED);
  assert_int_equal (taken, 99);
  assert_int_equal (ctl_correlate_batch (pair.correlate, "", 0, &taken), WEFT_E_MALFORMED);
  pair_destroy (&pair);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_random_trees_come_back_exactly),
      cmocka_unit_test (test_order_and_copies_change_nothing),
      cmocka_unit_test (test_lost_copies_never_make_a_wrong_parent),
      cmocka_unit_test (test_one_request_captured_twice_has_one_parent),
      cmocka_unit_test (test_one_request_sent_by_two_has_no_parent),
      cmocka_unit_test (test_an_answer_replaces_open),
      cmocka_unit_test (test_a_timeout_is_the_senders_to_tell),
      cmocka_unit_test (test_hostile_circles_end),
      cmocka_unit_test (test_an_orphan_says_whence_and_why),
      cmocka_unit_test (test_a_caller_outside_makes_a_task),
      cmocka_unit_test (test_a_root_from_inside_is_none),
      cmocka_unit_test (test_a_request_nobody_captured),
      cmocka_unit_test (test_settling_waits_for_quiet_and_keeps_what_fails),
      cmocka_unit_test (test_the_oldest_gives_way),
      cmocka_unit_test (test_a_task_without_end_is_cut),
      cmocka_unit_test (test_garbage_is_refused),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
