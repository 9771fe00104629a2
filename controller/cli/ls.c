/* SPDX-License-Identifier: Apache-2.0 */
/* weft ls: the instances. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../common/status.h"
#include "../view/csv.h"
#include "../view/json.h"
#include "../view/table.h"
#include "client.h"
#include "roster.h"
#include "standing.h"
#include "verbs.h"

static int print (const ctl_call_t *call, const ctl_roster_t *roster)
{
  const ctl_instance_t **shown = calloc (roster->count + 1, sizeof (void *));
  if (!shown)
    return WEFT_E_NOMEM;
  int json = ctl_call_has (call, "json"), rc = 0;
  uint32_t count = 0;
  for (; rc == 0 && count < roster->count; count++) {
    shown[count] = &roster->instances[count];
    if (json)
      rc = ctl_json_line (stdout, json_incref (json_array_get (roster->list, count)));
  }
  ctl_style_t style;
  ctl_style_detect (STDOUT_FILENO, &style);
  if (!json && ctl_call_has (call, "csv"))
    rc = ctl_csv_instances (stdout, shown, count);
  else if (!json && count)
    rc = ctl_call_has (call, "losses") ? ctl_table_losses (stdout, &style, shown, count)
                                       : ctl_table_instances (stdout, &style, shown, count);
  else if (!json)
    printf ("no instances; `weft profile` lists what could be joined\n");
  free (shown);
  return rc;
}

/* One object an interval in which something was lost, or an instance whose tail is unknown. */
static int print_intervals (ctl_client_t *client)
{
  json_t *reply = NULL;
  int rc = ctl_client_ask (client, json_pack ("{s:s}", "op", "losses"), NULL, NULL, &reply);
  const json_t *list = json_object_get (reply, "intervals");
  for (size_t n = 0; rc == 0 && n < json_array_size (list); n++)
    rc = ctl_json_line (stdout, json_incref (json_array_get (list, n)));
  json_decref (reply);
  return rc;
}

static int list_instructions (ctl_client_t *client)
{
  ctl_style_t style;
  ctl_style_detect (STDOUT_FILENO, &style);
  return ctl_standing_list (stdout, &style, client);
}

/* What goes on to a collector, if the controller was told to send it. */
static int print_exporter (ctl_client_t *client)
{
  json_t *reply = NULL;
  int rc = ctl_client_ask (client, json_pack ("{s:s}", "op", "stats"), NULL, NULL, &reply);
  json_t *otlp = json_object_get (reply, "otlp");
  const char *url = NULL, *why = "";
  json_int_t sent = 0, rejected = 0, given_up = 0, waiting = 0;
  if (json_unpack (otlp, "{s:s, s:I, s:I, s:I, s:I, s:s}", "url", &url, "sent", &sent, "rejected", &rejected,
                   "given_up", &given_up, "waiting", &waiting, "why", &why) == 0)
    printf ("otlp %s: %lld sent, %lld rejected, %lld given up, %lld waiting%s%s\n", url, (long long) sent,
            (long long) rejected, (long long) given_up, (long long) waiting, *why ? "; last trouble: " : "",
            why);
  json_decref (reply);
  return rc;
}

int ctl_verb_ls (ctl_call_t *call)
{
  ctl_client_t *client = NULL;
  ctl_roster_t roster = {0};
  if (ctl_client_open (call->address, CTL_CLIENT_STORE, &client) < 0)
    return CTL_EXIT_FAILED;
  int rc;
  if (ctl_call_has (call, "losses") && ctl_call_has (call, "json")) {
    rc = print_intervals (client);
  } else {
    int all = ctl_call_has (call, "all");
    rc = ctl_roster_read (client, all ? NULL : json_pack ("{s:b}", "notable", 1), &roster);
    if (rc == 0)
      rc = print (call, &roster);
    if (rc == 0 && !ctl_call_has (call, "json") && !ctl_call_has (call, "csv"))
      rc = list_instructions (client);
    if (rc == 0 && !ctl_call_has (call, "json") && !ctl_call_has (call, "csv"))
      rc = print_exporter (client);
  }
  ctl_roster_clear (&roster);
  ctl_client_close (&client);
  return rc < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
