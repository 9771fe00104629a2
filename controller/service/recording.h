/* SPDX-License-Identifier: Apache-2.0 */
/* recording: a file of journal records with a head that says when and where it
 * was made. What `weft record` writes and `weft replay` reads; drawn in
 * PROTOCOL.md, section "Recording".
 *
 *  F1  whatever ends the writer, the file can be read up to its last whole record
 *  F2  a reader never returns a frame whose checksum is wrong; it goes on with the
 *      next sound record and counts the places and bytes that it stepped over
 *  F3  a file that is there is never written over; frames that were read may be
 *      (the mapping is private): the file does not change
 * One thread. */
#ifndef CTL_RECORDING_H
#define CTL_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include "../../common/clocks.h"
#include "journal_record.h"

#define CTL_RECORDING_MAGIC   0x31435257u /* "WRC1", little endian */
#define CTL_RECORDING_VERSION 1u

typedef struct {
  uint32_t magic, version;
  uint32_t head_size;           /* of this head: records begin here; a later version may append to it */
  uint32_t crc32c;              /* of the bytes behind this field up to head_size */
  uint8_t boot[WEFT_UUID_SIZE]; /* of the host it was recorded on */
  weft_anchor_t anchor;         /* when */
} ctl_recording_head_t;
_Static_assert(sizeof (ctl_recording_head_t) == 48, "the head of a recording is 48 bytes on disk");

/* ---- writing ------------------------------------------------------------ */
typedef struct ctl_recording_writer_t ctl_recording_writer_t;

/* Makes `path` with mode 0600. WEFT_E_BUSY: it is there already (F3); WEFT_E_IO: errno says why. */
int ctl_recording_create (const char *path, ctl_recording_writer_t **ret_self);
/* One frame as a record. WEFT_E_FULL, WEFT_E_IO: cut off again. */
int ctl_recording_frame (ctl_recording_writer_t *self, const void *frame, size_t size);
uint64_t ctl_recording_bytes (const ctl_recording_writer_t *self);
/* Syncs and closes. */
int ctl_recording_finish (ctl_recording_writer_t **self_p);

/* ---- reading ------------------------------------------------------------ */
typedef struct ctl_recording_t ctl_recording_t;

typedef struct {
  uint64_t records;
  uint64_t damaged;       /* places */
  uint64_t damaged_bytes; /* stepped over there */
} ctl_recording_stats_t;

/* Maps the file. WEFT_E_MALFORMED: no recording; WEFT_E_VERSION; WEFT_E_IO: errno says why. */
int ctl_recording_open (const char *path, ctl_recording_t **ret_self);
void ctl_recording_close (ctl_recording_t **self_p);
/* 1: a frame, borrowed until close; 0: the end. */
int ctl_recording_next (ctl_recording_t *self, const void **ret_frame, size_t *ret_size);
const ctl_recording_stats_t *ctl_recording_stats (const ctl_recording_t *self);

#endif
