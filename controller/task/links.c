/* SPDX-License-Identifier: Apache-2.0 */
#include "links.h"

#include <stdlib.h>

#include "triples.h"

struct ctl_links_t {
  const ctl_execution_t *execution;
  uint32_t count;
  ctl_triple_t list[]; /* subtasks by the request that led there */
};

const char *ctl_link_text (ctl_link_kind_t kind)
{
  return kind == CTL_LINK_CALLER ? "caller" : "same_request";
}

ctl_links_t *ctl_links_new (const ctl_execution_t *execution)
{
  ctl_links_t *self = malloc (sizeof *self + execution->count * sizeof self->list[0]);
  if (!self)
    return NULL;
  self->execution = execution;
  self->count = 0;
  for (uint32_t i = 0; i < execution->count; i++)
    if (execution->subtasks[i].request && execution->subtasks[i].hop != CTL_HOP_OPAQUE)
      self->list[self->count++] = (ctl_triple_t){execution->subtasks[i].request, i, 0};
  ctl_triples_sort (self->list, self->count);
  return self;
}

void ctl_links_destroy (ctl_links_t **self_p)
{
  free (*self_p);
  *self_p = NULL;
}

static uint32_t add (ctl_link_t *links, uint32_t count, uint64_t subtask, ctl_link_kind_t kind)
{
  for (uint32_t i = 0; i < count; i++)
    if (links[i].subtask == subtask && links[i].kind == kind)
      return count;
  if (count < CTL_LINKS_MAX)
    links[count++] = (ctl_link_t){subtask, kind};
  return count;
}

uint32_t ctl_links_of (const ctl_links_t *self, uint32_t index, ctl_link_t ret_links[CTL_LINKS_MAX])
{
  const ctl_subtask_t *subtasks = self->execution->subtasks, *of = &subtasks[index];
  uint32_t count = 0;
  if (!of->request || of->hop == CTL_HOP_OPAQUE)
    return 0;
  uint32_t first = ctl_triples_first (self->list, self->count, of->request);
  for (uint32_t i = first; i < self->count && self->list[i].first == of->request && count < CTL_LINKS_MAX;
       i++) {
    const ctl_subtask_t *other = &subtasks[self->list[i].second];
    if (other == of)
      continue;
    if (!ctl_subtask_is_leaf (other))
      count = add (ret_links, count, other->id, CTL_LINK_SAME_REQUEST);
    if (!ctl_subtask_is_leaf (of) && other->caller && other->caller != of->caller && other->caller != of->id)
      count = add (ret_links, count, other->caller, CTL_LINK_CALLER);
  }
  return count;
}
