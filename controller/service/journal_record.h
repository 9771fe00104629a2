/* SPDX-License-Identifier: Apache-2.0 */
/* journal_record: the unit that journals and recordings consist of, drawn in
 * PROTOCOL.md, section "Journal". Bytes in, bytes out: no file here. */
#ifndef CTL_JOURNAL_RECORD_H
#define CTL_JOURNAL_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "../../common/limits.h"

#define CTL_JOURNAL_MAGIC 0x31524a57u /* "WJR1", little endian */

typedef struct {
  uint32_t magic, size, crc32c;
  uint32_t segment; /* that it was written for; 0 in a recording */
} ctl_record_t;
_Static_assert(sizeof (ctl_record_t) == 16, "a record header is 16 bytes on disk");

/* Bytes of a record of the largest frame. */
#define CTL_RECORD_MAX (sizeof (ctl_record_t) + WEFT_FRAME_MAX)
_Static_assert(WEFT_FRAME_MAX % 8 == 0, "the largest record needs no padding");

/* What a record of a frame of `size` bytes takes, its padding included. */
static inline size_t ctl_record_total (size_t size)
{
  return sizeof (ctl_record_t) + ((size + 7) & ~(size_t) 7);
}

ctl_record_t ctl_record_of (const void *frame, size_t size, uint32_t segment);
/* What stands behind the last record of a segment, where others were before: a head of no frame. */
ctl_record_t ctl_record_end (uint32_t segment);
int ctl_record_is_end (const void *at, size_t room);
/* Writes a whole record of a recording to `out`, which has room for ctl_record_total (size); returns that. */
size_t ctl_record_put (void *out, const void *frame, size_t size);
/* The record at `at`: its frame, borrowed. `segment` 0: of whichever. WEFT_E_MALFORMED: there is none
 * that is whole and sound. */
int ctl_record_read (const void *at, size_t room, uint32_t segment, const void **ret_frame, size_t *ret_size);
/* Bytes of the records that begin one after another at `at` and lie whole in `room`. Looks at their
 * heads only: what is in them is checked where they are used. */
size_t ctl_record_whole (const void *at, size_t room, uint32_t segment);

#endif
