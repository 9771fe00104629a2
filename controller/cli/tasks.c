/* SPDX-License-Identifier: Apache-2.0 */
/* weft tasks: tasks by name, their edges, or each execution. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../common/log.h"
#include "../../common/status.h"
#include "../task/analyse.h"
#include "../task/pack.h"
#include "../view/csv.h"
#include "../view/edge_table.h"
#include "../view/json.h"
#include "../view/table.h"
#include "client.h"
#include "ranking.h"
#include "verbs.h"
#include "which.h"

typedef struct {
  int json, csv;
  ctl_style_t style;
  uint32_t printed;
} each_t;

static int print_each (const void *data, size_t size, void *arg)
{
  each_t *self = arg;
  ctl_execution_t *execution = NULL;
  int rc = ctl_execution_unpack (data, size, &execution);
  if (rc < 0)
    return rc;
  if (self->json) {
    rc = ctl_json_line (stdout, ctl_json_execution (execution));
  } else if (self->csv) {
    rc = ctl_csv_each (stdout, execution);
  } else {
    rc = self->printed ? 0 : ctl_table_each_head (stdout, &self->style);
    if (rc == 0)
      rc = ctl_table_each (stdout, &self->style, execution);
  }
  self->printed++;
  ctl_execution_destroy (&execution);
  return rc;
}

/* --sort of executions. 0; WEFT_E_USAGE: said on stderr. */
static int put_order (const ctl_call_t *call, json_t *request)
{
  const char *order = ctl_call_value (call, "sort", "newest");
  if (strcmp (order, "newest") != 0 && strcmp (order, "slowest") != 0) {
    weft_log_error ("bad order '%.40s' for --sort with --each: newest or slowest is meant", order);
    return WEFT_E_USAGE;
  }
  return json_object_set_new (request, "order", json_string (order)) < 0 ? WEFT_E_NOMEM : 0;
}

static int list_each (const ctl_call_t *call, ctl_client_t *client, json_t *request)
{
  int rc = put_order (call, request);
  if (rc < 0) {
    json_decref (request);
    return rc;
  }
  each_t each = {.json = ctl_call_has (call, "json"), .csv = ctl_call_has (call, "csv")};
  json_t *reply = NULL;
  ctl_style_detect (STDOUT_FILENO, &each.style);
  if (each.csv)
    ctl_csv_each_head (stdout);
  rc = ctl_client_ask (client, request, print_each, &each, &reply);
  if (rc == 0 && !each.printed && !each.json && !each.csv)
    printf ("no tasks; `weft instruct` or `weft profile` starts them\n");
  if (rc == 0 && json_is_true (json_object_get (reply, "more")))
    weft_log_error ("tasks: only %u of them are listed; narrow down with --since or --name, or raise --limit",
                    each.printed);
  json_decref (reply);
  return rc;
}

/* One object a task name, without the rest. */
static int print_names (const json_t *analysis)
{
  const json_t *names = json_object_get (analysis, "names");
  int rc = 0;
  for (size_t n = 0; rc == 0 && n < json_array_size (names); n++)
    rc = ctl_json_line (stdout, json_incref (json_array_get (names, n)));
  return rc;
}

static int print_edges (const ctl_call_t *call, const json_t *json, const ctl_analysis_t *analysis,
                        const ctl_style_t *style)
{
  uint64_t more = 0;
  for (uint32_t i = 0; i < analysis->name_count; i++)
    more += analysis->names[i].more_edges;
  if (more)
    weft_log_error ("tasks: %llu calls of further edges are not told apart; narrow down with --name",
                    (unsigned long long) more);
  if (ctl_call_has (call, "json"))
    return ctl_edge_table_json (stdout, json);
  if (ctl_call_has (call, "csv"))
    return ctl_edge_table_csv (stdout, analysis);
  return ctl_edge_table_print (stdout, style, analysis);
}

static int print_analysis (const ctl_call_t *call, const json_t *json, const ctl_analysis_t *analysis)
{
  ctl_style_t style;
  int edges = ctl_call_has (call, "edges"),
      plain = !ctl_call_has (call, "json") && !ctl_call_has (call, "csv");
  ctl_style_detect (STDOUT_FILENO, &style);
  if (plain && analysis->name_count == 0 && (edges || analysis->orphan_count == 0)) {
    printf ("no tasks; `weft instruct` or `weft profile` starts them\n");
    return 0;
  }
  if (edges)
    return print_edges (call, json, analysis, &style);
  if (ctl_call_has (call, "json"))
    return print_names (json);
  if (ctl_call_has (call, "csv"))
    return ctl_csv_tasks (stdout, analysis);
  return ctl_table_tasks (stdout, &style, analysis);
}

static int list_names (const ctl_call_t *call, ctl_client_t *client, json_t *request)
{
  ctl_rank_t rank;
  json_t *reply = NULL;
  uint32_t limit = (uint32_t) json_integer_value (json_object_get (request, "limit"));
  if (ctl_ranking_read (call, CTL_RANK_COUNT, &rank) < 0) {
    json_decref (request);
    return WEFT_E_USAGE;
  }
  int rc = ctl_client_ask (client, request, NULL, NULL, &reply);
  if (rc < 0)
    return rc;
  ctl_analysis_t *analysis = NULL;
  rc = ctl_ranking_apply (json_object_get (reply, "analysis"), rank, limit);
  if (rc == 0)
    rc = ctl_analysis_from_json (json_object_get (reply, "analysis"), &analysis);
  if (rc < 0 || !analysis)
    weft_log_error ("the controller's answer cannot be used: %s; is it another version?",
                    weft_status_text (rc));
  else
    rc = print_analysis (call, json_object_get (reply, "analysis"), analysis);
  ctl_analysis_destroy (&analysis);
  json_decref (reply);
  return rc;
}

int ctl_verb_tasks (ctl_call_t *call)
{
  int each = ctl_call_has (call, "each");
  if (each && ctl_call_has (call, "edges")) {
    weft_log_error ("--each and --edges exclude each other; see `weft tasks --help`");
    return CTL_EXIT_USAGE;
  }
  ctl_client_t *client = NULL;
  json_t *request = ctl_which (call, each ? "each" : "tasks", WEFT_EACH_MAX);
  if (!request)
    return CTL_EXIT_USAGE;
  if (ctl_client_open (call->address, CTL_CLIENT_STORE, &client) < 0) {
    json_decref (request);
    return CTL_EXIT_FAILED;
  }
  int rc = each ? list_each (call, client, request) : list_names (call, client, request);
  ctl_client_close (&client);
  return rc == WEFT_E_USAGE ? CTL_EXIT_USAGE : rc < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
