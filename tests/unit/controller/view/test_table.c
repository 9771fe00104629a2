/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include "../../../../controller/view/edge_table.h"
#include "../../../../controller/view/table.h"

static void test_profile (void **state)
{
  (void) state;
  golden_t golden;
  ctl_instance_t instances[3];
  ctl_analysis_t *analysis = golden_analysis ();
  golden_instances (instances);
  const ctl_instance_t *list[3] = {&instances[0], &instances[1], &instances[2]};
  assert_int_equal (ctl_table_profile (golden_begin (&golden), &golden_wide, analysis, 1, list, 3), 0);
  golden_end (&golden, "profile.txt");
  assert_int_equal (ctl_table_profile (golden_begin (&golden), &golden_ascii, analysis, 0, NULL, 0), 0);
  golden_end (&golden, "profile-ascii.txt");
  assert_int_equal (ctl_table_profile (golden_begin (&golden), &golden_colour, analysis, 1, NULL, 0), 0);
  golden_end (&golden, "profile-colour.txt");
  ctl_analysis_destroy (&analysis);
}

static void test_profile_with_a_database (void **state)
{
  (void) state;
  golden_t golden;
  ctl_analyse_t *analyse = ctl_analyse_new ();
  ctl_analysis_t *analysis = NULL;
  ctl_instance_t instances[3];
  golden_instances (instances);
  const ctl_instance_t *list[3] = {&instances[0], &instances[1], &instances[2]};
  for (uint8_t i = 0; i < 3; i++) {
    ctl_execution_t *execution = golden_database (i);
    assert_int_equal (ctl_analyse_add (analyse, execution), 0);
    ctl_execution_destroy (&execution);
  }
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  assert_int_equal (ctl_table_profile (golden_begin (&golden), &golden_wide, analysis, 0, list, 3), 0);
  golden_end (&golden, "profile-opaque.txt");
  ctl_analysis_destroy (&analysis);
  ctl_analyse_destroy (&analyse);
}

static void test_nothing_is_a_report_too (void **state)
{
  (void) state;
  golden_t golden;
  ctl_analyse_t *analyse = ctl_analyse_new ();
  ctl_analysis_t *analysis = NULL;
  assert_int_equal (ctl_analyse_finish (analyse, &analysis), 0);
  assert_int_equal (ctl_table_profile (golden_begin (&golden), &golden_wide, analysis, 0, NULL, 0), 0);
  golden_end (&golden, "profile-empty.txt");
  ctl_analysis_destroy (&analysis);
  ctl_analyse_destroy (&analyse);
}

static void test_tasks (void **state)
{
  (void) state;
  golden_t golden;
  ctl_analysis_t *analysis = golden_analysis ();
  assert_int_equal (ctl_table_tasks (golden_begin (&golden), &golden_wide, analysis), 0);
  golden_end (&golden, "tasks.txt");
  assert_int_equal (ctl_table_tasks (golden_begin (&golden), &golden_ascii, analysis), 0);
  golden_end (&golden, "tasks-ascii.txt");
  ctl_analysis_destroy (&analysis);
}

static void test_edges (void **state)
{
  (void) state;
  golden_t golden;
  ctl_analysis_t *analysis = golden_analysis ();
  assert_int_equal (ctl_edge_table_print (golden_begin (&golden), &golden_wide, analysis), 0);
  golden_end (&golden, "edges.txt");
  assert_int_equal (ctl_edge_table_print (golden_begin (&golden), &golden_ascii, analysis), 0);
  golden_end (&golden, "edges-ascii.txt");
  assert_int_equal (ctl_edge_table_csv (golden_begin (&golden), analysis), 0);
  golden_end (&golden, "edges.csv");
  ctl_analysis_destroy (&analysis);
}

static void test_each (void **state)
{
  (void) state;
  golden_t golden;
  FILE *out = golden_begin (&golden);
  assert_int_equal (ctl_table_each_head (out, &golden_wide), 0);
  for (int i = 0; i < 3; i++) {
    ctl_execution_t *execution = i == 0 ? golden_shop (1, 1) : i == 1 ? golden_odd () : golden_orphan (2);
    assert_int_equal (ctl_table_each (out, &golden_wide, execution), 0);
    ctl_execution_destroy (&execution);
  }
  golden_end (&golden, "each.txt");
}

/* Whatever the width of the terminal. */
static void test_each_fits (void **state)
{
  (void) state;
  ctl_execution_t *execution = golden_shop (1, 1);
  for (uint32_t columns = 40; columns <= 200; columns++) {
    ctl_style_t style = {columns, 1, 0};
    char line[512];
    FILE *out = tmpfile ();
    assert_int_equal (ctl_table_each_head (out, &style), 0);
    assert_int_equal (ctl_table_each (out, &style, execution), 0);
    rewind (out);
    for (int n = 0; n < 2; n++) {
      assert_non_null (fgets (line, sizeof line, out));
      assert_true (ctl_style_width (line) - 1 <= columns);
      assert_true ((strstr (line, n ? "13:42:11.482" : "SUBTASKS") != NULL) == (columns >= 96));
      assert_true ((strstr (line, n ? "11-30 13:42:11" : "START") != NULL) == (columns >= 60));
    }
    fclose (out);
  }
  ctl_execution_destroy (&execution);
}

/* As another tracer's 64-bit ids come: digits that tell it from others. */
static void test_a_padded_id (void **state)
{
  char line[512] = "";
  FILE *out = tmpfile ();
  ctl_execution_t *execution = golden_shop (1, 1);
  (void) state;
  memset (execution->task, 0, 8);
  execution->task[8] = 0xab;
  execution->task[11] = 0x1f;
  assert_int_equal (ctl_table_each (out, &golden_wide, execution), 0);
  rewind (out);
  assert_non_null (fgets (line, sizeof line, out));
  assert_non_null (strstr (line, "0000000000000000ab"));
  fclose (out);
  ctl_execution_destroy (&execution);
}

static void test_instances (void **state)
{
  (void) state;
  golden_t golden;
  ctl_instance_t instances[3];
  golden_instances (instances);
  const ctl_instance_t *list[3] = {&instances[0], &instances[1], &instances[2]};
  assert_int_equal (ctl_table_instances (golden_begin (&golden), &golden_wide, list, 3), 0);
  golden_end (&golden, "ls.txt");
  assert_int_equal (ctl_table_instances (golden_begin (&golden), &golden_ascii, list, 3), 0);
  golden_end (&golden, "ls-ascii.txt");
}

static void test_losses (void **state)
{
  (void) state;
  golden_t golden;
  ctl_instance_t instances[3];
  golden_instances (instances);
  const ctl_instance_t *list[3] = {&instances[0], &instances[1], &instances[2]};
  assert_int_equal (ctl_table_losses (golden_begin (&golden), &golden_wide, list, 3), 0);
  golden_end (&golden, "ls-losses.txt");
}

static void test_a_full_pipe_is_an_error (void **state)
{
  (void) state;
  FILE *full = fopen ("/dev/full", "we");
  ctl_analysis_t *analysis = golden_analysis ();
  assert_non_null (full);
  setvbuf (full, NULL, _IONBF, 0);
  assert_true (ctl_table_tasks (full, &golden_wide, analysis) < 0);
  fclose (full);
  ctl_analysis_destroy (&analysis);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_profile),
      cmocka_unit_test (test_profile_with_a_database),
      cmocka_unit_test (test_nothing_is_a_report_too),
      cmocka_unit_test (test_tasks),
      cmocka_unit_test (test_edges),
      cmocka_unit_test (test_each),
      cmocka_unit_test (test_each_fits),
      cmocka_unit_test (test_a_padded_id),
      cmocka_unit_test (test_instances),
      cmocka_unit_test (test_losses),
      cmocka_unit_test (test_a_full_pipe_is_an_error),
  };
  setenv ("TZ", "UTC", 1);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
