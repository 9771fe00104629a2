/* SPDX-License-Identifier: Apache-2.0 */
/* reader: the sidecar's side of the shared memory. One thread. Everything it
 * reads is hostile until checked (L2). */
#ifndef SHM_READER_H
#define SHM_READER_H

#include <sys/types.h>

#include "layout.h"

typedef struct shm_reader_t shm_reader_t;

/* Over the memory that is found in a process; statuses of shm_find (find.h). */
int shm_reader_open (pid_t pid, shm_reader_t **ret_self);
/* The same of a descriptor that the process has passed (find.h); fd stays the caller's. */
int shm_reader_of_fd (int fd, pid_t pid, uid_t uid, shm_reader_t **ret_self);
/* The same over memory of the caller's (tests, benchmarks), SHM_SIZE bytes, not unmapped. */
int shm_reader_over (void *base, shm_reader_t **ret_self);
void shm_reader_destroy (shm_reader_t **self_p);

void *shm_reader_base (shm_reader_t *self);
/* What was looked at so far is no longer part of our size; nothing of it changes, and the
 * next look at a page costs a fault. */
void shm_reader_look_away (shm_reader_t *self);
/* 1: *ret_report holds the next event, valid until the next call; 0: all rings
 * are empty. A ring that breaks L5 or holds a malformed record is moved to its
 * head, what was in it is counted in shm_reader_corrupt. What was read stays in
 * its ring until shm_reader_consume, or until the sealing of a batch says so. */
int shm_reader_next (shm_reader_t *self, weft_report_t *ret_report);
/* The event of the last call comes again. Once a call. */
void shm_reader_unread (shm_reader_t *self);
/* Gives the writers the room of all that was read. */
void shm_reader_consume (shm_reader_t *self);
uint64_t shm_reader_corrupt (const shm_reader_t *self);
/* Frees rings whose owner thread is gone from /proc/PID/task; counts them. */
unsigned shm_reader_break_locks (shm_reader_t *self, pid_t pid);
uint64_t shm_reader_broken (const shm_reader_t *self);
/* The same, with those that batches of former sidecars told of. */
uint64_t shm_reader_broken_ever (const shm_reader_t *self);
/* Records ever written into the rings, as far as that is plausible. */
uint64_t shm_reader_written (const shm_reader_t *self);
/* Plausible copies: out-of-range values are clamped or zeroed. */
void shm_reader_status (shm_reader_t *self, shm_status_t *ret_status);
/* Bytes that the probe saw and does not understand, by weft_protocol_t. */
void shm_reader_rest (shm_reader_t *self, uint64_t ret_bytes[WEFT_PROTOCOL_COUNT]);

/* ---- control page ------------------------------------------------------- */
/* Writes a configuration (seqlock), with what narrows embed and root further, then rings
 * the doorbell. */
void shm_configure_with (shm_reader_t *self, uint32_t actions, uint32_t carrier, uint32_t embed_to,
                         const shm_rule_t *rules, uint32_t rule_count, const shm_filter_t *filter);
void shm_renew_lease (shm_reader_t *self, uint64_t until_mono_ns);
void shm_command (shm_reader_t *self, shm_command_t command);
/* The probe looks around, and takes over what the kernel has counted for it. */
void shm_wake (shm_reader_t *self);
/* Sequence number of the last configuration written here. */
uint32_t shm_config_seq (const shm_reader_t *self);

/* ---- spool: batches until they are acknowledged ------------------------- */
/* A free slot's buffer of WEFT_BATCH_MAX bytes, or NULL when all are taken. */
void *shm_spool_reserve (shm_reader_t *self, unsigned *ret_slot);
/* Seals the slot: checksum, size, then number. With the number, in one step,
 * everything read so far is out of the rings, `told` of the probe's losses and all
 * broken locks are told: a sidecar that dies at any moment leaves all or nothing (L6). */
void shm_spool_seal (shm_reader_t *self, unsigned slot, uint64_t number, size_t size,
                     const uint64_t told[WEFT_LOSS_WIRE_COUNT]);
/* Frees every slot with a number <= `number`. */
unsigned shm_spool_release (shm_reader_t *self, uint64_t number);
/* The sealed slot with the lowest number above `after`; NULL: none. */
const void *shm_spool_next (shm_reader_t *self, uint64_t after, uint64_t *ret_number, size_t *ret_size);
/* Highest sealed number, 0: none. A new sidecar continues from it. */
uint64_t shm_spool_last (shm_reader_t *self);
unsigned shm_spool_used (shm_reader_t *self);

#endif
