/* SPDX-License-Identifier: Apache-2.0 */
/* intake: the PULL socket that everything instances say comes in by, and the
 * order of what happens to it.
 *
 *   HELLO ─ journal ─ registry ─ STATE to this instance alone
 *   ACK   ─ registry             BYE ─ journal ─ registry
 *   BATCH ─ known? drop, ack again
 *         ─ journal ─ BATCH_ACK ─ correlate
 *
 * Batches that are there at once are journalled together, up to CTL_JOURNAL_TOGETHER of them, and
 * answered once for each start: an answer names all up to its number. While one group is written (by
 * another thread, appender.h), the one before is correlated. None waits for more to come.
 *
 *  N1  a batch is acknowledged only when it and all before it of this start are in
 *      the journal; what the journal refuses stays with the sidecar, which sends it again
 *      as it does what the correlator has no room for even after settling
 *  N2  a batch (instance, start, number) is correlated once
 *  N3  nothing that arrives stops the rest: it is counted by cause
 * One thread; the journal is untouched between calls, whoever wrote it. */
#ifndef CTL_INTAKE_H
#define CTL_INTAKE_H

#include <stddef.h>
#include <stdint.h>

#include "../task/correlate.h"
#include "../task/instances.h"
#include "audit.h"
#include "broadcast.h"
#include "instructions.h"
#include "journal.h"
#include "sink.h"

#define CTL_INTAKE_MAP(XX)                                                                                   \
  XX (frames, "frames")                                                                                      \
  XX (hellos, "hellos")                                                                                      \
  XX (acks, "acknowledgements")                                                                              \
  XX (byes, "farewells")                                                                                     \
  XX (batches, "batches")                                                                                    \
  XX (reports, "reports")                                                                                    \
  XX (duplicates, "batches that were there already")                                                         \
  XX (malformed, "malformed")                                                                                \
  XX (version, "of a newer major version")                                                                   \
  XX (unsupported, "of an unknown kind")                                                                     \
  XX (gap, "too far ahead of a gap")                                                                         \
  XX (refused, "beyond a limit")                                                                             \
  XX (unjournalled, "not journalled")                                                                        \
  XX (deferred, "put off until the store takes more")

typedef struct {
#define XX(name, text) uint64_t name;
  CTL_INTAKE_MAP (XX)
#undef XX
} ctl_intake_stats_t;

/* Whom it works for; all borrowed. journal NULL: none is written (a bench, a test). */
typedef struct {
  ctl_broadcast_t *broadcast; /* NULL: nothing is answered (recovery, a bench) */
  ctl_instances_t *instances;
  ctl_instructions_t *instructions;
  ctl_correlate_t *correlate;
  ctl_journal_t *journal;
  ctl_sink_t *sink;   /* where room is made by; NULL: nowhere */
  ctl_audit_t *audit; /* NULL: who comes and goes is not written down */
} ctl_intake_links_t;

typedef struct ctl_intake_t ctl_intake_t;

/* No socket yet. NULL when out of memory. */
ctl_intake_t *ctl_intake_new (const ctl_intake_links_t *links);
void ctl_intake_destroy (ctl_intake_t **self_p);
/* Sets the links anew: recovery runs without journal and broadcast. */
void ctl_intake_link (ctl_intake_t *self, const ctl_intake_links_t *links);
/* Opens the socket beside that of links.broadcast. WEFT_E_BUSY, WEFT_E_IO with `why`. */
int ctl_intake_listen (ctl_intake_t *self, char *why, size_t why_size);

/* One frame, from wherever. The status says what became of it; it is counted already. */
int ctl_intake_frame (ctl_intake_t *self, const void *frame, size_t size);
/* A batch of which the store has everything: its number and its counts, nothing else. As above. */
int ctl_intake_recall (ctl_intake_t *self, const void *frame, size_t size);
/* From now on, while `yes`: what a batch holds and tells as lost is in its instance's sums already (recovery). */
void ctl_intake_uncounted (ctl_intake_t *self, int yes);
/* Takes at most WEFT_INTAKE_BURST frames off the socket; how many. Edge-triggered fd: pump until 0. */
int ctl_intake_pump (ctl_intake_t *self);
int ctl_intake_fd (const ctl_intake_t *self);

const ctl_intake_stats_t *ctl_intake_stats (const ctl_intake_t *self);

#endif
