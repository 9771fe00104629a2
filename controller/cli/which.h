/* SPDX-License-Identifier: Apache-2.0 */
/* which: the options by which verbs name executions, as a request: `tasks`, `report`, `top`. */
#ifndef CTL_WHICH_H
#define CTL_WHICH_H

#include <jansson.h>

#include "verbs.h"

/* {"op": op, …} with what --since, --last, --name, --service, --slower, --errors, --instruction
 * and --limit say, as far as the verb has them. NULL: said on stderr, or out of memory. */
json_t *ctl_which (const ctl_call_t *call, const char *op, uint32_t limit);

#endif
