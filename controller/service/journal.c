/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/fault.h"
#include "../../common/limits.h"
#include "../../common/status.h"
#include "journal_record.h"

#define SEGMENTS_MAX 99999999u /* eight digits of a name */

struct ctl_journal_t {
  int dir_fd;
  int fd; /* -1: the segment is not begun; no empty files from idle controllers */
  uint32_t segment;
  uint32_t segment_max;
  uint64_t bytes_max, age_ns;
  uint64_t began_ns; /* CLOCK_MONOTONIC of the segment's first record */
  uint32_t safe;     /* J5: segments below are in the store */
  uint64_t offset;
  uint64_t records;
};

static void segment_name (char out[24], uint32_t segment)
{
  snprintf (out, 24, "%08u.weftj", segment);
}

/* 0: no segment's name. */
static uint32_t segment_of (const char *name)
{
  char *end;
  unsigned long number = strtoul (name, &end, 10);
  return strlen (name) == 14 && end == name + 8 && strcmp (end, ".weftj") == 0 ? (uint32_t) number : 0;
}

/* The next segment above `after`, 0: none; *ret_count of all. */
static uint32_t next_segment (int dir_fd, uint32_t after, uint32_t *ret_last, uint32_t *ret_count)
{
  int fd = openat (dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir (fd);
  uint32_t next = 0, last = 0, count = 0;
  if (!dir) {
    if (fd >= 0)
      close (fd);
    return 0;
  }
  for (struct dirent *entry; (entry = readdir (dir));) {
    uint32_t number = segment_of (entry->d_name);
    if (!number)
      continue;
    count++;
    if (number > last)
      last = number;
    if (number > after && (!next || number < next))
      next = number;
  }
  closedir (dir);
  *ret_last = last;
  *ret_count = count;
  return next;
}

static void read_file (int dir_fd, const char *name, char *ret_text, size_t size)
{
  int fd = openat (dir_fd, name, O_RDONLY | O_CLOEXEC);
  ssize_t have = fd < 0 ? 0 : read (fd, ret_text, size - 1);
  ret_text[have > 0 ? have : 0] = 0;
  if (fd >= 0)
    close (fd);
}

static void read_checkpoint (int dir_fd, ctl_journal_position_t *ret_position)
{
  char text[40], *end;
  read_file (dir_fd, "checkpoint", text, sizeof text);
  unsigned long segment = strtoul (text, &end, 10);
  *ret_position = (ctl_journal_position_t){0};
  if (segment > 0 && segment <= UINT32_MAX && *end == ' ')
    *ret_position = (ctl_journal_position_t){(uint32_t) segment, strtoull (end, NULL, 10)};
}

/* Bytes of all segments. */
static uint64_t total_size (int dir_fd)
{
  uint64_t total = 0;
  uint32_t last = 0, count = 0;
  for (uint32_t at = 0; (at = next_segment (dir_fd, at, &last, &count));) {
    char name[24];
    struct stat st;
    segment_name (name, at);
    if (fstatat (dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
      total += (uint64_t) st.st_size;
  }
  return total;
}

static int remove_segment (int dir_fd, uint32_t segment)
{
  char name[24];
  segment_name (name, segment);
  return unlinkat (dir_fd, name, 0);
}

/* J4, leaving room for `coming` bytes more. */
static void remove_large (const ctl_journal_t *self, uint64_t coming)
{
  uint32_t last = 0, count = 0, oldest = 0;
  while (total_size (self->dir_fd) + coming > self->bytes_max &&
         (oldest = next_segment (self->dir_fd, 0, &last, &count)))
    if (remove_segment (self->dir_fd, oldest) < 0)
      return;
}

/* J5. Files carry wall-clock times: a step of the clock only moves the moment. */
static void remove_old (const ctl_journal_t *self)
{
  uint32_t last = 0, count = 0;
  uint64_t now_ns = weft_clock_ns (CLOCK_REALTIME);
  for (uint32_t at = 0; (at = next_segment (self->dir_fd, at, &last, &count)) && at < self->safe;) {
    char name[24];
    struct stat st;
    segment_name (name, at);
    if (fstatat (self->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
      return;
    uint64_t written_ns = (uint64_t) st.st_mtim.tv_sec * WEFT_NS_PER_S + (uint64_t) st.st_mtim.tv_nsec;
    if (written_ns + self->age_ns > now_ns || remove_segment (self->dir_fd, at) < 0)
      return;
  }
}

int ctl_journal_open (const char *dir, uint32_t segment_max, ctl_journal_t **ret_self, char *why,
                      size_t why_size)
{
  ctl_journal_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->fd = -1;
  self->segment_max = segment_max ? segment_max : WEFT_JOURNAL_SEGMENT_MAX;
  self->dir_fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (self->dir_fd < 0) {
    snprintf (why, why_size, "%s: %s", dir, strerror (errno));
    free (self);
    return WEFT_E_IO;
  }
  uint32_t last = 0, count = 0;
  ctl_journal_position_t checkpoint;
  next_segment (self->dir_fd, 0, &last, &count);
  read_checkpoint (self->dir_fd, &checkpoint);
  /* J2; and behind the checkpoint, if all that it was set in is gone */
  self->segment =
      (checkpoint.segment > last && checkpoint.segment < SEGMENTS_MAX ? checkpoint.segment : last) + 1;
  self->bytes_max = WEFT_JOURNAL_PARTS * (uint64_t) self->segment_max;
  self->age_ns = WEFT_JOURNAL_AGE_MS * WEFT_NS_PER_MS;
  self->safe = checkpoint.segment;
  *ret_self = self;
  return 0;
}

void ctl_journal_close (ctl_journal_t **self_p)
{
  ctl_journal_t *self = *self_p;
  if (!self)
    return;
  if (self->fd >= 0) {
    fdatasync (self->fd);
    close (self->fd);
  }
  close (self->dir_fd);
  free (self);
  *self_p = NULL;
}

static int status_of (int error)
{
  return error == ENOSPC || error == EDQUOT || error == EFBIG ? WEFT_E_FULL : WEFT_E_IO;
}

static void end_segment (ctl_journal_t *self)
{
  /* Begun, not waited for: a second here is a second without heartbeats. */
  sync_file_range (self->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
  close (self->fd);
  self->fd = -1;
  self->segment++;
  self->offset = 0;
}

static int begin_segment (ctl_journal_t *self)
{
  if (self->fd >= 0)
    end_segment (self);
  remove_large (self, self->segment_max);
  self->began_ns = weft_mono_ns ();
  char name[24];
  segment_name (name, self->segment);
  self->fd = openat (self->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return self->fd < 0 ? status_of (errno) : 0;
}

/* The records of these frames, ready to be written. Their bytes in the file. */
static size_t lay_out (const ctl_journal_frame_t *frames, unsigned count, ctl_record_t *records,
                       struct iovec *parts)
{
  static const uint8_t zeros[8];
  size_t whole = 0;
  for (unsigned n = 0; n < count; n++, parts += 3) {
    size_t total = ctl_record_total (frames[n].size);
    records[n] = ctl_record_of (frames[n].data, frames[n].size);
    parts[0] = (struct iovec){&records[n], sizeof records[n]};
    parts[1] = (struct iovec){(void *) (uintptr_t) frames[n].data, frames[n].size};
    parts[2] = (struct iovec){(void *) (uintptr_t) zeros, total - sizeof records[n] - frames[n].size};
    whole += total;
  }
  return whole;
}

int ctl_journal_append_all (ctl_journal_t *self, const ctl_journal_frame_t *frames, unsigned count)
{
  ctl_record_t records[CTL_JOURNAL_TOGETHER];
  struct iovec parts[3 * CTL_JOURNAL_TOGETHER];
  if (count == 0 || count > CTL_JOURNAL_TOGETHER)
    return WEFT_E_RANGE;
  for (unsigned n = 0; n < count; n++)
    if (frames[n].size == 0 || frames[n].size > WEFT_FRAME_MAX)
      return WEFT_E_RANGE;
  size_t total = lay_out (frames, count, records, parts);
  if (count > 1 && total > self->segment_max)
    return WEFT_E_RANGE;
  if (self->fd < 0 || (self->offset && self->offset + total > self->segment_max)) {
    int rc = begin_segment (self);
    if (rc < 0)
      return rc;
  }
  WEFT_FAULT_POINT ("journal-append");
  errno = ENOSPC; /* what a short write means */
  ssize_t written = pwritev (self->fd, parts, (int) (3 * count), (off_t) self->offset);
  if (written != (ssize_t) total) {
    int rc = status_of (errno);
    /* J1: if even cutting it off fails, the reader stops at it, and so does this segment. */
    if (ftruncate (self->fd, (off_t) self->offset) < 0)
      self->offset = self->segment_max;
    return rc;
  }
  self->offset += total;
  self->records += count;
  WEFT_FAULT_POINT ("journal-appended");
  return 0;
}

int ctl_journal_append (ctl_journal_t *self, const void *frame, size_t size)
{
  return ctl_journal_append_all (self, &(ctl_journal_frame_t){frame, size}, 1);
}

/* A small file is there whole, with its old or its new text. */
static int replace_file (int dir_fd, const char *name, const char *text)
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

void ctl_journal_retain (ctl_journal_t *self, uint64_t bytes_max, uint64_t age_ms)
{
  self->bytes_max = bytes_max < WEFT_JOURNAL_MAX_LEAST ? WEFT_JOURNAL_MAX_LEAST : bytes_max;
  uint64_t part = self->bytes_max / WEFT_JOURNAL_PARTS;
  self->segment_max = part < WEFT_JOURNAL_SEGMENT_MAX ? (uint32_t) part : WEFT_JOURNAL_SEGMENT_MAX;
  self->age_ns = age_ms * WEFT_NS_PER_MS;
  remove_large (self, 0);
  ctl_journal_tidy (self);
}

void ctl_journal_tidy (ctl_journal_t *self)
{
  if (self->fd >= 0 && weft_mono_ns () - self->began_ns > self->age_ns / WEFT_JOURNAL_PARTS)
    end_segment (self);
  remove_old (self);
}

void ctl_journal_position (const ctl_journal_t *self, ctl_journal_position_t *ret_position)
{
  *ret_position = (ctl_journal_position_t){self->segment, self->offset};
}

int ctl_journal_checkpoint_at (ctl_journal_t *self, const ctl_journal_position_t *position)
{
  char text[40];
  snprintf (text, sizeof text, "%u %llu\n", position->segment, (unsigned long long) position->offset);
  int rc = replace_file (self->dir_fd, "checkpoint", text);
  if (rc == 0)
    self->safe = position->segment;
  return rc;
}

int ctl_journal_give_number (ctl_journal_t *self, uint32_t number)
{
  char text[16];
  snprintf (text, sizeof text, "%u\n", number);
  return replace_file (self->dir_fd, "number", text);
}

uint32_t ctl_journal_last_number (const ctl_journal_t *self)
{
  char text[16];
  read_file (self->dir_fd, "number", text, sizeof text);
  return (uint32_t) strtoul (text, NULL, 10);
}

uint64_t ctl_journal_records (const ctl_journal_t *self)
{
  return self->records;
}

/* ---- copying while it is written ------------------------------------------ */

ctl_journal_position_t ctl_journal_end (const ctl_journal_t *self)
{
  return (ctl_journal_position_t){self->segment, self->fd < 0 ? 0 : self->offset};
}

/* Whole records of one segment; *ret_damaged: something stands there that is none. */
static int copy_from (const ctl_journal_t *self, const ctl_journal_position_t *from, void *buffer,
                      size_t room, size_t *ret_size, int *ret_damaged)
{
  char name[24];
  segment_name (name, from->segment);
  int fd = openat (self->dir_fd, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return errno == ENOENT ? WEFT_E_NOT_FOUND : WEFT_E_IO;
  /* What is being written ends where the last append ended, whatever lies behind it. */
  uint64_t left = UINT64_MAX;
  if (from->segment == self->segment)
    left = self->offset > from->offset ? self->offset - from->offset : 0;
  ssize_t have = pread (fd, buffer, left < room ? (size_t) left : room, (off_t) from->offset);
  close (fd);
  if (have < 0)
    return WEFT_E_IO;
  *ret_size = ctl_record_whole (buffer, (size_t) have);
  *ret_damaged = *ret_size == 0 && have > 0;
  return 0;
}

int ctl_journal_copy (const ctl_journal_t *self, ctl_journal_position_t *position, void *buffer, size_t room,
                      size_t *ret_size, uint32_t *ret_gaps)
{
  ctl_journal_position_t at = *position;
  uint32_t gaps = 0, last = 0, count = 0;
  size_t size = 0;
  if (room < CTL_RECORD_MAX || at.offset % 8)
    return WEFT_E_RANGE;
  if (at.segment == 0)
    at = (ctl_journal_position_t){next_segment (self->dir_fd, 0, &last, &count), 0};
  if (at.segment == 0)
    at = ctl_journal_end (self);
  while (size == 0 && at.segment <= self->segment) {
    int damaged = 0;
    int rc = at.segment == self->segment && self->fd < 0
                 ? 0
                 : copy_from (self, &at, buffer, room, &size, &damaged);
    if (rc < 0 && rc != WEFT_E_NOT_FOUND)
      return rc;
    at.offset += size;
    gaps += rc < 0 || (damaged && at.segment < self->segment);
    if (size || at.segment == self->segment)
      break;
    uint32_t next = next_segment (self->dir_fd, at.segment, &last, &count);
    at = (ctl_journal_position_t){next ? next : self->segment, 0};
  }
  *position = at;
  *ret_size = size;
  *ret_gaps = gaps;
  return 0;
}

/* ---- reading ------------------------------------------------------------ */

struct ctl_journal_reader_t {
  int dir_fd;
  uint32_t segment; /* mapped, or the one to look behind */
  uint32_t last;    /* the last one there was at the opening */
  uint64_t offset;
  uint64_t start; /* in the next segment to be mapped */
  const uint8_t *map;
  uint64_t map_size;
};

static void unmap (ctl_journal_reader_t *self)
{
  if (self->map)
    munmap ((void *) (uintptr_t) self->map, self->map_size);
  self->map = NULL;
}

int ctl_journal_reader_open (const char *dir, int from_checkpoint, ctl_journal_reader_t **ret_self)
{
  ctl_journal_reader_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->dir_fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (self->dir_fd < 0) {
    free (self);
    return WEFT_E_IO;
  }
  uint32_t count = 0;
  next_segment (self->dir_fd, 0, &self->last, &count);
  ctl_journal_position_t checkpoint = {0};
  if (from_checkpoint)
    read_checkpoint (self->dir_fd, &checkpoint);
  if (checkpoint.segment) {
    self->segment = checkpoint.segment - 1;
    self->start = checkpoint.offset;
  }
  *ret_self = self;
  return 0;
}

void ctl_journal_reader_checkpoint (const ctl_journal_reader_t *self, ctl_journal_position_t *ret_position)
{
  read_checkpoint (self->dir_fd, ret_position);
}

void ctl_journal_reader_close (ctl_journal_reader_t **self_p)
{
  ctl_journal_reader_t *self = *self_p;
  if (!self)
    return;
  unmap (self);
  close (self->dir_fd);
  free (self);
  *self_p = NULL;
}

/* 1: mapped; 0: there is none; WEFT_E_IO. */
static int map_next (ctl_journal_reader_t *self)
{
  uint32_t last = 0, count = 0;
  uint32_t wanted = self->segment + 1;
  uint32_t next = next_segment (self->dir_fd, self->segment, &last, &count);
  if (!next || next > self->last)
    return 0;
  self->segment = next;
  self->offset = next == wanted ? self->start : 0;
  self->start = 0;
  char name[24];
  segment_name (name, next);
  int fd = openat (self->dir_fd, name, O_RDONLY | O_CLOEXEC);
  struct stat st;
  if (fd < 0)
    return WEFT_E_IO;
  void *map = MAP_FAILED;
  self->map_size = fstat (fd, &st) < 0 ? 0 : (uint64_t) st.st_size;
  if (self->map_size)
    map = mmap (NULL, self->map_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close (fd);
  if (map == MAP_FAILED)
    return self->map_size ? WEFT_E_IO : 1;
  self->map = map;
  return 1;
}

/* 1, or WEFT_E_MALFORMED. */
static int read_record (ctl_journal_reader_t *self, const void **ret_frame, size_t *ret_size)
{
  int rc = ctl_record_read (self->map + self->offset, self->map_size - self->offset, ret_frame, ret_size);
  if (rc < 0)
    return rc;
  self->offset += ctl_record_total (*ret_size);
  return 1;
}

int ctl_journal_reader_next (ctl_journal_reader_t *self, const void **ret_frame, size_t *ret_size,
                             ctl_journal_position_t *ret_position)
{
  while (!self->map || self->offset >= self->map_size) {
    unmap (self);
    int rc = map_next (self);
    if (rc <= 0) {
      *ret_position = (ctl_journal_position_t){self->segment, 0};
      return rc;
    }
  }
  *ret_position = (ctl_journal_position_t){self->segment, self->offset};
  int rc = read_record (self, ret_frame, ret_size);
  if (rc < 0)
    self->offset = self->map_size; /* J3 */
  return rc;
}
