/* SPDX-License-Identifier: Apache-2.0 */
/* The table of verbs and every text made from it. The texts are compared with
 * tests/golden/cli/NAME; WEFT_GOLDEN_WRITE=1 writes these files instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "../../../../common/status.h"
#include "../../../../controller/cli/usage.h"
#include "../../../../controller/cli/verbs.h"

static int width (const char *line, size_t size)
{
  int columns = 0;
  for (size_t n = 0; n < size; n++)
    columns += ((unsigned char) line[n] & 0xc0) != 0x80;
  return columns;
}

static void compare (const char *name, char *got, size_t size)
{
  char path[128], right[32768];
  snprintf (path, sizeof path, "tests/golden/cli/%s", name);
  if (getenv ("WEFT_GOLDEN_WRITE")) {
    FILE *out = fopen (path, "w");
    assert_non_null (out);
    fwrite (got, 1, size, out);
    fclose (out);
  }
  FILE *in = fopen (path, "r");
  assert_non_null (in);
  size_t have = fread (right, 1, sizeof right - 1, in);
  fclose (in);
  right[have] = 0;
  assert_string_equal (got, right);
}

/* What print writes. */
static char *text_of (void (*print) (FILE *out), const ctl_verb_t *verb, size_t *ret_size)
{
  char *text = NULL;
  FILE *out = open_memstream (&text, ret_size);
  if (verb)
    ctl_usage_verb (out, verb);
  else
    print (out);
  fclose (out);
  return text;
}

static void test_every_entry_says_what_it_is (void **state)
{
  assert_true (ctl_verb_count >= 10);
  for (uint32_t n = 0; n < ctl_verb_count; n++) {
    const ctl_verb_t *verb = &ctl_verbs[n];
    assert_true (strlen (verb->summary) > 5);
    assert_true (strlen (verb->summary) <= 80);
    assert_non_null (verb->run);
    assert_ptr_equal (ctl_verb_find (verb->name), verb);
    assert_true (verb->option_count + ctl_common_option_count < WEFT_OPTIONS_MAX);
    assert_true ((*verb->arguments == 0) == (verb->operands_max == 0));
    for (uint32_t o = 0; o < verb->option_count; o++) {
      const ctl_option_t *option = &verb->options[o];
      assert_true (strlen (option->help) > 5);
      assert_true (strspn (option->name, "abcdefghijklmnopqrstuvwxyz-") == strlen (option->name));
      for (uint32_t p = 0; p < o; p++)
        assert_string_not_equal (option->name, verb->options[p].name);
      for (uint32_t p = 0; p < ctl_common_option_count; p++)
        assert_string_not_equal (option->name, ctl_common_options[p].name);
    }
  }
  assert_null (ctl_verb_find ("prof"));
}

static void test_texts (void **state)
{
  size_t size;
  char *text = text_of (ctl_usage, NULL, &size);
  compare ("help.txt", text, size);
  free (text);
  text = text_of (ctl_usage_completion, NULL, &size);
  compare ("completion.bash", text, size);
  free (text);
  for (uint32_t n = 0; n < ctl_verb_count; n++) {
    char name[64];
    snprintf (name, sizeof name, "help-%s.txt", ctl_verbs[n].name);
    text = text_of (NULL, &ctl_verbs[n], &size);
    compare (name, text, size);
    for (char *line = text, *end; *line; line = end + 1) {
      end = strchr (line, '\n');
      assert_non_null (end);
      assert_true (width (line, (size_t) (end - line)) <= 100);
    }
    free (text);
  }
}

/* Every verb and option is on the page; nothing that troff would take for a request. */
static void test_man_page (void **state)
{
  size_t size;
  char *text = text_of (ctl_usage_man, NULL, &size), wanted[64];
  for (uint32_t n = 0; n < ctl_verb_count; n++) {
    snprintf (wanted, sizeof wanted, "\n.SS %s", ctl_verbs[n].name);
    assert_non_null (strstr (text, wanted));
  }
  assert_non_null (strstr (text, "\\-\\-embed\\-to"));
  const char *known[] = {".\\\"", ".TH", ".SH", ".SS", ".TP", ".B", ".I"};
  for (char *line = text; line && *line;) {
    if (*line == '.' || *line == '\'') {
      int is_known = 0;
      for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        is_known |= strncmp (line, known[k], strlen (known[k])) == 0;
      assert_true (is_known);
    }
    line = strchr (line, '\n');
    line = line ? line + 1 : NULL;
  }
  free (text);
}

/* ---- parsing ------------------------------------------------------------ */

static int parse (ctl_call_t *call, const char *verb, int argc, ...)
{
  static char word[16][64];
  static char *argv[17];
  va_list args;
  va_start (args, argc);
  argv[0] = word[0];
  snprintf (word[0], sizeof *word, "%s", verb);
  for (int n = 1; n <= argc; n++) {
    argv[n] = word[n];
    snprintf (word[n], sizeof *word, "%s", va_arg (args, const char *));
  }
  argv[argc + 1] = NULL;
  va_end (args);
  int saved = dup (STDERR_FILENO);
  FILE *null = fopen ("/dev/null", "w");
  dup2 (fileno (null), STDERR_FILENO);
  int rc = ctl_call_parse (call, ctl_verb_find (verb), argc + 1, argv);
  dup2 (saved, STDERR_FILENO);
  close (saved);
  fclose (null);
  return rc;
}

static void test_parser (void **state)
{
  ctl_call_t call;
  uint64_t number = 0;
  uint32_t at = 0;
  setenv ("WEFT_CONTROLLER", "ipc:///tmp/none", 1);
  assert_int_equal (parse (&call, "profile", 5, "12", "--for", "3s", "--on=vm=jvm", "13"), 0);
  assert_int_equal (call.operand_count, 2);
  assert_string_equal (call.operands[1], "13");
  assert_string_equal (call.address, "ipc:///tmp/none");
  assert_int_equal (ctl_call_duration (&call, "for", 10000, 1, &number), 0);
  assert_int_equal (number, 3000);
  assert_int_equal (ctl_call_duration (&call, "last", 10000, 17, &number), 0);
  assert_int_equal (number, 17);
  assert_int_equal (parse (&call, "profile", 4, "--on", "a=1", "--on", "a=2"), 0);
  assert_string_equal (ctl_call_next (&call, "on", &at), "a=1");
  assert_string_equal (ctl_call_next (&call, "on", &at), "a=2");
  assert_null (ctl_call_next (&call, "on", &at));
  assert_int_equal (parse (&call, "ls", 2, "--controller", "tcp://127.0.0.1:7000"), 0);
  assert_string_equal (call.address, "tcp://127.0.0.1:7000");
  assert_int_equal (parse (&call, "report", 3, "-o", "a.html", "0192f3"), 0);
  assert_string_equal (ctl_call_value (&call, "o", ""), "a.html");
  assert_string_equal (call.operands[0], "0192f3");
  assert_int_equal (parse (&call, "report", 1, "-oa.html"), 0);
  assert_string_equal (ctl_call_value (&call, "o", ""), "a.html");
  assert_int_equal (parse (&call, "ls", 1, "--help"), 1);
  assert_int_equal (parse (&call, "ls", 1, "-h"), 1);
}

static void test_what_the_parser_refuses (void **state)
{
  ctl_call_t call;
  setenv ("WEFT_CONTROLLER", "ipc:///tmp/none", 1);
  assert_int_equal (parse (&call, "ls", 1, "--fly"), WEFT_E_USAGE);
  assert_int_equal (parse (&call, "ls", 1, "more"), WEFT_E_USAGE);
  assert_int_equal (parse (&call, "ls", 2, "--json", "--csv"), WEFT_E_USAGE);
  assert_int_equal (parse (&call, "ls", 2, "--controller", "nowhere"), WEFT_E_USAGE);
  assert_int_equal (parse (&call, "show", 0), WEFT_E_USAGE);
  assert_int_equal (parse (&call, "profile", 1, "--for"), WEFT_E_USAGE);
  assert_int_equal (parse (&call, "profile", 4, "--for", "1s", "--for", "2s"), WEFT_E_USAGE);
  assert_int_equal (parse (&call, "report", 1, "-o"), WEFT_E_USAGE);
  assert_int_equal (parse (&call, "report", 4, "-o", "a", "-o", "b"), WEFT_E_USAGE);
  assert_int_equal (parse (&call, "report", 2, "--o", "a"), WEFT_E_USAGE);
  assert_int_equal (parse (&call, "ls", 2, "-o", "a"), WEFT_E_USAGE);
}

/* What follows the command belongs to it. */
static void test_run_stops_at_its_command (void **state)
{
  ctl_call_t call;
  setenv ("WEFT_CONTROLLER", "ipc:///tmp/none", 1);
  assert_int_equal (parse (&call, "run", 5, "--service", "x", "java", "--version", "--service"), 0);
  assert_string_equal (ctl_call_value (&call, "service", ""), "x");
  assert_int_equal (call.operand_count, 3);
  assert_string_equal (call.operands[1], "--version");
  assert_int_equal (parse (&call, "run", 3, "--", "--odd", "y"), 0);
  assert_string_equal (call.operands[0], "--odd");
}

static void test_pids_and_numbers (void **state)
{
  int64_t pid = 0;
  ctl_call_t call;
  uint64_t number = 5;
  setenv ("WEFT_CONTROLLER", "ipc:///tmp/none", 1);
  assert_int_equal (ctl_call_pid ("4121", &pid), 0);
  assert_int_equal (pid, 4121);
  const char *bad[] = {"", "0", "-1", "12x", " 12", "+3", "99999999999999999999", "4194305"};
  for (size_t n = 0; n < sizeof bad / sizeof *bad; n++)
    assert_int_equal (ctl_call_pid (bad[n], &pid), WEFT_E_USAGE);
  assert_int_equal (pid, 4121);
  assert_int_equal (parse (&call, "tasks", 2, "--limit", "7"), 0);
  assert_int_equal (ctl_call_number (&call, "limit", 1, 10, 3, &number), 0);
  assert_int_equal (number, 7);
  assert_int_equal (ctl_call_number (&call, "limit", 8, 10, 3, &number), WEFT_E_USAGE);
  assert_int_equal (ctl_call_number (&call, "limit", 1, 6, 3, &number), WEFT_E_USAGE);
  assert_int_equal (number, 7);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_every_entry_says_what_it_is),
      cmocka_unit_test (test_texts),
      cmocka_unit_test (test_man_page),
      cmocka_unit_test (test_parser),
      cmocka_unit_test (test_what_the_parser_refuses),
      cmocka_unit_test (test_run_stops_at_its_command),
      cmocka_unit_test (test_pids_and_numbers),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
