/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests start a task: method and path, a field that is there,
 * exclusions, the sample. Decided where the head is complete. */
#include "../../../support/fake_kernel.h"

#define FD       9
#define OK       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
#define GET(...) "GET /a HTTP/1.1\r\nHost: x\r\n" __VA_ARGS__ "\r\n"

/* The number of the instruction that the request was a root of, 0: of none. */
static uint32_t root_of (const char *text, size_t piece)
{
  fake_report_count = 0;
  fake_accept (FD);
  app_hear_by (FD, text, piece);
  app_say (FD, OK);
  probe_connection_closing (FD);
  return fake_report_count ? fake_reports[0].report.instruction : 0;
}

static void want_header (uint32_t rule, const char *name)
{
  snprintf (fake_config.wanted.name[rule], WEFT_HEADER_MAX, "%s", name);
  fake_config.wanted.asks |= 1u << rule;
}

static void exclude (uint16_t rules, const char *pattern)
{
  uint32_t n = fake_config.filter.exclude_count++;
  snprintf (fake_config.filter.exclude[n], WEFT_MATCH_MAX, "%s", pattern);
  fake_config.filter.exclude_rules[n] = rules;
}

static void test_header (void **state)
{
  fake_rule (4, "");
  want_header (0, "x-debug");
  static const char *const with[] = {GET ("x-debug: 1\r\n"), GET ("X-DEBUG:\r\n"),
                                     GET ("A: b\r\nX-Debug: no\r\nB: c\r\n"),
                                     GET ("Content-Length: 0\r\nx-debug:1\r\ntraceparent: bad\r\n")};
  static const char *const without[] = {GET (),
                                        GET ("x-debugger: 1\r\n"),
                                        GET ("x-debu: 1\r\n"),
                                        GET ("a: x-debug: 1\r\n"),
                                        "GET /x-debug:1?x-debug:1 HTTP/1.1\r\n\r\n",
                                        GET ("a: b\r\n x-debug: 1\r\n")};
  for (size_t piece = 1; piece < 50; piece += 7) {
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
      assert_int_equal (root_of (with[i], piece), 4);
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
      assert_int_equal (root_of (without[i], piece), 0);
  }
}

/* The next request on a connection has fields of its own. */
static void test_header_of_this_request (void **state)
{
  fake_rule (4, "");
  want_header (0, "x-debug");
  fake_accept (FD);
  for (int i = 0; i < 6; i++) {
    app_hear (FD, i % 2 ? GET ("x-debug: 1\r\n") : GET ());
    app_say (FD, OK);
    assert_int_equal (fake_report_count, (i + 1) / 2);
  }
}

static void test_each_rule_its_own (void **state)
{
  fake_rule (4, "");
  fake_rule (5, "");
  fake_rule (6, "POST /**");
  want_header (0, "x-debug");
  want_header (2, "content-length");
  assert_int_equal (root_of (GET ("x-debug: 1\r\n"), SIZE_MAX), 4);
  assert_int_equal (root_of (GET (), SIZE_MAX), 5);
  fake_config.rule_count = 1;
  assert_int_equal (root_of (GET (), SIZE_MAX), 0);
  fake_config.rule_count = 3;
  snprintf (fake_config.rules[1].match, WEFT_MATCH_MAX, "/none");
  assert_int_equal (root_of ("POST /b HTTP/1.1\r\nContent-Length: 0\r\n\r\n", SIZE_MAX), 6);
  assert_int_equal (root_of ("POST /b HTTP/1.1\r\n\r\n", SIZE_MAX), 0);
}

/* Rules that came while the head was on its way: what was seen before says nothing about them. */
static void test_rules_that_change_under_way (void **state)
{
  fake_rule (4, "");
  want_header (0, "x-debug");
  fake_accept (FD);
  app_hear (FD, "GET /a HTTP/1.1\r\nx-debug: 1\r\n");
  fake_config.serial = 2;
  want_header (0, "x-other");
  app_hear (FD, "a: b\r\n\r\n");
  app_say (FD, OK);
  assert_int_equal (fake_report_count, 0);
  app_hear (FD, "GET /a HTTP/1.1\r\nx-debug: 1\r\n");
  fake_config.serial = 3;
  app_hear (FD, "x-other: b\r\n\r\n");
  app_say (FD, OK);
  assert_int_equal (fake_report_count, 1);
}

static void test_excluded (void **state)
{
  fake_rule (4, "");
  exclude (1, "/health");
  exclude (1, "/admin/**");
  assert_int_equal (root_of ("GET /health HTTP/1.1\r\n\r\n", SIZE_MAX), 0);
  assert_int_equal (root_of ("GET /health?q=1 HTTP/1.1\r\n\r\n", SIZE_MAX), 0);
  assert_int_equal (root_of ("POST /admin/x HTTP/1.1\r\n\r\n", SIZE_MAX), 0);
  assert_int_equal (fake_counter (SHM_COUNT_EXCLUDED), 3);
  assert_int_equal (fake_counter (SHM_COUNT_UNMATCHED), 3);
  assert_int_equal (root_of ("GET /healthy HTTP/1.1\r\n\r\n", SIZE_MAX), 4);
  assert_int_equal (fake_counter (SHM_COUNT_EXCLUDED), 3);
}

static void test_excluded_by_one_rule_only (void **state)
{
  fake_rule (4, "");
  fake_rule (5, "GET /health");
  exclude (1, "/health");
  assert_int_equal (root_of ("GET /health HTTP/1.1\r\n\r\n", SIZE_MAX), 5);
  assert_int_equal (root_of ("PUT /health HTTP/1.1\r\n\r\n", SIZE_MAX), 0);
  assert_int_equal (fake_counter (SHM_COUNT_EXCLUDED), 1);
}

/* It asks for nothing on behalf of a task that is not there, and says so once. */
static void test_excluded_calls_nobody (void **state)
{
  fake_rule (4, "");
  exclude (1, "/health");
  fake_accept (FD);
  fake_connect (FD + 1);
  app_hear (FD, "GET /health HTTP/1.1\r\n\r\n");
  app_say (FD + 1, GET ());
  assert_sent (FD + 1, GET (), strlen (GET ()));
  assert_int_equal (fake_reports[0].report.kind, WEFT_REPORT_BARE);
  assert_int_equal (fake_reports[0].report.reason, WEFT_REASON_UNMATCHED);
}

/* A task is in the sample or not, whoever asks: any VM, any number of the rule. */
static void test_sample_is_the_tasks (void **state)
{
  unsigned in = 0;
  for (unsigned n = 1; n <= 4000; n++) {
    char text[160];
    uint32_t found[2];
    snprintf (text, sizeof text,
              "GET /a HTTP/1.1\r\ntraceparent: 00-%016llx%016llx-b7ad6b7169203331-01\r\n\r\n",
              n * 0x9e3779b97f4a7c15ull, n * 0xc2b2ae3d27d4eb4full);
    for (int vm = 0; vm < 2; vm++) {
      fake_setup (NULL);
      fake_rule (4 + (uint32_t) vm, "");
      fake_config.rules[0].sample_den = 10;
      found[vm] = root_of (text, SIZE_MAX);
    }
    assert_int_equal (!found[0], !found[1]);
    in += found[0] != 0;
  }
  assert_in_range (in, 300, 500);
}

/* Roots, whose ids are made here, follow the same rule. */
static void test_sample_of_roots (void **state)
{
  unsigned roots = 0;
  for (unsigned n = 0; n < 4000; n++) {
    fake_setup (NULL);
    fake_rule (4, "");
    fake_config.rules[0].sample_den = 10;
    if (!root_of (GET (), SIZE_MAX))
      continue;
    roots++;
    char text[160], task[33] = "";
    for (int i = 0; i < 16; i++)
      snprintf (task + 2 * i, 3, "%02x", fake_reports[0].report.task[i]);
    snprintf (text, sizeof text, "GET /a HTTP/1.1\r\ntraceparent: 00-%s-b7ad6b7169203331-01\r\n\r\n", task);
    assert_int_equal (root_of (text, SIZE_MAX), 4);
  }
  assert_in_range (roots, 300, 500);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, fake_setup)
  const struct CMUnitTest tests[] = {
      TEST (test_header),
      TEST (test_header_of_this_request),
      TEST (test_each_rule_its_own),
      TEST (test_rules_that_change_under_way),
      TEST (test_excluded),
      TEST (test_excluded_by_one_rule_only),
      TEST (test_excluded_calls_nobody),
      TEST (test_sample_is_the_tasks),
      TEST (test_sample_of_roots),
  };
  return cmocka_run_group_tests (tests, NULL, fake_teardown);
}
