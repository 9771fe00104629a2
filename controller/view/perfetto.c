/* SPDX-License-Identifier: Apache-2.0 */
#include "perfetto.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/ids.h"
#include "../../common/status.h"
#include "../task/utf8.h"
#include "lanes.h"

#define NOTHING UINT32_MAX

/* One span in its place. */
typedef struct {
  uint64_t start_ns, end_ns, id, parent;
  uint32_t execution, subtask;
  uint32_t process, lane;
  uint32_t above;   /* the one that it belongs below, NOTHING: none */
  uint32_t request; /* of a SERVER span: the one of the request that led to it, NOTHING: none */
  uint8_t is_client;
} item_t;

typedef struct {
  ctl_owner_t owner;
  ctl_lanes_t *lanes;
} process_t;

struct ctl_perfetto_t {
  ctl_place_fn *place;
  void *arg;
  ctl_execution_t **executions;
  uint32_t execution_count, execution_room;
  item_t *items;
  uint32_t item_count, item_room;
  process_t *processes;
  uint32_t process_count, process_room;
  uint32_t *client_of, *server_of; /* of the execution that is being added, by subtask: its items */
};

ctl_perfetto_t *ctl_perfetto_new (ctl_place_fn *place, void *arg)
{
  ctl_perfetto_t *self = calloc (1, sizeof *self);
  if (self) {
    self->place = place;
    self->arg = arg;
  }
  return self;
}

void ctl_perfetto_destroy (ctl_perfetto_t **self_p)
{
  ctl_perfetto_t *self = *self_p;
  if (!self)
    return;
  for (uint32_t n = 0; n < self->execution_count; n++)
    ctl_execution_destroy (&self->executions[n]);
  for (uint32_t n = 0; n < self->process_count; n++)
    ctl_lanes_destroy (&self->processes[n].lanes);
  free (self->executions);
  free (self->items);
  free (self->processes);
  free (self);
  *self_p = NULL;
}

/* ---- taking in ------------------------------------------------------------ */

/* The list with room for one more. NULL when out of memory: the old one is as it was. */
static void *grown (void *list, uint32_t count, uint32_t *room, size_t size)
{
  if (count < *room)
    return list;
  uint32_t wanted = *room ? 2 * *room : 64;
  void *larger = realloc (list, wanted * size);
  if (larger)
    *room = wanted;
  return larger;
}

static int process_of (ctl_perfetto_t *self, const ctl_owner_t *owner, uint32_t *ret_process)
{
  for (uint32_t n = 0; n < self->process_count; n++)
    if (ctl_owner_is (&self->processes[n].owner, owner)) {
      if (!*self->processes[n].owner.vm)
        self->processes[n].owner = *owner; /* may know more */
      *ret_process = n;
      return 0;
    }
  process_t *processes = grown (self->processes, self->process_count, &self->process_room, sizeof *processes);
  ctl_lanes_t *lanes = processes ? ctl_lanes_new () : NULL;
  self->processes = processes ? processes : self->processes;
  if (!lanes)
    return WEFT_E_NOMEM;
  *ret_process = self->process_count;
  self->processes[self->process_count++] = (process_t){*owner, lanes};
  return 0;
}

static int add_span (const ctl_span_t *span, void *arg)
{
  ctl_perfetto_t *self = arg;
  const ctl_execution_t *execution = self->executions[self->execution_count - 1];
  uint32_t parent = execution->subtasks[span->subtask].parent, process = 0;
  item_t *items = grown (self->items, self->item_count, &self->item_room, sizeof *items);
  if (!items)
    return WEFT_E_NOMEM;
  self->items = items;
  int rc = process_of (self, &span->owner, &process);
  if (rc)
    return rc;
  item_t item = {.start_ns = span->start_ns,
                 .end_ns = span->end_ns,
                 .id = span->id,
                 .parent = span->parent,
                 .execution = self->execution_count - 1,
                 .subtask = span->subtask,
                 .process = process,
                 .lane = CTL_LANE_NONE,
                 .above = NOTHING,
                 .request = NOTHING,
                 .is_client = (uint8_t) span->is_client};
  if (span->is_client) {
    item.above = parent == CTL_NO_PARENT ? NOTHING : self->server_of[parent];
    self->client_of[span->subtask] = self->item_count;
  } else {
    item.request = span->has_request ? self->client_of[span->request] : NOTHING;
    self->server_of[span->subtask] = self->item_count;
  }
  self->items[self->item_count++] = item;
  return 0;
}

int ctl_perfetto_add (ctl_perfetto_t *self, ctl_execution_t **execution_p)
{
  ctl_execution_t *execution = *execution_p;
  *execution_p = NULL;
  ctl_execution_t **executions =
      grown (self->executions, self->execution_count, &self->execution_room, sizeof (void *));
  self->executions = executions ? executions : self->executions;
  self->client_of = executions ? malloc ((2ul * execution->count + 1) * sizeof *self->client_of) : NULL;
  if (!self->client_of) {
    ctl_execution_destroy (&execution);
    return WEFT_E_NOMEM;
  }
  self->executions[self->execution_count++] = execution;
  self->server_of = self->client_of + execution->count;
  memset (self->client_of, 0xff, 2ul * execution->count * sizeof *self->client_of);
  int rc = ctl_spans_each (execution, add_span, self);
  free (self->client_of);
  self->client_of = self->server_of = NULL;
  return rc;
}

/* ---- places --------------------------------------------------------------- */

/* As lanes wants them. Callers were told before callees. */
static int compare_items (const void *left, const void *right, void *arg)
{
  const item_t *items = arg;
  uint32_t l = *(const uint32_t *) left, r = *(const uint32_t *) right;
  const item_t *a = &items[l], *b = &items[r];
  if (a->start_ns != b->start_ns)
    return a->start_ns < b->start_ns ? -1 : 1;
  if (a->end_ns != b->end_ns)
    return a->end_ns > b->end_ns ? -1 : 1;
  return l < r ? -1 : l > r;
}

static int give_lanes (ctl_perfetto_t *self, const uint32_t *order)
{
  int rc = 0;
  for (uint32_t n = 0; rc == 0 && n < self->item_count; n++) {
    item_t *item = &self->items[order[n]];
    const item_t *above = item->above == NOTHING ? NULL : &self->items[item->above];
    uint32_t wanted = above && above->process == item->process ? above->lane : CTL_LANE_NONE;
    rc = ctl_lanes_take (self->processes[item->process].lanes, item->start_ns, item->end_ns, wanted,
                         &item->lane);
  }
  return rc;
}

/* ---- writing -------------------------------------------------------------- */

static void put_text (FILE *out, const char *key, const char *text)
{
  json_t *json = ctl_utf8_json (text);
  fprintf (out, "\"%s\":", key);
  /* Without memory: an error that the end of the file notices. */
  if (!json || json_dumpf (json, out, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) < 0)
    fputs ("null", out);
  json_decref (json);
}

static void put_us (FILE *out, const char *key, uint64_t ns)
{
  fprintf (out, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned) (ns % 1000));
}

static void put_place (FILE *out, const item_t *item)
{
  fprintf (out, ",\"pid\":%u,\"tid\":%u", item->process + 1, item->lane + 1);
}

static void put_metadata (FILE *out, const char *what, uint32_t pid, uint32_t tid, const char *key,
                          const char *text)
{
  fprintf (out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{", what, pid, tid);
  put_text (out, key, text);
  fputs ("}},\n", out);
}

static void put_process (ctl_perfetto_t *self, FILE *out, uint32_t number)
{
  const ctl_owner_t *owner = &self->processes[number].owner;
  ctl_place_t place = {0};
  char labels[512] = "", name[64];
  if (self->place && ctl_owner_is_known (owner))
    self->place (owner->instance, &place, self->arg);
  const char *service = *owner->service ? owner->service : place.service;
  const char *vm = *owner->vm ? owner->vm : place.vm;
  long long pid = owner->pid ? owner->pid : place.pid;
  put_metadata (out, "process_name", number + 1, 0, "name", service && *service ? service : "unknown");
  size_t at = 0;
  if (pid)
    at = (size_t) snprintf (labels, sizeof labels, "pid %lld", pid);
  if (vm && *vm)
    at += (size_t) snprintf (labels + at, sizeof labels - at, "%s%s%s%s", at ? ", " : "", vm,
                             place.version ? " " : "", place.version ? place.version : "");
  if (place.host && *place.host && at < sizeof labels)
    snprintf (labels + at, sizeof labels - at, "%son %s", at ? ", " : "", place.host);
  if (*labels)
    put_metadata (out, "process_labels", number + 1, 0, "labels", labels);
  for (uint32_t lane = 0; lane < ctl_lanes_count (self->processes[number].lanes); lane++) {
    snprintf (name, sizeof name, "in flight %u", lane + 1);
    put_metadata (out, "thread_name", number + 1, lane + 1, "name", name);
  }
}

static void put_id (FILE *out, const char *key, uint64_t id)
{
  if (id)
    fprintf (out, ",\"%s\":\"%016" PRIx64 "\"", key, id);
}

/* What is known of the task as a whole stands at its top. */
static void put_task (FILE *out, const ctl_execution_t *execution)
{
  fprintf (out, ",\"kind\":\"%s\",\"complete\":%s", execution->kind == CTL_KIND_ORPHAN ? "orphan" : "task",
           execution->complete ? "true" : "false");
  if (execution->hosts > 1)
    fprintf (out, ",\"hosts\":%u,\"clock\":\"%s\"", execution->hosts, execution->aligned ? "aligned" : "raw");
  if (execution->aligned)
    fprintf (out, ",\"clock_uncertainty_ns\":%" PRIu64, execution->clock_uncertainty_ns);
}

static void put_args (FILE *out, const ctl_execution_t *execution, const item_t *item)
{
  const ctl_subtask_t *subtask = &execution->subtasks[item->subtask];
  char task[2 * WEFT_TASK_ID_SIZE + 1] = "";
  int leaf = ctl_subtask_is_leaf (subtask);
  weft_hex_put (task, execution->task, WEFT_TASK_ID_SIZE);
  fprintf (out, ",\"args\":{\"task\":\"%.32s\"", task);
  put_id (out, "span", item->id);
  put_id (out, "parent", item->parent);
  fprintf (out, ",\"hop\":\"%s\"", ctl_hop_text (subtask->hop));
  if (leaf && *subtask->service) {
    fputc (',', out);
    put_text (out, "peer", subtask->service);
  }
  if (subtask->status && (leaf || !item->is_client))
    fprintf (out, ",\"status\":%u", subtask->status);
  if (subtask->error && (leaf || item->is_client || item->request == NOTHING))
    fprintf (out, ",\"error\":\"%s\"", ctl_error_text (subtask->error));
  if (subtask->orphan)
    fprintf (out, ",\"orphan\":\"%s\"", ctl_reason_text (subtask->orphan));
  if (subtask->hop == CTL_HOP_OPAQUE)
    fprintf (out, ",\"calls\":%u,\"wait_ns\":%" PRIu64 ",\"bytes_out\":%" PRIu64 ",\"bytes_in\":%" PRIu64,
             subtask->calls, subtask->wait_ns, subtask->bytes_out, subtask->bytes_in);
  if (!item->is_client) {
    fprintf (out, ",\"self_ns\":%" PRIu64, subtask->self_ns);
    if (subtask->cpu_ns != WEFT_NS_NONE)
      fprintf (out, ",\"cpu_ns\":%" PRIu64, subtask->cpu_ns);
    if (subtask->on_critical_path)
      fputs (",\"critical\":true", out);
  }
  if (item->subtask == 0 && item->request == NOTHING)
    put_task (out, execution);
  fputc ('}', out);
}

static void put_span (ctl_perfetto_t *self, FILE *out, const item_t *item, uint64_t zero_ns)
{
  const ctl_execution_t *execution = self->executions[item->execution];
  const char *category = !item->is_client                                           ? "subtask"
                         : execution->subtasks[item->subtask].hop == CTL_HOP_OPAQUE ? "opaque"
                                                                                    : "request";
  fputs ("{\"ph\":\"X\",", out);
  put_text (out, "name", execution->subtasks[item->subtask].name);
  fprintf (out, ",\"cat\":\"%s\"", category);
  put_place (out, item);
  put_us (out, "ts", item->start_ns - zero_ns);
  put_us (out, "dur", item->end_ns - item->start_ns);
  put_args (out, execution, item);
  fputs ("},\n", out);
}

static void put_arrow (FILE *out, const char *phase, uint32_t number, const item_t *item, uint64_t zero_ns)
{
  fprintf (out, "{\"ph\":\"%s\",\"name\":\"request\",\"cat\":\"request\",\"id\":%u", phase, number);
  put_place (out, item);
  put_us (out, "ts", item->start_ns - zero_ns);
  fputs (*phase == 'f' ? ",\"bp\":\"e\"},\n" : "},\n", out);
}

static void write_all (ctl_perfetto_t *self, FILE *out, const uint32_t *order)
{
  uint64_t zero_ns = self->item_count ? self->items[order[0]].start_ns : 0;
  uint32_t arrows = 0;
  fputs ("{\"traceEvents\":[\n", out);
  for (uint32_t n = 0; n < self->process_count; n++)
    put_process (self, out, n);
  for (uint32_t n = 0; n < self->item_count; n++)
    put_span (self, out, &self->items[order[n]], zero_ns);
  for (uint32_t n = 0; n < self->item_count; n++) {
    const item_t *item = &self->items[n];
    if (item->request == NOTHING)
      continue;
    put_arrow (out, "s", ++arrows, &self->items[item->request], zero_ns);
    put_arrow (out, "f", arrows, item, zero_ns);
  }
  /* Every event ends with a comma: this one does not. */
  fprintf (out,
           "{\"ph\":\"M\",\"name\":\"trace_name\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"weft\"}}\n],\n"
           "\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"made_by\":\"weft %s\",\"start_ns\":\"%" PRIu64
           "\"}}\n",
           WEFT_VERSION, zero_ns);
}

int ctl_perfetto_write (ctl_perfetto_t *self, FILE *out)
{
  uint32_t *order = malloc ((self->item_count + 1ul) * sizeof *order);
  if (!order)
    return WEFT_E_NOMEM;
  for (uint32_t n = 0; n < self->item_count; n++)
    order[n] = n;
  qsort_r (order, self->item_count, sizeof *order, compare_items, self->items);
  int rc = give_lanes (self, order);
  if (rc == 0) {
    write_all (self, out, order);
    rc = fflush (out) == 0 && !ferror (out) ? 0 : WEFT_E_IO;
  }
  int number = errno;
  free (order);
  errno = number;
  return rc;
}
