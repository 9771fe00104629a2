/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include <unistd.h>

static const char *ms (uint64_t ns)
{
  static char text[32];
  ctl_style_ms (text, sizeof text, ns);
  return text;
}

static const char *percent (double share)
{
  static char text[32];
  ctl_style_percent (text, sizeof text, share);
  return text;
}

static void test_numbers (void **state)
{
  (void) state;
  char text[32];
  ctl_style_number (text, sizeof text, 0);
  assert_string_equal (text, "0");
  ctl_style_number (text, sizeof text, 1204);
  assert_string_equal (text, "1,204");
  ctl_style_number (text, sizeof text, UINT64_MAX);
  assert_string_equal (text, "18,446,744,073,709,551,615");
  assert_string_equal (ms (0), "0");
  assert_string_equal (ms (4000), "0.004");
  assert_string_equal (ms (412000), "0.41");
  assert_string_equal (ms (996000), "1.0");
  assert_string_equal (ms (4140000), "4.1");
  assert_string_equal (ms (99960000), "100");
  assert_string_equal (ms (231400000), "231");
  assert_string_equal (ms (12345600000), "12,346");
  assert_string_equal (percent (1), "100 %");
  assert_string_equal (percent (0.9999), "99 %"); /* 100 % only if it is all */
  assert_string_equal (percent (0.301), "30 %");
  assert_string_equal (percent (0.0042), "0.4 %");
  assert_string_equal (percent (0.0001), "<0.1 %");
  assert_string_equal (percent (0), "0 %");
}

static void test_what_comes_from_elsewhere_is_made_safe (void **state)
{
  (void) state;
  char text[64];
  ctl_style_safe (text, sizeof text, "a\033[2Jb", 1);
  assert_string_equal (text, "a\\x1b[2Jb");
  ctl_style_safe (text, sizeof text,
                  "\xc2\x9b"
                  "31m",
                  1); /* CSI of the upper set */
  assert_string_equal (text, "\\xc2\\x9b31m");
  ctl_style_safe (text, sizeof text, "x\xe2\x80\xaey", 1); /* right-to-left override */
  assert_string_equal (text, "x\\xe2\\x80\\xaey");
  ctl_style_safe (text, sizeof text,
                  "gr\xc3\xb6\xc3\x9f"
                  "e\x7f",
                  1);
  assert_string_equal (text, "gr\xc3\xb6\xc3\x9f"
                             "e\\x7f");
  ctl_style_safe (text, sizeof text, "\xc3\xb6", 0);
  assert_string_equal (text, "\\xc3\\xb6");
  assert_int_equal (ctl_style_safe (text, 6, "ab\033cd", 1), 2); /* never half an escape */
  assert_string_equal (text, "ab");
}

static void test_cells_are_as_wide_as_asked (void **state)
{
  (void) state;
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream (&text, &size);
  ctl_style_cell (out, &golden_wide,
                  "gr\xc3\xb6\xc3\x9f"
                  "e",
                  7, 1);
  fputc ('|', out);
  ctl_style_cell (out, &golden_wide, "abcdefgh", 5, 0);
  fputc ('|', out);
  ctl_style_cell (out, &golden_ascii, "abcdefgh", 5, 0);
  fputc ('|', out);
  ctl_style_cell (out, &golden_wide, "日本語", 4, 0); /* two columns each: one fits before the ellipsis */
  fputc ('|', out);
  fclose (out);
  assert_string_equal (text, "  gr\xc3\xb6\xc3\x9f"
                             "e|abcd…|abcd~|日… |");
  free (text);
}

static void test_the_terminal_is_asked (void **state)
{
  (void) state;
  int pipe_fd[2];
  ctl_style_t style;
  assert_int_equal (pipe (pipe_fd), 0);
  unsetenv ("LC_ALL");
  unsetenv ("LC_CTYPE");
  unsetenv ("COLUMNS");
  setenv ("LANG", "C", 1);
  ctl_style_detect (pipe_fd[1], &style);
  assert_int_equal (style.columns, 80);
  assert_int_equal (style.utf8, 0);
  assert_int_equal (style.colour, 0);
  setenv ("LANG", "C.UTF-8", 1);
  setenv ("COLUMNS", "72", 1);
  ctl_style_detect (pipe_fd[1], &style);
  assert_int_equal (style.columns, 72);
  assert_int_equal (style.utf8, 1);
  setenv ("LC_ALL", "POSIX", 1); /* stands above LANG */
  setenv ("COLUMNS", "1", 1);
  ctl_style_detect (pipe_fd[1], &style);
  assert_int_equal (style.utf8, 0);
  assert_int_equal (style.columns, 40);
  close (pipe_fd[0]);
  close (pipe_fd[1]);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_numbers),
      cmocka_unit_test (test_what_comes_from_elsewhere_is_made_safe),
      cmocka_unit_test (test_cells_are_as_wide_as_asked),
      cmocka_unit_test (test_the_terminal_is_asked),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
