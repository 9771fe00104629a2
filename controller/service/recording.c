/* SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../common/crc32c.h"
#include "../../common/status.h"

#define CRC_FROM offsetof (ctl_recording_head_t, boot)
#define HEAD_MAX 4096u /* of a later version */

/* ---- writing ------------------------------------------------------------ */

struct ctl_recording_writer_t {
  int fd;
  uint64_t offset;
  uint8_t record[CTL_RECORD_MAX];
};

static int write_out (ctl_recording_writer_t *self, const void *data, size_t size)
{
  errno = ENOSPC; /* what a short write means */
  if (pwrite (self->fd, data, size, (off_t) self->offset) == (ssize_t) size) {
    self->offset += size;
    return 0;
  }
  int rc = errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? WEFT_E_FULL : WEFT_E_IO;
  int error = errno;
  if (ftruncate (self->fd, (off_t) self->offset) < 0)
    rc = WEFT_E_IO; /* F1 holds nevertheless: a torn record is stepped over */
  errno = error;
  return rc;
}

int ctl_recording_create (const char *path, ctl_recording_writer_t **ret_self)
{
  ctl_recording_writer_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (self->fd < 0) {
    free (self);
    return errno == EEXIST ? WEFT_E_BUSY : WEFT_E_IO;
  }
  ctl_recording_head_t head = {CTL_RECORDING_MAGIC, CTL_RECORDING_VERSION, sizeof head, 0, {0}, {0, 0}};
  weft_boot_id (head.boot); /* zeros where there is none */
  weft_anchor_take (&head.anchor);
  head.crc32c = weft_crc32c (0, (const uint8_t *) &head + CRC_FROM, sizeof head - CRC_FROM);
  int rc = write_out (self, &head, sizeof head);
  if (rc < 0) {
    unlink (path);
    close (self->fd);
    free (self);
    return rc;
  }
  *ret_self = self;
  return 0;
}

int ctl_recording_frame (ctl_recording_writer_t *self, const void *frame, size_t size)
{
  if (size == 0 || size > WEFT_FRAME_MAX)
    return WEFT_E_RANGE;
  return write_out (self, self->record, ctl_record_put (self->record, frame, size));
}

uint64_t ctl_recording_bytes (const ctl_recording_writer_t *self)
{
  return self->offset;
}

int ctl_recording_finish (ctl_recording_writer_t **self_p)
{
  ctl_recording_writer_t *self = *self_p;
  if (!self)
    return 0;
  int rc = fdatasync (self->fd) < 0 && errno != EINVAL ? WEFT_E_IO : 0;
  close (self->fd);
  free (self);
  *self_p = NULL;
  return rc;
}

/* ---- reading ------------------------------------------------------------ */

struct ctl_recording_t {
  const uint8_t *map;
  size_t size, at;
  ctl_recording_head_t head;
  ctl_recording_stats_t stats;
};

static int map_file (const char *path, ctl_recording_t *self)
{
  struct stat st;
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return WEFT_E_IO;
  int rc = fstat (fd, &st) < 0 ? WEFT_E_IO : 0;
  if (rc == 0 && (!S_ISREG (st.st_mode) || st.st_size < (off_t) sizeof self->head))
    rc = WEFT_E_MALFORMED;
  if (rc == 0) {
    self->size = (size_t) st.st_size;
    void *map = mmap (NULL, self->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
      rc = WEFT_E_IO;
    else
      self->map = map;
  }
  int error = errno;
  close (fd);
  errno = error;
  return rc;
}

static int read_head (ctl_recording_t *self)
{
  memcpy (&self->head, self->map, sizeof self->head);
  const ctl_recording_head_t *head = &self->head;
  if (head->magic != CTL_RECORDING_MAGIC || head->head_size < sizeof *head || head->head_size > HEAD_MAX ||
      head->head_size % 8 || head->head_size > self->size ||
      weft_crc32c (0, self->map + CRC_FROM, head->head_size - CRC_FROM) != head->crc32c)
    return WEFT_E_MALFORMED;
  if (head->version != CTL_RECORDING_VERSION)
    return head->version > CTL_RECORDING_VERSION ? WEFT_E_VERSION : WEFT_E_MALFORMED;
  self->at = head->head_size;
  return 0;
}

int ctl_recording_open (const char *path, ctl_recording_t **ret_self)
{
  ctl_recording_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  int rc = map_file (path, self);
  if (rc == 0)
    rc = read_head (self);
  if (rc < 0)
    ctl_recording_close (&self);
  else
    *ret_self = self;
  return rc;
}

void ctl_recording_close (ctl_recording_t **self_p)
{
  ctl_recording_t *self = *self_p;
  if (!self)
    return;
  if (self->map)
    munmap ((void *) (uintptr_t) self->map, self->size);
  free (self);
  *self_p = NULL;
}

int ctl_recording_next (ctl_recording_t *self, const void **ret_frame, size_t *ret_size)
{
  size_t from = self->at;
  int found = 0;
  /* F2: records begin at multiples of 8, so the next sound one is looked for there. */
  while (!found && self->at < self->size) {
    found = ctl_record_read (self->map + self->at, self->size - self->at, 0, ret_frame, ret_size) == 0;
    if (!found)
      self->at += self->size - self->at < 8 ? self->size - self->at : 8;
  }
  if (self->at > from) {
    self->stats.damaged++;
    self->stats.damaged_bytes += self->at - from;
  }
  if (!found)
    return 0;
  self->at += ctl_record_total (*ret_size);
  self->stats.records++;
  return 1;
}

const ctl_recording_stats_t *ctl_recording_stats (const ctl_recording_t *self)
{
  return &self->stats;
}
