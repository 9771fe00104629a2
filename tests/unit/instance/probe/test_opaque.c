/* SPDX-License-Identifier: Apache-2.0 */
/* opaque, quiet, reach: calls on given-up connections, over a fake kernel. */
#include "opaque_calls.h"

#include <arpa/inet.h>
#include <pthread.h>

#include "../../../../instance/probe/quiet.h"
#include "../../../../instance/probe/reach.h"

#define SERVER 7

static void test_calls_bytes_and_protocol (void **state)
{
  probe_handle_t handle = open_subtask ();
  fake_connect (FD);
  SAY (FD, STARTUP); /* what gives it up is the first call */
  app_hear (FD, "N");
  for (int i = 0; i < 3; i++) {
    SAY (FD, QUERY);
    app_hear_by (FD, "answer in parts", 6); /* three reads, one call */
  }
  assert_int_equal (fake_report_count, 0);
  end_subtask (handle);
  const weft_report_t *report = only_report ();
  assert_int_equal (report->opaque.calls, 4);
  assert_int_equal (report->opaque.bytes_out, 8 + 3 * 14);
  assert_int_equal (report->opaque.bytes_in, 1 + 3 * 15);
  assert_int_equal (report->protocol, WEFT_PROTOCOL_POSTGRESQL);
  assert_int_equal (report->error, 0);
  assert_int_equal (report->flags, 0);
  assert_int_equal (report->peer.port, 80);
  assert_true (report->start_ns <= report->end_ns);
  assert_true (report->opaque.wait_ns <= report->end_ns - report->start_ns);
  assert_sent (FD, STARTUP QUERY QUERY QUERY, 8 + 42);
}

/* One sum of a subtask and peer, whatever connections it used; another subtask has its own. */
static void test_one_report_a_subtask_and_peer (void **state)
{
  probe_handle_t handle = open_subtask ();
  for (int i = 0; i < 5; i++) {
    fake_connect (FD);
    SAY (FD, STARTUP);
    app_hear (FD, "N");
    probe_connection_closing (FD);
  }
  fake_connect (OTHER);
  fake[OTHER].peer_ip[3] = 9;
  SAY (OTHER, STARTUP);
  app_hear (OTHER, "N");
  end_subtask (handle);
  assert_int_equal (fake_report_count, 2);
  assert_int_equal (fake_reports[0].report.opaque.calls + fake_reports[1].report.opaque.calls, 6);
  fake_report_count = 0;

  handle = open_subtask ();
  SAY (OTHER, QUERY);
  app_hear (OTHER, "row");
  end_subtask (handle);
  assert_int_equal (only_report ()->opaque.calls, 1);
}

/* O3: who tells late what has ended tells nothing of the subtask that has its place by now. */
static void test_a_late_end_leaves_the_next_one_alone (void **state)
{
  probe_handle_t ended = probe_context_open (task, ++subtask);
  probe_context_close (ended);
  probe_handle_t handle = probe_context_open (task, subtask);
  assert_int_equal ((uint32_t) handle, (uint32_t) ended); /* the same place */
  assert_true (handle != ended);
  fake_connect (FD);
  SAY (FD, STARTUP);
  probe_opaque_finish (ended, 0);
  assert_int_equal (fake_report_count, 0);
  app_hear (FD, "N");
  end_subtask (handle);
  const weft_report_t *report = only_report ();
  assert_int_equal (report->opaque.calls, 1);
  assert_int_equal (report->opaque.bytes_in, 1);
}

static void test_outside_of_a_subtask_nothing_is_kept (void **state)
{
  fake_connect (FD);
  SAY (FD, STARTUP);
  app_hear (FD, "N");
  assert_int_equal (probe_quiet[FD], PROBE_FD_CLIENT);
  probe_handle_t nobodys = probe_context_open (task, 0); /* a request that no instruction asked for */
  SAY (FD, QUERY);
  app_hear (FD, "row");
  probe_context_close (nobodys);
  probe_opaque_finish (nobodys, 0);
  probe_connection_closing (FD);
  probe_opaque_flush ();
  assert_int_equal (fake_report_count, 0);
}

/* What a hook would look at, in each state of a connection's life (Q1 to Q3). */
static void test_states_of_an_fd (void **state)
{
  fake_connect (FD);
  assert_int_equal (probe_quiet[FD], PROBE_FD_LOOK);
  SAY (FD, STARTUP);
  assert_int_equal (probe_quiet[FD], PROBE_FD_LOOK); /* quiet from its next call on */
  app_hear (FD, "N");
  assert_int_equal (probe_quiet[FD], PROBE_FD_CLIENT);
  assert_true (probe_quiet_write (FD) && probe_quiet_read (FD));
  probe_handle_t handle = open_subtask ();
  assert_false (probe_quiet_write (FD));
  assert_true (probe_quiet_read (FD));
  SAY (FD, QUERY);
  assert_int_equal (probe_quiet[FD], PROBE_FD_CALLING);
  assert_false (probe_quiet_read (FD));
  app_hear (FD, "row");
  end_subtask (handle);
  assert_false (probe_quiet_write (FD)); /* once more, to see that nobody is there */
  SAY (FD, QUERY);
  assert_true (probe_quiet_write (FD));
  probe_connection_closing (FD);
  assert_int_equal (probe_quiet[FD], PROBE_FD_LOOK);

  fake_accept (SERVER);
  app_hear (SERVER, "\x16\x03\x01\x02");
  app_hear (SERVER, "\x16");
  assert_int_equal (probe_quiet[SERVER], PROBE_FD_SERVER);
  assert_true (probe_quiet_read (SERVER) && probe_quiet_write (SERVER));
  handle = open_subtask ();
  assert_false (probe_quiet_read (SERVER)); /* work that nobody follows */
  assert_true (probe_quiet_write (SERVER));
  probe_context_t context;
  weft_reason_t reason;
  assert_int_equal (probe_context_current (&context, &reason), 1);
  app_hear (SERVER, "\x16");
  assert_int_equal (probe_context_current (&context, &reason), 0);
  end_subtask (handle);
  probe_connections_flush ();
  assert_int_equal (probe_quiet[SERVER], PROBE_FD_LOOK);
}

/* Half of an insert is out: whatever the connection is, the rest leaves with the next write. */
static void test_not_quiet_while_an_insert_is_cut (void **state)
{
  static const char head[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  probe_handle_t handle = open_subtask ();
  fake_connect (FD);
  fake[FD].accept = 35;
  assert_int_equal (app_write (FD, head, sizeof head - 1), 25);
  fake[FD].accept = 0;
  char data[4];
  for (int i = 0; i < 2; i++) { /* no answer: given up; and once more */
    peer_bytes (FD, "\x16\x03\x03\x02", 4);
    app_read (FD, data, sizeof data);
  }
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_OTHER) + fake_counter (SHM_COUNT_GIVEN_UP_FRAMING), 1);
  assert_int_equal (probe_quiet[FD], PROBE_FD_LOOK);
  SAY (FD, "\r\n");
  size_t at;
  assert_int_equal (strlen (cut_line (FD, "traceparent: ", &at)), 55);
  assert_sent (FD, head, sizeof head - 1);
  probe_connection_closing (FD);
  end_subtask (handle);
}

static void test_bytes_are_the_kernels (void **state)
{
  fake_connect (FD);
  SAY (FD, STARTUP);
  app_hear (FD, "N");
  /* unseen from here on, as a quiet fd's are */
  fake[FD].written += 1000;
  fake[FD].read += 5000;
  probe_connections_count ();
  assert_int_equal (fake_counter (SHM_COUNT_BYTES_TOTAL), 6009);
  probe_connections_count ();
  assert_int_equal (fake_counter (SHM_COUNT_BYTES_TOTAL), 6009);
  fake[FD].written += 7;
  probe_connection_closing (FD);
  assert_int_equal (fake_counter (SHM_COUNT_BYTES_TOTAL), 6016);
  assert_int_equal (fake_counter (SHM_COUNT_BYTES_SPOKEN), 0);
  assert_int_equal (shm_rest (probe_shm)->bytes[WEFT_PROTOCOL_POSTGRESQL], 6016);
}

static void test_unix_sockets_are_counted_here (void **state)
{
  probe_handle_t handle = open_subtask ();
  fake_connect (FD);
  fake[FD].family = 1;
  SAY (FD, "*1\r\n$4\r\nPING\r\n");
  app_hear (FD, "+PONG\r\n");
  SAY (FD, "*1\r\n$4\r\nPING\r\n");
  app_hear (FD, "+PONG\r\n");
  assert_int_equal (probe_quiet[FD], PROBE_FD_LOOK);
  end_subtask (handle);
  const weft_report_t *report = only_report ();
  assert_int_equal (report->peer.family, 1);
  assert_int_equal (report->protocol, WEFT_PROTOCOL_REDIS);
  assert_int_equal (report->opaque.calls, 2);
  probe_connection_closing (FD);
  assert_int_equal (fake_counter (SHM_COUNT_BYTES_TOTAL), 2 * (14 + 7));
  assert_int_equal (shm_rest (probe_shm)->bytes[WEFT_PROTOCOL_REDIS], 2 * (14 + 7));
}

static void test_a_server_that_speaks_first (void **state)
{
  probe_handle_t handle = open_subtask ();
  fake_connect (FD);
  peer_bytes (FD,
              "\x08\0\0\0\x0a"
              "8.0.36\0",
              12);
  char data[64];
  app_read (FD, data, sizeof data);
  SAY (FD, "\x03\0\0\x01\x85\xa6\x3f");
  app_hear (FD, "ok");
  end_subtask (handle);
  const weft_report_t *report = only_report ();
  assert_int_equal (report->protocol, WEFT_PROTOCOL_MYSQL);
  assert_int_equal (report->opaque.calls, 1);
  assert_int_equal (report->opaque.bytes_in, 12 + 2);
}

static void test_short_and_failing_writes (void **state)
{
  probe_handle_t handle = open_subtask ();
  fake_connect (FD);
  SAY (FD, STARTUP);
  app_hear (FD, "N");
  fake[FD].accept = 5;
  SAY (FD, QUERY); /* three writes, one call */
  app_hear (FD, "row");
  fake[FD].accept = 0;
  fake[FD].error = EAGAIN;
  SAY (FD, QUERY);
  app_hear (FD, "row");
  fake[FD].error = EPIPE;
  assert_int_equal (app_write (FD, QUERY, 14), -1);
  assert_int_equal (errno, EPIPE);
  end_subtask (handle);
  assert_int_equal (fake_report_count, 2);
  for (int i = 0; i < 2; i++) {
    const weft_report_t *report = &fake_reports[i].report;
    int failed = report->error != 0;
    assert_int_equal (report->error, failed ? WEFT_ERROR_RESET : 0);
    assert_int_equal (report->opaque.calls, failed ? 1 : 3);
    assert_int_equal (report->opaque.bytes_out, failed ? 0 : 8 + 14 + 14);
  }
}

/* Failing calls of one kind are one sum; what answered before is another. */
static void test_calls_that_fail (void **state)
{
  probe_handle_t handle = open_subtask ();
  for (int i = 0; i < 3; i++) {
    fake_connect (FD);
    SAY (FD, STARTUP);
    fail_read (FD, -1, EAGAIN);
    if (i == 2)
      app_hear (FD, "N");
    else
      fail_read (FD, -1, ECONNRESET);
    fail_read (FD, 0, 0); /* nothing waits: no failure */
    probe_connection_closing (FD);
  }
  end_subtask (handle);
  assert_int_equal (fake_report_count, 2);
  for (int i = 0; i < 2; i++) {
    const weft_report_t *report = &fake_reports[i].report;
    assert_int_equal (report->opaque.calls, report->error == WEFT_ERROR_RESET ? 2 : 1);
    assert_int_equal (report->opaque.bytes_out, report->error == WEFT_ERROR_RESET ? 16 : 8);
  }
}

static void test_a_peer_that_never_answers (void **state)
{
  probe_handle_t handle = open_subtask ();
  fake_connect (FD);
  SAY (FD, "\x01log line\n");
  SAY (FD, "\x01log line\n");
  end_subtask (handle);
  const weft_report_t *report = only_report ();
  assert_int_equal (report->opaque.calls, 1);
  assert_int_equal (report->opaque.bytes_out, 20);
  assert_int_equal (report->opaque.wait_ns, 0);
  /* its answer may still come: the next subtask's calls would be measured by it (O4) */
  handle = open_subtask ();
  SAY (FD, "\x01log line\n");
  end_subtask (handle);
  assert_int_equal (fake_report_count, 0);
  assert_int_equal (fake_counter (SHM_COUNT_SHARED), 1);
}

/* A farewell that nobody answers is no call. */
static void test_a_farewell (void **state)
{
  probe_handle_t handle = open_subtask ();
  fake_connect (FD);
  SAY (FD, STARTUP);
  app_hear (FD, "N");
  SAY (FD, "X\0\0\0\x04");
  probe_connection_closing (FD);
  end_subtask (handle);
  const weft_report_t *report = only_report ();
  assert_int_equal (report->opaque.calls, 1);
  assert_int_equal (report->opaque.bytes_out, 13);
}

static void test_the_instruction_ends_first (void **state)
{
  open_subtask ();
  fake_connect (FD);
  SAY (FD, STARTUP);
  app_hear (FD, "N");
  SAY (FD, QUERY);
  probe_actions = 0;
  probe_connections_flush ();
  const weft_report_t *report = only_report ();
  assert_int_equal (report->flags, WEFT_REPORT_OPEN);
  assert_int_equal (report->opaque.calls, 2);
  assert_int_equal (probe_quiet[FD], PROBE_FD_LOOK);
  probe_opaque_flush ();
  assert_int_equal (fake_report_count, 0); /* O1 */
}

/* ---- from before the attach ---------------------------------------------------------------- */
static void in_mid_life (int fd, uint16_t local, uint16_t peer)
{
  fake_socket (fd);
  fake[fd].written = fake[fd].read = 5000;
  fake[fd].local_port = local;
  fake[fd].peer_port = peer;
}

static void test_a_pool_from_before_the_attach (void **state)
{
  probe_handle_t handle = open_subtask ();
  in_mid_life (FD, 40001, 5000);
  SAY (FD, QUERY);
  app_hear (FD, "row");
  SAY (FD, QUERY);
  app_hear (FD, "row");
  end_subtask (handle);
  const weft_report_t *report = only_report ();
  assert_int_equal (report->opaque.calls, 2);
  assert_int_equal (report->protocol, WEFT_PROTOCOL_POSTGRESQL);
  assert_int_equal (report->peer.port, 5000);
}

/* What may be an HTTP client's or a server's stays unknown, and may be understood later. */
static void test_what_is_not_recognised (void **state)
{
  probe_handle_t handle = open_subtask ();
  in_mid_life (FD, 5000, 40001); /* we are the server */
  SAY (FD, QUERY);
  in_mid_life (OTHER, 40001, 5000);
  SAY (OTHER, "{\"cart\":8812}"); /* some body */
  SAY (OTHER, QUERY);             /* no turn before it */
  app_hear (OTHER, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  for (int fd = FD; fd <= OTHER; fd++)
    assert_int_equal (probe_quiet[fd], PROBE_FD_LOOK);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_OTHER), 0);
  static const char head[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  for (int i = 0; i < 2; i++) {
    SAY (OTHER, head);
    app_hear (OTHER, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  }
  assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), 1); /* the second: one exchange is the proof */
  end_subtask (handle);
}

/* ---- several threads ------------------------------------------------------------------- */
static void *in_a_subtask (void *arg)
{
  probe_handle_t handle = open_subtask ();
  SAY (FD, QUERY);
  end_subtask (handle);
  return NULL;
}
static void *reads (void *arg)
{
  app_hear (FD, "row");
  return NULL;
}
static void elsewhere (void *(*fn) (void *) )
{
  pthread_t thread;
  assert_int_equal (pthread_create (&thread, NULL, fn, NULL), 0);
  pthread_join (thread, NULL);
}

static void test_who_reads_does_not_matter (void **state)
{
  probe_handle_t handle = open_subtask ();
  fake_connect (FD);
  SAY (FD, STARTUP);
  elsewhere (reads);
  end_subtask (handle);
  const weft_report_t *report = only_report ();
  assert_int_equal (report->opaque.calls, 1);
  assert_int_equal (report->opaque.bytes_in, 3);
}

/* O4: two subtasks have asked, nobody knows whose the answer is. */
static void test_a_shared_connection_is_left_alone (void **state)
{
  probe_handle_t handle = open_subtask ();
  fake_connect (FD);
  SAY (FD, STARTUP);
  app_hear (FD, "N");
  SAY (FD, QUERY);
  subtask--;
  elsewhere (in_a_subtask);
  subtask = 1 + (subtask - 1);
  assert_int_equal (probe_quiet[FD], PROBE_FD_QUIET);
  app_hear (FD, "row");
  SAY (FD, QUERY);
  app_hear (FD, "row");
  end_subtask (handle);
  assert_int_equal (fake_report_count, 1);
  assert_int_equal (fake_reports[0].report.opaque.calls, 1);
  assert_int_equal (fake_counter (SHM_COUNT_SHARED), 1);
}

#define WORKERS 4
#define ROUNDS  300

/* Each works on a connection of its own, in subtasks of its own. */
static void *works (void *arg)
{
  int fd = 20 + (int) (intptr_t) arg;
  for (uint64_t i = 1; i <= ROUNDS; i++) {
    probe_handle_t handle = probe_context_open (task, (uint64_t) fd << 32 | i);
    for (uint64_t k = 0; k < 1 + i % 3; k++) {
      SAY (fd, QUERY);
      app_hear (fd, "row");
    }
    end_subtask (handle);
  }
  return NULL;
}

static void test_many_at_once (void **state)
{
  pthread_t thread[WORKERS];
  for (int i = 0; i < WORKERS; i++) {
    fake_connect (20 + i);
    SAY (20 + i, STARTUP);
    app_hear (20 + i, "N");
  }
  for (int i = 0; i < WORKERS; i++)
    assert_int_equal (pthread_create (&thread[i], NULL, works, (void *) (intptr_t) i), 0);
  for (int i = 0; i < WORKERS; i++)
    pthread_join (thread[i], NULL);
  assert_int_equal (fake_report_count, WORKERS * ROUNDS);
  uint64_t calls = 0;
  for (unsigned i = 0; i < fake_report_count; i++) {
    const weft_report_t *report = &fake_reports[i].report;
    assert_int_equal (report->opaque.calls, 1 + (report->subtask & 0xffffffff) % 3);
    calls += report->opaque.calls;
  }
  assert_int_equal (calls, WORKERS * 2 * ROUNDS);
  assert_int_equal (fake_counter (SHM_COUNT_FAULTS), 0);
  assert_int_equal (fake_counter (SHM_COUNT_SHARED), 0);
}

/* The table is finite: what does not fit is counted and nothing else happens. */
static void test_a_full_table (void **state)
{
  static probe_handle_t handle[PROBE_SUMS_MAX + 10];
  static const weft_address_t nobody;
  probe_context_t of = {.subtask = 1};
  unsigned opened = 0;
  for (unsigned i = 0; i < PROBE_SUMS_MAX + 10; i++) {
    of.handle = 1ull << 40 | (i % PROBE_SUBTASKS_MAX);
    probe_opaque_once (&of, (uint8_t) (1 + i / PROBE_SUBTASKS_MAX), &nobody, 0, 5);
  }
  assert_true (fake_report_count > 0); /* O3: of no open subtask: told at once */
  fake_report_count = 0;
  for (unsigned i = 0; i < 2000; i++)
    if ((handle[opened] = probe_context_open (task, i + 1)))
      opened++;
  assert_true (opened > 1000);
  for (unsigned p = 1; p < 6; p++)
    for (unsigned i = 0; i < opened; i++) {
      of.handle = handle[i];
      probe_opaque_once (&of, (uint8_t) p, &nobody, 0, 5);
    }
  assert_true (fake_counter (SHM_COUNT_TABLE_FULL) >= 5 * opened - PROBE_SUMS_MAX);
  for (unsigned i = 0; i < opened; i++)
    end_subtask (handle[i]);
  assert_int_equal (fake_report_count, PROBE_SUMS_MAX < FAKE_REPORT ? PROBE_SUMS_MAX : FAKE_REPORT);
  fake_report_count = 0;
  probe_opaque_reset ();
}

/* ---- reaching ---------------------------------------------------------------------------- */
static const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = 0x3815 /* 5432 */};

static void test_connects_that_fail (void **state)
{
  probe_reach_t reach;
  assert_int_equal (probe_reach_begin (&reach), 0);
  probe_handle_t handle = open_subtask ();
  assert_int_equal (probe_reach_begin (&reach), 1);
  const struct sockaddr *to = (const struct sockaddr *) &address;
  /* at once */
  probe_reach_connect (FD, &reach, to, sizeof address, ECONNREFUSED);
  probe_reach_connect (FD, &reach, to, sizeof address, ENETUNREACH); /* not one of the three */
  /* later: by SO_ERROR, told once */
  fake_connect (FD);
  fake[FD].kind = PROBE_SOCKET_UNCONNECTED;
  probe_reach_connect (FD, &reach, to, sizeof address, EINPROGRESS);
  probe_reach_told (FD, ECONNREFUSED);
  probe_reach_told (FD, ECONNREFUSED);
  probe_connection_closing (FD);
  /* by the first write */
  fake_connect (FD);
  fake[FD].kind = PROBE_SOCKET_UNCONNECTED;
  probe_reach_connect (FD, &reach, to, sizeof address, EINPROGRESS);
  fake[FD].error = ECONNREFUSED;
  assert_int_equal (app_write (FD, "x", 1), -1);
  assert_int_equal (errno, ECONNREFUSED);
  fake[FD].outcome = ECONNREFUSED;
  probe_connection_closing (FD);
  /* by the first read */
  fake_connect (FD);
  fake[FD].kind = PROBE_SOCKET_UNCONNECTED;
  probe_reach_connect (FD, &reach, to, sizeof address, EINPROGRESS);
  fail_read (FD, -1, ECONNREFUSED);
  probe_connection_closing (FD);
  /* at its close; and one that had come through, unused */
  for (int i = 0; i < 2; i++) {
    fake_connect (FD);
    fake[FD].kind = i ? PROBE_SOCKET_STREAM : PROBE_SOCKET_UNCONNECTED;
    probe_reach_connect (FD, &reach, to, sizeof address, EINPROGRESS);
    fake[FD].outcome = i ? 0 : ETIMEDOUT;
    probe_connection_closing (FD);
  }
  end_subtask (handle);
  assert_int_equal (fake_report_count, 2);
  for (int i = 0; i < 2; i++) {
    const weft_report_t *report = &fake_reports[i].report;
    assert_int_equal (report->peer.port, 5432);
    assert_int_equal (report->protocol, WEFT_PROTOCOL_POSTGRESQL);
    assert_int_equal (report->opaque.calls, report->error == WEFT_ERROR_REFUSED ? 4 : 1);
    assert_true (report->error == WEFT_ERROR_REFUSED || report->error == WEFT_ERROR_TIMEOUT);
  }
}

static void test_lookups (void **state)
{
  probe_reach_t reach;
  assert_int_equal (probe_reach_lookup ("db.internal", 0, &reach), 0);
  probe_handle_t handle = open_subtask ();
  assert_int_equal (probe_reach_lookup (NULL, 0, &reach), 0);
  assert_int_equal (probe_reach_lookup ("127.0.0.1", 0, &reach), 0);
  assert_int_equal (probe_reach_lookup ("::1", 0, &reach), 0);
  assert_int_equal (probe_reach_lookup ("db.internal", AI_NUMERICHOST, &reach), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal (probe_reach_lookup ("db.internal", 0, &reach), 1);
    probe_reach_looked_up (&reach, 0);
  }
  end_subtask (handle);
  const weft_report_t *report = only_report ();
  assert_int_equal (report->protocol, WEFT_PROTOCOL_DNS);
  assert_int_equal (report->peer.family, 0);
  assert_int_equal (report->opaque.calls, 2);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, fake_setup, fake_teardown)
  const struct CMUnitTest tests[] = {
      TEST (test_calls_bytes_and_protocol),
      TEST (test_one_report_a_subtask_and_peer),
      TEST (test_a_late_end_leaves_the_next_one_alone),
      TEST (test_outside_of_a_subtask_nothing_is_kept),
      TEST (test_states_of_an_fd),
      TEST (test_not_quiet_while_an_insert_is_cut),
      TEST (test_bytes_are_the_kernels),
      TEST (test_unix_sockets_are_counted_here),
      TEST (test_a_server_that_speaks_first),
      TEST (test_short_and_failing_writes),
      TEST (test_calls_that_fail),
      TEST (test_a_peer_that_never_answers),
      TEST (test_a_farewell),
      TEST (test_the_instruction_ends_first),
      TEST (test_a_pool_from_before_the_attach),
      TEST (test_what_is_not_recognised),
      TEST (test_who_reads_does_not_matter),
      TEST (test_a_shared_connection_is_left_alone),
      TEST (test_many_at_once),
      TEST (test_a_full_table),
      TEST (test_connects_that_fail),
      TEST (test_lookups),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
