/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that are used again: what they held before is never read, whatever happens on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../../common/limits.h"
#include "../../../../common/status.h"
#include "../../../../controller/service/journal.h"
#include "../../../../controller/service/journal_files.h"
#include "journals.h"

#define FRAME   24u  /* 40 bytes on disk */
#define SEGMENT 200u /* five of them */
#define KILLS   60

static ino_t inode_of (const char *name)
{
  char path[128];
  struct stat st;
  snprintf (path, sizeof path, "%s/%s", dir, name);
  return stat (path, &st) < 0 ? 0 : st.st_ino;
}

static size_t load_file (const char *name, uint8_t *bytes, size_t room)
{
  char path[128];
  snprintf (path, sizeof path, "%s/%s", dir, name);
  int fd = open (path, O_RDONLY);
  ssize_t have = read (fd, bytes, room);
  close (fd);
  return have < 0 ? 0 : (size_t) have;
}

static void save_file (const char *name, const uint8_t *bytes, size_t size)
{
  char path[128];
  snprintf (path, sizeof path, "%s/%s", dir, name);
  int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_int_equal (write (fd, bytes, size), size);
  close (fd);
}

/* A journal at its bound: 1 to 20 in four whole segments, and the fifth has taken the first one's file. */
static ctl_journal_t *full_journal (uint32_t last)
{
  ctl_journal_t *self = journal_open (SEGMENT);
  for (uint32_t n = 1; n <= last; n++)
    assert_int_equal (append (self, n, FRAME), 0);
  return self;
}

/* The numbers from `first` to `last`, with -1 behind each of those in `damaged` (0 ends them). */
static void assert_read (int first, int last, int damaged_behind)
{
  int got[256] = {0}, at = 0;
  ctl_journal_position_t damage;
  read_all (0, got, &damage);
  for (int n = first; n <= last; n++) {
    assert_int_equal (got[at++], n);
    if (n == damaged_behind)
      assert_int_equal (got[at++], -1);
  }
  assert_int_equal (got[at], 0);
}

/* J6: the file of the oldest, with its size, until the segment ends. */
static void test_used_again (void **state)
{
  ctl_journal_t *self = full_journal (20);
  ino_t oldest = inode_of ("00000001.weftj");
  assert_int_equal (size_of ("00000001.weftj"), 200);
  assert_int_equal (append (self, 21, FRAME), 0);
  assert_int_equal (size_of ("00000001.weftj"), -1);
  assert_true (oldest == inode_of ("00000005.weftj"));
  assert_int_equal (size_of ("00000005.weftj"), SEGMENT - 16); /* there is room for a mark below the bound */
  uint8_t bytes[SEGMENT];
  const uint8_t mark[16] = {'W', 'J', 'R', '1', 0, 0, 0, 0, 0, 0, 0, 0, 5};
  assert_int_equal (load_file ("00000005.weftj", bytes, sizeof bytes), SEGMENT - 16);
  assert_memory_equal (bytes + 40, mark, 16);
  assert_memory_equal (bytes + 80, "WJR1", 4); /* the third one of before stands behind it */
  assert_read (6, 21, 0);
  assert_int_equal (append (self, 22, FRAME), 0);
  assert_read (6, 22, 0);
  ctl_journal_close (&self);
  assert_int_equal (size_of ("00000005.weftj"), 80);
  assert_read (6, 22, 0);
}

/* The mark goes with the last old byte. */
static void test_written_full (void **state)
{
  ctl_journal_t *self = full_journal (25);
  assert_int_equal (size_of ("00000005.weftj"), 200);
  assert_read (6, 25, 0);
  assert_int_equal (append (self, 26, FRAME), 0);
  assert_int_equal (append (self, 27, 150), 0);      /* 168 on disk: one of its own */
  assert_int_equal (size_of ("00000006.weftj"), 40); /* ended, cut */
  assert_read (16, 27, 0);
  ctl_journal_close (&self);
}

/* Every byte at which a write over older records can be torn, also between two records that take the
 * places of older ones exactly. */
static void test_torn_over_old_records (void **state)
{
  uint8_t before[SEGMENT], after[SEGMENT], torn[SEGMENT];
  ctl_journal_t *self = full_journal (21);
  char frames[2][FRAME] = {{22}, {23}};
  const ctl_journal_frame_t two[2] = {{frames[0], FRAME}, {frames[1], FRAME}};
  size_t size = load_file ("00000005.weftj", before, sizeof before);
  assert_int_equal (ctl_journal_append_all (self, two, 2), 0);
  assert_int_equal (load_file ("00000005.weftj", after, sizeof after), size);
  for (size_t cut = 0; cut <= 96; cut++) { /* two records, the mark */
    memcpy (torn, before, size);
    memcpy (torn + 40, after + 40, cut);
    save_file ("00000005.weftj", torn, size);
    int last = cut < 40 ? 21 : cut < 80 ? 22 : 23;
    int whole = cut <= 4 || cut >= 92; /* what a mark and a record begin with is the same */
    assert_read (6, last, whole ? 0 : last);
  }
  ctl_journal_close (&self);
}

/* Died with the mark written and the file not renamed, and renamed with nothing in it. */
static void test_died_on_the_way (void **state)
{
  ctl_journal_t *self = full_journal (20);
  ctl_journal_close (&self);
  int fd = -1;
  uint64_t size = 0;
  uint8_t bytes[SEGMENT];
  int dir_fd = open (dir, O_RDONLY | O_DIRECTORY);
  size_t have = load_file ("00000001.weftj", bytes, sizeof bytes);
  assert_int_equal (ctl_segment_begin (dir_fd, 5, 4 * SEGMENT, SEGMENT, &fd, &size), 0);
  close (fd);
  assert_int_equal (size, SEGMENT - 16);
  assert_read (6, 20, 0);
  uint8_t emptied[SEGMENT];
  assert_int_equal (load_file ("00000005.weftj", emptied, sizeof emptied), size);
  char path[128];
  snprintf (path, sizeof path, "%s/00000005.weftj", dir);
  unlink (path);
  save_file ("00000001.weftj", bytes, have);
  memcpy (bytes, emptied, 16);
  save_file ("00000001.weftj", bytes, have);
  assert_read (6, 20, 0); /* nothing is damaged: it had to go */
  close (dir_fd);
  self = journal_open (SEGMENT);
  assert_int_equal (append (self, 21, FRAME), 0);
  assert_read (6, 21, 0);
  ctl_journal_close (&self);
}

/* What cannot be used again is removed, as it was; what cannot be begun is begun later. */
static void test_cannot_be_renamed (void **state)
{
  char path[128], other[128];
  ctl_journal_t *self = full_journal (20);
  snprintf (path, sizeof path, "%s/00000005.weftj", dir);
  assert_int_equal (mkdir (path, 0700), 0);
  assert_int_equal (append (self, 21, FRAME), WEFT_E_IO);
  assert_int_equal (rmdir (path), 0);
  assert_read (6, 20, 0);
  assert_int_equal (append (self, 21, FRAME), 0);
  assert_read (6, 21, 0);
  for (uint32_t n = 22; n <= 25; n++)
    assert_int_equal (append (self, n, FRAME), 0);
  snprintf (path, sizeof path, "%s/00000002.weftj", dir);
  snprintf (other, sizeof other, "%s/elsewhere", dir);
  assert_int_equal (rename (path, other), 0);
  assert_int_equal (symlink ("elsewhere", path), 0); /* whose file that is, nobody knows */
  ino_t third = inode_of ("00000003.weftj");
  for (uint32_t n = 26; n <= 31; n++)
    assert_int_equal (append (self, n, FRAME), 0);
  assert_int_equal (size_of ("elsewhere"), 200);
  assert_int_equal (size_of ("00000002.weftj"), -1);
  assert_true (third == inode_of ("00000007.weftj"));
  ctl_journal_close (&self);
  assert_read (16, 31, 0);
}

/* What nobody has written to for long is not in memory any more. */
static void test_not_used_again_when_old (void **state)
{
  ctl_journal_t *self = full_journal (20);
  make_old ("00000001.weftj", WEFT_JOURNAL_WARM_MS / 1000 + 5);
  assert_int_equal (append (self, 21, FRAME), 0);
  assert_int_equal (size_of ("00000001.weftj"), -1);
  assert_int_equal (size_of ("00000005.weftj"), 40);
  ino_t oldest = inode_of ("00000002.weftj");
  make_old ("00000002.weftj", WEFT_JOURNAL_WARM_MS / 1000 - 60);
  for (uint32_t n = 22; n <= 26; n++)
    assert_int_equal (append (self, n, FRAME), 0);
  assert_true (oldest == inode_of ("00000006.weftj"));
  assert_read (11, 26, 0);
  ctl_journal_close (&self);
}

/* A bound that has become smaller: what is used again is no larger than a part of it. */
static void test_larger_than_a_part (void **state)
{
  ctl_journal_t *self = journal_open (4u << 20);
  for (uint32_t n = 1; n <= 12; n++)
    assert_int_equal (append (self, n, 60000), 0);
  ctl_journal_close (&self);
  self = journal_open (0);
  ctl_journal_retain (self, WEFT_JOURNAL_MAX_LEAST, 3600000);
  assert_int_equal (append (self, 13, 60000), 0);
  assert_int_equal (size_of ("00000001.weftj"), 12 * 60016);
  for (uint32_t n = 14; size_of ("00000001.weftj") > 0; n++) {
    assert_int_equal (append (self, n, 60000), 0);
    off_t total = 0;
    for (int segment = 1; segment <= 9; segment++) {
      char name[24];
      snprintf (name, sizeof name, "%08d.weftj", segment);
      total += size_of (name) > 0 ? size_of (name) : 0;
    }
    assert_in_range (total, 1, WEFT_JOURNAL_MAX_LEAST);
  }
  int got[64] = {0}, last = 0;
  ctl_journal_position_t damage;
  read_all (0, got, &damage);
  for (int n = 0; got[n]; n++) {
    assert_true (n == 0 || got[n] == last + 1);
    last = got[n];
  }
  assert_int_equal ((uint64_t) last, 12 + ctl_journal_records (self));
  ctl_journal_close (&self);
}

/* J1 where older bytes were: cut off, and the end of the file is the end. */
static void test_no_room_over_old_records (void **state)
{
  struct rlimit limit, old;
  signal (SIGXFSZ, SIG_IGN);
  ctl_journal_t *self = full_journal (21);
  getrlimit (RLIMIT_FSIZE, &old);
  limit = (struct rlimit){60, old.rlim_max};
  setrlimit (RLIMIT_FSIZE, &limit);
  assert_int_equal (append (self, 22, FRAME), WEFT_E_FULL);
  setrlimit (RLIMIT_FSIZE, &old);
  assert_int_equal (size_of ("00000005.weftj"), 40);
  assert_read (6, 21, 0);
  assert_int_equal (append (self, 22, FRAME), 0);
  assert_int_equal (size_of ("00000005.weftj"), 80);
  assert_read (6, 22, 0);
  ctl_journal_close (&self);
}

/* An idle controller does not keep what it dropped: its segment ends with its part of the age. */
static void test_nothing_stays_behind (void **state)
{
  ctl_journal_t *self = full_journal (21);
  assert_int_equal (size_of ("00000005.weftj"), SEGMENT - 16);
  ctl_journal_retain (self, WEFT_JOURNAL_MAX, 3600000);
  ctl_journal_tidy (self);
  assert_int_equal (size_of ("00000005.weftj"), SEGMENT - 16);
  ctl_journal_retain (self, WEFT_JOURNAL_MAX, 0);
  assert_int_equal (size_of ("00000005.weftj"), 40);
  ctl_journal_close (&self);
}

/* Copied while it is written over. */
static void test_copied_over_old_records (void **state)
{
  static uint8_t room[CTL_RECORD_MAX];
  ctl_journal_position_t at = {0, 0};
  size_t size = 0;
  uint32_t gaps = 0, expected = 6, number;
  ctl_journal_t *self = full_journal (22);
  ctl_journal_t *dead = self; /* not closed: as a crash leaves it */
  self = journal_open (SEGMENT * 2);
  assert_int_equal (append (self, 23, FRAME), 0);
  do {
    assert_int_equal (ctl_journal_copy (self, &at, room, sizeof room, &size, &gaps), 0);
    assert_int_equal (gaps, 0);
    for (size_t done = 0; done < size; done += 40) {
      memcpy (&number, room + done + 16, sizeof number);
      assert_int_equal (number, expected++);
    }
  } while (size);
  assert_int_equal (expected, 24);
  ctl_journal_close (&self);
  ctl_journal_close (&dead);
}

/* ---- killed anywhere ---------------------------------------------------------- */
/* Groups of frames of some sizes, so that old and new records lie in the same places now and then. */
static void write_until_killed (uint32_t number, uint32_t *written)
{
  static char frames[CTL_JOURNAL_TOGETHER][8192];
  ctl_journal_t *self = NULL;
  char why[300];
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  if (ctl_journal_open (dir, 65536, &self, why, sizeof why) < 0)
    _exit (1);
  for (;; number += CTL_JOURNAL_TOGETHER) {
    ctl_journal_frame_t group[CTL_JOURNAL_TOGETHER];
    for (uint32_t n = 0; n < CTL_JOURNAL_TOGETHER; n++) {
      uint32_t own = number + n;
      memset (frames[n], (int) (own * 7), sizeof frames[n]);
      memcpy (frames[n], &own, sizeof own);
      group[n] = (ctl_journal_frame_t){frames[n], own % 64 < 32 ? 4080 : 8 + own * 7919u % 8000};
    }
    if (ctl_journal_append_all (self, group, CTL_JOURNAL_TOGETHER) < 0)
      _exit (2);
    __atomic_store_n (written, number + CTL_JOURNAL_TOGETHER - 1, __ATOMIC_RELEASE);
  }
}

static void test_killed_anywhere (void **state)
{
  const char *given = getenv ("WEFT_SEED");
  unsigned seed = given ? (unsigned) strtoul (given, NULL, 10) : (unsigned) time (NULL);
  uint32_t *written = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  static int got[4096];
  print_message ("seed %u\n", seed);
  srand (seed);
  uint32_t last = 0;
  for (int n = 0; n < KILLS; n++) {
    pid_t child = fork ();
    if (child == 0)
      write_until_killed (last + 1, written);
    while (*(volatile uint32_t *) written < last + 200) /* it has been once around */
      usleep (200);
    usleep ((useconds_t) (rand () % 3000));
    kill (child, SIGKILL);
    int status;
    assert_int_equal (waitpid (child, &status, 0), child);
    assert_true (WIFSIGNALED (status));
    ctl_journal_position_t damage;
    memset (got, 0, sizeof got);
    read_all (0, got, &damage);
    int count = 0, before = 0;
    for (; got[count]; count++)
      if (got[count] > 0) {
        assert_true (before == 0 || got[count] == before + 1);
        before = got[count];
      }
    assert_true (count > 10);
    assert_in_range (before, *written, *written + CTL_JOURNAL_TOGETHER); /* J1, and what was not told yet */
    last = (uint32_t) before;
  }
  munmap (written, 4096);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)

int main (void)
{
  const struct CMUnitTest tests[] = {
      TEST (test_used_again),
      TEST (test_written_full),
      TEST (test_torn_over_old_records),
      TEST (test_died_on_the_way),
      TEST (test_cannot_be_renamed),
      TEST (test_not_used_again_when_old),
      TEST (test_larger_than_a_part),
      TEST (test_no_room_over_old_records),
      TEST (test_nothing_stays_behind),
      TEST (test_copied_over_old_records),
      TEST (test_killed_anywhere),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
