/* SPDX-License-Identifier: Apache-2.0 */
#include "places.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"
#include "mix.h"

#define NONE CTL_NO_PARENT

/* *ret_text as it was in the execution before: most are alike. */
static int intern (ctl_names_t *names, const char *text, const char **ret_text)
{
  uint32_t id;
  if (*ret_text && strcmp (*ret_text, text) == 0)
    return 0;
  int rc = ctl_names_id (names, text, strlen (text), &id);
  if (rc == 0)
    *ret_text = ctl_names_text (names, id);
  return rc;
}

void ctl_places_work_clear (ctl_places_work_t *work)
{
  free (work->row);
  free (work->critical);
  free (work->end_ns);
  work->row = NULL;
  work->critical = NULL;
  work->end_ns = NULL;
  work->capacity = 0;
}

static int make_room (ctl_places_work_t *work, uint32_t count)
{
  if (count <= work->capacity)
    return 0;
  ctl_places_work_clear (work);
  work->row = calloc (count, sizeof *work->row);
  work->critical = calloc (count, sizeof *work->critical);
  work->end_ns = calloc (count, sizeof *work->end_ns);
  if (!work->row || !work->critical || !work->end_ns) {
    ctl_places_work_clear (work);
    return WEFT_E_NOMEM;
  }
  work->capacity = count;
  return 0;
}

int ctl_places_begin (ctl_places_work_t *work, ctl_names_t *names, const ctl_execution_t *execution)
{
  const ctl_subtask_t *subtasks = execution->subtasks;
  int rc = make_room (work, execution->count);
  for (uint32_t i = 0; i < execution->count && rc == 0; i++)
    work->row[i].previous = NONE;
  for (uint32_t i = 0; i < execution->count && rc == 0; i++) {
    if (subtasks[i].next_sibling != NONE)
      work->row[subtasks[i].next_sibling].previous = i;
    rc = intern (names, subtasks[i].service, &work->row[i].service);
    if (rc == 0)
      rc = intern (names, subtasks[i].vm, &work->row[i].vm);
    if (rc == 0)
      rc = intern (names, subtasks[i].name, &work->row[i].name);
  }
  return rc;
}

void ctl_places_clear (ctl_places_t *self)
{
  free (self->place);
  free (self->slot);
  *self = (ctl_places_t){0};
}

uint64_t ctl_network_ns (const ctl_subtask_t *subtask)
{
  uint64_t outer_ns = subtask->answered_ns - subtask->sent_ns, inner_ns = subtask->end_ns - subtask->start_ns;
  return subtask->hop == CTL_HOP_PROVEN && subtask->sent_ns && outer_ns > inner_ns ? outer_ns - inner_ns : 0;
}

/* The network is the same both ways; what the way there takes longer, the request lay waiting. */
static uint64_t longer (uint64_t there_ns, uint64_t back_ns)
{
  return there_ns > back_ns ? there_ns - back_ns : 0;
}

int ctl_is_apart (const ctl_execution_t *execution, const ctl_subtask_t *subtask)
{
  return execution->hosts > 1 && (!subtask->host || subtask->host != subtask->sender_host);
}

uint64_t ctl_queue_ns (const ctl_execution_t *execution, const ctl_subtask_t *subtask)
{
  if (ctl_is_apart (execution, subtask) || subtask->hop != CTL_HOP_PROVEN || !subtask->sent_ns ||
      subtask->start_ns < subtask->sent_ns || subtask->answered_ns < subtask->end_ns)
    return 0;
  return longer (subtask->start_ns - subtask->sent_ns, subtask->answered_ns - subtask->end_ns);
}

static int make_place (ctl_places_t *self)
{
  if (!self->slot)
    self->slot = calloc (CTL_PLACES_SLOTS, sizeof *self->slot);
  if (!self->slot)
    return WEFT_E_NOMEM;
  if (self->count < self->capacity)
    return 0;
  uint32_t capacity = self->capacity ? 2 * self->capacity : 16;
  ctl_place_t *grown = realloc (self->place, capacity * sizeof *grown);
  if (!grown)
    return WEFT_E_NOMEM;
  self->place = grown;
  self->capacity = capacity;
  return 0;
}

static uint32_t first_slot (const ctl_place_t *place)
{
  uint64_t hash = ctl_mix_fold (((uintptr_t) place->name ^ place->parent) | 1, 0x9e3779b97f4a7c15ull);
  hash = ctl_mix_fold (hash ^ (uintptr_t) place->service, 0xd1b54a32d192ed03ull);
  return (uint32_t) (hash >> 32) & (CTL_PLACES_SLOTS - 1);
}
_Static_assert((CTL_PLACES_SLOTS & (CTL_PLACES_SLOTS - 1)) == 0 && CTL_PLACES_MAX < UINT16_MAX,
               "a slot is found by a mask and holds a place");

static int place_of (ctl_places_t *self, const ctl_place_t *wanted, uint32_t *ret_place)
{
  int rc = make_place (self);
  if (rc)
    return rc;
  uint32_t at = first_slot (wanted);
  for (; self->slot[at]; at = (at + 1) & (CTL_PLACES_SLOTS - 1)) {
    const ctl_place_t *place = &self->place[self->slot[at] - 1];
    if (place->parent == wanted->parent && place->name == wanted->name && place->service == wanted->service &&
        place->vm == wanted->vm) {
      *ret_place = self->slot[at] - 1u;
      return 0;
    }
  }
  *ret_place = CTL_NO_PLACE;
  if (self->count == CTL_PLACES_MAX)
    return 0;
  *ret_place = self->count;
  self->place[self->count++] = *wanted;
  self->slot[at] = (uint16_t) self->count;
  return 0;
}

static int compare_times (const void *left, const void *right)
{
  uint64_t a = *(const uint64_t *) left, b = *(const uint64_t *) right;
  return a < b ? -1 : a > b;
}

/* Calls that `index` had open at once: each start meets the ends that are not over by then. */
static uint32_t parallel_of (ctl_places_work_t *work, const ctl_subtask_t *subtasks, uint32_t index)
{
  uint32_t calls = 0, open = 0, most = 0, ended = 0;
  for (uint32_t i = subtasks[index].first_child; i != NONE; i = subtasks[i].next_sibling)
    if (subtasks[i].hop != CTL_HOP_OPAQUE)
      work->end_ns[calls++] = subtasks[i].end_ns;
  qsort (work->end_ns, calls, sizeof *work->end_ns, compare_times);
  for (uint32_t i = subtasks[index].first_child; i != NONE; i = subtasks[i].next_sibling) {
    if (subtasks[i].hop == CTL_HOP_OPAQUE)
      continue;
    for (; ended < calls && work->end_ns[ended] <= subtasks[i].start_ns && open; ended++)
      open--;
    open++;
    most = open > most ? open : most;
  }
  return most;
}

/* One request that reached its callee once more. */
static int is_received_again (const ctl_places_work_t *work, const ctl_subtask_t *subtasks, uint32_t index)
{
  const ctl_subtask_t *subtask = &subtasks[index];
  uint32_t previous = work->row[index].previous;
  return subtask->request && subtask->parent != NONE && previous != NONE && !ctl_subtask_is_leaf (subtask) &&
         !ctl_subtask_is_leaf (&subtasks[previous]) && subtasks[previous].request == subtask->request;
}

static void add_times (const ctl_execution_t *execution, const ctl_subtask_t *subtask,
                       const ctl_critical_t *critical, ctl_part_t *part)
{
  uint64_t network_ns = critical->there_ns + critical->back_ns;
  part->from_ns = subtask->start_ns < part->from_ns ? subtask->start_ns : part->from_ns;
  part->to_ns = subtask->end_ns > part->to_ns ? subtask->end_ns : part->to_ns;
  part->self_ns += subtask->self_ns;
  if (!ctl_subtask_is_leaf (subtask))
    part->children_ns += subtask->end_ns - subtask->start_ns - subtask->self_ns;
  part->network_ns += ctl_network_ns (subtask);
  part->queue_ns += ctl_queue_ns (execution, subtask);
  part->critical_self_ns += critical->self_ns;
  part->critical_gap_ns += critical->gap_ns;
  part->critical_network_ns += network_ns;
  if (ctl_is_apart (execution, subtask))
    part->apart += subtask->hop == CTL_HOP_PROVEN;
  else
    part->critical_queue_ns += longer (critical->there_ns, critical->back_ns);
  if (subtask->cpu_ns == WEFT_NS_NONE)
    part->no_cpu++;
  else
    part->cpu_ns += subtask->cpu_ns;
}

/* Sums that are mutilated by a hostile sender stop at the top instead of starting again. */
static uint32_t plus (uint32_t sum, uint32_t more)
{
  return more < UINT32_MAX - sum ? sum + more : UINT32_MAX;
}

static void add (ctl_places_work_t *work, const ctl_execution_t *execution, uint32_t index, ctl_part_t *part)
{
  const ctl_subtask_t *subtask = &execution->subtasks[index];
  uint32_t parallel = parallel_of (work, execution->subtasks, index);
  part->calls = plus (part->calls, subtask->hop == CTL_HOP_OPAQUE ? subtask->calls : 1);
  part->failed +=
      (uint32_t) (ctl_subtask_failed (subtask) || is_received_again (work, execution->subtasks, index));
  part->parallel = parallel > part->parallel ? parallel : part->parallel;
  add_times (execution, subtask, &work->critical[index], part);
}

int ctl_places_parts (ctl_places_t *self, ctl_places_work_t *work, const ctl_execution_t *execution,
                      ctl_sample_t *ret_sample)
{
  uint32_t parts = 0;
  int rc = ctl_critical (execution, work->critical);
  memset (work->part_of, 0xff, sizeof work->part_of);
  for (uint32_t i = 0; i < execution->count && rc == 0; i++) {
    const ctl_subtask_t *subtask = &execution->subtasks[i];
    ctl_place_t wanted = {.depth = subtask->depth, .hop = subtask->hop, .parent = CTL_NO_PLACE};
    uint32_t place = CTL_NO_PLACE;
    if (subtask->parent != NONE)
      wanted.parent = work->row[subtask->parent].place;
    wanted.service = work->row[i].service;
    wanted.vm = work->row[i].vm;
    wanted.name = work->row[i].name;
    if (subtask->parent == NONE || wanted.parent != CTL_NO_PLACE)
      rc = place_of (self, &wanted, &place);
    work->row[i].place = place;
    if (rc || place == CTL_NO_PLACE)
      continue; /* or below a place that was left out */
    if (work->part_of[place] == CTL_NO_PLACE) {
      work->part_of[place] = parts;
      work->part[parts++] = (ctl_part_t){.place = place, .from_ns = UINT64_MAX};
    }
    add (work, execution, i, &work->part[work->part_of[place]]);
  }
  if (rc)
    return rc;
  ret_sample->part = malloc ((parts ? parts : 1) * sizeof *ret_sample->part);
  if (!ret_sample->part)
    return WEFT_E_NOMEM;
  memcpy (ret_sample->part, work->part, parts * sizeof *ret_sample->part);
  ret_sample->parts = parts;
  return 0;
}
