/* SPDX-License-Identifier: Apache-2.0 */
/* field_name: which header fields matter to the framing machine. Pure. */
#ifndef PROBE_FIELD_NAME_H
#define PROBE_FIELD_NAME_H

#include <stddef.h>

typedef enum {
  KIND_NONE,
  KIND_LENGTH,
  KIND_CODING,
  KIND_TRACEPARENT,
  KIND_WEFT,
  KIND_FOREIGN,
  KIND_TRACESTATE,
  KIND_DUBIOUS /* a name of ours with blanks before the colon */
} probe_field_kind_t;

/* Of a name in lower case, perhaps only its first bytes. */
probe_field_kind_t probe_field_kind (const char *name, size_t size);

#endif
