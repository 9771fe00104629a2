/* SPDX-License-Identifier: Apache-2.0 */
/* weft show: one execution as a waterfall. */
#include <stdio.h>
#include <unistd.h>

#include "../../common/status.h"
#include "../task/pack.h"
#include "../view/csv.h"
#include "../view/json.h"
#include "../view/waterfall.h"
#include "client.h"
#include "verbs.h"

static int print (const void *data, size_t size, void *arg)
{
  const ctl_call_t *call = arg;
  ctl_execution_t *execution = NULL;
  int rc = ctl_execution_unpack (data, size, &execution);
  if (rc < 0)
    return rc;
  ctl_style_t style;
  ctl_style_detect (STDOUT_FILENO, &style);
  if (ctl_call_has (call, "json"))
    rc = ctl_json_line (stdout, ctl_json_execution (execution));
  else if (ctl_call_has (call, "csv"))
    rc = ctl_csv_execution (stdout, execution);
  else
    rc = ctl_waterfall (stdout, &style, execution, ctl_call_has (call, "full"));
  ctl_execution_destroy (&execution);
  return rc;
}

int ctl_verb_show (ctl_call_t *call)
{
  ctl_client_t *client = NULL;
  if (ctl_client_open (call->address, CTL_CLIENT_STORE, &client) < 0)
    return CTL_EXIT_FAILED;
  int rc = ctl_client_ask (client, json_pack ("{s:s, s:s}", "op", "show", "task", call->operands[0]), print,
                           call, NULL);
  ctl_client_close (&client);
  return rc < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
