/* SPDX-License-Identifier: Apache-2.0 */
/* The list of W3C Trace Context level 2, 3.3: what is one, what is kept of a
 * long one, and that no cut of its bytes shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../instance/probe/tracestate.h"

#define LIST_MAX (32 * 330)

/* Fields are parted by '\n', as one head may have several. Every byte a call of its own if `single`. */
static void read_fields (probe_tracestate_t *self, const char *fields, int single)
{
  probe_tracestate_begin (self);
  for (const char *at = fields;; at++) {
    size_t size = strcspn (at, "\n");
    for (size_t i = 0; single && i < size; i++)
      probe_tracestate_feed (self, at + i, 1);
    if (!single)
      probe_tracestate_feed (self, at, size);
    probe_tracestate_end (self);
    at += size;
    if (!*at)
      return;
  }
}

static void check (const char *fields, const char *expected)
{
  probe_tracestate_t self;
  for (int single = 0; single < 2; single++) {
    memset (&self, 0xee, sizeof self);
    read_fields (&self, fields, single);
    size_t size = probe_tracestate_size (&self);
    if (size != strlen (expected) || memcmp (self.text, expected, size) != 0)
      fail_msg ("'%s' became '%.*s', not '%s'", fields, (int) size, self.text, expected);
  }
}

static void test_lists (void **state)
{
  static const char *const same[] = {"foo=1",
                                     "foo=1,bar=2",
                                     "0a=1",
                                     "a-b_c*d/e@f=x",
                                     "k=a b",
                                     "k=  lead",
                                     "k=!\"#$%&'()*+-./:;<>?@[\\]^_`{|}~",
                                     "t@v=1",
                                     "foo=1,foo=2"};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    check (same[i], same[i]);
  check ("foo=1 \t , \t bar=2, \t baz=3", "foo=1,bar=2,baz=3");
  check (" \tfoo=1 \t ", "foo=1");
  check ("foo=1\nbar=2", "foo=1,bar=2");
  check ("foo=1,bar=2\nrojo=3,congo=4\nbaz=5", "foo=1,bar=2,rojo=3,congo=4,baz=5");
  check ("", "");
  check (" \t \n,,  ,\nfoo=1,,bar=2,", "foo=1,bar=2");
}

static void test_no_lists (void **state)
{
  static const char *const texts[] = {"foo",       "foo=",         "=1",       "foo =1",       "FOO=1",
                                      "foo.bar=1", "foo=1,bar",    "foo=a=b",  "@a=1",         "-a=1",
                                      "foo=1\n=",  "foo=1;bar= ,", "foo=\x7f", "foo=\xc3\xa4", "foo=a\tb",
                                      "fo\to=1",   "foo= \t,a=1",  "foo=\x01"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    check (texts[i], "");
}

static void test_key_and_value_limits (void **state)
{
  char text[1024];
  for (int size = 255; size <= 257; size++) {
    snprintf (text, sizeof text, "%0*d=1", size, 0);
    check (text, size <= 256 ? text : "");
    snprintf (text, sizeof text, "k=%0*d", size, 0);
    check (text, size <= 256 ? text : "");
    snprintf (text, sizeof text, "k=a%*sb", size - 2, ""); // blanks inside count
    check (text, size <= 256 ? text : "");
  }
}

static void test_members (void **state)
{
  for (int count = 31; count <= 33; count++) {
    char text[512] = "";
    for (int i = 0; i < count; i++)
      snprintf (text + strlen (text), sizeof text - strlen (text), "%sbar%02d=%02d", i ? "," : "", i, i);
    check (text, count <= 32 ? text : "");
    char *comma = strchr (text, ',');
    *comma = '\n'; // in two fields the same
    char joined[512];
    snprintf (joined, sizeof joined, "%s", text);
    joined[comma - text] = ',';
    check (text, count <= 32 ? joined : "");
  }
}

static void put_member (char *list, const char *comma, const char *member)
{
  size_t size = strlen (list);
  snprintf (list + size, LIST_MAX - size, "%s%s", comma, member);
}

/* T3 on whole lists: what the specification says, in its own order. */
static void cut_list (char members[][320], int count, char *out)
{
  size_t total = 0;
  for (int i = 0; i < count; i++)
    total += strlen (members[i]) + (i > 0);
  int kept[32], n = 0;
  for (int i = 0; i < count; i++)
    if (total <= 512 || strlen (members[i]) <= 128)
      kept[n++] = i;
  for (;; n--) {
    *out = 0;
    for (int i = 0; i < n; i++)
      put_member (out, i ? "," : "", members[kept[i]]);
    if (strlen (out) <= 512)
      return;
  }
}

static void test_long_lists (void **state)
{
  static char members[32][320], text[LIST_MAX], expected[LIST_MAX];
  unsigned seed = 7, cut = 0;
  for (int round = 0; round < 20000; round++) {
    int count = 1 + rand_r (&seed) % 32, most = rand_r (&seed) % 3 ? 40 : 250;
    *text = 0;
    for (int i = 0; i < count; i++) {
      int size = 1 + rand_r (&seed) % (rand_r (&seed) % 4 ? most : 250);
      snprintf (members[i], sizeof members[i], "k%02d=%0*d", i, size, i);
      put_member (text, i ? rand_r (&seed) % 2 ? " , " : "," : "", members[i]);
    }
    cut_list (members, count, expected);
    cut += strlen (text) > 512;
    check (text, expected);
  }
  assert_true (cut > 1000 && cut < 20000);
}

/* T4 for bytes of any kind; and what is kept is a list itself, and stays what it is. */
static void test_any_bytes (void **state)
{
  static const char some[] = "abz019,,,,===  \t@-/Z.\x7f";
  unsigned seed = 5, lists = 0;
  for (int round = 0; round < 300000; round++) {
    char text[700];
    probe_tracestate_t whole, cut, again;
    size_t size = (size_t) (rand_r (&seed) % (rand_r (&seed) % 50 ? 12 : 700));
    for (size_t i = 0; i < size; i++)
      text[i] = some[(unsigned) rand_r (&seed) % (sizeof some - 1)];
    probe_tracestate_begin (&whole);
    probe_tracestate_feed (&whole, text, size);
    probe_tracestate_end (&whole);
    probe_tracestate_begin (&cut);
    for (size_t at = 0, piece; at < size; at += piece) {
      piece = 1 + (size_t) rand_r (&seed) % 5;
      piece = piece < size - at ? piece : size - at;
      probe_tracestate_feed (&cut, text + at, piece);
    }
    probe_tracestate_end (&cut);
    size_t kept = probe_tracestate_size (&whole);
    assert_int_equal (probe_tracestate_size (&cut), kept);
    assert_memory_equal (whole.text, cut.text, kept);
    probe_tracestate_begin (&again);
    probe_tracestate_feed (&again, whole.text, kept);
    probe_tracestate_end (&again);
    assert_int_equal (probe_tracestate_size (&again), kept);
    assert_memory_equal (again.text, whole.text, kept);
    lists += kept != 0;
  }
  assert_true (lists > 1000);
}

static void test_put (void **state)
{
  char out[PROBE_TRACESTATE_FIELD_MAX];
  const char *list = "foo=1,bar=22,b=3";
  assert_int_equal (probe_tracestate_put (out, sizeof out, list, 16), 30);
  assert_memory_equal (out, "tracestate: foo=1,bar=22,b=3\r\n", 30);
  assert_int_equal (probe_tracestate_put (out, 29, list, 16), 26);
  assert_memory_equal (out, "tracestate: foo=1,bar=22\r\n", 26);
  assert_int_equal (probe_tracestate_put (out, 25, list, 16), 19);
  assert_memory_equal (out, "tracestate: foo=1\r\n", 19);
  assert_int_equal (probe_tracestate_put (out, 18, list, 16), 0);
  assert_int_equal (probe_tracestate_put (out, 0, list, 16), 0);
  assert_int_equal (probe_tracestate_put (out, sizeof out, list, 0), 0);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_lists),      cmocka_unit_test (test_no_lists),
      cmocka_unit_test (test_members),    cmocka_unit_test (test_key_and_value_limits),
      cmocka_unit_test (test_put),        cmocka_unit_test (test_any_bytes),
      cmocka_unit_test (test_long_lists),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
