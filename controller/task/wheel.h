/* SPDX-License-Identifier: Apache-2.0 */
/* wheel: when open tasks are due. CTL_WHEEL_SLOTS lists, by the tick at which a
 * task will have been quiet for long enough. One that was reported on since it was
 * put there is put back when its slot comes up, so a report never moves anything;
 * not if it is WEFT_TASK_AGE_MS old.
 *
 *          report              slot due, quiet            fn took it
 *   (none) ──────▶ in a slot ─────────────────▶ handed out ──────────▶ (none)
 *                   ▲    │ evict (too many)         ▲   │ fn failed, or
 *                   │    └──────────▶ evicted ──────┘   │ it is put back
 *                   └───────────────────────────────────┘ */
#ifndef CTL_WHEEL_H
#define CTL_WHEEL_H

#include "open_tasks.h"

#define CTL_WHEEL_SLOTS        64u
#define CTL_WHEEL_TICK_MS      64u
#define CTL_WHEEL_SETTLE_TICKS (WEFT_SETTLE_MS / CTL_WHEEL_TICK_MS + 1u)
#define CTL_WHEEL_AGE_TICKS    (WEFT_TASK_AGE_MS / CTL_WHEEL_TICK_MS + 1u)
_Static_assert(CTL_WHEEL_SLOTS > CTL_WHEEL_SETTLE_TICKS + 1u, "a task is due within one turn of the wheel");

typedef struct {
  ctl_open_tasks_t *tasks; /* borrowed */
  uint64_t began_ns;       /* CLOCK_MONOTONIC at tick 0 */
  uint32_t slot[CTL_WHEEL_SLOTS];
  uint32_t done; /* the last tick whose slot was emptied */
  uint32_t evicted, evicted_last, evicted_count;
  uint64_t evicted_bytes; /* about what their going will give back */
} ctl_wheel_t;

void ctl_wheel_begin (ctl_wheel_t *self, ctl_open_tasks_t *tasks);
uint32_t ctl_wheel_tick (const ctl_wheel_t *self, uint64_t now_ns);
void ctl_wheel_put (ctl_wheel_t *self, uint32_t number);
/* One that was handed out and held: it is due, or evicted, as it was. */
void ctl_wheel_put_back (ctl_wheel_t *self, uint32_t number);
/* Marks the task that was quiet longest for the next settling; 0: none is left. */
int ctl_wheel_evict (ctl_wheel_t *self);

#define CTL_WHEEL_HELD 1
/* Hands a task out: 0: it is forgotten; CTL_WHEEL_HELD: the caller holds it and will put it back, or
 * forget it; else it is as before. */
typedef int (ctl_wheel_fn) (uint32_t number, void *arg);
/* Every task that is evicted or due at now_ns, or `all`. Stops with fn's failure: then that task and
 * those behind it are as before. */
int ctl_wheel_settle (ctl_wheel_t *self, uint64_t now_ns, int all, ctl_wheel_fn *fn, void *arg);

#endif
