/* SPDX-License-Identifier: Apache-2.0 */
#include "open_tasks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../common/status.h"
#include "reserve.h"

#define TABLE_MIN  4096u
#define FETCH_EACH 64u /* entries of a task that are worth it */
#define BURST      64u /* segments, 3.5 MiB: less is kept for the next entries */

static size_t table_size (uint32_t mask)
{
  return ((size_t) mask + 1) * sizeof (ctl_open_slot_t);
}

static size_t entries_size (const ctl_open_tasks_t *self)
{
  return (size_t) self->segment_max * CTL_OPEN_SEGMENT * sizeof *self->entry;
}

int ctl_open_tasks_begin (ctl_open_tasks_t *self, uint32_t task_max, uint32_t entry_max)
{
  ctl_seed_take (&self->seed);
  self->task_max = task_max;
  self->segment_max = entry_max / CTL_OPEN_SEGMENT + 1;
  self->mask = TABLE_MIN - 1;
  self->table = ctl_reserve (table_size (self->mask));
  self->task = ctl_reserve ((size_t) task_max * sizeof *self->task);
  self->entry = ctl_reserve (entries_size (self));
  self->live = calloc (self->segment_max, sizeof *self->live);
  self->segment_free = calloc (self->segment_max, sizeof *self->segment_free);
  self->free = CTL_NIL;
  return self->table && self->task && self->entry && self->live && self->segment_free ? 0 : WEFT_E_NOMEM;
}

void ctl_open_tasks_end (ctl_open_tasks_t *self)
{
  if (self->table)
    munmap (self->table, table_size (self->mask));
  if (self->task)
    munmap (self->task, (size_t) self->task_max * sizeof *self->task);
  if (self->entry)
    munmap (self->entry, entries_size (self));
  free (self->live);
  free (self->segment_free);
  *self = (ctl_open_tasks_t){0};
}

void ctl_open_tasks_give_back (ctl_open_tasks_t *self)
{
  if (self->segments_made > BURST) {
    madvise (self->task, (size_t) self->task_max * sizeof *self->task, MADV_DONTNEED);
    madvise (self->entry, entries_size (self), MADV_DONTNEED);
  }
  self->made = self->segments_made = self->segments_free = self->at = self->end = 0;
  self->free = CTL_NIL;
}

uint64_t ctl_open_tasks_bytes (const ctl_open_tasks_t *self)
{
  uint64_t segments = self->segments_made - self->segments_free;
  return (uint64_t) self->open * sizeof (ctl_open_t) + segments * CTL_OPEN_SEGMENT * sizeof (ctl_entry_t) +
         table_size (self->mask);
}

/* ---- the table ------------------------------------------------------------ */

static uint32_t find (const ctl_open_tasks_t *self, const uint8_t id[WEFT_TASK_ID_SIZE], uint32_t hash,
                      uint32_t *ret_at)
{
  uint32_t at = hash & self->mask;
  for (; self->table[at].task; at = (at + 1) & self->mask)
    if (self->table[at].tag == hash) {
      uint32_t number = self->table[at].task - 1;
      if (ctl_open_tasks_is (self, number, id)) {
        *ret_at = at;
        return number;
      }
    }
  *ret_at = at;
  return CTL_NIL;
}

uint32_t ctl_open_tasks_find (const ctl_open_tasks_t *self, const uint8_t id[WEFT_TASK_ID_SIZE],
                              uint32_t hash)
{
  uint32_t at;
  return find (self, id, hash, &at);
}

static int grow (ctl_open_tasks_t *self)
{
  uint32_t mask = self->mask * 2 + 1;
  ctl_open_slot_t *table = ctl_reserve (table_size (mask));
  if (!table)
    return WEFT_E_NOMEM;
  for (uint32_t i = 0; i <= self->mask; i++)
    if (self->table[i].task) {
      uint32_t at = self->table[i].tag & mask;
      while (table[at].task)
        at = (at + 1) & mask;
      table[at] = self->table[i];
    }
  munmap (self->table, table_size (self->mask));
  self->table = table;
  self->mask = mask;
  return 0;
}

/* Closes the gap: what follows moves up unless it stands before its own place. */
static void remove_at (ctl_open_tasks_t *self, uint32_t gap)
{
  for (uint32_t at = (gap + 1) & self->mask; self->table[at].task; at = (at + 1) & self->mask)
    if (((at - self->table[at].tag) & self->mask) >= ((at - gap) & self->mask)) {
      self->table[gap] = self->table[at];
      gap = at;
    }
  self->table[gap].task = 0;
}

int ctl_open_tasks_take (ctl_open_tasks_t *self, const uint8_t id[WEFT_TASK_ID_SIZE], uint32_t hash,
                         uint32_t *ret_number, int *ret_made)
{
  uint32_t at, number = find (self, id, hash, &at);
  *ret_made = number == CTL_NIL;
  if (number != CTL_NIL) {
    *ret_number = number;
    return 0;
  }
  if (self->open >= self->mask / 4 * 3) { /* O2 */
    int rc = grow (self);
    if (rc)
      return rc;
    find (self, id, hash, &at);
  }
  number = self->free;
  if (number != CTL_NIL)
    self->free = self->task[number].next;
  else if (self->made < self->task_max)
    number = self->made++;
  else
    return WEFT_E_FULL;
  self->task[number] = (ctl_open_t){.first = CTL_NIL, .hash = hash, .flags = CTL_OPEN_USED};
  memcpy (self->task[number].id, id, WEFT_TASK_ID_SIZE);
  self->table[at] = (ctl_open_slot_t){hash, number + 1};
  self->open++;
  *ret_number = number;
  return 0;
}

/* ---- entries -------------------------------------------------------------- */

/* The segment that was filled may have lost all of its entries by now. */
int ctl_open_tasks_next_segment (ctl_open_tasks_t *self)
{
  uint32_t segment;
  if (self->end && self->live[self->end / CTL_OPEN_SEGMENT - 1] == 0) {
    self->at = self->end - CTL_OPEN_SEGMENT;
    return 0;
  }
  if (self->segments_free)
    segment = self->segment_free[--self->segments_free];
  else if (self->segments_made < self->segment_max)
    segment = self->segments_made++;
  else
    return WEFT_E_FULL;
  self->live[segment] = 0;
  self->at = segment * CTL_OPEN_SEGMENT;
  self->end = self->at + CTL_OPEN_SEGMENT;
  return 0;
}

/* They lie anywhere, and are lists: several are walked in turns, so that one need not wait for another. */
void ctl_open_tasks_fetch_entries (const ctl_open_tasks_t *self, uint32_t number)
{
  uint32_t at[CTL_OPEN_FETCH], count = 0;
  for (; number != CTL_NIL && count < CTL_OPEN_FETCH; number = self->task[number].next)
    at[count++] = self->task[number].first;
  for (uint32_t turn = 0; turn < FETCH_EACH && count; turn++) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
      uint32_t next = at[i] == CTL_NIL ? CTL_NIL : self->entry[at[i]].next;
      if (next == CTL_NIL)
        continue;
      __builtin_prefetch (&self->entry[next]);
      __builtin_prefetch (&self->entry[next].next);
      at[left++] = next;
    }
    count = left;
    __asm__ volatile("" : : "r"(count)); /* or gcc takes it for a function without an effect */
  }
}

static void drop_entry (ctl_open_tasks_t *self, uint32_t at)
{
  uint32_t segment = at / CTL_OPEN_SEGMENT;
  if (--self->live[segment] == 0 && self->end != (segment + 1) * CTL_OPEN_SEGMENT)
    self->segment_free[self->segments_free++] = segment;
}

void ctl_open_tasks_drop (ctl_open_tasks_t *self, uint32_t number)
{
  for (uint32_t i = self->task[number].first; i != CTL_NIL; i = self->entry[i].next)
    drop_entry (self, i);
}

void ctl_open_tasks_regain (ctl_open_tasks_t *self, uint32_t number)
{
  uint32_t kept = 0;
  for (uint32_t i = self->task[number].first; i != CTL_NIL; i = self->entry[i].next)
    self->live[i / CTL_OPEN_SEGMENT]++;
  for (uint32_t i = 0; i < self->segments_free; i++)
    if (self->live[self->segment_free[i]] == 0)
      self->segment_free[kept++] = self->segment_free[i];
  self->segments_free = kept;
}

void ctl_open_tasks_forget (ctl_open_tasks_t *self, uint32_t number)
{
  ctl_open_t *task = &self->task[number];
  uint32_t at;
  if (find (self, task->id, task->hash, &at) != CTL_NIL)
    remove_at (self, at);
  task->flags = 0;
  task->next = self->free;
  self->free = number;
  self->open--;
}
