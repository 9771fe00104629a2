/* SPDX-License-Identifier: Apache-2.0 */
/* otlp: executions as OTLP trace messages (protobuf), for whoever collects spans.
 * A task is a trace, a task id its trace id; the spans are those of spans.h.
 *
 *  O1  nothing is invented: what is not known has no attribute
 *  O2  a message holds spans_max spans at most; a larger execution goes out as several
 *  O3  texts are valid UTF-8, whatever their senders wrote
 *
 * Attributes follow OpenTelemetry's semantic conventions where they have a name for it, else they
 * begin with "weft.". One thread. */
#ifndef CTL_OTLP_H
#define CTL_OTLP_H

#include <stddef.h>
#include <stdint.h>

#include "spans.h"

typedef struct {
  uint32_t spans_max;
  ctl_place_fn *place; /* its texts live until the next flush */
  /* Takes one ExportTraceServiceRequest; its bytes are borrowed. A status ends what is under way. */
  int (*take) (const void *data, size_t size, uint32_t spans, void *arg);
  void *arg;
} ctl_otlp_options_t;

typedef struct ctl_otlp_t ctl_otlp_t;

ctl_otlp_t *ctl_otlp_new (const ctl_otlp_options_t *options);
void ctl_otlp_destroy (ctl_otlp_t **self_p);
/* The execution is borrowed until the next flush, also after a failure. WEFT_E_NOMEM, or what
 * `take` said. */
int ctl_otlp_add (ctl_otlp_t *self, const ctl_execution_t *execution);
/* Hands over what was added; what could not be is dropped. */
int ctl_otlp_flush (ctl_otlp_t *self);
/* Spans that wait for a flush. */
uint32_t ctl_otlp_waiting (const ctl_otlp_t *self);

/* What a collector answered: spans that it did not take, with its reason ("" if it gave none).
 * WEFT_E_MALFORMED. */
int ctl_otlp_read_answer (const void *data, size_t size, uint64_t *ret_rejected, char *why, size_t why_size);

#endif
