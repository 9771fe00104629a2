/* SPDX-License-Identifier: Apache-2.0 */
/* field_name: which header fields matter to the framing machine. Pure. */
#ifndef PROBE_FIELD_NAME_H
#define PROBE_FIELD_NAME_H

#include <stddef.h>
#include <stdint.h>

#include "../../common/limits.h"

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

/* Names that somebody asks for, beside these: only whether they are there. */
typedef struct {
  uint32_t asks; /* bit per name that is set */
  char name[WEFT_INSTRUCTIONS_MAX][WEFT_HEADER_MAX];
} probe_wanted_t;
/* A bit per name that this one is; lower case. */
uint32_t probe_wanted_hits (const probe_wanted_t *self, const char *name, size_t size);

#endif
