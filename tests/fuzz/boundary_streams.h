/* SPDX-License-Identifier: Apache-2.0 */
/* boundary_streams: requests and their answers, drawn from a fuzzer's input: most
 * of them valid, in all the ways that HTTP/1 allows, some of them wrong. */
#ifndef BOUNDARY_STREAMS_H
#define BOUNDARY_STREAMS_H

#include "fuzz.h"

#define BYTES_MAX (256u << 10)
#define TP_TASK   "0af7651916cd43dd8448eb211c80319c"
#define TP        "00-" TP_TASK "-b7ad6b7169203331-01"

typedef struct {
  uint8_t data[BYTES_MAX];
  size_t size;
} bytes_t;

static void bytes_put (bytes_t *to, const void *data, size_t size)
{
  if (size > BYTES_MAX - to->size)
    size = BYTES_MAX - to->size;
  memcpy (to->data + to->size, data, size);
  to->size += size;
}
static void bytes_say (bytes_t *to, const char *text)
{
  bytes_put (to, text, strlen (text));
}
static void bytes_fill (bytes_t *to, char c, size_t size)
{
  if (size > BYTES_MAX - to->size)
    size = BYTES_MAX - to->size;
  memset (to->data + to->size, c, size);
  to->size += size;
}

/* The input, and when it is used up what follows from it by chance: a few bytes are whole
 * connections. */
static uint64_t chance;
static void chance_from (const uint8_t *data, size_t size)
{
  chance = 14695981039346656037u;
  for (size_t i = 0; i < size; i++)
    chance = (chance ^ data[i]) * 1099511628211u;
  chance |= 1;
}
static unsigned draw (fuzz_input_t *input, unsigned below)
{
  if (input->at < input->end)
    return (unsigned) fuzz_take (input, below > 256 ? 2 : 1) % below;
  chance ^= chance << 13;
  chance ^= chance >> 7;
  chance ^= chance << 17;
  return (unsigned) (chance >> 32) % below;
}
/* Once in n. */
static int seldom (fuzz_input_t *input, unsigned n)
{
  return draw (input, n) == n - 1;
}

/* How the lines of one head end. */
static void line_end (bytes_t *to, unsigned style)
{
  bytes_say (to, style == 1 ? "\n" : "\r\n");
}

static void some_body (bytes_t *to, fuzz_input_t *input, size_t size)
{
  static const char inside[] = "GET /inside HTTP/1.1\r\nHost: body\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
  unsigned kind = draw (input, 4);
  if (kind == 0)
    bytes_fill (to, 'b', size);
  else if (kind == 1)
    bytes_fill (to, '\n', size);
  else
    for (; size; size -= size < sizeof inside - 1 ? size : sizeof inside - 1)
      bytes_put (to, inside, size < sizeof inside - 1 ? size : sizeof inside - 1);
}

static void chunks (bytes_t *to, fuzz_input_t *input, unsigned style)
{
  char text[64];
  for (unsigned i = draw (input, 5); i; i--) {
    unsigned size = 1 + draw (input, seldom (input, 8) ? 20000 : 200);
    snprintf (text, sizeof text, i & 1 ? "%x" : "%04X", size);
    bytes_say (to, text);
    if (seldom (input, 4))
      bytes_say (to, ";name=\"v;0\"");
    line_end (to, style);
    some_body (to, input, size);
    line_end (to, style);
  }
  static const char *const last[] = {"0",  "0", "0", "0", "000;x", "0 ", "", "g", "-1", "11111111111111111",
                                     "0x0"};
  bytes_say (to, last[draw (input, seldom (input, 12) ? 11 : 6)]);
  line_end (to, style);
  if (seldom (input, 3)) {
    bytes_say (to, "X-Trailer: GET / HTTP/1.1");
    line_end (to, style);
  }
  line_end (to, style);
}

/* What says how long the body is: 0 nothing, 1 a length, 2 chunks. */
static void framing (bytes_t *to, fuzz_input_t *input, unsigned kind, unsigned length, unsigned style)
{
  static const char *const lengths[] = {"Content-Length: %u", "content-length:%u", "CONTENT-LENGTH: \t%u  "};
  static const char *const codings[] = {"Transfer-Encoding: chunked", "transfer-encoding:  gzip, Chunked \t",
                                        "Transfer-encoding:chunked"};
  static const char *const wrong[] = {"Content-Length: 3",
                                      "Transfer-Encoding: chunked",
                                      "Content-Length: 1, 1",
                                      "Transfer-Encoding: gzip",
                                      "Content-Length: +4",
                                      "Content-Length: 99999999999999999999",
                                      "Content-Length : 4",
                                      "Content-Length:",
                                      " folded",
                                      "Transfer-Encoding: chunked, gzip",
                                      "Content-Length: 0x4",
                                      "Transfer-Encoding: xchunked",
                                      "Content-Length: 4\r\n 4",
                                      "Transfer-Encoding:\r\n chunked",
                                      "X-Bare: \r x",
                                      "Content-Length: 1\r"};
  char text[64];
  if (kind == 1) {
    snprintf (text, sizeof text, lengths[draw (input, 3)], length);
    bytes_say (to, text);
    line_end (to, style);
  } else if (kind == 2) {
    bytes_say (to, codings[draw (input, 3)]);
    line_end (to, style);
  }
  if (seldom (input, 24)) {
    bytes_say (to, wrong[draw (input, sizeof wrong / sizeof *wrong)]);
    line_end (to, style);
  }
}

static void contexts (bytes_t *to, fuzz_input_t *input, unsigned style)
{
  static const char *const fields[] = {"traceparent: " TP,
                                       "TraceParent:\t" TP " ",
                                       "traceparent: 00-" TP_TASK "-0000000000000000-01",
                                       "traceparent: 01-" TP_TASK "-b7ad6b7169203331-00-more",
                                       "tracestate: a=1,b=2",
                                       "weft-task: " TP_TASK "-b7ad6b7169203331",
                                       "b3: 1",
                                       "X-B3-TraceId: 1",
                                       "x-datadog-trace-id: 1",
                                       "uber-trace-id: 1:1:1:1"};
  for (unsigned i = seldom (input, 4) ? 1 + draw (input, 2) : 0; i; i--) {
    bytes_say (to, fields[draw (input, sizeof fields / sizeof *fields)]);
    line_end (to, style);
  }
}

static void fields (bytes_t *to, fuzz_input_t *input, unsigned style)
{
  static const char *const some[] = {
      "Host: orders.internal:8080", "Accept: */*", "X: a\r\n folded", "X-Empty:",
      "content-lengthy: 5",         "trace: x",    "NoColonAtAll",    "Connection: close",
      "User-Agent: a b c",          "u: 1",        "X-B4: 5",         "Expect: 100-continue"};
  unsigned count = seldom (input, 12) ? draw (input, 80) : draw (input, 6);
  for (; count; count--) {
    bytes_say (to, some[draw (input, sizeof some / sizeof *some)]);
    line_end (to, style);
  }
  if (seldom (input, 8)) {
    bytes_say (to, "Cookie: ");
    bytes_fill (to, 'c', draw (input, seldom (input, 6) ? 65536 : 5000));
    line_end (to, style);
  }
}

static void request (bytes_t *to, fuzz_input_t *input)
{
  static const char *const lines[] = {"GET / HTTP/1.1",
                                      "POST /orders/8812?cart=1 HTTP/1.1",
                                      "HEAD /h HTTP/1.1",
                                      "PUT /p HTTP/1.1",
                                      "GET /one HTTP/1.0",
                                      "OPTIONS * HTTP/1.1",
                                      "PROPFIND /d HTTP/1.1",
                                      "M-SEARCH * HTTP/1.1",
                                      "GET http://h/ HTTP/1.1",
                                      "DELETE HTTPS://u:p@h?q HTTP/1.1",
                                      "CONNECT h:1 HTTP/1.1",
                                      "GET /\xc3\xa4#f HTTP/1.1",
                                      "GET /x HTTP/1.2",
                                      "PRI * HTTP/2.0",
                                      "get / HTTP/1.1",
                                      "GET  / HTTP/1.1",
                                      "\x16\x03\x01\x02",
                                      "GET /",
                                      "LONGERTHANSIXTEEN / HTTP/1.1",
                                      "GET x HTTP/1.1"};
  unsigned style = seldom (input, 8), kind = draw (input, 3),
           length = draw (input, seldom (input, 8) ? 30000 : 300);
  for (unsigned lead = seldom (input, 10) ? draw (input, 6) : 0; lead; lead--)
    bytes_say (to, lead & 1 ? "\r\n" : "\n");
  unsigned line = draw (input, seldom (input, 16) ? 20 : 12);
  bytes_say (to, lines[line]);
  line_end (to, style);
  fields (to, input, style);
  framing (to, input, kind, length, style);
  contexts (to, input, style);
  line_end (to, style);
  if (kind == 1)
    some_body (to, input, length);
  else if (kind == 2)
    chunks (to, input, style);
}

static void answer (bytes_t *to, fuzz_input_t *input)
{
  static const char *const lines[] = {"HTTP/1.1 200 OK",
                                      "HTTP/1.1 404 Not Found",
                                      "HTTP/1.0 200 OK",
                                      "HTTP/1.1 204 No Content",
                                      "HTTP/1.1 304",
                                      "HTTP/1.1 500 ",
                                      "HTTP/1.1 100 Continue",
                                      "HTTP/1.1 103 Early",
                                      "HTTP/1.1 101 Switching",
                                      "HTTP/1.1 20 OK",
                                      "HTTP/2 200",
                                      "220 ready"};
  unsigned style = seldom (input, 8), odd = seldom (input, 16),
           length = draw (input, seldom (input, 8) ? 30000 : 300);
  unsigned line = draw (input, odd ? 12 : 8), kind = seldom (input, 12) ? 0 : 1 + draw (input, 2);
  bytes_say (to, lines[line]);
  line_end (to, style);
  fields (to, input, style);
  if (line != 6 && line != 7)
    framing (to, input, kind, length, style);
  line_end (to, style);
  if (line == 6 || line == 7) { // and then the answer proper
    bytes_say (to, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
  } else if (line != 3 && line != 4) {
    if (kind == 1)
      some_body (to, input, length);
    else if (kind == 2)
      chunks (to, input, style);
  }
}

/* A body behind the answer to HEAD would be an answer of its own. */
static void answer_to_head (bytes_t *to)
{
  bytes_say (to, "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n");
}

/* A few bytes turned, at places that the input names. */
static void spoil (bytes_t *of, fuzz_input_t *input)
{
  static const char likely[] = "\r\n :0;\0\x80";
  for (unsigned i = 1 + draw (input, 4); i && of->size; i--) {
    size_t at = draw (input, (unsigned) of->size);
    uint8_t with = (uint8_t) draw (input, 256);
    of->data[at] = with & 1 ? (uint8_t) likely[with / 2 % 8] : with;
  }
}

#endif
