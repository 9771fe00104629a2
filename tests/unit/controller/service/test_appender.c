/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka.h must follow these */
#include <cmocka.h>

#include "../../../../common/status.h"
#include "../../../../controller/service/appender.h"

#define ROUNDS 200u

/* Every round is in the journal when end returns, in order, whether the thread has come to it (it has
 * time to in every other round) or not; a refusal is told and leaves it usable. */
static void test_rounds (void **state)
{
  char dir[] = "/tmp/weft-appender-XXXXXX", why[300] = "", path[64];
  ctl_journal_t *journal = NULL;
  ctl_journal_reader_t *reader = NULL;
  assert_non_null (mkdtemp (dir));
  assert_int_equal (ctl_journal_open (dir, 0, &journal, why, sizeof why), 0);
  ctl_appender_t *self = ctl_appender_new ();
  assert_non_null (self);
  for (uint32_t n = 0; n < ROUNDS; n++) {
    uint32_t numbers[2] = {2 * n, 2 * n + 1};
    const ctl_journal_frame_t frames[2] = {{&numbers[0], sizeof numbers[0]}, {&numbers[1], n % 7 ? 4 : 0}};
    ctl_appender_begin (self, journal, frames, 2);
    if (n % 2)
      usleep (200);
    assert_int_equal (ctl_appender_end (self), n % 7 ? 0 : WEFT_E_RANGE);
    assert_int_equal (ctl_journal_records (journal), 2 * (n - n / 7));
  }
  ctl_appender_destroy (&self);
  assert_null (self);
  ctl_appender_destroy (&self);
  ctl_journal_close (&journal);
  assert_int_equal (ctl_journal_reader_open (dir, 0, &reader), 0);
  for (uint32_t n = 0; n < 2 * ROUNDS; n++) {
    const void *frame = NULL;
    size_t size = 0;
    ctl_journal_position_t position;
    if (n / 2 % 7 == 0)
      continue;
    assert_int_equal (ctl_journal_reader_next (reader, &frame, &size, &position), 1);
    assert_int_equal (size, sizeof n);
    assert_memory_equal (frame, &n, size);
  }
  ctl_journal_reader_close (&reader);
  snprintf (path, sizeof path, "%s/00000001.weftj", dir);
  unlink (path);
  assert_int_equal (rmdir (dir), 0);
}

/* Destroyed while an append is under way: it is finished first. */
static void test_destroy_waits (void **state)
{
  char dir[] = "/tmp/weft-appender-XXXXXX", why[300] = "", path[64];
  ctl_journal_t *journal = NULL;
  static const char frame[WEFT_FRAME_MAX];
  const ctl_journal_frame_t frames[2] = {{frame, sizeof frame}, {frame, sizeof frame}};
  assert_non_null (mkdtemp (dir));
  assert_int_equal (ctl_journal_open (dir, 0, &journal, why, sizeof why), 0);
  ctl_appender_t *self = ctl_appender_new ();
  assert_non_null (self);
  ctl_appender_begin (self, journal, frames, 2);
  ctl_appender_destroy (&self);
  assert_int_equal (ctl_journal_records (journal), 2);
  ctl_journal_close (&journal);
  snprintf (path, sizeof path, "%s/00000001.weftj", dir);
  unlink (path);
  assert_int_equal (rmdir (dir), 0);
}

int main (void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test (test_rounds), cmocka_unit_test (test_destroy_waits)};
  return cmocka_run_group_tests (tests, NULL, NULL);
}
