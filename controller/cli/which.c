/* SPDX-License-Identifier: Apache-2.0 */
#include "which.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/log.h"
#include "../../common/pattern.h"
#include "../../common/status.h"
#include "../view/json.h"

static int put_time (const ctl_call_t *call, json_t *request)
{
  uint64_t since_ms = 0, last_ms = 0, slower_ms = 0;
  if (ctl_call_duration (call, "since", UINT32_MAX, 0, &since_ms) < 0 ||
      ctl_call_duration (call, "last", UINT32_MAX, 0, &last_ms) < 0 ||
      ctl_call_duration (call, "slower", UINT32_MAX, 0, &slower_ms) < 0)
    return WEFT_E_USAGE;
  since_ms = since_ms ? since_ms : last_ms;
  if (since_ms)
    json_object_set_new (
        request, "from_ns",
        json_integer ((json_int_t) (weft_clock_ns (CLOCK_REALTIME) - since_ms * WEFT_NS_PER_MS)));
  if (slower_ms)
    json_object_set_new (request, "slower_ns", json_integer ((json_int_t) (slower_ms * WEFT_NS_PER_MS)));
  if (ctl_call_has (call, "errors"))
    json_object_set_new (request, "errors", json_true ());
  return 0;
}

static int put_names (const ctl_call_t *call, json_t *request)
{
  const char *name = ctl_call_value (call, "name", NULL), *service = ctl_call_value (call, "service", NULL);
  char why[200] = "";
  if (name && weft_pattern_check (name, why, sizeof why) < 0) {
    weft_log_error (
        "bad pattern '%.200s' for --name: %s; one like 'POST /checkout' is meant, as `weft tasks` lists them",
        name, why);
    return WEFT_E_USAGE;
  }
  if (name)
    json_object_set_new (request, "match", ctl_json_text (name));
  if (service)
    json_object_set_new (request, "service", ctl_json_text (service));
  return 0;
}

static int put_instructions (const ctl_call_t *call, json_t *request)
{
  json_t *numbers = json_array ();
  uint32_t at = 0;
  for (const char *text; (text = ctl_call_next (call, "instruction", &at));) {
    char *end;
    unsigned long number = strtoul (text, &end, 10);
    if (*text < '0' || *text > '9' || *end || number == 0 || number > UINT32_MAX) {
      weft_log_error ("bad instruction '%s': its number is meant; `weft ls` shows which are live", text);
      json_decref (numbers);
      return WEFT_E_USAGE;
    }
    json_array_append_new (numbers, json_integer ((json_int_t) number));
  }
  json_object_set_new (request, "instructions", numbers);
  return 0;
}

json_t *ctl_which (const ctl_call_t *call, const char *op, uint32_t limit)
{
  uint64_t number = 0;
  if (ctl_call_number (call, "limit", 1, WEFT_EACH_MAX, limit, &number) < 0)
    return NULL;
  json_t *request = json_pack ("{s:s, s:I}", "op", op, "limit", (json_int_t) number);
  if (put_time (call, request) < 0 || put_names (call, request) < 0 || put_instructions (call, request) < 0) {
    json_decref (request);
    return NULL;
  }
  return request;
}
