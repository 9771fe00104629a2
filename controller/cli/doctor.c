/* SPDX-License-Identifier: Apache-2.0 */
/* weft doctor: what joining would come across. Asks no controller. */
#include "sidecar.h"
#include "verbs.h"

int ctl_verb_doctor (ctl_call_t *call)
{
  ctl_words_t words = {.word = {"weft-instance", "doctor"}, .count = 2};
  if (ctl_call_has (call, "json"))
    ctl_words_add (&words, "--json");
  if (ctl_call_has (call, "any"))
    ctl_words_add (&words, "--any");
  for (int n = 0; n < call->operand_count; n++) {
    int64_t pid;
    if (ctl_call_pid (call->operands[n], &pid) < 0 || ctl_words_add (&words, call->operands[n]) < 0)
      return CTL_EXIT_USAGE;
  }
  return ctl_sidecar_exec (&words);
}
