/* SPDX-License-Identifier: Apache-2.0 */
/* overload: when the controller sheds, and how much (task/shed.h says what).
 *
 *   overloaded   the tasks in memory are three quarters of what may be, or batches had to
 *                be put off, or the report socket has not been found empty for
 *                WEFT_SHED_BACKLOG_MS: spools are filling up, and what a full spool
 *                drops tears holes into trees
 *   at ease      none of that, and less than half of the tasks that may be
 *
 * Overloaded, a quarter of what is kept is shed more at each look; at ease, a quarter is kept more,
 * once a second at most. One thread. */
#ifndef CTL_OVERLOAD_H
#define CTL_OVERLOAD_H

#include <stdint.h>

#include "../task/shed.h"

/* All zero before use. */
typedef struct {
  uint64_t backlog_since_ns; /* 0: the socket was empty lately */
  uint64_t deferred;         /* batches, when last looked */
  uint64_t raised_ns;
} ctl_overload_t;

/* After a look at the report socket: more = it may hold more. */
void ctl_overload_backlog (ctl_overload_t *self, int more, uint64_t now_ns);
/* Every half a second or so. `open`, `open_max`: tasks in memory; deferred: batches put off, ever.
 * The threshold that holds now. */
uint32_t ctl_overload_look (ctl_overload_t *self, ctl_shed_t *shed, uint64_t open, uint64_t open_max,
                            uint64_t deferred, uint64_t now_ns);

#endif
