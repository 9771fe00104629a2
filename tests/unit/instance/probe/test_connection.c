/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: birth, reuse of numbers, streams from before the attach, two
 * threads, the end of an activation. */
#include <pthread.h>

#include "../../../support/fake_kernel.h"

#define FD   7
#define HEAD "GET /a HTTP/1.1\r\nHost: x\r\n"
#define GET  HEAD "\r\n"
#define TP   "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
#define OK   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

/* 1: what was sent at fd since the last look carries a line of ours. */
static int carries (int fd)
{
  size_t at;
  int found = *cut_line (fd, "traceparent: ", &at) != 0;
  fake[fd].sent_size = 0;
  return found;
}

static void exchange (int fd)
{
  app_say (fd, GET);
  app_hear (fd, OK);
}

/* A stream that the probe has not seen from its birth. */
static void fake_old (int fd)
{
  fake_socket (fd);
  fake[fd].written = 123457;
  fake[fd].read = 7654321;
}

/* ---- from before the attach ---------------------------------------------- */
static void test_old_client (void **state)
{
  fake_old (FD);
  exchange (FD);
  assert_false (carries (FD));
  assert_int_equal (fake_report_count, 1);
  assert_int_equal (fake_reports[0].report.kind, WEFT_REPORT_BARE);
  assert_int_equal (fake_reports[0].report.reason, WEFT_REASON_UNPROVEN);
  assert_int_equal (fake_counter (SHM_COUNT_UNPROVEN), 1);
  exchange (FD); // one whole exchange in lockstep was enough
  assert_true (carries (FD));
  assert_int_equal (fake_report_count, 2);
  assert_int_equal (fake_reports[1].report.kind, WEFT_REPORT_EMBED);
}

/* The address may be somebody else's afterwards. */
static void test_the_end_of_a_bare_connection (void **state)
{
  fake_old (FD);
  exchange (FD);
  assert_int_equal (fake_report_count, 1);
  probe_connection_closing (FD);
  assert_int_equal (fake_report_count, 2);
  assert_int_equal (fake_reports[1].report.kind, WEFT_REPORT_BARE);
  assert_int_equal (fake_reports[1].report.reason, WEFT_REASON_NONE);
  assert_memory_equal (&fake_reports[1].report.local, &fake_reports[0].report.local, sizeof (weft_address_t));
  assert_memory_equal (&fake_reports[1].report.peer, &fake_reports[0].report.peer, sizeof (weft_address_t));
}

static void test_old_server (void **state)
{
  fake_old (FD);
  app_hear (FD, HEAD TP "\r\n");
  app_say (FD, OK);
  app_hear (FD, HEAD TP "\r\n");
  app_say (FD, OK);
  app_hear (FD, HEAD TP "\r\n");
  app_say (FD, OK);
  assert_int_equal (fake_report_count, 2);
  for (unsigned i = 0; i < fake_report_count; i++)
    assert_int_equal (fake_reports[i].report.kind, WEFT_REPORT_CAPTURE);
}

static void test_old_server_in_lockstep (void **state)
{
  fake_old (FD);
  app_hear_by (FD, HEAD "Content-Length: 4\r\n\r\nbody", strlen (HEAD));
  app_say (FD, "HTTP/1.1 100 Continue\r\n\r\n");
  app_say (FD, OK);
  assert_int_equal (fake_report_count, 0);
  app_hear (FD, HEAD TP "\r\n");
  app_say (FD, OK);
  assert_int_equal (fake_report_count, 1);
  assert_int_equal (fake_counter (SHM_COUNT_CAPTURED), 1);
}

/* Birth unseen, but no byte: the kernel says so. */
static void test_born_unseen (void **state)
{
  fake_socket (FD);
  fake[FD].written = 1;
  app_say (FD, "GET /a HT"); // not even a whole line
  app_say (FD, "TP/1.1\r\nHost: x\r\n\r\n");
  app_hear (FD, OK);
  assert_true (carries (FD));
  fake_socket (FD + 1);
  app_hear_by (FD + 1, HEAD TP "\r\n", 10);
  app_say (FD + 1, OK);
  assert_int_equal (fake_report_count, 2);
  assert_int_equal (fake_reports[1].report.kind, WEFT_REPORT_CAPTURE);
  assert_int_equal (fake_counter (SHM_COUNT_UNPROVEN), 0);
  // One byte that went by before is enough to know nothing.
  fake_socket (FD + 2);
  fake[FD + 2].written = 2;
  exchange (FD + 2);
  assert_false (carries (FD + 2));
  fake_socket (FD + 3);
  fake[FD + 3].read = 1;
  app_hear (FD + 3, HEAD TP "\r\n");
  app_say (FD + 3, OK);
  assert_int_equal (fake_counter (SHM_COUNT_CAPTURED), 1);
}

/* First sight in the middle of a body. */
static void test_old_body (void **state)
{
  fake_old (FD);
  app_say (FD, "some bytes of a body ");
  app_say (FD, GET "and more of it"); // looks like a request, but there was no turn
  app_hear (FD, OK);
  assert_sent (FD, "some bytes of a body " GET "and more of it", 21 + strlen (GET) + 14);
  assert_int_equal (fake_counter (SHM_COUNT_UNPROVEN), 0);
  exchange (FD); // after a turn
  exchange (FD);
  assert_true (carries (FD));
}

/* A body in which every write looks like a request: the kernel's counts and the
 * order of bytes never fit, so nothing is ever inserted. */
static void test_old_body_of_requests (void **state)
{
  fake_old (FD);
  for (int i = 0; i < 40; i++)
    app_say (FD, GET);
  assert_int_equal (fake[FD].sent_size, 40 * strlen (GET));
  assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), 0);
  app_hear (FD, OK);
  assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), 0);
}

static void test_old_answers_do_not_fit (void **state)
{
  fake_old (FD);
  for (int i = 0; i < PROBE_CANDIDACIES_MAX + 2; i++) {
    app_say (FD, GET);
    app_hear (FD, OK "surplus"); // more than the answer
  }
  assert_false (carries (FD));
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_OTHER), 1);
  assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), 0);
  assert_int_equal (fake_report_count, 1);
}

static void test_old_and_unseen_bytes (void **state)
{
  fake_old (FD);
  app_say (FD, GET);
  fake[FD].read += 10; // read past us in the middle of the exchange
  app_hear (FD, OK);
  app_say (FD, GET); // a candidate again
  assert_false (carries (FD));
  app_hear (FD, OK);
  app_say (FD, GET);
  assert_true (carries (FD));
}

static void test_old_with_waiting_answer (void **state)
{
  fake_old (FD);
  peer_bytes (FD, "xyz", 3); // an answer that nobody has read: not between two exchanges
  app_say (FD, GET);
  assert_int_equal (fake_counter (SHM_COUNT_UNPROVEN), 0);
}

static void test_old_with_more_to_come (void **state)
{
  char buffer[sizeof OK];
  fake_old (FD);
  app_say (FD, GET);
  peer_bytes (FD, OK "x", strlen (OK) + 1);
  app_read (FD, buffer, strlen (OK)); // the answer fits, but something waits behind it
  fake[FD].sent_size = 0;
  app_say (FD, GET);
  assert_false (carries (FD));
  assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), 0);
}

static void test_old_unix_socket (void **state)
{
  fake_old (FD);
  fake[FD].family = 1;
  for (int i = 0; i < 4; i++)
    exchange (FD);
  assert_false (carries (FD));
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_OTHER), 1);
  fake_connect (FD);
  fake[FD].family = 1;
  exchange (FD);
  assert_true (carries (FD));
  assert_int_equal (fake[FD].proofs, 0);
}

/* ---- numbers ------------------------------------------------------------- */
static void test_reuse (void **state)
{
  fake_connect (FD);
  app_say (FD, "POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf of");
  probe_connection_closing (FD);
  fake_connect (FD); // the same number, a fresh stream
  exchange (FD);
  assert_true (carries (FD));
  app_say (FD, GET);
  fake_connect (FD); // closed unseen: what was open is over
  assert_int_equal (fake_reports[fake_report_count - 1].report.error, WEFT_ERROR_CLOSED);
  exchange (FD);
  assert_true (carries (FD));
  fake_accept (FD); // and now we are asked
  app_hear (FD, HEAD TP "\r\n");
  app_say (FD, OK);
  assert_int_equal (fake_reports[fake_report_count - 1].report.kind, WEFT_REPORT_CAPTURE);
}

static void test_late_calls (void **state)
{
  probe_room_t room;
  probe_write_t write = {.room = &room};
  probe_read_t read;
  char text[] = GET, answer[] = OK;
  struct iovec out = {text, strlen (text)}, in = {answer, strlen (answer)};
  fake_connect (FD);
  app_say (FD, GET);
  assert_int_equal (probe_connection_before_read (FD, &read), 1);
  probe_connection_closing (FD);
  unsigned told = fake_report_count;
  fake_connect (FD);
  app_say (FD, "PUT /b HTTP/1.1\r\n\r\n");
  // The read belonged to the stream before: C6.
  probe_connection_after_read (FD, &read, &in, 1, (ssize_t) in.iov_len);
  assert_int_equal (fake_report_count, told);
  app_hear (FD, OK);
  assert_int_equal (fake_report_count, told + 1);
  // A write whose connection was closed in the middle still counts only the application's bytes.
  assert_int_equal (probe_connection_before_write (FD, &out, 1, 0, &write), 1);
  assert_int_equal (write.insert, 1);
  probe_connection_closing (FD);
  size_t all = out.iov_len + write.grown;
  assert_int_equal (probe_connection_after_write (FD, &write, (ssize_t) all), out.iov_len);
}

static void test_no_stream (void **state)
{
  fake_socket (FD);
  fake[FD].kind = PROBE_SOCKET_NONE;
  for (int i = 0; i < 200; i++)
    app_say (FD, "log line\n");
  assert_int_equal (fake[FD].describes, 1);
  for (int i = 0; i < 200; i++)
    app_say (FD, "log line\n");
  assert_int_equal (fake[FD].describes, 2); // looked at again, rarely
  fake_connect (FD);                        // but at once after a birth
  exchange (FD);
  assert_true (carries (FD));
  // Born, and no stream after all: a datagram socket that was connected.
  fake_socket (FD);
  fake[FD].kind = PROBE_SOCKET_NONE;
  probe_connection_born (FD, PROBE_ROLE_CLIENT);
  app_say (FD, GET);
  assert_sent (FD, GET, strlen (GET));
  probe_connection_born (FD, PROBE_ROLE_CLIENT);
  app_hear (FD, OK);
  assert_int_equal (fake_counter (SHM_COUNT_FAULTS), 0);
}

static void test_out_of_range (void **state)
{
  probe_room_t room;
  probe_write_t write = {.room = &room};
  probe_read_t read;
  char byte = 'G';
  struct iovec iov = {&byte, 1};
  static const int bad[] = {-1, PROBE_FDS_MAX, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    probe_connection_born (bad[i], PROBE_ROLE_CLIENT);
    probe_connection_closing (bad[i]);
    probe_connection_refused (bad[i], ECONNREFUSED);
    probe_connection_shared (bad[i]);
    probe_connection_shutdown (bad[i], SHUT_WR);
    probe_connection_sent_opaque (bad[i], 1);
    assert_int_equal (probe_connection_before_write (bad[i], &iov, 1, 0, &write), 0);
    assert_int_equal (probe_connection_before_read (bad[i], &read), 0);
  }
  assert_int_equal (fake_counter (SHM_COUNT_TABLE_FULL), 4);
}

static void test_table_full (void **state)
{
  for (int fd = 100; fd < 100 + PROBE_CONNECTIONS_MAX; fd++)
    probe_connection_born (fd, PROBE_ROLE_CLIENT);
  uint64_t full = fake_counter (SHM_COUNT_TABLE_FULL);
  fake_connect (FD);
  assert_int_equal (fake_counter (SHM_COUNT_TABLE_FULL), full + 1);
  exchange (FD);
  assert_false (carries (FD));
  for (int fd = 100; fd < 100 + PROBE_CONNECTIONS_MAX; fd++)
    probe_connection_closing (fd);
  for (int i = 0; i < 3 * PROBE_CONNECTIONS_MAX; i++)
    fake_connect (FD);
  exchange (FD);
  assert_true (carries (FD));
}

static void test_refused (void **state)
{
  fake_connect (FD);
  probe_connection_refused (FD, EISCONN); // it stands
  exchange (FD);
  assert_true (carries (FD));
  probe_connection_refused (FD, ECONNREFUSED);
  exchange (FD); // unknown from here on: a candidate at best
  assert_false (carries (FD));
}

/* ---- activations --------------------------------------------------------- */
static void test_flush (void **state)
{
  probe_read_t read;
  fake_connect (FD);
  app_say (FD, GET);
  assert_int_equal (probe_connection_before_read (FD, &read), 1);
  probe_actions = 0;
  probe_connections_flush ();
  assert_int_equal (fake_report_count, 1);
  assert_int_equal (fake_reports[0].report.error, WEFT_ERROR_OPEN);
  assert_int_equal (fake_reports[0].report.flags & WEFT_REPORT_OPEN, WEFT_REPORT_OPEN);
  // A hook that looked at probe_actions before: what it makes now is nothing.
  probe_connection_born (FD + 1, PROBE_ROLE_CLIENT);
  fake_socket (FD + 1);
  probe_actions = WEFT_ACTION_EMBED;
  exchange (FD + 1);
  assert_false (carries (FD + 1));
  // Bytes went by while nobody looked: the old knowledge is void.
  char answer[] = OK;
  struct iovec in = {answer, strlen (answer)};
  probe_connection_after_read (FD, &read, &in, 1, (ssize_t) in.iov_len);
  fake[FD].sent_size = 0;
  fake[FD].read += in.iov_len;
  exchange (FD);
  assert_false (carries (FD));
  exchange (FD);
  assert_true (carries (FD));
}

static void test_forked (void **state)
{
  fake_connect (FD);
  app_say (FD, GET);
  probe_connections_reset ();
  assert_int_equal (fake_report_count, 0);
  fake_connect (FD);
  exchange (FD);
  assert_int_equal (fake_report_count, 1);
}

static void test_bytes_counted (void **state)
{
  fake_connect (FD);
  exchange (FD);
  fake_connect (FD + 1);
  app_say (FD + 1, "not HTTP at all");
  probe_connection_closing (FD);
  probe_connection_closing (FD + 1);
  uint64_t line = strlen ("traceparent: \r\n") + PROBE_TRACEPARENT_SIZE;
  uint64_t spoken = strlen (GET) + strlen (OK) + line;
  assert_int_equal (fake_counter (SHM_COUNT_BYTES_SPOKEN), spoken);
  assert_int_equal (fake_counter (SHM_COUNT_BYTES_TOTAL), spoken + 15);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_OTHER), 1);
}

/* ---- two threads --------------------------------------------------------- */
static void test_overlapping_reads (void **state)
{
  probe_read_t a, b;
  char half[] = "HTTP/1.1 200 OK\r\n";
  struct iovec iov = {half, strlen (half)};
  fake_connect (FD);
  app_say (FD, GET);
  assert_int_equal (probe_connection_before_read (FD, &a), 1);
  assert_int_equal (probe_connection_before_read (FD, &b), 1);
  probe_connection_after_read (FD, &b, &iov, 1, (ssize_t) iov.iov_len);
  probe_connection_after_read (FD, &a, &iov, 1, (ssize_t) iov.iov_len);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_BUSY), 1);
  fake[FD].sent_size = 0;
  app_say (FD, GET);
  assert_false (carries (FD));
}

/* A late writer: the answer came and the next request left before it returned. */
static void test_late_writer (void **state)
{
  probe_room_t room;
  probe_write_t a = {.room = &room};
  char text[] = GET;
  struct iovec iov = {text, strlen (text)};
  fake_connect (FD);
  assert_int_equal (probe_connection_before_write (FD, &iov, 1, 0, &a), 1);
  struct msghdr message = {.msg_iov = a.room->iov, .msg_iovlen = (size_t) a.iov_count};
  ssize_t result = fake_sendmsg (FD, &message, 0);
  app_hear (FD, OK);
  exchange (FD);
  assert_int_equal (probe_connection_after_write (FD, &a, result), strlen (text));
  exchange (FD);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_BUSY), 0);
  assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), 3);
}

/* The first write comes back short after another one has begun: nobody can say
 * in which order the bytes stand. */
static void test_short_and_overtaken (void **state)
{
  probe_room_t room;
  probe_write_t a = {.room = &room};
  char text[] = "POST / HTTP/1.1\r\nContent-Length: 50\r\n\r\nbody";
  struct iovec iov = {text, strlen (text)};
  fake_connect (FD);
  assert_int_equal (probe_connection_before_write (FD, &iov, 1, 0, &a), 1);
  app_say (FD, "more");
  assert_int_equal (probe_connection_after_write (FD, &a, 10), 10);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_BUSY), 1);
}

static void test_two_servers_write (void **state)
{
  probe_room_t rooms[2];
  probe_write_t a = {.room = &rooms[0]}, b = {.room = &rooms[1]};
  char text[] = OK;
  struct iovec iov = {text, strlen (text)};
  fake_accept (FD);
  app_hear (FD, HEAD TP "\r\n");
  assert_int_equal (probe_connection_before_write (FD, &iov, 1, 0, &a), 1);
  assert_int_equal (probe_connection_before_write (FD, &iov, 1, 0, &b), 1);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_BUSY), 1);
  assert_int_equal (fake_reports[0].report.error, WEFT_ERROR_OPEN);
  assert_int_equal (probe_connection_after_write (FD, &a, (ssize_t) iov.iov_len), iov.iov_len);
  assert_int_equal (probe_connection_after_write (FD, &b, (ssize_t) iov.iov_len), iov.iov_len);
  assert_int_equal (fake_report_count, 1);
}

/* Threads that open, use and close the same few numbers: nothing to assert but
 * that it ends and that no sanitizer complains. */
static void *storm (void *arg)
{
  unsigned seed = (unsigned) (uintptr_t) arg;
  char text[] = GET, answer[] = OK;
  for (int i = 0; i < 20000; i++) {
    int fd = 20 + rand_r (&seed) % 4;
    probe_room_t room;
    probe_write_t write = {.room = &room};
    probe_read_t read;
    struct iovec out = {text, strlen (text)}, in = {answer, strlen (answer)};
    switch (rand_r (&seed) % 8) {
    case 0:
      probe_connection_born (fd, rand_r (&seed) % 2 ? PROBE_ROLE_CLIENT : PROBE_ROLE_SERVER);
      break;
    case 1:
      probe_connection_closing (fd);
      break;
    case 2:
    case 3:
      if (probe_connection_before_read (fd, &read))
        probe_connection_after_read (fd, &read, &in, 1, (ssize_t) in.iov_len);
      break;
    case 4:
      probe_connection_sent_opaque (fd, 2);
      break;
    default:
      if (probe_connection_before_write (fd, &out, 1, 0, &write)) {
        size_t all = out.iov_len + (write.insert ? write.grown : 0);
        size_t part = rand_r (&seed) % 4 ? all : 1 + (size_t) rand_r (&seed) % all;
        ssize_t seen = probe_connection_after_write (fd, &write, (ssize_t) part);
        if (seen > (ssize_t) out.iov_len)
          return arg;
      }
    }
  }
  return NULL;
}

static void test_storm (void **state)
{
  pthread_t threads[4];
  for (int fd = 20; fd < 24; fd++)
    fake_socket (fd);
  for (uintptr_t i = 0; i < 4; i++)
    assert_int_equal (pthread_create (&threads[i], NULL, storm, (void *) (i + 1)), 0);
  for (int i = 0; i < 20; i++) {
    probe_connections_flush ();
    sched_yield ();
  }
  for (int i = 0; i < 4; i++) {
    void *failed;
    pthread_join (threads[i], &failed);
    assert_null (failed);
  }
  probe_actions = 0;
  probe_connections_flush ();
  assert_int_equal (probe_connections_pending (), 0);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, fake_setup)
  const struct CMUnitTest tests[] = {
      TEST (test_old_client),
      TEST (test_the_end_of_a_bare_connection),
      TEST (test_old_server),
      TEST (test_old_server_in_lockstep),
      TEST (test_born_unseen),
      TEST (test_old_body),
      TEST (test_old_body_of_requests),
      TEST (test_old_answers_do_not_fit),
      TEST (test_old_and_unseen_bytes),
      TEST (test_old_with_waiting_answer),
      TEST (test_old_with_more_to_come),
      TEST (test_old_unix_socket),
      TEST (test_reuse),
      TEST (test_late_calls),
      TEST (test_no_stream),
      TEST (test_out_of_range),
      TEST (test_table_full),
      TEST (test_refused),
      TEST (test_flush),
      TEST (test_forked),
      TEST (test_bytes_counted),
      TEST (test_overlapping_reads),
      TEST (test_late_writer),
      TEST (test_short_and_overtaken),
      TEST (test_two_servers_write),
      TEST (test_storm),
  };
  return cmocka_run_group_tests (tests, NULL, fake_teardown);
}
