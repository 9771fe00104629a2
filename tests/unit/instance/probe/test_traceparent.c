/* SPDX-License-Identifier: Apache-2.0 */
/* traceparent: what W3C Trace Context allows, and what it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../../../../common/status.h"
#include "../../../../instance/probe/traceparent.h"

#define TASK    "0af7651916cd43dd8448eb211c80319c"
#define REQUEST "b7ad6b7169203331"

static void test_valid (void **state)
{
  static const char *const texts[] = {"00-" TASK "-" REQUEST "-01", "00-" TASK "-" REQUEST "-00",
                                      "00-" TASK "-" REQUEST "-ff", "01-" TASK "-" REQUEST "-01",
                                      "cc-" TASK "-" REQUEST "-01-what-the-future-will-be-like"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    probe_trace_t trace = {.request = 1};
    assert_int_equal (probe_traceparent_parse (texts[i], strlen (texts[i]), &trace), 0);
    assert_true (trace.request == 0xb7ad6b7169203331ull);
    assert_int_equal (trace.task[0], 0x0a);
    assert_int_equal (trace.task[1], 0xf7);
    assert_int_equal (trace.task[15], 0x9c);
  }
}

static void test_invalid (void **state)
{
  static const char *const texts[] = {
      "",
      "00-" TASK "-" REQUEST,
      "00-" TASK "-" REQUEST "-0",
      "00-" TASK "-" REQUEST "-01-",
      "00-" TASK "-" REQUEST "-011",
      "ff-" TASK "-" REQUEST "-01",
      "01-" TASK "-" REQUEST "-01.x",
      "0g-" TASK "-" REQUEST "-01",
      "00-" TASK "-" REQUEST "-0x",
      "00_" TASK "-" REQUEST "-01",
      "00-" TASK "_" REQUEST "-01",
      "00-" TASK "-" REQUEST "_01",
      "00-00000000000000000000000000000000-" REQUEST "-01",
      "00-" TASK "-0000000000000000-01",
      "00-0AF7651916CD43DD8448EB211C80319C-" REQUEST "-01",
      "00-" TASK "-B7AD6B7169203331-01",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    probe_trace_t trace = {.request = 1};
    assert_int_equal (probe_traceparent_parse (texts[i], strlen (texts[i]), &trace), WEFT_E_MALFORMED);
    assert_true (trace.request == 1);
  }
}

static void test_private (void **state)
{
  probe_trace_t trace = {.request = 1};
  static const char *const bad[] = {"",
                                    TASK "-" REQUEST "0",
                                    TASK "_" REQUEST,
                                    TASK "-0000000000000000",
                                    "00000000000000000000000000000000-" REQUEST,
                                    TASK "-b7ad6b716920333"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal (probe_weft_task_parse (bad[i], strlen (bad[i]), &trace), WEFT_E_MALFORMED);
  assert_true (trace.request == 1);
  assert_int_equal (probe_weft_task_parse (TASK "-" REQUEST, 49, &trace), 0);
  assert_true (trace.request == 0xb7ad6b7169203331ull);
}

static void test_put (void **state)
{
  char out[PROBE_TRACE_FIELD_MAX];
  probe_trace_t trace = {.task = {0x0a, [15] = 0x9c}, .request = 0x1f};
  static const char w3c[] = "traceparent: 00-0a00000000000000000000000000009c-000000000000001f-01\r\n";
  static const char ours[] = "weft-task: 0a00000000000000000000000000009c-000000000000001f\r\n";
  assert_int_equal (probe_traceparent_put (out, &trace, 0), sizeof w3c - 1);
  assert_memory_equal (out, w3c, sizeof w3c - 1);
  assert_int_equal (probe_weft_task_put (out, &trace), sizeof ours - 1);
  assert_memory_equal (out, ours, sizeof ours - 1);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_valid),
      cmocka_unit_test (test_invalid),
      cmocka_unit_test (test_private),
      cmocka_unit_test (test_put),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
