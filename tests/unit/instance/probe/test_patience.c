/* SPDX-License-Identifier: Apache-2.0 */
/* A client that closes its socket while the answer is not there: it had run out of
 * patience, or it had not waited. */
#include <sys/time.h>
#include <unistd.h>

#include "../../../../instance/probe/opaque.h"
#include "../../../../instance/probe/patience.h"
#include "../../../support/fake_kernel.h"

#define FD   7
#define GET  "GET /a HTTP/1.1\r\n\r\n"
#define PART "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"
#define REST "1234567"

static void starve (int fd)
{
  probe_read_t read;
  char byte;
  struct iovec iov = {&byte, 1};
  assert_int_equal (probe_connection_before_read (fd, &read), 1);
  errno = EAGAIN;
  probe_connection_after_read (fd, &read, &iov, 1, -1);
  assert_int_equal (errno, EAGAIN);
}

static void asked (void)
{
  fake_setup (NULL);
  fake_connect (FD);
  app_say (FD, GET);
}

static weft_error_t error_when_closed (void)
{
  probe_connection_closing (FD);
  assert_int_equal (fake_report_count, 1);
  return (weft_error_t) fake_reports[0].report.error;
}

static void test_a_wait_that_ran_out (void **state)
{
  asked ();
  errno = 4711;
  probe_patience_waited (FD);
  assert_int_equal (errno, 4711);
  assert_int_equal (error_when_closed (), WEFT_ERROR_TIMEOUT);
  // In the middle of an answer, too.
  asked ();
  app_hear (FD, PART);
  probe_patience_waited (FD);
  assert_int_equal (error_when_closed (), WEFT_ERROR_TIMEOUT);
}

static void test_what_came_afterwards_ends_the_wait (void **state)
{
  asked ();
  probe_patience_waited (FD);
  app_hear (FD, PART);
  assert_int_equal (error_when_closed (), WEFT_ERROR_CLOSED);
  asked ();
  probe_patience_waited (FD);
  app_hear (FD, PART REST);
  assert_int_equal (fake_report_count, 1);
  assert_int_equal (fake_reports[0].report.error, WEFT_ERROR_NONE);
  // Of the next request on this connection nobody has waited for anything yet.
  app_say (FD, GET);
  fake_report_count = 0;
  assert_int_equal (error_when_closed (), WEFT_ERROR_CLOSED);
}

static void test_a_wait_for_nothing (void **state)
{
  asked ();
  app_hear (FD, PART REST);
  fake_report_count = 0;
  probe_patience_waited (FD); // idle in a pool
  app_say (FD, GET);
  assert_int_equal (error_when_closed (), WEFT_ERROR_CLOSED);
  probe_patience_waited (FD); // closed
  probe_patience_waited (-1);
  probe_patience_waited (PROBE_FDS_MAX);
}

static void test_a_server_waits_for_requests (void **state)
{
  fake_setup (NULL);
  fake_rule (1, "");
  fake_accept (FD);
  app_hear (FD, GET);
  probe_patience_waited (FD);
  assert_int_equal (error_when_closed (), WEFT_ERROR_CLOSED);
}

/* The limit is the kernel's: a real socket stands under the number. */
static void test_a_read_with_a_limit (void **state)
{
  struct timeval limit = {.tv_usec = 1000};
  int real = socket (AF_INET, SOCK_STREAM, 0);
  assert_true (real >= 0 && dup2 (real, FD) == FD);
  asked ();
  starve (FD);
  assert_int_equal (error_when_closed (), WEFT_ERROR_CLOSED); // it only looked
  assert_int_equal (setsockopt (FD, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  asked ();
  starve (FD);
  assert_int_equal (error_when_closed (), WEFT_ERROR_TIMEOUT);
  asked ();
  starve (FD);
  app_hear (FD, PART);
  assert_int_equal (error_when_closed (), WEFT_ERROR_CLOSED);
  asked ();
  fake[FD].nonblocking = 1; // it never waits
  starve (FD);
  assert_int_equal (error_when_closed (), WEFT_ERROR_CLOSED);
  close (FD);
  close (real);
}

/* The same of an opaque call, whose subtask ends before the connection is closed. */
static weft_error_t error_of_call (unsigned wait_us)
{
  static const uint8_t task[WEFT_TASK_ID_SIZE] = {7};
  fake_setup (NULL);
  probe_handle_t handle = probe_context_open (task, 1);
  fake_connect (FD);
  app_say (FD, "\x16\x03\x01");
  usleep (wait_us);
  starve (FD);
  probe_context_close (handle);
  probe_opaque_finish (handle, 0);
  assert_int_equal (fake_report_count, 1);
  assert_int_equal (fake_reports[0].report.opaque.calls, 1);
  assert_int_equal (fake_reports[0].report.opaque.wait_ns >= wait_us * 1000ull,
                    fake_reports[0].report.error != 0);
  return (weft_error_t) fake_reports[0].report.error;
}

static void test_an_opaque_read_with_a_limit (void **state)
{
  struct timeval limit = {.tv_usec = 1000};
  int real = socket (AF_INET, SOCK_STREAM, 0);
  assert_true (real >= 0 && dup2 (real, FD) == FD);
  assert_int_equal (error_of_call (1500), WEFT_ERROR_NONE); // it only looked
  assert_int_equal (setsockopt (FD, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  assert_int_equal (error_of_call (1500), WEFT_ERROR_TIMEOUT);
  close (FD);
  close (real);
}

static void test_a_reset_is_one (void **state)
{
  asked ();
  probe_patience_waited (FD);
  fake[FD].error = EPIPE;
  assert_int_equal (app_write (FD, GET, sizeof GET - 1), -1);
  assert_int_equal (error_when_closed (), WEFT_ERROR_RESET);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, fake_setup)
  const struct CMUnitTest tests[] = {
      TEST (test_a_wait_that_ran_out), TEST (test_what_came_afterwards_ends_the_wait),
      TEST (test_a_wait_for_nothing),  TEST (test_a_server_waits_for_requests),
      TEST (test_a_read_with_a_limit), TEST (test_an_opaque_read_with_a_limit),
      TEST (test_a_reset_is_one),
  };
  return cmocka_run_group_tests (tests, NULL, fake_teardown);
}
