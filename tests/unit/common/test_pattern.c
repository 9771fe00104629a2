/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h must follow these */
#include <cmocka.h>

#include "../../../common/clocks.h"
#include "../../../common/pattern.h"
#include "../../../common/status.h"

static int holds (const char *pattern, const char *name)
{
  /* Exact size on the heap: a read beyond it is seen by the sanitizer. */
  size_t size = strlen (name);
  char *copy = malloc (size ? size : 1);
  for (size_t i = 0; i < size; i++)
    copy[i] = name[i];
  int result = weft_pattern_holds (pattern, copy, size);
  free (copy);
  return result;
}

static void table (void **state)
{
  static const struct {
    const char *pattern, *name;
    int holds;
  } row[] = {
      {"", "GET /orders", 1},
      {"", "", 1},
      {"GET /orders", "GET /orders", 1},
      {"GET /orders", "POST /orders", 0},
      {"GET /orders", "get /orders", 0},
      {"GET /orders", "GET /orders/", 0},
      {"GET /orders", "GET /order", 0},
      {"GET /orders", "GETX /orders", 0},
      {"/orders", "DELETE /orders", 1},
      {"* /orders", "DELETE /orders", 1},
      {"* /orders", "DELETE /orderz", 0},
      {"GET /orders/*", "GET /orders/17", 1},
      {"GET /orders/*", "GET /orders/", 1},
      {"GET /orders/*", "GET /orders", 0},
      {"GET /orders/*", "GET /orders/17/items", 0},
      {"GET /orders/*/items", "GET /orders/17/items", 1},
      {"GET /orders/{id}/items", "GET /orders/17/items", 1},
      {"GET /orders/{id}/items", "GET /orders/{id}/items", 1},
      {"GET /orders/{id}", "GET /orders/1/2", 0},
      {"GET /a{b", "GET /a{b", 1},
      {"GET /a{b/c}", "GET /a{b/c}", 1},
      {"GET /orders/**", "GET /orders/17/items/3", 1},
      {"GET /orders/**", "GET /orders/", 1},
      {"GET /orders/**", "GET /orders", 0},
      {"GET /orders**", "GET /orders", 1},
      {"**", "GET /", 1},
      {"POST **", "GET /", 0},
      {"**/items", "GET /orders/17/items", 1},
      {"**/items", "GET /orders/17/items/3", 0},
      {"/a/**/z", "GET /a/b/c/z", 1},
      {"/a/**/z", "GET /a/z", 0},
      {"/a/**z", "GET /a/z", 1},
      {"/*.js", "GET /a.js.js", 1},
      {"/*.js", "GET /a.js.jsx", 0},
      {"/*a*b", "GET /xxaxxaxb", 1},
      {"/*a*b", "GET /xxbxxa", 0},
      {"/**/v*/x*y", "GET /a/v1/b/v2/xzzy", 1},
      {"/**/v*/x*y", "GET /a/v1/b/v2/xzz/y", 0},
      {"/**/a*b/c", "GET /aa/axxb/d/ab/c", 1},
      {"/**/a*b/**/c*d", "GET /1/axb/2/3/cxd", 1},
      {"/**a*b/c", "GET /a/ab/c", 1},
      {"/**ab*c", "GET /abab/abc", 1},
      {"/*", "GET /", 1},
      {"/*", "GET /a/b", 0},
      {"/orders", "/orders", 1},
      {"GET /orders", "/orders", 0},
      {"/orders", "", 0},
      {"/", "GET", 0},
  };
  for (size_t i = 0; i < sizeof (row) / sizeof (row[0]); i++) {
    char why[96];
    if (weft_pattern_check (row[i].pattern, why, sizeof (why)) < 0)
      fail_msg ("'%s' refused: %s", row[i].pattern, why);
    if (holds (row[i].pattern, row[i].name) != row[i].holds)
      fail_msg ("'%s' against '%s' is not %d", row[i].pattern, row[i].name, row[i].holds);
  }
}

static void refusals (void **state)
{
  static const char *const bad[] = {"POST",      "orders",   "POST orders", " /orders",   "GET  /orders",
                                    "GET /a?b",  "GET /a#b", "GET /a b",    "*",          "G@T /a",
                                    "GET /a\tb", "*/a",      "GET ",        "** /orders", "GET /a\x7f"};
  char why[128], pattern[WEFT_MATCH_MAX + 1];
  for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
    why[0] = 0;
    if (weft_pattern_check (bad[i], why, sizeof (why)) != WEFT_E_MALFORMED)
      fail_msg ("'%s' accepted", bad[i]);
    assert_true (strlen (why) > 10);
  }
  memset (pattern, 'a', sizeof (pattern));
  pattern[0] = '/';
  pattern[WEFT_MATCH_MAX - 1] = 0;
  assert_int_equal (weft_pattern_check (pattern, why, sizeof (why)), 0);
  pattern[WEFT_MATCH_MAX - 1] = 'a';
  pattern[WEFT_MATCH_MAX] = 0;
  assert_int_equal (weft_pattern_check (pattern, why, sizeof (why)), WEFT_E_RANGE);
  assert_int_equal (weft_pattern_check ("ABCDEFGHIJKLMNOP /a", why, sizeof (why)), WEFT_E_RANGE);
}

/* The plain recursive meaning, exponential and obviously right. */
static int reference (const char *p, const char *s, const char *end)
{
  if (*p == 0)
    return s == end;
  if (p[0] == '*' && p[1] == '*') {
    for (; s <= end; s++)
      if (reference (p + 2, s, end))
        return 1;
    return 0;
  }
  if (*p == '*') {
    for (;; s++) {
      if (reference (p + 1, s, end))
        return 1;
      if (s == end || *s == '/')
        return 0;
    }
  }
  return s < end && *s == *p && reference (p + 1, s + 1, end);
}

static void agrees_with_the_recursive_meaning (void **state)
{
  static const char pattern_alphabet[] = "ab/**", name_alphabet[] = "ab/";
  uint32_t seed = 1;
  for (int round = 0; round < 300000; round++) {
    char pattern[16] = "/", name[20] = "/";
    size_t pattern_size = 1, name_size = 1;
    seed = seed * 1664525u + 1013904223u;
    size_t want = 1 + (seed >> 16) % 9;
    while (pattern_size < want) {
      seed = seed * 1664525u + 1013904223u;
      pattern[pattern_size++] = pattern_alphabet[(seed >> 16) % 5];
    }
    seed = seed * 1664525u + 1013904223u;
    want = 1 + (seed >> 16) % 12;
    while (name_size < want) {
      seed = seed * 1664525u + 1013904223u;
      name[name_size++] = name_alphabet[(seed >> 16) % 3];
    }
    if (weft_pattern_holds (pattern, name, name_size) != reference (pattern, name, name + name_size))
      fail_msg ("'%s' against '%s'", pattern, name);
  }
}

/* What makes a backtracking matcher explode takes microseconds. */
static void stays_bounded (void **state)
{
  char name[WEFT_NAME_MAX];
  memset (name, 'a', sizeof (name));
  name[0] = '/';
  uint64_t begin = weft_clock_ns (CLOCK_THREAD_CPUTIME_ID); /* others may have the processor */
  assert_int_equal (weft_pattern_holds ("/**a*a*a*a*a*a*a*a*a*a*aaaaaaaaaaaaaaaaaaaab/", name, sizeof (name)),
                    0);
  for (size_t i = 50; i < sizeof (name); i += 50)
    name[i] = '/';
  assert_int_equal (
      weft_pattern_holds ("/**a**a**a**a**a*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab/**", name, sizeof (name)), 0);
  assert_in_range (weft_clock_ns (CLOCK_THREAD_CPUTIME_ID) - begin, 0, 50 * WEFT_NS_PER_MS);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (table),
      cmocka_unit_test (refusals),
      cmocka_unit_test (agrees_with_the_recursive_meaning),
      cmocka_unit_test (stays_bounded),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
