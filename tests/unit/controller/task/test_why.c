/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../../../common/status.h"
#include "../../../../controller/task/analyse.h"
#include "../../../../controller/task/why.h"
#include "shop.h"

static ctl_analysis_t *analyse (shop_t *shop, uint32_t executions)
{
  ctl_analyse_t *analyse = ctl_analyse_new ();
  ctl_analysis_t *analysis = NULL;
  for (uint32_t i = 0; i < executions; i++) {
    ctl_execution_t *execution = shop_execution (shop, i);
    assert_int_equal (ctl_analyse_add (analyse, execution), 0);
    ctl_execution_destroy (&execution);
  }
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  ctl_analyse_destroy (&analyse);
  assert_int_equal (analysis->name_count, 1);
  return analysis;
}

static void print_why (const char *what, uint64_t seed, const shop_t *shop, const ctl_why_t *why)
{
  print_message ("%s, seed %llu: %d places, noise %d sigma %.2f load %.2f pauses %.2f, %s, %u of %u: %.1f ms "
                 "instead of %.1f\n",
                 what, (unsigned long long) seed, shop->places, shop->noise, shop->sigma, shop->load,
                 shop->pauses, ctl_why_verdict_text (why->verdict), why->slow, why->of,
                 (double) why->slow_ns / 1e6, (double) why->mean_ns / 1e6);
  for (uint32_t i = 0; i < why->cause_count; i++)
    print_message ("  %s %s %s -> %s %s: %.1f ms more, %.1f instead of %.1f calls, %.2f instead of %.2f ms\n",
                   ctl_why_kind_text (why->causes[i].kind), why->causes[i].from_service,
                   why->causes[i].from_name, why->causes[i].service, why->causes[i].name,
                   (double) why->causes[i].more_ns / 1e6, why->causes[i].calls, why->causes[i].usual_calls,
                   (double) why->causes[i].each_ns / 1e6, (double) why->causes[i].usual_ns / 1e6);
}

/* The rate that why.h states: one in a hundred. */
static void test_uniform_systems_have_no_cause (void **state)
{
  (void) state;
  uint32_t forests = 1500, alarms = 0;
  for (uint64_t seed = 1; seed <= forests; seed++) {
    shop_t shop;
    shop_new (&shop, seed);
    if (seed > 1000)
      shop_vary (&shop);
    uint32_t executions = 60 + (uint32_t) shop_below (&shop, 600);
    ctl_analysis_t *analysis = analyse (&shop, executions);
    const ctl_why_t *why = &analysis->names[0].why;
    if (why->verdict != CTL_WHY_NOTHING) {
      alarms++;
      print_why ("false alarm", seed, &shop, why);
    }
    ctl_analysis_destroy (&analysis);
  }
  print_message ("%u false alarms in %u uniform systems\n", alarms, forests);
  assert_true (alarms * 100 <= forests);
}

/* Both kinds of time together, or one where chance made it most of it; all that leads to the service, or the
 * edge where most was struck. */
static int is_held (const shop_t *shop, const ctl_why_t *why)
{
  const ctl_why_cause_t *cause = &why->causes[0];
  int most = (double) cause->more_ns >= 0.6 * (double) (why->slow_ns - why->mean_ns);
  int single = cause->kind == CTL_WHY_QUEUE || cause->kind == CTL_WHY_WAIT;
  return (cause->kind == CTL_WHY_HELD || (single && most)) &&
         strcmp (cause->service, shop->place[shop->at].service) == 0;
}

static int is_right (const shop_t *shop, const ctl_why_t *why)
{
  static const ctl_why_kind_t kind[SHOP_CAUSES] = {
      [SHOP_SLOW] = CTL_WHY_CPU,  [SHOP_MANY] = CTL_WHY_CALLS,  [SHOP_RETRY] = CTL_WHY_RETRY,
      [SHOP_LOCK] = CTL_WHY_WAIT, [SHOP_QUEUE] = CTL_WHY_QUEUE, [SHOP_NETWORK] = CTL_WHY_NETWORK};
  const shop_place_t *at = &shop->place[shop->at], *from = &shop->place[at->parent];
  const ctl_why_cause_t *cause = &why->causes[0];
  if (why->verdict != CTL_WHY_NAMED || why->cause_count != 1)
    return 0;
  if (shop->cause == SHOP_HELD || shop->cause == SHOP_POOL)
    return is_held (shop, why);
  return cause->kind == kind[shop->cause] && strcmp (cause->from_service, from->service) == 0 &&
         strcmp (cause->from_name, from->name) == 0 && strcmp (cause->service, at->service) == 0 &&
         strcmp (cause->name, at->name) == 0;
}

/* Where a place takes most of the time by itself, a few slow executions of it prove nothing. */
#define MISSED_MOST 3u

static void find_planted (shop_cause_t cause)
{
  uint32_t systems = 100, wrong = 0, missed = 0, held = 0;
  for (uint64_t seed = 1; seed <= systems; seed++) {
    shop_t shop;
    shop_new (&shop, seed);
    shop.sigma = shop.sigma > 0.6 ? 0.6 : shop.sigma;
    shop.cause = cause;
    shop.share = 0.03;
    shop.at = 1 + shop_below (&shop, shop.places - 1);
    for (int i = 1; i < shop.places; i++)
      if (strcmp (shop.place[i].service, shop.place[shop.at].service) == 0)
        shop.place[i].parallel = 0;
    shop.extra_ms = shop.whole_ms * (3 + 4 * shop_draw (&shop));
    if (cause == SHOP_MANY)
      shop.place[shop.at].base_ms = shop.whole_ms / 2;
    ctl_analysis_t *analysis = analyse (&shop, 600 + (uint32_t) shop_below (&shop, 600));
    const ctl_why_t *why = &analysis->names[0].why;
    held += why->cause_count && why->causes[0].kind == CTL_WHY_HELD;
    if (!is_right (&shop, why)) {
      print_why ("not as planted", seed, &shop, why);
      print_message ("  planted %d at %s %s\n", cause, shop.place[shop.at].service, shop.place[shop.at].name);
      missed += why->cause_count == 0;
      wrong += why->cause_count != 0;
    }
    ctl_analysis_destroy (&analysis);
  }
  print_message ("cause %d: %u wrong, %u missed of %u, %u held\n", cause, wrong, missed, systems, held);
  assert_int_equal (wrong, 0);
  assert_true (missed <= MISSED_MOST);
  assert_true (cause < SHOP_HELD ? held == 0 : held >= systems / 2);
}

static void test_a_slow_edge (void **state)
{
  (void) state;
  find_planted (SHOP_SLOW);
}

static void test_too_many_calls (void **state)
{
  (void) state;
  find_planted (SHOP_MANY);
}

static void test_retries (void **state)
{
  (void) state;
  find_planted (SHOP_RETRY);
}

static void test_a_lock (void **state)
{
  (void) state;
  find_planted (SHOP_LOCK);
}

static void test_a_queue (void **state)
{
  (void) state;
  find_planted (SHOP_QUEUE);
}

static void test_a_slow_network (void **state)
{
  (void) state;
  find_planted (SHOP_NETWORK);
}

/* Neither the queue nor the time in itself makes most of it. */
static void test_what_is_before_and_in_it (void **state)
{
  (void) state;
  find_planted (SHOP_HELD);
}

/* Nor does any edge. */
static void test_a_pool_that_is_held_up (void **state)
{
  (void) state;
  find_planted (SHOP_POOL);
}

static ctl_analysis_t *slow_edge (uint64_t seed, ctl_analyse_t *analyse)
{
  shop_t shop;
  ctl_analysis_t *analysis = NULL;
  shop_new (&shop, seed);
  shop.cause = SHOP_SLOW;
  shop.share = 0.03;
  shop.at = 1;
  shop.place[1].parallel = 0;
  shop.extra_ms = 5 * shop.whole_ms;
  for (uint32_t i = 0; i < 1204; i++) {
    ctl_execution_t *execution = shop_execution (&shop, i);
    assert_int_equal (ctl_analyse_add (analyse, execution), 0);
    ctl_execution_destroy (&execution);
  }
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  return analysis;
}

/* What left a service without a known caller: how many, how far apart (1: from the first execution on, one beside
 * the other), and from which one. */
static ctl_why_verdict_t beside (uint32_t count, uint32_t every, int other, uint64_t *ret_unknown)
{
  ctl_analyse_t *analyse = ctl_analyse_new ();
  for (uint32_t i = 0; i < count; i++) {
    shop_t shop;
    shop_new (&shop, 4);
    ctl_execution_t *orphan = shop_execution (&shop, every * i);
    orphan->subtasks[0].orphan = WEFT_REASON_EVENT_LOOP;
    orphan->origin = other ? "elsewhere" : shop.place[1].service;
    assert_int_equal (ctl_execution_settle (orphan), 0);
    assert_int_equal (ctl_analyse_add (analyse, orphan), 0);
    ctl_execution_destroy (&orphan);
  }
  ctl_analysis_t *analysis = slow_edge (4, analyse);
  ctl_why_verdict_t verdict = analysis->names[0].why.verdict;
  *ret_unknown = analysis->names[0].why.unknown;
  ctl_analysis_destroy (&analysis);
  ctl_analyse_destroy (&analyse);
  return verdict;
}

/* Y6: a service that sends requests without a known caller may have waited for them, unless they left at
 * another time, or there are more than are remembered. */
static void test_what_cannot_be_known_is_not_blamed (void **state)
{
  (void) state;
  uint64_t unknown;
  assert_int_equal (beside (40, 30, 0, &unknown), CTL_WHY_UNKNOWN);
  assert_int_equal (unknown, 40);
  assert_int_equal (beside (40, 30, 1, &unknown), CTL_WHY_NAMED);
  assert_int_equal (unknown, 0);
  assert_int_equal (beside (40, 1, 0, &unknown), CTL_WHY_NAMED);
  assert_int_equal (unknown, 0);
  assert_int_equal (beside (CTL_WHY_TIMES_MAX + 1, 0, 0, &unknown), CTL_WHY_UNKNOWN);
  assert_int_equal (unknown, CTL_WHY_TIMES_MAX + 1);
}

/* A5: the slowest are slow and not complete: they say nothing. */
static void test_incomplete_executions_are_not_judged (void **state)
{
  (void) state;
  shop_t shop;
  ctl_analysis_t *analysis = NULL;
  ctl_analyse_t *analyse = ctl_analyse_new ();
  shop_new (&shop, 4);
  shop.load = shop.pauses = 0;
  shop.noise = SHOP_UNIFORM;
  shop.cause = SHOP_SLOW;
  shop.share = 0.03;
  shop.at = 1;
  shop.place[1].parallel = 0;
  shop.extra_ms = 5 * shop.whole_ms;
  for (uint32_t i = 0; i < 1204; i++) {
    ctl_execution_t *execution = shop_execution (&shop, i);
    execution->complete &= !shop.hit;
    assert_int_equal (ctl_analyse_add (analyse, execution), 0);
    ctl_execution_destroy (&execution);
  }
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  const ctl_analysis_name_t *name = &analysis->names[0];
  assert_int_equal (name->executions, 1204);
  assert_int_equal (name->why.of, name->complete);
  assert_true (name->complete < 1190);
  assert_int_equal (name->why.verdict, CTL_WHY_NOTHING);
  ctl_analysis_destroy (&analysis);
  ctl_analyse_destroy (&analyse);
}

static void test_too_few_say_nothing (void **state)
{
  (void) state;
  shop_t shop;
  for (uint32_t executions = CTL_WHY_LEAST - 1; executions <= CTL_WHY_LEAST; executions++) {
    shop_new (&shop, 4);
    ctl_analysis_t *analysis = analyse (&shop, executions);
    assert_int_equal (analysis->names[0].why.verdict == CTL_WHY_FEW, executions < CTL_WHY_LEAST);
    assert_int_equal (analysis->names[0].why.of, executions);
    ctl_analysis_destroy (&analysis);
  }
}

/* More than are kept: the slowest of all are compared, in whatever order they come. */
static void test_the_slowest_of_many (void **state)
{
  (void) state;
  json_t *first = NULL;
  for (int turn = 0; turn < 2; turn++) {
    ctl_analyse_t *analyse = ctl_analyse_new ();
    ctl_analysis_t *analysis = NULL;
    uint32_t many = 100 * CTL_WHY_SLOW_MAX + 900;
    for (uint32_t i = 0; i < many; i++) {
      uint32_t number = turn ? many - 1 - i : i;
      shop_t shop;
      shop_new (&shop, 4);
      for (int k = 0; k < 4; k++)
        shop.random.s[k] ^= number * 0x9e3779b97f4a7c15ull;
      ctl_execution_t *execution = shop_execution (&shop, number);
      assert_int_equal (ctl_analyse_add (analyse, execution), 0);
      ctl_execution_destroy (&execution);
    }
    assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
    assert_int_equal (analysis->names[0].why.slow, CTL_WHY_SLOW_MAX);
    json_t *json = ctl_analysis_json (analysis);
    assert_true (!first || json_equal (first, json));
    if (turn)
      json_decref (json);
    else
      first = json;
    ctl_analysis_destroy (&analysis);
    ctl_analyse_destroy (&analyse);
  }
  json_decref (first);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_uniform_systems_have_no_cause),
      cmocka_unit_test (test_a_slow_edge),
      cmocka_unit_test (test_too_many_calls),
      cmocka_unit_test (test_retries),
      cmocka_unit_test (test_a_lock),
      cmocka_unit_test (test_a_queue),
      cmocka_unit_test (test_a_slow_network),
      cmocka_unit_test (test_what_is_before_and_in_it),
      cmocka_unit_test (test_a_pool_that_is_held_up),
      cmocka_unit_test (test_what_cannot_be_known_is_not_blamed),
      cmocka_unit_test (test_incomplete_executions_are_not_judged),
      cmocka_unit_test (test_too_few_say_nothing),
      cmocka_unit_test (test_the_slowest_of_many),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
