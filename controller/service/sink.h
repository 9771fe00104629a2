/* SPDX-License-Identifier: Apache-2.0 */
/* sink: the way of settled executions from the correlator into the store.
 *
 *  K1  a task is in the correlator until the commit that stored it: what one did not
 *      take is tried again, one task at first (a full disk costs memory, not data)
 *  K2  a run that is not the last takes WEFT_SINK_RUN_MS and a transaction at most
 * One thread. */
#ifndef CTL_SINK_H
#define CTL_SINK_H

#include <stdint.h>

#include "../task/correlate.h"
#include "../task/store.h"

typedef struct ctl_sink_t ctl_sink_t;

/* Borrows both. */
ctl_sink_t *ctl_sink_new (ctl_correlate_t *correlate, ctl_store_t *store);
/* What the store has taken goes on to fn, which may keep it as ctl_correlate_each says. */
void ctl_sink_onward (ctl_sink_t *self, ctl_execution_fn *fn, void *arg);
void ctl_sink_destroy (ctl_sink_t **self_p);
/* Moves what is settled at now_ns (CLOCK_MONOTONIC), or `all`, and commits. 1: there is more (K2), call
 * again soon; WEFT_E_FULL, WEFT_E_IO: nothing is lost, call again later. */
int ctl_sink_run (ctl_sink_t *self, uint64_t now_ns, int all);
#endif
