/* SPDX-License-Identifier: Apache-2.0 */
/* links: what a tree cannot show of an execution. A request that was captured
 * twice (a retry, a mirror) or sent on under one id by two subtasks: each of them
 * names the others. Derived from the subtasks alone. */
#ifndef CTL_LINKS_H
#define CTL_LINKS_H

#include "task.h"

#define CTL_LINKS_MAX 8u /* of one subtask; of more the first ones, by place in the tree */

typedef enum {
  CTL_LINK_SAME_REQUEST, /* came with the same request id */
  CTL_LINK_CALLER        /* sent a request of the same id, and may have called it */
} ctl_link_kind_t;
const char *ctl_link_text (ctl_link_kind_t kind);

typedef struct {
  uint64_t subtask;
  ctl_link_kind_t kind;
} ctl_link_t;

typedef struct ctl_links_t ctl_links_t;

/* Borrows the execution. NULL: out of memory. */
ctl_links_t *ctl_links_new (const ctl_execution_t *execution);
void ctl_links_destroy (ctl_links_t **self_p);
/* Those of one subtask; how many. */
uint32_t ctl_links_of (const ctl_links_t *self, uint32_t index, ctl_link_t ret_links[CTL_LINKS_MAX]);

#endif
