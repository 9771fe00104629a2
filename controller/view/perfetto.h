/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto: executions in the Trace Event Format (JSON), as Perfetto and chrome://tracing
 * open it. One process a VM, with as many tracks as it had spans at the same time; a span is a
 * complete event ("X"), a request that somebody captured has an arrow ("s" to "f") to what it led to.
 *
 *  F1  on one track spans lie within each other or apart, never across
 *  F2  `pid` is a number of this file, one for each instance: those of several hosts and containers
 *      are alike; the real one is a label of the process
 *  F3  times count from the first span, whose own stands in otherData.start_ns: as numbers of
 *      microseconds since the epoch they would lose their nanoseconds
 * One thread. */
#ifndef CTL_PERFETTO_H
#define CTL_PERFETTO_H

#include <stdio.h>

#include "spans.h"

typedef struct ctl_perfetto_t ctl_perfetto_t;

/* place may be NULL; its texts live as long as this. */
ctl_perfetto_t *ctl_perfetto_new (ctl_place_fn *place, void *arg);
void ctl_perfetto_destroy (ctl_perfetto_t **self_p);
/* Takes the execution, sets *execution_p NULL; also when it fails (WEFT_E_NOMEM). */
int ctl_perfetto_add (ctl_perfetto_t *self, ctl_execution_t **execution_p);
/* Of all that was added; once. WEFT_E_IO with errno, WEFT_E_NOMEM. */
int ctl_perfetto_write (ctl_perfetto_t *self, FILE *out);

#endif
