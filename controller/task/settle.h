/* SPDX-License-Identifier: Apache-2.0 */
/* settle: ctl_execution_settle (task.h) in its two parts, for who makes many executions one after the
 * other: what it works in is used again. */
#ifndef CTL_SETTLE_H
#define CTL_SETTLE_H

#include "room.h"
#include "task.h"

/* All but self times and critical path. Takes self->count subtasks from `raw`, in any order; they may be
 * changed and stay the caller's. self->subtasks is overwritten with new ones; those in `own`, which is
 * empty then. 0 or WEFT_E_NOMEM (then self is as before). */
int ctl_execution_order (ctl_execution_t *self, ctl_subtask_t *raw, ctl_room_t *room, ctl_room_t *own);

/* Self times and critical path of what is in order: what is looked at, not stored. 0 or WEFT_E_NOMEM. */
int ctl_execution_time (ctl_execution_t *self, ctl_room_t *room);

#endif
