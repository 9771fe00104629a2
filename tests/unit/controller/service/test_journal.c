/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../../../common/limits.h"
#include "../../../../common/status.h"
#include "../../../../controller/service/journal.h"
#include "journals.h"

static void test_layout (void **state)
{
  ctl_journal_t *self = journal_open (0);
  assert_int_equal (size_of ("00000001.weftj"), -1); /* nothing appended, no file */
  assert_int_equal (ctl_journal_append (self, "123456789", 9), 0);
  ctl_journal_close (&self);
  ctl_journal_close (&self);
  assert_int_equal (size_of ("00000001.weftj"), 32); /* 16 + 9, to a multiple of 8 */
  char path[128];
  uint8_t bytes[32];
  snprintf (path, sizeof path, "%s/00000001.weftj", dir);
  int fd = open (path, O_RDONLY);
  assert_int_equal (read (fd, bytes, 32), 32);
  close (fd);
  /* 0xe3069283 is the check value of CRC-32C. */
  const uint8_t right[32] = {'W', 'J', 'R', '1', 9,   0,   0,   0,   0x83, 0x92, 0x06, 0xe3, 1, 0, 0, 0,
                             '1', '2', '3', '4', '5', '6', '7', '8', '9',  0,    0,    0,    0, 0, 0, 0};
  assert_memory_equal (bytes, right, 32);
}

static void test_order_and_sizes (void **state)
{
  ctl_journal_t *self = journal_open (0);
  for (uint32_t n = 1; n <= 20; n++)
    assert_int_equal (append (self, n, 3 + n), 0);
  assert_int_equal (append (self, 21, WEFT_FRAME_MAX), 0);
  assert_int_equal (append (self, 22, WEFT_FRAME_MAX + 1), WEFT_E_RANGE);
  assert_int_equal (ctl_journal_append (self, "", 0), WEFT_E_RANGE);
  assert_int_equal (ctl_journal_records (self), 21);
  ctl_journal_close (&self);
  int got[64] = {0};
  ctl_journal_position_t damage;
  read_all (0, got, &damage);
  for (int n = 0; n < 21; n++)
    assert_int_equal (got[n], n + 1);
  assert_int_equal (got[21], 0);
}

/* J2, J3: cut at every byte of the last record; what stands before it is read, the next segment too. */
static void test_torn_tail (void **state)
{
  for (off_t cut = 1; cut <= 40; cut++) {
    ctl_journal_t *self = journal_open (0);
    append (self, 1, 20); /* 40 bytes: 16 + 20 padded to 24 */
    append (self, 2, 20);
    ctl_journal_close (&self);
    char path[128];
    snprintf (path, sizeof path, "%s/00000001.weftj", dir);
    assert_int_equal (truncate (path, 80 - cut), 0);
    self = journal_open (0);
    append (self, 3, 20);
    ctl_journal_close (&self);
    int got[16] = {0};
    ctl_journal_position_t damage = {0};
    read_all (0, got, &damage);
    int at = 0;
    assert_int_equal (got[at++], 1);
    if (cut < 40) {
      assert_int_equal (got[at++], -1);
      assert_int_equal (damage.segment, 1);
      assert_int_equal (damage.offset, 40);
    }
    assert_int_equal (got[at++], 3);
    assert_int_equal (got[at], 0);
    unlink (path);
    snprintf (path, sizeof path, "%s/00000002.weftj", dir);
    unlink (path);
  }
}

/* J3: a flipped bit anywhere in a record but its padding ends the segment there. */
static void test_flipped_bit (void **state)
{
  ctl_journal_t *self = journal_open (0);
  append (self, 1, 24);
  append (self, 2, 24);
  append (self, 3, 24);
  ctl_journal_close (&self);
  for (off_t at = 40; at < 80; at++) {
    patch ("00000001.weftj", at, 0x10);
    int got[16] = {0};
    ctl_journal_position_t damage = {0};
    read_all (0, got, &damage);
    assert_int_equal (got[0], 1);
    assert_int_equal (got[1], -1);
    assert_int_equal (got[2], 0);
    assert_int_equal (damage.offset, 40);
    patch ("00000001.weftj", at, 0x10);
  }
}

static void test_rotation (void **state)
{
  ctl_journal_t *self = journal_open (100); /* two records of 40 fit, a third does not */
  for (uint32_t n = 1; n <= 11; n++)
    assert_int_equal (append (self, n, 24), 0);
  ctl_journal_close (&self);
  assert_int_equal (size_of ("00000001.weftj"), -1); /* J4: four are kept: 3 to 6 */
  assert_int_equal (size_of ("00000002.weftj"), -1);
  assert_int_equal (size_of ("00000003.weftj"), 80);
  assert_int_equal (size_of ("00000006.weftj"), 40);
  int got[64] = {0};
  ctl_journal_position_t damage;
  read_all (0, got, &damage);
  for (int n = 0; n < 7; n++)
    assert_int_equal (got[n], n + 5);
  assert_int_equal (got[7], 0);
  self = journal_open (100);
  assert_int_equal (append (self, 12, 24), 0); /* a segment of its own: J2 */
  ctl_journal_close (&self);
  assert_int_equal (size_of ("00000003.weftj"), 80); /* 320 bytes in all: there is room */
  assert_int_equal (size_of ("00000007.weftj"), 40);
}

static uint64_t size_of_all (void)
{
  uint64_t total = 0;
  for (int n = 1; n < 100; n++) {
    char name[24];
    snprintf (name, sizeof name, "%08d.weftj", n);
    off_t size = size_of (name);
    total += size > 0 ? (uint64_t) size : 0;
  }
  return total;
}

/* J4 at the smallest bound there is, whatever the records' sizes. */
static void test_retention_by_size (void **state)
{
  ctl_journal_t *self = journal_open (0);
  ctl_journal_retain (self, 1, UINT32_MAX);
  for (uint32_t n = 1; n <= 200; n++) {
    assert_int_equal (append (self, n, 1 + (n * 7919u) % WEFT_BATCH_MAX), 0);
    assert_in_range (size_of_all (), 1, WEFT_JOURNAL_MAX_LEAST);
  }
  ctl_journal_close (&self);
  int got[256] = {0}, count = 0;
  ctl_journal_position_t damage;
  read_all (0, got, &damage);
  while (got[count])
    count++;
  assert_in_range (count, 20, 40); /* 1 MiB of records of 32 KiB, less one segment at most */
  assert_int_equal (got[count - 1], 200);
}

/* A bound above that of before it is set takes nothing away: it may be the one that was set last time. */
static void test_opening_removes_nothing (void **state)
{
  int got[64] = {0};
  ctl_journal_position_t damage;
  for (uint32_t life = 0; life < 2; life++) {
    ctl_journal_t *self = journal_open (100);
    ctl_journal_retain (self, WEFT_JOURNAL_MAX_LEAST, 3600000);
    for (uint32_t n = 1; n <= 10; n++)
      assert_int_equal (append (self, 10 * life + n, 30000), 0);
    ctl_journal_close (&self);
  }
  read_all (0, got, &damage);
  for (int n = 0; n < 20; n++)
    assert_int_equal (got[n], n + 1);
  assert_int_equal (got[20], 0);
}

/* J5 */
static void test_retention_by_age (void **state)
{
  ctl_journal_t *self = journal_open (100);
  for (uint32_t n = 1; n <= 6; n++) /* segments 1 to 3 */
    assert_int_equal (append (self, n, 24), 0);
  make_old ("00000001.weftj", 7200);
  make_old ("00000002.weftj", 7200);
  ctl_journal_retain (self, WEFT_JOURNAL_MAX, 3600000);
  assert_int_equal (size_of ("00000001.weftj"), 80); /* nothing of it is known to be in the store */
  ctl_journal_position_t at = {2, 40};
  assert_int_equal (ctl_journal_checkpoint_at (self, &at), 0);
  ctl_journal_tidy (self);
  assert_int_equal (size_of ("00000001.weftj"), -1);
  assert_int_equal (size_of ("00000002.weftj"), 80);
  at = (ctl_journal_position_t){3, 0};
  assert_int_equal (ctl_journal_checkpoint_at (self, &at), 0);
  ctl_journal_tidy (self);
  assert_int_equal (size_of ("00000002.weftj"), -1);
  assert_int_equal (size_of ("00000003.weftj"), 80); /* young */
  ctl_journal_close (&self);
}

static int checkpoint (ctl_journal_t *self)
{
  ctl_journal_position_t here;
  ctl_journal_position (self, &here);
  return ctl_journal_checkpoint_at (self, &here);
}

static void test_checkpoint (void **state)
{
  int got[64] = {0};
  ctl_journal_position_t damage;
  ctl_journal_t *self = journal_open (100);
  for (uint32_t n = 1; n <= 3; n++)
    append (self, n, 24);
  assert_int_equal (checkpoint (self), 0); /* behind 3, in the second segment */
  read_all (1, got, &damage);
  assert_int_equal (got[0], 0);
  for (uint32_t n = 4; n <= 6; n++)
    append (self, n, 24);
  read_all (1, got, &damage);
  assert_int_equal (got[0], 4);
  assert_int_equal (got[1], 5);
  assert_int_equal (got[2], 6);
  assert_int_equal (got[3], 0);
  read_all (0, got, &damage);
  assert_int_equal (got[0], 1);
  ctl_journal_close (&self);
}

static void test_numbers_are_remembered (void **state)
{
  ctl_journal_t *self = journal_open (0);
  assert_int_equal (ctl_journal_last_number (self), 0);
  assert_int_equal (ctl_journal_give_number (self, 7), 0);
  assert_int_equal (ctl_journal_give_number (self, 12), 0);
  ctl_journal_close (&self);
  self = journal_open (0);
  assert_int_equal (ctl_journal_last_number (self), 12);
  ctl_journal_close (&self);
}

/* A checkpoint of a segment that is gone: the next one is read from its beginning. */
static void test_checkpoint_of_a_lost_segment (void **state)
{
  int got[64] = {0};
  ctl_journal_position_t damage;
  ctl_journal_t *self = journal_open (50);
  append (self, 1, 24);
  checkpoint (self);
  append (self, 2, 24);
  ctl_journal_close (&self);
  char path[128];
  snprintf (path, sizeof path, "%s/00000001.weftj", dir);
  unlink (path);
  read_all (1, got, &damage);
  assert_int_equal (got[0], 2);
  assert_int_equal (got[1], 0);
}

/* J1: no room: nothing half is left, and when there is room it goes on in the same place. */
static void test_no_room (void **state)
{
  struct rlimit limit, old;
  signal (SIGXFSZ, SIG_IGN);
  getrlimit (RLIMIT_FSIZE, &old);
  ctl_journal_t *self = journal_open (0);
  assert_int_equal (append (self, 1, 24), 0);
  limit = (struct rlimit){60, old.rlim_max};
  setrlimit (RLIMIT_FSIZE, &limit);
  assert_int_equal (append (self, 2, 24), WEFT_E_FULL);
  assert_int_equal (size_of ("00000001.weftj"), 40);
  setrlimit (RLIMIT_FSIZE, &old);
  assert_int_equal (append (self, 3, 24), 0);
  ctl_journal_close (&self);
  int got[16] = {0};
  ctl_journal_position_t damage;
  read_all (0, got, &damage);
  assert_int_equal (got[0], 1);
  assert_int_equal (got[1], 3);
  assert_int_equal (got[2], 0);
}

static void test_other_files_are_left_alone (void **state)
{
  char path[128];
  snprintf (path, sizeof path, "%s/0000001.weftj", dir); /* seven digits */
  close (open (path, O_CREAT | O_WRONLY, 0600));
  ctl_journal_t *self = journal_open (0);
  append (self, 1, 24);
  ctl_journal_close (&self);
  assert_int_equal (size_of ("0000001.weftj"), 0);
  assert_int_equal (size_of ("00000001.weftj"), 40);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
/* All that copy hands over from `at` on: the numbers of the frames, and the gaps. */
static uint32_t copied (ctl_journal_t *self, ctl_journal_position_t *at, uint32_t *numbers, uint32_t *gaps)
{
  static uint8_t room[CTL_RECORD_MAX];
  uint32_t count = 0, new_gaps = 0;
  size_t size = 0;
  *gaps = 0;
  do {
    assert_int_equal (ctl_journal_copy (self, at, room, sizeof room, &size, &new_gaps), 0);
    *gaps += new_gaps;
    for (size_t done = 0; done < size;) {
      const void *frame;
      size_t frame_size;
      assert_int_equal (ctl_record_read (room + done, size - done, 0, &frame, &frame_size), 0);
      memcpy (&numbers[count++], frame, sizeof *numbers);
      done += ctl_record_total (frame_size);
    }
  } while (size);
  return count;
}

static void test_copied_while_it_is_written (void **state)
{
  uint32_t numbers[64], gaps;
  ctl_journal_position_t at = {0, 0}, now;
  ctl_journal_t *self = journal_open (1000);
  assert_int_equal (copied (self, &at, numbers, &gaps), 0);
  for (uint32_t n = 1; n <= 6; n++)
    assert_int_equal (append (self, n, 300), 0); /* three to a segment */
  now = ctl_journal_end (self);
  assert_int_equal (copied (self, &at, numbers, &gaps), 6);
  for (uint32_t n = 0; n < 6; n++)
    assert_int_equal (numbers[n], n + 1);
  assert_int_equal (gaps, 0);
  assert_int_equal (at.segment, now.segment);
  assert_int_equal (at.offset, now.offset);
  append (self, 7, 300);
  assert_int_equal (copied (self, &at, numbers, &gaps), 1);
  assert_int_equal (numbers[0], 7);
  assert_int_equal (copied (self, &now, numbers, &gaps), 1); /* from a position of its own */
  ctl_journal_position_t odd = {1, 4};
  size_t size;
  uint8_t small[16];
  assert_int_equal (ctl_journal_copy (self, &odd, small, sizeof small, &size, &gaps), WEFT_E_RANGE);
  ctl_journal_close (&self);
}

/* Who reads so slowly that segments go is told so, and goes on with the oldest there is. */
static void test_copy_that_came_too_late (void **state)
{
  uint32_t numbers[64], gaps;
  ctl_journal_position_t at = {0, 0};
  ctl_journal_t *self = journal_open (1000);
  append (self, 1, 300);
  assert_int_equal (copied (self, &at, numbers, &gaps), 1);
  for (uint32_t n = 2; n <= 3 * (WEFT_JOURNAL_PARTS + 2); n++)
    append (self, n, 300);
  uint32_t count = copied (self, &at, numbers, &gaps);
  assert_int_equal (gaps, 1);
  assert_int_equal (count, 3 * WEFT_JOURNAL_PARTS);
  assert_int_equal (numbers[count - 1], 3 * (WEFT_JOURNAL_PARTS + 2));
  ctl_journal_close (&self);
}

/* Several at once are what they would be one after another; what does not fit a segment is refused whole. */
static void test_together (void **state)
{
  ctl_journal_t *self = NULL;
  ctl_journal_reader_t *reader = NULL;
  char why[300] = "", large[1500];
  memset (large, 'x', sizeof large);
  const ctl_journal_frame_t few[3] = {{"one", 3}, {"twotwotwo", 9}, {large, 1000}};
  const ctl_journal_frame_t many[3] = {{large, 1500}, {large, 1500}, {large, 1500}};
  const ctl_journal_frame_t bad[2] = {{"one", 3}, {"", 0}};
  assert_int_equal (ctl_journal_open (dir, 4096, &self, why, sizeof why), 0);
  assert_int_equal (ctl_journal_append_all (self, few, 0), WEFT_E_RANGE);
  assert_int_equal (ctl_journal_append_all (self, few, CTL_JOURNAL_TOGETHER + 1), WEFT_E_RANGE);
  assert_int_equal (ctl_journal_append_all (self, bad, 2), WEFT_E_RANGE);
  assert_int_equal (ctl_journal_append_all (self, many, 3), WEFT_E_RANGE);
  assert_int_equal (ctl_journal_records (self), 0);
  for (int n = 0; n < 5; n++) /* the fourth begins another segment */
    assert_int_equal (ctl_journal_append_all (self, few, 3), 0);
  assert_int_equal (ctl_journal_records (self), 15);
  ctl_journal_close (&self);
  assert_int_equal (ctl_journal_reader_open (dir, 0, &reader), 0);
  for (int n = 0; n < 15; n++) {
    const void *frame = NULL;
    size_t size = 0;
    ctl_journal_position_t position;
    assert_int_equal (ctl_journal_reader_next (reader, &frame, &size, &position), 1);
    assert_int_equal (size, few[n % 3].size);
    assert_memory_equal (frame, few[n % 3].data, size);
    assert_int_equal (position.segment, n < 9 ? 1 : 2);
  }
  ctl_journal_reader_close (&reader);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      TEST (test_layout),
      TEST (test_order_and_sizes),
      TEST (test_together),
      TEST (test_torn_tail),
      TEST (test_flipped_bit),
      TEST (test_rotation),
      TEST (test_retention_by_size),
      TEST (test_opening_removes_nothing),
      TEST (test_retention_by_age),
      TEST (test_checkpoint),
      TEST (test_no_room),
      TEST (test_checkpoint_of_a_lost_segment),
      TEST (test_numbers_are_remembered),
      TEST (test_other_files_are_left_alone),
      TEST (test_copied_while_it_is_written),
      TEST (test_copy_that_came_too_late),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
