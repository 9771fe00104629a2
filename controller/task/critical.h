/* SPDX-License-Identifier: Apache-2.0 */
/* critical: what an execution had to wait for, to the nanosecond.
 *
 * From the end of the top back to its start: of the calls that ended by then, the one
 * that ended last is what its caller waited for; what lies between it and the point is
 * the caller's own. From where that call began it goes on, and within the callee likewise.
 *
 *  K1  the parts of all subtasks are disjoint; their sum is the duration of the top
 *  K2  what is not on the path has no part: a call in parallel that ended earlier,
 *      one that outlived its caller, what hangs on no caller
 *  K3  no clock makes a part negative: what two clocks disagree about is network */
#ifndef CTL_CRITICAL_H
#define CTL_CRITICAL_H

#include "task.h"

/* Of one subtask. */
typedef struct {
  uint64_t self_ns;           /* in itself; of an opaque leaf: its share of what its caller waited */
  uint64_t there_ns, back_ns; /* from its caller to it, and from it to its caller */
  uint64_t gap_ns;            /* between a failed call and this one, the same again: its caller's patience */
} ctl_critical_t;

/* Had no regular answer, or one that asks to come again. */
int ctl_subtask_failed (const ctl_subtask_t *subtask);

/* parts: one for each subtask of a settled execution. 0 or WEFT_E_NOMEM. */
int ctl_critical (const ctl_execution_t *execution, ctl_critical_t *parts);

#endif
