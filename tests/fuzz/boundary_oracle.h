/* SPDX-License-Identifier: Apache-2.0 */
/* boundary_oracle: a second opinion on where the heads and bodies of an HTTP/1
 * stream are. It has the whole stream in one buffer and reads it line by line,
 * slowly and plainly; nothing of it comes from the machine under test.
 *
 * `bad` is the first byte from which on nobody may insert any more: the begin of
 * a head that contradicts itself or of what is no HTTP at all. */
#ifndef BOUNDARY_ORACLE_H
#define BOUNDARY_ORACLE_H

#include "fuzz.h"

#include <strings.h>

#define ORACLE_MESSAGES 64
#define ORACLE_RANGES   4096

typedef struct {
  size_t begin, blank, body, end; /* SIZE_MAX: not reached in this stream */
  int connect, is_head, interim, switches, until_close;
  unsigned fields, traceparents, weft_tasks;
  int foreign;
  size_t parent_at, task_at; /* values of the last traceparent and weft-task */
  unsigned status;
} oracle_message_t;

typedef struct {
  oracle_message_t message[ORACLE_MESSAGES];
  unsigned count; /* messages whose head is whole, or whose blank line has begun */
  size_t bad;     /* SIZE_MAX: all is well */
  struct {
    size_t from, to;
  } range[ORACLE_RANGES]; /* bytes of bodies, without the framing of chunks */
  unsigned ranges;
} oracle_t;

/* What is asked: CONNECT and HEAD change what an answer means. */
typedef struct {
  const uint8_t *text;
  size_t size;
  int response;
  const oracle_t *requests; /* of a response stream */
} oracle_stream_t;

/* The end of the line that begins at `at`, with its LF; 0: it is not complete. */
static size_t oracle_line (const oracle_stream_t *in, size_t at)
{
  while (at < in->size)
    if (in->text[at++] == '\n')
      return at;
  return 0;
}
/* The line's text without its end; -1: a CR where none belongs. */
static int oracle_trim (const oracle_stream_t *in, size_t at, size_t next, size_t *ret_size)
{
  size_t size = next - at - 1;
  if (size && in->text[at + size - 1] == '\r')
    size--;
  *ret_size = size;
  return memchr (in->text + at, '\r', size) ? -1 : 0;
}

static int oracle_token (const char *from, size_t size, const char *name)
{
  return size == strlen (name) && strncasecmp (from, name, size) == 0;
}

/* -1: no request line. */
static int oracle_request_line (const char *line, size_t size, oracle_message_t *message, int *ret_minor)
{
  size_t method = 0;
  while (method < size && line[method] != ' ')
    if (!strchr ("ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", line[method]) || !line[method++])
      return -1;
  if (method == 0 || method > 16 || size < method + 11)
    return -1;
  const char *target = line + method + 1, *version = line + size - 9;
  size_t target_size = (size_t) (version - target);
  if (memcmp (version, " HTTP/1.", 8) != 0 || (version[8] != '0' && version[8] != '1'))
    return -1;
  *ret_minor = version[8] - '0';
  for (size_t i = 0; i < target_size; i++)
    if ((uint8_t) target[i] <= ' ')
      return -1;
  message->connect = method == 7 && memcmp (line, "CONNECT", 7) == 0;
  message->is_head = method == 4 && memcmp (line, "HEAD", 4) == 0;
  if (message->connect || *target == '/' || *target == '*')
    return 0;
  // Absolute form: a scheme, then "://".
  const char *colon = memchr (target, ':', target_size);
  if (!colon || (size_t) (colon - target) + 3 > target_size || memcmp (colon, "://", 3) != 0)
    return -1;
  return ((*target | 0x20) >= 'a' && (*target | 0x20) <= 'z') ? 0 : -1;
}

static int oracle_status_line (const char *line, size_t size, oracle_message_t *message, int *ret_minor)
{
  if (size < 12 || memcmp (line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') || line[8] != ' ')
    return -1;
  *ret_minor = line[7] - '0';
  for (int i = 9; i < 12; i++) {
    if (line[i] < '0' || line[i] > '9')
      return -1;
    message->status = message->status * 10 + (unsigned) (line[i] - '0');
  }
  return message->status < 100 || (size > 12 && line[12] != ' ') ? -1 : 0;
}

typedef struct {
  int minor, length_seen, chunked, wrong, ours; /* ours: the last field is one that matters */
  uint64_t length;
} oracle_framing_t;

static void oracle_length (const char *value, size_t size, oracle_framing_t *framing)
{
  uint64_t length = 0;
  if (size == 0 || size > 18)
    framing->wrong = 1;
  for (size_t i = 0; i < size && !framing->wrong; i++) {
    framing->wrong |= value[i] < '0' || value[i] > '9';
    length = length * 10 + (uint64_t) (value[i] - '0');
  }
  framing->wrong |= framing->length_seen && framing->length != length;
  framing->length_seen = 1;
  framing->length = length;
}

/* "chunked" alone or last of one list. */
static void oracle_coding (const char *value, size_t size, oracle_framing_t *framing)
{
  framing->wrong |=
      framing->chunked || size < 7 || size > 64 || strncasecmp (value + size - 7, "chunked", 7) != 0;
  if (!framing->wrong && size > 7)
    framing->wrong |= !strchr (", \t", value[size - 8]) || !value[size - 8] || !memchr (value, ',', size - 7);
  framing->chunked = 1;
}

static void oracle_field (const oracle_stream_t *in, size_t at, size_t size, oracle_message_t *message,
                          oracle_framing_t *framing)
{
  const char *line = (const char *) in->text + at, *colon = memchr (line, ':', size);
  size_t name = colon ? (size_t) (colon - line) : size, tight = name;
  framing->ours = 0;
  message->fields++;
  while (tight && (line[tight - 1] == ' ' || line[tight - 1] == '\t'))
    tight--;
  int length = oracle_token (line, tight, "content-length"),
      coding = oracle_token (line, tight, "transfer-encoding");
  int parent = oracle_token (line, tight, "traceparent"), task = oracle_token (line, tight, "weft-task");
  int foreign = oracle_token (line, tight, "b3") || oracle_token (line, tight, "sw8") ||
                oracle_token (line, tight, "uber-trace-id") ||
                (tight >= 5 && strncasecmp (line, "x-b3-", 5) == 0) ||
                (tight >= 10 && strncasecmp (line, "x-datadog-", 10) == 0);
  if (!colon || name > 32) {
    message->foreign |= foreign && name > 32;
    return;
  }
  if (!(length || coding || parent || task || foreign))
    return;
  framing->ours = 1;
  framing->wrong |= tight != name;
  message->foreign |= foreign;
  const char *value = colon + 1;
  size_t left = size - name - 1;
  while (left && (*value == ' ' || *value == '\t'))
    value++, left--;
  while (left && (value[left - 1] == ' ' || value[left - 1] == '\t'))
    left--;
  if (length)
    oracle_length (value, left, framing);
  else if (coding)
    oracle_coding (value, left, framing);
  else if (parent)
    message->parent_at = (size_t) ((const uint8_t *) value - in->text);
  else if (task)
    message->task_at = (size_t) ((const uint8_t *) value - in->text);
  message->traceparents += parent ? 1 : 0;
  message->weft_tasks += task ? 1 : 0;
}

static void oracle_range (oracle_t *out, size_t from, size_t to)
{
  if (from < to && out->ranges < ORACLE_RANGES) {
    out->range[out->ranges].from = from;
    out->range[out->ranges++].to = to;
  }
}

/* Behind the last chunk and its trailer; 0: goes on beyond the stream; SIZE_MAX: nonsense. */
static size_t oracle_chunks (const oracle_stream_t *in, size_t at, oracle_t *out)
{
  for (;;) {
    size_t next = oracle_line (in, at), size, digits = 0;
    uint64_t length = 0;
    for (; at + digits < in->size; digits++) {
      const char *hex = "0123456789abcdef", *found = NULL;
      int c = in->text[at + digits] >= 'A' && in->text[at + digits] <= 'F' ? in->text[at + digits] | 0x20
                                                                           : in->text[at + digits];
      if (c == 0 || !(found = strchr (hex, c)))
        break;
      length = length * 16 + (uint64_t) (found - hex);
      if (length >= 1ull << 56)
        return SIZE_MAX;
    }
    if (at + digits == in->size)
      return 0;
    if (digits == 0 || !in->text[at + digits] || !strchr ("\r\n; \t", in->text[at + digits]))
      return SIZE_MAX;
    if (!next)
      next = in->size;
    else if (oracle_trim (in, at, next, &size))
      return SIZE_MAX;
    if (next == in->size)
      return 0;
    at = next;
    if (length == 0)
      break;
    oracle_range (out, at, length > in->size - at ? in->size : at + (size_t) length);
    if (length >= in->size - at)
      return 0;
    at += (size_t) length;
    if (in->text[at] == '\r')
      at++;
    if (at == in->size)
      return 0;
    if (in->text[at++] != '\n')
      return SIZE_MAX;
  }
  for (;;) { // the trailer
    size_t next = oracle_line (in, at), size;
    if (!next)
      return 0;
    if (in->text[at] == '\n')
      return next;
    if (in->text[at] == '\r')
      return in->text[at + 1] == '\n' ? next : SIZE_MAX;
    if (oracle_trim (in, at, next, &size))
      return SIZE_MAX;
    at = next;
  }
}

/* The body behind a head: where the message ends. */
static void oracle_body (const oracle_stream_t *in, oracle_message_t *message,
                         const oracle_framing_t *framing, const oracle_message_t *asked, oracle_t *out)
{
  int none = in->response &&
             (message->interim || asked->is_head || message->status == 204 || message->status == 304);
  message->end = message->body;
  if (none)
    return;
  if (framing->chunked) {
    size_t end = oracle_chunks (in, message->body, out);
    message->end = end && end != SIZE_MAX ? end : SIZE_MAX;
    // Bad framing is noticed somewhere in the body; a head never follows it.
    out->bad = end == SIZE_MAX ? message->body : out->bad;
  } else if (framing->length_seen) {
    size_t left = in->size - message->body;
    message->end = framing->length > left ? SIZE_MAX : message->body + (size_t) framing->length;
    oracle_range (out, message->body, message->end == SIZE_MAX ? in->size : message->end);
  } else if (in->response) {
    message->until_close = 1;
    message->end = SIZE_MAX;
    oracle_range (out, message->body, in->size);
  }
}

/* One head from `at`; returns 0 if the stream ends or makes no sense (out->bad) before its
 * blank line is whole. */
static int oracle_head (const oracle_stream_t *in, size_t at, oracle_message_t *message,
                        oracle_framing_t *framing, oracle_t *out)
{
  size_t next = oracle_line (in, at), size, begin = at;
  const char *line = (const char *) in->text + at;
  if (!next)
    return 0;
  int fault = oracle_trim (in, at, next, &size) ||
              (in->response ? oracle_status_line (line, size, message, &framing->minor)
                            : oracle_request_line (line, size, message, &framing->minor));
  for (at = next; !fault && at < in->size && in->text[at] != '\r' && in->text[at] != '\n'; at = next) {
    int fold = in->text[at] == ' ' || in->text[at] == '\t';
    if (fold && (message->fields == 0 || framing->ours)) {
      fault = 1;
      break;
    }
    next = oracle_line (in, at);
    if (!next)
      return 0;
    fault = oracle_trim (in, at, next, &size);
    if (!fault && !fold)
      oracle_field (in, at, size, message, framing);
    fault |= framing->wrong;
  }
  if (!fault && at >= in->size)
    return 0;
  if (fault || (framing->chunked && (framing->length_seen || framing->minor == 0))) {
    out->bad = begin;
    return 0;
  }
  message->blank = at;
  out->count++;
  if (in->text[at] == '\r' && ++at == in->size)
    return 0;
  if (in->text[at] != '\n') {
    out->bad = at;
    return 0;
  }
  message->body = at + 1;
  return 1;
}

static void oracle_read (const oracle_stream_t *in, oracle_t *out)
{
  static const oracle_message_t nothing;
  size_t at = 0;
  unsigned asked = 0; /* final answers so far */
  memset (out, 0, offsetof (oracle_t, range));
  out->ranges = 0;
  out->bad = SIZE_MAX;
  while (at < in->size && out->count < ORACLE_MESSAGES && out->bad == SIZE_MAX) {
    oracle_message_t *message = &out->message[out->count];
    oracle_framing_t framing = {0};
    *message = (oracle_message_t){.blank = SIZE_MAX, .body = SIZE_MAX, .end = SIZE_MAX};
    for (unsigned lead = 0; !in->response && at < in->size; lead++) {
      int crlf = in->text[at] == '\r' && at + 1 < in->size && in->text[at + 1] == '\n';
      if (in->text[at] != '\n' && !crlf)
        break;
      if (lead == 4)
        out->bad = at;
      at += crlf ? 2 : 1;
    }
    message->begin = at;
    if (out->bad != SIZE_MAX || !oracle_head (in, at, message, &framing, out))
      break;
    const oracle_message_t *request = &nothing;
    if (in->response && asked < in->requests->count)
      request = &in->requests->message[asked];
    message->switches =
        in->response && (message->status == 101 || (request->connect && message->status / 100 == 2));
    message->interim = in->response && message->status < 200 && !message->switches;
    if (message->switches) {
      out->bad = message->body;
      break;
    }
    oracle_body (in, message, &framing, request, out);
    asked += message->interim ? 0 : 1;
    if (message->end == SIZE_MAX)
      break;
    at = message->end;
  }
  // What is behind the last message that fits in here is not judged.
  if (out->count == ORACLE_MESSAGES && out->bad == SIZE_MAX)
    out->bad = out->message[ORACLE_MESSAGES - 1].end;
}

#endif
