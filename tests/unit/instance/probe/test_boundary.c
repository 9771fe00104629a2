/* SPDX-License-Identifier: Apache-2.0 */
/* What may be marked and what may not, case by case, on the client's side: the
 * forms of a request, heads that contradict themselves, tunnels, other protocols,
 * and inserts that leave in parts. */
#include "../../../support/fake_kernel.h"

#define FD   7
#define HEAD "GET /a?q=1 HTTP/1.1\r\nHost: x\r\n"
#define GET  HEAD "\r\n"
#define OK   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

/* `head` and the blank line `blank` are said in one call; the line stands between them. */
static void assert_marked (const char *head, const char *blank)
{
  char text[512];
  size_t at;
  snprintf (text, sizeof text, "%s%s", head, blank);
  fake[FD].sent_size = 0;
  app_say (FD, text);
  assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
  assert_int_equal (at, strlen (head));
  assert_sent (FD, text, strlen (text));
}

static void assert_untouched (const char *text)
{
  fake[FD].sent_size = 0;
  app_say (FD, text);
  assert_sent (FD, text, strlen (text));
}

/* ---- forms of a request ---------------------------------------------------- */
static void test_forms (void **state)
{
  static const char *const heads[] = {"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n",
                                      "GET http://user@h:80/a?b HTTP/1.1\r\nHost: h\r\n",
                                      "OPTIONS * HTTP/1.1\r\nHost: h\r\n",
                                      "PROPFIND /d HTTP/1.1\r\nHost: h\r\n",
                                      "M-SEARCH * HTTP/1.1\r\nHost: h\r\n",
                                      "\r\n\r\nGET /lead HTTP/1.1\r\nHost: h\r\n",
                                      "GET /fold HTTP/1.1\r\nX-Long: a\r\n b\r\n\tc\r\n",
                                      "GET /none HTTP/1.1\r\n",
                                      "HEAD /h HTTP/1.1\r\nHost: h\r\n"};
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
    fake_setup (NULL);
    fake_connect (FD);
    assert_marked (heads[i], "\r\n");
    app_hear (FD, i == 8 ? "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" : OK);
    assert_marked (HEAD, "\r\n"); // and it goes on
    app_hear (FD, OK);
    assert_int_equal (fake_report_count, 2);
  }
  fake_connect (FD);
  assert_marked ("GET /lf HTTP/1.1\nHost: h\n", "\n");
  app_hear (FD, "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi");
  assert_marked (HEAD, "\r\n");
}

static void test_responses_without_a_body (void **state)
{
  static const char *const answers[] = {
      "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 204 N\r\n\r\n"};
  fake_connect (FD);
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    assert_marked (HEAD, "\r\n");
    app_hear_by (FD, answers[i], 1 + i);
    assert_int_equal (fake_report_count, i + 1);
    assert_int_equal (fake_reports[i].report.error, WEFT_ERROR_NONE);
  }
}

/* 64 KB of cookies: followed to its end, not marked (servers would refuse it), and said. */
static void test_long_head (void **state)
{
  static char text[70000];
  fake_connect (FD);
  int n = snprintf (text, sizeof text, "GET /long HTTP/1.1\r\nCookie: %065536d\r\n\r\n", 7);
  for (int from = 0; from < n; from += 1000)
    app_write_all (FD, text + from, (size_t) (n - from < 1000 ? n - from : 1000));
  assert_sent (FD, text, (size_t) n);
  assert_int_equal (fake_reports[0].report.reason, WEFT_REASON_HEAD_LIMIT);
  app_hear (FD, OK);
  assert_marked (HEAD, "\r\n");
}

/* ---- heads that contradict themselves -------------------------------------- */
static void test_conflicts (void **state)
{
  static const char *const texts[] = {
      "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
      "POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\nhello",
      "POST / HTTP/1.1\r\nContent-Length: 18446744073709551621\r\n\r\nhello",
      "POST / HTTP/1.1\r\nContent-Length: 5\r\n 6\r\n\r\nhello",
      "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
      "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
      "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    for (int by_one = 0; by_one < 2; by_one++) {
      fake_setup (NULL);
      fake_connect (FD);
      for (size_t at = 0; by_one && at < strlen (texts[i]); at++)
        app_write_all (FD, texts[i] + at, 1);
      if (!by_one)
        app_say (FD, texts[i]);
      assert_sent (FD, texts[i], strlen (texts[i]));
      assert_untouched (GET);
      assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_FRAMING), 1);
      assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), 0);
    }
  }
}

static void test_bad_chunks (void **state)
{
  static const char *const bodies[] = {"5\r\nhelloX",           "0x5\r\nhello", "\r\n",
                                       "fffffffffffffffff\r\n", "-1\r\n",       "5\rhello"};
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    fake_setup (NULL);
    fake_connect (FD);
    assert_marked ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", "\r\n");
    assert_untouched (bodies[i]);
    assert_untouched (GET);
    assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_FRAMING), 1);
  }
}

/* ---- other protocols ------------------------------------------------------- */
static void test_other_protocols (void **state)
{
  static const char *const texts[] = {"\x16\x03\x01\x02\x01\x01",
                                      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                      "*1\r\n$4\r\nPING\r\n",
                                      "EHLO there\r\n",
                                      "GET /\r\n",
                                      "SSH-2.0-x\r\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    fake_setup (NULL);
    fake_connect (FD);
    assert_untouched (texts[i]);
    assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_OTHER), 1);
    assert_untouched (GET);
  }
}

/* ---- tunnels --------------------------------------------------------------- */
static void test_connect_refused_goes_on (void **state)
{
  fake_connect (FD);
  assert_untouched ("CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n"); // its head is the proxy's alone
  app_hear (FD, "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno");
  assert_marked (HEAD, "\r\n");
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_TUNNEL), 0);
}

/* What follows before the answer may be meant for whoever is behind the proxy. */
static void test_connect_in_advance (void **state)
{
  for (int calls = 1; calls <= 2; calls++) {
    fake_setup (NULL);
    fake_connect (FD);
    assert_untouched (calls == 1 ? "CONNECT h:80 HTTP/1.1\r\n\r\n" GET : "CONNECT h:80 HTTP/1.1\r\n\r\n");
    assert_untouched (GET);
    assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_TUNNEL), 1);
    app_hear (FD, "HTTP/1.1 200 OK\r\n\r\n" OK OK);
    assert_untouched (GET);
  }
}

/* An upgrade that is not granted is an answer like any other. */
static void test_upgrade_not_granted (void **state)
{
  fake_connect (FD);
  assert_marked ("GET /ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", "\r\n");
  app_hear (FD, OK);
  assert_marked (HEAD, "\r\n");
}

/* ---- streams without an end ------------------------------------------------ */
/* Server-sent events, a long poll: told as open when the window ends, not before. */
static void test_still_open (void **state)
{
  for (int chunked = 0; chunked < 2; chunked++) {
    fake_setup (NULL);
    fake_connect (FD);
    assert_marked (HEAD, "\r\n");
    app_hear (FD, chunked ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ndata: \r\n"
                          : "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
    app_hear (FD, chunked ? "2\r\n\n\n\r\n" : "data: 2\n\n");
    assert_int_equal (fake_report_count, 0);
    probe_actions = 0;
    probe_connections_flush ();
    assert_int_equal (fake_report_count, 1);
    assert_int_equal (fake_reports[0].report.error, WEFT_ERROR_OPEN);
    assert_int_equal (fake_reports[0].report.flags & WEFT_REPORT_OPEN, WEFT_REPORT_OPEN);
    assert_int_equal (fake_reports[0].report.status, 200);
  }
}

/* ---- inserts in parts ------------------------------------------------------ */
/* A file goes on where a write stopped in mid-insert: its rest comes first (C4). */
static void test_file_behind_a_cut_insert (void **state)
{
  size_t at;
  fake_connect (FD);
  fake[FD].nonblocking = 1;
  fake[FD].accept = strlen (HEAD) + 10;
  assert_int_equal (app_write (FD, GET, strlen (GET)), strlen (HEAD));
  fake[FD].error = EAGAIN;
  errno = 0;
  assert_int_equal (probe_connection_finish (FD), 0);
  assert_int_equal (errno, EAGAIN);
  assert_int_equal (probe_connections_pending (), 1);
  errno = 4711;
  fake[FD].accept = 7;
  assert_int_equal (probe_connection_finish (FD), 1);
  assert_int_equal (errno, 4711);
  assert_int_equal (probe_connections_pending (), 0);
  assert_int_equal (probe_connection_finish (FD), 1);
  fake[FD].accept = 0;
  app_say (FD, "\r\n");
  assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
  assert_sent (FD, GET, strlen (GET));
}

/* Nor does it wait for the next write when that may come by another name. */
static void test_second_name_behind_a_cut_insert (void **state)
{
  size_t at;
  fake_connect (FD);
  fake[FD].nonblocking = 1;
  fake[FD].accept = strlen (HEAD) + 10;
  assert_int_equal (app_write (FD, GET, strlen (GET)), strlen (HEAD));
  probe_connection_shared (FD);
  assert_int_equal (probe_connections_pending (), 0);
  fake[FD].accept = 0;
  fake_send (FD, "\r\n", 2, 0);
  assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
  assert_sent (FD, GET, strlen (GET));
}

static void interrupt (int fd)
{
  fake[fd].during_write = NULL;
  fake[fd].error = EINTR;
}

/* A blocking socket from which only the insert left: a signal is the application's to see. */
static void test_signal_in_mid_insert (void **state)
{
  size_t at;
  fake_connect (FD);
  app_say (FD, HEAD);
  fake[FD].accept = 20;
  fake[FD].during_write = interrupt;
  assert_int_equal (app_write (FD, "\r\n", 2), -1);
  assert_int_equal (errno, EINTR);
  // A byte at a time: it waits for as long as it takes, and never says "again".
  fake[FD].accept = 1;
  assert_int_equal (app_write (FD, "\r\n", 2), 1);
  assert_int_equal (app_write (FD, "\n", 1), 1);
  assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
  assert_sent (FD, GET, strlen (GET));
}

/* The connection dies in mid-insert: the application hears what the kernel said. */
static void test_reset_in_mid_insert (void **state)
{
  fake_connect (FD);
  fake[FD].nonblocking = 1;
  fake[FD].accept = strlen (HEAD) + 10;
  assert_int_equal (app_write (FD, GET, strlen (GET)), strlen (HEAD));
  fake[FD].error = ECONNRESET;
  assert_int_equal (app_write (FD, "\r\n", 2), -1);
  assert_int_equal (errno, ECONNRESET);
  probe_connection_closing (FD);
  assert_int_equal (probe_connections_pending (), 0);
  fake_connect (FD); // the next one under this number begins clean
  assert_marked (HEAD, "\r\n");
}

/* Three requests in one write, short at every byte: all are marked, blocking and not. */
static void test_pipelined_short (void **state)
{
  size_t size = strlen (GET GET GET), at;
  for (size_t accept = 1; accept < size + 3 * 70; accept++) {
    for (int mode = 0; mode < 2; mode++) {
      fake_setup (NULL);
      fake_connect (FD);
      fake[FD].nonblocking = mode;
      fake[FD].accept = accept;
      ssize_t first = app_write (FD, GET GET GET, size);
      assert_true (first > 0 || (mode && errno == EAGAIN));
      fake[FD].accept = 0;
      first = first < 0 ? 0 : first;
      app_write_all (FD, &(GET GET GET)[first], size - (size_t) first);
      app_hear (FD, OK OK OK);
      assert_int_equal (fake_report_count, 3);
      for (unsigned i = 0; i < 3; i++) {
        probe_trace_t trace;
        const char *value = cut_line (FD, "traceparent: ", &at);
        assert_int_equal (at, i * strlen (GET) + strlen (HEAD));
        assert_int_equal (probe_traceparent_parse (value, strlen (value), &trace), 0);
        assert_true (fake_reports[i].report.request == trace.request);
      }
      assert_sent (FD, GET GET GET, size);
    }
  }
}

/* The longest vector that is inserted into, and every request of it inside a part: it leaves
 * whole, in one call. */
static void test_pipelined_in_many_parts (void **state)
{
  static const char post[] = "POST /a HTTP/1.1\r\nContent-Length: 48\r\n\r\n";
  struct iovec iov[PROBE_IOV_MAX];
  char text[2048] = "";
  size_t size = 0;
  for (unsigned i = 0; i < PROBE_IOV_MAX; i++) {
    const char *part = i < 15 ? GET : i == 15 ? post : "x";
    iov[i].iov_base = (void *) (uintptr_t) part;
    iov[i].iov_len = strlen (part);
    memcpy (text + size, part, iov[i].iov_len);
    size += iov[i].iov_len;
  }
  fake_connect (FD);
  assert_int_equal (app_writev (FD, iov, PROBE_IOV_MAX), size);
  for (unsigned i = 0; i < 16; i++) {
    size_t at;
    assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
    assert_int_equal (at, i < 15 ? (i + 1) * strlen (GET) - 2 : 15 * strlen (GET) + sizeof post - 1 - 2);
  }
  assert_sent (FD, text, size);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, fake_setup)
  const struct CMUnitTest tests[] = {
      TEST (test_forms),
      TEST (test_responses_without_a_body),
      TEST (test_long_head),
      TEST (test_conflicts),
      TEST (test_bad_chunks),
      TEST (test_other_protocols),
      TEST (test_connect_refused_goes_on),
      TEST (test_connect_in_advance),
      TEST (test_upgrade_not_granted),
      TEST (test_still_open),
      TEST (test_file_behind_a_cut_insert),
      TEST (test_second_name_behind_a_cut_insert),
      TEST (test_signal_in_mid_insert),
      TEST (test_reset_in_mid_insert),
      TEST (test_pipelined_short),
      TEST (test_pipelined_in_many_parts),
  };
  return cmocka_run_group_tests (tests, NULL, fake_teardown);
}
