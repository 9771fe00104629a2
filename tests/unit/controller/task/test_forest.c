/* SPDX-License-Identifier: Apache-2.0 */
/* Random forests, told by copies that are shuffled, repeated, left out and from hosts whose clocks are hours
 * apart: what comes out is the forest less exactly what was left out. What must come out is worked out here
 * from the forest alone. WEFT_SEED repeats a run, WEFT_SEEDS draws more of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../../../common/clocks.h"
#include "../../../../controller/task/settle.h"
#include "forest.h"

#define TREES 12u
#define SEEDS 200u

/* Which copies of a node were told. */
typedef struct {
  uint8_t capture, embed;
} told_t;

typedef struct {
  forest_t forest;
  told_t told[TREES][FOREST_NODES];
  int64_t skew_ns[FOREST_INSTANCES]; /* of the instance's host; all 0: one host */
  int skewed;
  uint32_t seen; /* executions */
} world_t;

static uint32_t tree_of (const world_t *self, const uint8_t *task)
{
  for (uint32_t i = 0; i < TREES; i++)
    if (memcmp (self->forest.tree[i].task, task, WEFT_TASK_ID_SIZE) == 0)
      return i;
  fail_msg ("a task that is in no forest");
  return 0;
}

/* Draws what is left out and what comes twice, and the order. */
static void harm (world_t *self, uint32_t drop_percent)
{
  forest_t *forest = &self->forest;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < forest->copies; i++) {
    const weft_report_t *report = &forest->copy[i].report;
    uint32_t tree = tree_of (self, report->task), node = 0;
    if (forest_draw (forest, 100) < drop_percent)
      continue;
    while (report->kind == WEFT_REPORT_CAPTURE ? forest->tree[tree].node[node].id != report->subtask
                                               : forest->tree[tree].node[node].request != report->request)
      node++;
    *(report->kind == WEFT_REPORT_CAPTURE ? &self->told[tree][node].capture : &self->told[tree][node].embed) =
        1;
    forest->copy[kept++] = forest->copy[i];
  }
  uint32_t twice = kept / 5;
  for (uint32_t i = 0; i < twice; i++)
    forest->copy[kept + i] = forest->copy[forest_draw (forest, kept)];
  forest->copies = kept + twice;
  forest_shuffle (forest);
}

static void head_of (const world_t *self, uint32_t instance, uint64_t number, weft_batch_head_t *ret_head)
{
  forest_head (instance, number, ret_head);
  if (!self->skewed)
    return;
  memset (ret_head->boot, 0xc0 + (int) instance, WEFT_UUID_SIZE);
  ret_head->anchor.boot_ns = 1000;
  ret_head->anchor.real_ns = FOREST_ANCHOR + 1000 + (uint64_t) self->skew_ns[instance];
}

/* In batches of one to a hundred copies of one instance, as they come. */
static void send (world_t *self, ctl_correlate_t *correlate)
{
  static uint8_t frame[WEFT_BATCH_MAX];
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  forest_t *forest = &self->forest;
  uint64_t number = 0;
  for (uint32_t at = 0; at < forest->copies;) {
    uint32_t run = 1 + forest_draw (forest, 100), end = at + run < forest->copies ? at + run : forest->copies;
    for (uint32_t instance = 0; instance < FOREST_INSTANCES; instance++) {
      weft_batch_head_t head;
      size_t size;
      uint32_t taken;
      head_of (self, instance, ++number, &head);
      assert_int_equal (weft_batch_writer_begin (writer, frame, sizeof frame, &head), 0);
      for (uint32_t i = at; i < end; i++)
        if (forest->copy[i].instance == instance)
          assert_int_equal (weft_batch_writer_add (writer, &forest->copy[i].report), 0);
      assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
      assert_int_equal (ctl_correlate_batch (correlate, frame, size, &taken), 0);
    }
    at = end;
  }
  weft_batch_writer_destroy (&writer);
}

static const ctl_subtask_t *subtask_of (const ctl_execution_t *execution, uint64_t id)
{
  for (uint32_t i = 0; i < execution->count; i++)
    if (execution->subtasks[i].id == id)
      return &execution->subtasks[i];
  return NULL;
}

static void assert_parent (const ctl_execution_t *execution, const ctl_subtask_t *subtask, uint64_t parent)
{
  if (!parent)
    assert_int_equal (subtask->parent, CTL_NO_PARENT);
  else {
    assert_int_not_equal (subtask->parent, CTL_NO_PARENT);
    assert_true (execution->subtasks[subtask->parent].id == parent);
    assert_true (&execution->subtasks[subtask->parent] < subtask);
  }
}

static uint64_t told_time (const world_t *self, uint32_t instance, uint64_t boot_ns)
{
  return boot_ns + FOREST_ANCHOR + (uint64_t) self->skew_ns[instance];
}

/* One node: the subtask, or the leaf, or nothing. Returns what is to be there of it. */
static uint32_t check_node (const world_t *self, const ctl_execution_t *execution, uint32_t tree, uint32_t n)
{
  const forest_tree_t *truth = &self->forest.tree[tree];
  const forest_node_t *node = &truth->node[n];
  const told_t *told = &self->told[tree][n];
  const ctl_subtask_t *subtask = subtask_of (execution, told->capture ? node->id : node->request);
  if (!told->capture && !told->embed) {
    assert_null (subtask);
    return 0;
  }
  assert_non_null (subtask);
  /* the parent is known where the sender told of the request, and of itself */
  uint64_t parent =
      n && told->embed && self->told[tree][node->parent].capture ? truth->node[node->parent].id : 0;
  assert_parent (execution, subtask, parent);
  ctl_hop_t hop = n == 0           ? CTL_HOP_ROOT
                  : !told->capture ? CTL_HOP_EMBED_ONLY
                  : told->embed    ? CTL_HOP_PROVEN
                                   : CTL_HOP_CAPTURE_ONLY;
  assert_int_equal (subtask->hop, hop);
  assert_string_equal (subtask->name, node->name);
  assert_int_equal (subtask->status, node->status);
  uint32_t host = told->capture ? node->instance : truth->node[node->parent].instance;
  uint64_t start_ns = told->capture ? node->start_ns : node->sent_ns;
  uint64_t end_ns = told->capture ? node->end_ns : node->answered_ns;
  assert_true (subtask->start_ns - (uint64_t) subtask->shift_ns == told_time (self, host, start_ns));
  assert_true (subtask->end_ns - subtask->start_ns == end_ns - start_ns);
  return 1;
}

/* What of a subtask's time none of its children was waited for in, from one end of an interval to the next. */
static uint64_t alone_ns (const ctl_execution_t *execution, uint32_t parent)
{
  const ctl_subtask_t *subtasks = execution->subtasks, *of = &subtasks[parent];
  uint64_t alone = 0, at_ns = of->start_ns;
  while (at_ns < of->end_ns) {
    uint64_t next_ns = of->end_ns;
    int waits = 0;
    for (uint32_t i = of->first_child; i != CTL_NO_PARENT; i = subtasks[i].next_sibling) {
      const uint64_t end[2] = {subtasks[i].sent_ns, subtasks[i].answered_ns};
      waits |= end[0] <= at_ns && at_ns < end[1];
      for (int k = 0; k < 2; k++)
        next_ns = end[k] > at_ns && end[k] < next_ns ? end[k] : next_ns;
    }
    alone += waits ? 0 : next_ns - at_ns;
    at_ns = next_ns;
  }
  return alone;
}

static int check (ctl_execution_t **execution_p, void *arg)
{
  world_t *self = arg;
  const ctl_execution_t *execution = *execution_p;
  uint32_t tree = tree_of (self, execution->task), wanted = 0, whole = 1;
  for (uint32_t n = 0; n < self->forest.tree[tree].count; n++) {
    wanted += check_node (self, execution, tree, n);
    whole &= self->told[tree][n].capture && (n == 0 || self->told[tree][n].embed);
  }
  assert_int_equal (execution->count, wanted);
  ctl_room_t room = {0};
  assert_int_equal (ctl_execution_time (*execution_p, &room), 0);
  ctl_room_end (&room);
  for (uint32_t i = 0; i < execution->count; i++)
    assert_true (execution->subtasks[i].self_ns == alone_ns (execution, i));
  if (whole)
    assert_int_equal (execution->complete, 1);
  if (execution->aligned) /* no child before it was asked for; nanoseconds are rounded */
    for (uint32_t i = 0; i < execution->count; i++)
      if (execution->subtasks[i].hop == CTL_HOP_PROVEN)
        assert_true (execution->subtasks[i].start_ns + 2 >= execution->subtasks[i].sent_ns);
  self->seen++;
  return 0;
}

static uint32_t trees_told (const world_t *self)
{
  uint32_t trees = 0;
  for (uint32_t t = 0; t < TREES; t++) {
    int any = 0;
    for (uint32_t n = 0; n < FOREST_NODES; n++)
      any |= self->told[t][n].capture | self->told[t][n].embed;
    trees += (uint32_t) any;
  }
  return trees;
}

static void one_seed (uint64_t seed)
{
  world_t self = {0};
  ctl_instances_t *instances = ctl_instances_new ();
  ctl_correlate_t *correlate = ctl_correlate_new (instances, 0);
  forest_hello (instances);
  forest_new (&self.forest, seed, TREES);
  self.skewed = seed % 2;
  for (uint32_t i = 0; self.skewed && i < FOREST_INSTANCES; i++)
    self.skew_ns[i] = ((int64_t) forest_draw (&self.forest, 7200000) - 3600000) * 1000000;
  harm (&self, seed % 4 == 0 ? 0 : forest_draw (&self.forest, 60));
  send (&self, correlate);
  assert_int_equal (ctl_correlate_settle (correlate, weft_mono_ns (), 1, check, &self), 0);
  assert_int_equal (self.seen, trees_told (&self));
  forest_destroy (&self.forest);
  ctl_correlate_destroy (&correlate);
  ctl_instances_destroy (&instances);
}

static void test_the_forest_less_what_was_left_out (void **state)
{
  const char *given = getenv ("WEFT_SEED"), *more = getenv ("WEFT_SEEDS");
  uint64_t seed = given ? strtoull (given, NULL, 10) : weft_mono_ns () % 1000000007;
  uint64_t seeds = more ? strtoull (more, NULL, 10) : SEEDS;
  printf ("WEFT_SEED=%llu, and the %llu behind it\n", (unsigned long long) seed,
          (unsigned long long) seeds - 1);
  for (uint64_t n = 0; n < seeds; n++)
    one_seed (seed + n);
}

int main (void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test (test_the_forest_less_what_was_left_out)};
  return cmocka_run_group_tests (tests, NULL, NULL);
}
