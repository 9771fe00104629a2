/* SPDX-License-Identifier: Apache-2.0 */
#include "http1.h"

#include <string.h>

#include "fields.h"
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

/* ---- heads -------------------------------------------------------------- */
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

/* In front of the blank line, or in it. */
static const char *blank_line (probe_http1_t *self, const char *p, const char *end, uint32_t head_at,
                               probe_http1_event_t *ret_event)
{
  if (self->phase == PHASE_FIELD) {
    self->phase = PHASE_BLANK;
    if (self->side == PROBE_HTTP1_REQUEST) {
      self->heads++;
      *ret_event = PROBE_HTTP1_BLANK;
      return p;
    }
  }
  if (self->phase == PHASE_BLANK && *p == '\r') {
    self->phase = PHASE_BLANK_LF;
    if (++p == end || head_at >= PROBE_HTTP1_HEAD_MAX) // too long, also if the LF comes later (H1)
      return p;
  }
  if (*p == '\n')
    *ret_event = head_done (self);
  else
    self->phase = PHASE_FAILED;
  return p + 1;
}

/* One step in a head; PHASE_BLANK and HEAD come back as events. */
static const char *head_step (probe_http1_t *self, const char *p, const char *end, uint32_t head_at,
                              probe_http1_event_t *ret_event)
{
  if (self->phase < PHASE_LINE)
    return probe_start_line (self, p, end);
  // Side and phase are not looked at together: one wide load behind a narrow
  // store would stall at every line.
  if (self->phase >= PHASE_BLANK || (self->phase == PHASE_FIELD && (*p == '\r' || *p == '\n')))
    return blank_line (self, p, end, head_at, ret_event);
  return probe_fields (self, p, end, head_at);
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
    return probe_line_rest (self, p, end, self->left ? PHASE_CHUNK_DATA : PHASE_TRAILER);
  case PHASE_CHUNK_DATA:
    p = count_down (self, p, end);
    if (self->left == 0)
      self->phase = PHASE_CHUNK_CR;
    return p;
  case PHASE_CHUNK_CR:
  case PHASE_CHUNK_LF:
    return chunk_edge (self, p);
  case PHASE_TRAILER_LINE:
    return probe_line_rest (self, p, end, PHASE_TRAILER);
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
