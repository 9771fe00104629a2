/* SPDX-License-Identifier: Apache-2.0 */
#include "wheel.h"

#include "../../common/clocks.h"

void ctl_wheel_begin (ctl_wheel_t *self, ctl_open_tasks_t *tasks)
{
  *self = (ctl_wheel_t){.tasks = tasks, .began_ns = weft_mono_ns ()};
  self->evicted = self->evicted_last = CTL_NIL;
  for (uint32_t i = 0; i < CTL_WHEEL_SLOTS; i++)
    self->slot[i] = CTL_NIL;
}

uint32_t ctl_wheel_tick (const ctl_wheel_t *self, uint64_t now_ns)
{
  return now_ns <= self->began_ns
             ? 0
             : (uint32_t) ((now_ns - self->began_ns) / (CTL_WHEEL_TICK_MS * WEFT_NS_PER_MS));
}

static uint32_t due_tick (const ctl_wheel_t *self, uint32_t number)
{
  uint32_t due = self->tasks->task[number].touched + CTL_WHEEL_SETTLE_TICKS;
  return due > self->done ? due : self->done + 1;
}

void ctl_wheel_put (ctl_wheel_t *self, uint32_t number)
{
  uint32_t at = due_tick (self, number) % CTL_WHEEL_SLOTS;
  self->tasks->task[number].next = self->slot[at];
  self->slot[at] = number;
}

static uint64_t bytes_of (const ctl_open_t *task)
{
  return sizeof *task + (uint64_t) task->count * sizeof (ctl_entry_t);
}

void ctl_wheel_put_back (ctl_wheel_t *self, uint32_t number)
{
  ctl_open_t *task = &self->tasks->task[number];
  if (!(task->flags & CTL_OPEN_EVICTED)) {
    ctl_wheel_put (self, number);
    return;
  }
  task->next = self->evicted;
  if (self->evicted == CTL_NIL)
    self->evicted_last = number;
  self->evicted = number;
  self->evicted_count++;
  self->evicted_bytes += bytes_of (task);
}

int ctl_wheel_evict (ctl_wheel_t *self)
{
  ctl_open_t *task = self->tasks->task;
  for (uint32_t i = 1; i <= CTL_WHEEL_SLOTS;) {
    uint32_t at = (self->done + i) % CTL_WHEEL_SLOTS, number = self->slot[at];
    if (number == CTL_NIL) {
      i++;
      continue;
    }
    self->slot[at] = task[number].next;
    if (due_tick (self, number) % CTL_WHEEL_SLOTS != at) {
      ctl_wheel_put (self, number); /* was reported on since */
      continue;
    }
    task[number].next = CTL_NIL;
    task[number].flags |= CTL_OPEN_EVICTED;
    if (self->evicted == CTL_NIL)
      self->evicted = number;
    else
      task[self->evicted_last].next = number;
    self->evicted_last = number;
    self->evicted_count++;
    self->evicted_bytes += bytes_of (&task[number]);
    return 1;
  }
  return 0;
}

static int settle_evicted (ctl_wheel_t *self, ctl_wheel_fn *fn, void *arg)
{
  for (uint32_t n = 0; self->evicted != CTL_NIL; n++) {
    if (n % CTL_OPEN_FETCH == 0)
      ctl_open_tasks_fetch_entries (self->tasks, self->evicted);
    uint32_t next = self->tasks->task[self->evicted].next;
    uint64_t bytes = bytes_of (&self->tasks->task[self->evicted]); /* it may have grown since */
    int rc = fn (self->evicted, arg);
    if (rc && rc != CTL_WHEEL_HELD)
      return rc;
    self->evicted = next;
    self->evicted_count--;
    self->evicted_bytes -= bytes < self->evicted_bytes ? bytes : self->evicted_bytes;
  }
  self->evicted_bytes = 0;
  return 0;
}

static int is_due (const ctl_open_t *task, uint32_t now)
{
  return task->touched + CTL_WHEEL_SETTLE_TICKS <= now || task->born + CTL_WHEEL_AGE_TICKS <= now;
}

/* Empties one list; what is not due yet goes to its own slot. On failure the rest stays. */
static int settle_slot (ctl_wheel_t *self, uint32_t at, uint32_t now, int all, ctl_wheel_fn *fn, void *arg)
{
  ctl_open_t *task = self->tasks->task;
  uint32_t list = self->slot[at];
  self->slot[at] = CTL_NIL;
  for (uint32_t n = 0; list != CTL_NIL; n++) {
    uint32_t number = list;
    if (n % CTL_OPEN_FETCH == 0)
      ctl_open_tasks_fetch_entries (self->tasks, number);
    list = task[number].next;
    int rc = 0;
    if (all || is_due (&task[number], now))
      rc = fn (number, arg);
    else
      ctl_wheel_put (self, number);
    if (rc == 0 || rc == CTL_WHEEL_HELD)
      continue;
    task[number].next = list;
    uint32_t last = number;
    while (task[last].next != CTL_NIL)
      last = task[last].next;
    task[last].next = self->slot[at];
    self->slot[at] = number;
    return rc;
  }
  return 0;
}

int ctl_wheel_settle (ctl_wheel_t *self, uint64_t now_ns, int all, ctl_wheel_fn *fn, void *arg)
{
  uint32_t now = ctl_wheel_tick (self, now_ns);
  int rc = settle_evicted (self, fn, arg);
  for (uint32_t i = 0; i < CTL_WHEEL_SLOTS && rc == 0 && all; i++)
    rc = settle_slot (self, i, now, 1, fn, arg);
  for (uint32_t turn = 0; !all && self->done < now && rc == 0; turn++) {
    if (turn == CTL_WHEEL_SLOTS) {
      self->done = now; /* every list was seen once: nothing older is left */
      break;
    }
    rc = settle_slot (self, (self->done + 1) % CTL_WHEEL_SLOTS, now, 0, fn, arg);
    if (rc == 0)
      self->done++;
  }
  return rc;
}
