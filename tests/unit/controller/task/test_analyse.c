/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../../../common/status.h"
#include "../../../../controller/task/analyse.h"
#include "../../../../controller/task/places.h"
#include "forest.h"

#define MS WEFT_NS_PER_MS

/* root `ms` long, one call that the root waits 60 % for and the callee works 50 % for */
static ctl_execution_t *pair_of (uint32_t number, uint64_t ms, const char *name)
{
  ctl_execution_t *self = calloc (1, sizeof *self);
  self->subtasks = calloc (2, sizeof *self->subtasks);
  memcpy (self->task, &number, sizeof number);
  self->task[15] = 1;
  self->name = self->origin = "";
  self->hosts = 1;
  self->count = 2;
  for (uint32_t i = 0; i < 2; i++)
    self->subtasks[i] = (ctl_subtask_t){.id = i + 1,
                                        .request = i,
                                        .caller = i,
                                        .hop = i ? CTL_HOP_PROVEN : CTL_HOP_ROOT,
                                        .answered = 1,
                                        .status = 200,
                                        .service = i ? "orders" : "front",
                                        .vm = i ? "jvm" : "cpython",
                                        .name = i ? "POST /orders" : name,
                                        .start_ns = i ? ms * MS * 25 / 100 : 0,
                                        .end_ns = i ? ms * MS * 75 / 100 : ms * MS,
                                        .sent_ns = i ? ms * MS * 20 / 100 : 0,
                                        .answered_ns = i ? ms * MS * 80 / 100 : 0,
                                        .cpu_ns = WEFT_NS_NONE};
  assert_int_equal (ctl_execution_settle (self), 0);
  return self;
}

static ctl_analysis_t *analyse_range (uint32_t from, uint32_t to, int step)
{
  ctl_analyse_t *analyse = ctl_analyse_new ();
  ctl_analysis_t *analysis = NULL;
  for (uint32_t i = from; i != to; i += (uint32_t) step) {
    ctl_execution_t *execution = pair_of (i, i, "GET /a");
    if (i % 10 == 0)
      execution->subtasks[0].status = 500;
    assert_int_equal (ctl_analyse_add (analyse, execution), 0);
    ctl_execution_destroy (&execution);
  }
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  ctl_analyse_destroy (&analyse);
  return analysis;
}

/* A request that had no regular answer is an error of the execution, once, whatever its top
 * answered; a status inside is not. */
static void test_errors_anywhere (void **state)
{
  (void) state;
  ctl_analyse_t *analyse = ctl_analyse_new ();
  ctl_analysis_t *analysis = NULL;
  for (uint32_t i = 0; i < 8; i++) {
    ctl_execution_t *execution = pair_of (i, 10, "GET /a");
    execution->subtasks[1].error = i & 1 ? WEFT_ERROR_RESET : WEFT_ERROR_NONE;
    execution->subtasks[1].status = i & 2 ? 503 : 404;
    execution->subtasks[0].status = i & 4 ? 500 : 200;
    assert_int_equal (ctl_analyse_add (analyse, execution), 0);
    ctl_execution_destroy (&execution);
  }
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  assert_int_equal (analysis->names[0].errors, 6);
  ctl_analysis_destroy (&analysis);
  ctl_analyse_destroy (&analyse);
}

/* Durations 1..100 ms. */
static void test_percentiles_and_rows_by_hand (void **state)
{
  (void) state;
  ctl_analysis_t *analysis = analyse_range (1, 101, 1);
  assert_int_equal (analysis->executions, 100);
  assert_int_equal (analysis->complete, 100);
  assert_int_equal (analysis->hops[CTL_HOP_PROVEN], 100);
  assert_int_equal (analysis->name_count, 1);
  const ctl_analysis_name_t *name = &analysis->names[0];
  assert_string_equal (name->name, "GET /a");
  assert_string_equal (name->service, "front");
  assert_int_equal (name->errors, 10);
  assert_int_equal (name->p50_ns, 50 * MS);
  assert_int_equal (name->p90_ns, 90 * MS);
  assert_int_equal (name->p99_ns, 99 * MS);
  assert_int_equal (name->max_ns, 100 * MS);
  assert_int_equal (name->slowest[0], 100);
  /* p25 = 25, p75 = 75: 51 executions of 50 ms in the mean; self 40 % and 50 %, network 10 % */
  assert_int_equal (name->sample, 51);
  assert_int_equal (name->mean_ns, 50 * MS);
  assert_int_equal (name->network_ns, 5 * MS);
  assert_int_equal (name->row_count, 2);
  assert_int_equal (name->rows[0].self_ns, 20 * MS);
  assert_int_equal (name->rows[0].depth, 0);
  assert_int_equal (name->rows[1].self_ns, 25 * MS);
  assert_int_equal (name->rows[1].depth, 1);
  assert_string_equal (name->rows[1].service, "orders");
  assert_true (name->rows[1].share > 0.499 && name->rows[1].share < 0.501);
  assert_true (name->rows[1].calls > 0.999 && name->rows[1].calls < 1.001);
  ctl_analysis_destroy (&analysis);
}

/* Durations 1..100 ms: the root waits 60 % of it for a call that works 50 %, 5 % on each way. */
static void test_edges_and_rows_by_hand (void **state)
{
  (void) state;
  ctl_analysis_t *analysis = analyse_range (1, 101, 1);
  const ctl_analysis_name_t *name = &analysis->names[0];
  const ctl_analysis_row_t *root = &name->rows[0], *call = &name->rows[1];
  assert_int_equal (root->children_ns, 30 * MS);
  assert_int_equal (root->critical_ns, 20 * MS);
  assert_int_equal (root->network_ns, 0);
  assert_int_equal (root->parallel, 1);
  assert_int_equal (call->children_ns, 0);
  assert_int_equal (call->network_ns, 5 * MS);
  assert_int_equal (call->queue_ns, 0);
  assert_int_equal (call->critical_ns, 30 * MS);
  assert_int_equal (call->parallel, 0);
  assert_int_equal (name->edge_count, 2);
  assert_int_equal (name->more_edges, 0);
  const ctl_analysis_edge_t *top = &name->edges[0], *edge = &name->edges[1];
  assert_string_equal (top->from_service, "");
  assert_string_equal (top->service, "front");
  assert_int_equal (top->errors, 10);
  assert_int_equal (top->p50_ns, 50 * MS);
  assert_string_equal (edge->from_service, "front");
  assert_string_equal (edge->from_name, "GET /a");
  assert_string_equal (edge->service, "orders");
  assert_string_equal (edge->name, "POST /orders");
  assert_int_equal (edge->hop, CTL_HOP_PROVEN);
  assert_int_equal (edge->calls, 100);
  assert_int_equal (edge->errors, 0);
  assert_int_equal (edge->p50_ns, 30 * MS);
  assert_int_equal (edge->p90_ns, 54 * MS);
  assert_int_equal (edge->p99_ns, 59 * MS + 400000);
  assert_int_equal (edge->max_ns, 60 * MS);
  ctl_analysis_destroy (&analysis);
}

/* A4: beyond the bound counts stay exact, and an even sample tells the percentiles. */
static void test_edges_with_many_calls (void **state)
{
  (void) state;
  uint32_t many = 3 * CTL_EDGE_CALLS;
  ctl_analysis_t *analysis = analyse_range (1, many + 1, 1);
  const ctl_analysis_edge_t *edge = &analysis->names[0].edges[1];
  assert_int_equal (edge->calls, many);
  assert_int_equal (edge->max_ns, many * (MS * 60 / 100));
  double median = (double) edge->p50_ns / (many * (MS * 60.0 / 100) / 2);
  assert_true (median > 0.95 && median < 1.05);
  ctl_analysis_destroy (&analysis);
}

/* Three calls: two side by side, the third the same request as the second, received once more,
 * of 10 ms on the way 6 in a queue. */
static void test_parallel_again_and_queued (void **state)
{
  (void) state;
  static const uint64_t times[4][2] = {{0, 100}, {10, 40}, {20, 50}, {60, 90}};
  ctl_execution_t *execution = calloc (1, sizeof *execution);
  execution->subtasks = calloc (4, sizeof *execution->subtasks);
  execution->task[0] = 1;
  execution->name = execution->origin = "";
  execution->hosts = 1;
  execution->count = 4;
  for (uint32_t i = 0; i < 4; i++)
    execution->subtasks[i] = (ctl_subtask_t){.id = i + 1,
                                             .request = i == 3 ? 12
                                                        : i    ? i + 10
                                                               : 0,
                                             .caller = i ? 1 : 0,
                                             .hop = i ? CTL_HOP_PROVEN : CTL_HOP_ROOT,
                                             .answered = 1,
                                             .status = 200,
                                             .service = i ? "orders" : "front",
                                             .vm = "jvm",
                                             .name = i ? "POST /orders" : "GET /a",
                                             .start_ns = times[i][0] * MS,
                                             .end_ns = times[i][1] * MS,
                                             .sent_ns = i ? times[i][0] * MS - (i == 3 ? 8 : 0) * MS : 0,
                                             .answered_ns = i ? times[i][1] * MS + (i == 3 ? 2 : 0) * MS : 0,
                                             .cpu_ns = WEFT_NS_NONE};
  assert_int_equal (ctl_execution_settle (execution), 0);
  ctl_names_t *names = ctl_names_new ();
  ctl_places_t places = {0};
  ctl_places_work_t *work = calloc (1, sizeof *work);
  ctl_sample_t sample = {0};
  assert_int_equal (ctl_places_begin (work, names, execution), 0);
  assert_int_equal (ctl_places_parts (&places, work, execution, &sample), 0);
  assert_int_equal (sample.parts, 2);
  assert_int_equal (sample.part[0].parallel, 2);
  assert_int_equal (sample.part[1].calls, 3);
  assert_int_equal (sample.part[1].failed, 1);
  assert_int_equal (sample.part[1].no_cpu, 3);
  assert_int_equal (sample.part[1].network_ns, 10 * MS);
  assert_int_equal (sample.part[1].queue_ns, 6 * MS);
  assert_int_equal (sample.part[1].critical_queue_ns, 6 * MS);
  execution->hosts = 2; /* their clocks do not compare: who knows which way took longer */
  free (sample.part);
  assert_int_equal (ctl_places_parts (&places, work, execution, &sample), 0);
  assert_int_equal (sample.part[1].network_ns, 10 * MS);
  assert_int_equal (sample.part[1].queue_ns, 0);
  assert_int_equal (sample.part[1].critical_queue_ns, 0);
  free (sample.part);
  ctl_places_work_clear (work);
  free (work);
  ctl_places_clear (&places);
  ctl_names_destroy (&names);
  ctl_execution_destroy (&execution);
}

/* A1, also where the samples are thinned out. */
static void test_order_does_not_matter (void **state)
{
  (void) state;
  ctl_analysis_t *up = analyse_range (1, 5001, 1), *down = analyse_range (5000, 0, -1);
  json_t *one = ctl_analysis_json (up), *other = ctl_analysis_json (down);
  assert_true (json_equal (one, other));
  assert_true (up->names[0].sample <= CTL_ANALYSE_TREES);
  assert_true (up->names[0].sample > 100);
  assert_int_equal (up->names[0].p50_ns, 2500 * MS); /* exact all the same */
  assert_int_equal (up->names[0].executions, 5000);
  json_decref (one);
  json_decref (other);
  ctl_analysis_destroy (&up);
  ctl_analysis_destroy (&down);
}

static void test_orphans_stand_apart (void **state)
{
  (void) state;
  ctl_analyse_t *analyse = ctl_analyse_new ();
  ctl_analysis_t *analysis = NULL;
  for (uint32_t i = 0; i < 3; i++) {
    ctl_execution_t *execution = pair_of (i, 10, "GET /b");
    execution->origin = i ? "gateway" : "jobs";
    execution->subtasks[0].orphan = WEFT_REASON_EVENT_LOOP;
    assert_int_equal (ctl_execution_settle (execution), 0);
    assert_int_equal (ctl_analyse_add (analyse, execution), 0);
    ctl_execution_destroy (&execution);
  }
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  assert_int_equal (analysis->executions, 0);
  assert_int_equal (analysis->name_count, 0);
  assert_int_equal (analysis->orphan_trees, 3);
  assert_int_equal (analysis->orphan_count, 2);
  assert_string_equal (analysis->orphans[0].service, "gateway");
  assert_int_equal (analysis->orphans[0].count, 2);
  assert_int_equal (analysis->orphans[1].count, 1);
  ctl_analysis_destroy (&analysis);
  ctl_analyse_destroy (&analyse);
}

static void test_names_without_end_are_counted (void **state)
{
  (void) state;
  ctl_analyse_t *analyse = ctl_analyse_new ();
  ctl_analysis_t *analysis = NULL;
  for (uint32_t i = 0; i < WEFT_ANALYSE_NAMES_MAX + 9; i++) {
    char name[32];
    snprintf (name, sizeof name, "GET /%u\xff", i); /* and no UTF-8 */
    ctl_execution_t *execution = pair_of (i, 10, name);
    assert_int_equal (ctl_analyse_add (analyse, execution), 0);
    ctl_execution_destroy (&execution);
  }
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  assert_int_equal (analysis->name_count, WEFT_ANALYSE_NAMES_MAX);
  assert_int_equal (analysis->more_names, 9);
  assert_int_equal (analysis->executions, WEFT_ANALYSE_NAMES_MAX + 9);
  ctl_analysis_destroy (&analysis);
  ctl_analyse_destroy (&analyse);
}

static json_t *name_of (const json_t *json)
{
  return json_array_get (json_object_get (json, "names"), 0);
}

/* Every field taken away, one at a time, is noticed. */
static void test_json_that_lacks_something_is_refused (void **state)
{
  (void) state;
  ctl_analysis_t *analysis = analyse_range (1, 5, 1), *out = NULL;
  json_t *json = ctl_analysis_json (analysis);
  const char *key;
  json_t *value;
  json_object_foreach (json, key, value)
  {
    json_t *copy = json_deep_copy (json);
    json_object_del (copy, key);
    assert_int_equal (ctl_analysis_from_json (copy, &out), WEFT_E_MALFORMED);
    json_decref (copy);
  }
  json_object_foreach (json_array_get (json_object_get (json, "names"), 0), key, value)
  {
    json_t *copy = json_deep_copy (json);
    json_object_set_new (json_array_get (json_object_get (copy, "names"), 0), key, json_null ());
    assert_int_equal (ctl_analysis_from_json (copy, &out), WEFT_E_MALFORMED);
    json_decref (copy);
  }
  static const char *const lists[] = {"rows", "edges"};
  for (size_t n = 0; n < 2; n++)
    json_object_foreach (json_array_get (json_object_get (name_of (json), lists[n]), 0), key, value)
    {
      json_t *copy = json_deep_copy (json);
      json_object_del (json_array_get (json_object_get (name_of (copy), lists[n]), 0), key);
      assert_int_equal (ctl_analysis_from_json (copy, &out), WEFT_E_MALFORMED);
      json_decref (copy);
    }
  json_object_foreach (json_object_get (name_of (json), "why"), key, value)
  {
    json_t *copy = json_deep_copy (json);
    json_object_del (json_object_get (name_of (copy), "why"), key);
    assert_int_equal (ctl_analysis_from_json (copy, &out), WEFT_E_MALFORMED);
    json_decref (copy);
  }
  assert_int_equal (ctl_analysis_from_json (NULL, &out), WEFT_E_MALFORMED);
  json_decref (json);
  ctl_analysis_destroy (&analysis);
}

/* Of a large store some are read and the others counted: what is said of all is of all, and why slow
 * speaks of those alone whose trees it has seen. */
static void test_what_is_only_counted (void **state)
{
  (void) state;
  ctl_analyse_t *analyse = ctl_analyse_new ();
  ctl_analysis_t *analysis = NULL;
  for (uint32_t i = 1; i <= 1000; i++) {
    ctl_execution_t *execution = pair_of (i, i, "GET /a");
    ctl_summary_t summary;
    ctl_summary_of (execution, &summary);
    assert_true (execution->complete);
    int rc = i % 10 ? ctl_analyse_count (analyse, &summary) : ctl_analyse_add (analyse, execution);
    assert_int_equal (rc, 0);
    ctl_execution_destroy (&execution);
  }
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  const ctl_analysis_name_t *name = &analysis->names[0];
  assert_int_equal (name->executions, 1000);
  assert_int_equal (name->complete, 1000);
  assert_int_equal (name->p50_ns, 500 * MS);
  assert_int_equal (name->p99_ns, 990 * MS);
  assert_int_equal (name->max_ns, 1000 * MS);
  assert_int_equal (name->total_ns, 500500 * MS);
  assert_int_equal (analysis->hops[CTL_HOP_PROVEN], 1000);
  assert_int_equal (name->why.of, 100);
  ctl_analysis_destroy (&analysis);
  ctl_analyse_destroy (&analyse);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_percentiles_and_rows_by_hand),
      cmocka_unit_test (test_edges_and_rows_by_hand),
      cmocka_unit_test (test_edges_with_many_calls),
      cmocka_unit_test (test_parallel_again_and_queued),
      cmocka_unit_test (test_errors_anywhere),
      cmocka_unit_test (test_what_is_only_counted),
      cmocka_unit_test (test_order_does_not_matter),
      cmocka_unit_test (test_orphans_stand_apart),
      cmocka_unit_test (test_names_without_end_are_counted),
      cmocka_unit_test (test_json_that_lacks_something_is_refused),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
