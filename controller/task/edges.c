/* SPDX-License-Identifier: Apache-2.0 */
#include "edges.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"
#include "mix.h"

#define SLOTS (4 * CTL_EDGES_MAX) /* open addressing, at most a quarter full */
_Static_assert((SLOTS & (SLOTS - 1)) == 0, "a slot is found by a mask");

typedef struct {
  uint64_t hash, ns;
} call_t;

typedef struct {
  uint32_t group;
  ctl_analysis_edge_t as; /* with interned texts; percentiles come last */
  uint64_t keep;          /* calls with a hash up to this are kept */
  call_t *call;
  uint32_t calls, capacity;
} edge_t;

struct ctl_edges_t {
  edge_t edge[CTL_EDGES_MAX];
  uint32_t edges;
  uint32_t slot[SLOTS]; /* edge + 1, 0: free */
};

ctl_edges_t *ctl_edges_new (void)
{
  return calloc (1, sizeof (ctl_edges_t));
}

void ctl_edges_destroy (ctl_edges_t **self_p)
{
  ctl_edges_t *self = *self_p;
  if (!self)
    return;
  for (uint32_t i = 0; i < self->edges; i++)
    free (self->edge[i].call);
  free (self);
  *self_p = NULL;
}

static int is_same (const edge_t *edge, uint32_t group, const ctl_analysis_edge_t *as)
{
  return edge->group == group && edge->as.name == as->name && edge->as.service == as->service &&
         edge->as.from_name == as->from_name && edge->as.from_service == as->from_service &&
         edge->as.vm == as->vm && edge->as.hop == as->hop;
}

static uint64_t mix (uint64_t hash, uint64_t word)
{
  return ctl_mix_fold (hash ^ word, 0x9e3779b97f4a7c15ull) + 1;
}

/* NULL: one more than CTL_EDGES_MAX. */
static edge_t *find (ctl_edges_t *self, uint32_t group, const ctl_analysis_edge_t *as)
{
  uint64_t hash = mix (mix (group + 1, (uintptr_t) as->name), (uintptr_t) as->from_name);
  hash = mix (mix (hash, (uintptr_t) as->service), (uintptr_t) as->from_service);
  for (uint32_t at = (uint32_t) (hash >> 32) & (SLOTS - 1);; at = (at + 1) & (SLOTS - 1)) {
    if (self->slot[at] && !is_same (&self->edge[self->slot[at] - 1], group, as))
      continue;
    if (self->slot[at])
      return &self->edge[self->slot[at] - 1];
    if (self->edges == CTL_EDGES_MAX)
      return NULL;
    edge_t *edge = &self->edge[self->edges++];
    *edge = (edge_t){.group = group, .as = *as, .keep = UINT64_MAX};
    self->slot[at] = self->edges;
    return edge;
  }
}

/* As in analyse.c: whenever the sample is full, half of what can still come is no longer in it. */
static int keep (edge_t *edge, uint64_t hash, uint64_t ns)
{
  if (hash > edge->keep)
    return 0;
  if (edge->calls == edge->capacity) {
    uint32_t capacity = edge->capacity ? 2 * edge->capacity : 16;
    call_t *grown = realloc (edge->call, capacity * sizeof *grown);
    if (!grown)
      return WEFT_E_NOMEM;
    edge->call = grown;
    edge->capacity = capacity;
  }
  edge->call[edge->calls++] = (call_t){hash, ns};
  while (edge->calls > CTL_EDGE_CALLS && edge->keep) {
    uint32_t kept = 0;
    edge->keep /= 2;
    for (uint32_t i = 0; i < edge->calls; i++)
      if (edge->call[i].hash <= edge->keep)
        edge->call[kept++] = edge->call[i];
    edge->calls = kept;
  }
  return 0;
}

static uint64_t time_of (const ctl_subtask_t *call)
{
  if (call->hop == CTL_HOP_OPAQUE)
    return call->wait_ns;
  return call->sent_ns ? call->answered_ns - call->sent_ns : call->end_ns - call->start_ns;
}

int ctl_edges_add (ctl_edges_t *self, uint32_t group, uint64_t hash, const ctl_execution_t *execution,
                   const ctl_places_work_t *work, uint64_t *more)
{
  int rc = 0;
  for (uint32_t i = 0; i < execution->count && rc == 0; i++) {
    const ctl_subtask_t *call = &execution->subtasks[i];
    ctl_analysis_edge_t as = {
        .service = work->row[i].service, .vm = work->row[i].vm, .name = work->row[i].name};
    int below = call->parent != CTL_NO_PARENT;
    as.from_service = below ? work->row[call->parent].service : NULL;
    as.from_name = below ? work->row[call->parent].name : NULL;
    as.hop = call->hop;
    edge_t *edge = find (self, group, &as);
    uint64_t calls = call->hop == CTL_HOP_OPAQUE ? call->calls : 1, ns = time_of (call);
    if (!edge) {
      *more += calls;
      continue;
    }
    edge->as.calls += calls;
    edge->as.errors += (uint64_t) ctl_subtask_failed (call);
    edge->as.max_ns = ns > edge->as.max_ns ? ns : edge->as.max_ns;
    rc = keep (edge, mix (hash, call->id), ns);
  }
  return rc;
}

static int compare_calls (const void *left, const void *right)
{
  const call_t *a = left, *b = right;
  return a->ns < b->ns ? -1 : a->ns > b->ns;
}

static uint64_t percentile (const edge_t *edge, uint32_t percent)
{
  uint64_t rank = ((uint64_t) edge->calls * percent + 99) / 100;
  return edge->calls ? edge->call[rank ? rank - 1 : 0].ns : 0;
}

static int compare_edges (const void *left, const void *right)
{
  const ctl_analysis_edge_t *a = left, *b = right;
  if (a->calls != b->calls)
    return a->calls > b->calls ? -1 : 1;
  const char *const texts[][2] = {{a->from_service, b->from_service},
                                  {a->from_name, b->from_name},
                                  {a->service, b->service},
                                  {a->name, b->name},
                                  {a->vm, b->vm}};
  int order = 0;
  for (size_t i = 0; i < sizeof texts / sizeof *texts && order == 0; i++)
    order = strcmp (texts[i][0], texts[i][1]);
  return order ? order : (int) a->hop - (int) b->hop;
}

int ctl_edges_of (ctl_edges_t *self, uint32_t group, ctl_analysis_edge_t **ret_edges, uint32_t *ret_count)
{
  uint32_t count = 0;
  for (uint32_t i = 0; i < self->edges; i++)
    count += self->edge[i].group == group;
  ctl_analysis_edge_t *edges = calloc (count + 1u, sizeof *edges);
  if (!edges)
    return WEFT_E_NOMEM;
  count = 0;
  for (uint32_t i = 0; i < self->edges; i++) {
    edge_t *edge = &self->edge[i];
    if (edge->group != group)
      continue;
    qsort (edge->call, edge->calls, sizeof *edge->call, compare_calls);
    edge->as.p50_ns = percentile (edge, 50);
    edge->as.p90_ns = percentile (edge, 90);
    edge->as.p99_ns = percentile (edge, 99);
    edges[count] = edge->as;
    edges[count].from_service = edge->as.from_service ? edge->as.from_service : "";
    edges[count].from_name = edge->as.from_name ? edge->as.from_name : "";
    count++;
  }
  qsort (edges, count, sizeof *edges, compare_edges);
  *ret_edges = edges;
  *ret_count = count;
  return 0;
}
