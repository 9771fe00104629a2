/* SPDX-License-Identifier: Apache-2.0 */
/* lineage: what selects an ancestor selects its children, also when it is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <string.h>

#include "../../../../instance/sidecar/lineage.h"

static int selects (const char *selector, const car_lineage_t *lineage)
{
  for (const weft_subject_t *at = car_lineage_subject (lineage); at; at = at->parent)
    if (weft_selector_holds (selector, at))
      return 1;
  return 0;
}

static void ancestors_are_copied (void **state)
{
  static const uint8_t uuids[3][WEFT_UUID_SIZE] = {{1}, {2}, {3}};
  car_lineage_t line[3];
  for (int i = 0; i < 3; i++) {
    weft_subject_t subject = {
        .service = "shop", .vm = "cpython", .host = "h", .instance = uuids[i], .pid = 100 + i};
    car_lineage_begin (&line[i], &subject, i ? &line[i - 1] : NULL);
  }
  memset (&line[0], 0xff, sizeof line[0]);
  memset (&line[1], 0xff, sizeof line[1]);
  assert_true (selects ("pid=102", &line[2]));
  assert_true (selects ("pid=101", &line[2]));
  assert_true (selects ("pid=100,service=shop", &line[2]));
  assert_false (selects ("pid=103", &line[2]));
  assert_true (car_lineage_holds (&line[2], uuids[0]));
  assert_true (car_lineage_holds (&line[2], uuids[1]));
  assert_false (car_lineage_holds (&line[2], uuids[2])); /* itself is no ancestor */
}

static void distant_ones_are_forgotten (void **state)
{
  car_lineage_t line[CAR_LINEAGE_MAX + 2];
  for (int i = 0; i < CAR_LINEAGE_MAX + 2; i++) {
    uint8_t uuid[WEFT_UUID_SIZE] = {(uint8_t) (i + 1)};
    weft_subject_t subject = {.service = "s", .vm = "", .host = "", .instance = uuid, .pid = 10 + i};
    car_lineage_begin (&line[i], &subject, i ? &line[i - 1] : NULL);
  }
  const car_lineage_t *last = &line[CAR_LINEAGE_MAX + 1];
  assert_int_equal (last->count, CAR_LINEAGE_MAX);
  assert_true (selects ("pid=12", last));
  assert_false (selects ("pid=11", last));
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (ancestors_are_copied),
      cmocka_unit_test (distant_ones_are_forgotten),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
