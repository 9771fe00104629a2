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

#include <errno.h>
#include <unistd.h>

#include "../../../common/log.h"

/* Runs `say` with stderr in a pipe; returns what came out. */
static size_t captured (void (*say) (void), char *out, size_t size)
{
  int pipes[2], saved = dup (STDERR_FILENO);
  assert_int_equal (pipe (pipes), 0);
  dup2 (pipes[1], STDERR_FILENO);
  close (pipes[1]);
  say ();
  dup2 (saved, STDERR_FILENO);
  close (saved);
  ssize_t got = read (pipes[0], out, size - 1);
  close (pipes[0]);
  out[got > 0 ? got : 0] = 0;
  return got > 0 ? (size_t) got : 0;
}

static void say_error (void)
{
  errno = ENOENT;
  weft_log_error ("no %s: %m", "file");
  assert_int_equal (errno, ENOENT);
}
static void say_forged (void)
{
  weft_log_error ("service '%s'", "a\nweft: b\x1b[31m");
}
static void say_long (void)
{
  weft_log_error ("%02000d", 1);
}
static void say_debug (void)
{
  weft_log_debug ("quiet");
}

static void lines (void **state)
{
  char out[4096];
  weft_log_name ("weft-instance");
  captured (say_error, out, sizeof (out));
  assert_string_equal (out, "weft-instance: no file: No such file or directory\n");
  captured (say_forged, out, sizeof (out));
  assert_string_equal (out, "weft-instance: service 'a weft: b [31m'\n");
  size_t size = captured (say_long, out, sizeof (out));
  assert_in_range (size, 1000, 1024);
  assert_int_equal (out[size - 1], '\n');
}

static void debug_is_off_unless_asked (void **state)
{
  char out[256];
  unsetenv ("WEFT_LOG");
  assert_int_equal (captured (say_debug, out, sizeof (out)), 0);
  weft_log_verbose (1);
  captured (say_debug, out, sizeof (out));
  assert_string_equal (out, "weft-instance: quiet\n");
}

int main (void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test (lines), cmocka_unit_test (debug_is_off_unless_asked)};
  return cmocka_run_group_tests (tests, NULL, NULL);
}
