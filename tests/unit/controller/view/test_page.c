/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a report as text: which trees are in it, that its data stays data, and its bounds. What a
 * browser makes of it is in tests/flow/test_report.py. */
#include "golden.h"

#include "../../../../common/ids.h"
#include "../../../../common/status.h"
#include "../../../../controller/task/pack.h"
#include "../../../../controller/view/page.h"

typedef struct {
  char *text;
  json_t *data;
} written_t;

static void add (ctl_page_t *page, ctl_execution_t *execution)
{
  void *data;
  size_t size;
  assert_int_equal (ctl_execution_pack (execution, &data, &size), 0);
  assert_int_equal (ctl_page_add (page, data, size), 0);
  free (data);
  ctl_execution_destroy (&execution);
}

static written_t write_page (ctl_page_t *page, const uint8_t *task)
{
  written_t written = {0};
  size_t size;
  json_t *analysis = json_pack ("{s:[]}", "names");
  ctl_page_about_t about = {
      .analysis = analysis, .scope = "all </script>", .task = task, .made_ns = GOLDEN_START};
  FILE *out = open_memstream (&written.text, &size);
  assert_int_equal (ctl_page_write (page, out, &about), 0);
  fclose (out);
  json_decref (analysis);
  char *from = strstr (written.text, "id=\"data\">") + strlen ("id=\"data\">"),
       *to = strstr (from, "</script>");
  for (const char *at = from; at < to; at++) /* P2 */
    if (*at == '<' || *at == '>' || *at == '&' || (unsigned char) *at >= 0x80)
      fail_msg ("%.40s", at);
  json_error_t error;
  written.data = json_loadb (from, (size_t) (to - from), 0, &error);
  if (!written.data)
    fail_msg ("%s at %d", error.text, error.position);
  return written;
}

static void forget (written_t *written, ctl_page_t **page)
{
  free (written->text);
  json_decref (written->data);
  ctl_page_destroy (page);
}

static const char *text_at (const written_t *written, json_int_t place)
{
  return json_string_value (json_array_get (json_object_get (written->data, "texts"), (size_t) place));
}

static json_t *executions (const written_t *written)
{
  return json_object_get (written->data, "executions");
}

/* Field `field` of execution `index`, as EXECUTION in page.js has them. */
static json_int_t number_of (const written_t *written, size_t index, size_t field)
{
  return json_integer_value (json_array_get (json_array_get (executions (written), index), field));
}

enum { NAME = 1, COMPLETE = 4, DURATION = 6, COUNT = 7, FAILED = 10, TREE = 11 };

static ctl_execution_t *simple (uint32_t number, const char *name, uint32_t subtasks, double ms, int error)
{
  ctl_execution_t *execution = golden_new (1);
  free (execution->subtasks);
  execution->subtasks = calloc (subtasks, sizeof *execution->subtasks);
  memcpy (execution->task, &number, sizeof number);
  golden_add (execution, 1, 0, CTL_HOP_ROOT, "front", "cpython", name, 0, ms)->error =
      error ? WEFT_ERROR_TIMEOUT : WEFT_ERROR_NONE;
  for (uint32_t i = 2; i <= subtasks; i++)
    golden_add (execution, i, 1, CTL_HOP_PROVEN, "back", "jvm", "GET /part", ms * 0.1, ms * 0.9);
  assert_int_equal (ctl_execution_settle (execution), 0);
  return execution;
}

/* The slowest, those in the middle, and the slowest that failed; nothing twice. */
static void test_which_trees (void **state)
{
  (void) state;
  ctl_page_t *page = ctl_page_new ();
  for (uint32_t i = 0; i < 100; i++)
    add (page, simple (1 + (i * 37) % 100, "GET /a", 2, 1 + (i * 37) % 100, (i * 37) % 100 < 20));
  assert_int_equal (ctl_page_count (page), 100);
  written_t written = write_page (page, NULL);
  unsigned trees = 0;
  for (size_t i = 0; i < 100; i++) {
    json_int_t ms = number_of (&written, i, DURATION) / 1000000;
    int wanted = ms > 92 || (ms <= 50 && ms >= 48) || (ms <= 20 && ms >= 18);
    assert_string_equal (text_at (&written, number_of (&written, i, NAME)), "GET /a");
    if (wanted != (number_of (&written, i, TREE) >= 0))
      fail_msg ("the execution of %d ms", (int) ms);
    trees += (unsigned) wanted;
  }
  assert_int_equal (json_array_size (json_object_get (written.data, "trees")), trees);
  assert_int_equal (trees, CTL_PAGE_SLOWEST + CTL_PAGE_MEDIAN + CTL_PAGE_FAILED);
  forget (&written, &page);
}

/* P3: every name has its slowest before one has its second; what does not fit is listed without its tree. */
static void test_bound (void **state)
{
  (void) state;
  static char name[40][16];
  ctl_page_t *page = ctl_page_new ();
  for (uint32_t i = 0; i < 120; i++) {
    snprintf (name[i % 40], sizeof *name, "GET /%u", i % 40);
    add (page, simple (1 + i, name[i % 40], 2000, 1 + i, 0));
  }
  written_t written = write_page (page, NULL);
  uint64_t subtasks = 0;
  unsigned slowest = 0;
  for (size_t i = 0; i < 120; i++)
    if (number_of (&written, i, TREE) >= 0) {
      subtasks += (uint64_t) number_of (&written, i, COUNT);
      slowest += number_of (&written, i, DURATION) > 80 * (json_int_t) GOLDEN_MS;
    }
  assert_int_equal (subtasks, CTL_PAGE_SUBTASKS_MAX);
  assert_int_equal (slowest, 40);
  assert_int_equal (json_array_size (executions (&written)), 120);
  forget (&written, &page);
}

/* The one that was asked for is there, though others are slower. */
static void test_one_that_is_asked_for (void **state)
{
  (void) state;
  ctl_page_t *page = ctl_page_new ();
  uint8_t task[WEFT_TASK_ID_SIZE], other[WEFT_TASK_ID_SIZE];
  for (uint32_t i = 0; i < 60; i++) {
    ctl_execution_t *one = simple (1 + i, "GET /a", 2000, 100 + i, 0);
    memcpy (i == 10 ? task : other, one->task, sizeof task);
    if (i != 20)
      add (page, one);
    else
      ctl_execution_destroy (&one);
    assert_int_equal (ctl_page_has (page, other), i != 20);
  }
  written_t written = write_page (page, task);
  size_t i = 0;
  while (number_of (&written, i, DURATION) != 110 * (json_int_t) GOLDEN_MS)
    i++;
  assert_int_equal (number_of (&written, i, TREE), 0);
  forget (&written, &page);
}

/* Whatever a peer may call itself: the data holds it, the frame does not change. */
static void test_hostile (void **state)
{
  (void) state;
  static const char *const names[] = {
      "</script><script>", "<!--<script", "]]>",   "@STYLE@@DATA@", "\xe2\x80\xa8\xe2\x80\xa9",
      "\xff\xfe",          "\"\\\n\t",    "&amp;", "\xed\xa0\x80",  ""};
  ctl_page_t *page = ctl_page_new ();
  written_t empty = write_page (page, NULL);
  size_t scripts = 0, wanted = 0;
  for (const char *at = empty.text; (at = strstr (at, "<script")); at++)
    wanted++;
  for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
    ctl_execution_t *execution = simple (1 + i, names[i], 2, 5, 0);
    execution->subtasks[1].service = names[i];
    add (page, execution);
  }
  add (page, golden_odd ());
  add (page, golden_orphan (3));
  written_t written = write_page (page, NULL);
  for (const char *at = written.text; (at = strstr (at, "<script")); at++)
    scripts++;
  assert_int_equal (scripts, wanted);
  assert_string_equal (json_string_value (json_object_get (written.data, "scope")), "all </script>");
  unsigned found = 0;
  for (size_t i = 0; i < json_array_size (executions (&written)); i++)
    found += strcmp (text_at (&written, number_of (&written, i, NAME)), "</script><script>") == 0;
  assert_int_equal (found, 1);
  free (empty.text);
  json_decref (empty.data);
  forget (&written, &page);
}

static void test_what_is_no_execution (void **state)
{
  (void) state;
  ctl_page_t *page = ctl_page_new ();
  assert_int_equal (ctl_page_add (page, "no", 2), WEFT_E_MALFORMED);
  assert_int_equal (ctl_page_count (page), 0);
  ctl_page_destroy (&page);
  ctl_page_destroy (&page);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_which_trees),           cmocka_unit_test (test_bound),
      cmocka_unit_test (test_one_that_is_asked_for), cmocka_unit_test (test_hostile),
      cmocka_unit_test (test_what_is_no_execution),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
