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

/* Every byte in the place of every digit: 0-9 and a-f are digits, and nothing else is. */
static void test_digits (void **state)
{
  static const char digits[] = "0123456789abcdef";
  for (size_t at = 3; at < 52; at++) {
    char text[PROBE_TRACEPARENT_SIZE + 1] = "00-" TASK "-" REQUEST "-01";
    if (text[at] == '-')
      continue;
    for (int c = 0; c < 256; c++) {
      probe_trace_t trace = {.request = 1};
      text[at] = (char) c;
      const char *digit = c ? strchr (digits, c) : NULL;
      assert_int_equal (probe_traceparent_parse (text, PROBE_TRACEPARENT_SIZE, &trace),
                        digit ? 0 : WEFT_E_MALFORMED);
      if (!digit)
        continue;
      size_t n = at < 35 ? at - 3 : at - 36; // its number in the id
      unsigned byte = at < 35 ? trace.task[n / 2] : trace.request >> (56 - n / 2 * 8) & 0xff;
      assert_int_equal (n % 2 ? byte & 15 : byte >> 4, digit - digits);
    }
  }
}

static void test_hex (void **state)
{
  static const char *const texts[] = {"0123456789abcdef", "fedcba9876543210", "00000000000000a0"};
  static const uint64_t values[] = {0x0123456789abcdef, 0xfedcba9876543210, 0xa0};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    char out[16];
    probe_hex_put (out, values[i]);
    assert_memory_equal (out, texts[i], sizeof out);
  }
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
      cmocka_unit_test (test_valid), cmocka_unit_test (test_invalid), cmocka_unit_test (test_private),
      cmocka_unit_test (test_put),   cmocka_unit_test (test_digits),  cmocka_unit_test (test_hex),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
