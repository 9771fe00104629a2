/* SPDX-License-Identifier: Apache-2.0 */
#include "http1.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "field_name.h"
#include "start_line.h"

#define CHUNK_LEFT_MAX (1ull << 56) /* no overflow while a size is read */

void probe_http1_init (probe_http1_t *self, probe_http1_side_t side)
{
  memset (self, 0, sizeof *self);
  self->side = (uint8_t) side;
}

int probe_http1_idle (const probe_http1_t *self)
{
  return self->phase == PHASE_START;
}

int probe_http1_foreign (const probe_http1_t *self)
{
  return self->phase == PHASE_FAILED_FOREIGN;
}

uint64_t probe_http1_opaque (const probe_http1_t *self)
{
  return probe_phase_opaque (self);
}

/* ---- lines -------------------------------------------------------------- */
/* The first CR or LF, or end. */
static inline const char *line_end (const char *p, const char *end)
{
#ifdef __SSE2__
  const __m128i cr = _mm_set1_epi8 ('\r'), lf = _mm_set1_epi8 ('\n');
  for (; end - p >= 16; p += 16) {
    __m128i bytes = _mm_loadu_si128 ((const __m128i *) (const void *) p);
    int hits = _mm_movemask_epi8 (_mm_or_si128 (_mm_cmpeq_epi8 (bytes, cr), _mm_cmpeq_epi8 (bytes, lf)));
    if (hits)
      return p + __builtin_ctz ((unsigned) hits);
  }
#endif
  while (p < end && *p != '\r' && *p != '\n')
    p++;
  return p;
}

/* To behind the LF, then `then`. A CR that ends no line fails (H3). */
static const char *line_rest (probe_http1_t *self, const char *p, const char *end, probe_phase_t then)
{
  if (!self->cr) {
    p = line_end (p, end);
    if (p < end && *p == '\r') {
      self->cr = 1;
      p++;
    }
    if (p == end)
      return p;
  }
  self->phase = (uint8_t) (*p == '\n' ? then : PHASE_FAILED);
  self->cr = 0;
  return p + 1;
}

/* ---- fields ------------------------------------------------------------- */
/* A sieve on a few letters: 0 only for a name that is none of ours. Near the end
 * of the bytes it lets everything pass; PHASE_NAME looks closely. */
static inline int interesting (const char *p, const char *end)
{
#define LETTER(i) (p[i] | 0x20)
  if (end - p < 9)
    return 1;
#define BIT(letter) (1u << ((letter) &31))
  static const unsigned first =
      BIT ('b') | BIT ('c') | BIT ('s') | BIT ('t') | BIT ('u') | BIT ('w') | BIT ('x');
  if (!(first & BIT (*p)))
    return 0;
#undef BIT
  switch (LETTER (0)) {
  case 'b': // b3
    return p[1] == '3';
  case 'c': // content-length, not content-type or connection
    return LETTER (1) == 'o' && LETTER (8) == 'l';
  case 's': // sw8
    return LETTER (1) == 'w';
  case 't': // transfer-encoding, traceparent
    return LETTER (1) == 'r' && LETTER (2) == 'a';
  case 'u': // uber-trace-id
    return LETTER (1) == 'b';
  case 'w': // weft-task
    return LETTER (1) == 'e';
  case 'x': // x-b3-..., x-datadog-...
    return p[1] == '-' && (LETTER (2) == 'b' || LETTER (2) == 'd');
  default:
    return 0;
  }
#undef LETTER
}

/* As many lines as do not matter. */
static const char *field (probe_http1_t *self, const char *p, const char *end)
{
  self->token_size = 0;
  do {
    if (*p == ' ' || *p == '\t') {
      int folds = self->fields && (self->kind == KIND_NONE || self->kind == KIND_TRACESTATE);
      self->phase = folds ? PHASE_LINE : PHASE_FAILED;
      if (self->kind == KIND_TRACESTATE && self->tracestate)
        self->tracestate->bad = 1;
      return p;
    }
    self->fields++;
    self->kind = KIND_NONE;
    if (self->wanted || interesting (p, end)) {
      self->phase = PHASE_NAME;
      return p;
    }
    const char *stop = line_end (p, end);
    if (end - stop < 2 || stop[0] != '\r' || stop[1] != '\n') {
      self->phase = PHASE_LINE;
      return line_rest (self, stop, end, PHASE_FIELD);
    }
    p = stop + 2;
  } while (p < end && *p != '\r' && *p != '\n');
  return p;
}

/* Eight bytes of a name. `letters` has a blank, the bit between the two cases, where one stands. */
static inline int like8 (const char *p, const char *lower, const char *letters)
{
  uint64_t a, b, bits;
  memcpy (&a, p, sizeof a);
  memcpy (&b, lower, sizeof b);
  memcpy (&bits, letters, sizeof bits);
  return (a | bits) == b;
}

/* The names that come in every other head, where they lie in these bytes with
 * their colon. Returns what is behind that, or NULL: byte by byte. */
static const char *whole_name (probe_http1_t *self, const char *p, const char *end)
{
  probe_field_kind_t kind = KIND_NONE;
  if (end - p < 16)
    return NULL;
  if (p[14] == ':' && like8 (p, "content-", "       \0") && like8 (p + 6, "t-length", " \0      ")) {
    kind = KIND_LENGTH;
    p += 15;
  } else if (p[11] == ':' && like8 (p, "tracepar", "        ") && like8 (p + 3, "ceparent", "        ")) {
    kind = KIND_TRACEPARENT;
    p += 12;
  } else {
    return NULL;
  }
  self->kind = (uint8_t) kind;
  self->value_size = 0;
  self->phase = PHASE_VALUE;
  return p;
}

/* Where nobody keeps it, it is a line like any other. */
static void state_begins (probe_http1_t *self)
{
  if (self->tracestate && self->tracestates == 0)
    probe_tracestate_begin (self->tracestate);
  self->tracestates += self->tracestates < UINT8_MAX;
  self->phase = self->tracestate ? PHASE_VALUE : PHASE_LINE;
}

static const char *state_value (probe_http1_t *self, const char *p, const char *end)
{
  const char *stop = line_end (p, end);
  probe_tracestate_feed (self->tracestate, p, (size_t) (stop - p));
  if (stop < end) {
    probe_tracestate_end (self->tracestate);
    self->phase = PHASE_LINE;
  }
  return stop;
}

static const char *name (probe_http1_t *self, const char *p, const char *end)
{
  const char *behind = self->token_size || self->wanted ? NULL : whole_name (self, p, end);
  if (behind)
    return behind;
  for (; p < end && *p != ':'; p++) {
    if (*p == '\n' || *p == '\r') { // a line without a colon
      self->phase = PHASE_LINE;
      return p;
    }
    if (self->token_size == PROBE_HTTP1_FIELD_MAX) {
      self->kind = (uint8_t) probe_field_kind (self->token, self->token_size);
      self->foreign |= self->kind == KIND_FOREIGN;
      self->kind = KIND_NONE;
      self->phase = PHASE_LINE;
      return p;
    }
    self->token[self->token_size++] = (char) (*p >= 'A' && *p <= 'Z' ? *p | 0x20 : *p);
  }
  if (p == end)
    return p;
  size_t size = self->token_size;
  while (size && (self->token[size - 1] == ' ' || self->token[size - 1] == '\t'))
    size--;
  probe_field_kind_t kind = probe_field_kind (self->token, size);
  if (self->wanted)
    self->headers |= probe_wanted_hits (self->wanted, self->token, size);
  if (kind != KIND_NONE && size != self->token_size)
    kind = kind == KIND_TRACESTATE ? KIND_NONE : KIND_DUBIOUS;
  self->kind = (uint8_t) kind;
  self->foreign |= kind == KIND_FOREIGN;
  self->token_size = 0;
  self->value_size = 0;
  self->phase = kind == KIND_NONE || kind == KIND_FOREIGN ? PHASE_LINE : PHASE_VALUE;
  if (kind == KIND_DUBIOUS)
    self->phase = PHASE_FAILED;
  if (kind == KIND_TRACESTATE)
    state_begins (self);
  return p + 1;
}

static int length_value (probe_http1_t *self, const char *text)
{
  uint64_t length = 0;
  if (self->value_size == 0 || self->value_size > 18)
    return -1;
  for (uint32_t i = 0; i < self->value_size; i++) {
    if (text[i] < '0' || text[i] > '9')
      return -1;
    length = length * 10 + (uint64_t) (text[i] - '0');
  }
  if (self->chunked || (self->length_seen && self->length != length))
    return -1;
  self->length_seen = 1;
  self->length = length;
  return 0;
}

/* Only "chunked", alone or last of a list that stands in one field; not beside a length,
 * nor for a version that knows no chunks. */
static int coding_value (probe_http1_t *self, const char *text)
{
  static const char chunked[] = "chunked";
  size_t size = self->value_size, want = sizeof chunked - 1;
  if (self->chunked || self->length_seen || self->minor == 0)
    return -1;
  if (size < want || size > PROBE_HTTP1_TOKEN_MAX)
    return -1;
  for (size_t i = 0; i < want; i++)
    if ((text[size - want + i] | 0x20) != chunked[i])
      return -1;
  if (size > want) {
    char before = text[size - want - 1];
    if (before != ',' && before != ' ' && before != '\t')
      return -1;
    if (!memchr (text, ',', size - want))
      return -1;
  }
  self->chunked = 1;
  return 0;
}

/* `text`: its first bytes, as many as are wanted of it. */
static int value_done (probe_http1_t *self, const char *text)
{
  probe_carried_t *carried = self->kind == KIND_WEFT ? &self->weft : &self->traceparent;
  switch (self->kind) {
  case KIND_LENGTH:
    return length_value (self, text);
  case KIND_CODING:
    return coding_value (self, text);
  default:
    if (carried->count < UINT8_MAX)
      carried->count++;
    carried->valid =
        (self->kind == KIND_WEFT ? probe_weft_task_parse (text, self->value_size, &carried->trace)
                                 : probe_traceparent_parse (text, self->value_size, &carried->trace)) == 0;
    carried->flags = carried->valid && self->kind == KIND_TRACEPARENT ? probe_traceparent_flags (text) : 0;
    return 0;
  }
}

/* A value that lies in these bytes to its end, and is short. NULL: byte by byte. */
static const char *whole_value (probe_http1_t *self, const char *p, const char *end, uint32_t head_at)
{
  const char *from = p;
  if ((size_t) (end - p) > PROBE_HTTP1_TOKEN_MAX + 4)
    end = p + PROBE_HTTP1_TOKEN_MAX + 4;
  const char *last = line_end (p, end), *lf = last;
  if (lf < end && *lf == '\r')
    lf++;
  if (lf == end || *lf != '\n')
    return NULL;
  while (*p == ' ' || *p == '\t')
    p++;
  while (last > p && (last[-1] == ' ' || last[-1] == '\t'))
    last--;
  size_t size = (size_t) (last - p);
  if (size > PROBE_HTTP1_TOKEN_MAX)
    return NULL;
  probe_carried_t *carried = self->kind == KIND_WEFT ? &self->weft : &self->traceparent;
  if (size && (self->kind == KIND_WEFT || self->kind == KIND_TRACEPARENT))
    carried->at = head_at + (uint32_t) (p - from);
  self->value_size = (uint32_t) size;
  self->phase = value_done (self, p) ? PHASE_FAILED : PHASE_FIELD;
  return lf + 1;
}

/* token: first bytes of the value; token_size counts up to its end, value_size
 * up to its last byte that is no blank. */
static const char *value (probe_http1_t *self, const char *p, const char *end, uint32_t head_at)
{
  const char *from = p;
  if (self->kind == KIND_TRACESTATE)
    return state_value (self, p, end);
  if (self->token_size == 0 && !self->cr) {
    const char *behind = whole_value (self, p, end, head_at);
    if (behind)
      return behind;
  }
  for (; p < end; p++) {
    if (*p == '\n') {
      self->cr = 0;
      self->phase = value_done (self, self->token) ? PHASE_FAILED : PHASE_FIELD;
      return p + 1;
    }
    if (self->cr) {
      self->phase = PHASE_FAILED;
      return p;
    }
    if (*p == '\r') {
      self->cr = 1;
      continue;
    }
    int blank = *p == ' ' || *p == '\t';
    if (self->token_size == 0) {
      if (blank)
        continue;
      probe_carried_t *carried = self->kind == KIND_WEFT ? &self->weft : &self->traceparent;
      if (self->kind == KIND_WEFT || self->kind == KIND_TRACEPARENT)
        carried->at = head_at + (uint32_t) (p - from);
    }
    if (self->token_size < PROBE_HTTP1_TOKEN_MAX) {
      self->token[self->token_size++] = *p;
      if (!blank)
        self->value_size = self->token_size;
    } else if (!blank) {
      self->value_size = PROBE_HTTP1_TOKEN_MAX + 1;
    }
  }
  return p;
}

/* The blank line has passed: what follows? */
static probe_http1_event_t head_done (probe_http1_t *self)
{
  int bodyless = 0;
  if (self->side == PROBE_HTTP1_RESPONSE) {
    self->heads++;
    if (self->status == 101 ||
        (self->answer_to == PROBE_METHOD_CONNECT && self->status >= 200 && self->status < 300)) {
      self->phase = PHASE_TUNNEL;
      return PROBE_HTTP1_TUNNEL;
    }
    if (self->status < 200) { // not final: the same request is answered again
      self->phase = PHASE_START;
      return PROBE_HTTP1_HEAD;
    }
    bodyless = self->answer_to == PROBE_METHOD_HEAD || self->status == 204 || self->status == 304;
  }
  self->left = self->length;
  if (bodyless)
    self->phase = PHASE_DONE;
  else if (self->chunked)
    self->phase = PHASE_CHUNK_FIRST;
  else if (self->length_seen)
    self->phase = self->length ? PHASE_BODY : PHASE_DONE;
  else
    self->phase = self->side == PROBE_HTTP1_RESPONSE ? PHASE_UNTIL_CLOSE : PHASE_DONE;
  if (self->phase == PHASE_UNTIL_CLOSE)
    self->left = UINT64_MAX; // no stream is so long
  return PROBE_HTTP1_HEAD;
}

/* ---- chunks ------------------------------------------------------------- */
static const char *chunk_size (probe_http1_t *self, const char *p)
{
  char c = *p;
  unsigned digit = c >= '0' && c <= '9'                     ? (unsigned) (c - '0')
                   : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (unsigned) ((c | 0x20) - 'a' + 10)
                                                            : 16;
  if (digit < 16) {
    if (self->phase == PHASE_CHUNK_FIRST)
      self->left = 0;
    self->left = self->left * 16 + digit;
    self->phase = self->left < CHUNK_LEFT_MAX ? PHASE_CHUNK_SIZE : PHASE_FAILED;
    return p + 1;
  }
  if (self->phase == PHASE_CHUNK_SIZE && (c == '\r' || c == '\n' || c == ';' || c == ' ' || c == '\t'))
    self->phase = PHASE_CHUNK_EXT;
  else
    self->phase = PHASE_FAILED;
  return p;
}

static const char *chunk_edge (probe_http1_t *self, const char *p)
{
  if (*p == '\n')
    self->phase = PHASE_CHUNK_FIRST;
  else if (*p == '\r' && self->phase == PHASE_CHUNK_CR)
    self->phase = PHASE_CHUNK_LF;
  else
    self->phase = PHASE_FAILED;
  return p + 1;
}

/* Sets *ret_event to END when the trailer section is over. */
static const char *trailer (probe_http1_t *self, const char *p, probe_http1_event_t *ret_event)
{
  if (*p == '\n') {
    self->phase = PHASE_START;
    *ret_event = PROBE_HTTP1_END;
  } else if (self->phase == PHASE_TRAILER_LF) {
    self->phase = PHASE_FAILED;
  } else if (*p == '\r') {
    self->phase = PHASE_TRAILER_LF;
  } else {
    self->phase = PHASE_TRAILER_LINE;
    return p;
  }
  return p + 1;
}

/* ---- the machine -------------------------------------------------------- */
static const char *count_down (probe_http1_t *self, const char *p, const char *end)
{
  size_t size = (size_t) (end - p);
  if (size > self->left)
    size = (size_t) self->left;
  self->left -= size;
  return p + size;
}

/* One step in a head; PHASE_BLANK and HEAD come back as events. */
static const char *head_step (probe_http1_t *self, const char *p, const char *end, uint32_t head_at,
                              probe_http1_event_t *ret_event)
{
  if (self->phase < PHASE_LINE)
    return probe_start_line (self, p, end);
  switch (self->phase) {
  case PHASE_LINE:
    return line_rest (self, p, end, PHASE_FIELD);
  case PHASE_FIELD:
    // Side and phase are not looked at together: one wide load behind a narrow
    // store would stall at every line.
    if (*p != '\r' && *p != '\n')
      return field (self, p, end);
    self->phase = PHASE_BLANK;
    if (self->side == PROBE_HTTP1_REQUEST) {
      self->heads++;
      *ret_event = PROBE_HTTP1_BLANK;
    }
    return p;
  case PHASE_NAME:
    return name (self, p, end);
  case PHASE_VALUE:
    return value (self, p, end, head_at);
  default: // PHASE_BLANK, PHASE_BLANK_LF
    if (*p == '\n')
      *ret_event = head_done (self);
    else
      self->phase = self->phase == PHASE_BLANK ? PHASE_BLANK_LF : PHASE_FAILED;
    return p + 1;
  }
}

static const char *body_step (probe_http1_t *self, const char *p, const char *end,
                              probe_http1_event_t *ret_event)
{
  switch (self->phase) {
  case PHASE_BODY:
    p = count_down (self, p, end);
    if (self->left == 0) {
      self->phase = PHASE_START;
      *ret_event = PROBE_HTTP1_END;
    }
    return p;
  case PHASE_UNTIL_CLOSE:
    return end;
  case PHASE_CHUNK_FIRST:
  case PHASE_CHUNK_SIZE:
    return chunk_size (self, p);
  case PHASE_CHUNK_EXT:
    return line_rest (self, p, end, self->left ? PHASE_CHUNK_DATA : PHASE_TRAILER);
  case PHASE_CHUNK_DATA:
    p = count_down (self, p, end);
    if (self->left == 0)
      self->phase = PHASE_CHUNK_CR;
    return p;
  case PHASE_CHUNK_CR:
  case PHASE_CHUNK_LF:
    return chunk_edge (self, p);
  case PHASE_TRAILER_LINE:
    return line_rest (self, p, end, PHASE_TRAILER);
  default: // PHASE_TRAILER, PHASE_TRAILER_LF
    return trailer (self, p, ret_event);
  }
}

probe_http1_event_t probe_http1_feed (probe_http1_t *self, const void *data, size_t size,
                                      size_t *ret_consumed)
{
  const char *p = data, *end = size ? p + size : p; // an empty part may have no address
  probe_http1_event_t event = PROBE_HTTP1_MORE;
  if (self->phase == PHASE_DONE) {
    self->phase = PHASE_START;
    *ret_consumed = 0;
    return PROBE_HTTP1_END;
  }
  while (p < end && event == PROBE_HTTP1_MORE && self->phase < PHASE_TUNNEL) {
    if (self->phase > PHASE_HEAD_LAST) {
      p = body_step (self, p, end, &event);
      continue;
    }
    const char *from = p;
    p = head_step (self, p, end, self->head_size, &event);
    self->head_size += (uint32_t) (p - from);
    if (self->head_size > PROBE_HTTP1_HEAD_MAX && self->phase <= PHASE_HEAD_LAST)
      self->phase = PHASE_FAILED;
  }
  *ret_consumed = (size_t) (p - (const char *) data);
  if (self->phase >= PHASE_FAILED_FOREIGN)
    return PROBE_HTTP1_FAILED;
  return self->phase == PHASE_TUNNEL ? PROBE_HTTP1_TUNNEL : event;
}

probe_http1_event_t probe_http1_skip (probe_http1_t *self, size_t size)
{
  if (size == 0)
    return PROBE_HTTP1_MORE;
  if (self->phase == PHASE_UNTIL_CLOSE)
    return PROBE_HTTP1_MORE;
  if ((self->phase != PHASE_BODY && self->phase != PHASE_CHUNK_DATA) || size > self->left) {
    self->phase = PHASE_FAILED;
    return PROBE_HTTP1_FAILED;
  }
  self->left -= size;
  if (self->left)
    return PROBE_HTTP1_MORE;
  self->phase = self->phase == PHASE_BODY ? PHASE_START : PHASE_CHUNK_CR;
  return self->phase == PHASE_START ? PROBE_HTTP1_END : PROBE_HTTP1_MORE;
}

int probe_http1_at_start (const probe_http1_t *self)
{
  return self->phase == PHASE_START && self->lead == 0;
}

void probe_http1_rewind (probe_http1_t *self, uint32_t heads)
{
  probe_http1_init (self, self->side);
  self->heads = heads;
}

void probe_http1_unskip (probe_http1_t *self, size_t size)
{
  if (probe_http1_opaque (self))
    self->left += size;
}

probe_http1_event_t probe_http1_eof (const probe_http1_t *self)
{
  if (self->phase == PHASE_UNTIL_CLOSE)
    return PROBE_HTTP1_END;
  return self->phase == PHASE_START ? PROBE_HTTP1_MORE : PROBE_HTTP1_FAILED;
}

int probe_http1_request_line (const void *data, size_t size)
{
  probe_http1_t line;
  size_t consumed;
  const char *lf = memchr (data, '\n', size);
  if (!lf || lf == data || lf[-1] != '\r')
    return 0;
  probe_http1_init (&line, PROBE_HTTP1_REQUEST);
  size = (size_t) (lf + 1 - (const char *) data);
  return probe_http1_feed (&line, data, size, &consumed) == PROBE_HTTP1_MORE && line.phase == PHASE_FIELD;
}
