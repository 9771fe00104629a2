/* SPDX-License-Identifier: Apache-2.0 */
#include "traceparent.h"

#include <endian.h>
#include <string.h>

#include "../../common/ids.h"
#include "../../common/status.h"

/* Value of a lower-case digit plus 1; 0: none. On the path of every captured
 * request, so one look a digit. */
static const uint8_t digits[256] = {
    ['0'] = 1, ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16};

/* 0, or negative and *ret_value undefined. */
static int hex (const char *text, size_t size, uint64_t *ret_value)
{
  uint64_t value = 0;
  unsigned bad = 0;
  for (size_t i = 0; i < size; i++) {
    unsigned digit = digits[(unsigned char) text[i]];
    bad |= digit - 1;
    value = value << 4 | ((digit - 1) & 15);
  }
  *ret_value = value;
  return bad > 15 ? -1 : 0;
}

static int hex_task (const char *text, uint8_t ret_task[WEFT_TASK_ID_SIZE])
{
  uint64_t high, low;
  if (hex (text, 16, &high) || hex (text + 16, 16, &low))
    return -1;
  high = htobe64 (high);
  low = htobe64 (low);
  memcpy (ret_task, &high, 8);
  memcpy (ret_task + 8, &low, 8);
  return (high | low) == 0 ? -1 : 0;
}

int probe_traceparent_parse (const char *text, size_t size, probe_trace_t *ret_trace)
{
  probe_trace_t trace;
  uint64_t version, flags;
  if (size < PROBE_TRACEPARENT_SIZE || text[2] != '-' || text[35] != '-' || text[52] != '-')
    return WEFT_E_MALFORMED;
  if (hex (text, 2, &version) || hex_task (text + 3, trace.task) ||
      hex (text + PROBE_TRACEPARENT_DIGITS, 16, &trace.request) || hex (text + 53, 2, &flags))
    return WEFT_E_MALFORMED;
  if (version == 0xff || trace.request == 0)
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
  if (size != PROBE_WEFT_TASK_SIZE || text[32] != '-' || hex_task (text, trace.task) ||
      hex (text + PROBE_WEFT_TASK_DIGITS, 16, &trace.request) || trace.request == 0)
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
