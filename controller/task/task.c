/* SPDX-License-Identifier: Apache-2.0 */
#include "task.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"
#include "text.h"

const char *ctl_hop_text (ctl_hop_t hop)
{
  static const char *const text[] = {
#define XX(name, word) [CTL_HOP_##name] = word,
    CTL_HOP_MAP (XX)
#undef XX
  };
  return (unsigned) hop < CTL_HOP_COUNT ? text[hop] : "";
}

const char *ctl_reason_text (uint8_t reason)
{
  static const char *const text[] = {
#define XX(number, name, words) [number] = words,
    WEFT_REASON_MAP (XX)
#undef XX
  };
  return reason < sizeof text / sizeof *text ? text[reason] : "";
}

const char *ctl_error_text (uint8_t error)
{
  static const char *const text[] = {
#define XX(number, name, word) [number] = word,
    WEFT_ERROR_MAP (XX)
#undef XX
  };
  return error < sizeof text / sizeof *text ? text[error] : "";
}

const char *ctl_loss_text (int loss)
{
  static const char *const text[] = {
#define XX(number, name, words) [number] = words,
    WEFT_LOSS_MAP (XX)
#undef XX
  };
  return (unsigned) loss < WEFT_LOSS_COUNT ? text[loss] : "";
}

void ctl_execution_destroy (ctl_execution_t **self_p)
{
  ctl_execution_t *self = *self_p;
  if (!self)
    return;
  while (self->text) {
    ctl_text_t *next = self->text->next;
    free (self->text);
    self->text = next;
  }
  free (self->subtasks);
  free (self);
  *self_p = NULL;
}

static int is_leaf (const ctl_subtask_t *subtask)
{
  return subtask->hop == CTL_HOP_EMBED_ONLY || subtask->hop == CTL_HOP_OPAQUE;
}

/* Orders what two parts say of one thing: captures before leaves, by id, the better copy first. */
static int compare_parts (const void *left, const void *right)
{
  const ctl_subtask_t *a = left, *b = right;
  if (is_leaf (a) != is_leaf (b))
    return is_leaf (a) ? 1 : -1;
  if (a->id != b->id)
    return a->id < b->id ? -1 : 1;
  if (a->answered != b->answered)
    return a->answered ? -1 : 1;
  if (a->end_ns != b->end_ns)
    return a->end_ns > b->end_ns ? -1 : 1;
  if (a->hop != b->hop)
    return a->hop == CTL_HOP_PROVEN ? -1 : b->hop == CTL_HOP_PROVEN ? 1 : (int) a->hop - (int) b->hop;
  return 0;
}

static void take_request (ctl_subtask_t *into, const ctl_subtask_t *from)
{
  into->hop = CTL_HOP_PROVEN;
  into->caller = from->caller;
  into->orphan = from->orphan;
  into->sent_ns = from->sent_ns;
  into->answered_ns = from->answered_ns;
}

/* A leaf of one part and captures of its request in the other are one proven hop. */
static int join_leaf (ctl_subtask_t *subtasks, uint32_t captures, const ctl_subtask_t *leaf)
{
  int joined = 0;
  for (uint32_t i = 0; i < captures; i++)
    if (subtasks[i].request == leaf->request && leaf->request && subtasks[i].hop != CTL_HOP_ROOT) {
      if (subtasks[i].hop == CTL_HOP_CAPTURE_ONLY)
        take_request (&subtasks[i], leaf);
      joined = 1;
    }
  return joined;
}

/* A mirrored request: its sender's copy may have come with the other capture only. */
static void join_mirrors (ctl_subtask_t *subtasks, uint32_t captures)
{
  for (uint32_t i = 0; i < captures; i++)
    for (uint32_t k = 0; subtasks[i].hop == CTL_HOP_CAPTURE_ONLY && k < captures; k++)
      if (subtasks[k].hop == CTL_HOP_PROVEN && subtasks[k].request == subtasks[i].request)
        take_request (&subtasks[i], &subtasks[k]);
}

static void join (ctl_execution_t *self)
{
  ctl_subtask_t *subtasks = self->subtasks;
  qsort (subtasks, self->count, sizeof *subtasks, compare_parts);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < self->count; i++) {
    ctl_subtask_t *last = kept ? &subtasks[kept - 1] : NULL;
    if (!last || last->id != subtasks[i].id || is_leaf (last) != is_leaf (&subtasks[i]))
      subtasks[kept++] = subtasks[i];
    else if (last->hop == CTL_HOP_CAPTURE_ONLY && subtasks[i].hop == CTL_HOP_PROVEN)
      take_request (last, &subtasks[i]);
  }
  uint32_t captures = 0;
  while (captures < kept && !is_leaf (&subtasks[captures]))
    captures++;
  join_mirrors (subtasks, captures);
  self->count = captures;
  for (uint32_t i = captures; i < kept; i++)
    if (subtasks[i].hop == CTL_HOP_OPAQUE || !join_leaf (subtasks, captures, &subtasks[i]))
      subtasks[self->count++] = subtasks[i];
}

int ctl_execution_merge (ctl_execution_t *self, ctl_execution_t *other)
{
  uint32_t count = self->count + other->count;
  ctl_subtask_t *grown = realloc (self->subtasks, (count ? count : 1) * sizeof *grown);
  if (!grown)
    return WEFT_E_NOMEM;
  self->subtasks = grown;
  if (other->count)
    memcpy (grown + self->count, other->subtasks, other->count * sizeof *grown);
  self->count = count;
  self->truncated += other->truncated;
  self->hosts = other->hosts > self->hosts ? other->hosts : self->hosts;
  if (!self->origin[0])
    self->origin = other->origin;
  other->count = other->truncated = 0;
  other->name = other->origin = "";
  ctl_text_t **tail = &self->text;
  while (*tail)
    tail = &(*tail)->next;
  *tail = other->text;
  other->text = NULL;

  join (self);
  if (self->count > WEFT_SUBTASKS_PER_TASK_MAX) {
    self->truncated += self->count - WEFT_SUBTASKS_PER_TASK_MAX;
    self->count = WEFT_SUBTASKS_PER_TASK_MAX;
  }
  return ctl_execution_settle (self);
}
