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

#define MS WEFT_NS_PER_MS

static ctl_execution_t *execution_new (uint32_t room)
{
  ctl_execution_t *self = calloc (1, sizeof *self);
  self->subtasks = calloc (room, sizeof *self->subtasks);
  self->task[0] = 1;
  self->name = self->origin = "";
  self->hosts = 1;
  return self;
}

/* Times in ms; sent and answered are the caller's side. */
static ctl_subtask_t *add (ctl_execution_t *self, uint64_t id, uint64_t caller, ctl_hop_t hop, uint64_t sent,
                           uint64_t start, uint64_t end, uint64_t answered)
{
  ctl_subtask_t *subtask = &self->subtasks[self->count++];
  *subtask = (ctl_subtask_t){.id = id,
                             .request = hop == CTL_HOP_ROOT ? 0 : id + 100,
                             .caller = caller,
                             .hop = hop,
                             .answered = 1,
                             .service = "s",
                             .vm = "jvm",
                             .name = "n",
                             .start_ns = start * MS,
                             .end_ns = end * MS,
                             .cpu_ns = WEFT_NS_NONE,
                             .sent_ns = sent * MS,
                             .answered_ns = answered * MS};
  return subtask;
}

static const ctl_subtask_t *find (const ctl_execution_t *self, uint64_t id)
{
  for (uint32_t i = 0; i < self->count; i++)
    if (self->subtasks[i].id == id)
      return &self->subtasks[i];
  fail_msg ("no subtask %llu", (unsigned long long) id);
  return NULL;
}

/* root 0..100: children 10..30 and 20..50 overlap (40 waited), 60..90 (30) with its own child 65..75 */
static void test_self_times_and_critical_path_by_hand (void **state)
{
  (void) state;
  ctl_execution_t *self = execution_new (8);
  add (self, 5, 4, CTL_HOP_PROVEN, 65, 66, 74, 75);
  add (self, 3, 1, CTL_HOP_PROVEN, 20, 21, 49, 50);
  add (self, 4, 1, CTL_HOP_PROVEN, 60, 61, 89, 90);
  add (self, 2, 1, CTL_HOP_PROVEN, 10, 11, 29, 30);
  add (self, 6, 1, CTL_HOP_PROVEN, 95, 96, 120, 121); /* still running when the root answered */
  add (self, 1, 0, CTL_HOP_ROOT, 0, 0, 100, 0);
  assert_int_equal (ctl_execution_settle (self), 0);
  static const uint64_t order[] = {1, 2, 3, 4, 5, 6};
  static const uint32_t depth[] = {0, 1, 1, 1, 2, 1};
  for (uint32_t i = 0; i < 6; i++) {
    assert_int_equal (self->subtasks[i].id, order[i]);
    assert_int_equal (self->subtasks[i].depth, depth[i]);
  }
  assert_int_equal (find (self, 1)->self_ns, (100 - 40 - 30 - 5) * MS); /* 95..121 counts up to 100 */
  assert_int_equal (find (self, 2)->self_ns, 18 * MS);
  assert_int_equal (find (self, 4)->self_ns, (28 - 10) * MS);
  assert_int_equal (find (self, 5)->self_ns, 8 * MS);
  /* back from 100: 4 (ended 90), from 60: 3 (ended 50), from 20: none, 2 ended at 30 */
  assert_int_equal (find (self, 1)->on_critical_path, 1);
  assert_int_equal (find (self, 2)->on_critical_path, 0);
  assert_int_equal (find (self, 3)->on_critical_path, 1);
  assert_int_equal (find (self, 4)->on_critical_path, 1);
  assert_int_equal (find (self, 5)->on_critical_path, 1);
  assert_int_equal (find (self, 6)->on_critical_path, 0);
  assert_int_equal (self->complete, 1);
  assert_int_equal (self->duration_ns, 100 * MS);
  assert_int_equal (self->hops[CTL_HOP_PROVEN], 5);
  ctl_execution_destroy (&self);
}

static void test_what_makes_it_incomplete (void **state)
{
  (void) state;
  for (int fault = 0; fault < 6; fault++) {
    ctl_execution_t *self = execution_new (4);
    add (self, 1, 0, CTL_HOP_ROOT, 0, 0, 100, 0);
    ctl_subtask_t *child = add (self, 2, 1, CTL_HOP_PROVEN, 10, 11, 29, 30);
    if (fault == 1)
      child->answered = 0;
    if (fault == 2)
      child->caller = 77; /* its caller was lost */
    if (fault == 3)
      child->hop = CTL_HOP_CAPTURE_ONLY, child->caller = 0; /* the sender's copy was lost */
    if (fault == 4)
      self->truncated = 1;
    if (fault == 5)
      self->subtasks[0].answered = 0;
    assert_int_equal (ctl_execution_settle (self), 0);
    assert_int_equal (self->complete, fault == 0);
    assert_int_equal (self->subtasks[0].id, 1);
    ctl_execution_destroy (&self);
  }
}

static void test_times_that_cannot_be (void **state)
{
  (void) state;
  ctl_execution_t *self = execution_new (4);
  add (self, 1, 0, CTL_HOP_ROOT, 0, 0, 100, 0);
  add (self, 2, 1, CTL_HOP_PROVEN, 50, 60, 20, 10);
  ctl_subtask_t *odd = add (self, 3, 1, CTL_HOP_PROVEN, 10, 0, 0, 0);
  odd->start_ns = odd->sent_ns = UINT64_MAX;
  odd->end_ns = odd->answered_ns = UINT64_MAX - 5;
  assert_int_equal (ctl_execution_settle (self), 0);
  assert_int_equal (find (self, 2)->end_ns, find (self, 2)->start_ns);
  assert_int_equal (find (self, 3)->end_ns, INT64_MAX);
  assert_int_equal (find (self, 1)->self_ns, 100 * MS);
  ctl_execution_destroy (&self);
}

static ctl_execution_t *copy_of (const ctl_execution_t *self)
{
  void *data;
  size_t size;
  ctl_execution_t *copy = NULL;
  assert_int_equal (ctl_execution_pack (self, &data, &size), 0);
  assert_int_equal (ctl_execution_unpack (data, size, &copy), 0);
  free (data);
  return copy;
}

static void assert_same (const ctl_execution_t *a, const ctl_execution_t *b)
{
  void *data[2];
  size_t size[2];
  assert_int_equal (ctl_execution_pack (a, &data[0], &size[0]), 0);
  assert_int_equal (ctl_execution_pack (b, &data[1], &size[1]), 0);
  assert_int_equal (size[0], size[1]);
  assert_memory_equal (data[0], data[1], size[0]);
  free (data[0]);
  free (data[1]);
  assert_int_equal (a->complete, b->complete);
  assert_int_equal (a->kind, b->kind);
  assert_string_equal (a->origin, b->origin);
}

static int take_copy (ctl_execution_t **execution_p, void *arg)
{
  ctl_execution_t **kept = arg;
  *kept = *execution_p;
  *execution_p = NULL;
  return 0;
}

/* A task of which some copies came late: its parts, merged in either order, are the whole. */
static void test_parts_merge_into_the_whole (void **state)
{
  (void) state;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    forest_t forest;
    ctl_execution_t *part[3] = {NULL, NULL, NULL}; /* whole, early, late */
    ctl_instances_t *instances = ctl_instances_new ();
    forest_hello (instances);
    forest_new (&forest, seed, 1);
    forest_shuffle (&forest);
    uint32_t all = forest.copies, early = 1 + forest_draw (&forest, all);
    if (early == all) {
      forest_destroy (&forest);
      ctl_instances_destroy (&instances);
      continue;
    }
    for (int i = 0; i < 3; i++) {
      ctl_correlate_t *correlate = ctl_correlate_new (instances, 0);
      if (i == 1)
        forest.copies = early;
      if (i == 2) {
        memmove (forest.copy, forest.copy + early, (all - early) * sizeof *forest.copy);
        forest.copies = all - early;
      }
      forest_send (&forest, correlate, 7);
      assert_int_equal (ctl_correlate_settle (correlate, 0, 1, take_copy, &part[i]), 0);
      ctl_correlate_destroy (&correlate);
    }
    ctl_execution_t *first = copy_of (part[1]), *second = copy_of (part[2]);
    assert_int_equal (ctl_execution_merge (part[1], second), 0);
    assert_int_equal (second->count, 0);
    assert_int_equal (ctl_execution_merge (part[2], first), 0);
    /* `inside` is what was known when a part was made; the whole has no leaf */
    assert_same (part[0], part[1]);
    assert_same (part[0], part[2]);
    ctl_execution_destroy (&first);
    ctl_execution_destroy (&second);
    ctl_execution_t *again = copy_of (part[0]);
    assert_int_equal (ctl_execution_merge (part[0], again), 0); /* the same part twice changes nothing */
    assert_same (part[0], part[1]);
    ctl_execution_destroy (&again);
    for (int i = 0; i < 3; i++)
      ctl_execution_destroy (&part[i]);
    forest_destroy (&forest);
    ctl_instances_destroy (&instances);
  }
}

static void test_an_orphan_stays_one_when_its_part_comes_late (void **state)
{
  (void) state;
  ctl_execution_t *leaf = execution_new (2), *late = execution_new (2);
  ctl_subtask_t *embed = add (leaf, 102, 0, CTL_HOP_EMBED_ONLY, 1, 1, 50, 50);
  embed->request = 102;
  embed->orphan = WEFT_REASON_NO_CONTEXT;
  leaf->origin = "gateway";
  add (late, 2, 0, CTL_HOP_CAPTURE_ONLY, 0, 2, 49, 0);
  assert_int_equal (ctl_execution_settle (leaf), 0);
  assert_int_equal (leaf->kind, CTL_KIND_ORPHAN);
  assert_int_equal (ctl_execution_settle (late), 0);
  assert_int_equal (late->kind, CTL_KIND_TASK);
  assert_int_equal (ctl_execution_merge (late, leaf), 0);
  assert_int_equal (late->count, 1);
  assert_int_equal (late->kind, CTL_KIND_ORPHAN);
  assert_int_equal (late->reason, WEFT_REASON_NO_CONTEXT);
  assert_string_equal (late->origin, "gateway");
  assert_int_equal (late->subtasks[0].hop, CTL_HOP_PROVEN);
  ctl_execution_destroy (&leaf);
  ctl_execution_destroy (&late);
}

/* Two captures of one request in two parts; the sender's copy came with one of them. */
static void test_a_mirrored_request_merges (void **state)
{
  (void) state;
  ctl_execution_t *early = execution_new (4), *late = execution_new (2);
  add (early, 1, 0, CTL_HOP_ROOT, 0, 0, 100, 0);
  add (early, 2, 1, CTL_HOP_PROVEN, 10, 11, 29, 30);
  add (late, 3, 0, CTL_HOP_CAPTURE_ONLY, 0, 12, 28, 0)->request = 102;
  assert_int_equal (ctl_execution_settle (early), 0);
  assert_int_equal (ctl_execution_settle (late), 0);
  assert_int_equal (ctl_execution_merge (early, late), 0);
  assert_int_equal (early->count, 3);
  assert_int_equal (early->hops[CTL_HOP_PROVEN], 2);
  assert_int_equal (find (early, 3)->parent, 0);
  assert_int_equal (early->complete, 1);
  ctl_execution_destroy (&early);
  ctl_execution_destroy (&late);
}

/* Every prefix and every flipped byte is refused or read, never more. The copy is on
 * the heap at its exact size: a sanitizer sees a read beyond it. */
static void test_damaged_bytes (void **state)
{
  (void) state;
  void *data;
  size_t size;
  ctl_execution_t *self = execution_new (4), *out = NULL;
  add (self, 1, 0, CTL_HOP_ROOT, 0, 0, 100, 0);
  add (self, 2, 1, CTL_HOP_PROVEN, 10, 11, 29, 30);
  assert_int_equal (ctl_execution_settle (self), 0);
  assert_int_equal (ctl_execution_pack (self, &data, &size), 0);
  for (size_t cut = 0; cut < size; cut++) {
    void *copy = malloc (cut ? cut : 1);
    memcpy (copy, data, cut);
    assert_int_equal (ctl_execution_unpack (copy, cut, &out), WEFT_E_MALFORMED);
    free (copy);
  }
  for (size_t at = 0; at < size; at++)
    for (int bit = 0; bit < 8; bit++) {
      uint8_t *copy = malloc (size);
      memcpy (copy, data, size);
      copy[at] ^= (uint8_t) (1u << bit);
      if (ctl_execution_unpack (copy, size, &out) == 0)
        ctl_execution_destroy (&out);
      free (copy);
    }
  ((uint8_t *) data)[1] = 3; /* the version */
  assert_int_equal (ctl_execution_unpack (data, size, &out), WEFT_E_VERSION);
  free (data);
  ctl_execution_destroy (&self);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_self_times_and_critical_path_by_hand),
      cmocka_unit_test (test_what_makes_it_incomplete),
      cmocka_unit_test (test_times_that_cannot_be),
      cmocka_unit_test (test_parts_merge_into_the_whole),
      cmocka_unit_test (test_an_orphan_stays_one_when_its_part_comes_late),
      cmocka_unit_test (test_a_mirrored_request_merges),
      cmocka_unit_test (test_damaged_bytes),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
