/* SPDX-License-Identifier: Apache-2.0 */
/* drain: rings -> templated names -> numbered batches in the spool -> push ->
 * freed when the controller says that they are journalled.
 *
 *  D1  a number is used once in the life of a probe, whoever drains it
 *  D2  every loss is told in exactly one batch; a batch without reports may
 *      carry losses alone
 *  D3  with the spool full the rings are not read: they fill, drop and count,
 *      and what they drop then is told as SPOOL_FULL
 *  D4  batches are pushed in the order of their numbers
 *  D5  an acknowledgement frees only what was pushed since the last repush: a
 *      controller that has just taken over may name a number whose
 *      predecessors went down with the one before it
 *  D6  an event is out of its ring, and a loss of the probe's is told, in the very
 *      step that seals the batch it stands in: whoever dies, the next one goes on there
 *
 * Knows no socket: the caller gives a push function. One thread. */
#ifndef CAR_DRAIN_H
#define CAR_DRAIN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../shm/reader.h"
#include "desk.h"

#define CAR_DRAIN_INTERVAL_MS   10   /* between two looks at the rings while active */
#define CAR_DRAIN_HURRY_MS      2    /* the same, when a ring was an eighth full */
#define CAR_DRAIN_BATCHES_MAX   8    /* per call: heartbeats must not wait longer */
#define CAR_DRAIN_REPUSH_MS     1000 /* without any acknowledgement, then doubled up to … */
#define CAR_DRAIN_REPUSH_MAX_MS 8000

typedef struct car_drain_t car_drain_t;

/* 0, or WEFT_E_BUSY: nobody takes it now. */
typedef int (*car_push_t) (void *to, const void *data, size_t size);

/* Continues where another sidecar of the same probe has stopped. reader is
 * borrowed, and so is the desk; NULL: one of its own. 0 or WEFT_E_NOMEM. */
int car_drain_new (shm_reader_t *reader, const uint8_t instance[WEFT_UUID_SIZE],
                   const uint8_t boot[WEFT_UUID_SIZE], car_desk_t *desk, car_drain_t **ret_self);
void car_drain_destroy (car_drain_t **self_p);

/* Reads what is in the rings into sealed batches; breaks locks of threads of
 * `pid` that died. Returns the number of milliseconds after which to look
 * again while active: 0, CAR_DRAIN_HURRY_MS or CAR_DRAIN_INTERVAL_MS. */
int car_drain_collect (car_drain_t *self, pid_t pid);
/* Pushes sealed batches not pushed yet, and again those that nobody has
 * acknowledged in time. 0: all are out; WEFT_E_BUSY: some are not. */
int car_drain_push (car_drain_t *self, car_push_t push, void *to, uint64_t mono_ns);
/* The controller has journalled the batches of `start` up to `number`. */
void car_drain_acked (car_drain_t *self, const uint8_t start[WEFT_UUID_SIZE], uint64_t number,
                      uint64_t mono_ns);
/* Another controller: push everything that is still here, at once. */
void car_drain_repush (car_drain_t *self);
/* Batches that are not acknowledged. */
unsigned car_drain_waiting (car_drain_t *self);
/* Events of this probe, whatever became of them: what batches hold and tell as lost sums up to it
 * once everything is told. */
uint64_t car_drain_written (car_drain_t *self);
/* Number of the last batch sealed. */
uint64_t car_drain_number (const car_drain_t *self);

#endif
