/* SPDX-License-Identifier: Apache-2.0 */
/* scope: --embed-to, --match-header and --exclude: whom an instruction may embed
 * to, and which requests start no task under it. */
#ifndef CTL_SCOPE_H
#define CTL_SCOPE_H

#include <jansson.h>

#include "../../common/wire.h"
#include "verbs.h"

/* Into an order that has its `match` already. WEFT_E_USAGE: said on stderr. */
int ctl_scope_read (const ctl_call_t *call, weft_instruction_t *order);
/* Adds it to the request that carries the order to the controller. */
void ctl_scope_put (json_t *request, const weft_instruction_t *order);

#endif
