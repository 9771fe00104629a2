/* SPDX-License-Identifier: Apache-2.0 */
/* settle: everything about an execution that follows from the rest of it
 * (ctl_execution_settle in task.h). No recursion: depth comes from others. */
#include <stdlib.h>
#include <string.h>

#include "../../common/limits.h"
#include "../../common/status.h"
#include "by_id.h"
#include "task.h"

#define NONE CTL_NO_PARENT

typedef struct {
  uint64_t from_ns, to_ns;
  uint32_t index;
} span_t;

/* One allocation for all that settling needs besides the result. */
typedef struct {
  ctl_subtask_t *sorted;
  ctl_by_id_t *key;
  span_t *span;
  uint32_t *stack, *place;
  uint8_t *state;
  void *memory;
} scratch_t;

static int scratch_new (uint32_t count, scratch_t *ret_scratch)
{
  size_t each = sizeof (ctl_subtask_t) + sizeof (ctl_by_id_t) + sizeof (span_t) + 2 * sizeof (uint32_t) + 1;
  char *at = calloc (count, each);
  if (!at)
    return WEFT_E_NOMEM;
  scratch_t scratch = {.memory = at};
  scratch.sorted = (ctl_subtask_t *) (void *) at;
  at += count * sizeof (ctl_subtask_t);
  scratch.key = (ctl_by_id_t *) (void *) at;
  at += count * sizeof (ctl_by_id_t);
  scratch.span = (span_t *) (void *) at;
  at += count * sizeof (span_t);
  scratch.stack = (uint32_t *) (void *) at;
  at += count * sizeof (uint32_t);
  scratch.place = (uint32_t *) (void *) at;
  at += count * sizeof (uint32_t);
  scratch.state = (uint8_t *) at;
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

/* A total order, so that the same subtasks always give the same tree. */
static int compare_subtasks (const void *left, const void *right)
{
  const ctl_subtask_t *a = left, *b = right;
  if (a->start_ns != b->start_ns)
    return a->start_ns < b->start_ns ? -1 : 1;
  if (a->id != b->id)
    return a->id < b->id ? -1 : 1;
  return (int) a->hop - (int) b->hop;
}

static uint32_t find (const ctl_by_id_t *key, uint32_t keys, uint64_t id)
{
  uint32_t first = ctl_by_id_first (key, keys, id);
  return first < keys && key[first].id == id ? key[first].index : NONE;
}

static void link_parents (ctl_execution_t *self, scratch_t *scratch)
{
  uint32_t keys = 0;
  for (uint32_t i = 0; i < self->count; i++)
    if (!ctl_subtask_is_leaf (&self->subtasks[i]))
      scratch->key[keys++] = (ctl_by_id_t){self->subtasks[i].id, i};
  qsort (scratch->key, keys, sizeof *scratch->key, ctl_by_id_compare);
  for (uint32_t i = 0; i < self->count; i++) {
    ctl_subtask_t *subtask = &self->subtasks[i];
    subtask->parent = subtask->caller ? find (scratch->key, keys, subtask->caller) : NONE;
    if (subtask->parent == i)
      subtask->parent = NONE;
  }
}

/* Walks up from every subtask; one that meets its own way is in a circle, which is
 * cut above its earliest member. state: 0 new, 1 on this way, 2 known to end. */
static void cut_circles (ctl_execution_t *self, scratch_t *scratch)
{
  ctl_subtask_t *subtasks = self->subtasks;
  for (uint32_t i = 0; i < self->count; i++) {
    uint32_t at = i;
    while (at != NONE && scratch->state[at] == 0) {
      scratch->state[at] = 1;
      at = subtasks[at].parent;
    }
    int circle = at != NONE && scratch->state[at] == 1;
    for (uint32_t k = i; k != NONE && scratch->state[k] == 1; k = subtasks[k].parent)
      scratch->state[k] = 2;
    if (circle) {
      uint32_t earliest = at;
      for (uint32_t k = subtasks[at].parent; k != at; k = subtasks[k].parent)
        earliest = k < earliest ? k : earliest;
      subtasks[earliest].parent = NONE;
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

/* Chains children by start (subtasks are sorted); returns the first top, tops chained behind it. */
static uint32_t link_children (ctl_execution_t *self)
{
  ctl_subtask_t *subtasks = self->subtasks;
  uint32_t first = NONE, best = NONE;
  for (uint32_t i = 0; i < self->count; i++)
    subtasks[i].first_child = subtasks[i].next_sibling = NONE;
  for (uint32_t i = self->count; i-- > 0;) {
    uint32_t parent = subtasks[i].parent;
    uint32_t *head = parent == NONE ? &first : &subtasks[parent].first_child;
    subtasks[i].next_sibling = *head;
    *head = i;
    if (parent == NONE && (best == NONE || rank_of_top (&subtasks[i]) <= rank_of_top (&subtasks[best])))
      best = i;
  }
  if (best != first) {
    uint32_t before = first;
    while (subtasks[before].next_sibling != best)
      before = subtasks[before].next_sibling;
    subtasks[before].next_sibling = subtasks[best].next_sibling;
    subtasks[best].next_sibling = first;
  }
  return best;
}

/* Next in preorder, NONE at the end. */
static uint32_t next_in_tree (const ctl_subtask_t *subtasks, uint32_t at)
{
  if (subtasks[at].first_child != NONE)
    return subtasks[at].first_child;
  while (at != NONE && subtasks[at].next_sibling == NONE)
    at = subtasks[at].parent;
  return at == NONE ? NONE : subtasks[at].next_sibling;
}

static uint32_t moved (const scratch_t *scratch, uint32_t index)
{
  return index == NONE ? NONE : scratch->place[index];
}

/* Puts the subtasks into tree order: parents before children, siblings by start. */
static void order (ctl_execution_t *self, scratch_t *scratch, uint32_t top)
{
  uint32_t placed = 0;
  for (uint32_t at = top; at != NONE; at = next_in_tree (self->subtasks, at))
    scratch->place[at] = placed++;
  for (uint32_t i = 0; i < self->count; i++) {
    ctl_subtask_t *subtask = &scratch->sorted[scratch->place[i]];
    *subtask = self->subtasks[i];
    subtask->parent = moved (scratch, subtask->parent);
    subtask->first_child = moved (scratch, subtask->first_child);
    subtask->next_sibling = moved (scratch, subtask->next_sibling);
  }
  memcpy (self->subtasks, scratch->sorted, self->count * sizeof *self->subtasks);
  for (uint32_t i = 0; i < self->count; i++) {
    ctl_subtask_t *subtask = &self->subtasks[i];
    subtask->depth = subtask->parent == NONE ? 0 : self->subtasks[subtask->parent].depth + 1;
  }
}

static int compare_spans (const void *left, const void *right)
{
  const span_t *a = left, *b = right;
  if (a->from_ns != b->from_ns)
    return a->from_ns < b->from_ns ? -1 : 1;
  return a->index < b->index ? -1 : a->index > b->index;
}

/* By end, the last first. */
static int compare_ends (const void *left, const void *right)
{
  const span_t *a = left, *b = right;
  if (a->to_ns != b->to_ns)
    return a->to_ns > b->to_ns ? -1 : 1;
  return a->index < b->index ? -1 : a->index > b->index;
}

/* The intervals in which `parent` waited for its children, on its own clock, clamped into it.
 * An opaque leaf spans many calls and what was done between them: it has none. */
static uint32_t spans_of (const ctl_execution_t *self, uint32_t parent, span_t *span, int clamp)
{
  const ctl_subtask_t *subtasks = self->subtasks, *of = &subtasks[parent];
  uint32_t count = 0;
  for (uint32_t i = of->first_child; i != NONE; i = subtasks[i].next_sibling) {
    if (subtasks[i].hop == CTL_HOP_OPAQUE)
      continue;
    int known = subtasks[i].sent_ns != 0;
    span_t one = {known ? subtasks[i].sent_ns : subtasks[i].start_ns,
                  known ? subtasks[i].answered_ns : subtasks[i].end_ns, i};
    if (clamp && one.from_ns < of->start_ns)
      one.from_ns = of->start_ns;
    if (clamp && one.to_ns > of->end_ns)
      one.to_ns = of->end_ns;
    if (one.from_ns <= one.to_ns)
      span[count++] = one;
  }
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
    uint32_t spans = spans_of (self, i, scratch->span, 1);
    qsort (scratch->span, spans, sizeof *scratch->span, compare_spans);
    for (uint32_t k = 0; k < spans; k++) {
      uint64_t from_ns = scratch->span[k].from_ns > until_ns ? scratch->span[k].from_ns : until_ns;
      if (scratch->span[k].to_ns > from_ns) {
        waited_ns += scratch->span[k].to_ns - from_ns;
        until_ns = scratch->span[k].to_ns;
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
  uint32_t depth = 0;
  for (uint32_t i = 0; i < self->count; i++)
    subtasks[i].on_critical_path = 0;
  scratch->stack[depth++] = 0;
  while (depth) {
    uint32_t at = scratch->stack[--depth];
    subtasks[at].on_critical_path = 1;
    uint64_t now_ns = subtasks[at].end_ns;
    uint32_t spans = spans_of (self, at, scratch->span, 0);
    qsort (scratch->span, spans, sizeof *scratch->span, compare_ends);
    for (uint32_t k = 0; k < spans; k++)
      if (scratch->span[k].to_ns <= now_ns && scratch->span[k].to_ns > subtasks[at].start_ns) {
        now_ns = scratch->span[k].from_ns;
        scratch->stack[depth++] = scratch->span[k].index;
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
  qsort (self->subtasks, self->count, sizeof *self->subtasks, compare_subtasks);
  link_parents (self, &scratch);
  cut_circles (self, &scratch);
  order (self, &scratch, link_children (self));
  fill_self_times (self, &scratch);
  fill_critical_path (self, &scratch);
  fill_head (self);
  free (scratch.memory);
  return 0;
}
