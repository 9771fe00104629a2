/* SPDX-License-Identifier: Apache-2.0 */
/* batch: the immutable, numbered unit in which reports travel, are journalled
 * and replayed. One msgpack array, positional, hand-walked on both sides
 * (36 ns a report against 292-894 ns with a general unpacker). The grammar and
 * the drawn layout stand in PROTOCOL.md, section "Batch".
 *
 * Invariants
 *  B1  a finished batch is at most WEFT_BATCH_MAX bytes and never changes
 *  B2  (instance, start, number) names it; numbers grow by one from 1
 *  B3  a string entry precedes the first report that uses its index
 *  B4  a reader never reads past `size` and never trusts a count */
#ifndef WEFT_BATCH_H
#define WEFT_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "clocks.h"
#include "report.h"

/* What a batch says about itself. */
typedef struct {
  uint16_t major, minor;
  uint8_t instance[WEFT_UUID_SIZE];
  uint8_t start[WEFT_UUID_SIZE]; /* start id of the probe, new per life */
  uint8_t boot[WEFT_UUID_SIZE];
  uint64_t number;
  weft_anchor_t anchor;
  uint64_t from_ns, to_ns;               /* boottime interval that it and its losses cover */
  uint32_t reports;                      /* number of reports, strings not counted */
  uint64_t losses[WEFT_LOSS_WIRE_COUNT]; /* since the batch before */
} weft_batch_head_t;

/* ---- writing (sidecar, tests, replay) ---------------------------------- */
typedef struct weft_batch_writer_t weft_batch_writer_t;

/* NULL when out of memory. One thread at a time. */
weft_batch_writer_t *weft_batch_writer_new (void);
void weft_batch_writer_destroy (weft_batch_writer_t **self_p);
/* Begins a batch in `buffer` (borrowed until finish), at most WEFT_BATCH_MAX
 * bytes of it. Count, interval end and losses are patched in by finish. */
int weft_batch_writer_begin (weft_batch_writer_t *self, void *buffer, size_t size,
                             const weft_batch_head_t *head);
/* Adds one report; its name is interned per batch. WEFT_E_FULL: finish this
 * batch and begin another, nothing was written. */
int weft_batch_writer_add (weft_batch_writer_t *self, const weft_report_t *report);
/* Reports added since begin. */
uint32_t weft_batch_writer_count (const weft_batch_writer_t *self);
/* Patches the head; to_ns and losses come from `head`. */
int weft_batch_writer_finish (weft_batch_writer_t *self, const weft_batch_head_t *head, size_t *ret_size);

/* ---- reading (controller, replay, tests) ------------------------------- */
/* Lives on the reader's stack; borrows the frame. */
typedef struct {
  weft_batch_head_t head;
  const uint8_t *at, *end; /* rest of the entries */
  uint32_t entries_left;
  uint32_t strings; /* defined so far */
  uint32_t skipped; /* unknown kinds, numbers and surplus fields, counted not read */
  uint32_t surplus; /* fields of a newer minor version after the entries */
  struct {
    const char *text;
    uint32_t size;
  } string[WEFT_BATCH_STRINGS_MAX];
} weft_batch_reader_t;

/* 0; WEFT_E_VERSION for a newer major; WEFT_E_MALFORMED. */
int weft_batch_reader_begin (weft_batch_reader_t *self, const void *frame, size_t size);
/* 1: *ret_report holds the next one (name borrowed from the frame);
 * 0: the end; WEFT_E_MALFORMED: the rest is lost (entries_left of it). */
int weft_batch_reader_next (weft_batch_reader_t *self, weft_report_t *ret_report);

#endif
