/* SPDX-License-Identifier: Apache-2.0 */
/* weft instruct: broadcasts long-lived instructions. */
#include <stdlib.h>

#include "../../common/status.h"
#include "../view/json.h"
#include "client.h"
#include "orders.h"
#include "verbs.h"

static int print (const ctl_call_t *call, const weft_instruction_t *order, uint32_t number,
                  const ctl_standing_counts_t *counts)
{
  char actions[40];
  ctl_actions_put (actions, sizeof actions, order->actions);
  if (!ctl_call_has (call, "json")) {
    printf ("instruction %u (%s) ", number, actions);
    ctl_standing_print (stdout, counts);
    printf (counts->expected ? "\n" : ": no instance is there yet that it selects\n");
    return 0;
  }
  return ctl_json_line (stdout, json_pack ("{s:I, s:s, s:I, s:I, s:O}", "instruction", (json_int_t) number,
                                           "actions", actions, "expected", (json_int_t) counts->expected,
                                           "active", (json_int_t) counts->active, "silent", counts->silent));
}

/* All are sent before any is waited for. */
static int send_all (const ctl_call_t *call, ctl_client_t *client, const ctl_orders_t *orders,
                     uint64_t for_ms)
{
  uint32_t number[CTL_ORDERS_MAX];
  int rc = 0;
  for (uint32_t n = 0; rc == 0 && n < orders->count; n++)
    rc = ctl_order_send (client, &orders->order[n], for_ms, &number[n]);
  for (uint32_t n = 0; rc == 0 && n < orders->count; n++) {
    ctl_standing_counts_t counts = {0};
    rc = ctl_order_await (client, number[n], WEFT_ACK_WAIT_MS, NULL, &counts);
    if (rc == 0)
      rc = print (call, &orders->order[n], number[n], &counts);
    ctl_standing_clear (&counts);
  }
  return rc;
}

int ctl_verb_instruct (ctl_call_t *call)
{
  ctl_orders_t *orders = NULL;
  ctl_client_t *client = NULL;
  uint64_t for_ms = 0;
  if (ctl_orders_read (call, NULL, 0, 0, &orders) < 0)
    return CTL_EXIT_USAGE;
  int code = CTL_EXIT_USAGE;
  if (ctl_call_duration (call, "for", WEFT_FOR_MAX_MS, 0, &for_ms) == 0) {
    int rc = ctl_client_open (call->address, CTL_CLIENT_START, &client);
    if (rc == 0)
      rc = send_all (call, client, orders, for_ms);
    code = rc < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
  }
  ctl_client_close (&client);
  free (orders);
  return code;
}
