/* SPDX-License-Identifier: Apache-2.0 */
/* fields: the part of the framing machine that reads header fields. It looks at
 * the first bytes of a line to see whether the field may be one of ours, and for
 * the end of the line; the few that are ours are read. */
#ifndef PROBE_FIELDS_H
#define PROBE_FIELDS_H

#include "start_line.h"

/* From PHASE_LINE, PHASE_FIELD (no CR or LF at p), PHASE_NAME or PHASE_VALUE. p < end;
 * returns how far it came. `head_at`: bytes of this head before p. */
const char *probe_fields (probe_http1_t *self, const char *p, const char *end, uint32_t head_at);
/* To behind the LF, then `then`. A CR that ends no line fails (H3). */
const char *probe_line_rest (probe_http1_t *self, const char *p, const char *end, probe_phase_t then);

#endif
