/* SPDX-License-Identifier: Apache-2.0 */
/* record: leases. One thread in the middle of a body, and what others do to it. */
#include "../../../../instance/probe/record.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../../../support/fake_kernel.h"

#define FD     7
#define GET    "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
#define POST   "POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n"
#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
#define OK     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
#define TP     "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
#define PIECE                                                                                                \
  "a hundred bytes of a body, so that ten of them make one, whatever the letters of them may be.......\n"

static uint32_t owner (probe_direction_t direction)
{
  uint32_t generation;
  probe_connection_t *self = probe_record_known (FD, &generation);
  assert_non_null (self);
  return self->busy[direction] & PROBE_OWNER_MASK;
}

/* What another thread does at the same time, here one after the other. */
static void *say_piece (void *arg)
{
  app_say (FD, PIECE);
  return arg;
}
static void *close_it (void *arg)
{
  probe_connection_closing (FD);
  return arg;
}
static void elsewhere (void *(*what) (void *) )
{
  pthread_t thread;
  assert_int_equal (pthread_create (&thread, NULL, what, NULL), 0);
  assert_int_equal (pthread_join (thread, NULL), 0);
}

/* The next request of the connection is marked, and nothing before it was touched. */
static void assert_in_step (const char *head, unsigned pieces)
{
  char want[2048];
  size_t at;
  app_hear (FD, OK);
  app_say (FD, GET);
  assert_int_equal (fake_counter (SHM_COUNT_EMBEDDED), 2);
  cut_line (FD, "traceparent: ", &at);
  assert_int_equal (at, strlen (head) - 2);
  cut_line (FD, "traceparent: ", &at);
  size_t size = (size_t) snprintf (want, sizeof want, "%s", head);
  for (unsigned i = 0; i < pieces; i++)
    size += (size_t) snprintf (want + size, sizeof want - size, "%s", PIECE);
  size += (size_t) snprintf (want + size, sizeof want - size, "%s", GET);
  assert_sent (FD, want, size);
}

static void test_lessee_writes_on (void **state)
{
  fake_connect (FD);
  app_say (FD, POST);
  assert_int_equal (owner (PROBE_OUT), PROBE_LEASED);
  for (int i = 0; i < 9; i++)
    app_say (FD, PIECE);
  assert_int_equal (owner (PROBE_OUT), PROBE_LEASED);
  app_say (FD, PIECE); // the last one ends it
  assert_int_equal (owner (PROBE_OUT), PROBE_FREE);
  assert_in_step (POST, 10);
}

static void test_short_write_of_the_lessee (void **state)
{
  fake_connect (FD);
  app_say (FD, POST);
  fake[FD].accept = 7;
  for (int i = 0; i < 10; i++)
    app_say (FD, PIECE);
  fake[FD].accept = 0;
  fake[FD].error = EAGAIN;
  assert_in_step (POST, 10);
}

static void test_another_thread_writes_on (void **state)
{
  fake_connect (FD);
  app_say (FD, POST);
  app_say (FD, PIECE);
  elsewhere (say_piece);
  assert_int_equal (owner (PROBE_OUT), PROBE_FREE); // R3
  for (int i = 0; i < 8; i++)
    app_say (FD, PIECE);
  assert_in_step (POST, 10);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_BUSY), 0);
}

static void test_answers (void **state)
{
  fake_connect (FD);
  app_say (FD, GET);
  app_hear (FD, ANSWER);
  assert_int_equal (owner (PROBE_IN), PROBE_LEASED);
  for (int i = 0; i < 10; i++)
    app_hear (FD, PIECE);
  assert_int_equal (fake_report_count, 1);
  assert_int_equal (fake_reports[0].report.status, 200);
  fake_accept (FD);
  app_hear (FD, "GET /b HTTP/1.1\r\n" TP "\r\n");
  app_say (FD, ANSWER);
  for (int i = 0; i < 9; i++)
    app_say (FD, PIECE);
  assert_int_equal (owner (PROBE_OUT), PROBE_LEASED);
  assert_int_equal (fake_report_count, 1);
  app_say (FD, PIECE);
  assert_int_equal (fake_report_count, 2);
  assert_int_equal (fake_reports[1].report.error, WEFT_ERROR_NONE);
}

/* An answer's body, and another thread writes during the system call. */
static void test_overtaken_answer (void **state)
{
  probe_room_t room;
  probe_write_t write = {.room = &room};
  char text[] = PIECE;
  struct iovec iov = {text, strlen (text)};
  fake_accept (FD);
  app_hear (FD, "GET /b HTTP/1.1\r\n" TP "\r\n");
  app_say (FD, ANSWER);
  assert_int_equal (probe_connection_before_write (FD, &iov, 1, 0, &write), 1);
  elsewhere (say_piece);
  assert_int_equal (probe_connection_after_write (FD, &write, 100), 100);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_BUSY), 1);
  assert_int_equal (fake_reports[0].report.error, WEFT_ERROR_OPEN);
}

/* C6: the connection was closed, and its record has another life. */
static void test_late_lessee (void **state)
{
  probe_room_t room;
  probe_write_t write = {.room = &room};
  char text[] = PIECE;
  struct iovec iov = {text, strlen (text)};
  fake_accept (FD);
  app_hear (FD, "GET /b HTTP/1.1\r\n" TP "\r\n");
  app_say (FD, ANSWER);
  assert_int_equal (probe_connection_before_write (FD, &iov, 1, 0, &write), 1);
  elsewhere (close_it);
  unsigned told = fake_report_count;
  fake_accept (FD);
  app_hear (FD, "GET /b HTTP/1.1\r\n" TP "\r\n");
  app_say (FD, ANSWER);
  assert_int_equal (probe_connection_after_write (FD, &write, 100), 100);
  for (int i = 0; i < 9; i++)
    app_say (FD, PIECE);
  assert_int_equal (fake_report_count, told);
  app_say (FD, PIECE);
  assert_int_equal (fake_report_count, told + 1);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_BUSY), 0);
}

/* R3: who came late left a value of another life: nobody can tell where the lessee is. */
static void test_doubtful_section (void **state)
{
  uint32_t generation;
  fake_connect (FD);
  app_say (FD, POST);
  probe_connection_t *self = probe_record_known (FD, &generation);
  self->section[PROBE_OUT] = (generation - 1) << 1;
  elsewhere (close_it);
  assert_int_equal (fake_counter (SHM_COUNT_FAULTS), 1);
  assert_int_equal (self->generation, generation);
  self->section[PROBE_OUT] = generation << 1; // for the next test's sake only
}

/* Many rounds of two threads that write one body without any order: every byte is counted once. */
#define EACH 300
static pthread_barrier_t start;
static void *pieces (void *arg)
{
  char byte = 'x';
  struct iovec iov = {&byte, 1};
  pthread_barrier_wait (&start);
  for (int i = 0; i < EACH; i++) {
    probe_room_t room;
    probe_write_t write = {.room = &room};
    if (probe_connection_before_write (FD, &iov, 1, 0, &write))
      probe_connection_after_write (FD, &write, 1);
  }
  return arg;
}

static void test_race (void **state)
{
  char head[128];
  unsigned given_up = 0;
  snprintf (head, sizeof head, "POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n", 2 * EACH);
  for (unsigned round = 0; round < 300; round++) {
    pthread_t thread;
    size_t at;
    fake_connect (FD);
    app_say (FD, head);
    assert_int_equal (pthread_barrier_init (&start, NULL, 2), 0);
    assert_int_equal (pthread_create (&thread, NULL, pieces, NULL), 0);
    pieces (NULL);
    assert_int_equal (pthread_join (thread, NULL), 0);
    pthread_barrier_destroy (&start);
    fake[FD].sent_size = 0;
    app_say (FD, GET);
    int marked = *cut_line (FD, "traceparent: ", &at) != 0;
    unsigned now = (unsigned) fake_counter (SHM_COUNT_GIVEN_UP_BUSY);
    assert_int_equal (marked, now == given_up);
    given_up = now;
  }
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_FRAMING), 0);
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_OTHER), 0);
  assert_true (given_up < 150);
}

/* A sandbox that kills whoever asks for a barrier is not asked. */
static void test_sandbox (void **state)
{
  struct sock_filter code[] = {
      BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
      BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};
  pid_t child = fork ();
  if (child == 0) {
    if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
      _exit (2);
    probe_leases_begin ();
    _exit (0);
  }
  int status;
  assert_int_equal (waitpid (child, &status, 0), child);
  assert_true (WIFEXITED (status));
  assert_int_equal (WEXITSTATUS (status), 0);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, fake_setup)
  const struct CMUnitTest tests[] = {
      TEST (test_lessee_writes_on),
      TEST (test_short_write_of_the_lessee),
      TEST (test_another_thread_writes_on),
      TEST (test_answers),
      TEST (test_overtaken_answer),
      TEST (test_late_lessee),
      TEST (test_race),
      TEST (test_doubtful_section),
      TEST (test_sandbox),
  };
  probe_leases_begin ();
  return cmocka_run_group_tests (tests, NULL, fake_teardown);
}
