/* SPDX-License-Identifier: Apache-2.0 */
/* weft profile: join, broadcast, collect, report, leave. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/ids.h"
#include "../../common/log.h"
#include "../../common/status.h"
#include "../view/json.h"
#include "../view/table.h"
#include "candidates.h"
#include "leave.h"
#include "nothing.h"
#include "sidecar.h"
#include "verbs.h"
#include "window.h"

#define NAMES_MAX 5 /* task names with a table of their own */
/* What an interrupted program returns by convention: 128 + SIGINT. */
#define EXIT_INTERRUPTED 130

typedef struct {
  ctl_call_t *call;
  ctl_client_t *client;
  ctl_style_t style;
  uint64_t for_ms;
  int64_t pid[WEFT_SELECTORS_MAX];
  uint32_t pid_count;
  uint32_t wanted;                                /* of these, how many are joined by now */
  char on[WEFT_SELECTORS_MAX][WEFT_SELECTOR_MAX]; /* the instances of these pids */
  uint32_t on_count;
  json_t *joined;   /* uuids of those that this run joined */
  uint32_t claim;   /* on all of them, 0: none */
  uint64_t join_ns; /* how long that took */
} profile_t;

/* ---- who ---------------------------------------------------------------- */

/* What the instruction names is these VMs and no others, so it must hold them all. */
static int add_pid (profile_t *self, int64_t pid)
{
  for (uint32_t n = 0; n < self->pid_count; n++)
    if (self->pid[n] == pid)
      return 0;
  if (self->pid_count == WEFT_SELECTORS_MAX) {
    weft_log_error ("profile: more than %d VMs; name fewer, or start `weft attach --all` and use --on",
                    WEFT_SELECTORS_MAX);
    return WEFT_E_USAGE;
  }
  self->pid[self->pid_count++] = pid;
  return 0;
}

/* 0: go on; 1: the list was printed. */
static int choose (profile_t *self)
{
  const ctl_call_t *call = self->call;
  int all = ctl_call_has (call, "all"), on = ctl_call_has (call, "on");
  if ((all != 0) + (on != 0) + (call->operand_count > 0) > 1) {
    weft_log_error (
        "profile: PIDs, --all and --on exclude each other; narrow down with --root, --embed, --capture");
    return WEFT_E_USAGE;
  }
  for (int n = 0; n < call->operand_count; n++) {
    int64_t pid;
    if (ctl_call_pid (call->operands[n], &pid) < 0 || add_pid (self, pid) < 0)
      return WEFT_E_USAGE;
  }
  if (on || self->pid_count)
    return 0;
  json_t *list = NULL;
  int rc = ctl_candidates_read (&list);
  if (rc == 0 && !all) {
    ctl_candidates_print (stdout, &self->style, list);
    rc = 1;
  }
  for (size_t n = 0; rc == 0 && n < json_array_size (list); n++)
    if (ctl_candidate_joinable (json_array_get (list, n)))
      rc = add_pid (self, ctl_candidate_pid (json_array_get (list, n)));
  json_decref (list);
  return rc;
}

/* ---- joining ------------------------------------------------------------ */

static int attach (profile_t *self, const ctl_roster_t *roster)
{
  static char room[CTL_SIDECAR_WORDS_MAX][24];
  ctl_words_t words;
  ctl_words_begin (&words, self->call, "attach");
  ctl_words_add (&words, "--json");
  uint32_t missing = 0;
  for (uint32_t n = 0; n < self->pid_count; n++) {
    if (ctl_roster_pid (roster, self->pid[n])) {
      self->wanted++;
      continue;
    }
    snprintf (room[missing], sizeof *room, "%lld", (long long) self->pid[n]);
    if (ctl_words_add (&words, room[missing++]) < 0)
      return WEFT_E_USAGE;
  }
  if (!missing)
    return 0;
  json_t *lines = NULL;
  int code = 0;
  int rc = ctl_sidecar_lines (&words, "joining", &lines,
                              &code); /* refusals are said by weft-instance, a line each */
  for (size_t n = 0; rc == 0 && n < json_array_size (lines); n++) {
    const json_t *one = json_array_get (lines, n);
    json_t *uuid = json_object_get (one, "instance");
    self->wanted++;
    if (uuid && !json_is_true (json_object_get (one, "already")))
      json_array_append (self->joined, uuid);
  }
  if (rc == 0 && self->wanted == 0)
    rc = WEFT_E_NOT_FOUND;
  json_decref (lines);
  return rc;
}

/* The instances of our pids, as far as the controller knows them by now. */
static uint32_t find_instances (profile_t *self, const ctl_roster_t *roster)
{
  uint32_t found = 0;
  self->on_count = 0;
  for (uint32_t n = 0; n < self->pid_count; n++) {
    const ctl_instance_t *instance = ctl_roster_pid (roster, self->pid[n]);
    if (!instance)
      continue;
    found++;
    char uuid[37];
    weft_uuid_put (uuid, instance->uuid);
    snprintf (self->on[self->on_count++], WEFT_SELECTOR_MAX, "instance=%s", uuid);
  }
  return found;
}

/* Nobody leaves them before we are done, and those that we joined go with the last one who needs them. */
static int claim (profile_t *self, const ctl_roster_t *roster)
{
  json_t *uuids = json_array ();
  for (uint32_t n = 0; n < self->pid_count; n++) {
    const ctl_instance_t *instance = ctl_roster_pid (roster, self->pid[n]);
    char uuid[37];
    if (!instance)
      continue;
    weft_uuid_put (uuid, instance->uuid);
    json_array_append_new (uuids, json_string (uuid));
  }
  int rc =
      ctl_leave_claim (self->client, uuids, self->joined, self->for_ms + WEFT_CLAIM_MARGIN_MS, &self->claim);
  json_decref (uuids);
  return rc;
}

static int read_ours (profile_t *self, ctl_roster_t *ret_roster)
{
  json_t *pids = json_array ();
  for (uint32_t n = 0; n < self->pid_count; n++)
    json_array_append_new (pids, json_integer (self->pid[n]));
  return ctl_roster_read (self->client, json_pack ("{s:o}", "pids", pids), ret_roster);
}

/* WEFT_E_BUSY: somebody is about to leave one of them. */
static int join_once (profile_t *self)
{
  ctl_roster_t roster = {0};
  self->wanted = 0;
  int rc = read_ours (self, &roster);
  if (rc == 0)
    rc = attach (self, &roster);
  uint64_t end_ns = weft_mono_ns () + WEFT_ACK_WAIT_MS * WEFT_NS_PER_MS;
  uint32_t found = 0;
  while (rc == 0) {
    ctl_roster_clear (&roster);
    rc = read_ours (self, &roster);
    found = rc == 0 ? find_instances (self, &roster) : 0;
    if (rc < 0 || found >= self->wanted || weft_mono_ns () >= end_ns || ctl_window_enough)
      break;
    ctl_pause_ms (10);
  }
  if (rc == 0 && found)
    rc = claim (self, &roster);
  ctl_roster_clear (&roster);
  if (rc == 0 && found == 0) {
    weft_log_error (
        "nothing to profile: none of the VMs has told the controller at %s that it is there; try again, "
        "or look with `weft ls`",
        self->call->address);
    rc = WEFT_E_NOT_FOUND;
  }
  return rc;
}

static int join (profile_t *self)
{
  uint64_t start_ns = weft_mono_ns (), end_ns = start_ns + WEFT_LEAVE_WAIT_MS * WEFT_NS_PER_MS;
  int rc;
  while ((rc = join_once (self)) == WEFT_E_BUSY && weft_mono_ns () < end_ns && !ctl_window_enough)
    ctl_pause_ms (50);
  self->join_ns = weft_mono_ns () - start_ns;
  if (rc == WEFT_E_BUSY || rc == WEFT_E_FULL)
    weft_log_error ("nothing to profile: %s; try again", rc == WEFT_E_FULL
                                                             ? "too many clients work at once"
                                                             : "somebody is leaving one of these VMs");
  return rc;
}

/* ---- the report --------------------------------------------------------- */

static json_t *visible_json (const ctl_roster_t *roster)
{
  json_t *list = json_array ();
  for (uint32_t n = 0; n < roster->count; n++) {
    const ctl_instance_t *one = &roster->instances[n];
    char uuid[37];
    weft_uuid_put (uuid, one->uuid);
    json_array_append_new (list, json_pack ("{s:s, s:o, s:I, s:I, s:I, s:o}", "instance", uuid, "service",
                                            ctl_json_text (one->service), "pid", (json_int_t) one->pid,
                                            "bytes_total", (json_int_t) one->bytes_total, "bytes_spoken",
                                            (json_int_t) one->bytes_spoken, "rest", ctl_json_rest (one)));
  }
  return list;
}

/* One summary, then one object a task name. */
static int print_json (const ctl_window_t *window, const json_t *analysis)
{
  json_t *summary = json_copy ((json_t *) (uintptr_t) analysis);
  json_t *numbers = json_array ();
  const ctl_window_phase_t *root = &window->phase[CTL_PHASE_ROOT];
  for (uint32_t n = 0; n < root->sent; n++)
    json_array_append_new (numbers, json_integer ((json_int_t) root->number[n]));
  json_object_del (summary, "names");
  json_object_set_new (summary, "from_ns", json_integer ((json_int_t) window->from_ns));
  json_object_set_new (summary, "to_ns", json_integer ((json_int_t) window->to_ns));
  json_object_set_new (summary, "instructions", numbers);
  json_object_set_new (summary, "traffic", visible_json (&window->after));
  int rc = ctl_json_line (stdout, summary);
  const json_t *names = json_object_get (analysis, "names");
  for (size_t n = 0; rc == 0 && n < json_array_size (names); n++)
    rc = ctl_json_line (stdout, json_incref (json_array_get (names, n)));
  return rc;
}

static int print_table (const profile_t *self, const ctl_window_t *window, const ctl_analysis_t *analysis)
{
  const ctl_instance_t **list = calloc (window->after.count + 1, sizeof (void *));
  if (!list)
    return WEFT_E_NOMEM;
  uint32_t count = 0;
  for (uint32_t n = 0; n < window->after.count; n++)
    if (window->after.instances[n].presence != CTL_INSTANCE_LEFT)
      list[count++] = &window->after.instances[n];
  int rc = ctl_table_profile (stdout, &self->style, analysis, NAMES_MAX, list, count);
  free (list);
  return rc;
}

/* Nothing was: so far. On failure there is no answer. */
static int hear_the_late (ctl_window_t *window, ctl_analysis_t **analysis, json_t **json)
{
  ctl_analysis_destroy (analysis);
  json_decref (*json);
  *json = NULL;
  int rc = ctl_window_late (window);
  return rc < 0 ? rc : ctl_window_analysis (window, analysis, json);
}

static int report (profile_t *self, ctl_window_t *window)
{
  ctl_analysis_t *analysis = NULL;
  json_t *json = NULL;
  int rc = ctl_window_analysis (window, &analysis, &json);
  if (rc == 0 && analysis->executions == 0)
    rc = hear_the_late (window, &analysis, &json);
  if (rc < 0)
    return rc;
  ctl_window_traffic (window);
  if (ctl_call_has (self->call, "json"))
    rc = print_json (window, json);
  else if (analysis->executions)
    rc = print_table (self, window, analysis);
  if (rc == 0 && analysis->executions == 0) {
    ctl_nothing_explain (window, analysis, ctl_call_value (self->call, "match", ""),
                         ctl_call_has (self->call, "sample") || ctl_call_has (self->call, "max"));
    rc = WEFT_E_NOT_FOUND;
  }
  fflush (stdout);
  ctl_analysis_destroy (&analysis);
  json_decref (json);
  return rc;
}

/* ---- the run ------------------------------------------------------------ */

static void say_started (const profile_t *self, const ctl_standing_counts_t *counts)
{
  if (json_array_size (self->joined))
    fprintf (stderr, "joined %zu VM%s in %llu ms, ", json_array_size (self->joined),
             json_array_size (self->joined) == 1 ? "" : "s",
             (unsigned long long) (self->join_ns / WEFT_NS_PER_MS));
  fprintf (stderr, "instruction ");
  ctl_standing_print (stderr, counts);
  fprintf (stderr, ", for %.3g s\n", (double) self->for_ms / 1000);
}

static int has_number (const json_t *list, json_int_t number)
{
  for (size_t n = 0; n < json_array_size (list); n++)
    if (json_integer_value (json_array_get (list, n)) == number)
      return 1;
  return 0;
}

/* A VM of ours that works under instruction `number`, too. NULL: none. */
static const char *also_under (const ctl_window_t *window, json_int_t number)
{
  const ctl_window_phase_t *ours = &window->phase[CTL_PHASE_CAPTURE];
  for (size_t n = 0; n < json_array_size (window->before.list); n++) {
    const json_t *one = json_array_get (window->before.list, n);
    const json_t *numbers = json_object_get (one, "instructions");
    for (uint32_t i = 0; i < ours->sent && has_number (numbers, number); i++)
      if (has_number (numbers, ours->number[i]))
        return window->before.instances[n].service;
  }
  return NULL;
}

/* A request belongs to the first instruction that may start a task with it. What that one starts counts
 * here, too, unless ours would have drawn or counted: of that nobody knows. */
static void say_others (const profile_t *self, const ctl_window_t *window)
{
  const ctl_orders_t *ours = &window->phase[CTL_PHASE_ROOT].orders;
  int draws = 0;
  for (uint32_t n = 0; n < ours->count; n++)
    draws |= ours->order[n].sample_num != ours->order[n].sample_den || ours->order[n].max_roots;
  if (!draws)
    return;
  json_t *reply = NULL;
  if (ctl_client_ask (self->client, json_pack ("{s:s}", "op", "instructions"), NULL, NULL, &reply) < 0)
    return;
  const json_t *list = json_object_get (reply, "instructions");
  for (size_t n = 0; n < json_array_size (list); n++) {
    const json_t *one = json_array_get (list, n), *actions = json_object_get (one, "actions");
    json_int_t number = json_integer_value (json_object_get (one, "number"));
    int roots = 0;
    for (size_t i = 0; i < json_array_size (actions); i++)
      roots |= strcmp (json_string_value (json_array_get (actions, i)), "root") == 0;
    const char *service = roots ? also_under (window, number) : NULL;
    if (service)
      weft_log_error ("instruction %lld starts tasks in %s, too, and comes first: what it takes is not in "
                      "this report; `weft stop %lld` ends it",
                      (long long) number, service, (long long) number);
  }
  json_decref (reply);
}

static int run_window (profile_t *self, const ctl_orders_t *orders)
{
  ctl_standing_counts_t counts = {0};
  ctl_window_t window = {
      .client = self->client, .orders = orders, .for_ms = self->for_ms, .progress = isatty (STDERR_FILENO)};
  int rc = ctl_window_open (&window, &counts);
  if (rc == 0 && counts.expected == 0) {
    weft_log_error (
        "nothing to profile: no instance is there that the selectors hold for; `weft ls` lists them");
    rc = WEFT_E_NOT_FOUND;
  }
  if (rc == 0 && window.phase[CTL_PHASE_ROOT].expected == 0) {
    weft_log_error (
        "nothing to profile: no instance is there where tasks may start; look at --root, `weft ls` lists "
        "them");
    rc = WEFT_E_NOT_FOUND;
  }
  if (rc == 0) {
    say_started (self, &counts);
    say_others (self, &window);
    ctl_window_wait (&window);
  }
  int closed = ctl_window_close (&window);
  if (rc == 0)
    rc = closed;
  if (rc == 0 && !ctl_window_at_once)
    rc = report (self, &window);
  ctl_standing_clear (&counts);
  ctl_window_clear (&window);
  return rc;
}

static int leave (profile_t *self)
{
  if (!self->claim && json_array_size (self->joined) == 0)
    return 0;
  ctl_leave_t left = {0};
  int rc = ctl_leave_release (self->client, self->claim, self->joined, &ctl_window_at_once, &left);
  if (rc == 0 && (left.asked || left.kept))
    ctl_leave_print (ctl_call_has (self->call, "json") ? stderr : stdout, &left);
  return rc == 0 && ctl_leave_verified (&left) ? 0 : WEFT_E_STATE;
}

static int run (profile_t *self)
{
  ctl_orders_t *orders = NULL;
  int rc = self->pid_count ? join (self) : 0;
  if (rc == 0)
    rc = ctl_orders_read (self->call, (const char (*)[WEFT_SELECTOR_MAX]) self->on, self->on_count,
                          WEFT_ACTION_ROOT | WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE, &orders);
  if (rc == 0 && !ctl_window_enough)
    rc = run_window (self, orders);
  int left = leave (self);
  free (orders);
  return rc < 0 ? rc : left;
}

static int check_usage (profile_t *self)
{
  ctl_orders_t *orders = NULL;
  if (ctl_call_duration (self->call, "for", WEFT_FOR_MAX_MS, WEFT_PROFILE_MS, &self->for_ms) < 0)
    return WEFT_E_USAGE;
  if (self->for_ms == 0) {
    weft_log_error ("bad duration for --for: a window of no time sees nothing; give more, such as 10s");
    return WEFT_E_USAGE;
  }
  /* Everything that may be wrong about the options is, before anything is joined. */
  const char anywhere[1][WEFT_SELECTOR_MAX] = {"*"};
  int rc = ctl_orders_read (self->call, anywhere, ctl_call_has (self->call, "on") ? 0 : 1,
                            WEFT_ACTION_ROOT | WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE, &orders);
  free (orders);
  return rc;
}

int ctl_verb_profile (ctl_call_t *call)
{
  profile_t *self = calloc (1, sizeof *self);
  if (!self)
    return CTL_EXIT_FAILED;
  self->call = call;
  self->joined = json_array ();
  ctl_style_detect (STDOUT_FILENO, &self->style);
  int rc = check_usage (self);
  if (rc == 0)
    rc = choose (self);
  int usage = rc == WEFT_E_USAGE || rc == 1;
  if (rc == 0) {
    ctl_window_signals ();
    rc = ctl_client_open (call->address, CTL_CLIENT_START, &self->client);
  }
  if (rc == 0)
    rc = run (self);
  ctl_client_close (&self->client);
  json_decref (self->joined);
  free (self);
  if (ctl_window_at_once)
    return EXIT_INTERRUPTED;
  return usage ? CTL_EXIT_USAGE : rc < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
