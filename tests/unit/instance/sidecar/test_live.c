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

#include "../../../../instance/sidecar/live.h"

/* A STATE of `controller` at `epoch` with that many instructions, numbered from `first`. */
static weft_bus_message_t state_of (uint8_t controller, uint64_t epoch, uint32_t count, uint64_t first)
{
  weft_bus_message_t message = {.kind = WEFT_BUS_STATE, .epoch = epoch, .instruction_count = count};
  message.controller[0] = controller;
  message.instructions = count ? calloc (count, sizeof *message.instructions) : NULL;
  for (uint32_t i = 0; i < count; i++)
    message.instructions[i].number = first + i;
  return message;
}

/* Told by one message, the second and third find what the first one took out of it. */
static void one_copy_for_all (void **state)
{
  car_live_t *shelf = NULL;
  weft_bus_message_t message = state_of (1, 7, 3, 40);
  car_live_t *first = car_live_of (&shelf, &message);
  assert_null (message.instructions);
  assert_int_equal (message.instruction_count, 0);
  car_live_t *second = car_live_of (&shelf, &message), *third = car_live_share (second);
  assert_ptr_equal (first, second);
  car_live_drop (&first);
  assert_null (first);
  assert_int_equal (second->count, 3);
  assert_true (second->instructions[2].number == 42);
  car_live_drop (&second);
  assert_true (third->instructions[0].number == 40);
  car_live_drop (&third);
  assert_int_equal (shelf->users, 1);
  car_live_drop (&shelf);
  car_live_drop (&shelf);
}

/* Another epoch, or the same number of another controller, is something else. */
static void nobody_gets_the_wrong_one (void **state)
{
  car_live_t *shelf = NULL;
  weft_bus_message_t old = state_of (1, 7, 1, 40), next = state_of (1, 8, 1, 50),
                     other = state_of (2, 8, 0, 0);
  car_live_t *a = car_live_of (&shelf, &old), *b = car_live_of (&shelf, &next),
             *c = car_live_of (&shelf, &other);
  assert_true (a->instructions[0].number == 40);
  assert_true (b->instructions[0].number == 50);
  assert_int_equal (c->count, 0);
  weft_bus_message_t again = state_of (1, 7, 1, 40); /* late: the shelf holds another one by now */
  car_live_t *d = car_live_of (&shelf, &again);
  assert_ptr_not_equal (d, a);
  assert_true (d->instructions[0].number == 40);
  car_live_drop (&a);
  car_live_drop (&b);
  car_live_drop (&c);
  car_live_drop (&d);
  car_live_drop (&shelf);
}

static void without_a_shelf (void **state)
{
  weft_bus_message_t message = state_of (1, 7, 1, 40);
  car_live_t *alone = car_live_of (NULL, &message);
  assert_int_equal (alone->users, 1);
  car_live_drop (&alone);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (one_copy_for_all),
      cmocka_unit_test (nobody_gets_the_wrong_one),
      cmocka_unit_test (without_a_shelf),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
