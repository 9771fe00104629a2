/* SPDX-License-Identifier: Apache-2.0 */
/* collector: one OTLP/HTTP endpoint elsewhere. Posts a message and says what came of it; whether
 * and when it is tried again is its caller's matter. The only room that knows libcurl.
 *
 * One thread, but for ctl_collector_hurry. */
#ifndef CTL_COLLECTOR_H
#define CTL_COLLECTOR_H

#include <stddef.h>
#include <stdint.h>

typedef struct ctl_collector_t ctl_collector_t;

#define CTL_COLLECTOR_WHY_MAX 240

typedef struct {
  long status;             /* of HTTP; 0: there was no answer */
  uint64_t rejected;       /* spans that a collector that took the message did not take */
  uint64_t retry_after_ms; /* it asked for so long a pause, 0: it did not */
  char why[CTL_COLLECTOR_WHY_MAX];
} ctl_collector_answer_t;

/* http:// or https://; without a path /v1/traces is meant. Further header fields (keys of a vendor) come
 * from OTEL_EXPORTER_OTLP_HEADERS; OTEL_EXPORTER_OTLP_COMPRESSION may say gzip. WEFT_E_USAGE with `why`;
 * WEFT_E_NOMEM. */
int ctl_collector_new (const char *url, ctl_collector_t **ret_self, char *why, size_t why_size);
void ctl_collector_destroy (ctl_collector_t **self_p);
/* As it is used, with its path and without user and password. */
const char *ctl_collector_url (const ctl_collector_t *self);

/* 0: taken. WEFT_E_BUSY: not now, the same message may be sent again (no connection, 429, 502, 503,
 * 504). WEFT_E_DENIED: never. Both with `why`. WEFT_E_NOMEM: nothing was sent. Takes WEFT_COLLECTOR_MS at most. */
int ctl_collector_post (ctl_collector_t *self, const void *data, size_t size,
                        ctl_collector_answer_t *ret_answer);
/* Called about once a second while a post is under way. The posting thread, before the first post. */
void ctl_collector_watch (ctl_collector_t *self, void (*fn) (void *arg), void *arg);
/* From any thread: what is under way and all that follows ends by then (CLOCK_MONOTONIC). */
void ctl_collector_hurry (ctl_collector_t *self, uint64_t until_ns);

#endif
