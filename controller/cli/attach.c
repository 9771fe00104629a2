/* SPDX-License-Identifier: Apache-2.0 */
/* weft attach: joins running process VMs. */
#include <stdio.h>
#include <stdlib.h>

#include "../../common/ids.h"
#include "../../common/log.h"
#include "candidates.h"
#include "client.h"
#include "roster.h"
#include "sidecar.h"
#include "verbs.h"

/* All that can be joined and is not; their texts live in `room`. */
static int add_all (ctl_words_t *words, char (*room)[16], int *ret_count)
{
  json_t *list = NULL;
  int rc = ctl_candidates_read (&list);
  for (size_t n = 0; rc == 0 && n < json_array_size (list); n++) {
    const json_t *one = json_array_get (list, n);
    if (!ctl_candidate_joinable (one) || json_is_true (json_object_get (one, "joined")))
      continue;
    snprintf (room[*ret_count], sizeof *room, "%lld", (long long) ctl_candidate_pid (one));
    rc = ctl_words_add (words, room[*ret_count]);
    ++*ret_count;
  }
  json_decref (list);
  return rc;
}

/* What a profile joined and would leave stays from now on. */
static void keep (const ctl_call_t *call, ctl_client_t *client)
{
  ctl_roster_t roster = {0};
  json_t *uuids = json_array ();
  if (call->operand_count &&
      ctl_roster_read (client, ctl_roster_of_pids (call->operands, call->operand_count), &roster) == 0)
    for (int n = 0; n < call->operand_count; n++) {
      const ctl_instance_t *instance = ctl_roster_pid (&roster, strtoll (call->operands[n], NULL, 10));
      char uuid[37];
      if (!instance)
        continue;
      weft_uuid_put (uuid, instance->uuid);
      json_array_append_new (uuids, json_string (uuid));
    }
  ctl_roster_clear (&roster);
  if (json_array_size (uuids))
    ctl_client_ask (client, json_pack ("{s:s, s:O}", "op", "keep", "uuids", uuids), NULL, NULL, NULL);
  json_decref (uuids);
}

static int add_pids (const ctl_call_t *call, ctl_words_t *words)
{
  for (int n = 0; n < call->operand_count; n++) {
    int64_t pid;
    if (ctl_call_pid (call->operands[n], &pid) < 0 || ctl_words_add (words, call->operands[n]) < 0)
      return CTL_EXIT_USAGE;
  }
  return CTL_EXIT_OK;
}

int ctl_verb_attach (ctl_call_t *call)
{
  static char room[CTL_SIDECAR_WORDS_MAX + 1][16];
  ctl_words_t words;
  const char *service = ctl_call_value (call, "service", NULL);
  int all = ctl_call_has (call, "all"), count = 0;
  if ((call->operand_count == 0) == !all) {
    weft_log_error ("attach: give PIDs, or --all; `weft profile` lists what could be joined");
    return CTL_EXIT_USAGE;
  }
  ctl_words_begin (&words, call, "attach");
  if (service) {
    ctl_words_add (&words, "--service");
    ctl_words_add (&words, service);
  }
  if (ctl_call_has (call, "any"))
    ctl_words_add (&words, "--any");
  if (ctl_call_has (call, "json"))
    ctl_words_add (&words, "--json");
  if (!all && add_pids (call, &words) != CTL_EXIT_OK)
    return CTL_EXIT_USAGE;
  ctl_client_t *client = NULL;
  if ((all && add_all (&words, room, &count) < 0) ||
      ctl_client_open (call->address, CTL_CLIENT_START, &client) < 0)
    return CTL_EXIT_FAILED;
  keep (call, client);
  ctl_client_close (&client);
  if (all && count == 0) {
    weft_log_error ("nothing to join: no process VM here that can be and is not; `weft profile` lists them");
    return CTL_EXIT_FAILED;
  }
  return ctl_sidecar_exec (&words);
}
