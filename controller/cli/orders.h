/* SPDX-License-Identifier: Apache-2.0 */
/* orders: from --on, --root, --embed, --capture and what goes with them to
 * instructions, and from instructions to "active in 3 of 4".
 *
 *  Where an action is in force: where its own selectors and those of --on hold,
 *  either of which may be absent. Actions with the same places travel in one
 *  instruction. */
#ifndef CTL_ORDERS_H
#define CTL_ORDERS_H

#include <jansson.h>
#include <stdio.h>

#include "../../common/wire.h"
#include "client.h"
#include "verbs.h"

#define CTL_ORDERS_MAX 3 /* one an action at most */

typedef struct {
  weft_instruction_t order[CTL_ORDERS_MAX];
  uint32_t count;
} ctl_orders_t;

/* How far an instruction has come. */
typedef struct {
  uint32_t expected, active;
  json_t *silent; /* array of {uuid, pid, service}; owned */
} ctl_standing_counts_t;

/* Reads the options of the call, `on` (WEFT_SELECTORS_MAX texts at most) in place of --on if
 * on_count is not 0. `actions`: which ones are in force without being named; if none is named and
 * actions is 0, all are. WEFT_E_USAGE: said on stderr. Malloc'd. */
int ctl_orders_read (const ctl_call_t *call, const char (*on)[WEFT_SELECTOR_MAX], uint32_t on_count,
                     uint32_t actions, ctl_orders_t **ret_orders);
/* The part of the orders that has one of these actions, and these actions only. */
void ctl_orders_part (const ctl_orders_t *orders, uint32_t actions, ctl_orders_t *ret_part);

/* Sends one. *ret_number. Failures are said. */
int ctl_order_send (ctl_client_t *client, const weft_instruction_t *order, uint64_t for_ms,
                    uint32_t *ret_number);
int ctl_order_stop (ctl_client_t *client, uint32_t number);
/* Asks until every instance has acknowledged the instruction, or its end; at most timeout_ms, or
 * until *stop (may be NULL) is not 0. 0 also if some stay silent. Clear the counts. */
int ctl_order_await (ctl_client_t *client, uint32_t number, uint64_t timeout_ms, const volatile int *stop,
                     ctl_standing_counts_t *ret_counts);
void ctl_standing_clear (ctl_standing_counts_t *counts);
/* "active in 3 of 4, silent: orders (pid 4188)" */
void ctl_standing_print (FILE *out, const ctl_standing_counts_t *counts);
/* "root, embed" */
void ctl_actions_put (char *out, size_t size, uint32_t actions);
/* Sleeps; a signal cuts it short. */
void ctl_pause_ms (unsigned ms);

#endif
