/* SPDX-License-Identifier: Apache-2.0 */
/* journal: what came in, verbatim and in order, before anything is made of it.
 * Recovery after a crash is reading it again.
 *
 *   DIR/00000001.weftj   segments, WEFT_JOURNAL_PARTS of them in a full journal
 *   DIR/checkpoint       "SEGMENT OFFSET": what lies before it is in the store
 *   DIR/number           the last instruction number that was given
 *
 *   record  0        4        8        12        16
 *           | 'WJR1' | size   | crc32c | segment | frame … | 0 … to a multiple of 8
 *   mark    | 'WJR1' | 0      | 0      | segment |   the end, where older bytes stand behind it
 *
 *  J1  a record that append returned 0 for is whole in the file; one that failed
 *      is cut off again
 *  J2  nothing is ever written behind a torn tail: each opening begins a segment
 *  J3  reading never goes past the first damaged record of a segment, and says where
 *  J4  the segments together stay below the bound that was set; the oldest go first
 *  J5  age alone removes nothing that lies behind the checkpoint
 *  J6  a segment that goes by J4 becomes the next one, unless it is old. What it held is never read
 *      again: a mark stands behind the last record, written with it, and no record counts that names
 *      another segment. Nor does it stay: what was not written over is cut off when the segment ends
 *      (tidy, close), after a crash it goes with the segment
 * Survives the death of the controller, not that of the host: nothing is synced
 * before close, and then the last segment only. What the kernel has not written by
 * then is at most a journal, and under load most of it is written over before. One
 * thread at a time. */
#ifndef CTL_JOURNAL_H
#define CTL_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "journal_record.h"

typedef struct {
  uint32_t segment; /* from 1 */
  uint64_t offset;
} ctl_journal_position_t;

/* ---- writing ------------------------------------------------------------ */
#define CTL_JOURNAL_TOGETHER 8 /* half a MiB: what a call costs is spread, what is written is still cached */

typedef struct ctl_journal_t ctl_journal_t;

/* `dir` exists (place.h). `segment_max` 0: WEFT_JOURNAL_SEGMENT_MAX. Removes nothing yet: the bound that
 * was set last time may have been higher. WEFT_E_IO with `why`. */
int ctl_journal_open (const char *dir, uint32_t segment_max, ctl_journal_t **ret_self, char *why,
                      size_t why_size);
/* How much is kept and for how long: all segments together, WEFT_JOURNAL_MAX_LEAST at least; a segment
 * from its last record on. Without it: WEFT_JOURNAL_MAX, WEFT_JOURNAL_AGE_MS. */
void ctl_journal_retain (ctl_journal_t *self, uint64_t bytes_max, uint64_t age_ms);
/* Removes what is too old; ends a segment that was begun long ago, so that it can age. Call it
 * now and then. */
void ctl_journal_tidy (ctl_journal_t *self);
/* Syncs and closes. */
void ctl_journal_close (ctl_journal_t **self_p);
/* WEFT_E_FULL: no room on the disk; WEFT_E_RANGE: 0 or more than WEFT_FRAME_MAX bytes; WEFT_E_IO. */
int ctl_journal_append (ctl_journal_t *self, const void *frame, size_t size);
typedef struct {
  const void *data;
  size_t size;
} ctl_journal_frame_t;
/* Several in one call of the kernel, all or none. As above; WEFT_E_RANGE also for none, for more than
 * CTL_JOURNAL_TOGETHER and for more than a segment holds. */
int ctl_journal_append_all (ctl_journal_t *self, const ctl_journal_frame_t *frames, unsigned count);
/* Everything appended before `position` is in the store: a recovery may begin there. */
int ctl_journal_checkpoint_at (ctl_journal_t *self, const ctl_journal_position_t *position);
/* Where the next record will stand. */
void ctl_journal_position (const ctl_journal_t *self, ctl_journal_position_t *ret_position);
uint64_t ctl_journal_records (const ctl_journal_t *self);
/* A number that is in a report of this journal must not be given again, also if the
 * controller dies before anything of it is stored. */
int ctl_journal_give_number (ctl_journal_t *self, uint32_t number);
/* 0: none was given. */
uint32_t ctl_journal_last_number (const ctl_journal_t *self);

/* ---- copying while it is written ------------------------------------------ */
/* Where the next record will begin. */
ctl_journal_position_t ctl_journal_end (const ctl_journal_t *self);
/* Copies whole records from *position on, as many as fit into `room` (at least CTL_RECORD_MAX), and
 * moves *position behind them. Segment 0 is the oldest one there is. *ret_size 0: nothing newer.
 * *ret_gaps: places where records are missing, removed (J4) or torn (J2). WEFT_E_RANGE, WEFT_E_IO. */
int ctl_journal_copy (const ctl_journal_t *self, ctl_journal_position_t *position, void *buffer, size_t room,
                      size_t *ret_size, uint32_t *ret_gaps);

/* ---- reading ------------------------------------------------------------ */
typedef struct ctl_journal_reader_t ctl_journal_reader_t;

/* From the first segment there is, or from the checkpoint. Only the segments that are
 * there now. WEFT_E_IO, WEFT_E_NOMEM. */
int ctl_journal_reader_open (const char *dir, int from_checkpoint, ctl_journal_reader_t **ret_self);
/* The checkpoint of the directory; 0, 0 if there is none. */
void ctl_journal_reader_checkpoint (const ctl_journal_reader_t *self, ctl_journal_position_t *ret_position);
void ctl_journal_reader_close (ctl_journal_reader_t **self_p);
/* 1: a frame, borrowed until the next call. 0: the end. WEFT_E_MALFORMED: a damaged record at
 * *ret_position; the next call goes on with the next segment. WEFT_E_IO: likewise. */
int ctl_journal_reader_next (ctl_journal_reader_t *self, const void **ret_frame, size_t *ret_size,
                             ctl_journal_position_t *ret_position);

#endif
