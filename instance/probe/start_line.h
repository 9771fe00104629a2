/* SPDX-License-Identifier: Apache-2.0 */
/* start_line: the part of the framing machine that reads request and status
 * lines: method, target down to its path, version, status. */
#ifndef PROBE_START_LINE_H
#define PROBE_START_LINE_H

#include "http1.h"

/* Phases up to PHASE_BLANK_LF are parts of a head: their bytes count into head_size. */
typedef enum {
  PHASE_START,
  PHASE_LEAD_LF, /* in an empty line before the start line */
  PHASE_METHOD,
  PHASE_TARGET,
  PHASE_PATH,
  PHASE_QUERY,
  PHASE_SCHEME,
  PHASE_SLASH1,
  PHASE_SLASH2,
  PHASE_AUTHORITY,
  PHASE_VERSION,
  PHASE_VERSION_END,
  PHASE_STATUS,
  PHASE_LINE, /* rest of a line that does not matter */
  PHASE_FIELD,
  PHASE_NAME,
  PHASE_VALUE,
  PHASE_BLANK,
  PHASE_BLANK_LF,
  PHASE_HEAD_LAST = PHASE_BLANK_LF,
  PHASE_DONE, /* the head is over and no body follows */
  PHASE_BODY, /* the three in which bytes are only counted */
  PHASE_UNTIL_CLOSE,
  PHASE_CHUNK_DATA,
  PHASE_CHUNK_FIRST,
  PHASE_CHUNK_SIZE,
  PHASE_CHUNK_EXT,
  PHASE_CHUNK_CR,
  PHASE_CHUNK_LF,
  PHASE_TRAILER,
  PHASE_TRAILER_LINE,
  PHASE_TRAILER_LF,
  PHASE_TUNNEL,
  PHASE_FAILED_FOREIGN,
  PHASE_FAILED
} probe_phase_t;

/* probe_http1_opaque for those who ask in every call. */
static inline uint64_t probe_phase_opaque (const probe_http1_t *self)
{
  return (unsigned) self->phase - PHASE_BODY <= PHASE_CHUNK_DATA - PHASE_BODY ? self->left : 0;
}

/* From any phase before PHASE_LINE. p < end; returns how far it came. */
const char *probe_start_line (probe_http1_t *self, const char *p, const char *end);

#endif
