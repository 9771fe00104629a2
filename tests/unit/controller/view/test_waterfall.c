/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include "../../../../controller/view/waterfall.h"

static void shows (ctl_execution_t *execution, const ctl_style_t *style, int all, const char *name)
{
  golden_t golden;
  assert_int_equal (ctl_waterfall (golden_begin (&golden), style, execution, all), 0);
  golden_end (&golden, name);
  ctl_execution_destroy (&execution);
}

static void test_shop (void **state)
{
  (void) state;
  shows (golden_shop (1, 1), &golden_wide, 0, "show.txt");
  shows (golden_shop (1, 1), &golden_wide, 1, "show-all.txt");
  shows (golden_shop (1, 1), &golden_ascii, 0, "show-ascii.txt");
}

static void test_what_went_wrong_is_said_and_escaped (void **state)
{
  (void) state;
  shows (golden_odd (), &golden_wide, 0, "show-odd.txt");
  shows (golden_odd (), &golden_ascii, 0, "show-odd-ascii.txt");
  shows (golden_odd (), &golden_colour, 0, "show-odd-colour.txt");
}

/* Sibling leaves of one peer and one error are one line: 38 calls, 112 ms. */
static void test_database (void **state)
{
  (void) state;
  shows (golden_database (3), &golden_wide, 0, "show-opaque.txt");
  shows (golden_database (3), &golden_wide, 1, "show-opaque-all.txt");
  shows (golden_database (3), &golden_ascii, 0, "show-opaque-ascii.txt");
}

static void test_orphan (void **state)
{
  (void) state;
  shows (golden_orphan (2), &golden_wide, 0, "show-orphan.txt");
}

/* V2, and no escape sequence but ours: a chain of 40 with names as long as they may be. */
static void test_deep_and_long_fits (void **state)
{
  (void) state;
  char name[WEFT_NAME_MAX + 1], *text = NULL;
  size_t size;
  memset (name, 'n', WEFT_NAME_MAX);
  name[WEFT_NAME_MAX] = 0;
  ctl_execution_t *deep = golden_new (1);
  for (uint32_t i = 1; i <= 40; i++)
    golden_add (deep, i, i - 1, i == 1 ? CTL_HOP_ROOT : CTL_HOP_PROVEN, "a-service-with-a-rather-long-name",
                "jvm", name, i, 100 - i);
  assert_int_equal (ctl_execution_settle (deep), 0);
  for (uint32_t columns = 40; columns <= 200; columns += 10) {
    ctl_style_t style = {columns, 1, 0};
    FILE *out = open_memstream (&text, &size);
    assert_int_equal (ctl_waterfall (out, &style, deep, 0), 0);
    fclose (out);
    for (char *line = strtok (text, "\n"); line; line = strtok (NULL, "\n"))
      assert_true (ctl_style_width (line) <= columns);
    free (text);
  }
  ctl_execution_destroy (&deep);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_shop),
      cmocka_unit_test (test_what_went_wrong_is_said_and_escaped),
      cmocka_unit_test (test_database),
      cmocka_unit_test (test_orphan),
      cmocka_unit_test (test_deep_and_long_fits),
  };
  setenv ("TZ", "UTC", 1);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
