/* SPDX-License-Identifier: Apache-2.0 */
/* The framing machine: what it says of whole streams, and that it says the same
 * however they are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../instance/probe/http1.h"

#define LOG_MAX 4096

typedef struct {
  char log[LOG_MAX];
  size_t used;
  probe_http1_t machine;
} trail_t;

/* "B37 H39 E44": event and offset in the stream. */
static void note (trail_t *trail, char event, size_t at)
{
  int n = snprintf (trail->log + trail->used, LOG_MAX - trail->used, "%s%c%zu", trail->used ? " " : "", event,
                    at);
  assert_true (n > 0 && trail->used + (size_t) n < LOG_MAX);
  trail->used += (size_t) n;
}

/* Feeds one piece; 0 after a final event. */
static int feed (trail_t *trail, const char *data, size_t size, size_t at)
{
  static const char letter[] = {0, 'B', 'H', 'E', 'T', 'F'};
  for (;;) {
    size_t used;
    probe_http1_event_t event = probe_http1_feed (&trail->machine, data, size, &used);
    assert_true (used <= size);
    data += used, size -= used, at += used;
    if (event == PROBE_HTTP1_MORE) {
      assert_int_equal (size, 0);
      return 1;
    }
    if (event == PROBE_HTTP1_FAILED) {
      note (trail, 'F', 0);
      return 0;
    }
    note (trail, letter[event], at);
    if (event == PROBE_HTTP1_TUNNEL)
      return 0;
  }
}

static void fresh (trail_t *trail, probe_http1_side_t side, probe_method_t answer_to)
{
  memset (trail, 0, sizeof *trail);
  probe_http1_init (&trail->machine, side);
  trail->machine.answer_to = (uint8_t) answer_to;
}

/* Compared after a copy into memory of exactly its size: a sanitizer sees every
 * byte too many. */
static int feed_copy (trail_t *trail, const char *data, size_t size, size_t at)
{
  char *copy = malloc (size ? size : 1);
  assert_non_null (copy);
  memcpy (copy, data, size);
  int go_on = feed (trail, copy, size, at);
  free (copy);
  return go_on;
}

static void same (const trail_t *a, const trail_t *b)
{
  assert_string_equal (a->log, b->log);
  const probe_http1_t *x = &a->machine, *y = &b->machine;
  assert_int_equal (x->phase, y->phase);
  if (strchr (a->log, 'F'))
    return; // how far it came before it failed says nothing
  assert_int_equal (x->status, y->status);
  assert_int_equal (x->fields, y->fields);
  assert_int_equal (x->head_size, y->head_size);
  assert_int_equal (x->name_size, y->name_size);
  assert_memory_equal (x->name, y->name, x->name_size);
  assert_int_equal (x->foreign, y->foreign);
  assert_int_equal (x->traceparent.count, y->traceparent.count);
  assert_int_equal (x->traceparent.valid, y->traceparent.valid);
  if (x->traceparent.count)
    assert_int_equal (x->traceparent.at, y->traceparent.at);
  assert_int_equal (x->weft.count, y->weft.count);
  assert_int_equal (x->weft.valid, y->weft.valid);
}

/* All two-piece cuts, byte by byte, and 200 random cuts. */
static void check_cuts (const char *text, size_t size, probe_http1_side_t side, probe_method_t to,
                        const trail_t *whole)
{
  trail_t cut;
  for (size_t i = 1; i < size; i++) {
    fresh (&cut, side, to);
    if (feed_copy (&cut, text, i, 0))
      feed_copy (&cut, text + i, size - i, i);
    same (whole, &cut);
  }
  fresh (&cut, side, to);
  for (size_t i = 0; i < size && feed_copy (&cut, text + i, 1, i); i++)
    ;
  same (whole, &cut);
  unsigned seed = 7;
  for (int n = 0; n < 200; n++) {
    fresh (&cut, side, to);
    for (size_t i = 0; i < size;) {
      size_t piece = 1 + (size_t) rand_r (&seed) % 23;
      piece = piece < size - i ? piece : size - i;
      if (!feed_copy (&cut, text + i, piece, i))
        break;
      i += piece;
    }
    same (whole, &cut);
  }
}

static probe_http1_t run (const char *text, probe_http1_side_t side, probe_method_t to, const char *expected)
{
  static trail_t whole;
  size_t size = strlen (text);
  fresh (&whole, side, to);
  feed_copy (&whole, text, size, 0);
  assert_string_equal (whole.log, expected);
  check_cuts (text, size, side, to, &whole);
  return whole.machine;
}

static probe_http1_t request (const char *text, const char *expected)
{
  return run (text, PROBE_HTTP1_REQUEST, PROBE_METHOD_OTHER, expected);
}
static probe_http1_t response (const char *text, probe_method_t to, const char *expected)
{
  return run (text, PROBE_HTTP1_RESPONSE, to, expected);
}

static void assert_name (const probe_http1_t *machine, const char *name)
{
  assert_int_equal (machine->name_size, strlen (name));
  assert_memory_equal (machine->name, name, strlen (name));
}

/* ---- requests ----------------------------------------------------------- */
static void test_no_body (void **state)
{
  // 16 bytes of request line, 9 of Host, then the blank line.
  probe_http1_t m = request ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "B25 H27 E27");
  assert_name (&m, "GET /");
  assert_int_equal (m.fields, 1);
  request ("GET / HTTP/1.1\nHost: a\n\n", "B23 H24 E24");
  request ("\r\n\r\nGET / HTTP/1.1\r\n\r\n", "B20 H22 E22");
  request ("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", "B16 H18 E18 B34 H36 E36");
}

static void test_content_length (void **state)
{
  request ("POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "B37 H39 E44");
  request ("POST /a HTTP/1.1\r\ncOnTeNt-LeNgTh:5 \t \r\n\r\nhello", "B39 H41 E46");
  request ("POST /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "B37 H39 E39");
  request ("POST /a HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "B56 H58 E63");
  request ("POST /a HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "F0");
  request ("POST /a HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\nhello", "F0");
  request ("POST /a HTTP/1.1\r\nContent-Length: -5\r\n\r\n", "F0");
  request ("POST /a HTTP/1.1\r\nContent-Length: \r\n\r\n", "F0");
  request ("POST /a HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", "F0");
  request ("POST /a HTTP/1.1\r\nContent-Length : 5\r\n\r\n", "F0");
  request ("POST /a HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "F0");
}

static void test_body_that_is_requests (void **state)
{
  request ("POST / HTTP/1.1\r\nContent-Length: 36\r\n\r\nGET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
           "B37 H39 E75");
}

static void test_chunked (void **state)
{
  request ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "B45 H47 E62");
  request ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\nA;x=\"y\"\r\n0123456789\r\n0;z\r\n"
           "T: 1\r\nU: 2\r\n\r\n",
           "B51 H53 E93");
  // A chunk that looks like the end of the body.
  request ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n",
           "B45 H47 E64");
  request ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello", "B45 H47 F0");
  request ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", "B45 H47 F0");
  request ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX", "B45 H47 F0");
  request ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "B45 H47 F0");
  request ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", "F0");
  request ("POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n", "F0");
  request ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "F0");
  request ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "F0");
}

static void test_names (void **state)
{
  probe_http1_t m = request ("DELETE /a/b?secret=1#x HTTP/1.1\r\n\r\n", "B33 H35 E35");
  assert_name (&m, "DELETE /a/b");
  m = request ("GET http://user:pw@host:80/p/q?s HTTP/1.1\r\n\r\n", "B43 H45 E45");
  assert_name (&m, "GET /p/q");
  m = request ("GET http://host?s HTTP/1.1\r\n\r\n", "B28 H30 E30");
  assert_name (&m, "GET /");
  m = request ("OPTIONS * HTTP/1.1\r\n\r\n", "B20 H22 E22");
  assert_name (&m, "OPTIONS *");
  m = request ("CONNECT u:p@h:1 HTTP/1.1\r\n\r\n", "B26 H28 E28");
  assert_name (&m, "CONNECT");
  assert_int_equal (m.method, PROBE_METHOD_CONNECT);
  m = request ("HEAD /x HTTP/1.1\r\n\r\n", "B18 H20 E20");
  assert_int_equal (m.method, PROBE_METHOD_HEAD);
  char text[400];
  snprintf (text, sizeof text, "GET /%0295d HTTP/1.1\r\n\r\n", 0);
  m = request (text, "B311 H313 E313");
  assert_int_equal (m.name_size, WEFT_NAME_MAX);
  assert_int_equal (m.cut, 1);
}

static void test_not_http (void **state)
{
  static const char *const texts[] = {
      "\x16\x03\x01\x02\x01", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /\r\n",
      "EHLO x\r\n",           "get / HTTP/1.1\r\n\r\n",           "GET  / HTTP/1.1\r\n\r\n",
      " GET / HTTP/1.1\r\n",  "GET / HTTP/1.2\r\n\r\n",           "GET / HTTP/1.1 \r\n\r\n",
      "SSH-2.0-x\r\n",        "ABCDEFGHIJKLMNOPQ / HTTP/1.1"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    probe_http1_t m = request (texts[i], "F0");
    assert_true (probe_http1_foreign (&m));
  }
}

static void test_doubtful_heads (void **state)
{
  request ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", "F0");
  request ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", "F0");
  request ("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", "F0");
  request ("GET / HTTP/1.1\r\nContent-Length: 1\r1\r\n\r\n", "F0");
  request ("GET / HTTP/1.1\r\nContent-Length: 1\r\n 1\r\n\r\n", "F0");
  request ("GET / HTTP/1.1\r\nTransfer-Encoding:\r\n chunked\r\n\r\n", "F0");
  request ("GET / HTTP/1.1\r\nTraceless\r\n\r\n", "B27 H29 E29");
  request ("GET / HTTP/1.1\r\ntraceparent\r\n :\r\n\r\n", "B33 H35 E35");
  request ("GET / HTTP/1.1\r\nContent-Length: 1\r\r\n\r\n", "F0");
  request ("GET / HTTP/1.1\r\nContent-Length: \r 1\r\n\r\n", "F0");
  request ("GET / HTTP/1.1\r\nContent-Length:\r\r\n\r\n", "F0");
  request ("GET / HTTP/1.1\r\nHost: a\r\n\rX", "B25 F0");
  probe_http1_t m = request ("GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "B29 H31 E31");
  assert_int_equal (m.fields, 1);
  assert_false (probe_http1_foreign (&m));
}

static void test_contexts (void **state)
{
#define TP "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
  probe_http1_t m = request ("GET / HTTP/1.1\r\nTRACEPARENT:  " TP " \r\n\r\n", "B88 H90 E90");
  assert_int_equal (m.traceparent.count, 1);
  assert_int_equal (m.traceparent.valid, 1);
  assert_int_equal (m.traceparent.at, 30);
  assert_true (m.traceparent.trace.request == 0xb7ad6b7169203331ull);
  assert_int_equal (m.traceparent.trace.task[0], 0x0a);
  assert_int_equal (m.traceparent.trace.task[15], 0x9c);
  m = request ("GET / HTTP/1.1\r\ntraceparent: " TP "\r\ntraceparent: " TP "\r\n\r\n", "B156 H158 E158");
  assert_int_equal (m.traceparent.count, 2);
  m = request ("GET / HTTP/1.1\r\ntraceparent: " TP "-more-of-it-and-still-more\r\n\r\n", "B112 H114 E114");
  assert_int_equal (m.traceparent.count, 1);
  assert_int_equal (m.traceparent.valid, 0);
  m = request ("GET / HTTP/1.1\r\nweft-task: 0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331\r\n\r\n",
               "B78 H80 E80");
  assert_int_equal (m.weft.valid, 1);
  assert_int_equal (m.weft.at, 27);
  static const char *const foreign[] = {
      "b3: 1",  "X-B3-TraceId: 1",  "x-datadog-trace-id: 1",
      "SW8: 1", "uber-trace-id: 1", "x-datadog-some-very-long-name-of-a-field: 1"};
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
    char text[128];
    trail_t trail;
    snprintf (text, sizeof text, "GET / HTTP/1.1\r\n%s\r\n\r\n", foreign[i]);
    fresh (&trail, PROBE_HTTP1_REQUEST, PROBE_METHOD_OTHER);
    feed (&trail, text, strlen (text), 0);
    assert_int_equal (trail.machine.foreign, 1);
    check_cuts (text, strlen (text), PROBE_HTTP1_REQUEST, PROBE_METHOD_OTHER, &trail);
  }
  m = request ("GET / HTTP/1.1\r\nb: 1\r\nx-b: 2\r\nbthree: 3\r\n\r\n", "B41 H43 E43");
  assert_int_equal (m.foreign, 0);
}

static void test_request_line (void **state)
{
#define IS(text) probe_http1_request_line (text, sizeof text - 1)
  assert_true (IS ("GET / HTTP/1.1\r\nHo"));
  assert_true (IS ("GET http://a/b HTTP/1.0\r\n"));
  assert_false (IS ("GET / HTTP/1.1\n"));
  assert_false (IS ("GET / HTTP/1.1\r"));
  assert_false (IS ("\r\nGET / HTTP/1.1\r\n"));
  assert_false (IS ("HTTP/1.1 200 OK\r\n"));
  assert_false (IS ("hello GET / HTTP/1.1\r\n"));
  assert_false (IS (""));
#undef IS
}

/* Lines that lie in one piece are read in one look: what they say must not depend on it. */
static void test_whole_lines (void **state)
{
  static const struct {
    const char *lines, *expected;
    uint64_t length;
  } lengths[] = {
      {"content-length:0\r\n", "B38 H40 E40", 0},
      {"CONTENT-LENGTH: 3\r\n", "B39 H41 E44", 3},
      {"Content-Length: 3\n", "B38 H40 E43", 3},
      {"Content-Length:  3 \t\r\n", "B42 H44 E47", 3},
      {"Content-Length: 003\r\nHost: a\r\n", "B50 H52 E55", 3},
      {"Content-Length: 3\r\nContent-Length: 3\r\n", "B58 H60 E63", 3},
      {"Content-Length: 999999999999999999\r\n", "B56 H58", 999999999999999999},
      {"Content-Length: 1000000000000000000\r\n", "F0", 0},
      {"Content-Length: \r\n", "F0", 0},
      {"Content-Length: 3\r\nContent-Length: 4\r\n", "F0", 0},
      {"Content-Length: 3\r\n 4\r\n", "F0", 0},
      {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "F0", 0},
      {"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "F0", 0},
      {"Content_Length: 3\r\n", "B39 H41 E41", 0},
      {"Content\rLength: 3\r\n", "F0", 0},
      {"Content-Length : 3\r\n", "F0", 0},
  };
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    char text[160];
    int whole = lengths[i].length && lengths[i].length < 9;
    snprintf (text, sizeof text, "POST /a?b HTTP/1.1\r\n%s\r\n%s", lengths[i].lines, whole ? "abc" : "");
    probe_http1_t m = request (text, lengths[i].expected);
    if (*lengths[i].expected != 'F')
      assert_true (m.length == lengths[i].length);
  }
  request ("GET / HTTP/1.1\r\ntraceparent:" TP "\r\n x\r\n\r\n", "F0");
  probe_http1_t m = request ("GET / HTTP/1.1\r\nA: b\r\nTraceParent:" TP "\r\nB: c\r\n\r\n", "B97 H99 E99");
  assert_int_equal (m.traceparent.at, 34);
  assert_int_equal (m.traceparent.flags, 1);
  assert_int_equal (m.fields, 3);
  m = request ("GET / HTTP/1.1\r\ntraceparent: " TP "\r\ntraceparent: 00-\r\n\r\n", "B104 H106 E106");
  assert_int_equal (m.traceparent.count, 2);
  assert_int_equal (m.traceparent.valid, 0);
}

/* A head of the most bytes that one may have, and of one more, in pieces or not. */
static void test_longest_head (void **state)
{
  static const char line[] = "GET / HTTP/1.1\r\nCookie: ";
  static const char end[4] = {'\r', '\n', '\r', '\n'};
  char *text = malloc (PROBE_HTTP1_HEAD_MAX + 16);
  assert_non_null (text);
  for (size_t more = 0; more < 5; more++) {
    size_t size = PROBE_HTTP1_HEAD_MAX - 4 + more; // of all but the blank line
    trail_t whole, cut;
    memset (text, 'a', size);
    memcpy (text, line, sizeof line - 1);
    memcpy (text + size - 2, end, sizeof end);
    fresh (&whole, PROBE_HTTP1_REQUEST, PROBE_METHOD_OTHER);
    feed (&whole, text, size + 2, 0);
    fresh (&cut, PROBE_HTTP1_REQUEST, PROBE_METHOD_OTHER);
    int go_on = feed (&cut, text, size - 3, 0);
    for (size_t at = size - 3; go_on && at < size + 2; at++)
      go_on = feed (&cut, text + at, 1, at);
    same (&whole, &cut);
    assert_true (strchr (whole.log, more < 4 ? 'H' : 'F'));
  }
  free (text);
}

/* ---- responses ---------------------------------------------------------- */
static void test_responses (void **state)
{
  probe_http1_t m =
      response ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", PROBE_METHOD_OTHER, "H38 E40");
  assert_int_equal (m.status, 200);
  response ("HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", PROBE_METHOD_OTHER, "H35 E35");
  response ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", PROBE_METHOD_HEAD, "H38 E38");
  response ("HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n", PROBE_METHOD_OTHER, "H38 E38");
  response ("HTTP/1.1 304 No\r\nTransfer-Encoding: chunked\r\n\r\n", PROBE_METHOD_OTHER, "H47 E47");
  response ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", PROBE_METHOD_OTHER,
            "H47 E59");
  m = response ("HTTP/1.1 200 OK\r\n\r\nuntil the end", PROBE_METHOD_OTHER, "H19");
  assert_int_equal (probe_http1_eof (&m), PROBE_HTTP1_END);
  m = response ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", PROBE_METHOD_OTHER, "H38");
  assert_int_equal (probe_http1_eof (&m), PROBE_HTTP1_FAILED);
  m = response ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\nA: b\r\n\r\nHTTP/1.1 201 "
                "C\r\nContent-Length: 0\r\n\r\n",
                PROBE_METHOD_OTHER, "H25 H49 H86 E86");
  assert_int_equal (m.status, 201);
  response ("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nHTTP/1.1 200", PROBE_METHOD_OTHER, "T38");
  response ("HTTP/1.1 200 OK\r\n\r\nGET", PROBE_METHOD_CONNECT, "T19");
  response ("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", PROBE_METHOD_CONNECT, "H38 E38");
  response ("HTTP/1.1 20 OK\r\n\r\n", PROBE_METHOD_OTHER, "F0");
  response ("HTTP/2 200 OK\r\n\r\n", PROBE_METHOD_OTHER, "F0");
  response ("\r\nHTTP/1.1 200 OK\r\n\r\n", PROBE_METHOD_OTHER, "F0");
  response ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", PROBE_METHOD_OTHER, "F0");
}

static void test_skip (void **state)
{
  static const char head[] = "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nab";
  trail_t trail;
  fresh (&trail, PROBE_HTTP1_REQUEST, PROBE_METHOD_OTHER);
  feed (&trail, head, sizeof head - 1, 0);
  assert_int_equal (probe_http1_opaque (&trail.machine), 8);
  assert_int_equal (probe_http1_skip (&trail.machine, 3), PROBE_HTTP1_MORE);
  assert_int_equal (probe_http1_skip (&trail.machine, 5), PROBE_HTTP1_END);
  assert_true (probe_http1_idle (&trail.machine));
  assert_int_equal (probe_http1_skip (&trail.machine, 1), PROBE_HTTP1_FAILED);
}

static void test_head_without_end (void **state)
{
  static char text[4096];
  trail_t trail;
  size_t fed = 0;
  memset (text, 'a', sizeof text);
  fresh (&trail, PROBE_HTTP1_REQUEST, PROBE_METHOD_OTHER);
  feed (&trail, "GET / HTTP/1.1\r\nCookie: ", 24, 0);
  while (feed (&trail, text, sizeof text, fed))
    fed += sizeof text;
  assert_true (fed > 8192 && fed <= PROBE_HTTP1_HEAD_MAX);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_no_body),        cmocka_unit_test (test_content_length),
      cmocka_unit_test (test_chunked),        cmocka_unit_test (test_body_that_is_requests),
      cmocka_unit_test (test_names),          cmocka_unit_test (test_not_http),
      cmocka_unit_test (test_doubtful_heads), cmocka_unit_test (test_contexts),
      cmocka_unit_test (test_request_line),   cmocka_unit_test (test_responses),
      cmocka_unit_test (test_skip),           cmocka_unit_test (test_head_without_end),
      cmocka_unit_test (test_whole_lines),    cmocka_unit_test (test_longest_head),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
