/* SPDX-License-Identifier: Apache-2.0 */
#include "spans.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"
#include "../task/mix.h"
#include "../task/triples.h"

/* Tells the ids that are made here from those that subtasks drew. */
#define SENDING_ODD 0x9e3779b97f4a7c15ull

/* What is looked at while one execution is told. */
typedef struct {
  const ctl_execution_t *execution;
  ctl_triple_t *subtasks, *requests; /* by subtask id; by span id those that have a sender */
  uint32_t subtask_count, request_count;
  uint32_t origin; /* the subtask that execution->origin tells of, or count */
} look_t;

int ctl_owner_is (const ctl_owner_t *a, const ctl_owner_t *b)
{
  return memcmp (a->instance, b->instance, WEFT_UUID_SIZE) == 0 && strcmp (a->service, b->service) == 0;
}

int ctl_owner_is_known (const ctl_owner_t *owner)
{
  static const uint8_t nobody[WEFT_UUID_SIZE];
  return memcmp (owner->instance, nobody, sizeof nobody) != 0;
}

static ctl_owner_t owner_of (const ctl_subtask_t *subtask)
{
  ctl_owner_t owner = {.service = subtask->service, .vm = subtask->vm, .pid = subtask->pid};
  memcpy (owner.instance, subtask->instance, WEFT_UUID_SIZE);
  return owner;
}

/* Who sent the request that led to this subtask, as far as it is known. */
static ctl_owner_t sender_of (const look_t *look, uint32_t index)
{
  const ctl_subtask_t *subtask = &look->execution->subtasks[index];
  ctl_owner_t owner = {.service = "", .vm = ""};
  if (subtask->parent != CTL_NO_PARENT)
    return owner_of (&look->execution->subtasks[subtask->parent]);
  if (ctl_subtask_is_leaf (subtask))
    memcpy (owner.instance, subtask->instance, WEFT_UUID_SIZE);
  else if (index == look->origin)
    owner.service = look->execution->origin;
  return owner;
}

/* A sender told of the request that led to it. */
static int has_sender (const ctl_subtask_t *subtask)
{
  return subtask->hop == CTL_HOP_PROVEN && subtask->request && subtask->sent_ns;
}

/* Of the request that led to this subtask. One id that went out several times names several: each gets
 * one that is made of what they differ in. */
static uint64_t request_id (const ctl_subtask_t *subtask)
{
  if (ctl_subtask_is_leaf (subtask))
    return subtask->id;
  if (!subtask->alone || !has_sender (subtask))
    return subtask->request;
  uint64_t id = subtask->request ^ ctl_mix_fold (subtask->sent_ns | 1, subtask->caller ^ SENDING_ODD);
  return id ? id : 1;
}

/* The subtask that sent it, unless it is one that it led to itself: such circles were cut (N4). */
static uint64_t caller_id (const look_t *look, const ctl_subtask_t *subtask)
{
  if (subtask->parent != CTL_NO_PARENT || !subtask->caller)
    return subtask->caller;
  uint32_t at = ctl_triples_first (look->subtasks, look->subtask_count, subtask->caller);
  int is_there = at < look->subtask_count && look->subtasks[at].first == subtask->caller;
  return is_there ? 0 : subtask->caller;
}

static int look_at (look_t *look, const ctl_execution_t *execution)
{
  *look = (look_t){.execution = execution, .origin = execution->count};
  look->subtasks = malloc ((2ul * execution->count + 1) * sizeof *look->subtasks);
  if (!look->subtasks)
    return WEFT_E_NOMEM;
  look->requests = look->subtasks + execution->count;
  for (uint32_t n = 0; n < execution->count; n++) {
    const ctl_subtask_t *subtask = &execution->subtasks[n];
    if (!ctl_subtask_is_leaf (subtask))
      look->subtasks[look->subtask_count++] = (ctl_triple_t){subtask->id, n, 0};
    if (has_sender (subtask))
      look->requests[look->request_count++] = (ctl_triple_t){request_id (subtask), n, 0};
    if (subtask->orphan &&
        (look->origin == execution->count || subtask->start_ns < execution->subtasks[look->origin].start_ns))
      look->origin = n;
  }
  if (look->subtask_count)
    ctl_triples_sort (look->subtasks, look->subtask_count);
  if (look->request_count)
    ctl_triples_sort (look->requests, look->request_count);
  return 0;
}

/* N3: the first subtask that this request led to. */
static uint32_t told_for (const look_t *look, uint32_t index)
{
  uint64_t id = request_id (&look->execution->subtasks[index]);
  return look->requests[ctl_triples_first (look->requests, look->request_count, id)].second;
}

static ctl_span_t client_span (const look_t *look, uint32_t index)
{
  const ctl_subtask_t *subtask = &look->execution->subtasks[index];
  int leaf = ctl_subtask_is_leaf (subtask);
  ctl_span_t span = {.is_client = 1,
                     .id = request_id (subtask),
                     .parent = caller_id (look, subtask),
                     .start_ns = leaf ? subtask->start_ns : subtask->sent_ns,
                     .end_ns = leaf ? subtask->end_ns : subtask->answered_ns,
                     .shift_ns = leaf ? subtask->shift_ns : subtask->sender_shift_ns,
                     .subtask = index,
                     .is_top = index == 0,
                     .owner = sender_of (look, index)};
  return span;
}

static ctl_span_t server_span (const look_t *look, uint32_t index)
{
  const ctl_subtask_t *subtask = &look->execution->subtasks[index];
  int sent = has_sender (subtask);
  ctl_span_t span = {.id = subtask->id,
                     .parent = request_id (subtask),
                     .start_ns = subtask->start_ns,
                     .end_ns = subtask->end_ns,
                     .shift_ns = subtask->shift_ns,
                     .subtask = index,
                     .has_request = sent,
                     .request = sent ? told_for (look, index) : index,
                     .is_top = index == 0 && !sent,
                     .owner = owner_of (subtask)};
  return span;
}

uint32_t ctl_spans_most (const ctl_execution_t *execution)
{
  uint32_t count = execution->count;
  for (uint32_t n = 0; n < execution->count; n++)
    count += has_sender (&execution->subtasks[n]);
  return count;
}

static int tell (ctl_span_t *span, int (*fn) (const ctl_span_t *span, void *arg), void *arg)
{
  if (span->end_ns < span->start_ns)
    span->end_ns = span->start_ns;
  if (span->parent == span->id)
    span->parent = 0;
  return span->id ? fn (span, arg) : 0;
}

int ctl_spans_each (const ctl_execution_t *execution, int (*fn) (const ctl_span_t *span, void *arg),
                    void *arg)
{
  look_t look;
  int rc = look_at (&look, execution);
  for (uint32_t n = 0; rc == 0 && n < execution->count; n++) {
    const ctl_subtask_t *subtask = &execution->subtasks[n];
    ctl_span_t span;
    if (ctl_subtask_is_leaf (subtask) || (has_sender (subtask) && told_for (&look, n) == n)) {
      span = client_span (&look, n);
      rc = tell (&span, fn, arg);
    }
    if (rc == 0 && !ctl_subtask_is_leaf (subtask)) {
      span = server_span (&look, n);
      rc = tell (&span, fn, arg);
    }
  }
  free (look.subtasks);
  return rc;
}
