/* SPDX-License-Identifier: Apache-2.0 */
/* behind: who waits before a callee because those who have its threads wait for something further on.
 * The queue is where the threads are few, its reason is where they are kept: that time is told as what they
 * wait for.
 *
 *  B1  the waiting and the keeping are of executions of one task name on one clock, and seen: who had the callee's
 *      threads meanwhile were, for half of the time or more, such as took half of that wait longer than usual with
 *      something that another service does for them, beyond its spread; one of them for half of the wait
 *  B2  a chain of such callees is followed to its end
 *
 * One thread, no I/O. */
#ifndef CTL_BEHIND_H
#define CTL_BEHIND_H

#include "crowd.h"

#define CTL_BEHIND_CALLEES 16u /* before which most is waited are looked at */

/* ns of one execution that `waits` (a trait) has lost to `reason`. 0: none. */
typedef struct {
  double ns;
  uint32_t waits, reason;
} ctl_behind_t;

/* Moves the values of both crowds: an even sample of `complete` executions, sorted by duration, and the slowest of
 * these. usual: means. ret_behind: one for each of the slowest. 0 or WEFT_E_NOMEM. */
int ctl_behind (const ctl_traits_t *traits, ctl_crowd_t *all, ctl_crowd_t *slowest, const double *usual,
                uint64_t complete, ctl_behind_t *ret_behind);

#endif
