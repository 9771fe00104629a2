/* SPDX-License-Identifier: Apache-2.0 */
/* tracestate: what stands beside a `traceparent`, read as its bytes pass and
 * kept for the requests that the subtask sends (W3C Trace Context level 2, 3.3).
 *
 *   list = member *( OWS "," OWS member )     member = [ key "=" value ]
 *
 *  T1  all fields of one head are one list, in their order
 *  T2  one wrong byte, or a 33rd member, and there is no list
 *  T3  at most PROBE_TRACESTATE_MAX bytes are kept, whole members only: where
 *      the list is longer, those above PROBE_TRACESTATE_LARGE bytes go, then
 *      all from the first that does not fit
 *  T4  the result does not depend on how the bytes were cut
 *
 * Members are opaque and stay as they are; blanks around them go. Pure, no
 * allocation; each byte is looked at once, save where T3 makes room once. */
#ifndef PROBE_TRACESTATE_H
#define PROBE_TRACESTATE_H

#include <stddef.h>
#include <stdint.h>

#define PROBE_TRACESTATE_MAX     512 /* the specification asks for so many at least */
#define PROBE_TRACESTATE_LARGE   128 /* bytes; longer members are the first to go */
#define PROBE_TRACESTATE_MEMBERS 32
#define PROBE_TRACESTATE_KEY     256
#define PROBE_TRACESTATE_VALUE   256

typedef struct {
  uint8_t phase, members;
  uint8_t bad;     /* T2 */
  uint8_t over;    /* longer than what can be kept: large members go */
  uint8_t full;    /* a small one did not fit: so do all behind it */
  uint8_t skipped; /* of the member in hand not all bytes are there */
  uint16_t size;   /* of the whole members in `text` */
  uint16_t length; /* of the member in hand */
  uint16_t key;    /* of its key */
  uint16_t blanks; /* behind its last byte so far */
  char text[PROBE_TRACESTATE_MAX];
} probe_tracestate_t;

/* A new head. */
void probe_tracestate_begin (probe_tracestate_t *self);
/* Bytes of a field's value, without the end of its line. */
void probe_tracestate_feed (probe_tracestate_t *self, const char *data, size_t size);
/* The field ends. */
void probe_tracestate_end (probe_tracestate_t *self);
/* The head is complete: bytes of `text` that are worth sending, 0: none. */
size_t probe_tracestate_size (const probe_tracestate_t *self);

#define PROBE_TRACESTATE_FIELD_MAX (12 + PROBE_TRACESTATE_MAX + 2) /* with name and CRLF */
/* Writes the field line of a list of `size` bytes into at most `room` bytes, whole
 * members cut from its end; returns its size, 0: none fits. No terminator. */
size_t probe_tracestate_put (char *out, size_t room, const char *text, size_t size);

#endif
