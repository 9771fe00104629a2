/* SPDX-License-Identifier: Apache-2.0 */
#include "roster.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/ids.h"
#include "../../common/log.h"
#include "../../common/status.h"
#include "../view/json.h"

json_t *ctl_roster_of_pids (char *const *words, int count)
{
  json_t *pids = json_array ();
  for (int n = 0; n < count; n++)
    json_array_append_new (pids, json_integer (strtoll (words[n], NULL, 10)));
  return json_pack ("{s:o}", "pids", pids);
}

int ctl_roster_read (ctl_client_t *client, json_t *which, ctl_roster_t *ret_roster)
{
  json_t *reply = NULL, *request = which ? which : json_object ();
  json_object_set_new (request, "op", json_string ("instances"));
  int rc = ctl_client_ask (client, request, NULL, NULL, &reply);
  if (rc < 0)
    return rc;
  ctl_roster_t roster = {.list = json_incref (json_object_get (reply, "instances"))};
  json_decref (reply);
  size_t count = json_array_size (roster.list);
  roster.instances = calloc (count + 1, sizeof *roster.instances);
  rc = roster.instances ? 0 : WEFT_E_NOMEM;
  for (size_t n = 0; rc == 0 && n < count; n++, roster.count++) {
    const json_t *one = json_array_get (roster.list, n);
    const char *boot = json_string_value (json_object_get (one, "boot"));
    rc = ctl_json_to_instance (one, &roster.instances[n]);
    if (rc == 0)
      rc = boot ? weft_uuid_get (roster.instances[n].boot, boot) : WEFT_E_MALFORMED;
  }
  if (rc < 0) {
    weft_log_error ("the controller's list of instances cannot be used: %s", weft_status_text (rc));
    ctl_roster_clear (&roster);
    return rc;
  }
  *ret_roster = roster;
  return 0;
}

void ctl_roster_clear (ctl_roster_t *roster)
{
  json_decref (roster->list);
  free (roster->instances);
  *roster = (ctl_roster_t){0};
}

const ctl_instance_t *ctl_roster_pid (const ctl_roster_t *roster, int64_t pid)
{
  uint8_t boot[WEFT_UUID_SIZE];
  int here = weft_boot_id (boot) == 0;
  for (uint32_t n = 0; n < roster->count; n++) {
    const ctl_instance_t *instance = &roster->instances[n];
    if (instance->pid == pid && instance->presence != CTL_INSTANCE_LEFT &&
        (!here || memcmp (instance->boot, boot, sizeof boot) == 0))
      return instance;
  }
  return NULL;
}

const ctl_instance_t *ctl_roster_uuid (const ctl_roster_t *roster, const uint8_t uuid[WEFT_UUID_SIZE])
{
  for (uint32_t n = 0; n < roster->count; n++)
    if (memcmp (roster->instances[n].uuid, uuid, WEFT_UUID_SIZE) == 0)
      return &roster->instances[n];
  return NULL;
}
