/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../common/status.h"
#include "../../../../controller/task/instances.h"

static weft_up_message_t message_of (weft_up_kind_t kind, uint8_t uuid, uint8_t start)
{
  weft_up_message_t message = {
      .kind = kind, .pid = 42, .epoch = 5, .active = WEFT_ACTION_EMBED, .bytes_total = 100};
  memset (message.instance, uuid, WEFT_UUID_SIZE);
  memset (message.start, start, WEFT_UUID_SIZE);
  snprintf (message.service, sizeof message.service, "orders");
  snprintf (message.vm, sizeof message.vm, "jvm");
  return message;
}

static void test_a_life_from_hello_to_bye (void **state)
{
  (void) state;
  ctl_instances_t *self = ctl_instances_new ();
  ctl_instance_t *instance = NULL;
  weft_up_message_t message = message_of (WEFT_UP_ACK, 1, 1);
  assert_int_equal (ctl_instances_take (self, &message, &instance), WEFT_E_NOT_FOUND);
  message = message_of (WEFT_UP_HELLO, 1, 1);
  assert_int_equal (ctl_instances_take (self, &message, &instance), 0);
  assert_string_equal (instance->service, "orders");
  assert_string_equal (instance->host, "");
  assert_int_equal (instance->active, 0);
  message = message_of (WEFT_UP_ACK, 1, 1);
  assert_int_equal (ctl_instances_take (self, &message, &instance), 0);
  assert_int_equal (instance->active, WEFT_ACTION_EMBED);
  assert_int_equal (instance->epoch, 5);
  assert_int_equal (instance->bytes_total, 100);
  instance->last_batch = 9;
  message = message_of (WEFT_UP_BYE, 1, 1);
  message.slots_restored = 57;
  message.requests_excluded = 3;
  assert_int_equal (ctl_instances_take (self, &message, &instance), 0);
  assert_int_equal (instance->presence, CTL_INSTANCE_LEFT);
  assert_int_equal (instance->slots_restored, 57);
  assert_int_equal (instance->requests_excluded, 3);
  assert_int_equal (instance->active, 0);
  /* a new life: batch numbers begin anew; a late BYE of the old one ends nothing */
  message = message_of (WEFT_UP_HELLO, 1, 2);
  assert_int_equal (ctl_instances_take (self, &message, &instance), 0);
  assert_int_equal (instance->last_batch, 0);
  assert_int_equal (instance->requests_excluded, 0);
  assert_int_equal (instance->presence, CTL_INSTANCE_PRESENT);
  message = message_of (WEFT_UP_BYE, 1, 1);
  assert_int_equal (ctl_instances_take (self, &message, &instance), 0);
  assert_int_equal (instance->presence, CTL_INSTANCE_PRESENT);
  assert_int_equal (ctl_instances_count (self), 1);
  assert_ptr_equal (ctl_instances_at (self, 0), instance);
  assert_ptr_equal (ctl_instances_find (self, instance->uuid), instance);
  assert_null (ctl_instances_at (self, 1));
  ctl_instances_destroy (&self);
  ctl_instances_destroy (&self);
}

static void test_no_more_than_the_bound (void **state)
{
  (void) state;
  ctl_instances_t *self = ctl_instances_new ();
  ctl_instance_t *instance = NULL;
  uint8_t uuid[WEFT_UUID_SIZE] = {0};
  for (uint32_t i = 0; i <= WEFT_INSTANCES_MAX; i++) {
    memcpy (uuid, &i, sizeof i);
    assert_int_equal (ctl_instances_touch (self, uuid, &instance), i < WEFT_INSTANCES_MAX ? 0 : WEFT_E_FULL);
  }
  for (uint32_t i = 0; i < WEFT_INSTANCES_MAX; i++) {
    memcpy (uuid, &i, sizeof i);
    assert_int_equal (ctl_instances_find (self, uuid)->index, i);
  }
  ctl_instances_destroy (&self);
}

static void test_losses_belong_to_their_interval (void **state)
{
  (void) state;
  ctl_instances_t *self = ctl_instances_new ();
  ctl_instance_t *instance = NULL;
  uint64_t losses[WEFT_LOSS_COUNT] = {[WEFT_LOSS_RING_FULL] = 3}, none[WEFT_LOSS_COUNT] = {0},
           sum[WEFT_LOSS_COUNT];
  assert_int_equal (ctl_instances_touch (self, (const uint8_t[16]){1}, &instance), 0);
  ctl_instances_lost (self, instance, 100, 200, losses);
  ctl_instances_lost (self, instance, 200, 300, none);
  ctl_instances_lost (self, instance, 300, 400, losses);
  ctl_instances_losses_in (self, 0, 99, sum);
  assert_int_equal (sum[WEFT_LOSS_RING_FULL], 0);
  ctl_instances_losses_in (self, 150, 250, sum);
  assert_int_equal (sum[WEFT_LOSS_RING_FULL], 3);
  ctl_instances_losses_in (self, 200, 300, sum);
  assert_int_equal (sum[WEFT_LOSS_RING_FULL], 6);
  assert_int_equal (instance->losses[WEFT_LOSS_RING_FULL], 6);
  /* beyond the bound intervals are joined, and no loss is forgotten */
  for (uint64_t i = 0; i < 3 * WEFT_LOSS_INTERVALS_MAX; i++)
    ctl_instances_lost (self, instance, 1000 + i, 1001 + i, losses);
  ctl_instances_losses_in (self, 0, UINT64_MAX, sum);
  assert_int_equal (sum[WEFT_LOSS_RING_FULL], 6 + 9 * WEFT_LOSS_INTERVALS_MAX);
  ctl_instances_losses_in (self, 0, 50, sum);
  assert_int_equal (sum[WEFT_LOSS_RING_FULL], 0);
  ctl_instances_destroy (&self);
}

static ctl_instance_t *say (ctl_instances_t *self, weft_up_kind_t kind, uint8_t start, uint64_t written)
{
  weft_up_message_t message = {.kind = kind, .instance = {1}, .start = {start}, .events_written = written};
  ctl_instance_t *instance = NULL;
  assert_int_equal (ctl_instances_take (self, &message, &instance), 0);
  return instance;
}

static void test_written_adds_up_over_lives (void **state)
{
  (void) state;
  ctl_instances_t *self = ctl_instances_new ();
  say (self, WEFT_UP_HELLO, 1, 0);
  say (self, WEFT_UP_ACK, 1, 10);
  assert_int_equal (say (self, WEFT_UP_BYE, 1, 12)->written, 12);
  ctl_instance_t *instance = say (self, WEFT_UP_HELLO, 2, 0);
  assert_int_equal (instance->written, 12);
  assert_int_equal (instance->farewell, 0);
  assert_int_equal (say (self, WEFT_UP_ACK, 2, 5)->written, 17);
  assert_int_equal (instance->tail_since_ns, 0); /* the first life had said everything */
  ctl_instances_destroy (&self);
}

static void test_a_tail_is_unknown_until_it_speaks_again (void **state)
{
  (void) state;
  ctl_instances_t *self = ctl_instances_new ();
  say (self, WEFT_UP_HELLO, 1, 0);
  ctl_instance_t *instance = say (self, WEFT_UP_ACK, 1, 10);
  instance->heard_ns = 1000;
  ctl_instances_silent (instance);
  assert_int_equal (instance->tail_since_ns, 1000);
  assert_int_equal (ctl_instances_tails_in (self, 0, 999), 0);
  assert_int_equal (ctl_instances_tails_in (self, 5000, UINT64_MAX), 1);
  say (self, WEFT_UP_ACK, 1, 11); /* it was only slow */
  assert_int_equal (ctl_instances_tails_in (self, 0, UINT64_MAX), 0);
  instance->heard_ns = 2000;
  ctl_instances_silent (instance);
  say (self, WEFT_UP_HELLO, 2, 0); /* another life: what the first wrote last is never told */
  assert_int_equal (instance->tail_since_ns, 2000);
  assert_true (instance->tail_until_ns > 2000);
  say (self, WEFT_UP_ACK, 2, 1);
  assert_int_equal (ctl_instances_tails_in (self, 0, 3000), 1);
  ctl_instances_destroy (&self);
  self = ctl_instances_new ();
  say (self, WEFT_UP_HELLO, 1, 0);
  instance = say (self, WEFT_UP_BYE, 1, 10);
  ctl_instances_silent (instance); /* silence after a farewell says nothing */
  assert_int_equal (instance->tail_since_ns, 0);
  ctl_instances_destroy (&self);
}

static void test_texts_are_kept_once_and_bounded (void **state)
{
  (void) state;
  ctl_names_t *names = ctl_names_new ();
  uint32_t id, other;
  char text[300];
  assert_int_equal (ctl_names_id (names, "GET /a", 6, &id), 0);
  assert_int_equal (ctl_names_id (names, "GET /a and more", 6, &other), 0);
  assert_int_equal (id, other);
  const char *kept = ctl_names_text (names, id);
  assert_string_equal (kept, "GET /a");
  assert_int_equal (ctl_names_id (names, "", 0, &other), 0);
  assert_int_equal (other, 0);
  assert_string_equal (ctl_names_text (names, UINT32_MAX), "");
  for (uint32_t i = 0; i < WEFT_NAMES_MAX + 10; i++) {
    int size = snprintf (text, sizeof text, "GET /%u", i);
    assert_int_equal (ctl_names_id (names, text, (size_t) size, &other), 0);
  }
  assert_string_equal (ctl_names_text (names, other), "(more names)");
  assert_ptr_equal (ctl_names_text (names, id), kept); /* texts never move */
  assert_int_equal (ctl_names_id (names, "GET /a", 6, &other), 0);
  assert_int_equal (id, other);
  ctl_names_destroy (&names);
}

static void test_out_of_a_recording (void **state)
{
  (void) state;
  ctl_instances_t *self = ctl_instances_new ();
  ctl_instance_t *instance = NULL;
  weft_up_message_t message = message_of (WEFT_UP_HELLO, 1, 1);
  message.replayed = 1;
  assert_int_equal (ctl_instances_take (self, &message, &instance), 0);
  assert_int_equal (instance->presence, CTL_INSTANCE_LEFT); /* nobody is there */
  assert_int_equal (instance->replayed, 1);
  assert_string_equal (instance->service, "orders");
  message = message_of (WEFT_UP_HELLO, 1, 1);
  assert_int_equal (ctl_instances_take (self, &message, &instance), 0);
  assert_int_equal (instance->presence, CTL_INSTANCE_PRESENT);
  assert_int_equal (instance->replayed, 0);
  ctl_instances_destroy (&self);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_a_life_from_hello_to_bye),
      cmocka_unit_test (test_out_of_a_recording),
      cmocka_unit_test (test_no_more_than_the_bound),
      cmocka_unit_test (test_losses_belong_to_their_interval),
      cmocka_unit_test (test_written_adds_up_over_lives),
      cmocka_unit_test (test_a_tail_is_unknown_until_it_speaks_again),
      cmocka_unit_test (test_texts_are_kept_once_and_bounded),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
