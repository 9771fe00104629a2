/* SPDX-License-Identifier: Apache-2.0 */
/* edges: who calls what, how often, how long and with how many errors, by task name.
 *
 *  E1  the order of the calls does not matter, but which edges come first where there
 *      are more than CTL_EDGES_MAX
 *  E2  counts, errors and the longest call are exact; percentiles are of at most
 *      CTL_EDGE_CALLS calls of an edge: of all, or of an even sample of them
 *
 * One thread, no I/O. */
#ifndef CTL_EDGES_H
#define CTL_EDGES_H

#include "analyse.h"
#include "places.h"

typedef struct ctl_edges_t ctl_edges_t;

ctl_edges_t *ctl_edges_new (void);
void ctl_edges_destroy (ctl_edges_t **self_p);
/* All calls of one execution, as places began with it (L2). `group`: its task name; `hash`: of its id.
 * *more: calls beyond CTL_EDGES_MAX edges are added. 0 or WEFT_E_NOMEM. */
int ctl_edges_add (ctl_edges_t *self, uint32_t group, uint64_t hash, const ctl_execution_t *execution,
                   const ctl_places_work_t *work, uint64_t *more);
/* Those of one task name, sorted; texts are borrowed. Allocates *ret_edges. 0 or WEFT_E_NOMEM. */
int ctl_edges_of (ctl_edges_t *self, uint32_t group, ctl_analysis_edge_t **ret_edges, uint32_t *ret_count);

#endif
