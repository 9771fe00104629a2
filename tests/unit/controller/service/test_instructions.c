/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../common/status.h"
#include "../../../../controller/service/instructions.h"

static weft_instruction_t *wanted (uint32_t actions, const char *selector)
{
  weft_instruction_t *self = calloc (1, sizeof *self);
  self->actions = actions;
  self->sample_num = self->sample_den = 1;
  self->lease_ms = WEFT_LEASE_MS;
  self->selector_count = 1;
  snprintf (self->selectors[0], WEFT_SELECTOR_MAX, "%s", selector);
  return self;
}

static int add (ctl_instructions_t *self, const char *selector, uint64_t until_ns, uint32_t *ret_number)
{
  char why[400] = "";
  weft_instruction_t *one = wanted (WEFT_ACTION_EMBED, selector);
  int rc = ctl_instructions_add (self, one, until_ns, ret_number, why, sizeof why);
  free (one);
  return rc;
}

static ctl_instance_t instance (const char *service, uint64_t epoch, ctl_presence_t presence)
{
  return (ctl_instance_t){.service = service,
                          .vm = "jvm",
                          .version = "",
                          .host = "h",
                          .listens = "",
                          .pid = 7,
                          .epoch = epoch,
                          .presence = presence};
}

static void test_numbers_and_epochs_grow (void **state)
{
  ctl_instructions_t *self = ctl_instructions_new (1000, 41);
  uint32_t first = 0, second = 0, count = 0;
  assert_int_equal (add (self, "service=a", 0, &first), 0);
  assert_int_equal (first, 42);
  assert_int_equal (ctl_instructions_epoch (self), 1001);
  assert_int_equal (ctl_instructions_stop (self, 42), 0);
  assert_int_equal (ctl_instructions_epoch (self), 1002);
  assert_int_equal (add (self, "service=b", 0, &second), 0);
  assert_int_equal (second, 43); /* 42 is never given again */
  assert_int_equal (ctl_instructions_epoch (self), 1003);
  const weft_instruction_t *live = ctl_instructions_live (self, &count);
  assert_int_equal (count, 1);
  assert_int_equal (live[0].number, 43);
  assert_string_equal (live[0].selectors[0], "service=b");
  assert_int_equal (ctl_instructions_stop (self, 42), WEFT_E_NOT_FOUND);
  assert_int_equal (ctl_instructions_epoch (self), 1003);
  ctl_instructions_destroy (&self);
  ctl_instructions_destroy (&self);
}

static void test_skipped_numbers (void **state)
{
  ctl_instructions_t *self = ctl_instructions_new (0, 5);
  uint32_t number = 0;
  ctl_instructions_skip (self, 3); /* lower: nothing */
  add (self, "*", 0, &number);
  assert_int_equal (number, 6);
  ctl_instructions_skip (self, 40);
  add (self, "*", 0, &number);
  assert_int_equal (number, 41);
  ctl_instructions_destroy (&self);
}

static void test_the_middle_one_stops (void **state)
{
  ctl_instructions_t *self = ctl_instructions_new (0, 0);
  uint32_t number = 0, count = 0;
  int live_now = -1;
  for (int n = 0; n < 3; n++)
    assert_int_equal (add (self, "*", 0, &number), 0);
  assert_int_equal (ctl_instructions_stop (self, 2), 0);
  const weft_instruction_t *live = ctl_instructions_live (self, &count);
  assert_int_equal (count, 2);
  assert_int_equal (live[0].number, 1);
  assert_int_equal (live[1].number, 3);
  assert_non_null (ctl_instructions_find (self, 2, &live_now));
  assert_int_equal (live_now, 0);
  assert_non_null (ctl_instructions_find (self, 3, &live_now));
  assert_int_equal (live_now, 1);
  assert_null (ctl_instructions_find (self, 4, &live_now));
  /* 3 became live at epoch 3: its epoch moved with it. */
  ctl_instance_t early = instance ("a", 2, CTL_INSTANCE_PRESENT),
                 late = instance ("a", 3, CTL_INSTANCE_PRESENT);
  assert_int_equal (ctl_instructions_standing (self, 3, &early), CTL_STANDING_SILENT);
  assert_int_equal (ctl_instructions_standing (self, 3, &late), CTL_STANDING_ACKED);
  ctl_instructions_destroy (&self);
}

static void test_standing (void **state)
{
  ctl_instructions_t *self = ctl_instructions_new (100, 0);
  uint32_t number = 0;
  add (self, "service=front", 0, &number); /* epoch 101 */
  ctl_instance_t before = instance ("front", 100, CTL_INSTANCE_PRESENT);
  ctl_instance_t works = instance ("front", 101, CTL_INSTANCE_PRESENT);
  ctl_instance_t silent = instance ("front", 100, CTL_INSTANCE_SILENT);
  ctl_instance_t left = instance ("front", 101, CTL_INSTANCE_LEFT);
  ctl_instance_t other = instance ("orders", 500, CTL_INSTANCE_PRESENT);
  assert_int_equal (ctl_instructions_standing (self, number, &before), CTL_STANDING_SILENT);
  assert_int_equal (ctl_instructions_standing (self, number, &works), CTL_STANDING_ACKED);
  assert_int_equal (ctl_instructions_standing (self, number, &silent), CTL_STANDING_SILENT);
  assert_int_equal (ctl_instructions_standing (self, number, &left), CTL_STANDING_NONE);
  assert_int_equal (ctl_instructions_standing (self, number, &other), CTL_STANDING_NONE);
  assert_int_equal (ctl_instructions_standing (self, 99, &works), CTL_STANDING_NONE);
  ctl_instructions_stop (self, number); /* epoch 102 */
  assert_int_equal (ctl_instructions_standing (self, number, &works), CTL_STANDING_SILENT);
  works.epoch = 102;
  assert_int_equal (ctl_instructions_standing (self, number, &works), CTL_STANDING_ACKED);
  assert_int_equal (ctl_instructions_standing (self, number, &left), CTL_STANDING_ACKED);
  assert_int_equal (ctl_instructions_standing (self, number, &other), CTL_STANDING_NONE);
  ctl_instructions_destroy (&self);
}

static void test_time_is_over (void **state)
{
  ctl_instructions_t *self = ctl_instructions_new (0, 0);
  uint32_t number = 0, count = 0;
  add (self, "*", 0, &number);
  add (self, "*", 500, &number);
  add (self, "*", 300, &number);
  add (self, "*", 500, &number);
  assert_int_equal (ctl_instructions_next_ns (self), 300);
  assert_int_equal (ctl_instructions_expire (self, 299), 0);
  assert_int_equal (ctl_instructions_epoch (self), 4);
  assert_int_equal (ctl_instructions_expire (self, 300), 1);
  assert_int_equal (ctl_instructions_next_ns (self), 500);
  assert_int_equal (ctl_instructions_expire (self, 1000), 2);
  assert_int_equal (ctl_instructions_live (self, &count)->number, 1);
  assert_int_equal (count, 1);
  assert_int_equal (ctl_instructions_next_ns (self), 0);
  ctl_instructions_destroy (&self);
}

static void test_full (void **state)
{
  ctl_instructions_t *self = ctl_instructions_new (0, 0);
  uint32_t number = 0;
  for (int n = 0; n < WEFT_INSTRUCTIONS_MAX; n++)
    assert_int_equal (add (self, "*", 0, &number), 0);
  assert_int_equal (add (self, "*", 0, &number), WEFT_E_FULL);
  assert_int_equal (number, WEFT_INSTRUCTIONS_MAX);
  ctl_instructions_stop (self, 1);
  assert_int_equal (add (self, "*", 0, &number), 0);
  assert_int_equal (number, WEFT_INSTRUCTIONS_MAX + 1);
  ctl_instructions_destroy (&self);
}

/* Each spoils one field of an instruction that is right. */
static void test_what_is_refused (void **state)
{
  ctl_instructions_t *self = ctl_instructions_new (0, 0);
  for (int n = 0; n < 10; n++) {
    uint32_t number = 0;
    char why[400] = "";
    weft_instruction_t *one = wanted (WEFT_ACTION_ROOT, "vm=jvm");
    if (n == 0)
      one->actions = 0;
    else if (n == 1)
      one->actions = WEFT_ACTION_STACKS; /* not in this version */
    else if (n == 2)
      one->selector_count = 0;
    else if (n == 3)
      snprintf (one->selectors[0], WEFT_SELECTOR_MAX, "%s", "srv=x");
    else if (n == 4)
      one->sample_den = 0;
    else if (n == 5)
      one->sample_num = 2;
    else if (n == 6)
      one->lease_ms = WEFT_LEASE_MIN_MS - 1;
    else if (n == 7)
      one->lease_ms = WEFT_LEASE_MAX_MS + 1;
    else if (n == 8)
      one->carrier = 2;
    int rc = ctl_instructions_add (self, one, 0, &number, why, sizeof why);
    if (n == 9) {
      assert_int_equal (rc, 0);
    } else {
      assert_true (rc == WEFT_E_RANGE || rc == WEFT_E_MALFORMED);
      assert_int_equal (number, 0);
      assert_true (strlen (why) > 10);
      assert_int_equal (ctl_instructions_epoch (self), 0);
    }
    free (one);
  }
  ctl_instructions_destroy (&self);
}

static void test_stopped_ones_are_remembered_for_a_while (void **state)
{
  ctl_instructions_t *self = ctl_instructions_new (0, 0);
  uint32_t number = 0;
  int live = 0;
  for (int n = 0; n < WEFT_STOPPED_MAX + 1; n++) {
    add (self, "*", 0, &number);
    ctl_instructions_stop (self, number);
  }
  assert_null (ctl_instructions_find (self, 1, &live));
  assert_non_null (ctl_instructions_find (self, 2, &live));
  assert_non_null (ctl_instructions_find (self, WEFT_STOPPED_MAX + 1, &live));
  ctl_instructions_destroy (&self);
}

/* By name alone: where a header decides, nobody can say afterwards. */
static void test_what_would_start (void **state)
{
  static const char checkout[] = "POST /checkout", health[] = "GET /health";
  weft_instruction_t *one = wanted (WEFT_ACTION_ROOT, "*");
  assert_true (ctl_instruction_matches (one, checkout, strlen (checkout)));
  assert_true (ctl_instruction_matches (one, health, strlen (health)));
  snprintf (one->excludes[one->exclude_count++], WEFT_MATCH_MAX, "/health");
  assert_false (ctl_instruction_matches (one, health, strlen (health)));
  assert_true (ctl_instruction_matches (one, checkout, strlen (checkout)));
  snprintf (one->match, sizeof one->match, "GET /**");
  assert_false (ctl_instruction_matches (one, checkout, strlen (checkout)));
  *one->match = 0;
  snprintf (one->header, sizeof one->header, "x-debug");
  assert_false (ctl_instruction_matches (one, checkout, strlen (checkout)));
  free (one);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_numbers_and_epochs_grow),
      cmocka_unit_test (test_skipped_numbers),
      cmocka_unit_test (test_the_middle_one_stops),
      cmocka_unit_test (test_standing),
      cmocka_unit_test (test_time_is_over),
      cmocka_unit_test (test_full),
      cmocka_unit_test (test_what_would_start),
      cmocka_unit_test (test_what_is_refused),
      cmocka_unit_test (test_stopped_ones_are_remembered_for_a_while),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
