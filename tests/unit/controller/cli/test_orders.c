/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../common/status.h"
#include "../../../../controller/cli/nothing.h"
#include "../../../../controller/cli/orders.h"

#define ALL (WEFT_ACTION_ROOT | WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE)

/* Reads "--a b --c d" as options of `verb`. */
static int read_pinned (const char *verb, const char *line, const char (*on)[WEFT_SELECTOR_MAX],
                        uint32_t on_count, uint32_t actions, ctl_orders_t **ret_orders)
{
  static char text[2048];
  char *argv[2 * WEFT_OPTIONS_MAX] = {(char *) (uintptr_t) verb};
  int argc = 1;
  ctl_call_t call;
  snprintf (text, sizeof text, "%s", line);
  for (char *word = strtok (text, " "); word; word = strtok (NULL, " "))
    argv[argc++] = word;
  setenv ("WEFT_CONTROLLER", "ipc:///tmp/none", 1);
  assert_int_equal (ctl_call_parse (&call, ctl_verb_find (verb), argc, argv), 0);
  return ctl_orders_read (&call, on, on_count, actions, ret_orders);
}

static int read_orders (const char *verb, const char *line, uint32_t actions, ctl_orders_t **ret_orders)
{
  return read_pinned (verb, line, NULL, 0, actions, ret_orders);
}

static ctl_orders_t *orders (const char *line)
{
  ctl_orders_t *self = NULL;
  assert_int_equal (read_orders ("instruct", line, 0, &self), 0);
  return self;
}

static void assert_order (const ctl_orders_t *self, uint32_t n, uint32_t actions, uint32_t count,
                          const char *selector)
{
  assert_true (n < self->count);
  assert_int_equal (self->order[n].actions, actions);
  assert_int_equal (self->order[n].selector_count, count);
  assert_string_equal (self->order[n].selectors[count - 1], selector);
}

static void test_on_alone_is_everything (void **state)
{
  ctl_orders_t *self = orders ("--on service=front --on vm=jvm");
  assert_int_equal (self->count, 1);
  assert_order (self, 0, ALL, 2, "vm=jvm");
  assert_int_equal (self->order[0].lease_ms, WEFT_LEASE_MS);
  assert_int_equal (self->order[0].sample_num, 1);
  free (self);
}

static void test_named_actions_only (void **state)
{
  ctl_orders_t *self = orders ("--root service=front --embed service=front");
  assert_int_equal (self->count, 1); /* the same places: one instruction */
  assert_order (self, 0, WEFT_ACTION_ROOT | WEFT_ACTION_EMBED, 1, "service=front");
  free (self);
  self = orders ("--embed service=front --capture service=orders --capture service=pricing");
  assert_int_equal (self->count, 2);
  assert_order (self, 0, WEFT_ACTION_EMBED, 1, "service=front");
  assert_order (self, 1, WEFT_ACTION_CAPTURE, 2, "service=pricing");
  free (self);
}

/* --on is for what has no place of its own. */
static void test_own_places (void **state)
{
  ctl_orders_t *self = orders ("--on service=orders --root service=front");
  assert_int_equal (self->count, 2);
  assert_order (self, 0, WEFT_ACTION_ROOT, 1, "service=front");
  assert_order (self, 1, WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE, 1, "service=orders");
  free (self);
  self = orders ("--on * --root service=front --embed *");
  assert_int_equal (self->count, 2);
  assert_order (self, 0, WEFT_ACTION_ROOT, 1, "service=front");
  assert_order (self, 1, WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE, 1, "*");
  free (self);
}

/* What was named by pid is all that is touched. */
static void test_pinned_places_narrow (void **state)
{
  static const char on[1][WEFT_SELECTOR_MAX] = {"pid=7"};
  ctl_orders_t *self = NULL;
  assert_int_equal (read_pinned ("profile", "--root service=front --embed *", on, 1, ALL, &self), 0);
  assert_int_equal (self->count, 2);
  assert_order (self, 0, WEFT_ACTION_ROOT, 1, "pid=7,service=front");
  assert_order (self, 1, WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE, 1, "pid=7");
  free (self);
}

/* A profile has all actions, named or not. */
static void test_profile_fills_up (void **state)
{
  ctl_orders_t *self = NULL, part;
  assert_int_equal (read_orders ("profile", "--on vm=jvm --root service=front", ALL, &self), 0);
  assert_int_equal (self->count, 2);
  assert_order (self, 0, WEFT_ACTION_ROOT, 1, "service=front");
  assert_order (self, 1, WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE, 1, "vm=jvm");
  ctl_orders_part (self, WEFT_ACTION_CAPTURE, &part);
  assert_int_equal (part.count, 1);
  assert_order (&part, 0, WEFT_ACTION_CAPTURE, 1, "vm=jvm");
  ctl_orders_part (self, WEFT_ACTION_STACKS, &part);
  assert_int_equal (part.count, 0);
  free (self);
}

static void test_the_rest (void **state)
{
  ctl_orders_t *self =
      orders ("--on * --sample 1/100 --max 1000 --lease 10s --carrier weft --embed-to any --match "
              "/orders/*");
  assert_int_equal (self->order[0].sample_num, 1);
  assert_int_equal (self->order[0].sample_den, 100);
  assert_int_equal (self->order[0].max_roots, 1000);
  assert_int_equal (self->order[0].lease_ms, 10000);
  assert_int_equal (self->order[0].carrier, WEFT_CARRIER_WEFT);
  assert_int_equal (self->order[0].embed_to, WEFT_EMBED_TO_ANY);
  assert_string_equal (self->order[0].match, "/orders/*");
  free (self);
}

static void test_what_is_refused (void **state)
{
  const char *bad[] = {"",
                       "--on srv=x",
                       "--on * --sample 0/1",
                       "--on * --sample 2/1",
                       "--on * --sample 1/",
                       "--on * --sample 1",
                       "--on * --sample -1/3",
                       "--on * --sample 1/3x",
                       "--on * --max 0",
                       "--on * --lease 1s",
                       "--on * --lease 2h",
                       "--on * --carrier b3",
                       "--on * --embed-to 10.1.0.0/8"};
  ctl_orders_t *self = NULL;
  for (size_t n = 0; n < sizeof bad / sizeof *bad; n++)
    assert_int_equal (read_orders ("instruct", bad[n], 0, &self), WEFT_E_USAGE);
  /* Pinned places and places of its own multiply. */
  static const char on[WEFT_SELECTORS_MAX][WEFT_SELECTOR_MAX] = {"pid=1", "pid=2"};
  assert_int_equal (
      read_pinned ("profile", "--root service=a --root service=b", on, WEFT_SELECTORS_MAX, ALL, &self),
      WEFT_E_USAGE);
  assert_null (self);
}

static void test_who_is_silent (void **state)
{
  ctl_standing_counts_t counts = {.expected = 4, .active = 3};
  counts.silent = json_pack ("[{s:s, s:s, s:i, s:i}]", "service", "orders", "host", "box2", "pid", 4188,
                             "seen_ms", 12345);
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream (&text, &size);
  ctl_standing_print (out, &counts);
  fclose (out);
  assert_string_equal (text, "active in 3 of 4, silent: orders@box2 (last seen 12 s)");
  free (text);
  ctl_standing_clear (&counts);
}

static void test_actions_in_words (void **state)
{
  char out[40];
  ctl_actions_put (out, sizeof out, ALL);
  assert_string_equal (out, "root, embed, capture");
  ctl_actions_put (out, sizeof out, WEFT_ACTION_CAPTURE);
  assert_string_equal (out, "capture");
  ctl_actions_put (out, sizeof out, 0);
  assert_string_equal (out, "");
}

static void test_distance (void **state)
{
  assert_int_equal (ctl_nothing_distance ("POST /chekout", "POST /checkout"), 1);
  assert_int_equal (ctl_nothing_distance ("kitten", "sitting"), 3);
  assert_int_equal (ctl_nothing_distance ("", "abc"), 3);
  assert_int_equal (ctl_nothing_distance ("abc", ""), 3);
  assert_int_equal (ctl_nothing_distance ("abc", "abc"), 0);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_on_alone_is_everything),
      cmocka_unit_test (test_named_actions_only),
      cmocka_unit_test (test_own_places),
      cmocka_unit_test (test_pinned_places_narrow),
      cmocka_unit_test (test_profile_fills_up),
      cmocka_unit_test (test_the_rest),
      cmocka_unit_test (test_what_is_refused),
      cmocka_unit_test (test_who_is_silent),
      cmocka_unit_test (test_actions_in_words),
      cmocka_unit_test (test_distance),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
