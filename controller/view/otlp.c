/* SPDX-License-Identifier: Apache-2.0 */
#include "otlp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/ids.h"
#include "../../common/status.h"
#include "../task/links.h"
#include "otlp_parts.h"

#define SCHEMA_URL "https://opentelemetry.io/schemas/1.37.0"
#define ID_SIZE    8

/* One span with what it points to; `next` of its resource. */
typedef struct span_t {
  Otlp__Span pb;
  Otlp__Status status;
  struct span_t *next;
  uint8_t task[WEFT_TASK_ID_SIZE], id[ID_SIZE], parent[ID_SIZE];
} span_t;

typedef struct resource_t {
  struct resource_t *next;
  ctl_owner_t owner;
  span_t *first, **end;
  size_t count;
} resource_t;

struct ctl_otlp_t {
  ctl_otlp_options_t options;
  ctl_pool_t *pool; /* all that follows but `known` */
  resource_t *resources, *last;
  size_t resource_count;
  uint32_t waiting;
  const ctl_execution_t *execution; /* that is being added */
  ctl_links_t *links;               /* of it */
};

ctl_otlp_t *ctl_otlp_new (const ctl_otlp_options_t *options)
{
  ctl_otlp_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  self->options = *options;
  self->pool = ctl_pool_new ();
  if (!self->pool)
    ctl_otlp_destroy (&self);
  return self;
}

void ctl_otlp_destroy (ctl_otlp_t **self_p)
{
  if (!*self_p)
    return;
  ctl_pool_destroy (&(*self_p)->pool);
  free (*self_p);
  *self_p = NULL;
}

uint32_t ctl_otlp_waiting (const ctl_otlp_t *self)
{
  return self->waiting;
}

/* ---- whose it is ---------------------------------------------------------- */

static resource_t *resource_of (ctl_otlp_t *self, const ctl_owner_t *owner)
{
  if (self->last && ctl_owner_is (&self->last->owner, owner))
    return self->last;
  for (resource_t *one = self->resources; one; one = one->next)
    if (ctl_owner_is (&one->owner, owner))
      return self->last = one;
  resource_t *made = ctl_pool_take (self->pool, sizeof *made);
  if (!made)
    return NULL;
  *made = (resource_t){.next = self->resources, .owner = *owner, .end = &made->first};
  self->resources = self->last = made;
  self->resource_count++;
  return made;
}

static Otlp__Resource *resource_pb (ctl_otlp_t *self, const ctl_owner_t *owner)
{
  ctl_attributes_t attributes = {.pool = self->pool};
  ctl_place_t place = {0};
  Otlp__Resource *made = ctl_pool_take (self->pool, sizeof *made);
  char uuid[37] = "";
  int known = ctl_owner_is_known (owner);
  if (known)
    weft_uuid_put (uuid, owner->instance);
  if (known && self->options.place)
    self->options.place (owner->instance, &place, self->options.arg);
  const char *vm = *owner->vm ? owner->vm : place.vm;
  int64_t pid = owner->pid ? owner->pid : place.pid;
  ctl_attributes_text (&attributes, "service.name", *owner->service ? owner->service : place.service);
  ctl_attributes_part (&attributes, "service.instance.id", uuid, strlen (uuid));
  ctl_attributes_text (&attributes, "host.name", place.host);
  if (pid > 0)
    ctl_attributes_number (&attributes, "process.pid", (uint64_t) pid);
  ctl_attributes_text (&attributes, "process.runtime.name", vm && strcmp (vm, "node") == 0 ? "nodejs" : vm);
  ctl_attributes_text (&attributes, "process.runtime.version", place.version);
  if (!made)
    return NULL;
  otlp__resource__init (made);
  made->n_attributes = attributes.count;
  made->attributes = ctl_attributes_done (&attributes);
  return made->attributes ? made : NULL;
}

/* ---- spans ---------------------------------------------------------------- */

static void put_id (uint8_t bytes[ID_SIZE], uint64_t id)
{
  for (int n = 0; n < ID_SIZE; n++)
    bytes[n] = (uint8_t) (id >> (8 * (ID_SIZE - 1 - n)));
}

static span_t *span_new (ctl_otlp_t *self, const ctl_span_t *told)
{
  resource_t *resource = resource_of (self, &told->owner);
  span_t *span = resource ? ctl_pool_take (self->pool, sizeof *span) : NULL;
  if (!span)
    return NULL;
  otlp__span__init (&span->pb);
  memcpy (span->task, self->execution->task, WEFT_TASK_ID_SIZE);
  put_id (span->id, told->id);
  put_id (span->parent, told->parent);
  span->pb.trace_id = (ProtobufCBinaryData){sizeof span->task, span->task};
  span->pb.span_id = (ProtobufCBinaryData){sizeof span->id, span->id};
  if (told->parent)
    span->pb.parent_span_id = (ProtobufCBinaryData){sizeof span->parent, span->parent};
  span->pb.kind = told->is_client ? OTLP__KIND__KIND_CLIENT : OTLP__KIND__KIND_SERVER;
  span->pb.start_time_unix_nano = told->start_ns;
  span->pb.end_time_unix_nano = told->end_ns;
  span->next = NULL;
  *resource->end = span;
  resource->end = &span->next;
  resource->count++;
  self->waiting++;
  return span;
}

/* For people; by the conventions none where the HTTP status says it. */
static const char *const messages[] = {
    [WEFT_ERROR_REFUSED] = "the connection was refused",
    [WEFT_ERROR_TIMEOUT] = "no answer within the time that the caller waits",
    [WEFT_ERROR_RESET] = "the connection was reset before the answer was complete",
    [WEFT_ERROR_CLOSED] = "the connection was closed before the answer was complete",
};

/* `message` may be NULL. */
static void set_error (span_t *span, ctl_attributes_t *attributes, const char *type, const char *message)
{
  otlp__status__init (&span->status);
  span->status.code = OTLP__CODE__CODE_ERROR;
  if (message)
    span->status.message = (char *) (uintptr_t) message;
  span->pb.status = &span->status;
  ctl_attributes_part (attributes, "error.type", type, strlen (type));
}

/* One that is open has not failed (yet). */
static void set_no_answer (span_t *span, ctl_attributes_t *attributes, uint8_t error)
{
  if (error && error != WEFT_ERROR_OPEN)
    set_error (span, attributes, ctl_error_text (error),
               error < sizeof messages / sizeof *messages ? messages[error] : NULL);
}

/* By the conventions a server has failed from 500 on, a client from 400 on. */
static void set_http_status (span_t *span, ctl_attributes_t *attributes, uint16_t status, uint16_t failed)
{
  char text[8];
  if (!status)
    return;
  ctl_attributes_number (attributes, "http.response.status_code", status);
  snprintf (text, sizeof text, "%u", status);
  if (status >= failed && !span->pb.status)
    set_error (span, attributes, text, NULL);
}

/* What is known of the task as a whole stands at its top. */
static void put_task (ctl_attributes_t *attributes, const ctl_execution_t *execution)
{
  static const char *const hop_keys[CTL_HOP_COUNT] = {
      [CTL_HOP_PROVEN] = "weft.hops.proven",
      [CTL_HOP_CAPTURE_ONLY] = "weft.hops.capture_only",
      [CTL_HOP_EMBED_ONLY] = "weft.hops.embed_only",
      [CTL_HOP_OPAQUE] = "weft.hops.opaque",
  };
  int orphan = execution->kind == CTL_KIND_ORPHAN;
  ctl_attributes_text (attributes, "weft.kind", orphan ? "orphan" : "task");
  ctl_attributes_flag (attributes, "weft.complete", execution->complete);
  for (int hop = CTL_HOP_PROVEN; hop < CTL_HOP_COUNT; hop++)
    ctl_attributes_number (attributes, hop_keys[hop], execution->hops[hop]);
  if (execution->truncated)
    ctl_attributes_number (attributes, "weft.truncated", execution->truncated);
  if (execution->hosts > 1) {
    ctl_attributes_number (attributes, "weft.hosts", execution->hosts);
    ctl_attributes_text (attributes, "weft.clock", execution->aligned ? "aligned" : "raw");
  }
  if (execution->aligned)
    ctl_attributes_number (attributes, "weft.clock_uncertainty_ns", execution->clock_uncertainty_ns);
  if (orphan)
    ctl_attributes_text (attributes, "weft.orphan.origin", execution->origin);
}

static void put_opaque (ctl_attributes_t *attributes, const ctl_subtask_t *leaf)
{
  static const char *const vague[] = {"", "unknown", "tcp", "unix"};
  int named = 1;
  for (size_t n = 0; n < sizeof vague / sizeof *vague; n++)
    named &= strcmp (leaf->name, vague[n]) != 0;
  if (named)
    ctl_attributes_text (attributes, "network.protocol.name", leaf->name);
  if (strcmp (leaf->service, "unix socket") == 0)
    ctl_attributes_text (attributes, "network.transport", "unix");
  ctl_attributes_number (attributes, "weft.calls", leaf->calls);
  ctl_attributes_number (attributes, "weft.wait_ns", leaf->wait_ns);
  ctl_attributes_number (attributes, "weft.bytes_out", leaf->bytes_out);
  ctl_attributes_number (attributes, "weft.bytes_in", leaf->bytes_in);
}

/* The request, as its sender tells of it. */
static void put_client (span_t *span, ctl_attributes_t *attributes, const ctl_subtask_t *subtask)
{
  int leaf = ctl_subtask_is_leaf (subtask);
  set_no_answer (span, attributes, subtask->error);
  if (subtask->hop == CTL_HOP_OPAQUE) {
    put_opaque (attributes, subtask);
  } else {
    ctl_attributes_http (attributes, subtask->name, "url.template");
    if (leaf || !subtask->error) /* else the callee's status never reached its caller */
      set_http_status (span, attributes, subtask->status, 400);
  }
  if (leaf)
    ctl_attributes_peer (attributes, subtask->service);
  if (subtask->inside)
    ctl_attributes_flag (attributes, "weft.copy_missing", 1);
  if (subtask->error == WEFT_ERROR_OPEN)
    ctl_attributes_flag (attributes, "weft.open", 1);
}

static void put_server (span_t *span, ctl_attributes_t *attributes, const ctl_subtask_t *subtask,
                        int has_request)
{
  /* An error of both sides is the sender's where this one has answered. */
  if (!has_request || !subtask->status)
    set_no_answer (span, attributes, subtask->error);
  ctl_attributes_http (attributes, subtask->name, "http.route");
  set_http_status (span, attributes, subtask->status, 500);
  ctl_attributes_number (attributes, "weft.self_ns", subtask->self_ns);
  if (subtask->cpu_ns != WEFT_NS_NONE)
    ctl_attributes_number (attributes, "weft.cpu_ns", subtask->cpu_ns);
  if (subtask->on_critical_path)
    ctl_attributes_flag (attributes, "weft.critical", 1);
  if (!subtask->answered)
    ctl_attributes_flag (attributes, "weft.open", 1);
}

/* What the tree cannot show: the other subtasks that this request led to, or that sent it. */
static int put_links (ctl_otlp_t *self, span_t *span, uint32_t index)
{
  ctl_link_t links[CTL_LINKS_MAX];
  uint32_t count = ctl_links_of (self->links, index, links);
  Otlp__Link **list = ctl_pool_take (self->pool, (count + 1) * sizeof (void *));
  for (uint32_t n = 0; list && n < count; n++) {
    ctl_attributes_t attributes = {.pool = self->pool};
    struct {
      Otlp__Link pb;
      uint8_t id[ID_SIZE];
    } *made = ctl_pool_take (self->pool, sizeof *made);
    ctl_attributes_text (&attributes, "weft.link", ctl_link_text (links[n].kind));
    Otlp__KeyValue **pairs = ctl_attributes_done (&attributes);
    if (!made || !pairs)
      return WEFT_E_NOMEM;
    otlp__link__init (&made->pb);
    put_id (made->id, links[n].subtask);
    made->pb.trace_id = span->pb.trace_id;
    made->pb.span_id = (ProtobufCBinaryData){sizeof made->id, made->id};
    made->pb.attributes = pairs;
    made->pb.n_attributes = attributes.count;
    list[n] = &made->pb;
  }
  span->pb.links = list;
  span->pb.n_links = list ? count : 0;
  return list ? 0 : WEFT_E_NOMEM;
}

static int add_span (const ctl_span_t *told, void *arg)
{
  ctl_otlp_t *self = arg;
  const ctl_subtask_t *subtask = &self->execution->subtasks[told->subtask];
  ctl_attributes_t attributes = {.pool = self->pool};
  int rc = self->waiting >= self->options.spans_max ? ctl_otlp_flush (self) : 0; /* O2 */
  if (rc)
    return rc;
  const char *name = ctl_pool_utf8 (self->pool, subtask->name);
  span_t *span = name ? span_new (self, told) : NULL;
  if (!span)
    return WEFT_E_NOMEM;
  span->pb.name = (char *) (uintptr_t) name;
  ctl_attributes_text (&attributes, "weft.hop", ctl_hop_text (subtask->hop));
  if (told->shift_ns)
    ctl_attributes_signed (&attributes, "weft.clock_shift_ns", told->shift_ns);
  if (told->is_client)
    put_client (span, &attributes, subtask);
  else
    put_server (span, &attributes, subtask, told->has_request);
  if (!told->is_client)
    rc = put_links (self, span, told->subtask);
  if (subtask->orphan)
    ctl_attributes_text (&attributes, "weft.orphan.reason", ctl_reason_text (subtask->orphan));
  if (told->is_top)
    put_task (&attributes, self->execution);
  span->pb.attributes = ctl_attributes_done (&attributes);
  if (!span->pb.attributes)
    return WEFT_E_NOMEM;
  span->pb.n_attributes = attributes.count;
  return rc;
}

int ctl_otlp_add (ctl_otlp_t *self, const ctl_execution_t *execution)
{
  self->execution = execution;
  self->links = ctl_links_new (execution);
  int rc = self->links ? ctl_spans_each (execution, add_span, self) : WEFT_E_NOMEM;
  ctl_links_destroy (&self->links);
  return rc;
}

/* ---- messages ------------------------------------------------------------- */

static Otlp__ResourceSpans *resource_spans (ctl_otlp_t *self, const resource_t *resource)
{
  static Otlp__Scope scope = {PROTOBUF_C_MESSAGE_INIT (&otlp__scope__descriptor), (char *) (uintptr_t) "weft",
                              (char *) (uintptr_t) WEFT_VERSION};
  struct {
    Otlp__ResourceSpans all;
    Otlp__ScopeSpans scoped;
    Otlp__ScopeSpans *list;
  } *made = ctl_pool_take (self->pool, sizeof *made);
  Otlp__Span **spans = ctl_pool_take (self->pool, (resource->count + 1) * sizeof (void *));
  Otlp__Resource *pb = resource_pb (self, &resource->owner);
  if (!made || !spans || !pb)
    return NULL;
  otlp__resource_spans__init (&made->all);
  otlp__scope_spans__init (&made->scoped);
  made->list = &made->scoped;
  made->all.resource = pb;
  made->all.n_scope_spans = 1;
  made->all.scope_spans = &made->list;
  made->all.schema_url = (char *) (uintptr_t) SCHEMA_URL;
  made->scoped.scope = &scope;
  made->scoped.spans = spans;
  for (span_t *span = resource->first; span; span = span->next)
    spans[made->scoped.n_spans++] = &span->pb;
  return &made->all;
}

static int pack (ctl_otlp_t *self)
{
  Otlp__Request request = OTLP__REQUEST__INIT;
  request.resource_spans = ctl_pool_take (self->pool, (self->resource_count + 1) * sizeof (void *));
  for (const resource_t *one = self->resources; one && request.resource_spans; one = one->next) {
    Otlp__ResourceSpans *spans = resource_spans (self, one);
    if (!spans)
      return WEFT_E_NOMEM;
    request.resource_spans[request.n_resource_spans++] = spans;
  }
  size_t size = otlp__request__get_packed_size (&request);
  uint8_t *data = request.resource_spans ? malloc (size) : NULL;
  if (!data)
    return WEFT_E_NOMEM;
  otlp__request__pack (&request, data);
  int rc = self->options.take (data, size, self->waiting, self->options.arg);
  free (data);
  return rc;
}

int ctl_otlp_flush (ctl_otlp_t *self)
{
  int rc = self->waiting ? pack (self) : 0;
  ctl_pool_reset (self->pool);
  self->resources = self->last = NULL;
  self->resource_count = 0;
  self->waiting = 0;
  return rc;
}

int ctl_otlp_read_answer (const void *data, size_t size, uint64_t *ret_rejected, char *why, size_t why_size)
{
  Otlp__Response *response = otlp__response__unpack (NULL, size, data);
  if (!response)
    return WEFT_E_MALFORMED;
  const Otlp__PartialSuccess *partial = response->partial_success;
  *ret_rejected = partial && partial->rejected_spans > 0 ? (uint64_t) partial->rejected_spans : 0;
  snprintf (why, why_size, "%s", partial ? partial->error_message : "");
  otlp__response__free_unpacked (response, NULL);
  return 0;
}
