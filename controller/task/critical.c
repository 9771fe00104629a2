/* SPDX-License-Identifier: Apache-2.0 */
#include "critical.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"

#define NONE CTL_NO_PARENT

/* A subtask and the time in which it is what is waited for; of a call: as its caller saw it. */
typedef struct {
  uint64_t from_ns, to_ns;
  uint32_t index;
} span_t;

typedef struct {
  const ctl_subtask_t *subtasks;
  ctl_critical_t *parts;
  span_t *span;  /* the calls of the one in hand */
  span_t *stack; /* yet to come */
  uint32_t depth;
} walk_t;

int ctl_subtask_failed (const ctl_subtask_t *subtask)
{
  return (subtask->error != WEFT_ERROR_NONE && subtask->error != WEFT_ERROR_OPEN) || subtask->status == 429 ||
         subtask->status >= 500;
}

/* By end, the last first. */
static int compare_ends (const void *left, const void *right)
{
  const span_t *a = left, *b = right;
  if (a->to_ns != b->to_ns)
    return a->to_ns > b->to_ns ? -1 : 1;
  return a->index < b->index ? -1 : a->index > b->index;
}

/* Whether `later` asks once more for what `first` failed to give. A leaf is known by its address only. */
static int is_again (const ctl_subtask_t *first, const ctl_subtask_t *later)
{
  return ctl_subtask_failed (first) && strcmp (first->name, later->name) == 0 &&
         (ctl_subtask_is_leaf (first) != ctl_subtask_is_leaf (later) ||
          strcmp (first->service, later->service) == 0);
}

static uint32_t calls_of (const walk_t *walk, const span_t *at)
{
  const ctl_subtask_t *subtasks = walk->subtasks;
  uint32_t count = 0;
  for (uint32_t i = subtasks[at->index].first_child; i != NONE; i = subtasks[i].next_sibling) {
    const ctl_subtask_t *call = &subtasks[i];
    if (call->hop == CTL_HOP_OPAQUE)
      continue;
    span_t one = {call->sent_ns ? call->sent_ns : call->start_ns,
                  call->sent_ns ? call->answered_ns : call->end_ns, i};
    if (one.to_ns <= at->from_ns || one.to_ns > at->to_ns)
      continue;
    one.from_ns = one.from_ns < at->from_ns ? at->from_ns : one.from_ns;
    walk->span[count++] = one;
  }
  qsort (walk->span, count, sizeof *walk->span, compare_ends);
  return count;
}

/* Between the caller's times lie the callee's, as far as the clocks agree (K3). */
static void enter (walk_t *walk, const span_t *call)
{
  const ctl_subtask_t *callee = &walk->subtasks[call->index];
  ctl_critical_t *part = &walk->parts[call->index];
  uint64_t from_ns = callee->start_ns > call->from_ns ? callee->start_ns : call->from_ns;
  uint64_t to_ns = callee->end_ns < call->to_ns ? callee->end_ns : call->to_ns;
  if (from_ns >= to_ns) {
    part->there_ns = call->to_ns - call->from_ns;
    return;
  }
  part->there_ns = from_ns - call->from_ns;
  part->back_ns = call->to_ns - to_ns;
  walk->stack[walk->depth++] = (span_t){from_ns, to_ns, call->index};
}

/* What it waited for opaque peers is theirs; if they waited side by side, in proportion. */
static void share_out (walk_t *walk, uint32_t index)
{
  const ctl_subtask_t *subtasks = walk->subtasks;
  uint64_t own_ns = walk->parts[index].self_ns;
  double waits_ns = 0;
  for (uint32_t i = subtasks[index].first_child; i != NONE; i = subtasks[i].next_sibling)
    if (subtasks[i].hop == CTL_HOP_OPAQUE)
      waits_ns += (double) subtasks[i].wait_ns;
  if (waits_ns <= 0)
    return;
  double factor = waits_ns > (double) own_ns ? (double) own_ns / waits_ns : 1;
  for (uint32_t i = subtasks[index].first_child; i != NONE; i = subtasks[i].next_sibling) {
    if (subtasks[i].hop != CTL_HOP_OPAQUE)
      continue;
    uint64_t wait_ns = (uint64_t) (factor * (double) subtasks[i].wait_ns);
    wait_ns = wait_ns > walk->parts[index].self_ns ? walk->parts[index].self_ns : wait_ns;
    walk->parts[i].self_ns = wait_ns;
    walk->parts[index].self_ns -= wait_ns;
  }
}

static void visit (walk_t *walk, span_t at)
{
  uint64_t now_ns = at.to_ns, own_ns = 0;
  uint32_t later = NONE, calls = calls_of (walk, &at);
  for (uint32_t k = 0; k < calls; k++) {
    const span_t call = walk->span[k];
    if (call.to_ns > now_ns)
      continue;
    uint64_t gap_ns = now_ns - call.to_ns;
    if (later != NONE && is_again (&walk->subtasks[call.index], &walk->subtasks[later]))
      walk->parts[later].gap_ns = gap_ns;
    else
      own_ns += gap_ns;
    enter (walk, &call);
    now_ns = call.from_ns;
    later = call.index;
  }
  walk->parts[at.index].self_ns = own_ns + (now_ns - at.from_ns);
  share_out (walk, at.index);
}

int ctl_critical (const ctl_execution_t *execution, ctl_critical_t *parts)
{
  uint32_t count = execution->count;
  if (count == 0)
    return 0;
  span_t *room = malloc (2 * (size_t) count * sizeof *room);
  if (!room)
    return WEFT_E_NOMEM;
  memset (parts, 0, count * sizeof *parts);
  walk_t walk = {.subtasks = execution->subtasks, .parts = parts, .span = room, .stack = room + count};
  const ctl_subtask_t *top = &execution->subtasks[0];
  walk.stack[walk.depth++] = (span_t){top->start_ns, top->end_ns, 0};
  while (walk.depth)
    visit (&walk, walk.stack[--walk.depth]);
  free (room);
  return 0;
}
