/* SPDX-License-Identifier: Apache-2.0 */
#include "task.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"
#include "hop_clock.h"
#include "text.h"
#include "triples.h"

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

uint64_t ctl_losses_sum (const uint64_t losses[WEFT_LOSS_COUNT])
{
  uint64_t sum = 0;
  for (int n = 0; n < WEFT_LOSS_COUNT; n++)
    sum += losses[n];
  return sum;
}

int ctl_execution_failed (const ctl_execution_t *self)
{
  for (uint32_t i = 0; i < self->count; i++)
    if (self->subtasks[i].error != WEFT_ERROR_NONE && self->subtasks[i].hop != CTL_HOP_OPAQUE)
      return 1;
  return self->count && self->subtasks[0].status >= 500;
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

/* Orders what two parts say of one thing: captures before leaves, by id, the better copy first. */
static int compare_parts (const void *left, const void *right)
{
  const ctl_subtask_t *a = left, *b = right;
  if (ctl_subtask_is_leaf (a) != ctl_subtask_is_leaf (b))
    return ctl_subtask_is_leaf (a) ? 1 : -1;
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

uint8_t ctl_error_of_both (uint8_t callee, uint8_t sender)
{
  return sender != WEFT_ERROR_NONE && callee != WEFT_ERROR_OPEN ? sender : callee;
}

static void take_request (ctl_subtask_t *into, const ctl_subtask_t *from)
{
  into->hop = CTL_HOP_PROVEN;
  into->caller = from->caller;
  into->orphan = from->orphan;
  into->alone = from->alone;
  into->sender_host = from->sender_host;
  into->sent_ns = from->sent_ns;
  into->answered_ns = from->answered_ns;
  if (ctl_subtask_is_leaf (from) && from->answered)
    into->error = ctl_error_of_both (into->error, from->error);
}

/* Whether what `from` says of its sender holds for this capture of the same request. */
static int is_told_by (const ctl_subtask_t *capture, const ctl_subtask_t *from)
{
  if (!from->alone)
    return !capture->alone;
  return capture->alone && capture->caller == from->caller && capture->sent_ns == from->sent_ns;
}

/* What one copy of a request says of its sender holds for every capture of it (but for those that
 * are `alone`): the sender's copy may have come with another part, or with the other capture of two. */
static int spread_request (ctl_subtask_t *subtasks, const ctl_triple_t *list, uint32_t count,
                           const ctl_subtask_t *from)
{
  int found = 0;
  for (uint32_t i = ctl_triples_first (list, count, from->request);
       i < count && list[i].first == from->request; i++) {
    ctl_subtask_t *subtask = &subtasks[list[i].second];
    if (!is_told_by (subtask, from))
      continue;
    if (subtask->hop == CTL_HOP_CAPTURE_ONLY)
      take_request (subtask, from);
    found = 1;
  }
  return found;
}

/* A request that was forwarded to nobody that is known may have led to each later capture of its id
 * by another subtask: their callers are not known. */
static void doubt (ctl_subtask_t *subtasks, const ctl_triple_t *list, uint32_t count,
                   const ctl_subtask_t *leaf)
{
  uint32_t i = ctl_triples_first (list, count, leaf->request);
  for (uint32_t k = i; k < count && list[k].first == leaf->request; k++)
    if (is_told_by (&subtasks[list[k].second], leaf))
      return;
  for (; i < count && list[i].first == leaf->request; i++) {
    ctl_subtask_t *subtask = &subtasks[list[i].second];
    if (subtask->hop != CTL_HOP_CAPTURE_ONLY || subtask->id == leaf->caller ||
        subtask->start_ns < leaf->sent_ns)
      continue;
    subtask->alone = 1;
    subtask->orphan = WEFT_REASON_CONTEXT;
  }
}

/* Drops what both parts have, and joins a leaf of one with the captures of the other. */
static int join (ctl_execution_t *self)
{
  ctl_subtask_t *subtasks = self->subtasks;
  ctl_triple_t *list =
      malloc ((self->count + 1u) * sizeof *list); /* captures by the request that led there */
  uint32_t kept = 0, captures = 0, listed = 0;
  if (!list)
    return WEFT_E_NOMEM;
  qsort (subtasks, self->count, sizeof *subtasks, compare_parts);
  for (uint32_t i = 0; i < self->count; i++) {
    ctl_subtask_t *last = kept ? &subtasks[kept - 1] : NULL;
    if (!last || last->id != subtasks[i].id ||
        ctl_subtask_is_leaf (last) != ctl_subtask_is_leaf (&subtasks[i]))
      subtasks[kept++] = subtasks[i];
    else if (last->hop == CTL_HOP_CAPTURE_ONLY && subtasks[i].hop == CTL_HOP_PROVEN)
      take_request (last, &subtasks[i]);
  }
  while (captures < kept && !ctl_subtask_is_leaf (&subtasks[captures])) {
    if (subtasks[captures].hop != CTL_HOP_ROOT)
      list[listed++] = (ctl_triple_t){subtasks[captures].request, captures, 0};
    captures++;
  }
  ctl_triples_sort (list, listed);
  for (uint32_t i = captures; i < kept; i++)
    if (subtasks[i].hop == CTL_HOP_EMBED_ONLY && subtasks[i].alone)
      doubt (subtasks, list, listed, &subtasks[i]);
  for (uint32_t i = 0; i < listed; i++) /* the first that is proven tells the others of its request */
    if (subtasks[list[i].second].hop == CTL_HOP_PROVEN && !subtasks[list[i].second].alone) {
      spread_request (subtasks, list, listed, &subtasks[list[i].second]);
      while (i + 1 < listed && list[i + 1].first == list[i].first)
        i++;
    }
  self->count = captures;
  for (uint32_t i = captures; i < kept; i++)
    if (subtasks[i].hop == CTL_HOP_OPAQUE || !spread_request (subtasks, list, listed, &subtasks[i]))
      subtasks[self->count++] = subtasks[i];
  free (list);
  return 0;
}

/* Two parts of one host each may be of two. Parts that do not say whose clock it was: as many as one knew of. */
static void count_hosts (ctl_execution_t *self, uint32_t others)
{
  uint32_t first = 0;
  self->hosts = others > self->hosts ? others : self->hosts;
  for (uint32_t i = 0; i < self->count && self->hosts < 2; i++) {
    uint32_t host = self->subtasks[i].host;
    first = first ? first : host;
    if (host && host != first)
      self->hosts = 2;
  }
}

int ctl_execution_merge (ctl_execution_t *self, ctl_execution_t *other)
{
  uint32_t count = self->count + other->count;
  ctl_hop_clock_restore (self);
  ctl_hop_clock_restore (other);
  ctl_subtask_t *grown = realloc (self->subtasks, (count ? count : 1) * sizeof *grown);
  if (!grown)
    return WEFT_E_NOMEM;
  self->subtasks = grown;
  if (other->count)
    memcpy (grown + self->count, other->subtasks, other->count * sizeof *grown);
  self->count = count;
  self->truncated += other->truncated;
  if (!self->origin[0])
    self->origin = other->origin;
  other->count = other->truncated = 0;
  other->name = other->origin = "";
  ctl_text_t **tail = &self->text;
  while (*tail)
    tail = &(*tail)->next;
  *tail = other->text;
  other->text = NULL;

  int rc = join (self);
  if (rc)
    return rc;
  if (self->count > WEFT_SUBTASKS_PER_TASK_MAX) {
    self->truncated += self->count - WEFT_SUBTASKS_PER_TASK_MAX;
    self->count = WEFT_SUBTASKS_PER_TASK_MAX;
  }
  count_hosts (self, other->hosts);
  if (self->hosts > 1)
    rc = ctl_hop_clock_align (NULL, self);
  return rc ? rc : ctl_execution_settle (self);
}
