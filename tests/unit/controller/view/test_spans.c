/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include "../../../../common/status.h"
#include "../../../../controller/view/spans.h"

typedef struct {
  ctl_span_t span[64];
  uint32_t count;
} spans_t;

static int keep (const ctl_span_t *span, void *arg)
{
  spans_t *self = arg;
  self->span[self->count++] = *span;
  return 0;
}

static void tell (ctl_execution_t *execution, spans_t *spans)
{
  spans->count = 0;
  assert_int_equal (ctl_spans_each (execution, keep, spans), 0);
  assert_true (spans->count <= ctl_spans_most (execution));
}

static const ctl_span_t *find (const spans_t *spans, uint64_t id)
{
  const ctl_span_t *found = NULL;
  for (uint32_t n = 0; n < spans->count; n++)
    if (spans->span[n].id == id) {
      assert_null (found);
      found = &spans->span[n];
    }
  assert_non_null (found);
  return found;
}

/* golden_add numbers requests 1000 above subtasks, and gives them 0.2 ms on each side. */
static void test_a_request_stands_between_caller_and_callee (void **state)
{
  (void) state;
  static spans_t spans;
  ctl_execution_t *shop = golden_shop (1, 1);
  tell (shop, &spans);
  assert_int_equal (spans.count, 1 + 2 + 1 + 9 * 2);
  const ctl_span_t *root = find (&spans, 1), *request = find (&spans, 1002), *orders = find (&spans, 2);
  assert_true (root->parent == 0 && root->is_top && !root->is_client && !root->has_request);
  assert_true (request->parent == 1 && request->is_client && orders->parent == 1002 && orders->has_request);
  assert_string_equal (request->owner.service, "front");
  assert_string_equal (orders->owner.service, "orders");
  assert_true (request->start_ns == GOLDEN_START + 2800000 && request->end_ns == GOLDEN_START + 228100000);
  assert_true (orders->start_ns == GOLDEN_START + 3000000 && orders->end_ns == GOLDEN_START + 227900000);
  const ctl_span_t *leaf = find (&spans, 1003); /* nobody captured it */
  assert_true (leaf->is_client && leaf->parent == 2);
  assert_string_equal (leaf->owner.service, "orders");
  ctl_execution_destroy (&shop);
}

/* N3. */
static void test_a_request_that_reached_two_is_told_once (void **state)
{
  (void) state;
  static spans_t spans;
  ctl_execution_t *task = golden_new (1);
  golden_add (task, 1, 0, CTL_HOP_ROOT, "front", "cpython", "GET /", 0, 100);
  golden_add (task, 2, 1, CTL_HOP_PROVEN, "a", "jvm", "GET /x", 10, 20);
  ctl_subtask_t *mirror = golden_add (task, 3, 1, CTL_HOP_PROVEN, "b", "jvm", "GET /x", 11, 21);
  mirror->request = 1002;
  mirror->sent_ns = task->subtasks[1].sent_ns;
  assert_int_equal (ctl_execution_settle (task), 0);
  tell (task, &spans);
  assert_int_equal (spans.count, 4);
  assert_true (find (&spans, 2)->parent == 1002 && find (&spans, 3)->parent == 1002);
  assert_int_equal (find (&spans, 3)->request, find (&spans, 1002)->subtask);
  /* Two sendings of one id are two requests, each with an id of its own. */
  for (uint32_t n = 1; n < 3; n++)
    task->subtasks[n].alone = 1;
  task->subtasks[2].sent_ns += 500;
  tell (task, &spans);
  assert_int_equal (spans.count, 5);
  uint64_t first = find (&spans, 2)->parent, second = find (&spans, 3)->parent;
  assert_true (first != second && find (&spans, first)->parent == 1 && find (&spans, second)->parent == 1);
  ctl_execution_destroy (&task);
}

/* N1, and what hangs below nobody known. */
static void test_what_nobody_told_has_no_span (void **state)
{
  (void) state;
  static spans_t spans;
  ctl_execution_t *odd = golden_odd (), *orphan = golden_orphan (2);
  tell (odd, &spans);
  const ctl_span_t *stray = find (&spans, 4);
  assert_true (stray->parent == 77 && !stray->has_request);
  tell (orphan, &spans);
  assert_int_equal (spans.count, 2);
  const ctl_span_t *request = find (&spans, 55);
  assert_true (request->is_top && request->parent == 0 && !ctl_owner_is_known (&request->owner));
  assert_string_equal (request->owner.service, "gateway");
  assert_true (find (&spans, 5)->parent == 55 && !find (&spans, 5)->is_top);
  ctl_execution_destroy (&odd);
  ctl_execution_destroy (&orphan);
}

/* N4. */
static void test_a_circle_is_cut (void **state)
{
  (void) state;
  static spans_t spans;
  ctl_execution_t *task = golden_new (1);
  golden_add (task, 1, 2, CTL_HOP_PROVEN, "a", "jvm", "GET /", 0, 100);
  golden_add (task, 2, 1, CTL_HOP_PROVEN, "b", "jvm", "GET /", 10, 90);
  golden_add (task, 3, 99, CTL_HOP_PROVEN, "c", "jvm", "GET /", 20, 30); /* its caller never told */
  assert_int_equal (ctl_execution_settle (task), 0);
  tell (task, &spans);
  for (uint32_t n = 0; n < spans.count; n++) {
    uint64_t at = spans.span[n].id;
    int steps = 0;
    for (; at && at != 99; at = find (&spans, at)->parent)
      assert_true (++steps <= 6);
  }
  assert_int_equal (find (&spans, 1003)->parent, 99);
  assert_string_equal (find (&spans, 1003)->owner.service, "");
  ctl_execution_destroy (&task);
}

static int refuse (const ctl_span_t *span, void *arg)
{
  ++*(int *) arg;
  return WEFT_E_FULL;
}

static void test_a_refusal_ends_it (void **state)
{
  (void) state;
  int calls = 0;
  ctl_execution_t *shop = golden_shop (1, 1);
  assert_int_equal (ctl_spans_each (shop, refuse, &calls), WEFT_E_FULL);
  assert_int_equal (calls, 1);
  ctl_execution_destroy (&shop);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_a_request_stands_between_caller_and_callee),
      cmocka_unit_test (test_a_request_that_reached_two_is_told_once),
      cmocka_unit_test (test_what_nobody_told_has_no_span),
      cmocka_unit_test (test_a_circle_is_cut),
      cmocka_unit_test (test_a_refusal_ends_it),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
