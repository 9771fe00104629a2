/* SPDX-License-Identifier: Apache-2.0 */
/* What comes along with a task id, tracestate and flags, goes on with it: into
 * the requests that this very subtask sends, beside our traceparent. */
#include "../../../support/fake_kernel.h"

#define BACK    9 /* the request comes in here */
#define FD      7 /* and calls here */
#define IDS     "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
#define TP      "traceparent: 00-" IDS "-01\r\n"
#define IN(...) "GET /in HTTP/1.1\r\n" __VA_ARGS__ "\r\n"
#define HEAD    "GET /out HTTP/1.1\r\nHost: x\r\n"
#define GET     HEAD "\r\n"
#define OK      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

/* Receives one request, in pieces of `piece` bytes, and sends another for it. */
static void relay (const char *in, size_t piece, const char *out)
{
  fake_setup (NULL);
  fake_rule (1, "");
  fake_accept (BACK);
  fake_connect (FD);
  app_hear_by (BACK, in, piece);
  app_say (FD, out);
}

static void assert_state (const char *in, const char *expected)
{
  for (size_t piece = 1; piece < 40; piece += 6) {
    size_t at;
    relay (in, piece, GET);
    const char *got = cut_line (FD, "tracestate: ", &at);
    if (strcmp (got, expected) != 0)
      fail_msg ("for '%s' by %zu: '%s', not '%s'", in, piece, got, expected);
    if (*expected)
      assert_int_equal (at, strlen (HEAD) + 70); // behind the traceparent
    const char *own = cut_line (FD, "traceparent: ", &at);
    assert_int_equal (strlen (own), PROBE_TRACEPARENT_SIZE);
    assert_memory_equal (own + 3, IDS, 32);
    assert_memory_not_equal (own + 36, &IDS[33], 16);
    assert_sent (FD, GET, strlen (GET));
  }
}

static void test_inherited (void **state)
{
  assert_state (IN (TP "tracestate: foo=1,bar=2\r\n"), "foo=1,bar=2");
  assert_state (IN ("TraceState:foo=1 , bar=2\t\r\n" TP), "foo=1,bar=2");
  assert_state (IN ("tracestate: foo=1\r\nHost: x\r\n" TP "TRACESTATE: bar=2\r\ntracestate:\r\n"),
                "foo=1,bar=2");
  assert_state (IN (TP), "");
  assert_state (IN (TP "tracestate: \r\n"), "");
}

static void test_dropped_alone (void **state)
{
  assert_state (IN (TP "tracestate: foo\r\n"), "");
  assert_state (IN (TP "tracestate: foo=1\r\n  ,bar=2\r\n"), ""); // folded: not what it seems
  assert_state (IN (TP "tracestate : foo=1\r\n"), "");
  assert_state (IN (TP "trace-state: foo=1\r\nxtracestate: foo=1\r\n"), "");
}

/* Of no task that goes on: nothing to go with it. */
static void test_not_of_this_task (void **state)
{
  static const char *const texts[] = {
      IN ("tracestate: foo=1\r\n"), IN ("traceparent: 00-nonsense\r\ntracestate: foo=1\r\n"),
      IN (TP TP "tracestate: foo=1\r\n"),
      IN ("weft-task: 0af7651916cd43dd8448eb211c803199-b7ad6b7169203331\r\n" TP "tracestate: foo=1\r\n")};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    size_t at;
    relay (texts[i], SIZE_MAX, GET);
    assert_string_equal (cut_line (FD, "tracestate: ", &at), "");
    const char *own = cut_line (FD, "traceparent: ", &at);
    assert_int_equal (strlen (own), PROBE_TRACEPARENT_SIZE);
    assert_memory_not_equal (own + 3, IDS, 32);
  }
}

/* Requests on one connection: each has its own, or none. */
static void test_next_request_on_the_connection (void **state)
{
  static const struct {
    const char *in, *expected;
  } turns[] = {{IN (TP "tracestate: foo=1,bar=2,baz=3\r\n"), "foo=1,bar=2,baz=3"},
               {IN (TP), ""},
               {IN (TP "tracestate: x=y\r\n"), "x=y"},
               {IN (TP "tracestate: bad\r\n"), ""},
               {IN (TP "tracestate: z=1\r\n"), "z=1"}};
  fake_accept (BACK);
  fake_connect (FD);
  for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
    size_t at;
    app_hear (BACK, turns[i].in);
    app_say (FD, GET);
    assert_string_equal (cut_line (FD, "tracestate: ", &at), turns[i].expected);
    app_hear (FD, OK);
    app_say (BACK, OK);
  }
}

static void test_flags (void **state)
{
  for (unsigned flags = 0; flags < 256; flags++) {
    char in[160], expected[4];
    size_t at;
    snprintf (in, sizeof in, IN ("traceparent: 00-" IDS "-%02x\r\n"), flags);
    snprintf (expected, sizeof expected, "-0%u", 1 | (flags & 2));
    relay (in, SIZE_MAX, GET);
    assert_string_equal (cut_line (FD, "traceparent: ", &at) + 52, expected);
  }
}

/* An application that sends one of its own knows better. */
static void test_left_to_the_application (void **state)
{
  const char *own = "GET /out HTTP/1.1\r\ntracestate: own=1\r\n\r\n";
  size_t at;
  relay (IN (TP "tracestate: foo=1\r\n"), SIZE_MAX, own);
  assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
  assert_sent (FD, own, strlen (own));
  relay (IN (TP "tracestate: foo=1\r\n"), SIZE_MAX, IN (TP));
  assert_string_equal (cut_line (FD, "tracestate: ", &at), "");
}

static void test_private_carrier_takes_none (void **state)
{
  size_t at;
  relay (IN (TP "tracestate: foo=1\r\n"), SIZE_MAX, "GET /out HTTP/1.1\r\nb3: 1\r\n\r\n");
  assert_string_equal (cut_line (FD, "tracestate: ", &at), "");
  assert_int_equal (strlen (cut_line (FD, "weft-task: ", &at)), PROBE_WEFT_TASK_SIZE);
}

/* The limits of a head hold with it: 64 fields, 6 KiB. */
static void test_head_limits (void **state)
{
  static char out[8192];
  const char *in = IN (TP "tracestate: a=1,b=2\r\n");
  size_t at;
  for (int fields = 62; fields <= 64; fields++) {
    int n = snprintf (out, sizeof out, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < fields; i++)
      n += snprintf (out + n, sizeof out - (size_t) n, "A%d: b\r\n", i);
    snprintf (out + n, sizeof out - (size_t) n, "\r\n");
    relay (in, SIZE_MAX, out);
    assert_string_equal (cut_line (FD, "tracestate: ", &at), fields <= 62 ? "a=1,b=2" : "");
    assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
  }
  // Request line and blank line are 16 and 2 bytes, ours 70; "tracestate: a=1,b=2" and CRLF are 21.
  for (int room = 15; room <= 22; room++) {
    int filler = 6144 - room - 70 - 16 - 2 - 5;
    snprintf (out, sizeof out, "GET / HTTP/1.1\r\nC: %0*d\r\n\r\n", filler, 0);
    relay (in, SIZE_MAX, out);
    assert_true (fake[FD].sent_size <= 6144);
    assert_string_equal (cut_line (FD, "tracestate: ", &at), room >= 21   ? "a=1,b=2"
                                                             : room >= 17 ? "a=1"
                                                                          : "");
    assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
  }
}

/* Both lines whole or not at all, whatever the kernel takes at once. */
static void test_short_writes (void **state)
{
  static char in[1024];
  snprintf (in, sizeof in, IN (TP "tracestate: k=%0256d,l=%0241d\r\n"), 1, 2);
  for (size_t accept = 1; accept < strlen (GET) + 620; accept += 3) {
    char expected[600];
    size_t at;
    fake_setup (NULL);
    fake_accept (BACK);
    fake_connect (FD);
    fake[FD].accept = accept;
    fake[FD].nonblocking = (int) (accept & 1);
    app_hear (BACK, in);
    app_say (FD, GET);
    assert_int_equal (probe_connections_pending (), 0);
    snprintf (expected, sizeof expected, "\r\ntracestate: k=%0256d,l=%0241d\r\n\r\n", 1, 2);
    assert_non_null (memmem (fake[FD].sent, fake[FD].sent_size, expected, strlen (expected)));
    cut_line (FD, "tracestate: ", &at);
    assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), PROBE_TRACEPARENT_SIZE);
    assert_sent (FD, GET, strlen (GET));
  }
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, fake_setup)
  const struct CMUnitTest tests[] = {
      TEST (test_inherited),
      TEST (test_dropped_alone),
      TEST (test_not_of_this_task),
      TEST (test_next_request_on_the_connection),
      TEST (test_flags),
      TEST (test_left_to_the_application),
      TEST (test_head_limits),
      TEST (test_private_carrier_takes_none),
      TEST (test_short_writes),
  };
  return cmocka_run_group_tests (tests, NULL, fake_teardown);
}
