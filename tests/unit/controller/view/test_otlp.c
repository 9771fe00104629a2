/* SPDX-License-Identifier: Apache-2.0 */
/* What a collector reads is checked by tests/flow/test_export.py with a decoder of OpenTelemetry's
 * own; here are the messages. */
#include "golden.h"

#include <otlp.pb-c.h>

#include "../../../../common/status.h"
#include "../../../../controller/view/otlp.h"

typedef struct {
  uint32_t messages, spans, most;
  int status;     /* what take returns */
  char name[128]; /* of the last span */
} taken_t;

static int take (const void *data, size_t size, uint32_t spans, void *arg)
{
  taken_t *self = arg;
  Otlp__Request *request = otlp__request__unpack (NULL, size, data);
  assert_non_null (request);
  uint32_t count = 0;
  for (size_t n = 0; n < request->n_resource_spans; n++) {
    const Otlp__ScopeSpans *scoped = request->resource_spans[n]->scope_spans[0];
    count += (uint32_t) scoped->n_spans;
    snprintf (self->name, sizeof self->name, "%s", scoped->spans[scoped->n_spans - 1]->name);
  }
  assert_int_equal (count, spans);
  self->messages++;
  self->spans += spans;
  self->most = spans > self->most ? spans : self->most;
  otlp__request__free_unpacked (request, NULL);
  return self->status;
}

/* The first message, decoded. */
static int keep (const void *data, size_t size, uint32_t spans, void *arg)
{
  Otlp__Request **request_p = arg;
  assert_null (*request_p);
  *request_p = otlp__request__unpack (NULL, size, data);
  return 0;
}

static ctl_otlp_t *otlp_new (uint32_t spans_max, taken_t *taken)
{
  ctl_otlp_options_t options = {spans_max, NULL, take, taken};
  ctl_otlp_t *self = ctl_otlp_new (&options);
  assert_non_null (self);
  return self;
}

/* O2: 22 spans, and again. */
static void test_a_large_execution_goes_out_in_parts (void **state)
{
  (void) state;
  taken_t taken = {0};
  ctl_otlp_t *otlp = otlp_new (5, &taken);
  ctl_execution_t *shop = golden_shop (1, 1);
  for (int round = 1; round < 3; round++) {
    assert_int_equal (ctl_otlp_add (otlp, shop), 0);
    assert_int_equal (ctl_otlp_waiting (otlp), 2);
    assert_int_equal (ctl_otlp_flush (otlp), 0);
    assert_int_equal (ctl_otlp_waiting (otlp), 0);
    assert_int_equal (taken.messages, 5 * round);
    assert_int_equal (taken.spans, 22 * round);
  }
  assert_int_equal (taken.most, 5);
  assert_int_equal (ctl_otlp_flush (otlp), 0);
  assert_int_equal (taken.messages, 10);
  ctl_execution_destroy (&shop);
  ctl_otlp_destroy (&otlp);
  ctl_otlp_destroy (&otlp);
}

/* O3. */
static void test_a_text_that_is_no_utf8 (void **state)
{
  (void) state;
  taken_t taken = {0};
  ctl_otlp_t *otlp = otlp_new (100, &taken);
  ctl_execution_t *task = golden_new (1);
  golden_add (task, 1, 0, CTL_HOP_ROOT, "front", "cpython", "GET /\xc3\xa4\xff\xe2\x82/x", 0, 90);
  assert_int_equal (ctl_execution_settle (task), 0);
  assert_int_equal (ctl_otlp_add (otlp, task), 0);
  assert_int_equal (ctl_otlp_flush (otlp), 0);
  assert_string_equal (taken.name, "GET /\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd/x");
  ctl_execution_destroy (&task);
  ctl_otlp_destroy (&otlp);
}

static void test_a_refusal_is_passed_on_and_what_was_refused_is_gone (void **state)
{
  (void) state;
  taken_t taken = {.status = WEFT_E_DENIED};
  ctl_otlp_t *otlp = otlp_new (5, &taken);
  ctl_execution_t *shop = golden_shop (1, 1);
  assert_int_equal (ctl_otlp_add (otlp, shop), WEFT_E_DENIED);
  assert_int_equal (taken.messages, 1);
  assert_int_equal (ctl_otlp_waiting (otlp), 0);
  assert_int_equal (ctl_otlp_flush (otlp), 0);
  ctl_execution_destroy (&shop);
  ctl_otlp_destroy (&otlp);
}

/* ---- what a span says ------------------------------------------------------ */

static Otlp__Request *message_of (ctl_execution_t *execution)
{
  Otlp__Request *request = NULL;
  ctl_otlp_options_t options = {1000, NULL, keep, &request};
  ctl_otlp_t *otlp = ctl_otlp_new (&options);
  assert_non_null (otlp);
  assert_int_equal (ctl_otlp_add (otlp, execution), 0);
  assert_int_equal (ctl_otlp_flush (otlp), 0);
  ctl_otlp_destroy (&otlp);
  ctl_execution_destroy (&execution);
  assert_non_null (request);
  return request;
}

static const Otlp__Span *span_of (const Otlp__Request *request, uint8_t last_byte)
{
  for (size_t n = 0; n < request->n_resource_spans; n++) {
    const Otlp__ScopeSpans *scoped = request->resource_spans[n]->scope_spans[0];
    for (size_t i = 0; i < scoped->n_spans; i++)
      if (scoped->spans[i]->span_id.data[7] == last_byte)
        return scoped->spans[i];
  }
  fail_msg ("no span %u", last_byte);
  return NULL;
}

/* NULL: it is not there. */
static const Otlp__Value *value_of (const Otlp__Span *span, const char *key)
{
  for (size_t n = 0; n < span->n_attributes; n++)
    if (strcmp (span->attributes[n]->key, key) == 0)
      return span->attributes[n]->value;
  return NULL;
}

/* A request between two hosts: 1 called 2, which is 40 ms behind and was shifted; 3 nobody captured. */
static ctl_execution_t *two_hosts (int aligned)
{
  ctl_execution_t *task = golden_new (1);
  golden_add (task, 1, 0, CTL_HOP_ROOT, "front", "cpython", "GET /x", 0, 90);
  ctl_subtask_t *far = golden_add (task, 2, 1, CTL_HOP_PROVEN, "orders", "jvm", "GET /y", 10, 20);
  ctl_subtask_t *leaf = golden_add (task, 3, 2, CTL_HOP_EMBED_ONLY, "10.0.0.5:80", "", "GET /z", 12, 15);
  leaf->id = leaf->request;
  leaf->status = 0;
  leaf->error = WEFT_ERROR_TIMEOUT;
  far->shift_ns = leaf->shift_ns = leaf->sender_shift_ns = aligned ? -40000000 : 0;
  task->hosts = 2;
  task->aligned = (uint8_t) aligned;
  task->clock_uncertainty_ns = aligned ? 123456 : 0;
  assert_int_equal (ctl_execution_settle (task), 0);
  return task;
}

static void test_times_of_several_hosts_are_labelled (void **state)
{
  (void) state;
  for (int aligned = 0; aligned < 2; aligned++) {
    Otlp__Request *request = message_of (two_hosts (aligned));
    const Otlp__Span *top = span_of (request, 1), *sent = span_of (request, 1002 & 0xff),
                     *far = span_of (request, 2), *leaf = span_of (request, 1003 & 0xff);
    assert_string_equal (value_of (top, "weft.clock")->text, aligned ? "aligned" : "raw");
    assert_int_equal (value_of (top, "weft.hosts")->number, 2);
    const Otlp__Value *uncertainty = value_of (top, "weft.clock_uncertainty_ns");
    assert_true (aligned ? uncertainty && uncertainty->number == 123456 : !uncertainty);
    assert_null (value_of (far, "weft.clock")); /* of the task as a whole */
    assert_null (value_of (top, "weft.clock_shift_ns"));
    assert_null (value_of (sent, "weft.clock_shift_ns"));
    for (int n = 0; n < 2; n++) {
      const Otlp__Value *shift = value_of (n ? leaf : far, "weft.clock_shift_ns");
      assert_true (aligned ? shift && shift->number == -40000000 : !shift);
    }
    otlp__request__free_unpacked (request, NULL);
  }
  Otlp__Request *request = message_of (golden_shop (1, 1));
  assert_null (value_of (span_of (request, 1), "weft.clock")); /* one host: nothing to say */
  otlp__request__free_unpacked (request, NULL);
}

/* An error has a message where no HTTP status says it. */
static void test_an_error_says_what_it_was (void **state)
{
  (void) state;
  Otlp__Request *request = message_of (two_hosts (0));
  const Otlp__Span *leaf = span_of (request, 1003 & 0xff);
  assert_int_equal (leaf->status->code, OTLP__CODE__CODE_ERROR);
  assert_string_equal (leaf->status->message, "no answer within the time that the caller waits");
  assert_string_equal (value_of (leaf, "error.type")->text, "timeout");
  otlp__request__free_unpacked (request, NULL);
  request = message_of (golden_odd ());
  const Otlp__Span *failed = span_of (request, 4), *open = span_of (request, 2);
  assert_int_equal (failed->status->code, OTLP__CODE__CODE_ERROR);
  assert_string_equal (failed->status->message, "");
  assert_string_equal (value_of (failed, "error.type")->text, "503");
  assert_null (open->status);
  assert_true (value_of (open, "weft.open")->flag);
  otlp__request__free_unpacked (request, NULL);
}

static void test_what_a_collector_answers (void **state)
{
  (void) state;
  uint64_t rejected = 99;
  char why[32] = "?";
  assert_int_equal (ctl_otlp_read_answer ("", 0, &rejected, why, sizeof why), 0);
  assert_true (rejected == 0 && why[0] == 0);
  /* partial_success (1) { rejected_spans (1): 300, error_message (2): "too old" } */
  static const uint8_t partial[] = "\x0a\x0c\x08\xac\x02\x12\x07too old";
  assert_int_equal (ctl_otlp_read_answer (partial, sizeof partial - 1, &rejected, why, sizeof why), 0);
  assert_int_equal (rejected, 300);
  assert_string_equal (why, "too old");
  static const uint8_t negative[] = "\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  assert_int_equal (ctl_otlp_read_answer (negative, sizeof negative - 1, &rejected, why, sizeof why), 0);
  assert_int_equal (rejected, 0);
  assert_int_equal (ctl_otlp_read_answer ("{}", 2, &rejected, why, sizeof why), WEFT_E_MALFORMED);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_a_large_execution_goes_out_in_parts),
      cmocka_unit_test (test_a_text_that_is_no_utf8),
      cmocka_unit_test (test_a_refusal_is_passed_on_and_what_was_refused_is_gone),
      cmocka_unit_test (test_times_of_several_hosts_are_labelled),
      cmocka_unit_test (test_an_error_says_what_it_was),
      cmocka_unit_test (test_what_a_collector_answers),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
