/* SPDX-License-Identifier: Apache-2.0 */
#include "start_line.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LEAD_MAX 4 /* empty lines before a request; RFC 9112 2.2 asks for one */

static const char version_text[] = "HTTP/1.";
#define VERSION_TEXT_SIZE (sizeof version_text - 1)

/* A new message: everything but what the owner needs across messages. */
static void begin (probe_http1_t *self)
{
  self->kind = self->method = self->mark = self->cr = self->foreign = self->cut = self->minor = 0;
  self->length_seen = self->chunked = self->lead = self->token_size = self->name_size = 0;
  self->status = self->fields = 0;
  self->head_size = 0;
  self->traceparent.count = self->traceparent.valid = 0;
  self->weft.count = self->weft.valid = 0;
  self->tracestates = 0;
  self->headers = 0;
}

static void name_add (probe_http1_t *self, char c)
{
  if (self->name_size == WEFT_NAME_MAX)
    self->cut = 1;
  else
    self->name[self->name_size++] = c;
}

static const char *start (probe_http1_t *self, const char *p)
{
  if (*p == '\r' || *p == '\n') {
    self->phase = PHASE_LEAD_LF;
    return *p == '\r' ? p + 1 : p;
  }
  begin (self);
  self->phase = self->side == PROBE_HTTP1_REQUEST ? PHASE_METHOD : PHASE_VERSION;
  return p;
}

static const char *lead_lf (probe_http1_t *self, const char *p)
{
  int good = self->side == PROBE_HTTP1_REQUEST && *p == '\n' && ++self->lead <= LEAD_MAX;
  self->phase = good ? PHASE_START : PHASE_FAILED;
  return p + 1;
}

static const char *method (probe_http1_t *self, const char *p, const char *end)
{
  // The common ones in one look.
  size_t size = end - p < 5 ? 0 : memcmp (p, "GET ", 4) == 0 ? 3 : memcmp (p, "POST ", 5) == 0 ? 4 : 0;
  if (size && self->name_size == 0) {
    memcpy (self->name, p, 4);
    self->name_size = (uint8_t) size;
    self->phase = PHASE_TARGET;
    return p + size + 1;
  }
  for (; p < end; p++) {
    if ((*p >= 'A' && *p <= 'Z') || *p == '-' || *p == '_') {
      if (self->name_size == WEFT_METHOD_MAX)
        break;
      self->name[self->name_size++] = *p;
      continue;
    }
    if (*p != ' ' || self->name_size == 0)
      break;
    if (self->name_size == 4 && memcmp (self->name, "HEAD", 4) == 0)
      self->method = PROBE_METHOD_HEAD;
    else if (self->name_size == 7 && memcmp (self->name, "CONNECT", 7) == 0)
      self->method = PROBE_METHOD_CONNECT;
    self->phase = PHASE_TARGET;
    return p + 1;
  }
  if (p < end)
    self->phase = PHASE_FAILED_FOREIGN;
  return p;
}

static const char *target (probe_http1_t *self, const char *p)
{
  self->phase = PHASE_FAILED_FOREIGN;
  if ((unsigned char) *p <= ' ')
    return p;
  if (self->method == PROBE_METHOD_CONNECT) {
    self->phase = PHASE_QUERY; // the authority may hold user info
    return p;
  }
  name_add (self, ' ');
  if (*p == '/') {
    self->phase = PHASE_PATH;
  } else if (*p == '*') {
    name_add (self, '*');
    self->phase = PHASE_QUERY;
  } else if ((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z') {
    self->phase = PHASE_SCHEME;
  }
  return p;
}

/* The first byte that is no part of a path, or end. */
static const char *path_end (const char *p, const char *end)
{
#ifdef __SSE2__
  // Signed: what is no ASCII is below a blank.
  const __m128i blank = _mm_set1_epi8 (' '), mark = _mm_set1_epi8 ('?'), hash = _mm_set1_epi8 ('#'),
                rubout = _mm_set1_epi8 (0x7f);
  for (; end - p >= 16; p += 16) {
    __m128i bytes = _mm_loadu_si128 ((const __m128i *) (const void *) p);
    __m128i part = _mm_cmpgt_epi8 (bytes, blank);
    __m128i stop = _mm_or_si128 (_mm_cmpeq_epi8 (bytes, mark),
                                 _mm_or_si128 (_mm_cmpeq_epi8 (bytes, hash), _mm_cmpeq_epi8 (bytes, rubout)));
    unsigned hits = (unsigned) _mm_movemask_epi8 (_mm_andnot_si128 (stop, part)) ^ 0xffffu;
    if (hits)
      return p + __builtin_ctz (hits);
  }
#endif
  while (p < end && (unsigned char) *p > ' ' && (unsigned char) *p < 0x7f && *p != '?' && *p != '#')
    p++;
  return p;
}

static const char *path (probe_http1_t *self, const char *p, const char *end)
{
  const char *from = p;
  p = path_end (p, end);
  size_t size = (size_t) (p - from), room = (size_t) (WEFT_NAME_MAX - self->name_size);
  self->cut |= size > room;
  size = size < room ? size : room;
  memcpy (self->name + self->name_size, from, size);
  self->name_size = (uint8_t) (self->name_size + size);
  if (p == end)
    return p;
  unsigned char c = (unsigned char) *p;
  if (c >= 0x7f)
    name_add (self, '?'); // names travel as text: what is no ASCII has no place in a target anyway
  else if (c > ' ')
    self->phase = PHASE_QUERY;
  else
    self->phase = c == ' ' ? PHASE_VERSION : PHASE_FAILED_FOREIGN;
  return p + 1;
}

/* The first byte that is a blank or a control character, or end. */
static const char *blank (const char *p, const char *end)
{
#ifdef __SSE2__
  const __m128i most = _mm_set1_epi8 (' ');
  for (; end - p >= 16; p += 16) {
    __m128i bytes = _mm_loadu_si128 ((const __m128i *) (const void *) p);
    unsigned hits = (unsigned) _mm_movemask_epi8 (_mm_cmpeq_epi8 (_mm_min_epu8 (bytes, most), bytes));
    if (hits)
      return p + __builtin_ctz (hits);
  }
#endif
  while (p < end && (unsigned char) *p > ' ')
    p++;
  return p;
}

static const char *query (probe_http1_t *self, const char *p, const char *end)
{
  p = blank (p, end);
  if (p == end)
    return p;
  self->phase = *p == ' ' ? PHASE_VERSION : PHASE_FAILED_FOREIGN;
  return p + 1;
}

/* Absolute form: "http://user@host/path" comes down to its path. */
static const char *absolute (probe_http1_t *self, const char *p)
{
  char c = *p;
  self->phase = (uint8_t) ((unsigned char) c <= ' ' ? PHASE_FAILED_FOREIGN : self->phase);
  switch (self->phase) {
  case PHASE_SCHEME:
    if (c == ':')
      self->phase = PHASE_SLASH1;
    return p + 1;
  case PHASE_SLASH1:
    self->phase = c == '/' ? PHASE_SLASH2 : PHASE_FAILED_FOREIGN;
    return p + 1;
  case PHASE_SLASH2:
    self->phase = c == '/' ? PHASE_AUTHORITY : PHASE_FAILED_FOREIGN;
    return p + 1;
  default:
    return p + 1;
  }
}

static const char *authority (probe_http1_t *self, const char *p, const char *end)
{
  while (p < end && (unsigned char) *p > ' ' && *p != '/' && *p != '?' && *p != '#')
    p++;
  if (p == end)
    return p;
  if (*p != '/')
    name_add (self, '/');
  self->phase = *p == '/' ? PHASE_PATH : PHASE_QUERY;
  return p;
}

static const char *version (probe_http1_t *self, const char *p, const char *end)
{
  size_t have = (size_t) (end - p);
  // The common case in one look; what is cut or odd goes byte by byte.
  if (self->side == PROBE_HTTP1_REQUEST && self->token_size == 0 && have >= 10 &&
      memcmp (p, "HTTP/1.1\r\n", 10) == 0) {
    self->minor = 1;
    self->phase = PHASE_FIELD;
    return p + 10;
  }
  if (self->side == PROBE_HTTP1_RESPONSE && self->token_size == 0 && have >= 14 &&
      memcmp (p, "HTTP/1.1 ", 9) == 0) {
    self->minor = 1;
    self->token_size = 1;
    self->phase = PHASE_STATUS;
    return p + 9;
  }
  if (self->token_size < VERSION_TEXT_SIZE) {
    if (*p != version_text[self->token_size])
      self->phase = PHASE_FAILED_FOREIGN;
    self->token_size++;
    return p + 1;
  }
  self->phase = PHASE_FAILED_FOREIGN;
  if (*p == '0' || *p == '1') {
    self->minor = (uint8_t) (*p - '0');
    self->phase = self->side == PROBE_HTTP1_REQUEST ? PHASE_VERSION_END : PHASE_STATUS;
    self->token_size = 0;
  }
  return p + 1;
}

static const char *version_end (probe_http1_t *self, const char *p)
{
  if (*p == '\n')
    self->phase = PHASE_FIELD;
  else if (*p == '\r' && !self->cr)
    self->cr = 1;
  else
    self->phase = PHASE_FAILED_FOREIGN;
  if (self->phase != PHASE_VERSION_END)
    self->cr = 0;
  return p + 1;
}

/* " 200": a blank, three digits, then a blank or the end of the line. */
static const char *status (probe_http1_t *self, const char *p, const char *end)
{
  unsigned n = self->token_size;
  for (; p < end; p++, n++) {
    if (n == 0 && *p == ' ')
      continue;
    if (n < 1 || n > 3 || *p < '0' || *p > '9')
      break;
    self->status = (uint16_t) (self->status * 10 + (*p - '0'));
  }
  self->token_size = (uint8_t) n;
  if (p == end)
    return p;
  int ok = n == 4 && (*p == ' ' || *p == '\r' || *p == '\n') && self->status >= 100;
  self->phase = ok ? PHASE_LINE : PHASE_FAILED_FOREIGN;
  return p;
}

static const char *step (probe_http1_t *self, const char *p, const char *end)
{
  switch (self->phase) {
  case PHASE_METHOD:
    return method (self, p, end);
  case PHASE_TARGET:
    return target (self, p);
  case PHASE_PATH:
    return path (self, p, end);
  case PHASE_QUERY:
    return query (self, p, end);
  case PHASE_SCHEME:
  case PHASE_SLASH1:
  case PHASE_SLASH2:
    return absolute (self, p);
  case PHASE_AUTHORITY:
    return authority (self, p, end);
  case PHASE_VERSION:
    return version (self, p, end);
  case PHASE_VERSION_END:
    return version_end (self, p);
  default:
    return status (self, p, end);
  }
}

const char *probe_start_line (probe_http1_t *self, const char *p, const char *end)
{
  if (self->phase == PHASE_LEAD_LF)
    return lead_lf (self, p);
  if (self->phase == PHASE_START) {
    // A head is counted from its first byte: what stands before it ends a step.
    p = start (self, p);
    if (self->phase == PHASE_LEAD_LF)
      return p;
  }
  // Nearly all of them go straight through; the rest by whatever phase they are in.
  if (self->phase == PHASE_METHOD)
    p = method (self, p, end);
  if (p < end && self->phase == PHASE_TARGET)
    p = target (self, p);
  if (p < end && self->phase == PHASE_PATH)
    p = path (self, p, end);
  if (p < end && self->phase == PHASE_QUERY)
    p = query (self, p, end);
  if (p < end && self->phase == PHASE_VERSION)
    p = version (self, p, end);
  while (p < end && self->phase < PHASE_LINE)
    p = step (self, p, end);
  return p;
}
