/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../common/clocks.h"
#include "../../../../controller/task/shed.h"

#define S WEFT_NS_PER_S

static const uint8_t *id (uint64_t number)
{
  static uint8_t task[WEFT_TASK_ID_SIZE];
  memset (task, 0, sizeof task);
  memcpy (task + 8, &number, sizeof number);
  return task;
}

static void the_share_is_what_was_asked_for (void **state)
{
  ctl_shed_t *self = ctl_shed_new ();
  assert_int_equal (ctl_shed_active (self), 0);
  ctl_shed_tick (self, S);
  assert_int_equal (ctl_shed_keep (self, CTL_SHED_NOTHING / 4), CTL_SHED_NOTHING / 4);
  uint32_t shed = 0;
  for (uint64_t n = 1; n <= 10000; n++)
    shed += (uint32_t) ctl_shed_holds (self, id (n), 0);
  assert_in_range (shed, 7300, 7700);
  assert_int_equal (ctl_shed_count (self), shed);
  ctl_shed_destroy (&self);
  ctl_shed_destroy (&self);
}

/* Another controller, another moment: the same tasks. */
static void everybody_sheds_the_same (void **state)
{
  ctl_shed_t *one = ctl_shed_new (), *two = ctl_shed_new ();
  ctl_shed_keep (one, 20000);
  ctl_shed_keep (two, 20000);
  for (uint64_t n = 1; n <= 1000; n++)
    assert_int_equal (ctl_shed_holds (one, id (n), 0), ctl_shed_holds (two, id (n), 0));
  ctl_shed_destroy (&one);
  ctl_shed_destroy (&two);
}

/* X1, X2: two copies of each task, the threshold moving between them in either direction. */
static void both_copies_meet_the_same_fate (void **state)
{
  ctl_shed_t *self = ctl_shed_new ();
  static const uint32_t thresholds[] = {CTL_SHED_NOTHING, 30000, 50000, 10000, 64000, CTL_SHED_NOTHING, 5000};
  uint8_t first[7000];
  for (uint64_t n = 0; n < 7000; n++) {
    if (n % 1000 == 0) {
      ctl_shed_tick (self, S + n / 1000 * S);
      ctl_shed_keep (self, thresholds[n / 1000]);
    }
    first[n] = (uint8_t) ctl_shed_holds (self, id (n + 1), 0);
    if (n >= 500) /* the second copy of one half a round ago: open if it was kept */
      assert_int_equal (ctl_shed_holds (self, id (n - 499), !first[n - 500]), first[n - 500]);
  }
  ctl_shed_destroy (&self);
}

/* X2: while memory is short the threshold may fall only. */
static void it_does_not_rise_over_what_it_forgot (void **state)
{
  ctl_shed_t *self = ctl_shed_new ();
  ctl_shed_tick (self, S);
  ctl_shed_keep (self, 0);
  for (uint64_t n = 1; n <= WEFT_SHED_REMEMBERED + 1; n++)
    assert_int_equal (ctl_shed_holds (self, id (n), 0), 1);
  assert_int_equal (ctl_shed_keep (self, 1000), 0);
  ctl_shed_tick (self, S + WEFT_SHED_MEMORY_MS * WEFT_NS_PER_MS);
  assert_int_equal (ctl_shed_keep (self, CTL_SHED_NOTHING), CTL_SHED_NOTHING);
  assert_int_equal (ctl_shed_active (self), 1); /* it remembers still */
  ctl_shed_tick (self, S + 3 * WEFT_SHED_MEMORY_MS * WEFT_NS_PER_MS);
  assert_int_equal (ctl_shed_active (self), 0);
  ctl_shed_destroy (&self);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (the_share_is_what_was_asked_for),
      cmocka_unit_test (everybody_sheds_the_same),
      cmocka_unit_test (both_copies_meet_the_same_fate),
      cmocka_unit_test (it_does_not_rise_over_what_it_forgot),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
