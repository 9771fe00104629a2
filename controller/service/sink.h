/* SPDX-License-Identifier: Apache-2.0 */
/* sink: the way of settled executions from the correlator into the store.
 *
 *  K1  what a commit did not take stays here and is tried again; while it does,
 *      no more is taken out of the correlator (a full disk costs memory, not data)
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
/* Frees what the store never took. */
void ctl_sink_destroy (ctl_sink_t **self_p);
/* Moves what is settled at now_ns (CLOCK_MONOTONIC), or `all`, and commits. 1: there is more (K2), call
 * again soon; WEFT_E_FULL, WEFT_E_IO: nothing is lost, call again later. */
int ctl_sink_run (ctl_sink_t *self, uint64_t now_ns, int all);
/* Executions that wait here for the store. */
uint32_t ctl_sink_waiting (const ctl_sink_t *self);
/* As ctl_correlate_each, over what waits here; fn gets copies. */
int ctl_sink_each (const ctl_sink_t *self, uint32_t instruction, uint64_t from_ns, uint64_t to_ns,
                   ctl_execution_fn *fn, void *arg);

#endif
