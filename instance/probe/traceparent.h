/* SPDX-License-Identifier: Apache-2.0 */
/* traceparent: the two header fields that carry a task id, as text.
 *
 *   traceparent: 00-<task, 32 hex>-<request, 16 hex>-<flags, 2 hex>
 *   weft-task: <task, 32 hex>-<request, 16 hex>
 *
 * Rules of W3C Trace Context level 2. Pure, any thread. */
#ifndef PROBE_TRACEPARENT_H
#define PROBE_TRACEPARENT_H

#include <stddef.h>
#include <stdint.h>

#include "../../common/limits.h"

typedef struct {
  uint8_t task[WEFT_TASK_ID_SIZE];
  uint64_t request;
} probe_trace_t;

#define PROBE_TRACEPARENT_SIZE   55 /* characters of a version 00 value */
#define PROBE_WEFT_TASK_SIZE     49
#define PROBE_TRACE_FIELD_MAX    72   /* bytes of either field with name and CRLF */
#define PROBE_FLAG_RANDOM        0x02 /* the task id is random: level 2 */
#define PROBE_TRACEPARENT_DIGITS 36   /* offset of the request id in the value */
#define PROBE_WEFT_TASK_DIGITS   33

/* `text` holds the first bytes of a value of `size` bytes, at least
 * PROBE_TRACEPARENT_SIZE + 1 of them if it has so many. 0 or WEFT_E_MALFORMED. */
int probe_traceparent_parse (const char *text, size_t size, probe_trace_t *ret_trace);
/* The flags of a value that was parsed. */
uint8_t probe_traceparent_flags (const char *text);
int probe_weft_task_parse (const char *text, size_t size, probe_trace_t *ret_trace);
/* Writes the whole field line with CRLF; returns its size. No terminator. `flags`: those that
 * came with this task id, 0 if it is ours. Sampled is always set: without it other tracers behind
 * us would switch off. Random stays as it came; all others are unknown and go. */
size_t probe_traceparent_put (char out[PROBE_TRACE_FIELD_MAX], const probe_trace_t *trace, uint8_t flags);
size_t probe_weft_task_put (char out[PROBE_TRACE_FIELD_MAX], const probe_trace_t *trace);
/* The 16 lower-case digits of an id, no terminator. */
void probe_hex_put (char out[16], uint64_t value);

#endif
