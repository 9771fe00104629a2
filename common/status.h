/* SPDX-License-Identifier: Apache-2.0 */
/* status: every way a function of weft can fail, as one list.
 *
 * Functions return 0 or one of these negative values; results go out through
 * `ret_x` and are untouched on failure. Thread- and signal-safe: constants and
 * string literals only. */
#ifndef WEFT_STATUS_H
#define WEFT_STATUS_H

#define WEFT_STATUS_MAP(XX)                                                                                  \
  XX (1, NOMEM, "out of memory")                                                                             \
  XX (2, IO, "input or output failed")                                                                       \
  XX (3, RANGE, "value out of its range")                                                                    \
  XX (4, MALFORMED, "malformed data")                                                                        \
  XX (5, VERSION, "made by a newer major version")                                                           \
  XX (6, NOT_FOUND, "not found")                                                                             \
  XX (7, BUSY, "already in use")                                                                             \
  XX (8, DENIED, "permission denied")                                                                        \
  XX (9, TIMEOUT, "timed out")                                                                               \
  XX (10, FULL, "no room left")                                                                              \
  XX (11, UNSUPPORTED, "not supported")                                                                      \
  XX (12, GONE, "the other side has gone")                                                                   \
  XX (13, STATE, "not possible in this state")                                                               \
  XX (14, USAGE, "wrong usage")

typedef enum {
  WEFT_OK = 0,
#define XX(number, name, text) WEFT_E_##name = -(number),
  WEFT_STATUS_MAP (XX)
#undef XX
} weft_status_t;

/* "MALFORMED"; "UNKNOWN" for a number that is none of ours. Never NULL. */
const char *weft_status_name (int status);
/* "malformed data". Never NULL. */
const char *weft_status_text (int status);

#endif
