/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/ids.h"
#include "../../common/status.h"
#include "../task/links.h"
#include "../task/utf8.h"

json_t *ctl_json_text (const char *text)
{
  return ctl_utf8_json (text);
}

static json_t *id (uint64_t value)
{
  char hex[16];
  weft_hex_put_u64 (hex, value);
  return json_stringn (hex, sizeof hex);
}

static json_t *task_id (const uint8_t task[WEFT_TASK_ID_SIZE])
{
  char hex[2 * WEFT_TASK_ID_SIZE];
  weft_hex_put (hex, task, WEFT_TASK_ID_SIZE);
  return json_stringn (hex, sizeof hex);
}

static json_t *uuid (const uint8_t bytes[WEFT_UUID_SIZE])
{
  char text[37];
  weft_uuid_put (text, bytes);
  return json_string (text);
}

static json_t *count (uint64_t value)
{
  return json_integer (value > INT64_MAX ? INT64_MAX : (json_int_t) value);
}

static json_t *known_vm (const char *vm)
{
  static const char *const known[] = {"cpython", "jvm", "node", "ruby", "php"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp (vm, known[i]) == 0)
      return json_string (vm);
  return json_null ();
}

static json_t *error_of (const ctl_subtask_t *subtask)
{
  const char *text = ctl_error_text (subtask->error);
  return *text ? json_string (text) : json_null ();
}

/* jansson's _new setters take the value's reference and fail on NULL: one failure anywhere is remembered. */
static json_t *links_json (const ctl_links_t *links, uint32_t index)
{
  ctl_link_t link[CTL_LINKS_MAX];
  uint32_t links_count = ctl_links_of (links, index, link);
  json_t *json = json_array ();
  int rc = 0;
  for (uint32_t i = 0; i < links_count; i++) {
    json_t *one = json_object ();
    rc |= json_object_set_new (one, "subtask", id (link[i].subtask));
    rc |= json_object_set_new (one, "kind", json_string (ctl_link_text (link[i].kind)));
    rc |= json_array_append_new (json, one);
  }
  if (rc) {
    json_decref (json);
    return NULL;
  }
  return json;
}

static json_t *subtask_json (const ctl_execution_t *execution, const ctl_links_t *links, uint32_t index)
{
  const ctl_subtask_t *subtask = &execution->subtasks[index];
  const ctl_subtask_t *parent =
      subtask->parent == CTL_NO_PARENT ? NULL : &execution->subtasks[subtask->parent];
  json_t *json = json_object ();
  int rc = json_object_set_new (json, "id", id (subtask->id));
  rc |= json_object_set_new (json, "parent", parent ? id (parent->id) : json_null ());
  rc |= json_object_set_new (json, "request", subtask->request ? id (subtask->request) : json_null ());
  rc |= json_object_set_new (json, "instance", uuid (subtask->instance));
  rc |= json_object_set_new (json, "service", ctl_json_text (subtask->service));
  rc |= json_object_set_new (json, "vm", known_vm (subtask->vm));
  rc |= json_object_set_new (json, "pid", subtask->pid ? count (subtask->pid) : json_null ());
  rc |= json_object_set_new (json, "name", ctl_json_text (subtask->name));
  rc |= json_object_set_new (json, "status", subtask->status ? count (subtask->status) : json_null ());
  rc |= json_object_set_new (json, "error", error_of (subtask));
  rc |= json_object_set_new (json, "start_ns", count (subtask->start_ns));
  rc |= json_object_set_new (json, "duration_ns", count (subtask->end_ns - subtask->start_ns));
  rc |= json_object_set_new (json, "self_ns", count (subtask->self_ns));
  rc |= json_object_set_new (json, "cpu_ns",
                             subtask->cpu_ns == WEFT_NS_NONE ? json_null () : count (subtask->cpu_ns));
  rc |= json_object_set_new (json, "hop", json_string (ctl_hop_text (subtask->hop)));
  if (subtask->shift_ns)
    rc |= json_object_set_new (json, "clock_shift_ns", json_integer (subtask->shift_ns));
  rc |= json_object_set_new (json, "links", links_json (links, index));
  if (subtask->hop == CTL_HOP_OPAQUE) {
    rc |= json_object_set_new (json, "calls", count (subtask->calls));
    rc |= json_object_set_new (json, "bytes_out", count (subtask->bytes_out));
    rc |= json_object_set_new (json, "bytes_in", count (subtask->bytes_in));
  }
  if (rc) {
    json_decref (json);
    return NULL;
  }
  return json;
}

/* Between hosts, a proven hop bounds how far two clocks may be apart: their offset
 * by its midpoints, and the half of what the network took. */
static uint64_t uncertainty_ns (const ctl_execution_t *execution)
{
  uint64_t most_ns = 0;
  if (execution->aligned)
    return execution->clock_uncertainty_ns;
  for (uint32_t i = 0; i < execution->count && execution->hosts > 1; i++) {
    const ctl_subtask_t *hop = &execution->subtasks[i];
    if (hop->hop != CTL_HOP_PROVEN)
      continue;
    int64_t there_ns = (int64_t) (hop->start_ns - hop->sent_ns);
    int64_t back_ns = (int64_t) (hop->answered_ns - hop->end_ns);
    int64_t network_ns = there_ns / 2 + back_ns / 2, offset_ns = there_ns / 2 - back_ns / 2;
    uint64_t bound_ns = (uint64_t) llabs (offset_ns) + (network_ns > 0 ? (uint64_t) network_ns / 2 : 0);
    most_ns = bound_ns > most_ns ? bound_ns : most_ns;
  }
  return most_ns;
}

static json_t *hops_json (const ctl_execution_t *execution)
{
  json_t *json = json_object ();
  int rc = 0;
  for (ctl_hop_t hop = CTL_HOP_PROVEN; hop < CTL_HOP_COUNT; hop++)
    rc |= json_object_set_new (json, ctl_hop_text (hop), count (execution->hops[hop]));
  if (rc) {
    json_decref (json);
    return NULL;
  }
  return json;
}

json_t *ctl_json_execution (const ctl_execution_t *execution)
{
  ctl_links_t *links = ctl_links_new (execution);
  if (!links)
    return NULL;
  json_t *json = json_object (), *path = json_array (), *subtasks = json_array ();
  int rc = 0;
  for (uint32_t i = 0; i < execution->count; i++) {
    const ctl_subtask_t *subtask = &execution->subtasks[i];
    if (subtask->on_critical_path)
      rc |= json_array_append_new (path, id (subtask->id));
    rc |= json_array_append_new (subtasks, subtask_json (execution, links, i));
  }
  ctl_links_destroy (&links);
  int orphan = execution->kind == CTL_KIND_ORPHAN;
  rc |= json_object_set_new (json, "task", task_id (execution->task));
  rc |= json_object_set_new (json, "name", ctl_json_text (execution->name));
  rc |= json_object_set_new (json, "start_ns", count (execution->start_ns));
  rc |= json_object_set_new (json, "duration_ns", count (execution->duration_ns));
  rc |= json_object_set_new (json, "kind", json_string (orphan ? "orphan" : "task"));
  if (orphan) { /* beyond the schema: whence, and why nobody knows more */
    rc |= json_object_set_new (json, "origin", ctl_json_text (execution->origin));
    rc |= json_object_set_new (json, "reason", json_string (ctl_reason_text (execution->reason)));
  }
  rc |= json_object_set_new (json, "complete", json_boolean (execution->complete));
  rc |= json_object_set_new (json, "critical_path", path);
  rc |= json_object_set_new (json, "subtasks", subtasks);
  rc |= json_object_set_new (json, "hops", hops_json (execution));
  rc |= json_object_set_new (json, "clock", json_string (execution->aligned ? "aligned" : "raw"));
  rc |= json_object_set_new (json, "clock_uncertainty_ns", count (uncertainty_ns (execution)));
  if (rc) {
    json_decref (json);
    return NULL;
  }
  return json;
}

/* ---- instances ----------------------------------------------------------------- */

static const char *const presence_text[] = {
    [CTL_INSTANCE_PRESENT] = "present", [CTL_INSTANCE_SILENT] = "silent", [CTL_INSTANCE_LEFT] = "left"};

/* The numbers of an instance that are carried as they are. */
#define NUMBER_MAP(XX)                                                                                       \
  XX (epoch)                                                                                                 \
  XX (written)                                                                                               \
  XX (stored)                                                                                                \
  XX (farewell)                                                                                              \
  XX (tail_since_ns)                                                                                         \
  XX (tail_until_ns)                                                                                         \
  XX (bytes_total)                                                                                           \
  XX (bytes_spoken)                                                                                          \
  XX (given_up)                                                                                              \
  XX (bare)                                                                                                  \
  XX (requests_in)                                                                                           \
  XX (requests_unmatched)                                                                                    \
  XX (requests_excluded)                                                                                     \
  XX (slots_written)                                                                                         \
  XX (slots_restored)                                                                                        \
  XX (slots_foreign)                                                                                         \
  XX (threads_left)

json_t *ctl_json_rest (const ctl_instance_t *instance)
{
  json_t *json = json_object ();
  for (int i = 0; i < WEFT_PROTOCOL_COUNT; i++)
    if (instance->rest[i] &&
        json_object_set_new (json, weft_protocol_text ((unsigned) i), count (instance->rest[i]))) {
      json_decref (json);
      return NULL;
    }
  return json;
}

json_t *ctl_json_instance (const ctl_instance_t *instance)
{
  static const char *const action[] = {"root", "embed", "capture", "stacks"};
  json_t *json = json_object (), *losses = json_object (), *active = json_array ();
  int rc = 0;
  for (unsigned i = 0; i < 4; i++)
    if (instance->active >> i & 1)
      rc |= json_array_append_new (active, json_string (action[i]));
  for (int i = 0; i < WEFT_LOSS_COUNT; i++)
    rc |= json_object_set_new (losses, ctl_loss_text (i), count (instance->losses[i]));
  rc |= json_object_set_new (json, "instance", uuid (instance->uuid));
  rc |= json_object_set_new (json, "vm", ctl_json_text (instance->vm));
  rc |= json_object_set_new (json, "version", ctl_json_text (instance->version));
  rc |= json_object_set_new (json, "pid", json_integer (instance->pid));
  rc |= json_object_set_new (json, "service", ctl_json_text (instance->service));
  rc |= json_object_set_new (json, "host", ctl_json_text (instance->host));
  rc |= json_object_set_new (json, "listens", ctl_json_text (instance->listens));
  rc |= json_object_set_new (json, "presence", json_string (presence_text[instance->presence]));
  if (instance->replayed)
    rc |= json_object_set_new (json, "replayed", json_true ());
  rc |= json_object_set_new (json, "active", active);
#define XX(field) rc |= json_object_set_new (json, #field, count (instance->field));
  NUMBER_MAP (XX)
#undef XX
  /* What is stored was written: the word of it may be on its way, or have gone with a controller. */
  if (instance->written < instance->stored)
    rc |= json_object_set_new (json, "written", count (instance->stored));
  rc |= json_object_set_new (json, "rest", ctl_json_rest (instance));
  rc |= json_object_set_new (json, "losses", losses);
  if (rc) {
    json_decref (json);
    return NULL;
  }
  return json;
}

/* Reads fields one after another; the first wrong one is remembered. */
static const char *text_at (const json_t *json, const char *key, int *rc)
{
  const char *text = json_string_value (json_object_get (json, key));
  if (!text)
    *rc = WEFT_E_MALFORMED;
  return text ? text : "";
}

static uint64_t number_at (const json_t *json, const char *key, uint64_t max, int *rc)
{
  const json_t *value = json_object_get (json, key);
  if (!json_is_integer (value) || json_integer_value (value) < 0 ||
      (uint64_t) json_integer_value (value) > max) {
    *rc = WEFT_E_MALFORMED;
    return 0;
  }
  return (uint64_t) json_integer_value (value);
}

static uint32_t actions_of (const json_t *array)
{
  static const char *const action[] = {"root", "embed", "capture", "stacks"};
  uint32_t actions = 0;
  for (size_t i = 0; i < json_array_size (array); i++) {
    const char *text = json_string_value (json_array_get (array, i));
    for (unsigned k = 0; k < 4 && text; k++)
      if (strcmp (text, action[k]) == 0)
        actions |= 1u << k;
  }
  return actions;
}

int ctl_json_to_instance (const json_t *json, ctl_instance_t *ret_instance)
{
  ctl_instance_t instance = {0};
  int rc = 0;
  const char *presence = text_at (json, "presence", &rc);
  instance.presence = CTL_INSTANCE_COUNT;
  for (unsigned i = 0; i < CTL_INSTANCE_COUNT; i++)
    if (strcmp (presence, presence_text[i]) == 0)
      instance.presence = (ctl_presence_t) i;
  if (instance.presence == CTL_INSTANCE_COUNT ||
      weft_uuid_get (instance.uuid, text_at (json, "instance", &rc)))
    return WEFT_E_MALFORMED;
  instance.vm = text_at (json, "vm", &rc);
  instance.version = text_at (json, "version", &rc);
  instance.service = text_at (json, "service", &rc);
  instance.host = text_at (json, "host", &rc);
  instance.listens = text_at (json, "listens", &rc);
  instance.pid = (int64_t) number_at (json, "pid", INT64_MAX, &rc);
  instance.replayed = json_is_true (json_object_get (json, "replayed"));
  instance.active = actions_of (json_object_get (json, "active"));
#define XX(field)                                                                                            \
  instance.field = (__typeof__ (instance.field)) number_at (                                                 \
      json, #field, sizeof instance.field == 4 ? UINT32_MAX : INT64_MAX, &rc);
  NUMBER_MAP (XX)
#undef XX
  for (int i = 0; i < WEFT_LOSS_COUNT; i++)
    instance.losses[i] = number_at (json_object_get (json, "losses"), ctl_loss_text (i), INT64_MAX, &rc);
  const json_t *rest = json_object_get (json, "rest");
  for (int i = 0; i < WEFT_PROTOCOL_COUNT; i++)
    if (json_object_get (rest, weft_protocol_text ((unsigned) i)))
      instance.rest[i] = number_at (rest, weft_protocol_text ((unsigned) i), INT64_MAX, &rc);
  if (rc == 0)
    *ret_instance = instance;
  return rc;
}

int ctl_json_line (FILE *out, json_t *json)
{
  if (!json)
    return WEFT_E_NOMEM;
  /* ASCII: a raw U+009B in a name would be an escape sequence to some terminals */
  int rc = json_dumpf (json, out, JSON_COMPACT | JSON_ENSURE_ASCII);
  json_decref (json);
  return rc || fputc ('\n', out) == EOF ? WEFT_E_IO : 0;
}
