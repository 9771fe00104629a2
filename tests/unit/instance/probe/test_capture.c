/* SPDX-License-Identifier: Apache-2.0 */
/* The server side: which subtask a request begins, when it ends, and which
 * thread works for it meanwhile. */
#include "../../../support/fake_kernel.h"

#define FD   9
#define BACK 10
#define TP   "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
#define GET  "GET /a?q=1 HTTP/1.1\r\nHost: x\r\n"
#define OK   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

static const uint8_t theirs[16] = {0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd,
                                   0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c};
#define THEIR_REQUEST 0xb7ad6b7169203331ull

static const weft_report_t *report (unsigned n)
{
  assert_true (n < fake_report_count);
  return &fake_reports[n].report;
}
static const weft_report_t *only_report (void)
{
  assert_int_equal (fake_report_count, 1);
  return report (0);
}

static int context (probe_context_t *ret_context)
{
  weft_reason_t reason;
  return probe_context_current (ret_context, &reason);
}

static void test_capture (void **state)
{
  probe_context_t now;
  fake_accept (FD);
  assert_int_equal (context (&now), 0);
  app_hear (FD, GET TP "\r\n");
  assert_int_equal (context (&now), 1);
  assert_memory_equal (now.task, theirs, 16);
  assert_int_equal (fake_report_count, 0);
  app_say (FD, OK);
  assert_sent (FD, OK, strlen (OK)); // answers are never touched
  const weft_report_t *r = only_report ();
  assert_int_equal (r->kind, WEFT_REPORT_CAPTURE);
  assert_memory_equal (r->task, theirs, 16);
  assert_true (r->request == THEIR_REQUEST);
  assert_true (r->subtask == now.subtask && r->subtask != 0);
  assert_int_equal (r->flags, 0);
  assert_int_equal (r->instruction, 0);
  assert_int_equal (r->status, 200);
  assert_int_equal (r->error, WEFT_ERROR_NONE);
  assert_true (r->start_ns > 0 && r->start_ns <= r->end_ns);
  assert_true (r->cpu_ns != WEFT_NS_NONE);
  assert_string_equal (fake_reports[0].name, "GET /a");
  assert_int_equal (context (&now), 0);
  assert_int_equal (fake_counter (SHM_COUNT_REQUESTS_IN), 1);
  assert_int_equal (fake_counter (SHM_COUNT_CAPTURED), 1);
}

static void test_private_wins (void **state)
{
  fake_accept (FD);
  app_hear (FD, GET TP "Weft-Task: 0000000000000000000000000000000a-000000000000000b\r\n\r\n");
  app_say (FD, OK);
  assert_true (only_report ()->request == 0xb);
  assert_int_equal (only_report ()->task[15], 0xa);
  assert_int_equal (only_report ()->flags, WEFT_REPORT_PRIVATE);
}

static void test_pieces (void **state)
{
  fake_accept (FD);
  for (int i = 0; i < 50; i++) {
    app_hear_by (FD, GET TP "Content-Length: 20\r\n\r\nGET / HTTP/1.1\r\n\r\nab", 1 + (size_t) i);
    fake[FD].accept = (size_t) i % 7;
    app_say (FD, OK);
    assert_int_equal (fake_report_count, i + 1);
    assert_int_equal (report ((unsigned) i)->status, 200);
  }
  assert_int_equal (fake_counter (SHM_COUNT_REQUESTS_IN), 50);
}

static void test_root (void **state)
{
  probe_context_t now;
  fake_rule (3, "POST /a");
  fake_rule (4, "GET /a");
  fake_accept (FD);
  app_hear (FD, GET "\r\n");
  assert_int_equal (context (&now), 1);
  assert_true (now.subtask != 0);
  app_say (FD, OK);
  const weft_report_t *r = only_report ();
  assert_int_equal (r->flags, WEFT_REPORT_ROOT);
  assert_int_equal (r->instruction, 4);
  assert_true (r->request == 0 && r->subtask == now.subtask);
  assert_memory_equal (r->task, now.task, 16);
  assert_int_equal (fake_counter (SHM_COUNT_ROOTS), 1);
  // No rule: known, and nothing to embed for it.
  app_hear (FD, "GET /b HTTP/1.1\r\n\r\n");
  assert_int_equal (context (&now), 1);
  assert_true (now.subtask == 0);
  app_say (FD, OK);
  assert_int_equal (fake_report_count, 1);
  assert_int_equal (fake_counter (SHM_COUNT_UNMATCHED), 1);
  // With a context, the rule says only which instruction it would be for.
  app_hear (FD, GET TP "\r\n");
  app_say (FD, OK);
  assert_int_equal (report (1)->instruction, 4);
  assert_int_equal (report (1)->flags, 0);
  // Two contexts: the task begins anew.
  app_hear (FD, GET TP TP "\r\n");
  app_say (FD, OK);
  assert_int_equal (report (2)->flags, WEFT_REPORT_ROOT);
}

static void test_actions (void **state)
{
  fake_rule (1, "");
  probe_actions = WEFT_ACTION_EMBED; // starts no task, captures none
  fake_accept (FD);
  app_hear (FD, GET "\r\n");
  app_say (FD, OK);
  probe_context_t now;
  app_hear (FD, GET TP "\r\n");
  assert_int_equal (context (&now), 1); // but knows for whom it works
  assert_true (now.subtask != 0);
  app_say (FD, OK);
  assert_int_equal (fake_report_count, 0);
  probe_actions = WEFT_ACTION_ROOT; // a root is told even without capture
  app_hear (FD, GET "\r\n");
  app_say (FD, OK);
  app_hear (FD, GET TP "\r\n");
  app_say (FD, OK);
  assert_int_equal (only_report ()->flags, WEFT_REPORT_ROOT);
}

static void test_caps (void **state)
{
  fake_rule (1, "");
  fake_config.rules[0].max_roots = 3;
  fake_accept (FD);
  for (int i = 0; i < 5; i++) {
    app_hear (FD, GET "\r\n");
    app_say (FD, OK);
  }
  assert_int_equal (fake_report_count, 3);
  assert_int_equal (fake_counter (SHM_COUNT_UNMATCHED), 2);
  assert_true (fake_config.roots_taken[0] == 3);
}

static void test_sample (void **state)
{
  fake_rule (1, "");
  fake_config.rules[0].sample_num = 1;
  fake_config.rules[0].sample_den = 4;
  fake_accept (FD);
  for (int i = 0; i < 2000; i++) {
    app_hear (FD, GET "\r\n");
    app_say (FD, OK);
  }
  // Binomial, 500 expected, sigma 19: eight of them either way.
  assert_in_range (fake_report_count, 345, 655);
  // A task is sampled here as it was at its root: no other one carries the number.
  for (unsigned i = 0, roots = fake_report_count; i < roots; i++) {
    char text[256], hex[33] = "";
    weft_hex_put (hex, report (i)->task, 16);
    snprintf (text, sizeof text, "GET /a HTTP/1.1\r\ntraceparent: 00-%s-00000000000000aa-01\r\n\r\n", hex);
    app_hear (FD, text);
    app_say (FD, OK);
    assert_int_equal (report (fake_report_count - 1)->instruction, 1);
  }
}

static void test_other_thread_answers (void **state)
{
  fake_accept (FD);
  app_hear (FD, GET TP "\r\n");
  fake_tid = 200;
  app_say (FD, OK);
  assert_int_equal (only_report ()->tid, 100);
  assert_true (only_report ()->cpu_ns == WEFT_NS_NONE);
}

static void test_calls_back (void **state)
{
  size_t at;
  fake_accept (FD);
  app_hear (FD, GET TP "\r\n");
  fake_connect (BACK);
  app_say (BACK, GET "\r\n");
  app_hear (BACK, OK);
  app_say (FD, OK);
  assert_int_equal (fake_report_count, 2);
  const weft_report_t *embed = report (0), *capture = report (1);
  assert_int_equal (embed->kind, WEFT_REPORT_EMBED);
  assert_memory_equal (embed->task, theirs, 16);
  assert_true (embed->subtask == capture->subtask);
  assert_true (embed->request != THEIR_REQUEST);
  const char *value = cut_line (BACK, "traceparent: ", &at);
  assert_memory_equal (value + 3, "0af7651916cd43dd8448eb211c80319c", 32);
}

/* A thread that has left one request to others and reads another one, on a
 * connection that is not understood, works for nobody that we know. */
static void test_unfollowed_request (void **state)
{
  probe_context_t now;
  for (int i = 0; i < 2; i++) {
    fake_setup (NULL);
    fake_accept (FD);
    app_hear (FD, GET TP "\r\n");
    assert_int_equal (context (&now), 1);
    if (i) {
      fake_accept (BACK);
      app_hear (BACK, "\x16\x03\x01 not HTTP/1");
      assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_OTHER), 1);
      assert_int_equal (context (&now), 0);
    } else {
      fake_socket (BACK); // from before the attach
      fake[BACK].read = 1000;
    }
    app_hear (BACK, GET TP "\r\n");
    assert_int_equal (context (&now), 0);
    app_say (FD, OK);
    app_hear (FD, GET TP "\r\n");
    assert_int_equal (context (&now), 1);
    app_say (FD, OK);
  }
}

static void test_pipelined (void **state)
{
  probe_context_t now;
  fake_accept (FD);
  app_hear (FD, GET TP "\r\nHEAD /two HTTP/1.1\r\n" TP "\r\nGET /three HTTP/1.1\r\n" TP "\r\n");
  assert_int_equal (context (&now), 0); // several are open
  app_say (FD,
           "HTTP/1.1 201 C\r\nContent-Length: 0\r\n\r\nHTTP/1.1 202 A\r\nContent-Length: 99\r\n\r\nHTTP/1.1");
  assert_int_equal (fake_report_count, 2);
  assert_int_equal (context (&now), 0); // it waited: any thread may be the one that takes it up
  app_say (FD, " 203 N\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  assert_int_equal (report (0)->status, 201);
  assert_int_equal (report (1)->status, 202);
  assert_string_equal (fake_reports[1].name, "HEAD /two");
  assert_int_equal (report (2)->status, 203);
  assert_string_equal (fake_reports[2].name, "GET /three");
}

static void test_ends (void **state)
{
  probe_context_t now;
  fake_accept (FD);
  app_hear (FD, GET TP "\r\n");
  app_say (FD, "HTTP/1.1 200 OK\r\n\r\nuntil the end");
  assert_int_equal (fake_report_count, 0);
  probe_connection_shutdown (FD, SHUT_RD);
  assert_int_equal (fake_report_count, 0);
  probe_connection_shutdown (FD, SHUT_WR);
  assert_int_equal (only_report ()->error, WEFT_ERROR_NONE);
  assert_int_equal (only_report ()->status, 200);
  probe_connection_closing (FD);
  fake_setup (NULL);
  fake_accept (FD);
  app_hear (FD, GET TP "\r\n");
  app_say (FD, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
  app_end_of_stream (FD); // the client has gone; nothing is told before the close
  assert_int_equal (fake_report_count, 0);
  probe_connection_closing (FD);
  assert_int_equal (only_report ()->error, WEFT_ERROR_CLOSED);
  assert_int_equal (context (&now), 0);
  fake_setup (NULL);
  fake_accept (FD);
  app_hear (FD, GET TP "\r\n");
  probe_actions = 0;
  probe_connections_flush ();
  assert_int_equal (only_report ()->error, WEFT_ERROR_OPEN);
  assert_int_equal (only_report ()->flags, WEFT_REPORT_OPEN);
  assert_int_equal (context (&now), 0);
}

static void test_sendfile (void **state)
{
  fake_accept (FD);
  app_hear (FD, GET TP "\r\n");
  app_say (FD, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
  probe_connection_sent_opaque (FD, 60);
  assert_int_equal (fake_report_count, 0);
  probe_connection_sent_opaque (FD, 40);
  assert_int_equal (only_report ()->status, 200);
  app_hear (FD, GET TP "\r\n");
  probe_connection_sent_opaque (FD, 1); // a head that nobody looked at
  assert_int_equal (report (1)->error, WEFT_ERROR_OPEN);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_FRAMING), 1);
}

static void test_interim_and_upgrade (void **state)
{
  fake_accept (FD);
  app_hear (FD, "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n" TP "\r\n");
  app_say (FD, "HTTP/1.1 100 Continue\r\n\r\n");
  assert_int_equal (fake_report_count, 0);
  app_hear (FD, "x");
  app_say (FD, OK);
  assert_int_equal (only_report ()->status, 200);
  app_hear (FD, "GET /ws HTTP/1.1\r\nUpgrade: x\r\n" TP "\r\n");
  app_say (FD, "HTTP/1.1 101 S\r\n\r\n");
  assert_int_equal (report (1)->status, 101);
  assert_int_equal (report (1)->error, WEFT_ERROR_NONE);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_TUNNEL), 1);
  probe_context_t now;
  assert_int_equal (context (&now), 0);
  app_hear (FD, GET TP "\r\n");
  assert_int_equal (fake_counter (SHM_COUNT_REQUESTS_IN), 2);
}

static void test_framing_lost (void **state)
{
  probe_context_t now;
  fake_accept (FD);
  app_hear (FD, GET TP "\r\n");
  app_say (FD, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n");
  assert_int_equal (only_report ()->error, WEFT_ERROR_OPEN);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_FRAMING), 1);
  assert_int_equal (context (&now), 0); // nobody would end it: unknown from here on
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, fake_setup)
  const struct CMUnitTest tests[] = {
      TEST (test_unfollowed_request),
      TEST (test_capture),
      TEST (test_private_wins),
      TEST (test_pieces),
      TEST (test_root),
      TEST (test_actions),
      TEST (test_caps),
      TEST (test_sample),
      TEST (test_other_thread_answers),
      TEST (test_calls_back),
      TEST (test_pipelined),
      TEST (test_ends),
      TEST (test_sendfile),
      TEST (test_framing_lost),
      TEST (test_interim_and_upgrade),
  };
  return cmocka_run_group_tests (tests, NULL, fake_teardown);
}
