/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "../../../../controller/service/checkpoint.h"

typedef struct {
  char dir[64];
  ctl_journal_t *journal;
  ctl_checkpoint_t checkpoint;
} fixture_t;

static int setup (void **state)
{
  fixture_t *self = calloc (1, sizeof *self);
  char why[300];
  snprintf (self->dir, sizeof self->dir, "/tmp/weft-checkpoint-XXXXXX");
  *state = self;
  return mkdtemp (self->dir) && ctl_journal_open (self->dir, 0, &self->journal, why, sizeof why) == 0 ? 0
                                                                                                      : -1;
}

static int teardown (void **state)
{
  fixture_t *self = *state;
  char path[96];
  ctl_journal_close (&self->journal);
  snprintf (path, sizeof path, "%s/00000001.weftj", self->dir);
  unlink (path);
  snprintf (path, sizeof path, "%s/checkpoint", self->dir);
  unlink (path);
  int rc = rmdir (self->dir);
  free (self);
  return rc;
}

/* Records read from the checkpoint on: how many are not in the store as far as is known. */
static int behind (const fixture_t *self)
{
  ctl_journal_reader_t *reader = NULL;
  const void *frame;
  size_t size;
  ctl_journal_position_t position;
  int count = 0;
  assert_int_equal (ctl_journal_reader_open (self->dir, 1, &reader), 0);
  while (ctl_journal_reader_next (reader, &frame, &size, &position) == 1)
    count++;
  ctl_journal_reader_close (&reader);
  return count;
}

static void append (const fixture_t *self)
{
  assert_int_equal (ctl_journal_append (self->journal, "frame", 5), 0);
}

static int run (fixture_t *self, uint64_t now_ns, uint64_t oldest_ns)
{
  assert_int_equal (ctl_checkpoint_run (&self->checkpoint, self->journal, now_ns, oldest_ns), 0);
  return behind (self);
}

/* There is always something open, and yet it moves. */
static void it_follows_the_oldest_open_task (void **state)
{
  fixture_t *self = *state;
  append (self);
  assert_int_equal (run (self, 100, 50), 1); /* a task began at 50: its report may be the record */
  append (self);
  assert_int_equal (run (self, 200, 99), 2);
  append (self);
  assert_int_equal (run (self, 300, 150), 2); /* all that was open at 100 is stored */
  append (self);
  assert_int_equal (run (self, 400, 350), 1);
  assert_int_equal (run (self, 500, UINT64_MAX), 0);
}

static void many_marks_are_thinned_not_lost (void **state)
{
  fixture_t *self = *state;
  int records = 10 * WEFT_CHECKPOINTS_MAX;
  for (int n = 1; n <= records; n++) {
    append (self);
    assert_int_equal (run (self, 100 + (uint64_t) n, 50), n);
  }
  /* Whatever mark it takes lies before the moment that is safe. */
  int left = run (self, 100 + (uint64_t) records, 100 + (uint64_t) records / 2);
  assert_in_range (left, records / 2, records - 1);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (it_follows_the_oldest_open_task, setup, teardown),
      cmocka_unit_test_setup_teardown (many_marks_are_thinned_not_lost, setup, teardown),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
