/* SPDX-License-Identifier: Apache-2.0 */
/* weft controller: runs the controller. */
#include "../../common/log.h"
#include "../service/service.h"
#include "verbs.h"

int ctl_verb_controller (ctl_call_t *call)
{
  ctl_service_options_t options = {.listen = ctl_call_value (call, "listen", NULL),
                                   .journal = ctl_call_value (call, "journal", NULL),
                                   .store = ctl_call_value (call, "store", NULL),
                                   .keys = call->keys,
                                   .otlp = ctl_call_value (call, "otlp", NULL),
                                   .plain_tcp = ctl_call_has (call, "plain-tcp"),
                                   .background = ctl_call_has (call, "background")};
  if (ctl_call_duration (call, "idle-exit", WEFT_FOR_MAX_MS, 0, &options.idle_exit_ms) < 0)
    return CTL_EXIT_USAGE;
  if (ctl_call_duration (call, "journal-age", WEFT_JOURNAL_AGE_MOST_MS, WEFT_JOURNAL_AGE_MS,
                         &options.journal_age_ms) < 0 ||
      ctl_call_size (call, "journal-max", WEFT_JOURNAL_MAX_LEAST, WEFT_JOURNAL_MAX, &options.journal_max) <
          0 ||
      ctl_call_size (call, "store-max", WEFT_STORE_MAX_LEAST, WEFT_STORE_MAX, &options.store_max) < 0 ||
      ctl_call_duration (call, "store-age", WEFT_STORE_AGE_MOST_MS, WEFT_STORE_AGE_MS,
                         &options.store_age_ms) < 0 ||
      ctl_call_number (call, "tasks-max", WEFT_OPEN_TASKS_LEAST, WEFT_OPEN_TASKS_MOST, WEFT_OPEN_TASKS_MAX,
                       &options.tasks_max) < 0 ||
      ctl_call_size (call, "memory-max", WEFT_OPEN_BYTES_LEAST, WEFT_OPEN_BYTES_MAX, &options.memory_max) < 0)
    return CTL_EXIT_USAGE;
  if (options.journal_age_ms < WEFT_JOURNAL_AGE_LEAST_MS) {
    weft_log_error ("bad duration for --journal-age: a minute at least; what is younger is still being read");
    return CTL_EXIT_USAGE;
  }
  if (!options.listen && ctl_call_has (call, "controller"))
    options.listen = call->address;
  return ctl_service_run (&options) < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
