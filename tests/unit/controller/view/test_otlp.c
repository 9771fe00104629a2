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
      cmocka_unit_test (test_what_a_collector_answers),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
