/* SPDX-License-Identifier: Apache-2.0 */
/* weft detach: leaves process VMs, and verifies that they are as before. */
#include <stdio.h>

#include "../../common/ids.h"
#include "../../common/log.h"
#include "../view/json.h"
#include "client.h"
#include "leave.h"
#include "roster.h"
#include "standing.h"
#include "verbs.h"

static void add (json_t *uuids, const ctl_instance_t *instance)
{
  char text[37];
  weft_uuid_put (text, instance->uuid);
  json_array_append_new (uuids, json_string (text));
}

/* The number of pids that are no instance. */
static int choose (const ctl_call_t *call, const ctl_roster_t *roster, json_t *uuids)
{
  int missing = 0;
  for (uint32_t n = 0; ctl_call_has (call, "all") && n < roster->count; n++)
    if (roster->instances[n].presence != CTL_INSTANCE_LEFT)
      add (uuids, &roster->instances[n]);
  for (int n = 0; n < call->operand_count; n++) {
    int64_t pid = 0;
    ctl_call_pid (call->operands[n], &pid);
    const ctl_instance_t *instance = ctl_roster_pid (roster, pid);
    if (instance) {
      add (uuids, instance);
    } else {
      missing++;
      weft_log_error ("cannot leave %lld: no instance of weft is there; `weft ls` lists them",
                      (long long) pid);
    }
  }
  return missing;
}

static int print (const ctl_call_t *call, const ctl_leave_t *leave)
{
  if (!ctl_call_has (call, "json")) {
    ctl_leave_print (stdout, leave);
    return 0;
  }
  return ctl_json_line (stdout,
                        json_pack ("{s:i, s:i, s:b, s:i, s:i, s:i, s:i}", "asked", (int) leave->asked, "left",
                                   (int) leave->left, "verified", ctl_leave_verified (leave), "slots_written",
                                   (int) leave->slots_written, "slots_restored", (int) leave->slots_restored,
                                   "slots_foreign", (int) leave->slots_foreign, "threads_left",
                                   (int) leave->threads_left));
}

int ctl_verb_detach (ctl_call_t *call)
{
  int64_t pid;
  for (int n = 0; n < call->operand_count; n++)
    if (ctl_call_pid (call->operands[n], &pid) < 0)
      return CTL_EXIT_USAGE;
  if ((call->operand_count == 0) == !ctl_call_has (call, "all")) {
    weft_log_error ("detach: give PIDs, or --all; `weft ls` lists the instances");
    return CTL_EXIT_USAGE;
  }
  ctl_client_t *client = NULL;
  ctl_roster_t roster = {0};
  ctl_leave_t leave = {0};
  json_t *uuids = json_array ();
  int missing = 0;
  int rc = ctl_client_open (call->address, CTL_CLIENT_EXISTING, &client);
  if (rc == 0)
    rc = ctl_roster_read (client,
                          ctl_call_has (call, "all")
                              ? json_pack ("{s:b}", "present", 1)
                              : ctl_roster_of_pids (call->operands, call->operand_count),
                          &roster);
  if (rc == 0)
    missing = choose (call, &roster, uuids);
  int asked = json_array_size (uuids) > 0;
  if (rc == 0 && !asked && !missing)
    printf ("no instances to leave\n");
  if (rc == 0 && asked)
    rc = ctl_leave (client, uuids, NULL, &leave);
  if (rc == 0 && asked)
    rc = print (call, &leave);
  if (rc == 0 && asked && ctl_call_has (call, "all"))
    ctl_standing_remind (stderr, client);
  json_decref (uuids);
  ctl_roster_clear (&roster);
  ctl_client_close (&client);
  return rc < 0 || missing || !ctl_leave_verified (&leave) ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
