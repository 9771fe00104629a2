/* SPDX-License-Identifier: Apache-2.0 */
/* weft export: executions for other tools. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/log.h"
#include "../../common/status.h"
#include "../service/collector.h"
#include "../task/pack.h"
#include "../view/json.h"
#include "../view/otlp.h"
#include "../view/perfetto.h"
#include "client.h"
#include "orders.h"
#include "outfile.h"
#include "progress.h"
#include "roster.h"
#include "verbs.h"
#include "which.h"

#define PAGE 2000u /* executions that are asked for at once */

typedef struct {
  ctl_execution_t *execution[PAGE];
  uint32_t count;
  uint64_t before_ns;                    /* start of the last one of the page before */
  uint8_t seen[PAGE][WEFT_TASK_ID_SIZE]; /* those of that moment that have been there */
  uint32_t seen_count;
} page_t;

typedef struct {
  const ctl_call_t *call;
  ctl_client_t *client;
  ctl_roster_t roster;
  const char *path; /* NULL: to the collector */
  ctl_outfile_t file;
  ctl_collector_t *collector;
  ctl_otlp_t *otlp;         /* either this */
  ctl_perfetto_t *perfetto; /* or that */
  page_t page;
  uint64_t limit, executions, spans, rejected;
  int more;
  int number; /* errno of what could not be written */
  ctl_progress_t progress;
  char why[CTL_COLLECTOR_WHY_MAX];
} export_t;

/* ---- where it goes -------------------------------------------------------- */

static int place_of (const uint8_t instance[WEFT_UUID_SIZE], ctl_place_t *ret_place, void *arg)
{
  const export_t *self = arg;
  const ctl_instance_t *known = ctl_roster_uuid (&self->roster, instance);
  if (!known)
    return WEFT_E_NOT_FOUND;
  *ret_place = (ctl_place_t){known->service, known->vm, known->version, known->host, known->pid};
  return 0;
}

static void say_progress (void *arg)
{
  export_t *self = arg;
  ctl_progress_say (&self->progress, "%llu executions, %.0f s", (unsigned long long) self->executions,
                    ctl_progress_seconds (&self->progress));
}

/* A collector that is busy is asked again; one that is not there is not waited for. */
static int post (export_t *self, const void *data, size_t size)
{
  ctl_collector_answer_t answer = {0};
  uint64_t end_ns = weft_mono_ns () + WEFT_EXPORT_GIVE_UP_MS * WEFT_NS_PER_MS;
  uint64_t pause_ms = WEFT_EXPORT_RETRY_LEAST_MS;
  int rc;
  while ((rc = ctl_collector_post (self->collector, data, size, &answer)) == WEFT_E_BUSY && answer.status) {
    uint64_t wait_ms = answer.retry_after_ms ? answer.retry_after_ms : pause_ms;
    if (weft_mono_ns () + wait_ms * WEFT_NS_PER_MS > end_ns)
      break;
    ctl_progress_now (&self->progress, "%llu executions; the collector is busy (status %ld)",
                      (unsigned long long) self->executions, answer.status);
    ctl_pause_ms ((unsigned) wait_ms);
    pause_ms = 2 * pause_ms < WEFT_EXPORT_RETRY_MOST_MS ? 2 * pause_ms : WEFT_EXPORT_RETRY_MOST_MS;
  }
  self->rejected += answer.rejected;
  if (*answer.why)
    memcpy (self->why, answer.why, sizeof self->why);
  return rc;
}

/* In a file, messages in a row are one message. */
static int take_message (const void *data, size_t size, uint32_t spans, void *arg)
{
  export_t *self = arg;
  int rc = self->collector                                  ? post (self, data, size)
           : fwrite (data, 1, size, self->file.out) == size ? 0
                                                            : WEFT_E_IO;
  self->number = errno;
  self->spans += rc == 0 ? spans : 0;
  return rc;
}

static int hand_on (export_t *self, ctl_execution_t **execution_p)
{
  self->executions++;
  say_progress (self);
  return self->perfetto ? ctl_perfetto_add (self->perfetto, execution_p)
                        : ctl_otlp_add (self->otlp, *execution_p);
}

/* ---- which ---------------------------------------------------------------- */

static int take_frame (const void *data, size_t size, void *arg)
{
  page_t *page = &((export_t *) arg)->page;
  if (page->count == PAGE)
    return WEFT_E_RANGE;
  int rc = ctl_execution_unpack (data, size, &page->execution[page->count]);
  page->count += rc == 0;
  return rc;
}

static int is_seen (const page_t *page, const ctl_execution_t *execution)
{
  for (uint32_t n = 0; n < page->seen_count && execution->start_ns == page->before_ns; n++)
    if (memcmp (page->seen[n], execution->task, WEFT_TASK_ID_SIZE) == 0)
      return 1;
  return 0;
}

/* Pages overlap in the moment of the last one: which of that moment have been there. */
static void note_seen (page_t *page)
{
  uint64_t last_ns = page->count ? page->execution[page->count - 1]->start_ns : 0;
  page->seen_count = 0;
  for (uint32_t n = 0; n < page->count; n++)
    if (page->execution[n]->start_ns == last_ns)
      memcpy (page->seen[page->seen_count++], page->execution[n]->task, WEFT_TASK_ID_SIZE);
  page->before_ns = last_ns;
}

static int hand_on_page (export_t *self)
{
  page_t *page = &self->page;
  int rc = 0;
  uint8_t skip[PAGE] = {0};
  for (uint32_t n = 0; n < page->count; n++)
    skip[n] = (uint8_t) is_seen (page, page->execution[n]);
  note_seen (page);
  for (uint32_t n = 0; rc == 0 && n < page->count && self->executions < self->limit; n++)
    if (!skip[n])
      rc = hand_on (self, &page->execution[n]);
  if (rc == 0 && self->otlp)
    rc = ctl_otlp_flush (self->otlp);
  while (page->count)
    ctl_execution_destroy (&page->execution[--page->count]);
  return rc;
}

/* The newest first, page after page, each from the last moment of the one before. *ret_said: a
 * failure is the controller's, and has been said. */
static int export_pages (export_t *self, json_t *request, int *ret_said)
{
  int rc = 0;
  self->more = 1;
  while (rc == 0 && self->more && self->executions < self->limit) {
    json_t *reply = NULL;
    uint64_t before_ns = self->page.before_ns;
    rc = ctl_client_ask (self->client, json_incref (request), take_frame, self, &reply);
    *ret_said = rc < 0;
    self->more = json_is_true (json_object_get (reply, "more"));
    json_decref (reply);
    if (rc == 0)
      rc = hand_on_page (self);
    /* After a whole page of one moment what else there is of it cannot be asked for. */
    uint64_t next_ns = self->page.before_ns - (self->page.before_ns == before_ns);
    json_object_set_new (request, "to_ns", json_integer ((json_int_t) next_ns));
  }
  return rc;
}

static int export_tasks (export_t *self, int *ret_said)
{
  int rc = 0;
  for (int n = 0; rc == 0 && n < self->call->operand_count; n++) {
    rc =
        ctl_client_ask (self->client, json_pack ("{s:s, s:s}", "op", "show", "task", self->call->operands[n]),
                        take_frame, self, NULL);
    *ret_said = rc < 0;
    self->page.before_ns = 0;
    if (rc == 0)
      rc = hand_on_page (self);
  }
  return rc;
}

/* NULL: said on stderr. */
static json_t *pages_request (export_t *self, int perfetto)
{
  json_t *request = ctl_which (self->call, "each", WEFT_EACH_MAX);
  self->limit = (uint64_t) json_integer_value (json_object_get (request, "limit"));
  if (!perfetto && !ctl_call_has (self->call, "limit"))
    self->limit = UINT64_MAX;
  json_object_set_new (request, "limit", json_integer (PAGE));
  return request;
}

/* ---- the verb ------------------------------------------------------------- */

static int usage (const char *why)
{
  weft_log_error ("export: %s; see `weft export --help`", why);
  return WEFT_E_USAGE;
}

/* An option says which executions. */
static int has_which (const ctl_call_t *call)
{
  static const char *const options[] = {"name",  "service", "slower",     "errors",
                                        "since", "last",    "instruction"};
  int some = 0;
  for (size_t n = 0; n < sizeof options / sizeof *options; n++)
    some |= ctl_call_has (call, options[n]);
  return some;
}

static int is_all (const ctl_call_t *call)
{
  return call->operand_count == 1 && strcmp (call->operands[0], "all") == 0;
}

/* Whether what was asked for is one of the things that there are. */
static int check (export_t *self, int *ret_perfetto)
{
  const ctl_call_t *call = self->call;
  const char *format = ctl_call_value (call, "format", NULL), *to = ctl_call_value (call, "to", NULL);
  self->path = ctl_call_value (call, "o", NULL);
  if (!format)
    return usage ("no --format given: otlp or perfetto is meant");
  *ret_perfetto = strcmp (format, "perfetto") == 0;
  if (!*ret_perfetto && strcmp (format, "otlp") != 0) {
    weft_log_error ("export: unknown format '%s': otlp and perfetto are known; see `weft export --help`",
                    format);
    return WEFT_E_USAGE;
  }
  if (*ret_perfetto && to)
    return usage ("--to is for --format otlp: Perfetto opens files; give -o FILE");
  if (to && self->path)
    return usage ("--to and -o exclude each other: one place at a time");
  if (!to && !self->path)
    return usage (*ret_perfetto ? "no place to write to: give -o FILE"
                                : "no place for it: give --to URL or -o FILE");
  if (self->path && !*self->path)
    return usage ("-o names no file: it is empty");
  if (call->operand_count == 0 && !has_which (call))
    return usage ("it is not said which executions: give TASK, --name, --since or all");
  if (call->operand_count && !is_all (call) && has_which (call))
    return usage ("TASK excludes --name, --since and the like: it is one execution");
  self->limit = UINT64_MAX;
  return 0;
}

static int open_place (export_t *self, int perfetto)
{
  char why[200] = "";
  const char *to = ctl_call_value (self->call, "to", NULL);
  ctl_otlp_options_t options = {WEFT_OTLP_SPANS_MAX, place_of, take_message, self};
  int rc = to ? ctl_collector_new (to, &self->collector, why, sizeof why) : 0;
  if (self->collector)
    ctl_collector_watch (self->collector, say_progress, self);
  if (rc < 0)
    weft_log_error ("cannot use URL '%s' for --to: %s", to, *why ? why : weft_status_text (rc));
  if (rc < 0)
    return rc;
  if (perfetto)
    self->perfetto = ctl_perfetto_new (place_of, self);
  else
    self->otlp = ctl_otlp_new (&options);
  if (!self->perfetto && !self->otlp) {
    weft_log_error ("cannot export: %s", weft_status_text (WEFT_E_NOMEM));
    return WEFT_E_NOMEM;
  }
  return 0;
}

/* Before anything is asked: a place that cannot be written is said at once. */
static int open_file (export_t *self)
{
  int rc = self->path ? ctl_outfile_open (self->path, &self->file) : 0;
  if (rc < 0)
    weft_log_error ("cannot write %s: %s; choose another place with -o", self->path, strerror (errno));
  return rc;
}

static int run (export_t *self, json_t *request, int *ret_said)
{
  int rc = ctl_roster_read (self->client, NULL, &self->roster);
  *ret_said = rc < 0;
  if (rc == 0)
    rc = request ? export_pages (self, request, ret_said) : export_tasks (self, ret_said);
  if (rc == 0 && self->perfetto && self->executions)
    ctl_progress_now (&self->progress, "writing %llu executions", (unsigned long long) self->executions);
  if (rc == 0 && self->perfetto && self->executions)
    rc = ctl_perfetto_write (self->perfetto, self->file.out);
  if (rc < 0 && self->perfetto)
    self->number = errno;
  if (rc == 0 && self->executions == 0)
    rc = WEFT_E_NOT_FOUND;
  if (!self->path)
    return rc;
  int closed = ctl_outfile_close (&self->file, rc);
  if (rc == 0)
    self->number = errno;
  return closed;
}

static void say_failure (const export_t *self, int rc)
{
  if (rc == WEFT_E_NOT_FOUND)
    weft_log_error ("nothing to export: no such executions; `weft tasks --each` lists those that there are");
  else if (self->collector && (rc == WEFT_E_BUSY || rc == WEFT_E_DENIED))
    weft_log_error (
        "cannot send to %s: %s; %llu spans were taken before; see that it listens there for OTLP/HTTP",
        ctl_collector_url (self->collector), self->why, (unsigned long long) self->spans);
  else
    weft_log_error ("cannot write %s: %s; choose another place with -o", self->path ? self->path : "spans",
                    rc == WEFT_E_IO ? strerror (self->number) : weft_status_text (rc));
}

/* What came of it. A collector that would not have some of it is a failure, too. */
static int say_success (const export_t *self)
{
  const char *where = self->path ? self->path : ctl_collector_url (self->collector);
  if (self->more && self->executions >= self->limit)
    weft_log_error (
        "only the newest %llu executions were exported: raise --limit, or narrow down with --name or --since",
        (unsigned long long) self->executions);
  if (self->rejected)
    weft_log_error ("%s would not take %llu of the spans: %s; its log may say more", where,
                    (unsigned long long) self->rejected, *self->why ? self->why : "it gives no reason");
  if (strcmp (where, "-") != 0)
    printf ("%s: %llu execution%s\n", where, (unsigned long long) self->executions,
            self->executions == 1 ? "" : "s");
  return self->rejected ? WEFT_E_DENIED : 0;
}

static int export(export_t *self, json_t *request, int perfetto)
{
  int rc = open_place (self, perfetto), said = 0;
  ctl_progress_begin (&self->progress);
  if (rc == 0)
    rc = ctl_client_open (self->call->address, CTL_CLIENT_STORE, &self->client);
  if (rc == 0)
    rc = open_file (self);
  if (rc < 0)
    return rc;
  rc = run (self, request, &said);
  ctl_progress_wipe (&self->progress);
  if (rc == 0)
    return say_success (self);
  if (!said)
    say_failure (self, rc);
  return rc;
}

int ctl_verb_export (ctl_call_t *call)
{
  export_t *self = calloc (1, sizeof *self);
  json_t *request = NULL;
  int perfetto = 0, rc = self ? 0 : WEFT_E_NOMEM;
  if (rc == 0) {
    self->call = call;
    rc = check (self, &perfetto);
  }
  if (rc == 0 && (call->operand_count == 0 || is_all (call)) && !(request = pages_request (self, perfetto)))
    rc = WEFT_E_USAGE;
  if (rc == 0)
    rc = export(self, request, perfetto);
  if (self) {
    ctl_otlp_destroy (&self->otlp);
    ctl_perfetto_destroy (&self->perfetto);
    ctl_collector_destroy (&self->collector);
    ctl_roster_clear (&self->roster);
    ctl_client_close (&self->client);
  }
  json_decref (request);
  free (self);
  return rc == WEFT_E_USAGE ? CTL_EXIT_USAGE : rc < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
