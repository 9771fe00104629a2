/* SPDX-License-Identifier: Apache-2.0 */
/* exporter: what the store has taken goes on to an OTLP collector, from a thread of its own.
 *
 *   service loop   put ──▶ queue ──▶ thread   encode ─▶ post ─▶ taken
 *                   │                           ▲           │ not now
 *                   └─▶ given up: no room       └── pause ◀─┘   … for WEFT_EXPORT_GIVE_UP_MS: given up
 *
 *  X1  the service loop never waits for a collector: put moves a pointer under a lock that is
 *      never held across a call that can block
 *  X2  what waits is bounded by WEFT_EXPORT_SPANS_MAX; what comes then is given up, the newest first
 *  X3  every span that was put is in the end sent, rejected or given up, and counted so; where
 *      there was no room, a request that several captured counts for each of them
 *  X4  the thread only reads what it was given and texts that never move; who ends the registry of
 *      instances ends the exporter before
 * put, stats, end, destroy: one thread. */
#ifndef CTL_EXPORTER_H
#define CTL_EXPORTER_H

#include "../task/instances.h"
#include "../task/task.h"
#include "collector.h"

typedef struct ctl_exporter_t ctl_exporter_t;

typedef struct {
  uint64_t sent;     /* spans that the collector has taken */
  uint64_t rejected; /* that it would not take, of messages that it took */
  uint64_t given_up; /* that it was not there for in time, or would never take */
  uint64_t waiting;
  uint64_t retries;                /* messages that were sent again */
  int failing;                     /* the last message was not taken */
  char why[CTL_COLLECTOR_WHY_MAX]; /* the last trouble; "" if there was none */
} ctl_exporter_stats_t;

/* Takes the collector, also on failure; borrows the registry. WEFT_E_NOMEM. */
int ctl_exporter_new (ctl_collector_t **collector_p, ctl_instances_t *instances, ctl_exporter_t **ret_self);
/* What waits goes out, or is given up after WEFT_EXPORT_END_MS, or at once where the collector fails. */
void ctl_exporter_end (ctl_exporter_t *self);
void ctl_exporter_destroy (ctl_exporter_t **self_p);

/* A ctl_execution_fn: takes the execution. Always 0. */
int ctl_exporter_put (ctl_execution_t **execution_p, void *self);
void ctl_exporter_stats (ctl_exporter_t *self, ctl_exporter_stats_t *ret_stats);
const char *ctl_exporter_url (const ctl_exporter_t *self);

#endif
