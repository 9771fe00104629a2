/* SPDX-License-Identifier: Apache-2.0 */
#include "orders.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../common/clocks.h"
#include "../../common/log.h"
#include "../../common/pattern.h"
#include "../../common/selector.h"
#include "../../common/status.h"
#include "../view/json.h"
#include "../view/style.h"
#include "progress.h"
#include "scope.h"

#define POLL_MS 10

static const struct {
  const char *name;
  uint32_t bit;
} actions_known[] = {
    {"root", WEFT_ACTION_ROOT}, {"embed", WEFT_ACTION_EMBED}, {"capture", WEFT_ACTION_CAPTURE}};
#define ACTION_COUNT (sizeof actions_known / sizeof *actions_known)

typedef struct {
  char text[WEFT_SELECTORS_MAX][WEFT_SELECTOR_MAX];
  uint32_t count;
} places_t;

static int bad (const char *what, const char *text, const char *why)
{
  weft_log_error ("bad %s '%.80s': %s", what, text, why);
  return WEFT_E_USAGE;
}

/* ---- places ------------------------------------------------------------- */

static int add_place (places_t *self, const char *text)
{
  if (self->count == WEFT_SELECTORS_MAX) {
    weft_log_error ("more than %d places for one action; use a wider selector, such as host= or *",
                    WEFT_SELECTORS_MAX);
    return WEFT_E_USAGE;
  }
  snprintf (self->text[self->count++], WEFT_SELECTOR_MAX, "%s", text);
  return 0;
}

static int read_places (const ctl_call_t *call, const char *name, places_t *ret_places)
{
  uint32_t at = 0;
  for (const char *text; (text = ctl_call_next (call, name, &at));) {
    char why[200] = "";
    if (strlen (text) >= WEFT_SELECTOR_MAX)
      return bad ("selector", text, "too long; use fewer terms");
    if (weft_selector_check (text, why, sizeof why) < 0)
      return bad ("selector", text, why);
    if (add_place (ret_places, text) < 0)
      return WEFT_E_USAGE;
  }
  return 0;
}

/* Both hold: every pair of them. */
static int narrow (const places_t *on, const places_t *own, places_t *ret_both)
{
  for (uint32_t a = 0; a < on->count; a++) {
    for (uint32_t b = 0; b < own->count; b++) {
      const char *first = on->text[a], *second = own->text[b];
      char both[2 * WEFT_SELECTOR_MAX];
      if (strcmp (first, "*") == 0 || strcmp (first, second) == 0)
        snprintf (both, sizeof both, "%s", second);
      else if (strcmp (second, "*") == 0)
        snprintf (both, sizeof both, "%s", first);
      else
        snprintf (both, sizeof both, "%s,%s", first, second);
      if (strlen (both) >= WEFT_SELECTOR_MAX)
        return bad ("selector", both, "too long together with --on; use fewer terms");
      if (add_place (ret_both, both) < 0)
        return WEFT_E_USAGE;
    }
  }
  return 0;
}

/* ---- the rest ----------------------------------------------------------- */

static int read_sample (const ctl_call_t *call, weft_instruction_t *order)
{
  const char *text = ctl_call_value (call, "sample", "1/1");
  char *slash, *end = NULL;
  unsigned long num = strtoul (text, &slash, 10);
  unsigned long den = *slash == '/' ? strtoul (slash + 1, &end, 10) : 0;
  if (*text < '0' || *text > '9' || !end || *end || slash[1] < '0' || slash[1] > '9' || num == 0 ||
      num > den || den > UINT32_MAX)
    return bad ("sample", text, "1/N is meant, such as 1/100");
  order->sample_num = (uint32_t) num;
  order->sample_den = (uint32_t) den;
  return 0;
}

static int read_match (const ctl_call_t *call, weft_instruction_t *order)
{
  const char *text = ctl_call_value (call, "match", "");
  char why[200] = "";
  if (!*text && ctl_call_value (call, "match", NULL))
    return bad ("pattern", text, "it is empty; leave --match out to follow all tasks");
  if (strlen (text) >= sizeof order->match)
    return bad ("pattern", text, "too long; put ** in place of its end");
  if (weft_pattern_check (text, why, sizeof why) < 0)
    return bad ("pattern", text, why);
  snprintf (order->match, sizeof order->match, "%s", text);
  return 0;
}

static int read_rest (const ctl_call_t *call, weft_instruction_t *order)
{
  const char *carrier = ctl_call_value (call, "carrier", "traceparent");
  uint64_t lease_ms = 0;
  if (read_sample (call, order) < 0 || read_match (call, order) < 0 ||
      ctl_call_number (call, "max", 1, 1000000000000, 0, &order->max_roots) < 0 ||
      ctl_call_duration (call, "lease", WEFT_LEASE_MAX_MS, WEFT_LEASE_MS, &lease_ms) < 0)
    return WEFT_E_USAGE;
  if (lease_ms < WEFT_LEASE_MIN_MS)
    return bad ("lease", ctl_call_value (call, "lease", ""), "at least 2s; heartbeats come each second");
  if (strcmp (carrier, "traceparent") != 0 && strcmp (carrier, "weft") != 0)
    return bad ("carrier", carrier, "traceparent or weft is meant");
  order->lease_ms = (uint32_t) lease_ms;
  order->carrier = *carrier == 'w' ? WEFT_CARRIER_WEFT : WEFT_CARRIER_TRACEPARENT;
  return ctl_scope_read (call, order);
}

/* Into the order with the same places, or one of its own. */
static void add_action (ctl_orders_t *self, const weft_instruction_t *rest, uint32_t bit,
                        const places_t *places)
{
  uint32_t n = 0;
  while (n < self->count && (self->order[n].selector_count != places->count ||
                             memcmp (self->order[n].selectors, places->text, sizeof places->text) != 0))
    n++;
  if (n == self->count) {
    self->order[n] = *rest;
    memcpy (self->order[n].selectors, places->text, sizeof places->text);
    self->order[n].selector_count = places->count;
    self->count++;
  }
  self->order[n].actions |= bit;
}

/* `pinned`: nothing outside `on` may be touched, so a place of its own only narrows;
 * otherwise it takes the place of `on` for that action. */
static int read_actions (const ctl_call_t *call, const places_t *on, int pinned, uint32_t actions,
                         ctl_orders_t *self)
{
  weft_instruction_t rest = {0};
  if (read_rest (call, &rest) < 0)
    return WEFT_E_USAGE;
  int named = 0;
  for (size_t n = 0; n < ACTION_COUNT; n++)
    named |= ctl_call_has (call, actions_known[n].name);
  if (!actions && (on->count || !named))
    actions = WEFT_ACTION_ROOT | WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE;
  for (size_t n = 0; n < ACTION_COUNT; n++) {
    places_t own = {0}, both = {0};
    if (read_places (call, actions_known[n].name, &own) < 0)
      return WEFT_E_USAGE;
    if (own.count == 0 && !(actions & actions_known[n].bit))
      continue;
    if (own.count && pinned && narrow (on, &own, &both) < 0)
      return WEFT_E_USAGE;
    const places_t *places = both.count ? &both : own.count ? &own : on;
    if (places->count == 0) {
      weft_log_error ("%s: nowhere to do it: give --on, --root, --embed or --capture; --on '*' is everywhere",
                      call->verb->name);
      return WEFT_E_USAGE;
    }
    add_action (self, &rest, actions_known[n].bit, places);
  }
  return 0;
}

int ctl_orders_read (const ctl_call_t *call, const char (*on)[WEFT_SELECTOR_MAX], uint32_t on_count,
                     uint32_t actions, ctl_orders_t **ret_orders)
{
  places_t given = {0};
  ctl_orders_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  int rc = 0;
  for (uint32_t n = 0; rc == 0 && n < on_count; n++)
    rc = add_place (&given, on[n]);
  if (on_count == 0)
    rc = read_places (call, "on", &given);
  if (rc == 0)
    rc = read_actions (call, &given, on_count > 0, actions, self);
  if (rc < 0)
    free (self);
  else
    *ret_orders = self;
  return rc;
}

void ctl_orders_part (const ctl_orders_t *orders, uint32_t actions, ctl_orders_t *ret_part)
{
  ret_part->count = 0;
  for (uint32_t n = 0; n < orders->count; n++) {
    if (!(orders->order[n].actions & actions))
      continue;
    ret_part->order[ret_part->count] = orders->order[n];
    ret_part->order[ret_part->count++].actions &= actions;
  }
}

/* ---- to the controller -------------------------------------------------- */

int ctl_order_send (ctl_client_t *client, const weft_instruction_t *order, uint64_t for_ms,
                    uint32_t *ret_number)
{
  json_t *actions = json_array (), *selectors = json_array ();
  for (size_t n = 0; n < ACTION_COUNT; n++)
    if (order->actions & actions_known[n].bit)
      json_array_append_new (actions, json_string (actions_known[n].name));
  for (uint32_t n = 0; n < order->selector_count; n++)
    json_array_append_new (selectors, ctl_json_text (order->selectors[n]));
  json_t *request = json_pack ("{s:s, s:o, s:o, s:o, s:[I, I], s:I, s:s, s:I, s:I}", "op", "instruct",
                               "actions", actions, "selectors", selectors, "match",
                               ctl_json_text (order->match), "sample", (json_int_t) order->sample_num,
                               (json_int_t) order->sample_den, "max", (json_int_t) order->max_roots,
                               "carrier", order->carrier == WEFT_CARRIER_WEFT ? "weft" : "traceparent",
                               "lease_ms", (json_int_t) order->lease_ms, "for_ms", (json_int_t) for_ms);
  json_t *reply = NULL;
  ctl_scope_put (request, order);
  int rc = ctl_client_ask (client, request, NULL, NULL, &reply);
  if (rc == 0)
    *ret_number = (uint32_t) json_integer_value (json_object_get (reply, "number"));
  json_decref (reply);
  return rc;
}

int ctl_order_stop (ctl_client_t *client, uint32_t number)
{
  return ctl_client_ask (client, json_pack ("{s:s, s:I}", "op", "stop", "number", (json_int_t) number), NULL,
                         NULL, NULL);
}

void ctl_pause_ms (unsigned ms)
{
  struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long) (ms % 1000 * WEFT_NS_PER_MS)};
  nanosleep (&pause, NULL);
}

int ctl_order_await (ctl_client_t *client, uint32_t number, uint64_t timeout_ms, const volatile int *stop,
                     ctl_standing_counts_t *ret_counts)
{
  uint64_t end_ns = weft_mono_ns () + timeout_ms * WEFT_NS_PER_MS;
  ctl_progress_t progress;
  ctl_progress_begin (&progress);
  for (;;) {
    json_t *reply = NULL;
    int rc =
        ctl_client_ask (client, json_pack ("{s:s, s:I}", "op", "instruction", "number", (json_int_t) number),
                        NULL, NULL, &reply);
    if (rc < 0) {
      ctl_progress_wipe (&progress);
      return rc;
    }
    uint32_t expected = (uint32_t) json_integer_value (json_object_get (reply, "expected"));
    uint32_t active = (uint32_t) json_integer_value (json_object_get (reply, "active"));
    if (active >= expected || weft_mono_ns () >= end_ns || (stop && *stop)) {
      ctl_progress_wipe (&progress);
      *ret_counts =
          (ctl_standing_counts_t){expected, active, json_incref (json_object_get (reply, "silent"))};
      json_decref (reply);
      return 0;
    }
    json_decref (reply);
    ctl_progress_say (&progress, "instruction %u: acknowledged by %u of %u", number, active, expected);
    ctl_pause_ms (POLL_MS);
  }
}

void ctl_standing_clear (ctl_standing_counts_t *counts)
{
  json_decref (counts->silent);
  *counts = (ctl_standing_counts_t){0};
}

void ctl_standing_print (FILE *out, const ctl_standing_counts_t *counts)
{
  fprintf (out, "active in %u of %u", counts->active, counts->expected);
  for (size_t n = 0; n < json_array_size (counts->silent); n++) {
    const json_t *one = json_array_get (counts->silent, n);
    const char *service = json_string_value (json_object_get (one, "service"));
    const char *host = json_string_value (json_object_get (one, "host"));
    char safe[4 * WEFT_SERVICE_MAX + 1], where[4 * WEFT_HOST_MAX + 1];
    ctl_style_safe (safe, sizeof safe, service ? service : "", 1);
    ctl_style_safe (where, sizeof where, host ? host : "", 1);
    fprintf (out, "%s%s@%s (last seen %lld s)", n ? ", " : ", silent: ", safe, where,
             (long long) json_integer_value (json_object_get (one, "seen_ms")) / 1000);
  }
}

void ctl_actions_put (char *out, size_t size, uint32_t actions)
{
  size_t at = 0;
  *out = 0;
  for (size_t n = 0; n < ACTION_COUNT && at < size; n++)
    if (actions & actions_known[n].bit)
      at += (size_t) snprintf (out + at, size - at, "%s%s", at ? ", " : "", actions_known[n].name);
}
