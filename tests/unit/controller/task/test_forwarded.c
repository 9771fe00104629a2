/* SPDX-License-Identifier: Apache-2.0 */
/* A request id that was passed on as it came names several requests (M4, M5): in whatever order the
 * copies come, and in whatever parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../../../controller/task/pack.h"
#include "forest.h"

#define MAX     7u
#define REQUEST 77u
#define KEPT    (WEFT_REPORT_ADOPTED | WEFT_REPORT_FORWARDED)

typedef struct {
  weft_report_t report;
  uint32_t instance;
} copy_t;

static copy_t copy[MAX];
static uint32_t copies;

static weft_address_t at (uint16_t port)
{
  return (weft_address_t){.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}, .port = port, .family = 4};
}

/* On the connection from `client` to `server`; client 0: it is not known. */
static weft_report_t *add (uint32_t instance, weft_report_kind_t kind, uint64_t subtask, uint64_t start_ms,
                           uint64_t end_ms, uint16_t client, uint16_t server)
{
  weft_report_t *report = &copy[copies].report;
  int embed = kind == WEFT_REPORT_EMBED;
  *report = (weft_report_t){.kind = (uint8_t) kind,
                            .status = 200,
                            .name = "GET /x",
                            .name_size = 6,
                            .flags = embed ? KEPT : 0,
                            .task = {1, 2, 3},
                            .request = REQUEST,
                            .subtask = subtask,
                            .start_ns = start_ms * 1000000,
                            .end_ns = end_ms * 1000000,
                            .cpu_ns = WEFT_NS_NONE};
  if (client) {
    report->local = at (embed ? client : server);
    report->peer = at (embed ? server : client);
  }
  copy[copies++].instance = instance;
  return report;
}

static void send (ctl_correlate_t *correlate, const copy_t *one)
{
  static uint8_t frame[WEFT_BATCH_MAX];
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  weft_batch_head_t head;
  size_t size;
  uint32_t taken;
  forest_head (one->instance, 1, &head);
  assert_int_equal (weft_batch_writer_begin (writer, frame, sizeof frame, &head), 0);
  assert_int_equal (weft_batch_writer_add (writer, &one->report), 0);
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  assert_int_equal (ctl_correlate_batch (correlate, frame, size, &taken), 0);
  weft_batch_writer_destroy (&writer);
}

/* What is made of the copies whose bits are set, sent in this order. */
static ctl_execution_t *assembled (const uint32_t *order, uint32_t bits)
{
  ctl_instances_t *instances = ctl_instances_new ();
  forest_hello (instances);
  ctl_correlate_t *correlate = ctl_correlate_new (instances, 0);
  ctl_execution_t *execution = NULL, *own = NULL;
  void *data;
  size_t size;
  for (uint32_t i = 0; i < copies; i++)
    if (bits >> order[i] & 1)
      send (correlate, &copy[order[i]]);
  assert_int_equal (ctl_correlate_find (correlate, (const uint8_t[16]){1, 2, 3}, &execution), 0);
  assert_int_equal (ctl_execution_pack (execution, &data, &size), 0); // it outlives the registry
  assert_int_equal (ctl_execution_unpack (data, size, &own), 0);
  free (data);
  ctl_execution_destroy (&execution);
  ctl_correlate_destroy (&correlate);
  ctl_instances_destroy (&instances);
  return own;
}

static const ctl_subtask_t *subtask_of (const ctl_execution_t *execution, uint64_t id)
{
  for (uint32_t i = 0; i < execution->count; i++)
    if (execution->subtasks[i].id == id)
      return &execution->subtasks[i];
  return NULL;
}

static uint64_t parent_of (const ctl_execution_t *execution, uint64_t id)
{
  const ctl_subtask_t *subtask = subtask_of (execution, id);
  assert_non_null (subtask);
  return subtask->parent == CTL_NO_PARENT ? 0 : execution->subtasks[subtask->parent].id;
}

typedef void (check_fn) (const ctl_execution_t *execution);

/* Number `n` of the orders: what is left over at each place says which of the rest comes next. */
static void order_of (uint32_t n, uint32_t order[MAX])
{
  for (uint32_t i = 0; i < copies; i++)
    order[i] = i;
  for (uint32_t i = 0; i < copies; i++) {
    uint32_t rest = copies - i, from = i + n % rest, kept = order[from];
    n /= rest;
    order[from] = order[i];
    order[i] = kept;
  }
}

static void in_every_order (check_fn *check)
{
  uint32_t orders = 1, order[MAX];
  for (uint32_t i = 2; i <= copies; i++)
    orders *= i;
  for (uint32_t n = 0; n < orders; n++) {
    order_of (n, order);
    ctl_execution_t *execution = assembled (order, UINT32_MAX);
    check (execution);
    ctl_execution_destroy (&execution);
  }
}

/* A caller outside weft, a gateway (subtask 10), a callee (20). */
static void gateway (uint16_t client_seen_by_callee)
{
  copies = 0;
  add (0, WEFT_REPORT_CAPTURE, 10, 10, 90, 4001, 80);
  add (0, WEFT_REPORT_EMBED, 10, 20, 80, 4002, 81);
  add (1, WEFT_REPORT_CAPTURE, 20, 30, 70, client_seen_by_callee, 81);
}

static void is_a_hop (const ctl_execution_t *execution)
{
  assert_int_equal (execution->count, 2);
  assert_int_equal (parent_of (execution, 20), 10);
  assert_int_equal (parent_of (execution, 10), 0);
  assert_int_equal (execution->subtasks[0].hop, CTL_HOP_CAPTURE_ONLY);
  assert_int_equal (execution->hops[CTL_HOP_PROVEN], 1);
  assert_int_equal (execution->subtasks[0].self_ns, 20 * 1000000); /* 10..90 less 20..80 */
  assert_true (execution->complete);
}

static void test_the_connection_says_whose_it_is (void **state)
{
  (void) state;
  gateway (4002);
  in_every_order (is_a_hop);
}

static void has_a_leaf (const ctl_execution_t *execution)
{
  assert_int_equal (execution->count, 2);
  assert_int_equal (parent_of (execution, 10), 0);
  assert_int_equal (execution->hops[CTL_HOP_CAPTURE_ONLY], 1);
  assert_int_equal (execution->hops[CTL_HOP_EMBED_ONLY], 1);
  assert_int_equal (execution->subtasks[1].parent, 0);
  assert_int_equal (execution->subtasks[1].request, REQUEST);
  assert_true (execution->complete);
}

static void test_nobody_captures_it (void **state)
{
  (void) state;
  gateway (4002);
  copies = 2;
  in_every_order (has_a_leaf);
}

/* The gateway, or a mirror of what its caller sent? */
static void is_unknown (const ctl_execution_t *execution)
{
  assert_int_equal (execution->count, 3);
  assert_int_equal (parent_of (execution, 10), 0);
  assert_int_equal (parent_of (execution, 20), 0);
  assert_int_equal (subtask_of (execution, 10)->orphan, WEFT_REASON_NONE);
  assert_int_equal (subtask_of (execution, 20)->orphan, WEFT_REASON_CONTEXT);
  assert_int_equal (execution->hops[CTL_HOP_PROVEN], 0);
  assert_int_equal (execution->hops[CTL_HOP_EMBED_ONLY], 1);
  assert_int_equal (execution->kind, CTL_KIND_TASK);
  assert_false (execution->complete);
}

static void test_another_connection_says_nothing (void **state)
{
  (void) state;
  gateway (5005);
  in_every_order (is_unknown);
  gateway (0);
  in_every_order (is_unknown);
}

/* Sent from nobody knows which subtask, it is still not the one that came in. */
static void is_no_call_of_itself (const ctl_execution_t *execution)
{
  assert_int_equal (execution->count, 2);
  assert_int_equal (subtask_of (execution, 10)->hop, CTL_HOP_CAPTURE_ONLY);
  assert_int_equal (subtask_of (execution, 10)->orphan, WEFT_REASON_NONE);
  assert_int_equal (execution->hops[CTL_HOP_EMBED_ONLY], 1);
}

static void test_an_orphan_is_not_its_own_caller (void **state)
{
  (void) state;
  gateway (4002);
  copies = 2;
  copy[1].report.subtask = 0;
  copy[1].report.flags |= WEFT_REPORT_ORPHAN;
  copy[1].report.reason = WEFT_REASON_EVENT_LOOP;
  in_every_order (is_no_call_of_itself);
  copy[1].report.flags &= ~WEFT_REPORT_FORWARDED; // when its subtask had been answered
  in_every_order (is_no_call_of_itself);
}

static void has_two_legs (const ctl_execution_t *execution)
{
  assert_int_equal (execution->count, 4);
  assert_int_equal (parent_of (execution, 20), 10);
  assert_int_equal (parent_of (execution, 30), 10);
  assert_int_equal (subtask_of (execution, 20)->sent_ns, FOREST_ANCHOR + 20 * 1000000);
  assert_int_equal (subtask_of (execution, 30)->sent_ns, FOREST_ANCHOR + 40 * 1000000);
  assert_int_equal (execution->hops[CTL_HOP_PROVEN], 2);
  assert_int_equal (execution->hops[CTL_HOP_EMBED_ONLY], 1);
  assert_true (execution->complete);
}

/* The second on a connection of its own or, later, on the same one; the third to one outside. */
static void test_a_fan_out_keeps_its_legs (void **state)
{
  (void) state;
  for (uint16_t client = 4002; client <= 4003; client++) {
    gateway (4002);
    copy[1].report.end_ns = copy[2].report.end_ns = 35 * 1000000;
    add (0, WEFT_REPORT_EMBED, 10, 40, 60, client, 81);
    add (2, WEFT_REPORT_CAPTURE, 30, 45, 55, client, 81);
    add (0, WEFT_REPORT_EMBED, 10, 65, 75, 4004, 9);
    in_every_order (has_two_legs);
  }
}

static void is_a_chain (const ctl_execution_t *execution)
{
  assert_int_equal (execution->count, 3);
  assert_int_equal (parent_of (execution, 10), 5);
  assert_int_equal (parent_of (execution, 20), 10);
  assert_int_equal (execution->hops[CTL_HOP_PROVEN], 2);
  assert_true (execution->complete);
}

static void has_an_unknown_end (const ctl_execution_t *execution)
{
  assert_int_equal (parent_of (execution, 10), 5);
  assert_int_equal (parent_of (execution, 20), 0);
  assert_int_equal (subtask_of (execution, 20)->orphan, WEFT_REASON_CONTEXT);
  assert_false (execution->complete);
}

/* A caller under weft made the id: what it sent reached the gateway, not the callee. */
static void test_below_a_caller_under_weft (void **state)
{
  (void) state;
  gateway (4002);
  weft_report_t *root = add (3, WEFT_REPORT_CAPTURE, 5, 1, 99, 4000, 79);
  root->request = 0;
  root->flags = WEFT_REPORT_ROOT;
  add (3, WEFT_REPORT_EMBED, 5, 5, 95, 4001, 80)->flags = 0;
  in_every_order (is_a_chain);
  copy[2].report.peer = at (5005);
  in_every_order (has_an_unknown_end);
  copy[1] = copy[--copies]; // nothing is told of how it went on
  in_every_order (has_an_unknown_end);
}

/* In two parts, whatever stands in which: never a wrong caller, and what is known stays. */
static void test_in_parts (void **state)
{
  (void) state;
  uint32_t order[MAX] = {0, 1, 2, 3, 4, 5, 6};
  for (uint16_t client = 4002; client <= 5002; client += 1000)
    for (uint32_t bits = 1; bits < 7; bits++) {
      gateway (client);
      ctl_execution_t *whole = assembled (order, bits), *other = assembled (order, 7 & ~bits);
      assert_int_equal (ctl_execution_merge (whole, other), 0);
      assert_int_equal (parent_of (whole, 10), 0);
      assert_int_equal (subtask_of (whole, 10)->hop, CTL_HOP_CAPTURE_ONLY);
      int together = client == 4002 && (bits & 6) % 6 == 0;
      assert_int_equal (parent_of (whole, 20), together ? 10 : 0);
      assert_int_equal (subtask_of (whole, 20)->orphan, together ? WEFT_REASON_NONE : WEFT_REASON_CONTEXT);
      assert_int_equal (whole->complete, together);
      ctl_execution_destroy (&whole);
      ctl_execution_destroy (&other);
    }
}

/* Open at first, answered later, in two parts: one request. */
static void test_an_answer_in_a_later_part (void **state)
{
  (void) state;
  uint32_t order[MAX] = {0, 1, 2, 3};
  gateway (4002);
  add (0, WEFT_REPORT_EMBED, 10, 20, 75, 4002, 81);
  copy[1].report.flags |= WEFT_REPORT_OPEN;
  for (uint32_t bits = 1; bits < 8; bits += 6) {
    ctl_execution_t *whole = assembled (order, bits | 2), *other = assembled (order, 8);
    assert_int_equal (ctl_execution_merge (whole, other), 0);
    assert_int_equal (whole->count, 2);
    assert_int_equal (parent_of (whole, bits == 7 ? 20 : whole->subtasks[1].id), 10);
    ctl_execution_destroy (&whole);
    ctl_execution_destroy (&other);
  }
}

/* Beyond the bound they are counted, and the tree is not whole. */
static void test_without_end (void **state)
{
  (void) state;
  ctl_instances_t *instances = ctl_instances_new ();
  forest_hello (instances);
  ctl_correlate_t *correlate = ctl_correlate_new (instances, 0);
  ctl_execution_t *execution = NULL;
  for (uint32_t i = 0; i < WEFT_SENDINGS_MAX + 5; i++) {
    gateway (4002);
    copy[1].report.start_ns += i;
    send (correlate, &copy[i ? 1 : 0]);
  }
  assert_int_equal (ctl_correlate_find (correlate, (const uint8_t[16]){1, 2, 3}, &execution), 0);
  assert_int_equal (execution->hops[CTL_HOP_EMBED_ONLY], WEFT_SENDINGS_MAX);
  assert_int_equal (execution->truncated, 4);
  assert_false (execution->complete);
  ctl_execution_destroy (&execution);
  ctl_correlate_destroy (&correlate);
  ctl_instances_destroy (&instances);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_the_connection_says_whose_it_is),
      cmocka_unit_test (test_nobody_captures_it),
      cmocka_unit_test (test_another_connection_says_nothing),
      cmocka_unit_test (test_an_orphan_is_not_its_own_caller),
      cmocka_unit_test (test_a_fan_out_keeps_its_legs),
      cmocka_unit_test (test_below_a_caller_under_weft),
      cmocka_unit_test (test_in_parts),
      cmocka_unit_test (test_an_answer_in_a_later_part),
      cmocka_unit_test (test_without_end),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
