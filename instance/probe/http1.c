/* SPDX-License-Identifier: Apache-2.0 */
#include "http1.h"

#include <string.h>

/* Phases up to BLANK_LF are parts of a head: their bytes count into head_size. */
typedef enum {
  START,
  METHOD,
  TARGET,
  PATH,
  QUERY,
  SCHEME,
  SLASH1,
  SLASH2,
  AUTHORITY,
  VERSION,
  VERSION_END,
  STATUS,
  LINE, /* rest of a line that does not matter */
  FIELD,
  NAME,
  VALUE,
  BLANK,
  BLANK_LF,
  HEAD_LAST = BLANK_LF,
  DONE, /* the head is over and no body follows */
  BODY,
  UNTIL_CLOSE,
  CHUNK_FIRST,
  CHUNK_SIZE,
  CHUNK_EXT,
  CHUNK_DATA,
  CHUNK_CR,
  CHUNK_LF,
  TRAILER,
  TRAILER_LINE,
  TRAILER_LF,
  TUNNEL,
  FAILED_FOREIGN,
  FAILED
} phase_t;

typedef enum {
  KIND_NONE,
  KIND_LENGTH,
  KIND_CODING,
  KIND_TRACEPARENT,
  KIND_WEFT,
  KIND_FOREIGN,
  KIND_DUBIOUS /* a name of ours with blanks before the colon */
} kind_t;

#define LEAD_MAX       4            /* empty lines before a request; RFC 9112 2.2 asks for one */
#define CHUNK_LEFT_MAX (1ull << 56) /* no overflow while a size is read */

static const char version_text[] = "HTTP/1.";
#define VERSION_TEXT_SIZE (sizeof version_text - 1)

void probe_http1_init (probe_http1_t *self, probe_http1_side_t side)
{
  memset (self, 0, sizeof *self);
  self->side = (uint8_t) side;
}

int probe_http1_idle (const probe_http1_t *self)
{
  return self->phase == START;
}

int probe_http1_foreign (const probe_http1_t *self)
{
  return self->phase == FAILED_FOREIGN;
}

uint64_t probe_http1_opaque (const probe_http1_t *self)
{
  if (self->phase == BODY || self->phase == CHUNK_DATA)
    return self->left;
  return self->phase == UNTIL_CLOSE ? UINT64_MAX : 0;
}

/* A new message: everything but what the owner needs across messages. */
static void begin (probe_http1_t *self)
{
  self->kind = self->method = self->mark = self->cr = self->foreign = self->cut = self->minor = 0;
  self->length_seen = self->chunked = self->lead = self->token_size = self->name_size = 0;
  self->status = self->fields = 0;
  self->head_size = 0;
  self->traceparent.count = self->traceparent.valid = 0;
  self->weft.count = self->weft.valid = 0;
}

static void name_add (probe_http1_t *self, char c)
{
  if (self->name_size == WEFT_NAME_MAX)
    self->cut = 1;
  else
    self->name[self->name_size++] = c;
}

/* ---- lines -------------------------------------------------------------- */
/* To behind the LF, then `then`. A CR that ends no line fails (H3). */
static const char *line_rest (probe_http1_t *self, const char *p, const char *end, phase_t then)
{
  if (self->cr && *p != '\n') {
    self->phase = FAILED;
    return p;
  }
  const char *lf = memchr (p, '\n', (size_t) (end - p));
  const char *stop = lf ? lf : end;
  const char *cr = memchr (p, '\r', (size_t) (stop - p));
  if (cr && cr + 1 != stop) {
    self->phase = FAILED;
    return cr;
  }
  self->cr = cr != NULL && !lf;
  if (!lf)
    return end;
  self->cr = 0;
  self->phase = (uint8_t) then;
  return lf + 1;
}

/* ---- start line --------------------------------------------------------- */
static const char *start (probe_http1_t *self, const char *p)
{
  if (*p == '\r' || *p == '\n') {
    if (self->side == PROBE_HTTP1_RESPONSE || self->lead >= 2 * LEAD_MAX)
      self->phase = FAILED;
    else
      self->lead++;
    return p + 1;
  }
  begin (self);
  self->phase = self->side == PROBE_HTTP1_REQUEST ? METHOD : VERSION;
  return p;
}

static const char *method (probe_http1_t *self, const char *p, const char *end)
{
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
    self->phase = TARGET;
    return p + 1;
  }
  if (p < end)
    self->phase = FAILED_FOREIGN;
  return p;
}

static const char *target (probe_http1_t *self, const char *p)
{
  self->phase = FAILED_FOREIGN;
  if ((unsigned char) *p <= ' ')
    return p;
  if (self->method == PROBE_METHOD_CONNECT) {
    self->phase = QUERY; // the authority may hold user info
    return p;
  }
  name_add (self, ' ');
  if (*p == '/') {
    self->phase = PATH;
  } else if (*p == '*') {
    name_add (self, '*');
    self->phase = QUERY;
  } else if ((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z') {
    self->phase = SCHEME;
  }
  return p;
}

static const char *path (probe_http1_t *self, const char *p, const char *end)
{
  for (; p < end; p++) {
    unsigned char c = (unsigned char) *p;
    if (c == '?' || c == '#') {
      self->phase = QUERY;
      return p + 1;
    }
    if (c <= ' ') {
      self->phase = c == ' ' ? VERSION : FAILED_FOREIGN;
      return p + 1;
    }
    // Names travel as text: what is no ASCII has no place in a target anyway.
    name_add (self, c < 0x7f ? (char) c : '?');
  }
  return p;
}

static const char *query (probe_http1_t *self, const char *p, const char *end)
{
  while (p < end && (unsigned char) *p > ' ')
    p++;
  if (p == end)
    return p;
  self->phase = *p == ' ' ? VERSION : FAILED_FOREIGN;
  return p + 1;
}

/* Absolute form: "http://user@host/path" comes down to its path. */
static const char *absolute (probe_http1_t *self, const char *p)
{
  char c = *p;
  self->phase = (uint8_t) ((unsigned char) c <= ' ' ? FAILED_FOREIGN : self->phase);
  switch (self->phase) {
  case SCHEME:
    if (c == ':')
      self->phase = SLASH1;
    return p + 1;
  case SLASH1:
    self->phase = c == '/' ? SLASH2 : FAILED_FOREIGN;
    return p + 1;
  case SLASH2:
    self->phase = c == '/' ? AUTHORITY : FAILED_FOREIGN;
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
  self->phase = *p == '/' ? PATH : QUERY;
  return p;
}

static const char *version (probe_http1_t *self, const char *p)
{
  if (self->token_size < VERSION_TEXT_SIZE) {
    if (*p != version_text[self->token_size])
      self->phase = FAILED_FOREIGN;
    self->token_size++;
    return p + 1;
  }
  self->phase = FAILED_FOREIGN;
  if (*p == '0' || *p == '1') {
    self->minor = (uint8_t) (*p - '0');
    self->phase = self->side == PROBE_HTTP1_REQUEST ? VERSION_END : STATUS;
    self->token_size = 0;
  }
  return p + 1;
}

static const char *version_end (probe_http1_t *self, const char *p)
{
  if (*p == '\n')
    self->phase = FIELD;
  else if (*p == '\r' && !self->cr)
    self->cr = 1;
  else
    self->phase = FAILED_FOREIGN;
  if (self->phase != VERSION_END)
    self->cr = 0;
  return p + 1;
}

/* " 200": a blank, three digits, then a blank or the end of the line. */
static const char *status (probe_http1_t *self, const char *p)
{
  unsigned n = self->token_size++;
  if (n == 0 && *p == ' ')
    return p + 1;
  if (n >= 1 && n <= 3 && *p >= '0' && *p <= '9') {
    self->status = (uint16_t) (self->status * 10 + (*p - '0'));
    return p + 1;
  }
  int ok = n == 4 && (*p == ' ' || *p == '\r' || *p == '\n') && self->status >= 100;
  self->phase = ok ? LINE : FAILED_FOREIGN;
  return p;
}

/* ---- fields ------------------------------------------------------------- */
static int interesting (char c)
{
  switch (c | 0x20) {
  case 'b': // b3
  case 'c': // content-length
  case 's': // sw8
  case 't': // transfer-encoding, traceparent
  case 'u': // uber-trace-id
  case 'w': // weft-task
  case 'x': // x-b3-…, x-datadog-…
    return 1;
  default:
    return 0;
  }
}

static const char *field (probe_http1_t *self, const char *p)
{
  if (*p == '\r' || *p == '\n') {
    self->phase = BLANK;
    return p;
  }
  if (*p == ' ' || *p == '\t') {
    self->phase = self->fields == 0 || self->kind != KIND_NONE ? FAILED : LINE;
    return p;
  }
  self->fields++;
  self->kind = KIND_NONE;
  self->token_size = 0;
  self->phase = interesting (*p) ? NAME : LINE;
  return p;
}

static kind_t kind_of (const char *name, size_t size)
{
#define IS(text)  (size == sizeof text - 1 && memcmp (name, text, sizeof text - 1) == 0)
#define HAS(text) (size >= sizeof text - 1 && memcmp (name, text, sizeof text - 1) == 0)
  if (IS ("content-length"))
    return KIND_LENGTH;
  if (IS ("transfer-encoding"))
    return KIND_CODING;
  if (IS ("traceparent"))
    return KIND_TRACEPARENT;
  if (IS ("weft-task"))
    return KIND_WEFT;
  if (IS ("b3") || IS ("sw8") || IS ("uber-trace-id") || HAS ("x-b3-") || HAS ("x-datadog-"))
    return KIND_FOREIGN;
  return KIND_NONE;
#undef IS
#undef HAS
}

static const char *name (probe_http1_t *self, const char *p, const char *end)
{
  for (; p < end && *p != ':'; p++) {
    if (*p == '\n' || *p == '\r') { // a line without a colon
      self->phase = FAILED;
      return p;
    }
    if (self->token_size == PROBE_HTTP1_FIELD_MAX) {
      self->kind = (uint8_t) kind_of (self->token, self->token_size);
      self->foreign |= self->kind == KIND_FOREIGN;
      self->kind = KIND_NONE;
      self->phase = LINE;
      return p;
    }
    self->token[self->token_size++] = (char) (*p >= 'A' && *p <= 'Z' ? *p | 0x20 : *p);
  }
  if (p == end)
    return p;
  size_t size = self->token_size;
  while (size && (self->token[size - 1] == ' ' || self->token[size - 1] == '\t'))
    size--;
  kind_t kind = kind_of (self->token, size);
  if (kind != KIND_NONE && size != self->token_size)
    kind = KIND_DUBIOUS;
  self->kind = (uint8_t) kind;
  self->foreign |= kind == KIND_FOREIGN;
  self->token_size = 0;
  self->value_size = 0;
  self->phase = kind == KIND_NONE || kind == KIND_FOREIGN ? LINE : VALUE;
  if (kind == KIND_DUBIOUS)
    self->phase = FAILED;
  return p + 1;
}

static int length_value (probe_http1_t *self)
{
  uint64_t length = 0;
  if (self->value_size == 0 || self->value_size > 18)
    return -1;
  for (uint32_t i = 0; i < self->value_size; i++) {
    if (self->token[i] < '0' || self->token[i] > '9')
      return -1;
    length = length * 10 + (uint64_t) (self->token[i] - '0');
  }
  if (self->length_seen && self->length != length)
    return -1;
  self->length_seen = 1;
  self->length = length;
  return 0;
}

/* Only "chunked", alone or last of a list that stands in one field. */
static int coding_value (probe_http1_t *self)
{
  static const char chunked[] = "chunked";
  size_t size = self->value_size, want = sizeof chunked - 1;
  if (self->chunked || size < want || size > PROBE_HTTP1_TOKEN_MAX)
    return -1;
  for (size_t i = 0; i < want; i++)
    if ((self->token[size - want + i] | 0x20) != chunked[i])
      return -1;
  if (size > want) {
    char before = self->token[size - want - 1];
    if (before != ',' && before != ' ' && before != '\t')
      return -1;
    if (!memchr (self->token, ',', size - want))
      return -1;
  }
  self->chunked = 1;
  return 0;
}

static int value_done (probe_http1_t *self)
{
  probe_carried_t *carried = self->kind == KIND_WEFT ? &self->weft : &self->traceparent;
  switch (self->kind) {
  case KIND_LENGTH:
    return length_value (self);
  case KIND_CODING:
    return coding_value (self);
  default:
    if (carried->count < UINT8_MAX)
      carried->count++;
    carried->valid = (self->kind == KIND_WEFT
                          ? probe_weft_task_parse (self->token, self->value_size, &carried->trace)
                          : probe_traceparent_parse (self->token, self->value_size, &carried->trace)) == 0;
    return 0;
  }
}

/* token: first bytes of the value; token_size counts up to its end, value_size
 * up to its last byte that is no blank. */
static const char *value (probe_http1_t *self, const char *p, const char *end, uint32_t head_at)
{
  const char *from = p;
  for (; p < end; p++) {
    if (*p == '\n') {
      self->cr = 0;
      self->phase = value_done (self) ? FAILED : FIELD;
      return p + 1;
    }
    if (self->cr) {
      self->phase = FAILED;
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
  if (self->chunked && (self->length_seen || self->minor == 0)) {
    self->phase = FAILED;
    return PROBE_HTTP1_FAILED;
  }
  if (self->side == PROBE_HTTP1_RESPONSE) {
    self->heads++;
    if (self->status == 101 ||
        (self->answer_to == PROBE_METHOD_CONNECT && self->status >= 200 && self->status < 300)) {
      self->phase = TUNNEL;
      return PROBE_HTTP1_TUNNEL;
    }
    if (self->status < 200) { // not final: the same request is answered again
      self->phase = START;
      return PROBE_HTTP1_HEAD;
    }
    bodyless = self->answer_to == PROBE_METHOD_HEAD || self->status == 204 || self->status == 304;
  }
  self->left = self->length;
  if (bodyless)
    self->phase = DONE;
  else if (self->chunked)
    self->phase = CHUNK_FIRST;
  else if (self->length_seen)
    self->phase = self->length ? BODY : DONE;
  else
    self->phase = self->side == PROBE_HTTP1_RESPONSE ? UNTIL_CLOSE : DONE;
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
    if (self->phase == CHUNK_FIRST)
      self->left = 0;
    self->left = self->left * 16 + digit;
    self->phase = self->left < CHUNK_LEFT_MAX ? CHUNK_SIZE : FAILED;
    return p + 1;
  }
  if (self->phase == CHUNK_SIZE && (c == '\r' || c == '\n' || c == ';' || c == ' ' || c == '\t'))
    self->phase = CHUNK_EXT;
  else
    self->phase = FAILED;
  return p;
}

static const char *chunk_edge (probe_http1_t *self, const char *p)
{
  if (*p == '\n')
    self->phase = CHUNK_FIRST;
  else if (*p == '\r' && self->phase == CHUNK_CR)
    self->phase = CHUNK_LF;
  else
    self->phase = FAILED;
  return p + 1;
}

/* Sets *ret_event to END when the trailer section is over. */
static const char *trailer (probe_http1_t *self, const char *p, probe_http1_event_t *ret_event)
{
  if (*p == '\n') {
    self->phase = START;
    *ret_event = PROBE_HTTP1_END;
  } else if (self->phase == TRAILER_LF) {
    self->phase = FAILED;
  } else if (*p == '\r') {
    self->phase = TRAILER_LF;
  } else {
    self->phase = TRAILER_LINE;
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

/* One step in a head; BLANK and HEAD come back as events. */
static const char *head_step (probe_http1_t *self, const char *p, const char *end, uint32_t head_at,
                              probe_http1_event_t *ret_event)
{
  switch (self->phase) {
  case START:
    return start (self, p);
  case METHOD:
    return method (self, p, end);
  case TARGET:
    return target (self, p);
  case PATH:
    return path (self, p, end);
  case QUERY:
    return query (self, p, end);
  case SCHEME:
  case SLASH1:
  case SLASH2:
    return absolute (self, p);
  case AUTHORITY:
    return authority (self, p, end);
  case VERSION:
    return version (self, p);
  case VERSION_END:
    return version_end (self, p);
  case STATUS:
    return status (self, p);
  case LINE:
    return line_rest (self, p, end, FIELD);
  case FIELD:
    p = field (self, p);
    if (self->phase == BLANK && self->side == PROBE_HTTP1_REQUEST) {
      self->heads++;
      *ret_event = PROBE_HTTP1_BLANK;
    }
    return p;
  case NAME:
    return name (self, p, end);
  case VALUE:
    return value (self, p, end, head_at);
  default: // BLANK, BLANK_LF
    if (*p == '\n')
      *ret_event = head_done (self);
    else
      self->phase = self->phase == BLANK ? BLANK_LF : FAILED;
    return p + 1;
  }
}

static const char *body_step (probe_http1_t *self, const char *p, const char *end,
                              probe_http1_event_t *ret_event)
{
  switch (self->phase) {
  case BODY:
    p = count_down (self, p, end);
    if (self->left == 0) {
      self->phase = START;
      *ret_event = PROBE_HTTP1_END;
    }
    return p;
  case UNTIL_CLOSE:
    return end;
  case CHUNK_FIRST:
  case CHUNK_SIZE:
    return chunk_size (self, p);
  case CHUNK_EXT:
    return line_rest (self, p, end, self->left ? CHUNK_DATA : TRAILER);
  case CHUNK_DATA:
    p = count_down (self, p, end);
    if (self->left == 0)
      self->phase = CHUNK_CR;
    return p;
  case CHUNK_CR:
  case CHUNK_LF:
    return chunk_edge (self, p);
  case TRAILER_LINE:
    return line_rest (self, p, end, TRAILER);
  default: // TRAILER, TRAILER_LF
    return trailer (self, p, ret_event);
  }
}

probe_http1_event_t probe_http1_feed (probe_http1_t *self, const void *data, size_t size,
                                      size_t *ret_consumed)
{
  const char *p = data, *end = p + size;
  probe_http1_event_t event = PROBE_HTTP1_MORE;
  if (self->phase == DONE) {
    self->phase = START;
    *ret_consumed = 0;
    return PROBE_HTTP1_END;
  }
  while (p < end && event == PROBE_HTTP1_MORE && self->phase < TUNNEL) {
    if (self->phase > HEAD_LAST) {
      p = body_step (self, p, end, &event);
      continue;
    }
    const char *from = p;
    p = head_step (self, p, end, self->head_size, &event);
    self->head_size += (uint32_t) (p - from);
    if (self->head_size > PROBE_HTTP1_HEAD_MAX && self->phase <= HEAD_LAST)
      self->phase = FAILED;
  }
  *ret_consumed = (size_t) (p - (const char *) data);
  if (self->phase >= FAILED_FOREIGN)
    return PROBE_HTTP1_FAILED;
  return self->phase == TUNNEL ? PROBE_HTTP1_TUNNEL : event;
}

probe_http1_event_t probe_http1_skip (probe_http1_t *self, size_t size)
{
  if (size == 0)
    return PROBE_HTTP1_MORE;
  if (self->phase == UNTIL_CLOSE)
    return PROBE_HTTP1_MORE;
  if ((self->phase != BODY && self->phase != CHUNK_DATA) || size > self->left) {
    self->phase = FAILED;
    return PROBE_HTTP1_FAILED;
  }
  self->left -= size;
  if (self->left)
    return PROBE_HTTP1_MORE;
  self->phase = self->phase == BODY ? START : CHUNK_CR;
  return self->phase == START ? PROBE_HTTP1_END : PROBE_HTTP1_MORE;
}

probe_http1_event_t probe_http1_eof (const probe_http1_t *self)
{
  if (self->phase == UNTIL_CLOSE)
    return PROBE_HTTP1_END;
  return self->phase == START ? PROBE_HTTP1_MORE : PROBE_HTTP1_FAILED;
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
  return probe_http1_feed (&line, data, size, &consumed) == PROBE_HTTP1_MORE && line.phase == FIELD;
}
