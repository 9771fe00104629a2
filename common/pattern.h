/* SPDX-License-Identifier: Apache-2.0 */
/* pattern: which requests a `--match` means, by method and path.
 *
 *   pattern = "" | [ ( METHOD | "*" ) " " ] path      "" matches all
 *   path    = begins with "/" or "**"
 *     "*", "{…}"   any bytes within one path segment, also none
 *     "**"         any bytes, slashes too, also none
 *
 * "{id}" is what templated names carry in place of a number: a name copied from
 * a report selects the requests that it stands for. The name compared with is
 * "GET /orders/17", without query. libc only, no allocation: the probe links it. */
#ifndef WEFT_PATTERN_H
#define WEFT_PATTERN_H

#include <stddef.h>

#include "limits.h"

/* 0, or WEFT_E_MALFORMED / WEFT_E_RANGE with a reason in `why` (cut to size). */
int weft_pattern_check (const char *pattern, char *why, size_t why_size);
/* 1 if `pattern` (which passed the check) holds for the name, else 0. Time grows
 * at most with name_size * (name_size + pattern size). Async-signal-safe. */
int weft_pattern_holds (const char *pattern, const char *name, size_t name_size);

#endif
