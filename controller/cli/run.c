/* SPDX-License-Identifier: Apache-2.0 */
/* weft run: starts a process VM under weft. This process becomes it. */
#include "client.h"
#include "sidecar.h"
#include "verbs.h"

int ctl_verb_run (ctl_call_t *call)
{
  ctl_client_t *client = NULL;
  if (ctl_client_open (call->address, CTL_CLIENT_START, &client) < 0)
    return CTL_EXIT_FAILED;
  ctl_client_close (&client);
  ctl_words_t words;
  ctl_words_begin (&words, call, "run");
  const char *service = ctl_call_value (call, "service", NULL);
  int rc = 0;
  if (service) {
    rc = ctl_words_add (&words, "--service");
    rc = rc ? rc : ctl_words_add (&words, service);
  }
  rc = rc ? rc : ctl_words_add (&words, "--");
  for (int n = 0; rc == 0 && n < call->operand_count; n++)
    rc = ctl_words_add (&words, call->operands[n]);
  return rc ? CTL_EXIT_USAGE : ctl_sidecar_exec (&words);
}
