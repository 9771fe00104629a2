/* SPDX-License-Identifier: Apache-2.0 */
/* What a gateway forwards: its own subtask's request, under an id of its own. */
#include "../../../support/fake_kernel.h"

#define FD          7
#define OWN(fields) "GET /a HTTP/1.1\r\n" fields "\r\n"
#define OK          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
#define TP          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static const uint8_t theirs[16] = {0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd,
                                   0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c};
#define THEIR_REQUEST 0xb7ad6b7169203331ull

static const weft_report_t *only_report (void)
{
  assert_int_equal (fake_report_count, 1);
  return &fake_reports[0].report;
}

/* A gateway: the header that it received goes out again as it came. */
static void forward (const char *text, size_t digits, size_t accept, uint32_t flags)
{
  char expected[256];
  fake_setup (NULL);
  probe_handle_t handle = probe_context_receive (theirs, 77, THEIR_REQUEST);
  probe_context_event_loop (); // whoever sends it: the ids say whose it is
  fake_connect (FD);
  fake[FD].accept = accept;
  fake[FD].nonblocking = 1;
  app_say (FD, text);
  app_hear (FD, OK);
  const weft_report_t *report = only_report ();
  assert_memory_equal (report->task, theirs, 16);
  assert_true (report->request != THEIR_REQUEST && report->subtask == 77);
  assert_int_equal (report->flags, flags);
  snprintf (expected, sizeof expected, "%s", text);
  weft_hex_put_u64 (expected + digits, report->request);
  assert_sent (FD, expected, strlen (text));
  probe_context_close (handle);
}

static void test_forwarded (void **state)
{
  const char *own = OWN ("Accept: x\r\ntraceparent: " TP "\r\nUser-Agent: y\r\n");
  size_t digits = (size_t) (strstr (own, "b7ad") - own);
  for (size_t accept = 0; accept < strlen (own); accept++) {
    // Digits that left before the blank line was seen cannot be changed any more.
    forward (own, digits, accept, 0);
  }
  const char *private = OWN ("weft-task: 0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331\r\n");
  forward (private, (size_t) (strstr (private, "b7ad") - private), 0, WEFT_REPORT_PRIVATE);
}

static void test_forwarded_too_late (void **state)
{
  probe_handle_t handle = probe_context_receive (theirs, 77, THEIR_REQUEST);
  fake_connect (FD);
  app_say (FD, "GET / HTTP/1.1\r\ntraceparent: " TP "\r\n");
  app_say (FD, "\r\n");
  app_hear (FD, OK);
  assert_sent (FD, "GET / HTTP/1.1\r\ntraceparent: " TP "\r\n\r\n", 88);
  assert_true (only_report ()->request == THEIR_REQUEST);
  assert_int_equal (only_report ()->flags, WEFT_REPORT_ADOPTED | WEFT_REPORT_FORWARDED);
  assert_true (only_report ()->subtask == 77);
  probe_context_close (handle);
}

/* Nothing is altered on the way to this peer, so the id stays theirs, and the report says so. An id
 * that nobody came with is the application's own. */
static void test_forwarded_where_nothing_may_be_touched (void **state)
{
  for (int received = 0; received < 2; received++) {
    fake_setup (NULL);
    probe_handle_t handle = received ? probe_context_receive (theirs, 77, THEIR_REQUEST) : 0;
    fake_connect (FD);
    memset (fake[FD].peer_ip, 8, 4); // 8.8.8.8
    app_say (FD, OWN ("traceparent: " TP "\r\n"));
    app_hear (FD, OK);
    assert_sent (FD, OWN ("traceparent: " TP "\r\n"), strlen (OWN ("traceparent: " TP "\r\n")));
    assert_true (only_report ()->request == THEIR_REQUEST);
    assert_int_equal (only_report ()->flags & (WEFT_REPORT_ADOPTED | WEFT_REPORT_FORWARDED),
                      WEFT_REPORT_ADOPTED | (received ? WEFT_REPORT_FORWARDED : 0));
    probe_context_close (handle);
  }
}

/* The same request captured twice, both still open: which of them forwards is not known. */
static void test_forwarded_by_one_of_two (void **state)
{
  fake_connect (FD);
  probe_handle_t a = probe_context_receive (theirs, 77, THEIR_REQUEST);
  probe_handle_t b = probe_context_receive (theirs, 78, THEIR_REQUEST);
  app_say (FD, "GET / HTTP/1.1\r\ntraceparent: " TP "\r\n\r\n");
  app_hear (FD, OK);
  assert_true (only_report ()->request != THEIR_REQUEST && only_report ()->subtask == 0);
  assert_true (only_report ()->flags & WEFT_REPORT_ORPHAN);
  assert_memory_equal (only_report ()->task, theirs, 16);
  probe_context_close (a);
  probe_context_close (b);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, fake_setup)
  const struct CMUnitTest tests[] = {
      TEST (test_forwarded),
      TEST (test_forwarded_too_late),
      TEST (test_forwarded_where_nothing_may_be_touched),
      TEST (test_forwarded_by_one_of_two),
  };
  return cmocka_run_group_tests (tests, NULL, fake_teardown);
}
