/* SPDX-License-Identifier: Apache-2.0 */
/* settle: everything about an execution that follows from the rest of it
 * (ctl_execution_settle in task.h). No recursion: depth comes from others. */
#include <stdlib.h>
#include <string.h>

#include "../../common/limits.h"
#include "../../common/status.h"
#include "few.h"
#include "task.h"
#include "triples.h"

#define NONE CTL_NO_PARENT

/* All that settling needs besides the result, in one allocation. A subtask is moved once, to its
 * place in the tree: until then it goes by its rank, its place in the order by start. */
typedef struct {
  ctl_triple_t *ranked;               /* start, id, hop and index in `subtasks` */
  ctl_triple_t *work;                 /* ids; then intervals of one subtask's children */
  uint32_t *parent, *child, *sibling; /* ranks: as in ctl_subtask_t */
  uint32_t *place;                    /* in the tree, by rank; then what is still to be looked at */
  uint8_t *state;
  ctl_subtask_t *sorted;
} scratch_t;

static int scratch_new (uint32_t count, scratch_t *ret_scratch)
{
  size_t each = sizeof (ctl_subtask_t) + 2 * sizeof (ctl_triple_t) + 4 * sizeof (uint32_t) + 1;
  scratch_t scratch = {.sorted = malloc (count * each)};
  if (!scratch.sorted)
    return WEFT_E_NOMEM;
  scratch.ranked = (ctl_triple_t *) (void *) (scratch.sorted + count);
  scratch.work = scratch.ranked + count;
  scratch.parent = (uint32_t *) (void *) (scratch.work + count);
  scratch.child = scratch.parent + count;
  scratch.sibling = scratch.child + count;
  scratch.place = scratch.sibling + count;
  scratch.state = (uint8_t *) (scratch.place + count);
  *ret_scratch = scratch;
  return 0;
}

/* Times come from other machines: kept within a signed 64-bit number, no end before its start. */
static void bound_times (ctl_subtask_t *subtask)
{
  if (subtask->start_ns > INT64_MAX)
    subtask->start_ns = INT64_MAX;
  if (subtask->end_ns > INT64_MAX)
    subtask->end_ns = INT64_MAX;
  if (subtask->end_ns < subtask->start_ns)
    subtask->end_ns = subtask->start_ns;
  if (subtask->sent_ns > INT64_MAX)
    subtask->sent_ns = INT64_MAX;
  if (subtask->answered_ns > INT64_MAX)
    subtask->answered_ns = INT64_MAX;
  if (subtask->answered_ns < subtask->sent_ns)
    subtask->answered_ns = subtask->sent_ns;
  if (subtask->cpu_ns != WEFT_NS_NONE && subtask->cpu_ns > INT64_MAX)
    subtask->cpu_ns = WEFT_NS_NONE;
  if (subtask->wait_ns > INT64_MAX)
    subtask->wait_ns = INT64_MAX;
}

static ctl_subtask_t *at_rank (const ctl_execution_t *self, const scratch_t *scratch, uint32_t rank)
{
  return &self->subtasks[(uint32_t) scratch->ranked[rank].third];
}

/* A total order, so that the same subtasks always give the same tree. */
static void rank_all (const ctl_execution_t *self, scratch_t *scratch)
{
  for (uint32_t i = 0; i < self->count; i++) {
    const ctl_subtask_t *subtask = &self->subtasks[i];
    scratch->ranked[i] = (ctl_triple_t){subtask->start_ns, subtask->id, (uint64_t) subtask->hop << 32 | i};
  }
  ctl_triples_sort (scratch->ranked, self->count);
}

/* Who is called what: the first rank of each id. */
typedef struct {
  ctl_few_t few;
  const ctl_triple_t *ids; /* id and rank, sorted, if they are more */
  uint32_t count;
} callers_t;

static void list_callers (const ctl_execution_t *self, scratch_t *scratch, callers_t *ret_callers)
{
  callers_t *callers = ret_callers;
  callers->count = 0;
  callers->ids = scratch->work;
  if (self->count <= CTL_FEW) {
    ctl_few_clear (&callers->few);
    for (uint32_t r = 0; r < self->count; r++)
      if (!ctl_subtask_is_leaf (at_rank (self, scratch, r)))
        ctl_few_add (&callers->few, scratch->ranked[r].second, r);
    return;
  }
  for (uint32_t r = 0; r < self->count; r++)
    if (!ctl_subtask_is_leaf (at_rank (self, scratch, r)))
      scratch->work[callers->count++] = (ctl_triple_t){scratch->ranked[r].second, r, 0};
  ctl_triples_sort (scratch->work, callers->count);
}

static uint32_t find (const callers_t *callers, uint32_t all, uint64_t id)
{
  if (all <= CTL_FEW)
    return ctl_few_find (&callers->few, id);
  uint32_t at = ctl_triples_first (callers->ids, callers->count, id);
  return at < callers->count && callers->ids[at].first == id ? (uint32_t) callers->ids[at].second : NONE;
}
_Static_assert(NONE == UINT32_MAX, "what ctl_few_find says of one that is not there");

/* 1: no parent began after its child, so there is no circle. */
static int link_parents (const ctl_execution_t *self, scratch_t *scratch)
{
  callers_t callers;
  int upward = 1;
  list_callers (self, scratch, &callers);
  for (uint32_t r = 0; r < self->count; r++) {
    uint64_t caller = at_rank (self, scratch, r)->caller;
    uint32_t parent = caller ? find (&callers, self->count, caller) : NONE;
    scratch->parent[r] = parent == r ? NONE : parent;
    upward &= parent == NONE || parent <= r;
  }
  return upward;
}

/* Walks up from every subtask; one that meets its own way is in a circle, which is
 * cut above its earliest member. state: 0 new, 1 on this way, 2 known to end. */
static void cut_circles (uint32_t count, scratch_t *scratch)
{
  uint32_t *parent = scratch->parent;
  memset (scratch->state, 0, count);
  for (uint32_t r = 0; r < count; r++) {
    uint32_t at = r;
    while (at != NONE && scratch->state[at] == 0) {
      scratch->state[at] = 1;
      at = parent[at];
    }
    int circle = at != NONE && scratch->state[at] == 1;
    for (uint32_t k = r; k != NONE && scratch->state[k] == 1; k = parent[k])
      scratch->state[k] = 2;
    if (circle) {
      uint32_t earliest = at;
      for (uint32_t k = parent[at]; k != at; k = parent[k])
        earliest = k < earliest ? k : earliest;
      parent[earliest] = NONE;
    }
  }
}

/* The true top first: a root, then a caller from outside, then what lost its caller. */
static uint32_t rank_of_top (const ctl_subtask_t *subtask)
{
  if (subtask->orphan)
    return 3;
  return subtask->hop == CTL_HOP_ROOT           ? 0
         : subtask->hop == CTL_HOP_CAPTURE_ONLY ? 1
         : ctl_subtask_is_leaf (subtask)        ? 4
                                                : 2;
}

/* Chains children by start; returns the first top, tops chained behind it. */
static uint32_t link_children (const ctl_execution_t *self, scratch_t *scratch)
{
  uint32_t first = NONE, best = NONE;
  int best_rank = 0;
  for (uint32_t r = 0; r < self->count; r++)
    scratch->child[r] = NONE;
  for (uint32_t r = self->count; r-- > 0;) {
    uint32_t parent = scratch->parent[r];
    uint32_t *head = parent == NONE ? &first : &scratch->child[parent];
    scratch->sibling[r] = *head;
    *head = r;
    if (parent != NONE)
      continue;
    int rank = rank_of_top (at_rank (self, scratch, r));
    if (best == NONE || rank <= best_rank) {
      best = r;
      best_rank = rank;
    }
  }
  if (best != first) {
    uint32_t before = first;
    while (scratch->sibling[before] != best)
      before = scratch->sibling[before];
    scratch->sibling[before] = scratch->sibling[best];
    scratch->sibling[best] = first;
  }
  return best;
}

/* Next in preorder, NONE at the end. */
static uint32_t next_in_tree (const scratch_t *scratch, uint32_t at)
{
  if (scratch->child[at] != NONE)
    return scratch->child[at];
  while (at != NONE && scratch->sibling[at] == NONE)
    at = scratch->parent[at];
  return at == NONE ? NONE : scratch->sibling[at];
}

static uint32_t moved (const scratch_t *scratch, uint32_t rank)
{
  return rank == NONE ? NONE : scratch->place[rank];
}

/* Puts the subtasks into tree order: parents before children, siblings by start. */
static void order (ctl_execution_t *self, scratch_t *scratch, uint32_t top)
{
  uint32_t placed = 0;
  for (uint32_t at = top; at != NONE; at = next_in_tree (scratch, at))
    scratch->place[at] = placed++;
  for (uint32_t r = 0; r < self->count; r++) {
    ctl_subtask_t *subtask = &scratch->sorted[scratch->place[r]];
    *subtask = *at_rank (self, scratch, r);
    subtask->parent = moved (scratch, scratch->parent[r]);
    subtask->first_child = moved (scratch, scratch->child[r]);
    subtask->next_sibling = moved (scratch, scratch->sibling[r]);
  }
  memcpy (self->subtasks, scratch->sorted, self->count * sizeof *self->subtasks);
  for (uint32_t i = 0; i < self->count; i++) {
    ctl_subtask_t *subtask = &self->subtasks[i];
    subtask->depth = subtask->parent == NONE ? 0 : self->subtasks[subtask->parent].depth + 1;
  }
}

typedef struct {
  uint64_t from_ns, to_ns;
} span_t;

/* The interval in which `of` waited for its child, on its own clock. 0: none. An opaque leaf spans
 * many calls and what was done between them. */
static int span_of (const ctl_subtask_t *child, span_t *ret_span)
{
  int known = child->sent_ns != 0;
  ret_span->from_ns = known ? child->sent_ns : child->start_ns;
  ret_span->to_ns = known ? child->answered_ns : child->end_ns;
  return child->hop != CTL_HOP_OPAQUE && ret_span->from_ns <= ret_span->to_ns;
}

/* Those of all children, clamped into the subtask, by their start. */
static uint32_t spans_by_start (const ctl_execution_t *self, uint32_t parent, ctl_triple_t *list)
{
  const ctl_subtask_t *subtasks = self->subtasks, *of = &subtasks[parent];
  uint32_t count = 0;
  span_t span;
  for (uint32_t i = of->first_child; i != NONE; i = subtasks[i].next_sibling) {
    if (!span_of (&subtasks[i], &span))
      continue;
    span.from_ns = span.from_ns < of->start_ns ? of->start_ns : span.from_ns;
    span.to_ns = span.to_ns > of->end_ns ? of->end_ns : span.to_ns;
    if (span.from_ns <= span.to_ns)
      list[count++] = (ctl_triple_t){span.from_ns, span.to_ns, i};
  }
  if (count > 1)
    ctl_triples_sort (list, count);
  return count;
}

/* By their end, the last first: the end's complement, the child, the start. */
static uint32_t spans_by_end (const ctl_execution_t *self, uint32_t parent, ctl_triple_t *list)
{
  const ctl_subtask_t *subtasks = self->subtasks;
  uint32_t count = 0;
  span_t span;
  for (uint32_t i = subtasks[parent].first_child; i != NONE; i = subtasks[i].next_sibling)
    if (span_of (&subtasks[i], &span))
      list[count++] = (ctl_triple_t){~span.to_ns, i, span.from_ns};
  if (count > 1)
    ctl_triples_sort (list, count);
  return count;
}

/* What a subtask waited for in opaque calls it did not do itself; nor did the leaf do anything else. */
static void take_opaque_waits (ctl_subtask_t *subtasks, uint32_t index)
{
  ctl_subtask_t *subtask = &subtasks[index];
  if (subtask->hop == CTL_HOP_OPAQUE)
    subtask->self_ns = subtask->wait_ns;
  for (uint32_t i = subtask->first_child; i != NONE; i = subtasks[i].next_sibling)
    if (subtasks[i].hop == CTL_HOP_OPAQUE)
      subtask->self_ns -= subtasks[i].wait_ns < subtask->self_ns ? subtasks[i].wait_ns : subtask->self_ns;
}

static void fill_self_times (ctl_execution_t *self, scratch_t *scratch)
{
  for (uint32_t i = 0; i < self->count; i++) {
    ctl_subtask_t *subtask = &self->subtasks[i];
    uint64_t waited_ns = 0, until_ns = subtask->start_ns;
    uint32_t spans = spans_by_start (self, i, scratch->work);
    for (uint32_t k = 0; k < spans; k++) {
      const ctl_triple_t *span = &scratch->work[k];
      uint64_t from_ns = span->first > until_ns ? span->first : until_ns;
      if (span->second > from_ns) {
        waited_ns += span->second - from_ns;
        until_ns = span->second;
      }
    }
    subtask->self_ns = subtask->end_ns - subtask->start_ns - waited_ns;
    take_opaque_waits (self->subtasks, i);
  }
}

/* From the end of the root back to its start: at each moment the child that ended
 * last before it is what the parent had to wait for. */
static void fill_critical_path (ctl_execution_t *self, scratch_t *scratch)
{
  ctl_subtask_t *subtasks = self->subtasks;
  uint32_t *stack = scratch->place, depth = 0;
  for (uint32_t i = 0; i < self->count; i++)
    subtasks[i].on_critical_path = 0;
  stack[depth++] = 0;
  while (depth) {
    uint32_t at = stack[--depth];
    subtasks[at].on_critical_path = 1;
    uint64_t now_ns = subtasks[at].end_ns;
    uint32_t spans = spans_by_end (self, at, scratch->work);
    for (uint32_t k = 0; k < spans; k++) {
      const ctl_triple_t *span = &scratch->work[k];
      if (~span->first <= now_ns && ~span->first > subtasks[at].start_ns) {
        now_ns = span->third;
        stack[depth++] = (uint32_t) span->second;
      }
    }
  }
}

/* See "complete" in task.h. What hangs on nobody, beside the top, has lost its caller;
 * only a caller from outside weft may send several requests of one task. */
static int is_complete (const ctl_execution_t *self)
{
  if (self->kind != CTL_KIND_TASK || self->truncated)
    return 0;
  int outside = self->subtasks[0].hop == CTL_HOP_CAPTURE_ONLY;
  for (uint32_t i = 0; i < self->count; i++) {
    const ctl_subtask_t *subtask = &self->subtasks[i];
    if (!subtask->answered || (subtask->hop == CTL_HOP_EMBED_ONLY && subtask->inside))
      return 0;
    if (subtask->parent == NONE && i > 0 &&
        !(outside && subtask->hop == CTL_HOP_CAPTURE_ONLY && !subtask->orphan))
      return 0;
  }
  return outside || self->subtasks[0].hop == CTL_HOP_ROOT;
}

static void fill_head (ctl_execution_t *self)
{
  const ctl_subtask_t *top = &self->subtasks[0];
  self->kind = top->orphan ? CTL_KIND_ORPHAN : CTL_KIND_TASK;
  self->reason = top->orphan;
  if (self->kind == CTL_KIND_TASK)
    self->origin = "";
  self->instruction = top->instruction;
  self->name = top->name;
  self->start_ns = top->start_ns;
  self->duration_ns = top->end_ns - top->start_ns;
  memset (self->hops, 0, sizeof self->hops);
  for (uint32_t i = 0; i < self->count; i++)
    self->hops[self->subtasks[i].hop]++;
  self->complete = (uint8_t) is_complete (self);
}

int ctl_execution_settle (ctl_execution_t *self)
{
  if (self->count == 0) {
    self->name = "";
    self->complete = 0;
    self->start_ns = self->duration_ns = 0;
    memset (self->hops, 0, sizeof self->hops);
    return 0;
  }
  scratch_t scratch;
  int rc = scratch_new (self->count, &scratch);
  if (rc)
    return rc;
  for (uint32_t i = 0; i < self->count; i++)
    bound_times (&self->subtasks[i]);
  rank_all (self, &scratch);
  if (!link_parents (self, &scratch))
    cut_circles (self->count, &scratch);
  order (self, &scratch, link_children (self, &scratch));
  fill_self_times (self, &scratch);
  fill_critical_path (self, &scratch);
  fill_head (self);
  free (scratch.sorted);
  return 0;
}
