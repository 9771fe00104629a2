/* SPDX-License-Identifier: Apache-2.0 */
/* The client side: what the peer receives is what the application wrote, plus
 * one whole line where one is due, whatever the kernel accepts. */
#include "../../../support/fake_kernel.h"

#define FD   7
#define HEAD "GET /a?q=1 HTTP/1.1\r\nHost: x\r\n"
#define GET  HEAD "\r\n"
#define OK   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
#define TP   "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static const uint8_t task[16] = {0xaa, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xbb};
static const uint8_t theirs[16] = {0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd,
                                   0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c};
#define THEIR_REQUEST 0xb7ad6b7169203331ull

static const weft_report_t *only_report (void)
{
  assert_int_equal (fake_report_count, 1);
  return &fake_reports[0].report;
}

/* The line stands before the blank line of `text`, `before` bytes into it, and
 * the rest is unchanged. */
static void assert_inserted (const char *text, size_t before, probe_trace_t *ret_trace)
{
  size_t at;
  const char *value = cut_line (FD, "traceparent: ", &at);
  assert_int_equal (strlen (value), PROBE_TRACEPARENT_SIZE);
  assert_int_equal (at, before);
  assert_sent (FD, text, strlen (text));
  assert_int_equal (probe_traceparent_parse (value, strlen (value), ret_trace), 0);
  assert_memory_equal (value + 52, "-01", 3);
}

static void assert_bare (const char *text, weft_reason_t reason)
{
  assert_sent (FD, text, strlen (text));
  assert_int_equal (only_report ()->kind, WEFT_REPORT_BARE);
  assert_int_equal (only_report ()->reason, reason);
  assert_int_equal (fake_counter (SHM_COUNT_BARE), 1);
  assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), 0);
}

/* ---- the plain case ----------------------------------------------------- */
static void test_insert (void **state)
{
  probe_trace_t trace;
  probe_handle_t handle = probe_context_open (task, 0x1122);
  fake_connect (FD);
  assert_int_equal (app_write (FD, GET, strlen (GET)), strlen (GET));
  assert_int_equal (fake_report_count, 0);
  app_hear (FD, OK);
  assert_inserted (GET, strlen (HEAD), &trace);
  const weft_report_t *report = only_report ();
  assert_int_equal (report->kind, WEFT_REPORT_EMBED);
  assert_memory_equal (report->task, task, 16);
  assert_memory_equal (trace.task, task, 16);
  assert_true (report->request == trace.request && trace.request != 0);
  assert_true (report->subtask == 0x1122);
  assert_int_equal (report->flags, 0);
  assert_int_equal (report->status, 200);
  assert_int_equal (report->error, WEFT_ERROR_NONE);
  assert_int_equal (report->tid, 100);
  assert_true (report->start_ns > 0 && report->start_ns <= report->end_ns);
  assert_true (report->cpu_ns == WEFT_NS_NONE);
  assert_int_equal (report->local.port, 10000 + FD);
  assert_int_equal (report->peer.port, 80);
  assert_string_equal (fake_reports[0].name, "GET /a");
  probe_context_close (handle);
}

static void test_orphan (void **state)
{
  probe_trace_t trace;
  fake_connect (FD);
  app_say (FD, GET);
  app_hear (FD, OK);
  assert_inserted (GET, strlen (HEAD), &trace);
  const weft_report_t *report = only_report ();
  assert_int_equal (report->flags, WEFT_REPORT_ORPHAN);
  assert_int_equal (report->reason, WEFT_REASON_NO_CONTEXT);
  assert_true (report->subtask == 0);
  assert_memory_equal (report->task, trace.task, 16);
}

static void test_told_nothing (void **state)
{
  probe_actions = WEFT_ACTION_CAPTURE;
  fake_connect (FD);
  app_say (FD, GET);
  app_hear (FD, OK);
  assert_sent (FD, GET, strlen (GET));
  assert_int_equal (fake_report_count, 0);
}

static void test_unmatched (void **state)
{
  probe_handle_t handle = probe_context_open (task, 0);
  fake_connect (FD);
  for (int i = 0; i < 3; i++) {
    app_say (FD, GET);
    app_hear (FD, OK);
  }
  assert_sent (FD, GET GET GET, 3 * strlen (GET));
  assert_int_equal (only_report ()->kind, WEFT_REPORT_BARE);
  assert_int_equal (only_report ()->reason, WEFT_REASON_UNMATCHED);
  fake_config.serial = 2; // said again under the next configuration
  app_say (FD, GET);
  assert_int_equal (fake_report_count, 2);
  probe_context_close (handle);
}

/* ---- partial writes ------------------------------------------------------ */
#define BODY      "GET / HTTP/1.1\r\n\r\nbody"
#define POST_HEAD "POST /p HTTP/1.1\r\nContent-Length: 22\r\n"
#define POST      POST_HEAD "\r\n" BODY

/* Two requests, the first write of each short at every offset. */
static void short_at (size_t accept, int always, int nonblocking)
{
  probe_trace_t trace;
  fake_setup (NULL);
  probe_context_open (task, 5);
  fake_connect (FD);
  fake[FD].nonblocking = nonblocking;
  for (int i = 0; i < 2; i++) {
    const char *text = POST;
    fake[FD].accept = accept;
    ssize_t first = app_write (FD, text, strlen (text));
    if (first < 0)
      assert_true (nonblocking && errno == EAGAIN);
    else
      assert_true (first > 0 && (size_t) first <= strlen (text));
    first = first < 0 ? 0 : first;
    if (!always)
      fake[FD].accept = 0;
    app_write_all (FD, text + first, strlen (text) - (size_t) first);
    assert_int_equal (probe_connections_pending (), 0);
    app_hear (FD, OK);
    assert_inserted (text, strlen (POST_HEAD), &trace);
    assert_int_equal (fake_report_count, i + 1);
    assert_true (fake_reports[i].report.request == trace.request);
    assert_memory_equal (trace.task, task, 16);
    fake[FD].sent_size = 0;
  }
  assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), 2);
  assert_int_equal (fake_counter (SHM_COUNT_REQUESTS_OUT), 2);
}

static void test_short_writes (void **state)
{
  for (size_t accept = 1; accept < strlen (POST) + 72; accept++)
    for (int mode = 0; mode < 4; mode++)
      short_at (accept, mode & 1, mode & 2);
}

/* The request in three calls at every pair of cuts, the vector in two parts. */
static void test_split_calls (void **state)
{
  probe_trace_t trace;
  const char *text = POST;
  size_t size = strlen (text);
  for (size_t i = 0; i < size; i++) {
    for (size_t j = i; j < size; j += 3) {
      fake_setup (NULL);
      fake_connect (FD);
      if (i)
        app_write_all (FD, text, i);
      if (j > i)
        app_write_all (FD, text + i, j - i);
      size_t half = (size - j) / 2;
      struct iovec iov[4] = {{(void *) (uintptr_t) (text + j), half},
                             {NULL, 0},
                             {(void *) (uintptr_t) (text + j + half), size - j - half},
                             {NULL, 0}};
      assert_int_equal (app_writev (FD, iov, 4), size - j);
      app_hear (FD, OK);
      assert_inserted (text, strlen (POST_HEAD), &trace);
      assert_true (only_report ()->request == trace.request);
    }
  }
}

static void test_one_byte_calls (void **state)
{
  probe_trace_t trace;
  fake_connect (FD);
  for (size_t i = 0; i < strlen (POST); i++)
    assert_int_equal (app_write (FD, &POST[i], 1), 1);
  app_hear_by (FD, OK, 1);
  assert_inserted (POST, strlen (POST_HEAD), &trace);
  assert_int_equal (only_report ()->status, 200);
}

static void test_refused_and_changed (void **state)
{
  probe_trace_t trace;
  fake_connect (FD);
  fake[FD].error = EAGAIN;
  assert_int_equal (app_write (FD, "PUT /other HTTP/1.1\r\n\r\n", 23), -1);
  assert_int_equal (errno, EAGAIN);
  fake[FD].error = EINTR;
  assert_int_equal (app_write (FD, GET, strlen (GET)), -1);
  assert_int_equal (errno, EINTR);
  app_say (FD, GET);
  app_hear (FD, OK);
  assert_inserted (GET, strlen (HEAD), &trace);
  assert_true (only_report ()->request == trace.request);
  assert_string_equal (fake_reports[0].name, "GET /a");
  assert_int_equal (fake_counter (SHM_COUNT_REQUESTS_OUT), 1);
}

static void test_never_sent (void **state)
{
  fake_connect (FD);
  fake[FD].error = EPIPE;
  assert_int_equal (app_write (FD, GET, strlen (GET)), -1);
  assert_int_equal (errno, EPIPE);
  probe_connection_closing (FD);
  assert_int_equal (fake_report_count, 0);
}

/* Random requests in random calls with random acceptance, 1,000 on one connection. */
static void test_keep_alive (void **state)
{
  unsigned seed = 11;
  fake_connect (FD);
  fake[FD].nonblocking = 1;
  for (int i = 0; i < 1000; i++) {
    char text[2048];
    size_t head, at;
    int n = snprintf (text, sizeof text, "POST /n/%d HTTP/1.1\r\nX-Filler: %0*d\r\nContent-Length: %d\r\n", i,
                      1 + rand_r (&seed) % 200, i, 300);
    head = (size_t) n;
    n += snprintf (text + n, sizeof text - (size_t) n, "\r\n%0300d", i);
    fake[FD].sent_size = 0;
    for (int from = 0; from < n;) {
      int piece = 1 + rand_r (&seed) % 300;
      piece = piece < n - from ? piece : n - from;
      fake[FD].accept = (size_t) (rand_r (&seed) % 3 ? 0 : 1 + rand_r (&seed) % 90);
      app_write_all (FD, text + from, (size_t) piece);
      from += piece;
    }
    app_hear_by (FD, OK, (size_t) (1 + rand_r (&seed) % 60));
    assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
    assert_int_equal (at, head);
    assert_sent (FD, text, (size_t) n);
  }
  assert_int_equal (fake_report_count, 1000);
  assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), 1000);
  assert_true (fake[FD].proofs >= 1000 / PROBE_PROOF_EVERY);
}

/* ---- the application's own contexts -------------------------------------- */
#define OWN(fields) "GET /a HTTP/1.1\r\n" fields "\r\n"

static void say_and_hear (const char *text)
{
  fake_connect (FD);
  app_say (FD, text);
  app_hear (FD, OK);
}

static void test_adopted (void **state)
{
  probe_context_open (task, 9);
  say_and_hear (OWN ("TraceParent:" TP "\r\n"));
  assert_sent (FD, OWN ("TraceParent:" TP "\r\n"), strlen (OWN ("TraceParent:" TP "\r\n")));
  const weft_report_t *report = only_report ();
  assert_int_equal (report->kind, WEFT_REPORT_EMBED);
  assert_int_equal (report->flags, WEFT_REPORT_ADOPTED);
  assert_memory_equal (report->task, theirs, 16);
  assert_true (report->request == THEIR_REQUEST && report->subtask == 9);
}

static void test_invalid_ones (void **state)
{
  static const char *const texts[] = {
      OWN ("traceparent: " TP "\r\ntraceparent: " TP "\r\n"), OWN ("traceparent: nonsense\r\n"),
      OWN ("traceparent: 00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01\r\n"),
      OWN ("weft-task: nonsense\r\n")};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    fake_setup (NULL);
    say_and_hear (texts[i]);
    assert_bare (texts[i], WEFT_REASON_CONTEXT);
  }
}

static void private_line (const char *text, size_t before)
{
  size_t at;
  probe_trace_t trace;
  fake_setup (NULL);
  if (before == SIZE_MAX) {
    fake_config.carrier = WEFT_CARRIER_WEFT;
    before = strlen (text) - 2;
  }
  say_and_hear (text);
  const char *value = cut_line (FD, "weft-task: ", &at);
  assert_int_equal (probe_weft_task_parse (value, strlen (value), &trace), 0);
  assert_int_equal (at, before);
  assert_sent (FD, text, strlen (text));
  assert_int_equal (only_report ()->flags, WEFT_REPORT_ORPHAN | WEFT_REPORT_PRIVATE);
  assert_true (only_report ()->request == trace.request);
}

static void test_private_carrier (void **state)
{
  private_line (OWN ("b3: 1\r\n"), 24);
  private_line (OWN ("X-Datadog-Trace-Id: 1\r\n"), 40);
  private_line (GET, SIZE_MAX);
  private_line (OWN ("traceparent: " TP "\r\n"), SIZE_MAX);
}

/* ---- limits -------------------------------------------------------------- */
static void test_head_limits (void **state)
{
  static char text[16384];
  for (int fields = 64; fields <= 65; fields++) {
    size_t at;
    int n = snprintf (text, sizeof text, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < fields; i++)
      n += snprintf (text + n, sizeof text - (size_t) n, "A%d: b\r\n", i);
    snprintf (text + n, sizeof text - (size_t) n, "\r\n");
    fake_setup (NULL);
    say_and_hear (text);
    if (fields == 65)
      assert_bare (text, WEFT_REASON_HEAD_LIMIT);
    else
      assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
  }
  for (int size = 6144; size <= 6145; size++) {
    size_t at;
    // 16 bytes of request line, "C: " and CRLF around the value.
    snprintf (text, sizeof text, "GET / HTTP/1.1\r\nC: %0*d\r\n\r\n", size - 16 - 5, 0);
    fake_setup (NULL);
    say_and_hear (text);
    if (size == 6145)
      assert_bare (text, WEFT_REASON_HEAD_LIMIT);
    else
      assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
  }
}

static void test_addresses (void **state)
{
  static const struct {
    uint8_t ip[4];
    int allowed;
  } peers[] = {{{127, 9, 9, 9}, 1},  {{10, 1, 2, 3}, 1},    {{172, 16, 0, 1}, 1},  {{172, 31, 0, 1}, 1},
               {{172, 32, 0, 1}, 0}, {{192, 168, 5, 5}, 1}, {{192, 169, 0, 1}, 0}, {{169, 254, 1, 1}, 1},
               {{100, 64, 0, 1}, 0}, {{8, 8, 8, 8}, 0},     {{11, 0, 0, 1}, 0}};
  for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
    for (int any = 0; any < 2; any++) {
      size_t at;
      fake_setup (NULL);
      fake_config.embed_to = any ? WEFT_EMBED_TO_ANY : WEFT_EMBED_TO_PRIVATE;
      fake_connect (FD);
      memcpy (fake[FD].peer_ip, peers[i].ip, 4);
      app_say (FD, GET);
      if (peers[i].allowed || any)
        assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
      else
        assert_bare (GET, WEFT_REASON_ADDRESS);
    }
  }
  weft_address_t v6 = {.family = 6, .ip = {0xfd}};
  assert_true (probe_address_private (&v6));
  v6 = (weft_address_t){.family = 6, .ip = {0xfe, 0xbf}};
  assert_true (probe_address_private (&v6));
  v6 = (weft_address_t){.family = 6, .ip = {[15] = 1}};
  assert_true (probe_address_private (&v6));
  v6 = (weft_address_t){.family = 6, .ip = {0x20, 0x01}};
  assert_false (probe_address_private (&v6));
}

/* Networks that are named stand in place of the private ones. */
static void test_networks (void **state)
{
  static const struct {
    uint8_t ip[4];
    int allowed;
  } peers[] = {
      {{10, 1, 2, 3}, 1}, {{10, 2, 0, 1}, 0}, {{127, 0, 0, 1}, 0}, {{8, 8, 8, 8}, 1}, {{8, 8, 9, 8}, 0}};
  for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
    size_t at;
    fake_setup (NULL);
    fake_config.embed_to = SHM_EMBED_TO_LISTED;
    fake_config.filter.network_count = 2;
    fake_config.filter.networks[0] = (weft_network_t){{[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1}, 112};
    fake_config.filter.networks[1] =
        (weft_network_t){{[10] = 0xff, [11] = 0xff, [12] = 8, [13] = 8, [14] = 8}, 120};
    fake_connect (FD);
    memcpy (fake[FD].peer_ip, peers[i].ip, 4);
    app_say (FD, GET);
    if (peers[i].allowed)
      assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
    else
      assert_bare (GET, WEFT_REASON_ADDRESS);
  }
}

/* ---- exchanges ----------------------------------------------------------- */
static void answer_during_write (int fd)
{
  fake[fd].during_write = NULL;
  app_hear (fd, OK);
}

static void test_answered_inside_the_call (void **state)
{
  probe_trace_t trace;
  fake_connect (FD);
  for (int i = 0; i < 3; i++) {
    fake[FD].sent_size = 0;
    fake[FD].during_write = answer_during_write;
    app_say (FD, GET);
    assert_inserted (GET, strlen (HEAD), &trace);
    assert_int_equal (fake_report_count, i + 1);
    assert_true (fake_reports[i].report.request == trace.request);
    assert_int_equal (fake_reports[i].report.status, 200);
  }
}

/* All requests of one write are marked. */
static void test_pipelined (void **state)
{
  static const char three[] = GET GET "HEAD /h HTTP/1.1\r\n\r\n";
  size_t at;
  fake_connect (FD);
  app_say (FD, three);
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
    assert_int_equal (at, i < 2 ? i * strlen (GET) + strlen (HEAD) : sizeof three - 3);
  }
  assert_sent (FD, three, sizeof three - 1);
  assert_int_equal (fake_report_count, 0);
  app_say (FD, "GET /last HTTP/1.1\r\n\r\n");
  app_hear (FD, OK OK
            "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
  assert_int_equal (fake_report_count, 4);
  assert_string_equal (fake_reports[0].name, "GET /a");
  assert_int_equal (fake_reports[0].report.status, 200);
  assert_string_equal (fake_reports[3].name, "GET /last");
  assert_int_equal (fake_reports[3].report.status, 404);
  assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), 4);
}

static void test_too_many_in_flight (void **state)
{
  fake_connect (FD);
  for (int i = 0; i < PROBE_EXCHANGES_MAX + 1; i++)
    app_say (FD, GET);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_OTHER), 1);
  assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), PROBE_EXCHANGES_MAX);
  // All that was open is told, as open.
  assert_int_equal (fake_report_count, PROBE_EXCHANGES_MAX + 1);
  assert_int_equal (fake_reports[1].report.error, WEFT_ERROR_OPEN);
  assert_int_equal (fake_reports[1].report.flags & WEFT_REPORT_OPEN, WEFT_REPORT_OPEN);
}

static void test_expect_continue (void **state)
{
  probe_trace_t trace;
  const char *head = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n";
  char text[128];
  fake_connect (FD);
  app_say (FD, head);
  app_say (FD, "\r\n");
  app_hear (FD, "HTTP/1.1 100 Continue\r\n\r\n");
  assert_int_equal (fake_report_count, 0);
  app_say (FD, "abc");
  app_hear (FD, OK);
  snprintf (text, sizeof text, "%s\r\nabc", head);
  assert_inserted (text, strlen (head), &trace);
  assert_int_equal (only_report ()->status, 200);
}

static void test_chunked (void **state)
{
  probe_trace_t trace;
  const char *head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n";
  char text[256];
  fake_connect (FD);
  app_say (FD, head);
  app_say (FD, "\r\n12\r\nGET / HTTP/1.1\r\n\r\n\r\n");
  app_say (FD, "0\r\nX: y\r\n\r\n");
  app_hear (FD, "HTTP/1.1 201 C\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n");
  snprintf (text, sizeof text, "%s\r\n12\r\nGET / HTTP/1.1\r\n\r\n\r\n0\r\nX: y\r\n\r\n", head);
  assert_inserted (text, strlen (head), &trace);
  assert_int_equal (only_report ()->status, 201);
}

static void test_tunnels (void **state)
{
  fake_connect (FD);
  app_say (FD, "CONNECT h:443 HTTP/1.1\r\n\r\n");
  app_hear (FD, "HTTP/1.1 200 OK\r\n\r\n\x16\x03");
  app_say (FD, GET);
  assert_sent (FD, "CONNECT h:443 HTTP/1.1\r\n\r\n" GET, 26 + strlen (GET));
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_TUNNEL), 1);
  assert_int_equal (fake_report_count, 0);
  fake_setup (NULL);
  fake_connect (FD);
  app_say (FD, "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n");
  app_hear (FD, "HTTP/1.1 101 Switching\r\n\r\n");
  fake[FD].sent_size = 0;
  app_say (FD, GET);
  assert_sent (FD, GET, strlen (GET));
  assert_int_equal (only_report ()->status, 101);
  assert_int_equal (only_report ()->error, WEFT_ERROR_NONE);
}

/* Docker's attach: a plain answer without an end, then raw bytes both ways. */
static void test_hijacked (void **state)
{
  probe_trace_t trace;
  fake_connect (FD);
  app_say (FD, GET);
  assert_inserted (GET, strlen (HEAD), &trace);
  fake[FD].sent_size = 0;
  app_hear (FD, "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n");
  app_say (FD, GET);
  app_hear (FD, "echo");
  app_say (FD, GET);
  assert_sent (FD, GET GET, 2 * strlen (GET));
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_TUNNEL), 1);
}

static void test_until_close (void **state)
{
  say_and_hear (GET);
  fake_report_count = 0;
  app_say (FD, GET);
  app_hear (FD, "HTTP/1.0 200 OK\r\n\r\nabc");
  assert_int_equal (fake_report_count, 0);
  app_end_of_stream (FD);
  assert_int_equal (only_report ()->error, WEFT_ERROR_NONE);
  assert_int_equal (only_report ()->status, 200);
}

static void test_broken_answers (void **state)
{
  fake_connect (FD);
  app_say (FD, GET);
  app_hear (FD, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi");
  app_end_of_stream (FD);
  assert_int_equal (only_report ()->error, WEFT_ERROR_CLOSED);
  assert_int_equal (only_report ()->status, 200);
  fake_setup (NULL);
  fake_connect (FD);
  app_say (FD, GET);
  probe_connection_closing (FD);
  assert_int_equal (only_report ()->error, WEFT_ERROR_CLOSED);
  assert_int_equal (only_report ()->status, 0);
  probe_connection_closing (FD);
  fake_setup (NULL);
  fake_connect (FD);
  app_say (FD, GET);
  probe_read_t read;
  char byte;
  struct iovec iov = {&byte, 1};
  assert_int_equal (probe_connection_before_read (FD, &read), 1);
  errno = ECONNRESET;
  probe_connection_after_read (FD, &read, &iov, 1, -1);
  assert_int_equal (errno, ECONNRESET);
  assert_int_equal (only_report ()->error, WEFT_ERROR_RESET);
}

static void test_unasked_answer (void **state)
{
  fake_connect (FD);
  app_hear (FD, "220 ready\r\n");
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_OTHER), 1);
  app_say (FD, GET);
  assert_sent (FD, GET, strlen (GET));
}

/* ---- the kernel disagrees ------------------------------------------------ */
static void test_disproof (void **state)
{
  fake_connect (FD);
  fake[FD].written++; // somebody wrote past us
  app_say (FD, GET);
  assert_bare (GET, WEFT_REASON_UNPROVEN);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_PROOF), 1);
  app_say (FD, GET);
  assert_sent (FD, GET GET, 2 * strlen (GET));
  fake_setup (NULL);
  fake_connect (FD);
  for (int i = 0; i < PROBE_PROOF_EVERY + 2; i++) {
    app_say (FD, GET);
    if (i == 3)
      fake[FD].read++; // somebody read past us
    app_hear (FD, OK);
  }
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_PROOF), 1);
  assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), PROBE_PROOF_EVERY);
}

static void test_file_in_disguise (void **state)
{
  fake_connect (FD);
  app_say (FD, GET);
  app_hear (FD, OK);
  fake[FD].sent_size = 0;
  fake[FD].not_a_socket = 1; // closed and reused unseen
  app_say (FD, GET);
  assert_sent (FD, GET, strlen (GET));
  app_say (FD, GET);
  assert_sent (FD, GET GET, 2 * strlen (GET));
}

static void test_cut_and_gone (void **state)
{
  fake_connect (FD);
  fake[FD].nonblocking = 1;
  fake[FD].accept = strlen (HEAD) + 10;
  assert_int_equal (app_write (FD, GET, strlen (GET)), strlen (HEAD));
  assert_int_equal (probe_connections_pending (), 1);
  // Two names for it: nothing is inserted any more, but what was begun is finished (C4).
  probe_connection_shared (FD);
  fake[FD].accept = 0;
  app_say (FD, "\r\n");
  probe_trace_t trace;
  assert_inserted (GET, strlen (HEAD), &trace);
  assert_int_equal (probe_connections_pending (), 0);
  fake_setup (NULL);
  fake_connect (FD);
  fake[FD].nonblocking = 1;
  fake[FD].accept = strlen (HEAD) + 10;
  assert_int_equal (app_write (FD, GET, strlen (GET)), strlen (HEAD));
  fake[FD].accept = 0;
  probe_actions = 0;
  probe_connections_flush ();
  assert_int_equal (probe_connections_pending (), 0);
  app_say (FD, "\r\n");
  assert_inserted (GET, strlen (HEAD), &trace);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, fake_setup)
  const struct CMUnitTest tests[] = {
      TEST (test_insert),
      TEST (test_orphan),
      TEST (test_told_nothing),
      TEST (test_unmatched),
      TEST (test_short_writes),
      TEST (test_split_calls),
      TEST (test_one_byte_calls),
      TEST (test_refused_and_changed),
      TEST (test_never_sent),
      TEST (test_keep_alive),
      TEST (test_adopted),
      TEST (test_invalid_ones),
      TEST (test_private_carrier),
      TEST (test_head_limits),
      TEST (test_addresses),
      TEST (test_networks),
      TEST (test_answered_inside_the_call),
      TEST (test_pipelined),
      TEST (test_too_many_in_flight),
      TEST (test_expect_continue),
      TEST (test_chunked),
      TEST (test_tunnels),
      TEST (test_hijacked),
      TEST (test_until_close),
      TEST (test_broken_answers),
      TEST (test_unasked_answer),
      TEST (test_disproof),
      TEST (test_file_in_disguise),
      TEST (test_cut_and_gone),
  };
  return cmocka_run_group_tests (tests, NULL, fake_teardown);
}
