/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../common/ids.h"
#include "../../../../common/status.h"
#include "../../../../controller/task/critical.h"

#define ROOM  512u
#define START 1000000u

/* An execution that is built around a path: what each of its subtasks has of it is known. */
typedef struct {
  weft_ids_t random;
  ctl_execution_t *out;
  ctl_critical_t wanted[ROOM + 1]; /* by id */
  uint8_t on_path[ROOM + 1];
} path_t;

static uint64_t draw (path_t *self, uint64_t below)
{
  return below ? (weft_ids_next (&self->random) >> 20) % below : 0;
}

static ctl_subtask_t *add (path_t *self, uint64_t caller, uint64_t sent_ns, uint64_t start_ns,
                           uint64_t end_ns, uint64_t answered_ns)
{
  ctl_subtask_t *subtask = &self->out->subtasks[self->out->count++];
  *subtask = (ctl_subtask_t){.id = self->out->count,
                             .request = caller ? self->out->count + 1000 : 0,
                             .caller = caller,
                             .hop = caller ? CTL_HOP_PROVEN : CTL_HOP_ROOT,
                             .answered = 1,
                             .status = 200,
                             .service = "shop",
                             .vm = "jvm",
                             .name = "GET /",
                             .start_ns = start_ns,
                             .end_ns = end_ns,
                             .sent_ns = caller ? sent_ns : 0,
                             .answered_ns = caller ? answered_ns : 0,
                             .cpu_ns = WEFT_NS_NONE};
  return subtask;
}

/* A call beside [from, to), the time of a call on the path: it ends within, or outlives the caller. */
static void add_decoy (path_t *self, uint64_t caller, uint64_t least_ns, uint64_t from_ns, uint64_t to_ns,
                       uint64_t end_ns)
{
  if (to_ns - from_ns < 3 || self->out->count >= ROOM - 8)
    return;
  uint64_t answered_ns = draw (self, 4) ? from_ns + 1 + draw (self, to_ns - from_ns - 2) : end_ns + 1;
  uint64_t sent_ns = least_ns + draw (self, answered_ns - least_ns);
  add (self, caller, sent_ns, sent_ns, answered_ns, answered_ns);
}

/* The path in one subtask, from its end back to its start. */
static void build (path_t *self, uint64_t id, uint64_t start_ns, uint64_t end_ns, int depth)
{
  uint64_t now_ns = end_ns, own_ns = 0;
  for (uint64_t calls = depth ? draw (self, 4) : 0; calls > 0 && now_ns > start_ns; calls--) {
    if (self->out->count >= ROOM - 8)
      break;
    uint64_t gap_ns = draw (self, (now_ns - start_ns) / 4 + 1), to_ns = now_ns - gap_ns;
    uint64_t from_ns = to_ns - draw (self, (to_ns - start_ns) / 2 + 1);
    if (to_ns <= start_ns || from_ns >= to_ns)
      break;
    uint64_t there_ns = draw (self, (to_ns - from_ns) / 8 + 1),
             back_ns = draw (self, (to_ns - from_ns) / 8 + 1);
    ctl_subtask_t *call = add (self, id, from_ns, from_ns + there_ns, to_ns - back_ns, to_ns);
    uint64_t inner = call->id;
    self->on_path[inner] = 1;
    self->wanted[inner].there_ns = there_ns;
    self->wanted[inner].back_ns = back_ns;
    build (self, inner, from_ns + there_ns, to_ns - back_ns, depth - 1);
    add_decoy (self, id, start_ns, from_ns, to_ns, end_ns);
    own_ns += gap_ns;
    now_ns = from_ns;
  }
  self->wanted[id].self_ns = own_ns + now_ns - start_ns;
}

static path_t *path_new (uint64_t seed)
{
  path_t *self = calloc (1, sizeof *self);
  for (int i = 0; i < 4; i++)
    self->random.s[i] = seed * 0x9e3779b97f4a7c15ull + (uint64_t) i + 1;
  for (int i = 0; i < 16; i++)
    weft_ids_next (&self->random);
  self->out = calloc (1, sizeof *self->out);
  self->out->subtasks = calloc (ROOM, sizeof *self->out->subtasks);
  self->out->name = self->out->origin = "";
  self->out->hosts = 1;
  return self;
}

static void path_destroy (path_t *self)
{
  ctl_execution_destroy (&self->out);
  free (self);
}

static uint64_t sum_of (const ctl_critical_t *parts, uint32_t count)
{
  uint64_t sum_ns = 0;
  for (uint32_t i = 0; i < count; i++)
    sum_ns += parts[i].self_ns + parts[i].there_ns + parts[i].back_ns + parts[i].gap_ns;
  return sum_ns;
}

/* K1, K2, and the mark on the path, over random paths with decoys. */
static void test_paths_known_by_construction (void **state)
{
  (void) state;
  uint32_t subtasks = 0;
  for (uint64_t seed = 1; seed <= 2000; seed++) {
    path_t *path = path_new (seed);
    ctl_critical_t parts[ROOM];
    add (path, 0, 0, START, START + 1000000 + draw (path, 1000000), 0);
    path->on_path[1] = 1;
    build (path, 1, path->out->subtasks[0].start_ns, path->out->subtasks[0].end_ns, 5);
    assert_int_equal (ctl_execution_settle (path->out), 0);
    assert_int_equal (ctl_critical (path->out, parts), 0);
    assert_int_equal (sum_of (parts, path->out->count), path->out->duration_ns);
    for (uint32_t i = 0; i < path->out->count; i++) {
      uint64_t id = path->out->subtasks[i].id;
      if (memcmp (&parts[i], &path->wanted[id], sizeof parts[i]) != 0 ||
          path->out->subtasks[i].on_critical_path != path->on_path[id])
        fail_msg ("seed %llu: subtask %llu is not as built", (unsigned long long) seed,
                  (unsigned long long) id);
    }
    subtasks += path->out->count;
    path_destroy (path);
  }
  assert_true (subtasks > 20000);
}

/* K1 and K3, whatever the clocks and the times say. */
static void test_odd_times_add_up (void **state)
{
  (void) state;
  for (uint64_t seed = 1; seed <= 2000; seed++) {
    path_t *path = path_new (seed);
    ctl_critical_t parts[ROOM];
    add (path, 0, 0, START, START + 1000, 0);
    for (int i = 0; i < 40; i++) {
      uint64_t caller = 1 + draw (path, path->out->count);
      ctl_subtask_t *subtask =
          add (path, caller, START - 200 + draw (path, 1500), START - 200 + draw (path, 1500),
               START - 200 + draw (path, 1500), START - 200 + draw (path, 1500));
      subtask->hop = (ctl_hop_t) draw (path, CTL_HOP_COUNT);
      subtask->wait_ns = draw (path, 2000);
      subtask->status = draw (path, 3) ? 200 : 503;
      if (draw (path, 3) == 0)
        subtask->sent_ns = subtask->answered_ns = 0;
    }
    assert_int_equal (ctl_execution_settle (path->out), 0);
    assert_int_equal (ctl_critical (path->out, parts), 0);
    assert_int_equal (sum_of (parts, path->out->count), path->out->duration_ns);
    path_destroy (path);
  }
}

/* 0..100: a call 10..30 that fails, the same again 50..70, another 75..90. */
static void test_patience_between_a_failure_and_the_next_try (void **state)
{
  (void) state;
  path_t *path = path_new (1);
  ctl_critical_t parts[ROOM];
  add (path, 0, 0, START, START + 100, 0);
  add (path, 1, START + 10, START + 10, START + 30, START + 30)->status = 503;
  add (path, 1, START + 50, START + 50, START + 70, START + 70);
  add (path, 1, START + 75, START + 75, START + 90, START + 90)->name = "GET /other";
  assert_int_equal (ctl_execution_settle (path->out), 0);
  assert_int_equal (ctl_critical (path->out, parts), 0);
  assert_int_equal (parts[0].self_ns, 10 + 5 + 10);
  assert_int_equal (parts[1].gap_ns, 0);
  assert_int_equal (parts[2].gap_ns, 20);
  assert_int_equal (parts[3].gap_ns, 0);
  path_destroy (path);
}

/* Of 80 ns of its own it waited 30 for one peer and 20 for another; then 120 and 40, side by side. */
static void test_opaque_waits_are_shared_out (void **state)
{
  (void) state;
  for (uint64_t factor = 1; factor <= 2; factor++) {
    path_t *path = path_new (1);
    ctl_critical_t parts[ROOM];
    add (path, 0, 0, START, START + 100, 0);
    add (path, 1, START + 10, START + 10, START + 30, START + 30);
    for (uint64_t i = 0; i < 2; i++) {
      ctl_subtask_t *leaf = add (path, 1, 0, START + 40, START + 90, 0);
      leaf->hop = CTL_HOP_OPAQUE;
      leaf->sent_ns = leaf->answered_ns = 0;
      leaf->wait_ns = factor == 1 ? (i ? 20 : 30) : (i ? 40 : 120);
    }
    assert_int_equal (ctl_execution_settle (path->out), 0);
    assert_int_equal (ctl_critical (path->out, parts), 0);
    assert_int_equal (parts[0].self_ns, factor == 1 ? 30 : 0);
    assert_int_equal (parts[2].self_ns, factor == 1 ? 30 : 60);
    assert_int_equal (parts[3].self_ns, 20);
    path_destroy (path);
  }
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_paths_known_by_construction),
      cmocka_unit_test (test_odd_times_add_up),
      cmocka_unit_test (test_patience_between_a_failure_and_the_next_try),
      cmocka_unit_test (test_opaque_waits_are_shared_out),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
