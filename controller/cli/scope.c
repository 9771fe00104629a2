/* SPDX-License-Identifier: Apache-2.0 */
#include "scope.h"

#include <stdio.h>
#include <string.h>

#include "../../common/log.h"
#include "../../common/network.h"
#include "../../common/pattern.h"
#include "../../common/status.h"
#include "../view/json.h"

/* What load balancers, orchestrators and scrapers ask, all day, of every service. */
static const char *const asked_by_machines[] = {"/health",
                                                "/health/**",
                                                "/healthz",
                                                "/livez",
                                                "/live",
                                                "/readyz",
                                                "/ready",
                                                "/ping",
                                                "/status",
                                                "/actuator/health",
                                                "/metrics",
                                                "/actuator/health/**",
                                                "/actuator/prometheus"};
#define MACHINES_COUNT (sizeof asked_by_machines / sizeof *asked_by_machines)

/* ---- whom to embed to --------------------------------------------------- */

static int add_network (weft_instruction_t *order, const char *text)
{
  char why[120] = "";
  weft_network_t network;
  if (weft_network_parse (text, &network, why, sizeof why) < 0) {
    weft_log_error ("bad embed-to '%.60s': %s; private and any are meant, too", text, why);
    return WEFT_E_USAGE;
  }
  for (uint32_t n = 0; n < order->network_count; n++)
    if (memcmp (&order->networks[n], &network, sizeof network) == 0)
      return 0;
  if (order->network_count == WEFT_NETWORKS_MAX) {
    weft_log_error (
        "more than %d networks in --embed-to, where private counts as %d beside others; use wider ones",
        WEFT_NETWORKS_MAX, WEFT_NETWORKS_PRIVATE);
    return WEFT_E_USAGE;
  }
  order->networks[order->network_count++] = network;
  return 0;
}

/* One value of the option: words between commas. */
static int add_networks (weft_instruction_t *order, const char *words, int *private_p)
{
  for (const char *at = words;; at++) {
    char word[WEFT_NETWORK_TEXT_MAX + 14];
    size_t size = strcspn (at, ",");
    snprintf (word, sizeof word, "%.*s", (int) (size < sizeof word ? size : sizeof word), at);
    if (strcmp (word, "any") == 0)
      order->embed_to = WEFT_EMBED_TO_ANY;
    else if (strcmp (word, "private") == 0)
      *private_p = 1;
    else if (add_network (order, word) < 0)
      return WEFT_E_USAGE;
    at += size;
    if (!*at)
      return 0;
  }
}

static int read_embed_to (const ctl_call_t *call, weft_instruction_t *order)
{
  uint32_t at = 0;
  int private = 0;
  for (const char *words; (words = ctl_call_next (call, "embed-to", &at));)
    if (add_networks (order, words, &private) < 0)
      return WEFT_E_USAGE;
  /* Networks stand in place of the private ones: those are named if they are meant, too. */
  for (int n = 0; n < WEFT_NETWORKS_PRIVATE && private && order->network_count; n++)
    if (add_network (order, weft_networks_private[n]) < 0)
      return WEFT_E_USAGE;
  if (order->embed_to == WEFT_EMBED_TO_ANY)
    order->network_count = 0;
  return 0;
}

/* ---- what starts no task ------------------------------------------------ */

static int read_header (const ctl_call_t *call, weft_instruction_t *order)
{
  const char *name = ctl_call_value (call, "match-header", "");
  size_t size = strlen (name);
  if (size >= sizeof order->header || (ctl_call_has (call, "match-header") && size == 0)) {
    weft_log_error ("bad match-header '%.40s': a name of 1 to %d characters is meant", name,
                    WEFT_HEADER_MAX - 1);
    return WEFT_E_USAGE;
  }
  if (strspn (name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!#$%&'*+^`|~") !=
      size) {
    weft_log_error ("bad match-header '%s': a name alone is meant, such as x-debug; values are not looked at",
                    name);
    return WEFT_E_USAGE;
  }
  for (size_t n = 0; n <= size; n++)
    order->header[n] = (char) (name[n] >= 'A' && name[n] <= 'Z' ? name[n] | 0x20 : name[n]);
  return 0;
}

static int add_exclude (weft_instruction_t *order, const char *pattern)
{
  char why[200] = "";
  if (*pattern == 0 || weft_pattern_check (pattern, why, sizeof why) < 0) {
    weft_log_error ("bad exclude '%.80s': %s", pattern, *pattern ? why : "a pattern, or none, is meant");
    return WEFT_E_USAGE;
  }
  if (order->exclude_count == WEFT_EXCLUDES_MAX) {
    weft_log_error (
        "more than %d patterns in --exclude, with those that are there by themselves; use * or **",
        WEFT_EXCLUDES_MAX);
    return WEFT_E_USAGE;
  }
  snprintf (order->excludes[order->exclude_count++], WEFT_MATCH_MAX, "%s", pattern);
  return 0;
}

static int read_excludes (const ctl_call_t *call, weft_instruction_t *order)
{
  uint32_t at = 0;
  int none = 0;
  for (const char *text; (text = ctl_call_next (call, "exclude", &at));)
    none |= strcmp (text, "none") == 0;
  /* A match that one of them holds for asks for it by name. */
  for (size_t n = 0; n < MACHINES_COUNT && !none; n++)
    if (*order->match == 0 || !weft_pattern_holds (asked_by_machines[n], order->match, strlen (order->match)))
      if (add_exclude (order, asked_by_machines[n]) < 0)
        return WEFT_E_USAGE;
  at = 0;
  for (const char *text; (text = ctl_call_next (call, "exclude", &at));)
    if (strcmp (text, "none") != 0 && add_exclude (order, text) < 0)
      return WEFT_E_USAGE;
  return 0;
}

int ctl_scope_read (const ctl_call_t *call, weft_instruction_t *order)
{
  if (read_embed_to (call, order) < 0 || read_header (call, order) < 0 || read_excludes (call, order) < 0)
    return WEFT_E_USAGE;
  return 0;
}

void ctl_scope_put (json_t *request, const weft_instruction_t *order)
{
  json_t *networks = json_array (), *excludes = json_array ();
  for (uint32_t n = 0; n < order->network_count; n++) {
    char text[WEFT_NETWORK_TEXT_MAX];
    weft_network_format (&order->networks[n], text);
    json_array_append_new (networks, json_string (text));
  }
  for (uint32_t n = 0; n < order->exclude_count; n++)
    json_array_append_new (excludes, ctl_json_text (order->excludes[n]));
  json_object_set_new (request, "embed_to",
                       json_string (order->embed_to == WEFT_EMBED_TO_ANY ? "any" : "private"));
  json_object_set_new (request, "networks", networks);
  json_object_set_new (request, "header", ctl_json_text (order->header));
  json_object_set_new (request, "excludes", excludes);
}
