/* SPDX-License-Identifier: Apache-2.0 */
/* open_tasks: the tasks that are open and the entries that wait for them. A task
 * is found by its id in an open-addressed table of (tag, number) pairs; its entries
 * are a list. Nothing is allocated per report: tasks and entries live in two
 * address ranges reserved once and backed by the kernel as they are used.
 *
 *  O1  a slot's tag is 32 bits of a seeded hash of the id; the whole id, in the
 *      task, decides
 *  O2  the table is at most three quarters full: a task is found in its home line
 *      or the next one
 *  O3  entries are written one behind the other, in segments; a segment is used
 *      again when none of its entries is left. Tasks end about as they began, so
 *      segments do, too, and no write goes to a place that nobody has looked at
 *      for long. A task that stays holds its segments, which count as full
 *
 * One thread. */
#ifndef CTL_OPEN_TASKS_H
#define CTL_OPEN_TASKS_H

#include "entry.h"
#include "mix.h"

#define CTL_NIL          UINT32_MAX
#define CTL_OPEN_SEGMENT 1024u /* entries, 56 KiB: small beside what one batch brings */
#define CTL_OPEN_AHEAD   8u    /* entries: the write that comes after so many others is no miss */

#define CTL_OPEN_USED     0x01u
#define CTL_OPEN_LOOKED   0x02u /* COMPLETE and instruction hold; no report since */
#define CTL_OPEN_COMPLETE 0x04u
#define CTL_OPEN_COUNTS   0x08u /* neither orphan nor discarded */
#define CTL_OPEN_EVICTED  0x10u

typedef struct {
  uint8_t id[WEFT_TASK_ID_SIZE];
  uint32_t first; /* entry */
  uint32_t count;
  uint32_t next;    /* in its list of the wheel, or among the free ones */
  uint32_t touched; /* tick of the last report */
  uint32_t truncated;
  uint32_t instruction;
  uint32_t hash; /* of the id: the tag */
  uint32_t born; /* tick of the first report */
  uint8_t flags;
  uint8_t reserved[15];
} ctl_open_t;
_Static_assert(sizeof (ctl_open_t) == 64, "a task is one cache line");

typedef struct {
  uint32_t tag;
  uint32_t task; /* number + 1, 0: free */
} ctl_open_slot_t;

/* Read by its neighbours, changed by the functions below only (but for what a task says of itself). */
typedef struct {
  ctl_seed_t seed;
  ctl_open_slot_t *table;
  uint32_t mask;
  ctl_open_t *task;
  uint32_t task_max, made, open, free;
  ctl_entry_t *entry;
  uint32_t *live;         /* entries, by segment */
  uint32_t *segment_free; /* a stack of segments */
  uint32_t segment_max, segments_made, segments_free;
  uint32_t at, end; /* where the next entry goes; the end of its segment */
} ctl_open_tasks_t;

/* Room for at least entry_max entries. WEFT_E_NOMEM. */
int ctl_open_tasks_begin (ctl_open_tasks_t *self, uint32_t task_max, uint32_t entry_max);
/* Idempotent; also of what was zeroed only. */
void ctl_open_tasks_end (ctl_open_tasks_t *self);

static inline uint32_t ctl_open_tasks_hash (const ctl_open_tasks_t *self, const uint8_t id[WEFT_TASK_ID_SIZE])
{
  return (uint32_t) (ctl_mix_16 (&self->seed, id) >> 32);
}
/* What a look-up will touch, in the order in which it does: the slot, then what the slot tells of. The
 * second one returns the task that it will be, as far as the slot knows; CTL_NIL: a new one. */
static inline void ctl_open_tasks_fetch_slot (const ctl_open_tasks_t *self, uint32_t hash)
{
  __builtin_prefetch (&self->table[hash & self->mask], 1);
}
static inline uint32_t ctl_open_tasks_fetch_task (const ctl_open_tasks_t *self, uint32_t hash)
{
  for (uint32_t at = hash & self->mask; self->table[at].task; at = (at + 1) & self->mask)
    if (self->table[at].tag == hash) { /* that of the task almost always */
      uint32_t number = self->table[at].task - 1;
      __builtin_prefetch (&self->task[number], 1); /* all of its entry list's head, too */
      return number;
    }
  return CTL_NIL;
}
/* Whether this number (not CTL_NIL) is that task's. */
static inline int ctl_open_tasks_is (const ctl_open_tasks_t *self, uint32_t number,
                                     const uint8_t id[WEFT_TASK_ID_SIZE])
{
  const ctl_open_t *task = &self->task[number];
  uint64_t have[2], want[2];
  memcpy (have, task->id, sizeof have);
  memcpy (want, id, sizeof want);
  return ((have[0] ^ want[0]) | (have[1] ^ want[1])) == 0 && task->flags & CTL_OPEN_USED;
}
/* CTL_NIL: there is none. */
uint32_t ctl_open_tasks_find (const ctl_open_tasks_t *self, const uint8_t id[WEFT_TASK_ID_SIZE],
                              uint32_t hash);
/* *ret_made 1: it was not there; its ticks are 0. WEFT_E_FULL, WEFT_E_NOMEM. */
int ctl_open_tasks_take (ctl_open_tasks_t *self, const uint8_t id[WEFT_TASK_ID_SIZE], uint32_t hash,
                         uint32_t *ret_number, int *ret_made);
/* Begins another segment; WEFT_E_FULL. */
int ctl_open_tasks_next_segment (ctl_open_tasks_t *self);
/* Where the next CTL_ENTRY_LINES_MAX entries can be written; NULL: full. */
static inline ctl_entry_t *ctl_open_tasks_place (ctl_open_tasks_t *self)
{
  if (self->end - self->at < CTL_ENTRY_LINES_MAX && ctl_open_tasks_next_segment (self))
    return NULL;
  ctl_entry_t *place = &self->entry[self->at];
  __builtin_prefetch (place + CTL_OPEN_AHEAD, 1);
  return place;
}
/* Puts as many of them as were written before the task's others. */
static inline void ctl_open_tasks_add (ctl_open_tasks_t *self, ctl_open_t *task, uint32_t lines)
{
  self->live[(self->end - 1) / CTL_OPEN_SEGMENT] += lines;
  task->count += lines;
  for (; lines > 0; lines--) {
    self->entry[self->at].next = task->first;
    task->first = self->at++;
  }
}
#define CTL_OPEN_FETCH 16u
/* Fetches the entries of CTL_OPEN_FETCH tasks, of this one and those behind it by `next`. */
void ctl_open_tasks_fetch_entries (const ctl_open_tasks_t *self, uint32_t number);
/* Its entries' places are free, but what is in them stays until one is placed; regain: before that, they
 * are not. */
void ctl_open_tasks_drop (ctl_open_tasks_t *self, uint32_t number);
void ctl_open_tasks_regain (ctl_open_tasks_t *self, uint32_t number);
/* After its entries were dropped. */
void ctl_open_tasks_forget (ctl_open_tasks_t *self, uint32_t number);
/* Nothing is open: begins anew, and the memory of a burst goes back to the kernel. */
void ctl_open_tasks_give_back (ctl_open_tasks_t *self);
/* Bytes that hold what is open: tasks, entries, table. */
uint64_t ctl_open_tasks_bytes (const ctl_open_tasks_t *self);

#endif
