/* SPDX-License-Identifier: Apache-2.0 */
/* --embed-to, --match-header, --exclude: from words to the instruction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../common/pattern.h"
#include "../../../../common/status.h"
#include "../../../../controller/cli/scope.h"

static weft_instruction_t order;

static int read_scope (const char *line, const char *match)
{
  static char text[4096];
  char *argv[2 * WEFT_OPTIONS_MAX] = {(char *) (uintptr_t) "instruct"};
  int argc = 1;
  ctl_call_t call;
  snprintf (text, sizeof text, "%s", line);
  for (char *word = strtok (text, " "); word; word = strtok (NULL, " "))
    argv[argc++] = word;
  setenv ("WEFT_CONTROLLER", "ipc:///tmp/none", 1);
  assert_int_equal (ctl_call_parse (&call, ctl_verb_find ("instruct"), argc, argv), 0);
  memset (&order, 0, sizeof order);
  snprintf (order.match, sizeof order.match, "%s", match);
  return ctl_scope_read (&call, &order);
}

/* The networks of the order, in one text. */
static const char *networks (void)
{
  static char text[WEFT_NETWORKS_MAX * WEFT_NETWORK_TEXT_MAX];
  *text = 0;
  for (uint32_t n = 0; n < order.network_count; n++) {
    char one[WEFT_NETWORK_TEXT_MAX];
    weft_network_format (&order.networks[n], one);
    snprintf (text + strlen (text), sizeof text - strlen (text), "%s%s", n ? " " : "", one);
  }
  return text;
}

static int excluded (const char *name)
{
  for (uint32_t n = 0; n < order.exclude_count; n++)
    if (weft_pattern_holds (order.excludes[n], name, strlen (name)))
      return 1;
  return 0;
}

static void test_embed_to (void **state)
{
  static const struct {
    const char *line, *networks;
    uint32_t embed_to;
  } rows[] = {
      {"", "", 0},
      {"--embed-to private", "", 0},
      {"--embed-to any", "", 1},
      {"--embed-to any,10.0.0.0/8", "", 1},
      {"--embed-to 10.0.0.0/8", "10.0.0.0/8", 0},
      {"--embed-to 10.0.0.0/8,192.168.7.0/24 --embed-to fd00::/8", "10.0.0.0/8 192.168.7.0/24 fd00::/8", 0},
      {"--embed-to 10.0.0.0/8 --embed-to 10.0.0.0/8", "10.0.0.0/8", 0},
      {"--embed-to private,203.0.113.0/24",
       "203.0.113.0/24 127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 169.254.0.0/16 ::1/128 fc00::/7 "
       "fe80::/10",
       0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal (read_scope (rows[i].line, ""), 0);
    assert_string_equal (networks (), rows[i].networks);
    assert_int_equal (order.embed_to, rows[i].embed_to);
  }
}

static void test_bad_embed_to (void **state)
{
  char line[1024] = "--embed-to 10.0.0.0/32";
  assert_int_equal (read_scope ("--embed-to somewhere", ""), WEFT_E_USAGE);
  assert_int_equal (read_scope ("--embed-to 10.0.0.0/8,", ""), WEFT_E_USAGE);
  assert_int_equal (read_scope ("--embed-to 10.1.0.0/8", ""), WEFT_E_USAGE);
  assert_int_equal (read_scope ("--embed-to privateer", ""), WEFT_E_USAGE);
  for (int n = 1; n <= WEFT_NETWORKS_MAX; n++) {
    assert_int_equal (read_scope (line, ""), 0);
    snprintf (line + strlen (line), sizeof line - strlen (line), ",10.0.0.%d", n);
  }
  assert_int_equal (read_scope (line, ""), WEFT_E_USAGE);
}

static void test_header (void **state)
{
  assert_int_equal (read_scope ("--match-header X-Debug", ""), 0);
  assert_string_equal (order.header, "x-debug");
  assert_int_equal (read_scope ("--match-header x-debug:1", ""), WEFT_E_USAGE);
  assert_int_equal (read_scope ("--match-header a23456789012345678901234567890b", ""), 0);
  assert_int_equal (read_scope ("--match-header a234567890123456789012345678901b", ""), WEFT_E_USAGE);
}

static void test_excluded_by_themselves (void **state)
{
  static const char *const machines[] = {"GET /health",
                                         "GET /health/live",
                                         "HEAD /healthz",
                                         "GET /livez",
                                         "GET /live",
                                         "GET /readyz",
                                         "GET /ready",
                                         "GET /ping",
                                         "GET /status",
                                         "GET /metrics",
                                         "GET /actuator/health",
                                         "GET /actuator/health/db",
                                         "GET /actuator/prometheus"};
  static const char *const people[] = {"GET /",         "GET /healthy",   "GET /orders/17/status",
                                       "GET /pingpong", "POST /checkout", "GET /api/health"};
  assert_int_equal (read_scope ("", ""), 0);
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
    assert_true (excluded (machines[i]));
  for (size_t i = 0; i < sizeof people / sizeof *people; i++)
    assert_false (excluded (people[i]));
}

static void test_asked_for_by_name (void **state)
{
  assert_int_equal (read_scope ("", "GET /health"), 0);
  assert_false (excluded ("GET /health"));
  assert_true (excluded ("GET /metrics"));
  assert_int_equal (read_scope ("", "/health/db"), 0);
  assert_false (excluded ("GET /health/db"));
  assert_int_equal (read_scope ("", "GET /**"), 0); // everything is no name
  assert_true (excluded ("GET /health"));
}

static void test_exclude (void **state)
{
  assert_int_equal (read_scope ("--exclude /admin/** --exclude /favicon.ico", ""), 0);
  assert_true (excluded ("GET /admin/x/y") && excluded ("GET /favicon.ico") && excluded ("GET /ping"));
  assert_int_equal (read_scope ("--exclude none", ""), 0);
  assert_int_equal (order.exclude_count, 0);
  assert_int_equal (read_scope ("--exclude /admin/** --exclude none", ""), 0);
  assert_int_equal (order.exclude_count, 1);
  assert_int_equal (read_scope ("--exclude /admin/**", "POST /admin/**"), 0); // who says both means both
  assert_true (excluded ("POST /admin/x"));
  assert_int_equal (read_scope ("--exclude admin", ""), WEFT_E_USAGE);
  char line[1024] = "--exclude none";
  for (int n = 0; n < WEFT_EXCLUDES_MAX; n++)
    snprintf (line + strlen (line), sizeof line - strlen (line), " --exclude /%d", n);
  assert_int_equal (read_scope (line, ""), 0);
  assert_int_equal (order.exclude_count, WEFT_EXCLUDES_MAX);
  snprintf (line + strlen (line), sizeof line - strlen (line), " --exclude /x");
  assert_int_equal (read_scope (line, ""), WEFT_E_USAGE);
}

static void test_put (void **state)
{
  assert_int_equal (read_scope ("--embed-to 10.0.0.0/8 --match-header X-A --exclude none --exclude /x", ""),
                    0);
  json_t *request = json_object ();
  ctl_scope_put (request, &order);
  char *text = json_dumps (request, JSON_COMPACT | JSON_SORT_KEYS);
  assert_string_equal (
      text,
      "{\"embed_to\":\"private\",\"excludes\":[\"/x\"],\"header\":\"x-a\",\"networks\":[\"10.0.0.0/8\"]}");
  free (text);
  json_decref (request);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_embed_to), cmocka_unit_test (test_bad_embed_to),
      cmocka_unit_test (test_header),   cmocka_unit_test (test_excluded_by_themselves),
      cmocka_unit_test (test_exclude),  cmocka_unit_test (test_asked_for_by_name),
      cmocka_unit_test (test_put),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
