/* SPDX-License-Identifier: Apache-2.0 */
/* http1: the framing of one direction of an HTTP/1 connection, one byte stream
 * at a time. Says where heads and messages end; keeps the name of a request,
 * the contexts it carries and the status of a response. Bodies are skipped by
 * count and never looked at.
 *
 * Phases (probe_phase_t), the function of each transition, [the event it gives]:
 *
 *   START ─start─▶ LEAD_LF ─lead_lf─▶ START             an empty line before a request
 *   START ─start─▶ METHOD ─method─▶ TARGET ─target─▶ PATH, QUERY, SCHEME … AUTHORITY
 *     │ a response                                     │ path, query, absolute, authority
 *     └──────start──────▶ VERSION ◀────────────────────┘
 *   VERSION ─version─▶ VERSION_END ─version_end─▶ FIELD             of a request
 *   VERSION ─version─▶ STATUS ─status─▶ LINE ─probe_line_rest─▶ FIELD
 *
 *   FIELD ─lines─▶ FIELD                                 whole lines, in one look
 *   FIELD ─lines─▶ LINE ─probe_line_rest─▶ FIELD          a field that is none of ours
 *   FIELD ─lines─▶ NAME ─name─▶ VALUE ─value─▶ FIELD      one that may be
 *   FIELD ─blank_line─▶ BLANK [BLANK, of a request]       a line begins with CR or LF
 *   BLANK ─blank_line─▶ (BLANK_LF) ─head_done─▶           [HEAD], then the first that fits:
 *       TUNNEL [TUNNEL]   101, or 2xx to CONNECT; final
 *       START             another 1xx
 *       DONE              the answer to HEAD, 204, 304; no length in a request; length 0
 *       CHUNK_FIRST       Transfer-Encoding: chunked
 *       BODY              Content-Length
 *       UNTIL_CLOSE       a response with neither; final, probe_http1_eof ends it
 *
 *   DONE ─feed─▶ START [END]            BODY ─count_down, skip─▶ START [END]
 *   CHUNK_FIRST ─chunk_size─▶ CHUNK_SIZE ─chunk_size─▶ CHUNK_EXT ─probe_line_rest─▶ CHUNK_DATA
 *        ▲                                                  │ size 0         │ count_down, skip
 *        └──── chunk_edge ── CHUNK_LF ◀─ chunk_edge ─ CHUNK_CR ◀─────────────┘
 *   TRAILER (from size 0) ─trailer─▶ TRAILER_LINE ─probe_line_rest─▶ TRAILER
 *   TRAILER ─trailer─▶ (TRAILER_LF) ─trailer─▶ START [END]
 *
 *   in a start line ─▶ FAILED_FOREIGN [FAILED]      anywhere else ─▶ FAILED [FAILED]
 *
 *  H1  a stream gives the same events however it is cut into calls
 *  H2  FAILED, FAILED_FOREIGN and TUNNEL are final; so is UNTIL_CLOSE, but for the end
 *  H3  what is doubtful (two lengths, obsolete folding of a field that
 *      matters, a bare CR, a bad chunk) fails: nobody guesses a boundary
 *  H4  BLANK is said once a head, with none of its blank line consumed, and only
 *      where nothing in the head contradicts itself
 *  H5  in BODY, UNTIL_CLOSE and CHUNK_DATA bytes are counted and not looked at, and
 *      `left` is how many there are to come: more than 0
 *  H6  all state is in the struct, of fixed size; no head is longer than HEAD_MAX
 *
 * Pure: no I/O, no globals, no allocation; plain data that may be copied. */
#ifndef PROBE_HTTP1_H
#define PROBE_HTTP1_H

#include <stddef.h>
#include <stdint.h>

#include "field_name.h"
#include "traceparent.h"
#include "tracestate.h"

typedef enum { PROBE_HTTP1_REQUEST, PROBE_HTTP1_RESPONSE } probe_http1_side_t;

typedef enum {
  PROBE_HTTP1_MORE,   /* everything was consumed */
  PROBE_HTTP1_BLANK,  /* request: the next byte begins the blank line; it is not consumed yet */
  PROBE_HTTP1_HEAD,   /* the blank line was consumed; feed again, even with size 0 */
  PROBE_HTTP1_END,    /* the message is complete */
  PROBE_HTTP1_TUNNEL, /* 101, or 2xx to CONNECT: not HTTP from here on */
  PROBE_HTTP1_FAILED
} probe_http1_event_t;

/* What a response must know of its request. */
typedef enum { PROBE_METHOD_OTHER, PROBE_METHOD_HEAD, PROBE_METHOD_CONNECT } probe_method_t;

/* A context that a head carries. */
typedef struct {
  probe_trace_t trace; /* of the last valid field */
  uint32_t at;         /* offset of the value in the head */
  uint8_t count;       /* fields of this name */
  uint8_t valid;       /* the last one was valid */
  uint8_t flags;       /* of a traceparent */
} probe_carried_t;

#define PROBE_HTTP1_TOKEN_MAX 64       /* bytes; the longest value that we read is 55 */
#define PROBE_HTTP1_FIELD_MAX 32       /* bytes; longer field names are none of ours */
#define PROBE_HTTP1_HEAD_MAX  0x100000 /* bytes; no server takes a longer head */

typedef struct {
  uint8_t side, phase, kind; /* kind: of the field in hand */
  uint8_t method;            /* request: probe_method_t */
  uint8_t answer_to;         /* response: probe_method_t of the request; set by the owner before the head */
  uint8_t mark;              /* the owner's; reset with each message */
  uint8_t cr;                /* the byte before was a CR inside a line */
  uint8_t foreign;           /* a field of another tracer was seen */
  uint8_t cut;               /* the name was longer than WEFT_NAME_MAX */
  uint8_t minor;             /* HTTP/1.<minor> */
  uint8_t length_seen, chunked;
  uint8_t lead; /* empty lines before the start line */
  uint8_t token_size, name_size;
  uint8_t tracestates; /* fields of this name */
  uint16_t status, fields;
  uint32_t head_size; /* bytes of this head so far */
  uint32_t heads;     /* BLANK lines reached since init; responses: heads complete */
  uint32_t value_size;
  uint64_t left;   /* bytes of body or chunk to come */
  uint64_t length; /* Content-Length */
  probe_carried_t traceparent, weft;
  const probe_wanted_t *wanted;   /* names to look for, NULL: none; set by the owner before the head */
  uint32_t wanted_serial;         /* the owner's: which names `headers` is about */
  uint32_t headers;               /* those that this head has */
  probe_tracestate_t *tracestate; /* where it is kept, NULL: nowhere; set by the owner before the head */
  char name[WEFT_NAME_MAX];       /* request: "GET /path" */
  char token[PROBE_HTTP1_TOKEN_MAX];
} probe_http1_t;
_Static_assert(sizeof (probe_http1_t) <= 384, "fits probe_room_t.snapshot");

void probe_http1_init (probe_http1_t *self, probe_http1_side_t side);
/* Reads up to the next event. *ret_consumed is always set. */
probe_http1_event_t probe_http1_feed (probe_http1_t *self, const void *data, size_t size,
                                      size_t *ret_consumed);
/* `size` bytes passed that nobody looked at: MORE, END or FAILED. Only inside a body. */
probe_http1_event_t probe_http1_skip (probe_http1_t *self, size_t size);
/* Takes back the last `size` of skipped bytes, if the skip ended nothing. */
void probe_http1_unskip (probe_http1_t *self, size_t size);
/* 1: nothing but `heads` has to be kept to come back here by probe_http1_rewind. */
int probe_http1_at_start (const probe_http1_t *self);
void probe_http1_rewind (probe_http1_t *self, uint32_t heads);
/* The stream ended: END for a body that lasts until then, MORE between
 * messages, else FAILED. */
probe_http1_event_t probe_http1_eof (const probe_http1_t *self);
/* 1: between two messages (nothing of the next one was seen). */
int probe_http1_idle (const probe_http1_t *self);
/* Bytes that can be consumed by count alone; 0: they have to be looked at. */
uint64_t probe_http1_opaque (const probe_http1_t *self);
/* 1: FAILED before any start line was complete: the stream is not HTTP/1. */
int probe_http1_foreign (const probe_http1_t *self);
/* 1: data begins with a whole request line, "METHOD SP target SP HTTP/1.x CRLF". */
int probe_http1_request_line (const void *data, size_t size);

#endif
