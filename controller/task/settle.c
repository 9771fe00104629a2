/* SPDX-License-Identifier: Apache-2.0 */
/* settle: everything about an execution that follows from the rest of it
 * (ctl_execution_settle in task.h). No recursion: depth comes from others. */
#include "settle.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/limits.h"
#include "../../common/status.h"
#include "few.h"
#include "triples.h"

#define NONE CTL_NO_PARENT

/* All that ordering needs besides the result. A subtask is moved once, to its place in the tree: until
 * then it goes by its rank, its place in the order by start. What has an `at` in its name is looked up by
 * slot_of (rank), which is a place for NONE, too. */
typedef struct {
  ctl_subtask_t *raw;
  ctl_triple_t *ranked;       /* start, id, hop and index in `raw` */
  ctl_triple_t *ids;          /* of callers, if they are many */
  uint32_t *parent, *sibling; /* ranks: as in ctl_subtask_t, by rank */
  uint32_t *child_at;         /* the first one; of NONE: the first of those without a parent */
  uint32_t *after_at;         /* who follows in the tree when all below have been */
  uint32_t *place_at, *depth_at;
  uint8_t *state;
} scratch_t;

static int scratch_begin (ctl_room_t *room, ctl_subtask_t *raw, uint32_t count, scratch_t *ret_scratch)
{
  scratch_t scratch = {.raw = raw};
  scratch.ranked = ctl_room (room, (count + 1u) * (2 * sizeof (ctl_triple_t) + 6 * sizeof (uint32_t) + 1));
  if (!scratch.ranked)
    return WEFT_E_NOMEM;
  scratch.ids = scratch.ranked + count;
  scratch.parent = (uint32_t *) (void *) (scratch.ids + count);
  scratch.sibling = scratch.parent + count;
  scratch.child_at = scratch.sibling + count;
  scratch.after_at = scratch.child_at + count + 1;
  scratch.place_at = scratch.after_at + count + 1;
  scratch.depth_at = scratch.place_at + count + 1;
  scratch.state = (uint8_t *) (scratch.depth_at + count + 1);
  *ret_scratch = scratch;
  return 0;
}

static uint32_t slot_of (uint32_t rank)
{
  return rank + 1; /* of NONE: 0 */
}
_Static_assert(NONE == UINT32_MAX, "slot_of, and what ctl_few_find says of one that is not there");

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

static ctl_subtask_t *at_rank (const scratch_t *scratch, uint32_t rank)
{
  return &scratch->raw[(uint32_t) scratch->ranked[rank].third];
}

/* A total order, so that the same subtasks always give the same tree. */
static void rank_all (scratch_t *scratch, uint32_t count)
{
  for (uint32_t i = 0; i < count; i++) {
    ctl_subtask_t *subtask = &scratch->raw[i];
    bound_times (subtask);
    scratch->ranked[i] = (ctl_triple_t){subtask->start_ns, subtask->id, (uint64_t) subtask->hop << 32 | i};
  }
  ctl_triples_sort (scratch->ranked, count);
}

/* Who is called what: the first rank of each id. */
typedef struct {
  ctl_few_t few;
  const ctl_triple_t *ids; /* id and rank, sorted, if they are more */
  uint32_t count;
} callers_t;

static void list_callers (scratch_t *scratch, uint32_t count, callers_t *ret_callers)
{
  callers_t *callers = ret_callers;
  callers->count = 0;
  callers->ids = scratch->ids;
  if (count <= CTL_FEW) {
    ctl_few_clear (&callers->few);
    for (uint32_t r = 0; r < count; r++)
      if (!ctl_subtask_is_leaf (at_rank (scratch, r)))
        ctl_few_add (&callers->few, scratch->ranked[r].second, r);
    return;
  }
  for (uint32_t r = 0; r < count; r++)
    if (!ctl_subtask_is_leaf (at_rank (scratch, r)))
      scratch->ids[callers->count++] = (ctl_triple_t){scratch->ranked[r].second, r, 0};
  ctl_triples_sort (scratch->ids, callers->count);
}

static uint32_t find (const callers_t *callers, uint32_t all, uint64_t id)
{
  if (all <= CTL_FEW)
    return ctl_few_find (&callers->few, id);
  uint32_t place = ctl_triples_first (callers->ids, callers->count, id);
  return place < callers->count && callers->ids[place].first == id ? (uint32_t) callers->ids[place].second
                                                                   : NONE;
}

/* 1: no parent began after its child, so there is no circle. */
static int link_parents (scratch_t *scratch, uint32_t count)
{
  callers_t callers;
  int upward = 1;
  list_callers (scratch, count, &callers);
  for (uint32_t r = 0; r < count; r++) {
    uint64_t caller = at_rank (scratch, r)->caller;
    uint32_t parent = caller ? find (&callers, count, caller) : NONE;
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
static uint32_t link_children (scratch_t *scratch, uint32_t count)
{
  uint32_t best = NONE, *first = &scratch->child_at[slot_of (NONE)];
  int best_rank = 0;
  memset (scratch->child_at, 0xff, (count + 1u) * sizeof *scratch->child_at);
  for (uint32_t r = count; r-- > 0;) {
    uint32_t *head = &scratch->child_at[slot_of (scratch->parent[r])];
    scratch->sibling[r] = *head;
    *head = r;
    if (head != first)
      continue;
    int rank = rank_of_top (at_rank (scratch, r));
    if (best == NONE || rank <= best_rank) {
      best = r;
      best_rank = rank;
    }
  }
  if (best != *first) {
    uint32_t before = *first;
    while (scratch->sibling[before] != best)
      before = scratch->sibling[before];
    scratch->sibling[before] = scratch->sibling[best];
    scratch->sibling[best] = *first;
  }
  return best;
}

/* `first`, if there is one. */
static uint32_t either (uint32_t first, uint32_t second)
{
  uint32_t none = 0u - (first == NONE);
  return (first & ~none) | (second & none);
}

/* Walks through the tree, a subtask before those that it called. Nobody can guess a tree's shape:
 * where it goes on is computed, not branched to. */
static void place_all (scratch_t *scratch, uint32_t top)
{
  uint32_t placed = 0;
  scratch->place_at[slot_of (NONE)] = scratch->after_at[slot_of (NONE)] = NONE;
  scratch->depth_at[slot_of (NONE)] = UINT32_MAX;
  for (uint32_t r = top; r != NONE;) {
    uint32_t parent = scratch->parent[r], child = scratch->child_at[slot_of (r)];
    uint32_t sibling = scratch->sibling[r], above = scratch->after_at[slot_of (parent)];
    uint32_t after = either (sibling, above);
    scratch->place_at[slot_of (r)] = placed++;
    scratch->depth_at[slot_of (r)] = scratch->depth_at[slot_of (parent)] + 1;
    scratch->after_at[slot_of (r)] = after;
    r = either (child, after);
  }
}

/* Puts the subtasks into tree order: parents before children, siblings by start. */
static void move_all (const scratch_t *scratch, uint32_t count, ctl_subtask_t *ret_subtasks)
{
  for (uint32_t r = 0; r < count; r++) {
    ctl_subtask_t *subtask = &ret_subtasks[scratch->place_at[slot_of (r)]];
    *subtask = *at_rank (scratch, r);
    subtask->parent = scratch->place_at[slot_of (scratch->parent[r])];
    subtask->first_child = scratch->place_at[slot_of (scratch->child_at[slot_of (r)])];
    subtask->next_sibling = scratch->place_at[slot_of (scratch->sibling[r])];
    subtask->depth = scratch->depth_at[slot_of (r)];
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

static void fill_self_times (ctl_execution_t *self, ctl_triple_t *work)
{
  for (uint32_t i = 0; i < self->count; i++) {
    ctl_subtask_t *subtask = &self->subtasks[i];
    uint64_t waited_ns = 0, until_ns = subtask->start_ns;
    uint32_t spans = spans_by_start (self, i, work);
    for (uint32_t k = 0; k < spans; k++) {
      const ctl_triple_t *span = &work[k];
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
static void fill_critical_path (ctl_execution_t *self, ctl_triple_t *work, uint32_t *stack)
{
  ctl_subtask_t *subtasks = self->subtasks;
  uint32_t depth = 0;
  for (uint32_t i = 0; i < self->count; i++)
    subtasks[i].on_critical_path = 0;
  stack[depth++] = 0;
  while (depth) {
    uint32_t at = stack[--depth];
    subtasks[at].on_critical_path = 1;
    uint64_t now_ns = subtasks[at].end_ns;
    uint32_t spans = spans_by_end (self, at, work);
    for (uint32_t k = 0; k < spans; k++) {
      const ctl_triple_t *span = &work[k];
      if (~span->first <= now_ns && ~span->first > subtasks[at].start_ns) {
        now_ns = span->third;
        stack[depth++] = (uint32_t) span->second;
      }
    }
  }
}

/* See "complete" in task.h. What hangs on nobody, beside the top, has lost its caller;
 * only a caller from outside weft may send several requests of one task. */
static int is_complete (const ctl_execution_t *self, const scratch_t *scratch, uint32_t top)
{
  ctl_hop_t first = at_rank (scratch, top)->hop;
  if (self->kind != CTL_KIND_TASK || self->truncated)
    return 0;
  for (uint32_t r = 0; r < self->count; r++) {
    const ctl_subtask_t *subtask = at_rank (scratch, r);
    if (!subtask->answered || (subtask->hop == CTL_HOP_EMBED_ONLY && subtask->inside))
      return 0;
    if (scratch->parent[r] == NONE && r != top &&
        !(first == CTL_HOP_CAPTURE_ONLY && subtask->hop == CTL_HOP_CAPTURE_ONLY && !subtask->orphan))
      return 0;
  }
  return first == CTL_HOP_CAPTURE_ONLY || first == CTL_HOP_ROOT;
}

static void fill_head (ctl_execution_t *self, const scratch_t *scratch, uint32_t rank)
{
  const ctl_subtask_t *top = at_rank (scratch, rank);
  self->kind = top->orphan ? CTL_KIND_ORPHAN : CTL_KIND_TASK;
  self->reason = top->orphan;
  if (self->kind == CTL_KIND_TASK)
    self->origin = "";
  self->instruction = top->instruction;
  self->name = top->name;
  self->start_ns = top->start_ns;
  self->duration_ns = top->end_ns - top->start_ns;
  for (uint32_t r = 0; r < self->count; r++)
    self->hops[at_rank (scratch, r)->hop]++;
  self->complete = (uint8_t) is_complete (self, scratch, rank);
}

static void clear_head (ctl_execution_t *self)
{
  self->name = "";
  self->complete = 0;
  self->start_ns = self->duration_ns = 0;
  memset (self->hops, 0, sizeof self->hops);
}

int ctl_execution_order (ctl_execution_t *self, ctl_subtask_t *raw, ctl_room_t *room, ctl_room_t *own)
{
  ctl_subtask_t *sorted = ctl_room (own, (self->count ? self->count : 1) * sizeof *sorted);
  scratch_t scratch;
  if (!sorted || scratch_begin (room, raw, self->count, &scratch))
    return WEFT_E_NOMEM;
  rank_all (&scratch, self->count);
  if (!link_parents (&scratch, self->count))
    cut_circles (self->count, &scratch);
  uint32_t top = link_children (&scratch, self->count);
  place_all (&scratch, top);
  move_all (&scratch, self->count, sorted);
  self->subtasks = sorted;
  *own = (ctl_room_t){0};
  clear_head (self);
  if (self->count)
    fill_head (self, &scratch, top);
  return 0;
}

int ctl_execution_time (ctl_execution_t *self, ctl_room_t *room)
{
  ctl_triple_t *work = ctl_room (room, (self->count + 1u) * (sizeof *work + sizeof (uint32_t)));
  if (!work)
    return WEFT_E_NOMEM;
  fill_self_times (self, work);
  if (self->count)
    fill_critical_path (self, work, (uint32_t *) (void *) (work + self->count));
  return 0;
}

int ctl_execution_settle (ctl_execution_t *self)
{
  ctl_room_t room = {0}, sorted = {0};
  ctl_subtask_t *own = self->subtasks;
  if (self->count == 0) {
    clear_head (self);
    return 0;
  }
  int rc = ctl_execution_order (self, own, &room, &sorted);
  if (rc == 0) { /* who points to the list does so afterwards */
    memcpy (own, self->subtasks, self->count * sizeof *own);
    free (self->subtasks);
    self->subtasks = own;
    rc = ctl_execution_time (self, &room); /* in less room than it had */
  }
  ctl_room_end (&room);
  ctl_room_end (&sorted);
  return rc;
}
