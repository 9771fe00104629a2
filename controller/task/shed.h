/* SPDX-License-Identifier: Apache-2.0 */
/* shed: which tasks an overloaded controller does without. Whole ones, by their
 * id: every copy of a task meets the same fate, whichever instance sends it.
 *
 *  X1  a task is kept if its place (a hash of the id) is below the threshold when
 *      its first copy comes; what is open stays open
 *  X2  what was shed stays shed: ids are remembered for at least
 *      WEFT_SHED_MEMORY_MS, and the threshold does not rise while that cannot be kept
 * One thread, no clock of its own. */
#ifndef CTL_SHED_H
#define CTL_SHED_H

#include <stdint.h>

#include "../../common/limits.h"

#define CTL_SHED_NOTHING 65536u /* the threshold below which everything lies */

typedef struct ctl_shed_t ctl_shed_t;

ctl_shed_t *ctl_shed_new (void);
void ctl_shed_destroy (ctl_shed_t **self_p);
/* 1: something may be shed now; 0: nobody need ask. */
int ctl_shed_active (const ctl_shed_t *self);
/* 1: this copy of the task is shed. `open`: another copy was kept and is still there. */
int ctl_shed_holds (ctl_shed_t *self, const uint8_t task[WEFT_TASK_ID_SIZE], int open);
/* Time passes, CLOCK_MONOTONIC; at least once a second while active. */
void ctl_shed_tick (ctl_shed_t *self, uint64_t now_ns);
/* Sets the threshold, 0 to CTL_SHED_NOTHING, at the time of the last tick. What X2 forbids is not
 * done: the threshold that holds is returned. */
uint32_t ctl_shed_keep (ctl_shed_t *self, uint32_t threshold);
/* Copies that were shed, ever. */
uint64_t ctl_shed_count (const ctl_shed_t *self);
uint32_t ctl_shed_threshold (const ctl_shed_t *self);

#endif
