/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of three hosts that are hours apart and drift, delays that differ by direction, callees that are
 * held up between their answer and their look at the clock: the shifted
 * times are true to within the uncertainty that is told, no duration changes, and no child begins before
 * it was asked for. The truth is known beside the reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../../../common/clocks.h"
#include "../../../../common/ids.h"
#include "../../../../controller/task/hop_clock.h"
#include "../../../../controller/task/pack.h"

#define TASKS 400u
#define HOSTS 3u
#define MS    1000000.0
#define START 1700000000e9

typedef struct {
  double offset_ns, drift; /* of a host's clock against the true time */
} host_clock_t;

typedef struct {
  weft_ids_t random;
  host_clock_t clock[HOSTS];
  double there_ns, back_ns; /* the least delays of the two directions */
} world_t;

static double draw (world_t *self)
{
  return (double) (weft_ids_next (&self->random) >> 11) / 9007199254740992.0;
}

static uint64_t told (const world_t *self, uint32_t host, double true_ns)
{
  const host_clock_t *clock = &self->clock[host];
  return (uint64_t) (int64_t) (true_ns + clock->offset_ns + (true_ns - START) * clock->drift);
}

static world_t world_new (uint64_t seed)
{
  world_t self = {0};
  for (int i = 0; i < 4; i++)
    self.random.s[i] = seed * 0x9e3779b97f4a7c15ull + (uint64_t) i + 1;
  for (int i = 0; i < 16; i++)
    weft_ids_next (&self.random);
  for (uint32_t i = 0; i < HOSTS; i++)
    self.clock[i] = (host_clock_t){(draw (&self) * 2 - 1) * 3600e9, (draw (&self) * 2 - 1) * 50e-6};
  self.there_ns = (0.05 + draw (&self)) * MS; /* up to twenty times the other */
  self.back_ns = (0.05 + draw (&self)) * MS;
  return self;
}

/* A chain over the hosts 0, 1, 2 that begins at `from`; the true starts go to `truth`. */
static ctl_execution_t *make_task (world_t *self, double from, double truth[HOSTS])
{
  ctl_execution_t *execution = calloc (1, sizeof *execution);
  execution->subtasks = calloc (HOSTS, sizeof *execution->subtasks);
  execution->count = execution->hosts = HOSTS;
  execution->name = execution->origin = "";
  double held_up = 0, start = from, end = from + (16 + 10 * draw (self)) * MS;
  for (uint32_t i = 0; i < HOSTS; i++) {
    ctl_subtask_t *subtask = &execution->subtasks[i];
    subtask->id = i + 1;
    subtask->request = subtask->caller = i;
    subtask->hop = i ? CTL_HOP_PROVEN : CTL_HOP_ROOT;
    subtask->answered = 1;
    subtask->service = subtask->vm = subtask->name = "";
    subtask->cpu_ns = WEFT_NS_NONE;
    subtask->host = 101 + 7 * ((i * 2) % HOSTS); /* tags in no order */
    if (i) {
      double sent = start + draw (self) * MS, answered = end - draw (self) * MS;
      start = sent + self->there_ns + draw (self) * draw (self) * 2 * MS;
      end = answered - self->back_ns - draw (self) * draw (self) * 2 * MS;
      held_up = draw (self) < 0.15 ? draw (self) * 5 * MS : draw (self) * 0.02 * MS;
      subtask->sender_host = execution->subtasks[i - 1].host;
      subtask->sent_ns = told (self, i - 1, sent);
      subtask->answered_ns = told (self, i - 1, answered);
    }
    subtask->start_ns = told (self, i, start);
    subtask->end_ns = told (self, i, end + held_up); /* looked at the clock late */
    truth[i] = start;
  }
  return execution;
}

static void assert_true_within (const world_t *self, const ctl_execution_t *aligned,
                                const ctl_execution_t *raw, const double truth[HOSTS])
{
  assert_int_equal (aligned->aligned, 1);
  for (uint32_t i = 0; i < HOSTS; i++) {
    const ctl_subtask_t *one = &aligned->subtasks[i], *before = &raw->subtasks[i];
    double off = (double) (int64_t) (one->start_ns - told (self, 0, truth[i]));
    if (off < 0)
      off = -off;
    /* a microsecond of drift within the task itself, and doubles of hours */
    if (off > (double) aligned->clock_uncertainty_ns + 3000)
      fail_msg ("subtask %u is off by %.0f ns, %llu were told", i, off,
                (unsigned long long) aligned->clock_uncertainty_ns);
    assert_true (one->end_ns - one->start_ns == before->end_ns - before->start_ns);
    assert_true (one->start_ns - (uint64_t) one->shift_ns == before->start_ns);
    if (i) {
      assert_true (one->start_ns + 3000 >= one->sent_ns && one->start_ns <= one->answered_ns + 3000);
      assert_true (one->start_ns + 3000 >= aligned->subtasks[i - 1].start_ns);
    }
  }
}

static ctl_execution_t *copy_of (const ctl_execution_t *execution)
{
  void *data;
  size_t size;
  ctl_execution_t *copy = NULL;
  assert_int_equal (ctl_execution_pack (execution, &data, &size), 0);
  assert_int_equal (ctl_execution_unpack (data, size, &copy), 0);
  free (data);
  return copy;
}

static uint64_t seed_of (void)
{
  const char *given = getenv ("WEFT_SEED");
  uint64_t seed = given ? strtoull (given, NULL, 10) : weft_mono_ns ();
  printf ("WEFT_SEED=%llu\n", (unsigned long long) seed);
  return seed;
}

static void test_hours_drift_and_asymmetry (void **state)
{
  uint64_t seed = seed_of ();
  double first = 0, last = 0;
  for (uint64_t n = 0; n < 50; n++) {
    world_t world = world_new (seed + n);
    ctl_hop_clock_t *clock = ctl_hop_clock_new ();
    for (uint32_t i = 0; i < TASKS; i++) {
      double truth[HOSTS];
      ctl_execution_t *execution = make_task (&world, START + i * 150 * MS, truth);
      ctl_execution_t *raw = copy_of (execution);
      ctl_hop_clock_learn (clock, execution);
      assert_int_equal (ctl_hop_clock_align (clock, execution), 0);
      assert_true_within (&world, execution, raw, truth);
      *(i < 10 ? &first : &last) += i < 10 || i >= TASKS - 10 ? (double) execution->clock_uncertainty_ns : 0;
      ctl_execution_t *stored = copy_of (execution); /* what the store keeps is as exact */
      assert_true (stored->clock_uncertainty_ns == execution->clock_uncertainty_ns);
      ctl_hop_clock_restore (stored);
      for (uint32_t k = 0; k < HOSTS; k++)
        assert_true (stored->subtasks[k].start_ns == raw->subtasks[k].start_ns &&
                     stored->subtasks[k].sent_ns == raw->subtasks[k].sent_ns);
      ctl_execution_destroy (&stored);
      ctl_execution_destroy (&raw);
      ctl_execution_destroy (&execution);
    }
    ctl_hop_clock_destroy (&clock);
  }
  printf ("uncertainty: %.0f us with few hops, %.0f us with a window of them\n", first / 500e3, last / 500e3);
  assert_true (last < first); /* the window says more than a task */
}

/* Two hosts that never call each other, or one direction alone, bound nothing: raw, and told so. */
static void test_what_bounds_nothing_stays_raw (void **state)
{
  world_t world = world_new (7);
  double truth[HOSTS];
  ctl_execution_t *execution = make_task (&world, START, truth);
  execution->subtasks[2].error =
      WEFT_ERROR_TIMEOUT; /* its caller had given up: nothing is known of the way back */
  uint64_t before = execution->subtasks[1].start_ns;
  assert_int_equal (ctl_hop_clock_align (NULL, execution), 0);
  assert_int_equal (execution->aligned, 0);
  assert_true (execution->subtasks[1].start_ns == before && execution->clock_uncertainty_ns == 0);
  ctl_execution_destroy (&execution);
}

/* Two parts that were aligned apart are one on one clock: that of the whole's top. */
static void test_parts_are_aligned_anew (void **state)
{
  world_t world = world_new (11);
  double truth[HOSTS];
  ctl_execution_t *whole = make_task (&world, START, truth), *raw = copy_of (whole);
  ctl_execution_t *late = copy_of (whole);
  late->subtasks[0] = late->subtasks[2];
  late->count = 1;
  late->hosts = 2;
  whole->count = 2;
  assert_int_equal (ctl_hop_clock_align (NULL, whole), 0);
  assert_int_equal (ctl_hop_clock_align (NULL, late), 0);
  assert_int_equal (ctl_execution_merge (whole, late), 0);
  assert_int_equal (whole->count, HOSTS);
  assert_true_within (&world, whole, raw, truth);
  ctl_execution_destroy (&late);
  ctl_execution_destroy (&raw);
  ctl_execution_destroy (&whole);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_hours_drift_and_asymmetry),
      cmocka_unit_test (test_what_bounds_nothing_stays_raw),
      cmocka_unit_test (test_parts_are_aligned_anew),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
