/* SPDX-License-Identifier: Apache-2.0 */
#include "journal_record.h"

#include <string.h>

#include "../../common/crc32c.h"
#include "../../common/status.h"

ctl_record_t ctl_record_of (const void *frame, size_t size, uint32_t segment)
{
  return (ctl_record_t){CTL_JOURNAL_MAGIC, (uint32_t) size, weft_crc32c (0, frame, size), segment};
}

ctl_record_t ctl_record_end (uint32_t segment)
{
  return (ctl_record_t){CTL_JOURNAL_MAGIC, 0, 0, segment};
}

int ctl_record_is_end (const void *at, size_t room)
{
  ctl_record_t record;
  if (room < sizeof record)
    return 0;
  memcpy (&record, at, sizeof record);
  return record.magic == CTL_JOURNAL_MAGIC && record.size == 0 && record.crc32c == 0;
}

size_t ctl_record_put (void *out, const void *frame, size_t size)
{
  ctl_record_t record = ctl_record_of (frame, size, 0);
  size_t total = ctl_record_total (size);
  memset ((uint8_t *) out + total - 8, 0, 8);
  memcpy (out, &record, sizeof record);
  memcpy ((uint8_t *) out + sizeof record, frame, size);
  return total;
}

/* Bytes of the record, 0: its head is none. */
static size_t total_at (const void *at, size_t room, uint32_t segment, ctl_record_t *ret_record)
{
  if (room < sizeof *ret_record)
    return 0;
  memcpy (ret_record, at, sizeof *ret_record);
  if (ret_record->magic != CTL_JOURNAL_MAGIC || ret_record->size == 0 || ret_record->size > WEFT_FRAME_MAX ||
      ctl_record_total (ret_record->size) > room || (segment && ret_record->segment != segment))
    return 0;
  return ctl_record_total (ret_record->size);
}

int ctl_record_read (const void *at, size_t room, uint32_t segment, const void **ret_frame, size_t *ret_size)
{
  ctl_record_t record;
  if (!total_at (at, room, segment, &record))
    return WEFT_E_MALFORMED;
  const uint8_t *frame = (const uint8_t *) at + sizeof record;
  if (weft_crc32c (0, frame, record.size) != record.crc32c)
    return WEFT_E_MALFORMED;
  *ret_frame = frame;
  *ret_size = record.size;
  return 0;
}

size_t ctl_record_whole (const void *at, size_t room, uint32_t segment)
{
  ctl_record_t record;
  size_t whole = 0, total;
  while ((total = total_at ((const uint8_t *) at + whole, room - whole, segment, &record)))
    whole += total;
  return whole;
}
