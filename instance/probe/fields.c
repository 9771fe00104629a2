/* SPDX-License-Identifier: Apache-2.0 */
#include "fields.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "field_name.h"

#define LENGTH_DIGITS 18 /* of a length; more than any body has */

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

const char *probe_line_rest (probe_http1_t *self, const char *p, const char *end, probe_phase_t then)
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
#define SIEVE 16 /* bytes that have to be there to look at a name at once */

/* A sieve on a few letters: 0 only for a name that is none of ours. Near the end of the
 * bytes everything passes; PHASE_NAME looks closely. */
static inline int interesting (const char *p, const char *end)
{
#define BIT(letter)    (1u << ((letter) &31))
#define PAIR(one, two) ((unsigned) (one) << 8 | (unsigned) (two))
  static const unsigned first =
      BIT ('b') | BIT ('c') | BIT ('s') | BIT ('t') | BIT ('u') | BIT ('w') | BIT ('x');
  if (end - p < SIEVE)
    return 1;
  if (!(first & BIT (*p)))
    return 0;
  switch (PAIR (p[0] | 0x20, p[1] | 0x20)) {
  case PAIR ('c', 'o'): // content-length, not content-type or connection
    return (p[8] | 0x20) == 'l';
  case PAIR ('t', 'r'): // transfer-encoding, traceparent, tracestate
    return (p[2] | 0x20) == 'a';
  case PAIR ('x', '-'): // x-b3-..., x-datadog-...
    return (p[2] | 0x20) == 'b' || (p[2] | 0x20) == 'd';
  case PAIR ('b', '3'): // b3
  case PAIR ('s', 'w'): // sw8
  case PAIR ('u', 'b'): // uber-trace-id
  case PAIR ('w', 'e'): // weft-task
    return 1;
  default:
    return 0;
  }
#undef PAIR
#undef BIT
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

/* Negative: not beside another length, nor beside chunks. */
static int length_is (probe_http1_t *self, uint64_t length)
{
  if (self->chunked || (self->length_seen && self->length != length))
    return -1;
  self->length_seen = 1;
  self->length = length;
  return 0;
}

static int length_value (probe_http1_t *self, const char *text)
{
  uint64_t length = 0;
  if (self->value_size == 0 || self->value_size > LENGTH_DIGITS)
    return -1;
  for (uint32_t i = 0; i < self->value_size; i++) {
    if (text[i] < '0' || text[i] > '9')
      return -1;
    length = length * 10 + (uint64_t) (text[i] - '0');
  }
  return length_is (self, length);
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

/* ---- whole lines --------------------------------------------------------- */
/* Eight bytes of a name. `letters` has a blank, the bit between the two cases, where one stands. */
static inline int like8 (const char *p, const char *lower, const char *letters)
{
  uint64_t a, b, bits;
  memcpy (&a, p, sizeof a);
  memcpy (&b, lower, sizeof b);
  memcpy (&bits, letters, sizeof bits);
  return (a | bits) == b;
}

static inline int ends (const char *p)
{
  return memcmp (p, "\r\n", 2) == 0;
}

static inline const char *whole_length (probe_http1_t *self, const char *p, const char *end)
{
  uint64_t length = 0;
  p += *p == ' ';
  const char *from = p;
  for (; end - p > 2 && *p >= '0' && *p <= '9'; p++)
    length = length * 10 + (uint64_t) (*p - '0');
  if (p == from || p - from > LENGTH_DIGITS || end - p < 2 || !ends (p))
    return NULL;
  self->kind = KIND_LENGTH;
  if (length_is (self, length))
    self->phase = PHASE_FAILED;
  return p + 2;
}

static inline const char *whole_traceparent (probe_http1_t *self, const char *p, const char *end,
                                             uint32_t head_at)
{
  const char *from = p;
  p += *p == ' ';
  probe_carried_t *carried = &self->traceparent;
  if (end - p < PROBE_TRACEPARENT_SIZE + 2 || !ends (p + PROBE_TRACEPARENT_SIZE) ||
      probe_traceparent_parse (p, PROBE_TRACEPARENT_SIZE, &carried->trace))
    return NULL;
  self->kind = KIND_TRACEPARENT;
  carried->at = head_at + (uint32_t) (p - from);
  carried->count += carried->count < UINT8_MAX;
  carried->valid = 1;
  carried->flags = probe_traceparent_flags (p);
  return p + PROBE_TRACEPARENT_SIZE + 2;
}

/* The fields that come in every other head, where such a line lies in these bytes to
 * its end, as it usually looks. Returns what is behind it, or NULL: byte by byte. */
static inline const char *whole_field (probe_http1_t *self, const char *p, const char *end, uint32_t head_at)
{
  if (end - p <= SIEVE)
    return NULL;
  if (p[14] == ':' && like8 (p, "content-", "       \0") && like8 (p + 6, "t-length", " \0      "))
    return whole_length (self, p + 15, end);
  if (p[11] == ':' && like8 (p, "tracepar", "        ") && like8 (p + 3, "ceparent", "        "))
    return whole_traceparent (self, p + 12, end, head_at + 12);
  return NULL;
}

/* A line that begins with a blank goes on with the field before: only with one that does not matter. */
static void fold (probe_http1_t *self)
{
  int folds = self->fields && (self->kind == KIND_NONE || self->kind == KIND_TRACESTATE);
  self->phase = folds ? PHASE_LINE : PHASE_FAILED;
  if (self->kind == KIND_TRACESTATE && self->tracestate)
    self->tracestate->bad = 1;
}

/* As many lines as lie in these bytes, up to one that wants a closer look. */
static const char *lines (probe_http1_t *self, const char *p, const char *end, uint32_t head_at)
{
  const char *from = p;
  self->token_size = 0;
  for (const char *behind; p < end; p = behind) {
    if ((unsigned char) *p <= ' ') { // rarely, but for the last
      if (*p == ' ' || *p == '\t')
        fold (self);
      if (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
        return p;
    }
    self->fields++;
    self->kind = KIND_NONE;
    if (self->wanted || interesting (p, end)) {
      behind = self->wanted ? NULL : whole_field (self, p, end, head_at + (uint32_t) (p - from));
      if (!behind) {
        self->phase = PHASE_NAME;
        return p;
      }
      if (self->phase == PHASE_FAILED)
        return behind;
    } else {
      const char *stop = line_end (p, end);
      if (end - stop < 2 || !ends (stop)) {
        self->phase = PHASE_LINE;
        return probe_line_rest (self, stop, end, PHASE_FIELD);
      }
      behind = stop + 2;
    }
  }
  return p;
}

const char *probe_fields (probe_http1_t *self, const char *p, const char *end, uint32_t head_at)
{
  switch (self->phase) {
  case PHASE_FIELD:
    return lines (self, p, end, head_at);
  case PHASE_NAME:
    return name (self, p, end);
  case PHASE_VALUE:
    return value (self, p, end, head_at);
  default:
    return probe_line_rest (self, p, end, PHASE_FIELD);
  }
}
