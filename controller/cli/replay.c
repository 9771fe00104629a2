/* SPDX-License-Identifier: Apache-2.0 */
/* weft replay: sends a recording to a controller as its instances did. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/ids.h"
#include "../../common/log.h"
#include "../../common/status.h"
#include "../view/json.h"
#include "client.h"
#include "replayer.h"
#include "verbs.h"
#include "window.h"

static int read_options (const ctl_call_t *call, ctl_replay_options_t *options)
{
  uint64_t repeat = 1;
  weft_ids_t ids;
  weft_ids_seed (&ids);
  const char *speed = ctl_call_value (call, "speed", "1");
  char *end = NULL;
  options->speed = strcmp (speed, "max") == 0 ? 0 : strtod (speed, &end);
  if (end &&
      (*end || end == speed || !(options->speed >= 0.001 && options->speed <= WEFT_REPLAY_SPEED_MAX))) {
    weft_log_error ("bad speed '%s': a number from 0.001 to %d, or max", speed, WEFT_REPLAY_SPEED_MAX);
    return WEFT_E_USAGE;
  }
  if (ctl_call_number (call, "repeat", 1, WEFT_REPLAY_REPEAT_MAX, 1, &repeat) < 0 ||
      ctl_call_number (call, "seed", 1, UINT32_MAX, weft_ids_next (&ids), &options->seed) < 0)
    return WEFT_E_USAGE;
  options->repeat = (uint32_t) repeat;
  options->address = call->address;
  options->stop = &ctl_window_enough;
  return 0;
}

static int print_json (const char *path, const ctl_plan_t *plan, const ctl_recording_stats_t *file,
                       const ctl_replay_options_t *options, const ctl_replay_result_t *result)
{
  json_t *json = json_object ();
  const struct {
    const char *key;
    uint64_t value;
  } numbers[] = {
      {"repeats", options->repeat},
      {"instances", (uint64_t) plan->instance_count * options->repeat},
      {"batches", result->batches},
      {"reports", result->reports},
      {"tasks", plan->tasks * options->repeat},
      {"sent_again", result->sent_again},
      {"missing", plan->missing},
      {"repeated", plan->repeated},
      {"damaged", file->damaged},
      {"damaged_bytes", file->damaged_bytes},
      {"unread", plan->unread},
      {"unrenamed", plan->unrenamed},
  };
  int rc = json_object_set_new (json, "file", ctl_json_text (path));
  for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
    rc |= json_object_set_new (json, numbers[n].key, json_integer ((json_int_t) numbers[n].value));
  rc |= json_object_set_new (json, "whole", json_boolean (result->whole));
  rc |= json_object_set_new (json, "seconds", json_real (result->seconds));
  if (rc) {
    json_decref (json);
    return WEFT_E_NOMEM;
  }
  return ctl_json_line (stdout, json);
}

static void print_losses (const ctl_plan_t *plan, const ctl_recording_stats_t *file)
{
  const struct {
    uint64_t count;
    const char *text;
  } losses[] = {{plan->missing, "batches missing"},
                {plan->repeated, "batches repeated, taken once"},
                {file->damaged, "damaged places"},
                {plan->unread, "frames that cannot be read"},
                {plan->unrenamed, "batches left out: another version's encoding"}};
  const char *before = "in the recording: ";
  for (size_t n = 0; n < sizeof losses / sizeof *losses; n++)
    if (losses[n].count) {
      printf ("%s%llu %s", before, (unsigned long long) losses[n].count, losses[n].text);
      before = " · ";
    }
  if (*before == ' ')
    printf ("\n");
}

static int print (const ctl_call_t *call, const ctl_plan_t *plan, const ctl_recording_stats_t *file,
                  const ctl_replay_options_t *options, const ctl_replay_result_t *result)
{
  if (ctl_call_has (call, "json"))
    return print_json (call->operands[0], plan, file, options, result);
  double rate = result->seconds > 0 ? (double) result->reports / result->seconds : 0;
  printf ("replayed %llu reports of %llu tasks from %llu instances in %.1f s: %.0f reports/s, %s\n",
          (unsigned long long) result->reports, (unsigned long long) plan->tasks * options->repeat,
          (unsigned long long) plan->instance_count * options->repeat, result->seconds, rate,
          result->whole ? "all acknowledged" : "ended early");
  print_losses (plan, file);
  return 0;
}

static int open_recording (const char *path, int rename_ids, ctl_progress_t *progress,
                           ctl_recording_t **ret_recording, ctl_plan_t **ret_plan)
{
  int rc = ctl_recording_open (path, ret_recording);
  if (rc == WEFT_E_IO)
    weft_log_error ("cannot read %s: %s; name a file that `weft record` wrote", path, strerror (errno));
  else if (rc == WEFT_E_VERSION)
    weft_log_error ("cannot replay %s: made by a newer weft; replay it with that one", path);
  else if (rc < 0)
    weft_log_error (
        "cannot replay %s: no recording, or its head is damaged; name a file that `weft record` wrote", path);
  if (rc < 0)
    return rc;
  ctl_progress_now (progress, "reading %s", path);
  rc = ctl_plan_new (*ret_recording, rename_ids, ret_plan);
  ctl_progress_wipe (progress);
  if (rc < 0)
    weft_log_error ("cannot replay %s: %s; record a shorter time", path, weft_status_text (rc));
  return rc;
}

static int run (const ctl_call_t *call, ctl_replay_options_t *options)
{
  ctl_progress_t progress;
  ctl_recording_t *recording = NULL;
  ctl_plan_t *plan = NULL;
  ctl_client_t *client = NULL;
  ctl_replay_result_t result = {0};
  char why[300] = "";
  ctl_progress_begin (&progress);
  int rc = open_recording (call->operands[0], options->repeat > 1, &progress, &recording, &plan);
  if (rc == 0)
    rc = ctl_client_open (call->address, CTL_CLIENT_START, &client);
  if (rc == 0) {
    ctl_window_signals ();
    ctl_progress_begin (&progress);
    options->progress = &progress;
    rc = ctl_replay_run (plan, options, &result, why, sizeof why);
    options->progress = NULL;
    ctl_progress_wipe (&progress);
    if (rc < 0)
      weft_log_error ("cannot replay to %s: %s", call->address, *why ? why : weft_status_text (rc));
    int printed = print (call, plan, ctl_recording_stats (recording), options, &result);
    rc = rc < 0 ? rc : printed;
  }
  ctl_client_close (&client);
  ctl_plan_destroy (&plan);
  ctl_recording_close (&recording);
  return rc;
}

int ctl_verb_replay (ctl_call_t *call)
{
  ctl_replay_options_t options = {0};
  if (read_options (call, &options) < 0)
    return CTL_EXIT_USAGE;
  return run (call, &options) < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
