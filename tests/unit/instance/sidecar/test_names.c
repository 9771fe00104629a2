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

#include "../../../../common/limits.h"
#include "../../../../instance/sidecar/names.h"

static void expect (car_names_t *names, const char *raw, const char *wanted)
{
  for (int again = 0; again < 2; again++) { /* the second time from the cache */
    size_t size = 0;
    const char *text = car_names_template (names, raw, strlen (raw), &size);
    assert_int_equal (size, strlen (wanted));
    assert_memory_equal (text, wanted, size);
  }
}

static void ids_become_placeholders (void **state)
{
  car_names_t *names = car_names_new ();
  expect (names, "POST /orders/12345", "POST /orders/{id}");
  expect (names, "GET /users/7/orders/8", "GET /users/{id}/orders/{id}");
  expect (names, "GET /a/0192f3c4-5b6d-7e8f-9a0b-1c2d3e4f5a6b", "GET /a/{id}");
  expect (names, "GET /blob/0123456789abcdef", "GET /blob/{id}");
  expect (names, "GET /day/2026-11-29", "GET /day/{id}"); /* 8 digits */
  expect (names, "GET /o/INV-20261129-x/lines", "GET /o/{id}/lines");
  car_names_destroy (&names);
  assert_null (names);
}

static void words_stay (void **state)
{
  car_names_t *names = car_names_new ();
  expect (names, "GET /", "GET /");
  expect (names, "GET /v1/cart", "GET /v1/cart");
  expect (names, "GET /feedface", "GET /feedface");               /* 8 hexadecimal digits: a word */
  expect (names, "GET /0123456789abcde", "GET /{id}");            /* 10 digits in it */
  expect (names, "GET /abcdefabcdefabc", "GET /abcdefabcdefabc"); /* 15: one short */
  expect (names, "GET /day/2026-11-2", "GET /day/2026-11-2");     /* 7 digits */
  expect (names, "GET //double//", "GET //double//");
  expect (names, "OPTIONS *", "OPTIONS *");
  expect (names, "", "");
  expect (names, "GET /a\x1b[2J/\xff", "GET /a?[2J/?"); /* no terminal is told anything */
  car_names_destroy (&names);
}

static void growth_is_cut (void **state)
{
  car_names_t *names = car_names_new ();
  char raw[WEFT_NAME_MAX + 40];
  for (size_t i = 0; i < sizeof raw; i++)
    raw[i] = i % 2 ? '1' : '/';
  size_t size = 0;
  const char *text = car_names_template (names, raw, sizeof raw, &size);
  assert_int_equal (size, WEFT_NAME_MAX);
  assert_memory_equal (text, "/{id}/{id}/{id}", 15);
  car_names_destroy (&names);
}

static void more_names_than_places (void **state)
{
  car_names_t *names = car_names_new ();
  char raw[64], wanted[64];
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < 3 * CAR_NAMES_CACHE; i++) {
      snprintf (raw, sizeof raw, "GET /shop%c%c%c/%d", 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676, i);
      snprintf (wanted, sizeof wanted, "GET /shop%c%c%c/{id}", 'a' + i % 26, 'a' + i / 26 % 26,
                'a' + i / 676);
      size_t size;
      const char *text = car_names_template (names, raw, strlen (raw), &size);
      assert_int_equal (size, strlen (wanted));
      assert_memory_equal (text, wanted, size);
    }
  car_names_destroy (&names);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (ids_become_placeholders),
      cmocka_unit_test (words_stay),
      cmocka_unit_test (growth_is_cut),
      cmocka_unit_test (more_names_than_places),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
