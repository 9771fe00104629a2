/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "../../../../common/batch.h"
#include "../../../../common/clocks.h"
#include "../../../../controller/service/recovery.h"
#include "../../../../controller/service/sums.h"
#include "life.h"

enum { REPORTS = 3, LOST = 5 }; /* of each batch */

static char dir[64];

static void open_journal (life_t *life)
{
  char why[300];
  assert_int_equal (ctl_journal_open (dir, 0, &life->links.journal, why, sizeof why), 0);
  ctl_intake_link (life->intake, &life->links);
}

static void give (life_t *life, uint8_t who, uint64_t number)
{
  static uint8_t frame[WEFT_BATCH_MAX];
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  weft_batch_head_t head = {
      .major = 1, .instance = {who}, .start = {1}, .number = number, .reports = REPORTS};
  head.losses[WEFT_LOSS_SPOOL_FULL] = LOST;
  weft_report_t report = {.kind = WEFT_REPORT_CAPTURE,
                          .flags = WEFT_REPORT_ROOT,
                          .instruction = 1,
                          .name = "GET /",
                          .name_size = 5};
  size_t size = 0;
  assert_int_equal (weft_batch_writer_begin (writer, frame, sizeof frame, &head), 0);
  for (uint64_t n = 0; n < REPORTS; n++) {
    report.subtask = number * REPORTS + n;
    memcpy (report.task, &report.subtask, sizeof report.subtask);
    report.task[15] = who;
    assert_int_equal (weft_batch_writer_add (writer, &report), 0);
  }
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  assert_int_equal (ctl_intake_frame (life->intake, frame, size), 0);
  weft_batch_writer_destroy (&writer);
}

/* As the service does: the sums of the journal's end, now and then; those of a checkpoint before it is one. */
static void save_as (life_t *life, const char *name)
{
  ctl_journal_position_t here;
  ctl_journal_position (life->links.journal, &here);
  ctl_sums_t *sums = ctl_sums_take (life->links.instances);
  assert_int_equal (ctl_sums_save (dir, name, sums, life->links.instances, &here), 0);
  free (sums);
}

static void recover (life_t *life)
{
  ctl_recovery_t recovery;
  assert_int_equal (ctl_recovery_run (dir, life->intake, life->links.instances, &recovery), 0);
}

static void assert_sums (life_t *life, uint8_t who, uint64_t batches)
{
  uint8_t uuid[WEFT_UUID_SIZE] = {who};
  const ctl_instance_t *instance = ctl_instances_find (life->links.instances, uuid);
  assert_non_null (instance);
  assert_int_equal (instance->stored, batches * REPORTS);
  assert_int_equal (instance->losses[WEFT_LOSS_SPOOL_FULL], batches * LOST);
}

static void remove_segment (unsigned segment)
{
  char path[96];
  snprintf (path, sizeof path, "%s/%08u.weftj", dir, segment);
  assert_int_equal (unlink (path), 0);
}

static int setup (void **state)
{
  strcpy (dir, "/tmp/weft-sums-XXXXXX");
  return mkdtemp (dir) ? 0 : -1;
}

static int teardown (void **state)
{
  char command[96];
  snprintf (command, sizeof command, "rm -rf '%s'", dir);
  return system (command);
}

/* U1: two batches are summed up, one follows; whether the journal still has the two makes no difference. */
static void the_account_outlives_the_journal (void **state)
{
  life_t first = begin_life (0);
  open_journal (&first);
  give (&first, 7, 1);
  give (&first, 7, 2);
  save_as (&first, CTL_SUMS_LAST);
  give (&first, 7, 3);
  end_life (&first);
  life_t second = begin_life (0);
  recover (&second); /* nothing twice */
  assert_sums (&second, 7, 3);
  open_journal (&second); /* another segment */
  give (&second, 7, 4);
  save_as (&second, CTL_SUMS_LAST);
  give (&second, 7, 5);
  end_life (&second);
  remove_segment (1);
  life_t third = begin_life (0);
  recover (&third);
  assert_sums (&third, 7, 5);
  uint32_t intervals;
  ctl_instances_intervals (third.links.instances, &intervals);
  assert_int_equal (intervals, 2); /* of what is still there */
  end_life (&third);
}

/* All of its batches are gone; who was there is known, who had left is forgotten. */
static void an_instance_of_which_the_journal_knows_nothing (void **state)
{
  uint8_t left[WEFT_UUID_SIZE] = {8};
  life_t first = begin_life (0);
  open_journal (&first);
  give (&first, 7, 1);
  give (&first, 8, 1);
  ctl_instances_find (first.links.instances, left)->presence = CTL_INSTANCE_LEFT;
  save_as (&first, CTL_SUMS_LAST);
  end_life (&first);
  remove_segment (1);
  life_t second = begin_life (0);
  recover (&second);
  assert_sums (&second, 7, 1);
  assert_null (ctl_instances_find (second.links.instances, left));
  end_life (&second);
}

/* U3: a batch behind the checkpoint that was shed, and summed up as lost, is stored by the next life, and
 * counts as that; what is before the checkpoint stays what it was, though its sums say shed and the journal
 * could not tell. */
static void what_is_taken_anew_counts_anew (void **state)
{
  uint8_t uuid[WEFT_UUID_SIZE] = {7};
  for (int moved = 0; moved < 2; moved++) { /* does the checkpoint itself follow its sums? it is not needed */
    life_t first = begin_life (0);
    open_journal (&first);
    ctl_shed_t *shed = ctl_correlate_shedder (first.links.correlate);
    give (&first, 7, 1);
    ctl_shed_keep (shed, 0);
    give (&first, 7, 2);
    save_as (&first, CTL_SUMS_STORED);
    if (moved)
      assert_int_equal (checkpoint_life (&first), 0);
    give (&first, 7, 3);
    save_as (&first, CTL_SUMS_LAST);
    const ctl_instance_t *instance = ctl_instances_find (first.links.instances, uuid);
    assert_int_equal (instance->losses[WEFT_LOSS_SHED], 2 * REPORTS);
    assert_int_equal (instance->stored, REPORTS);
    end_life (&first);
    life_t second = begin_life (0);
    recover (&second);
    instance = ctl_instances_find (second.links.instances, uuid);
    assert_int_equal (instance->losses[WEFT_LOSS_SHED], REPORTS);
    assert_int_equal (instance->stored, 2 * REPORTS);
    ctl_correlate_stats_t stats;
    ctl_correlate_stats (second.links.correlate, &stats);
    assert_int_equal (stats.open_tasks, REPORTS); /* those behind the checkpoint, no other */
    end_life (&second);
    teardown (NULL);
    setup (NULL);
  }
}

/* U3: of what stood behind the checkpoint a bound has taken some: the later sums have it. */
static void a_journal_that_lost_what_was_behind (void **state)
{
  life_t first = begin_life (0);
  open_journal (&first);
  give (&first, 7, 1);
  save_as (&first, CTL_SUMS_STORED);
  give (&first, 7, 2);
  save_as (&first, CTL_SUMS_LAST);
  end_life (&first);
  life_t second = begin_life (0);
  recover (&second);
  open_journal (&second); /* another segment */
  give (&second, 7, 3);
  end_life (&second);
  remove_segment (1);
  life_t third = begin_life (0);
  recover (&third);
  assert_sums (&third, 7, 3);
  end_life (&third);
}

/* U2 */
static void a_damaged_file_is_none (void **state)
{
  char path[96];
  life_t first = begin_life (0);
  open_journal (&first);
  give (&first, 7, 1);
  save_as (&first, CTL_SUMS_LAST);
  end_life (&first);
  snprintf (path, sizeof path, "%s/sums", dir);
  for (int keep = 0; keep < 2; keep++) {
    if (keep)
      assert_int_equal (truncate (path, 20), 0);
    else {
      FILE *file = fopen (path, "w");
      fputs ("{\"segment\": -1, \"offset\": \"x\", \"instances\": 3}", file);
      fclose (file);
    }
    life_t second = begin_life (0);
    recover (&second);
    assert_sums (&second, 7, 1);
    end_life (&second);
  }
}

/* A journal that is empty again does not begin before its checkpoint. */
static void a_new_segment_is_behind_the_checkpoint (void **state)
{
  life_t first = begin_life (0);
  open_journal (&first);
  give (&first, 7, 1);
  assert_int_equal (checkpoint_life (&first), 0);
  end_life (&first);
  remove_segment (1);
  life_t second = begin_life (0);
  open_journal (&second);
  give (&second, 7, 2);
  end_life (&second);
  life_t third = begin_life (0);
  recover (&third);
  ctl_correlate_stats_t stats;
  ctl_correlate_stats (third.links.correlate, &stats);
  assert_int_equal (stats.open_tasks, REPORTS); /* the store may not have them */
  end_life (&third);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (the_account_outlives_the_journal, setup, teardown),
      cmocka_unit_test_setup_teardown (an_instance_of_which_the_journal_knows_nothing, setup, teardown),
      cmocka_unit_test_setup_teardown (what_is_taken_anew_counts_anew, setup, teardown),
      cmocka_unit_test_setup_teardown (a_journal_that_lost_what_was_behind, setup, teardown),
      cmocka_unit_test_setup_teardown (a_damaged_file_is_none, setup, teardown),
      cmocka_unit_test_setup_teardown (a_new_segment_is_behind_the_checkpoint, setup, teardown),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
