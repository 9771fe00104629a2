/* SPDX-License-Identifier: Apache-2.0 */
#include "traceparent.h"

#include <string.h>

#include "../../common/ids.h"
#include "../../common/status.h"

static int all_zero (const uint8_t task[WEFT_TASK_ID_SIZE])
{
  static const uint8_t none[WEFT_TASK_ID_SIZE];
  return memcmp (task, none, sizeof none) == 0;
}

int probe_traceparent_parse (const char *text, size_t size, probe_trace_t *ret_trace)
{
  probe_trace_t trace;
  uint8_t version, flags;
  if (size < PROBE_TRACEPARENT_SIZE || text[2] != '-' || text[35] != '-' || text[52] != '-')
    return WEFT_E_MALFORMED;
  if (weft_hex_get (&version, text, 1) || weft_hex_get (trace.task, text + 3, WEFT_TASK_ID_SIZE) ||
      weft_hex_get_u64 (&trace.request, text + PROBE_TRACEPARENT_DIGITS) ||
      weft_hex_get (&flags, text + 53, 1))
    return WEFT_E_MALFORMED;
  if (version == 0xff || trace.request == 0 || all_zero (trace.task))
    return WEFT_E_MALFORMED;
  // A later version may say more, but only behind another dash.
  if (size > PROBE_TRACEPARENT_SIZE && (version == 0 || text[PROBE_TRACEPARENT_SIZE] != '-'))
    return WEFT_E_MALFORMED;
  *ret_trace = trace;
  return 0;
}

int probe_weft_task_parse (const char *text, size_t size, probe_trace_t *ret_trace)
{
  probe_trace_t trace;
  if (size != PROBE_WEFT_TASK_SIZE || text[32] != '-' || weft_hex_get (trace.task, text, WEFT_TASK_ID_SIZE) ||
      weft_hex_get_u64 (&trace.request, text + PROBE_WEFT_TASK_DIGITS))
    return WEFT_E_MALFORMED;
  if (trace.request == 0 || all_zero (trace.task))
    return WEFT_E_MALFORMED;
  *ret_trace = trace;
  return 0;
}

static char *put (char *out, const char *text, size_t size)
{
  memcpy (out, text, size);
  return out + size;
}

size_t probe_traceparent_put (char out[PROBE_TRACE_FIELD_MAX], const probe_trace_t *trace)
{
  char *at = put (out, "traceparent: 00-", 16);
  weft_hex_put (at, trace->task, WEFT_TASK_ID_SIZE);
  at[32] = '-';
  weft_hex_put_u64 (at + 33, trace->request);
  at = put (at + 49, "-01\r\n", 5);
  return (size_t) (at - out);
}

size_t probe_weft_task_put (char out[PROBE_TRACE_FIELD_MAX], const probe_trace_t *trace)
{
  char *at = put (out, "weft-task: ", 11);
  weft_hex_put (at, trace->task, WEFT_TASK_ID_SIZE);
  at[32] = '-';
  weft_hex_put_u64 (at + 33, trace->request);
  at = put (at + 49, "\r\n", 2);
  return (size_t) (at - out);
}
