/* SPDX-License-Identifier: Apache-2.0 */
/* A pool that is full fills those of its callers. What is named is what they wait for, not where most of them wait;
 * the truth is known of every moment (pools.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../../../controller/task/analyse.h"
#include "pools.h"

#define SYSTEMS 60u

static pools_t pools;

/* host: whose clock all times are; 0: nobody knows. */
static ctl_analysis_t *analyse (uint32_t host)
{
  ctl_analyse_t *analyse = ctl_analyse_new ();
  ctl_analysis_t *analysis = NULL;
  for (uint32_t i = 0; i < pools.jobs; i++) {
    ctl_execution_t *execution = pools_execution (&pools, i);
    if (!execution)
      continue;
    for (uint32_t k = 0; k < execution->count; k++)
      execution->subtasks[k].host = execution->subtasks[k].sender_host = host;
    assert_int_equal (ctl_analyse_add (analyse, execution), 0);
    ctl_execution_destroy (&execution);
  }
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  ctl_analyse_destroy (&analyse);
  assert_int_equal (analysis->name_count, 1);
  return analysis;
}

static void print_why (uint64_t seed, const ctl_why_t *why)
{
  print_message ("seed %llu, cause %d, threads %u %u, one in %.1f ms, %.1f + %.1f ms: %s, %u of %u: %.1f ms "
                 "instead of %.1f\n",
                 (unsigned long long) seed, pools.cause, pools.pool[POOLS_MIDDLE].threads,
                 pools.pool[POOLS_LAST].threads, pools.gap_ms, pools.base_ms, pools.extra_ms,
                 ctl_why_verdict_text (why->verdict), why->slow, why->of, (double) why->slow_ns / 1e6,
                 (double) why->mean_ns / 1e6);
  for (uint32_t i = 0; i < why->cause_count; i++)
    print_message ("  %s %s -> %s: %.1f ms more, of these %.1f before %s\n",
                   ctl_why_kind_text (why->causes[i].kind), why->causes[i].from_service,
                   why->causes[i].service, (double) why->causes[i].more_ns / 1e6,
                   (double) why->causes[i].behind_ns / 1e6, why->causes[i].behind);
}

static int is_kind (pools_cause_t cause, ctl_why_kind_t kind)
{
  switch (cause) {
  case POOLS_TAKEN_MIDDLE:
  case POOLS_TAKEN_LAST:
    return kind == CTL_WHY_QUEUE;
  case POOLS_MANY_LAST:
    return kind == CTL_WHY_CALLS;
  case POOLS_SLOW_LAST:
    return kind == CTL_WHY_WAIT;
  default: /* a lock is waited for in a thread, and for a thread */
    return kind == CTL_WHY_WAIT || kind == CTL_WHY_HELD || kind == CTL_WHY_QUEUE;
  }
}

typedef struct {
  uint32_t wrong, missed, behind;
} count_t;

static count_t find (pools_cause_t cause, int is_deep, uint32_t host)
{
  count_t count = {0};
  const char *service = cause == POOLS_TAKEN_MIDDLE || cause == POOLS_LOCK_MIDDLE ? "middle" : "last";
  for (uint64_t seed = 1; seed <= SYSTEMS; seed++) {
    pools_new (&pools, seed, cause, is_deep);
    ctl_analysis_t *analysis = analyse (host);
    const ctl_why_t *why = &analysis->names[0].why;
    int is_wrong = 0;
    for (uint32_t i = 0; i < why->cause_count; i++) {
      is_wrong |= strcmp (why->causes[i].service, service) != 0 || !is_kind (cause, why->causes[i].kind);
      count.behind += i == 0 && why->causes[i].behind_ns > 0;
      assert_true (why->causes[i].behind_ns <= why->causes[i].more_ns);
      assert_true ((why->causes[i].behind_ns > 0) == (*why->causes[i].behind != 0));
    }
    if (is_wrong || why->cause_count != 1)
      print_why (seed, why);
    count.wrong += (uint32_t) is_wrong;
    count.missed += why->cause_count == 0;
    ctl_analysis_destroy (&analysis);
  }
  print_message ("cause %d: %u wrong, %u missed of %u, %u behind others\n", cause, count.wrong, count.missed,
                 SYSTEMS, count.behind);
  return count;
}

static void what_all_wait_for_is_named (void **state)
{
  static const pools_cause_t causes[] = {POOLS_TAKEN_LAST, POOLS_LOCK_LAST, POOLS_SLOW_LAST, POOLS_MANY_LAST};
  (void) state;
  for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
    count_t count = find (causes[i], 0, 1);
    assert_int_equal (count.wrong, 0);
    assert_true (count.missed <= 2);
  }
}

/* B2 */
static void at_the_end_of_the_chain (void **state)
{
  (void) state;
  count_t count = find (POOLS_TAKEN_LAST, 1, 1);
  assert_int_equal (count.wrong, 0);
  assert_true (count.missed <= 8 && count.behind >= SYSTEMS / 3);
}

/* Where nobody waits further on, it stays where it is. That many wait there at other times, too, hides some. */
static void a_pool_of_its_own_is_named_itself (void **state)
{
  static const pools_cause_t causes[] = {POOLS_TAKEN_MIDDLE, POOLS_LOCK_MIDDLE};
  (void) state;
  for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
    count_t count = find (causes[i], 0, 1);
    assert_int_equal (count.wrong, 0);
    assert_int_equal (count.behind, 0);
    assert_true (count.missed <= SYSTEMS / 2);
  }
}

static double before_middle_ms (const pools_job_t *job)
{
  for (uint32_t i = 0; i < job->calls; i++)
    if (job->call[i].place == POOLS_MIDDLE)
      return job->call[i].start_ms - job->call[i].sent_ms;
  return 0;
}

static int compare_jobs (const void *left, const void *right)
{
  const pools_job_t *const *a = left, *const *b = right;
  double one = (*a)->call[0].end_ms - (*a)->call[0].start_ms,
         other = (*b)->call[0].end_ms - (*b)->call[0].start_ms;
  return one > other ? -1 : one < other;
}

/* Of the slowest. */
static double waited_before_middle_ms (uint32_t slow)
{
  static const pools_job_t *job[POOLS_JOBS];
  uint32_t jobs = 0;
  double sum_ms = 0;
  for (uint32_t i = 0; i < pools.jobs; i++)
    if (!pools.job[i].is_others)
      job[jobs++] = &pools.job[i];
  qsort (job, jobs, sizeof (const pools_job_t *), compare_jobs);
  for (uint32_t i = 0; i < slow; i++)
    sum_ms += before_middle_ms (job[i]);
  return sum_ms / slow;
}

/* What is said to be spent before the middle is: never more than was, and most of that. */
static void as_much_as_was_waited (void **state)
{
  (void) state;
  double all_told_ms = 0, all_waited_ms = 0;
  for (uint64_t seed = 1; seed <= SYSTEMS; seed++) {
    pools_new (&pools, seed, POOLS_TAKEN_LAST, 0);
    ctl_analysis_t *analysis = analyse (1);
    const ctl_why_t *why = &analysis->names[0].why;
    double waited_ms = waited_before_middle_ms (why->slow);
    if (why->cause_count) {
      double told_ms = (double) why->causes[0].behind_ns / 1e6;
      assert_true (told_ms <= waited_ms);
      assert_true (told_ms <= 0 || strcmp (why->causes[0].behind, "middle") == 0);
      all_told_ms += told_ms;
      all_waited_ms += waited_ms;
    }
    ctl_analysis_destroy (&analysis);
  }
  print_message ("%.0f ms of %.0f\n", all_told_ms, all_waited_ms);
  assert_true (all_told_ms >= 0.6 * all_waited_ms);
}

/* B1: moments of different clocks are not compared. */
static void on_one_clock_only (void **state)
{
  (void) state;
  assert_int_equal (find (POOLS_TAKEN_LAST, 0, 0).behind, 0);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (what_all_wait_for_is_named),
      cmocka_unit_test (at_the_end_of_the_chain),
      cmocka_unit_test (a_pool_of_its_own_is_named_itself),
      cmocka_unit_test (as_much_as_was_waited),
      cmocka_unit_test (on_one_clock_only),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
