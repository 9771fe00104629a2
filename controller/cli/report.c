/* SPDX-License-Identifier: Apache-2.0 */
/* weft report: what was collected as one HTML page in a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/log.h"
#include "../../common/status.h"
#include "../task/analyse.h"
#include "../task/pack.h"
#include "../view/json.h"
#include "../view/page.h"
#include "../view/sentences.h"
#include "client.h"
#include "outfile.h"
#include "progress.h"
#include "verbs.h"
#include "which.h"

#define SCOPE_MAX 512

typedef struct {
  const ctl_call_t *call;
  ctl_client_t *client;
  ctl_progress_t progress;
  ctl_page_t *page;
  ctl_page_about_t about;
  uint8_t task[WEFT_TASK_ID_SIZE];
  char *name;  /* of the task that was asked for, else NULL */
  void *asked; /* that task, packed */
  size_t asked_size;
  uint32_t instruction; /* of the newest execution */
  uint64_t oldest_ns;   /* start of the first execution of `instruction` */
  char scope[SCOPE_MAX];
  json_t *tasks, *instances; /* answers */
  json_t *sentences;
} report_t;

/* ---- asking --------------------------------------------------------------------------- */

static int take_asked (const void *data, size_t size, void *arg)
{
  report_t *self = arg;
  ctl_execution_t *execution = NULL;
  int rc = ctl_execution_unpack (data, size, &execution);
  if (rc < 0)
    return rc;
  memcpy (self->task, execution->task, sizeof self->task);
  self->about.task = self->task;
  self->name = strdup (execution->name);
  ctl_execution_destroy (&execution);
  self->asked = malloc (size);
  if (!self->name || !self->asked)
    return WEFT_E_NOMEM;
  memcpy (self->asked, data, size);
  self->asked_size = size;
  return 0;
}

static int take_newest (const void *data, size_t size, void *arg)
{
  report_t *self = arg;
  ctl_execution_t *execution = NULL;
  int rc = ctl_execution_unpack (data, size, &execution);
  if (rc < 0)
    return rc;
  if (execution->kind == CTL_KIND_TASK && self->instruction == 0)
    self->instruction = execution->instruction;
  if (execution->kind == CTL_KIND_TASK && (!self->oldest_ns || execution->start_ns < self->oldest_ns))
    self->oldest_ns = execution->start_ns;
  ctl_execution_destroy (&execution);
  return 0;
}

static int take_each (const void *data, size_t size, void *arg)
{
  report_t *self = arg;
  ctl_progress_say (&self->progress, "reading executions: %u", ctl_page_count (self->page));
  return ctl_page_add (self->page, data, size);
}

/* Nothing says which: what the instruction of the newest task started, from its first task on. */
static int last_window (report_t *self, json_t *request)
{
  int rc = ctl_client_ask (self->client, json_pack ("{s:s, s:i}", "op", "each", "limit", 1), take_newest,
                           self, NULL);
  if (rc < 0 || self->instruction == 0)
    return rc;
  self->oldest_ns = 0;
  rc = ctl_client_ask (self->client,
                       json_pack ("{s:s, s:O, s:[I], s:I}", "op", "each", "limit",
                                  json_object_get (request, "limit"), "instructions",
                                  (json_int_t) self->instruction, "from_ns", (json_int_t) INT64_MAX),
                       take_newest, self, NULL);
  if (rc < 0 || !self->oldest_ns)
    return rc;
  json_object_set_new (request, "instructions", json_pack ("[I]", (json_int_t) self->instruction));
  json_object_set_new (request, "from_ns", json_integer ((json_int_t) self->oldest_ns));
  snprintf (self->scope, sizeof self->scope, "what instruction %u started", self->instruction);
  return 0;
}

/* The options as they were given. */
static void say_scope (report_t *self)
{
  size_t at = 0;
  for (uint32_t n = 0; n < self->call->given_count && at < sizeof self->scope; n++) {
    const char *name = self->call->given[n].option->name, *value = self->call->given[n].value;
    static const char *const of_scope[] = {"name",  "service", "slower",     "errors",
                                           "since", "last",    "instruction"};
    for (size_t i = 0; i < sizeof of_scope / sizeof *of_scope && at < sizeof self->scope; i++)
      if (strcmp (name, of_scope[i]) == 0)
        at += (size_t) snprintf (self->scope + at, sizeof self->scope - at, "%s--%s%s%s", at ? " " : "", name,
                                 value ? " " : "", value ? value : "");
  }
}

static int ask_scope (report_t *self, json_t *request)
{
  if (self->call->operand_count == 0) {
    say_scope (self);
    return *self->scope ? 0 : last_window (self, request);
  }
  int rc =
      ctl_client_ask (self->client, json_pack ("{s:s, s:s}", "op", "show", "task", self->call->operands[0]),
                      take_asked, self, NULL);
  if (rc == 0)
    json_object_set_new (request, "name", ctl_json_text (self->name));
  return rc;
}

/* Why slow, in the words of `weft profile`. NULL: out of memory. */
static json_t *sentences_of (const json_t *json)
{
  ctl_analysis_t *analysis = NULL;
  json_t *texts = json_array ();
  char *text = malloc (CTL_SENTENCES_MAX);
  int rc = texts && text ? ctl_analysis_from_json (json, &analysis) : WEFT_E_NOMEM;
  for (uint32_t i = 0; rc == 0 && i < analysis->name_count; i++) {
    ctl_sentences (analysis, &analysis->names[i], 1, text, CTL_SENTENCES_MAX);
    rc = json_array_append_new (texts, ctl_json_text (text)) < 0 ? WEFT_E_NOMEM : 0;
  }
  ctl_analysis_destroy (&analysis);
  free (text);
  if (rc == 0)
    return texts;
  json_decref (texts);
  return NULL;
}

static int ask (report_t *self, json_t *request)
{
  json_t *reply = NULL;
  ctl_progress_now (&self->progress, "asking the controller");
  int rc = ask_scope (self, request);
  json_t *tasks = json_copy (request);
  json_object_set_new (tasks, "op", json_string ("tasks"));
  if (rc == 0)
    rc = ctl_client_ask (self->client, json_incref (request), take_each, self, &reply);
  if (rc == 0 && self->asked && !ctl_page_has (self->page, self->task))
    rc = ctl_page_add (self->page, self->asked, self->asked_size);
  self->about.more = json_is_true (json_object_get (reply, "more"));
  json_decref (reply);
  if (rc == 0)
    rc = ctl_client_ask (self->client, json_incref (tasks), NULL, NULL, &self->tasks);
  if (rc == 0)
    rc = ctl_client_ask (self->client, json_pack ("{s:s}", "op", "instances"), NULL, NULL, &self->instances);
  json_decref (tasks);
  self->about.analysis = json_object_get (self->tasks, "analysis");
  self->about.instances = json_object_get (self->instances, "instances");
  self->about.sentences = self->sentences = rc == 0 ? sentences_of (self->about.analysis) : NULL;
  self->about.from_ns = (uint64_t) json_integer_value (json_object_get (request, "from_ns"));
  self->about.made_ns = weft_clock_ns (CLOCK_REALTIME);
  self->about.scope = self->scope;
  return rc == 0 && !self->about.analysis ? WEFT_E_MALFORMED : rc;
}

/* ---- the file -------------------------------------------------------------------------- */

static int write_file (report_t *self, const char *path)
{
  ctl_outfile_t file;
  int rc = ctl_outfile_open (path, &file);
  if (rc < 0)
    return rc;
  return ctl_outfile_close (&file, ctl_page_write (self->page, file.out, &self->about));
}

static int write_page (report_t *self)
{
  const char *path = ctl_call_value (self->call, "o", "");
  uint32_t count = ctl_page_count (self->page);
  if (count == 0) {
    weft_log_error ("nothing to report: no tasks%s%s; `weft profile` or `weft instruct` starts them",
                    *self->scope ? " with " : "", self->scope);
    return WEFT_E_NOT_FOUND;
  }
  ctl_progress_now (&self->progress, "writing %s", path);
  int rc = write_file (self, path);
  ctl_progress_wipe (&self->progress);
  if (rc < 0)
    weft_log_error ("cannot write %s: %s; choose another place with -o", path,
                    rc == WEFT_E_IO ? strerror (errno) : weft_status_text (rc));
  else if (strcmp (path, "-") != 0)
    printf ("%s: %u execution%s%s\n", path, count, count == 1 ? "" : "s",
            self->about.more ? ", the newest; --limit takes more" : "");
  return rc;
}

int ctl_verb_report (ctl_call_t *call)
{
  report_t self = {.call = call};
  if (!*ctl_call_value (call, "o", "")) {
    weft_log_error ("report: no file to write to: give -o FILE.html; see `weft report --help`");
    return CTL_EXIT_USAGE;
  }
  json_t *request = ctl_which (call, "each", CTL_PAGE_EXECUTIONS_MAX);
  if (!request)
    return CTL_EXIT_USAGE;
  ctl_progress_begin (&self.progress);
  self.page = ctl_page_new ();
  int rc = self.page ? ctl_client_open (call->address, CTL_CLIENT_STORE, &self.client) : WEFT_E_NOMEM;
  if (rc == 0)
    rc = ask (&self, request);
  ctl_progress_wipe (&self.progress);
  if (rc == 0)
    rc = write_page (&self);
  ctl_client_close (&self.client);
  ctl_page_destroy (&self.page);
  json_decref (request);
  json_decref (self.tasks);
  json_decref (self.instances);
  json_decref (self.sentences);
  free (self.name);
  free (self.asked);
  return rc < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
