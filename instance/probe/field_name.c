/* SPDX-License-Identifier: Apache-2.0 */
#include "field_name.h"

#include <string.h>

probe_field_kind_t probe_field_kind (const char *name, size_t size)
{
#define IS(text)  (size == sizeof text - 1 && memcmp (name, text, sizeof text - 1) == 0)
#define HAS(text) (size >= sizeof text - 1 && memcmp (name, text, sizeof text - 1) == 0)
  if (IS ("content-length"))
    return KIND_LENGTH;
  if (IS ("transfer-encoding"))
    return KIND_CODING;
  if (IS ("traceparent"))
    return KIND_TRACEPARENT;
  if (IS ("tracestate"))
    return KIND_TRACESTATE;
  if (IS ("weft-task"))
    return KIND_WEFT;
  if (IS ("b3") || IS ("sw8") || IS ("uber-trace-id") || HAS ("x-b3-") || HAS ("x-datadog-"))
    return KIND_FOREIGN;
  return KIND_NONE;
#undef IS
#undef HAS
}

uint32_t probe_wanted_hits (const probe_wanted_t *self, const char *name, size_t size)
{
  uint32_t hits = 0;
  for (uint32_t i = 0; i < WEFT_INSTRUCTIONS_MAX; i++)
    if ((self->asks >> i & 1) && size < WEFT_HEADER_MAX && self->name[i][size] == 0 &&
        memcmp (self->name[i], name, size) == 0)
      hits |= 1u << i;
  return hits;
}
