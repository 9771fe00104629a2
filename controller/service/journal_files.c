/* SPDX-License-Identifier: Apache-2.0 */
#include "journal_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/fault.h"
#include "../../common/status.h"
#include "journal_record.h"

void ctl_segment_name (char out[CTL_SEGMENT_NAME], uint32_t segment)
{
  snprintf (out, CTL_SEGMENT_NAME, "%08u.weftj", segment);
}

/* 0: no segment's name. */
static uint32_t segment_of (const char *name)
{
  char *end;
  unsigned long number = strtoul (name, &end, 10);
  return strlen (name) == 14 && end == name + 8 && strcmp (end, ".weftj") == 0 ? (uint32_t) number : 0;
}

/* The first one above `after`, and the last of all. */
static uint32_t look (int dir_fd, uint32_t after, uint32_t *ret_last)
{
  int fd = openat (dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir (fd);
  uint32_t next = 0, last = 0;
  if (!dir) {
    if (fd >= 0)
      close (fd);
    *ret_last = 0;
    return 0;
  }
  for (struct dirent *entry; (entry = readdir (dir));) {
    uint32_t number = segment_of (entry->d_name);
    if (number > last)
      last = number;
    if (number > after && (!next || number < next))
      next = number;
  }
  closedir (dir);
  *ret_last = last;
  return next;
}

uint32_t ctl_segment_after (int dir_fd, uint32_t after)
{
  uint32_t last;
  return look (dir_fd, after, &last);
}

uint32_t ctl_segment_last (int dir_fd)
{
  uint32_t last;
  look (dir_fd, 0, &last);
  return last;
}

static int look_at (int dir_fd, uint32_t segment, struct stat *ret_st)
{
  char name[CTL_SEGMENT_NAME];
  ctl_segment_name (name, segment);
  return fstatat (dir_fd, name, ret_st, AT_SYMLINK_NOFOLLOW);
}

/* Bytes; 0 also for what only bears the name of one. */
static uint64_t size_of (int dir_fd, uint32_t segment)
{
  struct stat st;
  return look_at (dir_fd, segment, &st) == 0 && S_ISREG (st.st_mode) ? (uint64_t) st.st_size : 0;
}

static uint64_t total_size (int dir_fd)
{
  uint64_t total = 0;
  for (uint32_t at = 0; (at = ctl_segment_after (dir_fd, at));)
    total += size_of (dir_fd, at);
  return total;
}

static int remove_segment (int dir_fd, uint32_t segment)
{
  char name[CTL_SEGMENT_NAME];
  ctl_segment_name (name, segment);
  return unlinkat (dir_fd, name, 0);
}

void ctl_segments_shrink (int dir_fd, uint64_t most, uint64_t coming)
{
  uint32_t oldest;
  while (total_size (dir_fd) + coming > most && (oldest = ctl_segment_after (dir_fd, 0)))
    if (remove_segment (dir_fd, oldest) < 0)
      return;
}

static uint64_t written_ns (const struct stat *st)
{
  return (uint64_t) st->st_mtim.tv_sec * WEFT_NS_PER_S + (uint64_t) st->st_mtim.tv_nsec;
}

void ctl_segments_expire (int dir_fd, uint64_t before_ns, uint32_t safe)
{
  struct stat st;
  for (uint32_t at = 0; (at = ctl_segment_after (dir_fd, at)) && at < safe;) {
    if (look_at (dir_fd, at, &st) < 0)
      return;
    if (written_ns (&st) > before_ns || remove_segment (dir_fd, at) < 0)
      return;
  }
}

static int status_of (int error)
{
  return error == ENOSPC || error == EDQUOT || error == EFBIG ? WEFT_E_FULL : WEFT_E_IO;
}

/* Writing over a page that is only on the disk costs reading it first. */
static int is_warm (int fd, struct stat *ret_st)
{
  return fstat (fd, ret_st) == 0 && S_ISREG (ret_st->st_mode) &&
         written_ns (ret_st) + WEFT_JOURNAL_WARM_MS * WEFT_NS_PER_MS > weft_clock_ns (CLOCK_REALTIME);
}

/* Whether it is a file that holds no record any more, and is no larger than that. The mark comes first:
 * a segment that was only cut would be a torn one. */
static int empty (int fd, uint32_t segment, off_t most, off_t *ret_size)
{
  struct stat st;
  ctl_record_t mark = ctl_record_end (segment);
  if (!is_warm (fd, &st) || pwrite (fd, &mark, sizeof mark, 0) != sizeof mark)
    return 0;
  WEFT_FAULT_POINT ("journal-emptied");
  *ret_size = st.st_size < most ? st.st_size : most;
  return *ret_size == st.st_size || ftruncate (fd, most) == 0;
}

/* The file of `oldest` as that of `segment`. WEFT_E_IO: it is there still, maybe empty. */
static int use_again (int dir_fd, uint32_t oldest, uint32_t segment, uint32_t coming, int *ret_fd,
                      uint64_t *ret_size)
{
  char from[CTL_SEGMENT_NAME], to[CTL_SEGMENT_NAME];
  off_t size = 0, most = (off_t) coming - (off_t) sizeof (ctl_record_t);
  ctl_segment_name (from, oldest);
  ctl_segment_name (to, segment);
  int fd = openat (dir_fd, from, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return WEFT_E_IO;
  if (!empty (fd, segment, most, &size) || renameat (dir_fd, from, dir_fd, to) < 0) {
    close (fd);
    return WEFT_E_IO;
  }
  WEFT_FAULT_POINT ("journal-renamed");
  *ret_fd = fd;
  *ret_size = (uint64_t) size;
  return 0;
}

int ctl_segment_begin (int dir_fd, uint32_t segment, uint64_t most, uint32_t coming, int *ret_fd,
                       uint64_t *ret_size)
{
  char name[CTL_SEGMENT_NAME];
  uint32_t oldest = ctl_segment_after (dir_fd, 0);
  uint64_t total = total_size (dir_fd);
  /* All that must go, but for the last one: that is used again. */
  while (oldest && total + coming > most) {
    total -= size_of (dir_fd, oldest);
    if (total + coming <= most && use_again (dir_fd, oldest, segment, coming, ret_fd, ret_size) == 0)
      return 0;
    if (remove_segment (dir_fd, oldest) < 0)
      break;
    oldest = ctl_segment_after (dir_fd, oldest);
  }
  ctl_segment_name (name, segment);
  int fd = openat (dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0)
    return status_of (errno);
  *ret_fd = fd;
  *ret_size = 0;
  return 0;
}

void ctl_journal_file_read (int dir_fd, const char *name, char *ret_text, size_t size)
{
  int fd = openat (dir_fd, name, O_RDONLY | O_CLOEXEC);
  ssize_t have = fd < 0 ? 0 : read (fd, ret_text, size - 1);
  ret_text[have > 0 ? have : 0] = 0;
  if (fd >= 0)
    close (fd);
}

int ctl_journal_file_replace (int dir_fd, const char *name, const char *text)
{
  char other[32];
  snprintf (other, sizeof other, "%s.new", name);
  int fd = openat (dir_fd, other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0)
    return status_of (errno);
  errno = ENOSPC;
  int rc = write (fd, text, strlen (text)) == (ssize_t) strlen (text) ? 0 : status_of (errno);
  close (fd);
  if (rc == 0 && renameat (dir_fd, other, dir_fd, name) < 0)
    rc = status_of (errno);
  return rc;
}
