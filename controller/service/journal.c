/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/fault.h"
#include "../../common/limits.h"
#include "../../common/status.h"
#include "journal_files.h"
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
  uint64_t size; /* of the file; above the offset: a mark, and what it held before (J6) */
  uint64_t records;
};

static void read_checkpoint (int dir_fd, ctl_journal_position_t *ret_position)
{
  char text[40], *end;
  ctl_journal_file_read (dir_fd, "checkpoint", text, sizeof text);
  unsigned long segment = strtoul (text, &end, 10);
  *ret_position = (ctl_journal_position_t){0};
  if (segment > 0 && segment <= UINT32_MAX && *end == ' ')
    *ret_position = (ctl_journal_position_t){(uint32_t) segment, strtoull (end, NULL, 10)};
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
  uint32_t last = ctl_segment_last (self->dir_fd);
  ctl_journal_position_t checkpoint;
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

/* What stands behind the last record is of an older segment. If it cannot be cut off, the mark is there. */
static void cut (const ctl_journal_t *self)
{
  if (self->size > self->offset && ftruncate (self->fd, (off_t) self->offset) < 0)
    return;
}

void ctl_journal_close (ctl_journal_t **self_p)
{
  ctl_journal_t *self = *self_p;
  if (!self)
    return;
  if (self->fd >= 0) {
    cut (self);
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
  cut (self);
  close (self->fd);
  self->fd = -1;
  self->segment++;
  self->offset = 0;
}

static int begin_segment (ctl_journal_t *self)
{
  if (self->fd >= 0)
    end_segment (self);
  self->began_ns = weft_mono_ns ();
  return ctl_segment_begin (self->dir_fd, self->segment, self->bytes_max, self->segment_max, &self->fd,
                            &self->size);
}

/* The records of these frames, ready to be written. Their bytes in the file. */
static size_t lay_out (const ctl_journal_frame_t *frames, unsigned count, uint32_t segment,
                       ctl_record_t *records, struct iovec *parts)
{
  static const uint8_t zeros[8];
  size_t whole = 0;
  for (unsigned n = 0; n < count; n++, parts += 3) {
    size_t total = ctl_record_total (frames[n].size);
    records[n] = ctl_record_of (frames[n].data, frames[n].size, segment);
    parts[0] = (struct iovec){&records[n], sizeof records[n]};
    parts[1] = (struct iovec){(void *) (uintptr_t) frames[n].data, frames[n].size};
    parts[2] = (struct iovec){(void *) (uintptr_t) zeros, total - sizeof records[n] - frames[n].size};
    whole += total;
  }
  return whole;
}

/* All or none (J1). */
static int write_out (ctl_journal_t *self, const struct iovec *parts, unsigned count, size_t size)
{
  errno = ENOSPC; /* what a short write means */
  if (pwritev (self->fd, parts, (int) count, (off_t) self->offset) == (ssize_t) size) {
    if (self->size < self->offset + size)
      self->size = self->offset + size;
    return 0;
  }
  int rc = status_of (errno);
  if (ftruncate (self->fd, (off_t) self->offset) == 0) {
    self->size = self->offset;
  } else { /* the reader stops at it, and so does this segment */
    self->offset = self->segment_max;
    self->size = 0;
  }
  return rc;
}

/* Bytes of all in the file; a status if they cannot be together there. */
static ssize_t total_of (const ctl_journal_t *self, const ctl_journal_frame_t *frames, unsigned count)
{
  size_t total = 0;
  if (count == 0 || count > CTL_JOURNAL_TOGETHER)
    return WEFT_E_RANGE;
  for (unsigned n = 0; n < count; n++) {
    if (frames[n].size == 0 || frames[n].size > WEFT_FRAME_MAX)
      return WEFT_E_RANGE;
    total += ctl_record_total (frames[n].size);
  }
  return count > 1 && total > self->segment_max ? WEFT_E_RANGE : (ssize_t) total;
}

int ctl_journal_append_all (ctl_journal_t *self, const ctl_journal_frame_t *frames, unsigned count)
{
  ctl_record_t records[CTL_JOURNAL_TOGETHER], mark;
  struct iovec parts[3 * CTL_JOURNAL_TOGETHER + 1];
  ssize_t total = total_of (self, frames, count);
  if (total < 0)
    return (int) total;
  if (self->fd < 0 || (self->offset && self->offset + (size_t) total > self->segment_max)) {
    int rc = begin_segment (self);
    if (rc < 0)
      return rc;
  }
  size_t size = lay_out (frames, count, self->segment, records, parts);
  unsigned part_count = 3 * count;
  if (self->offset + size < self->size) { /* J6 */
    mark = ctl_record_end (self->segment);
    parts[part_count++] = (struct iovec){&mark, sizeof mark};
    size += sizeof mark;
  }
  WEFT_FAULT_POINT ("journal-append");
  int rc = write_out (self, parts, part_count, size);
  if (rc < 0)
    return rc;
  self->offset += (size_t) total;
  self->records += count;
  WEFT_FAULT_POINT ("journal-appended");
  return 0;
}

int ctl_journal_append (ctl_journal_t *self, const void *frame, size_t size)
{
  return ctl_journal_append_all (self, &(ctl_journal_frame_t){frame, size}, 1);
}

void ctl_journal_retain (ctl_journal_t *self, uint64_t bytes_max, uint64_t age_ms)
{
  self->bytes_max = bytes_max < WEFT_JOURNAL_MAX_LEAST ? WEFT_JOURNAL_MAX_LEAST : bytes_max;
  uint64_t part = self->bytes_max / WEFT_JOURNAL_PARTS;
  self->segment_max = part < WEFT_JOURNAL_SEGMENT_MAX ? (uint32_t) part : WEFT_JOURNAL_SEGMENT_MAX;
  self->age_ns = age_ms * WEFT_NS_PER_MS;
  ctl_segments_shrink (self->dir_fd, self->bytes_max, 0);
  ctl_journal_tidy (self);
}

void ctl_journal_tidy (ctl_journal_t *self)
{
  if (self->fd >= 0 && weft_mono_ns () - self->began_ns > self->age_ns / WEFT_JOURNAL_PARTS)
    end_segment (self);
  /* Files carry wall-clock times: a step of the clock only moves the moment. */
  uint64_t now_ns = weft_clock_ns (CLOCK_REALTIME);
  ctl_segments_expire (self->dir_fd, now_ns > self->age_ns ? now_ns - self->age_ns : 0, self->safe); /* J5 */
}

void ctl_journal_position (const ctl_journal_t *self, ctl_journal_position_t *ret_position)
{
  *ret_position = (ctl_journal_position_t){self->segment, self->offset};
}

int ctl_journal_checkpoint_at (ctl_journal_t *self, const ctl_journal_position_t *position)
{
  char text[40];
  snprintf (text, sizeof text, "%u %llu\n", position->segment, (unsigned long long) position->offset);
  int rc = ctl_journal_file_replace (self->dir_fd, "checkpoint", text);
  if (rc == 0)
    self->safe = position->segment;
  return rc;
}

int ctl_journal_give_number (ctl_journal_t *self, uint32_t number)
{
  char text[16];
  snprintf (text, sizeof text, "%u\n", number);
  return ctl_journal_file_replace (self->dir_fd, "number", text);
}

uint32_t ctl_journal_last_number (const ctl_journal_t *self)
{
  char text[16];
  ctl_journal_file_read (self->dir_fd, "number", text, sizeof text);
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
  char name[CTL_SEGMENT_NAME];
  ctl_segment_name (name, from->segment);
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
  *ret_size = ctl_record_whole (buffer, (size_t) have, from->segment);
  *ret_damaged = *ret_size == 0 && have > 0 && !ctl_record_is_end (buffer, (size_t) have);
  return 0;
}

int ctl_journal_copy (const ctl_journal_t *self, ctl_journal_position_t *position, void *buffer, size_t room,
                      size_t *ret_size, uint32_t *ret_gaps)
{
  ctl_journal_position_t at = *position;
  uint32_t gaps = 0;
  size_t size = 0;
  if (room < CTL_RECORD_MAX || at.offset % 8)
    return WEFT_E_RANGE;
  if (at.segment == 0)
    at = (ctl_journal_position_t){ctl_segment_after (self->dir_fd, 0), 0};
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
    uint32_t next = ctl_segment_after (self->dir_fd, at.segment);
    at = (ctl_journal_position_t){next ? next : self->segment, 0};
  }
  *position = at;
  *ret_size = size;
  *ret_gaps = gaps;
  return 0;
}

/* ---- reading ------------------------------------------------------------ */

#define READ_SIZE                                                                                            \
  (16 * CTL_RECORD_MAX) /* at once; read, not mapped: a journal that is written meanwhile is cut */

struct ctl_journal_reader_t {
  int dir_fd, fd;   /* fd -1: none is open */
  uint32_t segment; /* open, or the one to look behind */
  uint32_t last;    /* the last one there was at the opening */
  uint64_t offset;
  uint64_t start;  /* in the next segment to be opened */
  size_t at, have; /* in the buffer */
  int whole;       /* nothing of the segment lies behind what is in the buffer */
  uint8_t buffer[READ_SIZE];
};

static void leave_segment (ctl_journal_reader_t *self)
{
  if (self->fd >= 0)
    close (self->fd);
  self->fd = -1;
}

int ctl_journal_reader_open (const char *dir, int from_checkpoint, ctl_journal_reader_t **ret_self)
{
  ctl_journal_reader_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->fd = -1;
  self->dir_fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (self->dir_fd < 0) {
    free (self);
    return WEFT_E_IO;
  }
  self->last = ctl_segment_last (self->dir_fd);
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
  leave_segment (self);
  close (self->dir_fd);
  free (self);
  *self_p = NULL;
}

/* 1: open; 0: there is none; WEFT_E_IO. */
static int open_next (ctl_journal_reader_t *self)
{
  uint32_t wanted = self->segment + 1;
  uint32_t next = ctl_segment_after (self->dir_fd, self->segment);
  if (!next || next > self->last)
    return 0;
  self->segment = next;
  self->offset = next == wanted ? self->start : 0;
  self->start = 0;
  self->at = self->have = 0;
  self->whole = 0;
  char name[CTL_SEGMENT_NAME];
  ctl_segment_name (name, next);
  self->fd = openat (self->dir_fd, name, O_RDONLY | O_CLOEXEC);
  return self->fd < 0 ? WEFT_E_IO : 1;
}

/* A record at the offset is in the buffer, if there is one. */
static int fill (ctl_journal_reader_t *self)
{
  if (self->whole || self->have - self->at >= CTL_RECORD_MAX)
    return 0;
  ssize_t have = pread (self->fd, self->buffer, READ_SIZE, (off_t) self->offset);
  if (have < 0)
    return WEFT_E_IO;
  self->at = 0;
  self->have = (size_t) have;
  self->whole = self->have < READ_SIZE;
  return 0;
}

/* 1; 0: the end of the segment; WEFT_E_MALFORMED, WEFT_E_IO. */
static int read_record (ctl_journal_reader_t *self, const void **ret_frame, size_t *ret_size)
{
  int rc = fill (self);
  if (rc < 0)
    return rc;
  const uint8_t *at = self->buffer + self->at;
  size_t room = self->have - self->at;
  if (room == 0 || ctl_record_is_end (at, room))
    return 0;
  rc = ctl_record_read (at, room, self->segment, ret_frame, ret_size);
  if (rc < 0)
    return rc;
  self->offset += ctl_record_total (*ret_size);
  self->at += ctl_record_total (*ret_size);
  return 1;
}

int ctl_journal_reader_next (ctl_journal_reader_t *self, const void **ret_frame, size_t *ret_size,
                             ctl_journal_position_t *ret_position)
{
  for (;;) {
    int rc = self->fd >= 0 ? 1 : open_next (self);
    *ret_position = (ctl_journal_position_t){self->segment, self->fd < 0 ? 0 : self->offset};
    if (rc == 1)
      rc = read_record (self, ret_frame, ret_size);
    else if (rc == 0)
      return 0;
    if (rc == 1)
      return 1;
    leave_segment (self); /* J3 */
    if (rc < 0)
      return rc;
  }
}
