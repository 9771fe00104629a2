/* SPDX-License-Identifier: Apache-2.0 */
#include "requests.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/ids.h"
#include "../../common/status.h"
#include "../view/json.h"
#include "claims.h"
#include "journal_answer.h"
#include "lookups.h"

static const struct {
  const char *name;
  uint32_t bit;
} actions[] = {{"root", WEFT_ACTION_ROOT}, {"embed", WEFT_ACTION_EMBED}, {"capture", WEFT_ACTION_CAPTURE}};
#define ACTION_COUNT (sizeof actions / sizeof *actions)

/* ---- replies ------------------------------------------------------------ */

int ctl_reply_refuse (ctl_reply_t *reply, int status, const char *format, ...)
{
  char why[512];
  va_list args;
  va_start (args, format);
  vsnprintf (why, sizeof why, format, args);
  va_end (args);
  ctl_reply_clear (reply);
  reply->body =
      json_pack ("{s:b, s:s, s:o}", "ok", 0, "status", weft_status_name (status), "why", ctl_json_text (why));
  return status;
}

int ctl_reply_frame (ctl_reply_t *reply, void *data, size_t size)
{
  if (reply->frame_count == reply->frame_room) {
    uint32_t room = reply->frame_room ? reply->frame_room * 2 : 16;
    ctl_frame_t *frames = realloc (reply->frames, room * sizeof *frames);
    if (!frames) {
      free (data);
      return WEFT_E_NOMEM;
    }
    reply->frames = frames;
    reply->frame_room = room;
  }
  reply->frames[reply->frame_count++] = (ctl_frame_t){data, size};
  return 0;
}

void ctl_reply_clear (ctl_reply_t *reply)
{
  json_decref (reply->body);
  for (uint32_t n = 0; n < reply->frame_count; n++)
    free (reply->frames[n].data);
  free (reply->frames);
  *reply = (ctl_reply_t){0};
}

static void set_number (json_t *object, const char *key, uint64_t number)
{
  json_object_set_new (object, key, json_integer ((json_int_t) number));
}

static void set_uuid (json_t *object, const char *key, const uint8_t uuid[WEFT_UUID_SIZE])
{
  char text[37];
  weft_uuid_put (text, uuid);
  json_object_set_new (object, key, json_string (text));
}

/* ---- instructions ------------------------------------------------------- */

static int read_text (const json_t *value, char *out, size_t size)
{
  size_t length = json_string_length (value);
  if (!json_is_string (value) || length >= size || strlen (json_string_value (value)) != length)
    return WEFT_E_RANGE;
  memcpy (out, json_string_value (value), length + 1);
  return 0;
}

static uint32_t read_u32 (const json_t *request, const char *key, uint32_t absent)
{
  const json_t *value = json_object_get (request, key);
  json_int_t number = json_integer_value (value);
  if (!json_is_integer (value))
    return absent;
  return number < 0 || number > UINT32_MAX ? UINT32_MAX : (uint32_t) number;
}

static int read_lists (const json_t *request, weft_instruction_t *wanted, ctl_reply_t *reply)
{
  const json_t *list = json_object_get (request, "actions");
  for (size_t n = 0; n < json_array_size (list); n++) {
    const char *name = json_string_value (json_array_get (list, n));
    size_t at = 0;
    while (at < ACTION_COUNT && (!name || strcmp (name, actions[at].name) != 0))
      at++;
    if (at == ACTION_COUNT)
      return ctl_reply_refuse (reply, WEFT_E_MALFORMED, "unknown action '%s' (root, embed, capture)",
                               name ? name : "");
    wanted->actions |= actions[at].bit;
  }
  list = json_object_get (request, "selectors");
  if (json_array_size (list) > WEFT_SELECTORS_MAX)
    return ctl_reply_refuse (reply, WEFT_E_RANGE, "at most %d selectors in one instruction",
                             WEFT_SELECTORS_MAX);
  for (size_t n = 0; n < json_array_size (list); n++) {
    if (read_text (json_array_get (list, n), wanted->selectors[n], WEFT_SELECTOR_MAX) < 0)
      return ctl_reply_refuse (reply, WEFT_E_RANGE, "a selector is a text below %d bytes", WEFT_SELECTOR_MAX);
    wanted->selector_count++;
  }
  const json_t *match = json_object_get (request, "match");
  if (match && read_text (match, wanted->match, sizeof wanted->match) < 0)
    return ctl_reply_refuse (reply, WEFT_E_RANGE, "a pattern is a text below %d bytes", WEFT_MATCH_MAX);
  return 0;
}

/* Of a client of before: no networks, no header, nothing excluded. */
static int read_scope (const json_t *request, weft_instruction_t *wanted, ctl_reply_t *reply)
{
  const json_t *networks = json_object_get (request, "networks");
  const json_t *excludes = json_object_get (request, "excludes"),
               *header = json_object_get (request, "header");
  if (json_array_size (networks) > WEFT_NETWORKS_MAX || json_array_size (excludes) > WEFT_EXCLUDES_MAX)
    return ctl_reply_refuse (reply, WEFT_E_RANGE, "at most %d networks and %d exclusions in one instruction",
                             WEFT_NETWORKS_MAX, WEFT_EXCLUDES_MAX);
  for (size_t n = 0; n < json_array_size (networks); n++) {
    const char *text = json_string_value (json_array_get (networks, n));
    char why[120] = "a text is meant";
    if (!text || weft_network_parse (text, &wanted->networks[n], why, sizeof why) < 0)
      return ctl_reply_refuse (reply, WEFT_E_MALFORMED, "bad network '%.60s': %s", text ? text : "", why);
    wanted->network_count++;
  }
  for (size_t n = 0; n < json_array_size (excludes); n++) {
    if (read_text (json_array_get (excludes, n), wanted->excludes[n], WEFT_MATCH_MAX) < 0)
      return ctl_reply_refuse (reply, WEFT_E_RANGE, "a pattern is a text below %d bytes", WEFT_MATCH_MAX);
    wanted->exclude_count++;
  }
  if (header && read_text (header, wanted->header, sizeof wanted->header) < 0)
    return ctl_reply_refuse (reply, WEFT_E_RANGE, "a header name is a text below %d bytes", WEFT_HEADER_MAX);
  return 0;
}

static void read_rest (const json_t *request, weft_instruction_t *wanted)
{
  const json_t *sample = json_object_get (request, "sample");
  wanted->sample_num = sample ? (uint32_t) json_integer_value (json_array_get (sample, 0)) : 1;
  wanted->sample_den = sample ? (uint32_t) json_integer_value (json_array_get (sample, 1)) : 1;
  json_int_t max = json_integer_value (json_object_get (request, "max"));
  wanted->max_roots = max > 0 ? (uint64_t) max : 0;
  const char *carrier = json_string_value (json_object_get (request, "carrier"));
  wanted->carrier = carrier && strcmp (carrier, "weft") == 0 ? WEFT_CARRIER_WEFT : WEFT_CARRIER_TRACEPARENT;
  const char *embed_to = json_string_value (json_object_get (request, "embed_to"));
  wanted->embed_to = embed_to && strcmp (embed_to, "any") == 0 ? WEFT_EMBED_TO_ANY : WEFT_EMBED_TO_PRIVATE;
  wanted->lease_ms = read_u32 (request, "lease_ms", WEFT_LEASE_MS);
}

static void announce (ctl_house_t *house)
{
  if (house->broadcast)
    ctl_broadcast_state (house->broadcast, WEFT_TOPIC_ALL, house->instructions);
}

static int answer_instruct (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  weft_instruction_t *wanted = calloc (1, sizeof *wanted);
  if (!wanted)
    return WEFT_E_NOMEM;
  uint32_t number = 0, for_ms = read_u32 (request, "for_ms", 0);
  char why[400] = "";
  int rc = read_lists (request, wanted, reply);
  if (rc == 0)
    rc = read_scope (request, wanted, reply);
  if (rc == 0) {
    read_rest (request, wanted);
    if (for_ms > WEFT_FOR_MAX_MS)
      for_ms = WEFT_FOR_MAX_MS;
    uint64_t until_ns = for_ms ? weft_mono_ns () + for_ms * WEFT_NS_PER_MS : 0;
    rc = ctl_instructions_add (house->instructions, wanted, until_ns, &number, why, sizeof why);
    if (rc < 0)
      ctl_reply_refuse (reply, rc, "%s", why);
  }
  free (wanted);
  if (rc < 0)
    return rc;
  /* Before anyone can act on it. A full disk forbids no profile: the store remembers what was stored. */
  if (house->journal)
    ctl_journal_give_number (house->journal, number);
  announce (house);
  set_number (reply->body, "number", number);
  set_number (reply->body, "epoch", ctl_instructions_epoch (house->instructions));
  return 0;
}

static json_t *instance_brief (const ctl_instance_t *instance)
{
  json_t *brief = json_object ();
  set_uuid (brief, "uuid", instance->uuid);
  set_number (brief, "pid", (uint64_t) instance->pid);
  json_object_set_new (brief, "service", ctl_json_text (instance->service));
  json_object_set_new (brief, "host", ctl_json_text (instance->host));
  uint64_t now_ns = weft_mono_ns ();
  set_number (brief, "seen_ms",
              now_ns > instance->seen_ns ? (now_ns - instance->seen_ns) / WEFT_NS_PER_MS : 0);
  return brief;
}

static json_t *instruction_json (ctl_house_t *house, const weft_instruction_t *instruction, int live)
{
  json_t *json = json_object (), *names = json_array (), *selectors = json_array (), *silent = json_array ();
  uint32_t expected = 0, active = 0;
  for (size_t n = 0; n < ACTION_COUNT; n++)
    if (instruction->actions & actions[n].bit)
      json_array_append_new (names, json_string (actions[n].name));
  for (uint32_t n = 0; n < instruction->selector_count; n++)
    json_array_append_new (selectors, ctl_json_text (instruction->selectors[n]));
  for (uint32_t n = 0; n < ctl_instances_count (house->instances); n++) {
    const ctl_instance_t *instance = ctl_instances_at (house->instances, n);
    ctl_standing_t standing = ctl_instructions_standing (house->instructions, instruction->number, instance);
    expected += standing != CTL_STANDING_NONE;
    active += standing == CTL_STANDING_ACKED;
    if (standing == CTL_STANDING_SILENT)
      json_array_append_new (silent, instance_brief (instance));
  }
  set_number (json, "number", instruction->number);
  json_object_set_new (json, "live", json_boolean (live));
  json_object_set_new (json, "actions", names);
  json_object_set_new (json, "selectors", selectors);
  json_object_set_new (json, "match", ctl_json_text (instruction->match));
  set_number (json, "expected", expected);
  set_number (json, "active", active);
  json_object_set_new (json, "silent", silent);
  return json;
}

static int answer_instruction (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  uint32_t number = read_u32 (request, "number", 0);
  int live = 0;
  const weft_instruction_t *instruction = ctl_instructions_find (house->instructions, number, &live);
  if (!instruction)
    return ctl_reply_refuse (reply, WEFT_E_NOT_FOUND, "no instruction %u is live; `weft ls` shows which are",
                             number);
  json_t *json = instruction_json (house, instruction, live);
  json_object_update (reply->body, json);
  json_decref (json);
  return 0;
}

static int answer_instructions (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  json_t *list = json_array ();
  uint32_t count = 0;
  const weft_instruction_t *live = ctl_instructions_live (house->instructions, &count);
  for (uint32_t n = 0; n < count; n++)
    json_array_append_new (list, instruction_json (house, &live[n], 1));
  return json_object_set_new (reply->body, "instructions", list) < 0 ? WEFT_E_NOMEM : 0;
}

static int answer_stop (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  uint32_t number = read_u32 (request, "number", 0);
  if (ctl_instructions_stop (house->instructions, number) < 0)
    return ctl_reply_refuse (reply, WEFT_E_NOT_FOUND, "no instruction %u is live; `weft ls` shows which are",
                             number);
  announce (house);
  set_number (reply->body, "epoch", ctl_instructions_epoch (house->instructions));
  return 0;
}

/* ---- instances ---------------------------------------------------------- */

static int has_pid (const json_t *pids, int64_t pid)
{
  for (size_t n = 0; n < json_array_size (pids); n++)
    if (json_integer_value (json_array_get (pids, n)) == pid)
      return 1;
  return 0;
}

static int has_uuid (const json_t *uuids, const uint8_t uuid[WEFT_UUID_SIZE])
{
  char text[37];
  weft_uuid_put (text, uuid);
  for (size_t n = 0; n < json_array_size (uuids); n++) {
    const char *one = json_string_value (json_array_get (uuids, n));
    if (one && strcmp (one, text) == 0)
      return 1;
  }
  return 0;
}

/* Where it was told for how long: an age of 0 or more. */
static int is_older (const ctl_instance_t *instance, const json_t *ms)
{
  uint64_t now_ns = weft_mono_ns (), age_ns = now_ns > instance->seen_ns ? now_ns - instance->seen_ns : 0;
  return json_is_integer (ms) && json_integer_value (ms) >= 0 &&
         age_ns / WEFT_NS_PER_MS > (uint64_t) json_integer_value (ms);
}

/* A pid is given again: with one, who has left is not meant. */
static int is_asked_for (const json_t *request, const ctl_instance_t *instance)
{
  const json_t *uuids = json_object_get (request, "uuids"), *pids = json_object_get (request, "pids");
  int here = instance->presence != CTL_INSTANCE_LEFT;
  if (!here && is_older (instance, json_object_get (request, "recent_ms")))
    return 0;
  if (json_is_true (json_object_get (request, "present")) && !here)
    return 0;
  if (json_is_true (json_object_get (request, "notable")) && !ctl_instance_is_notable (instance))
    return 0;
  if (pids && (!here || !has_pid (pids, instance->pid)))
    return 0;
  return !uuids || has_uuid (uuids, instance->uuid);
}

static int answer_instances (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  json_t *list = json_array ();
  uint32_t live_count = 0;
  const weft_instruction_t *live = ctl_instructions_live (house->instructions, &live_count);
  for (uint32_t n = 0; n < ctl_instances_count (house->instances); n++) {
    const ctl_instance_t *instance = ctl_instances_at (house->instances, n);
    if (!is_asked_for (request, instance))
      continue;
    json_t *json = ctl_json_instance (instance), *numbers = json_array ();
    for (uint32_t i = 0; i < live_count; i++)
      if (ctl_instructions_standing (house->instructions, live[i].number, instance) == CTL_STANDING_ACKED)
        json_array_append_new (numbers, json_integer (live[i].number));
    json_object_set_new (json, "instructions", numbers);
    set_uuid (json, "boot", instance->boot);
    json_array_append_new (list, json);
  }
  return json_object_set_new (reply->body, "instances", list) < 0 ? WEFT_E_NOMEM : 0;
}

static json_t *interval_json (ctl_house_t *house, const ctl_loss_interval_t *interval)
{
  json_t *json = json_object (), *losses = json_object ();
  if (interval->instance == CTL_LOSS_SEVERAL) {
    json_object_set_new (json, "instance", json_null ());
  } else {
    const ctl_instance_t *instance = ctl_instances_at (house->instances, interval->instance);
    set_uuid (json, "instance", instance->uuid);
    json_object_set_new (json, "service", ctl_json_text (instance->service));
  }
  set_number (json, "from_ns", interval->from_ns);
  set_number (json, "to_ns", interval->to_ns);
  for (int n = 0; n < WEFT_LOSS_COUNT; n++)
    if (interval->losses[n])
      set_number (losses, ctl_loss_text (n), interval->losses[n]);
  json_object_set_new (json, "losses", losses);
  return json;
}

static json_t *tail_json (const ctl_instance_t *instance)
{
  json_t *json = json_object ();
  set_uuid (json, "instance", instance->uuid);
  json_object_set_new (json, "service", ctl_json_text (instance->service));
  set_number (json, "from_ns", instance->tail_since_ns);
  json_object_set_new (json, "to_ns",
                       instance->tail_until_ns ? json_integer ((json_int_t) instance->tail_until_ns)
                                               : json_null ());
  json_object_set_new (json, "losses", json_null ()); /* unknown, not none */
  return json;
}

static int answer_losses (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  json_t *list = json_array ();
  uint32_t count = 0;
  const ctl_loss_interval_t *intervals = ctl_instances_intervals (house->instances, &count);
  for (uint32_t n = 0; n < count; n++)
    json_array_append_new (list, interval_json (house, &intervals[n]));
  for (uint32_t n = 0; n < ctl_instances_count (house->instances); n++)
    if (ctl_instances_at (house->instances, n)->tail_since_ns)
      json_array_append_new (list, tail_json (ctl_instances_at (house->instances, n)));
  return json_object_set_new (reply->body, "intervals", list) < 0 ? WEFT_E_NOMEM : 0;
}

static int wants_detach (const json_t *request, const ctl_instance_t *instance)
{
  return json_is_true (json_object_get (request, "all")) ||
         has_uuid (json_object_get (request, "uuids"), instance->uuid) ||
         has_pid (json_object_get (request, "pids"), instance->pid);
}

void ctl_request_leave (ctl_house_t *house, ctl_instance_t *instance)
{
  weft_bus_message_t leave = {.kind = WEFT_BUS_LEAVE};
  char topic[WEFT_TOPIC_MAX];
  weft_topic_instance (topic, instance->uuid);
  instance->leaving_ns = weft_mono_ns ();
  if (house->broadcast)
    ctl_broadcast_send (house->broadcast, topic, &leave);
}

static int answer_detach (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  json_t *list = json_array (), *later = json_array (), *pids = json_array ();
  int when_free = json_is_true (json_object_get (request, "when_free"));
  for (uint32_t n = 0; n < ctl_instances_count (house->instances); n++) {
    ctl_instance_t *instance = ctl_instances_at (house->instances, n);
    char uuid[37];
    if (instance->presence == CTL_INSTANCE_LEFT || !wants_detach (request, instance))
      continue;
    int leaves = !when_free || ctl_claims_let_go (house, instance);
    if (!when_free)
      ctl_request_leave (house, instance);
    weft_uuid_put (uuid, instance->uuid);
    json_array_append_new (pids, json_integer ((json_int_t) instance->pid));
    json_array_append_new (leaves ? list : later, json_string (uuid));
  }
  json_object_set_new (reply->body, "later", later);
  json_object_set_new (reply->body, "pids", pids);
  return json_object_set_new (reply->body, "uuids", list) < 0 ? WEFT_E_NOMEM : 0;
}

/* ---- the controller itself ---------------------------------------------- */

static int answer_ping (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  json_object_set_new (reply->body, "version", json_string (WEFT_VERSION));
  set_number (reply->body, "pid", (uint64_t) getpid ());
  set_number (reply->body, "epoch", ctl_instructions_epoch (house->instructions));
  if (house->broadcast)
    set_uuid (reply->body, "controller", ctl_broadcast_uuid (house->broadcast));
  return 0;
}

static json_t *exporter_json (ctl_exporter_t *exporter)
{
  json_t *json = json_object ();
  ctl_exporter_stats_t stats;
  if (!exporter)
    return json;
  ctl_exporter_stats (exporter, &stats);
  json_object_set_new (json, "url", ctl_json_text (ctl_exporter_url (exporter)));
  set_number (json, "sent", stats.sent);
  set_number (json, "rejected", stats.rejected);
  set_number (json, "given_up", stats.given_up);
  set_number (json, "waiting", stats.waiting);
  set_number (json, "retries", stats.retries);
  json_object_set_new (json, "failing", json_boolean (stats.failing));
  json_object_set_new (json, "why", ctl_json_text (stats.why));
  return json;
}

static int answer_stats (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  ctl_correlate_stats_t c;
  ctl_correlate_stats (house->correlate, &c);
  json_t *correlate = json_object (), *intake = json_object ();
  set_number (correlate, "reports", c.reports);
  set_number (correlate, "duplicates", c.duplicates);
  set_number (correlate, "embeds", c.embeds);
  set_number (correlate, "captures", c.captures);
  set_number (correlate, "bares", c.bares);
  set_number (correlate, "open_tasks", c.open_tasks);
  set_number (correlate, "open_bytes", c.bytes);
  set_number (correlate, "unanswered", c.unanswered);
  set_number (correlate, "evicted", c.evicted);
  set_number (correlate, "truncated", c.truncated);
  set_number (correlate, "skipped", c.skipped);
  set_number (correlate, "discarded", c.discarded);
  set_number (correlate, "shed", c.shed);
  set_number (correlate, "kept", ctl_shed_threshold (ctl_correlate_shedder (house->correlate)));
  set_number (correlate, "retired", house->store ? ctl_store_retired (house->store) : 0);
  json_object_set_new (reply->body, "correlate", correlate);
  if (house->intake) {
    const ctl_intake_stats_t *i = ctl_intake_stats (house->intake);
#define XX(name, text) set_number (intake, #name, i->name);
    CTL_INTAKE_MAP (XX)
#undef XX
  }
  json_object_set_new (reply->body, "intake", intake);
  json_t *strangers = json_object (), *audit = json_object ();
  if (house->guard) {
    const ctl_guard_stats_t *g = ctl_guard_stats (house->guard);
#define XX(name, text) set_number (strangers, #name, g->name);
    CTL_GUARD_MAP (XX)
#undef XX
  }
  if (house->audit)
    set_number (audit, "lost", ctl_audit_lost (house->audit));
  json_object_set_new (reply->body, "strangers", strangers);
  json_object_set_new (reply->body, "audit", audit);
  json_object_set_new (reply->body, "otlp", exporter_json (house->exporter));
  return 0;
}

static int answer_quit (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  house->quit = 1;
  return 0;
}

static const struct {
  const char *name;
  int (*answer) (ctl_house_t *house, const json_t *request, ctl_reply_t *reply);
} ops[] = {
    {"ping", answer_ping},
    {"instances", answer_instances},
    {"losses", answer_losses},
    {"instruct", answer_instruct},
    {"instructions", answer_instructions},
    {"instruction", answer_instruction},
    {"stop", answer_stop},
    {"detach", answer_detach},
    {"claim", ctl_claims_claim},
    {"release", ctl_claims_release},
    {"keep", ctl_claims_keep},
    {"waiting", ctl_lookup_waiting},
    {"tasks", ctl_lookup_tasks},
    {"each", ctl_lookup_each},
    {"show", ctl_lookup_show},
    {"journal", ctl_journal_answer},
    {"stats", answer_stats},
    {"quit", answer_quit},
};

int ctl_requests_answer (ctl_house_t *house, const char *text, size_t size, ctl_reply_t *reply)
{
  json_error_t error;
  json_t *request = json_loadb (text, size, 0, &error);
  const char *op = json_string_value (json_object_get (request, "op"));
  size_t at = 0;
  while (at < sizeof ops / sizeof *ops && (!op || strcmp (op, ops[at].name) != 0))
    at++;
  int rc;
  if (!op)
    rc = ctl_reply_refuse (reply, WEFT_E_MALFORMED, "a request is a JSON object with an \"op\"");
  else if (at == sizeof ops / sizeof *ops)
    rc = ctl_reply_refuse (reply, WEFT_E_UNSUPPORTED, "unknown request '%.32s'; is this client newer?", op);
  else if (!(reply->body = json_pack ("{s:b}", "ok", 1)))
    rc = WEFT_E_NOMEM;
  else
    rc = ops[at].answer (house, request, reply);
  if (rc < 0 && (!reply->body || json_is_true (json_object_get (reply->body, "ok"))))
    ctl_reply_refuse (reply, rc, "%s", weft_status_text (rc));
  ctl_audit_request (house->audit, house->who, request, reply->body);
  json_decref (request);
  return reply->body ? 0 : WEFT_E_NOMEM;
}
