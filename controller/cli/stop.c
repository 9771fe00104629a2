/* SPDX-License-Identifier: Apache-2.0 */
/* weft stop: ends instructions, and waits until they are out of force. */
#include <stdlib.h>
#include <string.h>

#include "../../common/log.h"
#include "../view/json.h"
#include "client.h"
#include "orders.h"
#include "verbs.h"

static int read_number (const char *text, uint32_t *ret_number)
{
  char *end;
  unsigned long long number = strtoull (text, &end, 10);
  if (*text < '0' || *text > '9' || *end || number == 0 || number > UINT32_MAX || strlen (text) > 10) {
    weft_log_error ("bad instruction '%s': its number is meant; `weft ls` shows which are live", text);
    return -1;
  }
  *ret_number = (uint32_t) number;
  return 0;
}

static int stop_one (const ctl_call_t *call, ctl_client_t *client, uint32_t number)
{
  ctl_standing_counts_t counts = {0};
  int rc = ctl_order_stop (client, number);
  if (rc == 0)
    rc = ctl_order_await (client, number, WEFT_ACK_WAIT_MS, NULL, &counts);
  if (rc == 0 && ctl_call_has (call, "json"))
    rc = ctl_json_line (stdout,
                        json_pack ("{s:I, s:I, s:I}", "instruction", (json_int_t) number, "expected",
                                   (json_int_t) counts.expected, "stopped", (json_int_t) counts.active));
  else if (rc == 0)
    printf ("instruction %u stopped in %u of %u%s\n", number, counts.active, counts.expected,
            counts.active < counts.expected ? "; the others stop when their lease is over" : "");
  ctl_standing_clear (&counts);
  return rc;
}

int ctl_verb_stop (ctl_call_t *call)
{
  ctl_client_t *client = NULL;
  uint32_t number = 0;
  for (int n = 0; n < call->operand_count; n++)
    if (read_number (call->operands[n], &number) < 0)
      return CTL_EXIT_USAGE;
  if (ctl_client_open (call->address, CTL_CLIENT_EXISTING, &client) < 0)
    return CTL_EXIT_FAILED;
  int failed = 0;
  for (int n = 0; n < call->operand_count; n++) {
    read_number (call->operands[n], &number);
    failed |= stop_one (call, client, number) < 0;
  }
  ctl_client_close (&client);
  return failed ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
