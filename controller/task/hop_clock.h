/* SPDX-License-Identifier: Apache-2.0 */
/* hop_clock: how far the clocks of two hosts are apart, by the requests between
 * them. A request is not received before it is sent, nor its answer:
 *
 *   caller's clock   sent ───────────────── answered
 *                      ╲ there              ╱
 *   callee's clock      start ─────────── end
 *
 * so that the offset (callee's minus caller's clock) is start - sent at most, and start
 * - answered at least. A callee looks at the clock when it has written its answer, and
 * may be held up before it does: end - answered is near the offset, but no bound of it.
 * The lowest of many say most: of each pair of hosts they are kept for each bucket of a
 * window, and a drift that all of them allow carries them to another time.
 *
 *  H1  all times of one host are shifted by the same amount: no duration changes, and
 *      a subtree on that host moves as a whole
 *  H2  raw time = time - shift_ns; what the sender said has the shift of its host
 *  H3  what is taken for the offset lies within the bounds, near where the ends of the
 *      callees put it; the uncertainty covers every offset that the bounds allow, over
 *      all hops between a host and that of the top
 *  H4  an execution is aligned whole or not at all
 *
 * One thread. */
#ifndef CTL_HOP_CLOCK_H
#define CTL_HOP_CLOCK_H

#include "task.h"

typedef struct ctl_hop_clock_t ctl_hop_clock_t;

ctl_hop_clock_t *ctl_hop_clock_new (void);
void ctl_hop_clock_destroy (ctl_hop_clock_t **self_p);
/* Takes in what the hops of an execution say; its times are raw. */
void ctl_hop_clock_learn (ctl_hop_clock_t *self, const ctl_execution_t *execution);
/* Shifts the raw times of an execution to the clock of its top's host, by what is known (self may be NULL)
 * and by its own hops. Left as it is where a host cannot be reached. 0 or WEFT_E_NOMEM. */
int ctl_hop_clock_align (const ctl_hop_clock_t *self, ctl_execution_t *execution);
/* The reverse. */
void ctl_hop_clock_restore (ctl_execution_t *execution);

#endif
