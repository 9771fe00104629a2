/* SPDX-License-Identifier: Apache-2.0 */
/* journals: a directory of its own for each test, numbered frames into it and
 * out again. */
#ifndef TEST_JOURNALS_H
#define TEST_JOURNALS_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../../../controller/service/journal.h"

static char dir[64];

static inline int setup (void **state)
{
  snprintf (dir, sizeof dir, "/tmp/weft-journal-XXXXXX");
  return mkdtemp (dir) ? 0 : -1;
}

static inline int teardown (void **state)
{
  DIR *list = opendir (dir);
  for (struct dirent *entry; (entry = readdir (list));)
    if (entry->d_name[0] != '.')
      unlinkat (dirfd (list), entry->d_name, 0);
  closedir (list);
  return rmdir (dir);
}

static inline ctl_journal_t *journal_open (uint32_t segment_max)
{
  ctl_journal_t *self = NULL;
  char why[300] = "";
  assert_int_equal (ctl_journal_open (dir, segment_max, &self, why, sizeof why), 0);
  return self;
}

/* A frame that says its number and has its size. */
static inline int append (ctl_journal_t *self, uint32_t number, size_t size)
{
  uint8_t *frame = malloc (size);
  memset (frame, (int) (number * 7), size);
  memcpy (frame, &number, sizeof number);
  int rc = ctl_journal_append (self, frame, size);
  free (frame);
  return rc;
}

/* What a reader gets: numbers, -1 for damage, 0 behind the last. */
static inline void read_all (int from_checkpoint, int *got, ctl_journal_position_t *ret_damage)
{
  ctl_journal_reader_t *reader = NULL;
  assert_int_equal (ctl_journal_reader_open (dir, from_checkpoint, &reader), 0);
  for (;;) {
    const void *frame = NULL;
    size_t size = 0;
    ctl_journal_position_t position;
    int rc = ctl_journal_reader_next (reader, &frame, &size, &position);
    if (rc == 0)
      break;
    uint32_t number = 0;
    if (rc == 1)
      memcpy (&number, frame, sizeof number);
    else
      *ret_damage = position;
    *got++ = rc == 1 ? (int) number : -1;
  }
  *got = 0;
  ctl_journal_reader_close (&reader);
  ctl_journal_reader_close (&reader);
}

static inline off_t size_of (const char *name)
{
  char path[128];
  struct stat st;
  snprintf (path, sizeof path, "%s/%s", dir, name);
  return stat (path, &st) < 0 ? -1 : st.st_size;
}

static inline void patch (const char *name, off_t at, uint8_t byte)
{
  char path[128];
  snprintf (path, sizeof path, "%s/%s", dir, name);
  int fd = open (path, O_RDWR);
  uint8_t old;
  assert_int_equal (pread (fd, &old, 1, at), 1);
  byte ^= old;
  assert_int_equal (pwrite (fd, &byte, 1, at), 1);
  close (fd);
}

static inline void make_old (const char *name, time_t seconds)
{
  char path[128];
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time (NULL) - seconds}};
  snprintf (path, sizeof path, "%s/%s", dir, name);
  assert_int_equal (utimensat (AT_FDCWD, path, times, 0), 0);
}

#endif
