/* SPDX-License-Identifier: Apache-2.0 */
/* replay_plan: what a recording says, made ready to be sent: who speaks in it,
 * which frames go out in which order, when, and under which number. No socket.
 *
 *  L1  a probe (instance, start) says hello before anything else, wherever its
 *      hello stands in the file; without one it is nameless
 *  L2  its batches are numbered anew from 1 in the order of the file, a batch that
 *      is there twice has one number: a controller takes each exactly once, in
 *      whatever order they stand and whatever is missing between them
 *  L3  what is missing, repeated, damaged or cannot be renamed is counted
 * Borrows the recording. One thread. */
#ifndef CTL_REPLAY_PLAN_H
#define CTL_REPLAY_PLAN_H

#include "../../common/batch_rename.h"
#include "../../common/wire.h"
#include "recording.h"

typedef struct {
  uint8_t instance[WEFT_UUID_SIZE], start[WEFT_UUID_SIZE], boot[WEFT_UUID_SIZE];
  const void *hello; /* NULL: there is none */
  size_t hello_size;
  uint64_t hello_epoch;
  uint64_t taken;           /* distinct batches; also the last number given */
  uint64_t left_out;        /* cannot be renamed */
  uint64_t lowest, highest; /* of the numbers in the file */
} ctl_plan_start_t;

/* A batch or a farewell. */
typedef struct {
  const void *frame;
  uint32_t size;
  uint32_t start;   /* index */
  uint64_t number;  /* 0: no batch */
  uint64_t wall_ns; /* when it was finished; of a farewell: of what came before it */
  uint32_t reports;
  uint8_t repeated; /* was there before */
} ctl_plan_frame_t;

typedef struct {
  ctl_plan_start_t *starts;
  uint32_t start_count, instance_count;
  ctl_plan_frame_t *frames;
  uint32_t frame_count;
  uint64_t batches, reports, tasks; /* distinct ones */
  uint64_t first_ns, last_ns;       /* wall clock of the batches */
  uint64_t missing;                 /* numbers between the lowest and the highest that are not there */
  uint64_t repeated;                /* batches */
  uint64_t unrenamed;               /* batches left out: not in the encoding of our writer */
  uint64_t unread;                  /* frames that this version cannot read */
} ctl_plan_t;

/* Reads the recording to its end. rename_ids: it will be sent under other ids, too. WEFT_E_NOMEM;
 * WEFT_E_FULL: too many instances or tasks. */
int ctl_plan_new (ctl_recording_t *recording, int rename_ids, ctl_plan_t **ret_self);
void ctl_plan_destroy (ctl_plan_t **self_p);

/* ---- names of one repeat -------------------------------------------------- */
typedef struct {
  weft_rename_key_t uuids, starts, ids;
  int keep_ids; /* the first repeat tells of the recorded tasks themselves */
} ctl_plan_names_t;

/* `seed` gives the ids of a repeat; `run` what tells this replay from others: its start ids. */
void ctl_plan_names (uint64_t seed, uint64_t run, uint32_t repeat, ctl_plan_names_t *ret_names);
void ctl_plan_rename_start (const ctl_plan_names_t *names, const ctl_plan_start_t *start,
                            weft_rename_t *ret_to);
/* The HELLO of a start as this repeat says it. Malloc'd. */
int ctl_plan_hello (const ctl_plan_t *self, const ctl_plan_names_t *names, uint32_t start, void **ret_frame,
                    size_t *ret_size);
/* A frame as this repeat sends it, into `out` with room for frame->size. WEFT_E_UNSUPPORTED: it
 * cannot be sent under other names. A farewell may become larger: room for WEFT_REPORT_MAX more. */
int ctl_plan_frame (const ctl_plan_t *self, const ctl_plan_names_t *names, const ctl_plan_frame_t *frame,
                    void *out, size_t *ret_size);
/* The same where it lies, in the recording's memory, for the repeat that keeps the ids: only the head
 * changes, and to the same each time. WEFT_E_UNSUPPORTED: another repeat, or no batch. */
int ctl_plan_frame_in_place (const ctl_plan_t *self, const ctl_plan_names_t *names,
                             const ctl_plan_frame_t *frame);

#endif
