/* SPDX-License-Identifier: Apache-2.0 */
/* Opaque calls without an answer: the client gave up waiting for it, or never waited. */
#include "opaque_calls.h"

#include <time.h>

#include "../../../../common/clocks.h"
#include "../../../../instance/probe/patience.h"

#define FAREWELL "X\0\0\0\x04"

static uint64_t pause_2ms (void)
{
  nanosleep (&(struct timespec){.tv_nsec = 2000000}, NULL);
  return weft_boot_ns ();
}

static const weft_report_t *report_of (weft_error_t error)
{
  for (unsigned i = 0; i < fake_report_count; i++)
    if (fake_reports[i].report.error == error)
      return &fake_reports[i].report;
  fail_msg ("no report of error %d", error);
  return NULL;
}

/* The wait lasts until it last ran out, whatever becomes of the connection. */
static void test_a_call_that_is_given_up (void **state)
{
  for (int closes = 0; closes < 2; closes++) {
    probe_handle_t handle = open_subtask ();
    fake_connect (FD);
    uint64_t before = weft_boot_ns ();
    SAY (FD, STARTUP);
    uint64_t begun = weft_boot_ns ();
    pause_2ms ();
    probe_patience_waited (FD);
    uint64_t due = pause_2ms ();
    errno = 4711;
    probe_patience_waited (FD);
    assert_int_equal (errno, 4711);
    uint64_t after = weft_boot_ns ();
    pause_2ms ();
    if (closes)
      probe_connection_closing (FD);
    end_subtask (handle);
    const weft_report_t *report = only_report ();
    assert_int_equal (report->error, WEFT_ERROR_TIMEOUT);
    assert_int_equal (report->opaque.calls, 1);
    assert_int_equal (report->opaque.bytes_out, 8);
    assert_in_range (report->opaque.wait_ns, due - begun, after - before);
    assert_int_equal (report->opaque.wait_ns, report->end_ns - report->start_ns);
    if (!closes)
      probe_connection_closing (FD);
  }
}

/* What was answered before is another sum; the farewell is the failed call's. */
static void test_the_fourth_query_is_given_up (void **state)
{
  probe_handle_t handle = open_subtask ();
  fake_connect (FD);
  SAY (FD, STARTUP);
  app_hear (FD, "N");
  for (int i = 0; i < 2; i++) {
    SAY (FD, QUERY);
    app_hear (FD, "row");
  }
  SAY (FD, QUERY);
  pause_2ms ();
  probe_patience_waited (FD);
  fake[FD].accept = 2;
  SAY (FD, FAREWELL);
  fake[FD].accept = 0;
  fake[FD].error = EPIPE;
  assert_int_equal (app_write (FD, FAREWELL, 5), -1); /* too late for another error */
  probe_connection_closing (FD);
  end_subtask (handle);
  assert_int_equal (fake_report_count, 2);
  const weft_report_t *good = report_of (WEFT_ERROR_NONE), *late = report_of (WEFT_ERROR_TIMEOUT);
  assert_int_equal (good->opaque.calls, 3);
  assert_int_equal (good->opaque.bytes_out, 8 + 2 * 14);
  assert_int_equal (good->opaque.bytes_in, 1 + 2 * 3);
  assert_int_equal (late->opaque.calls, 1);
  assert_int_equal (late->opaque.bytes_out, 14 + 5);
  assert_int_equal (late->protocol, WEFT_PROTOCOL_POSTGRESQL);
  assert_true (late->opaque.wait_ns >= 2000000);
}

/* O6: it waited in slices, and for two at once. */
static void test_an_answer_after_all (void **state)
{
  probe_handle_t handle = open_subtask ();
  fake_connect (FD);
  fake_connect (OTHER);
  SAY (FD, STARTUP);
  SAY (OTHER, STARTUP);
  for (int i = 0; i < 3; i++) {
    pause_2ms ();
    probe_patience_waited (FD);
    probe_patience_waited (OTHER);
  }
  SAY (FD, QUERY);
  app_hear (FD, "N");
  probe_patience_waited (FD); /* nothing is asked */
  app_hear (FD, "more");
  fail_read (OTHER, 0, 0);
  end_subtask (handle);
  assert_int_equal (fake_report_count, 2);
  const weft_report_t *good = report_of (WEFT_ERROR_NONE), *closed = report_of (WEFT_ERROR_CLOSED);
  assert_int_equal (good->opaque.calls, 1);
  assert_int_equal (good->opaque.bytes_out, 8 + 14);
  assert_int_equal (good->opaque.bytes_in, 5);
  assert_true (good->opaque.wait_ns >= 6000000);
  assert_int_equal (closed->opaque.calls, 1);
  assert_int_equal (closed->opaque.bytes_out, 8);
  assert_true (closed->opaque.wait_ns >= 6000000);
}

/* The next subtask's bytes say nothing about a call that was given up (O4). */
static void test_another_asks_after_one_has_given_up (void **state)
{
  probe_handle_t handle = open_subtask ();
  fake_connect (FD);
  SAY (FD, STARTUP);
  probe_patience_waited (FD);
  end_subtask (handle);
  assert_int_equal (only_report ()->error, WEFT_ERROR_TIMEOUT);
  handle = open_subtask ();
  probe_patience_waited (FD);
  SAY (FD, QUERY);
  probe_patience_waited (FD);
  app_hear (FD, "whose?");
  end_subtask (handle);
  assert_int_equal (fake_report_count, 0);
  assert_int_equal (fake_counter (SHM_COUNT_SHARED), 1);
}

static void test_calls_that_nobody_waits_for (void **state)
{
  probe_handle_t handle = open_subtask ();
  for (int i = 0; i < 4; i++) {
    fake_connect (FD);
    SAY (FD, "\x01log ");
    SAY (FD, "line\n");
    probe_connection_closing (FD);
  }
  for (int fd = FD; fd <= OTHER; fd++) { /* open when the subtask ends */
    fake_connect (fd);
    SAY (fd, "\x01log line\n");
  }
  pause_2ms ();
  end_subtask (handle);
  const weft_report_t *report = only_report ();
  assert_int_equal (report->opaque.calls, 4 + 2);
  assert_int_equal (report->opaque.bytes_out, 6 * 10);
  assert_int_equal (report->opaque.wait_ns, 0);
  assert_int_equal (report->error, 0);
}

/* All that wait when the instruction ends do so until then. */
static void test_several_wait_at_the_end_of_the_instruction (void **state)
{
  open_subtask ();
  uint64_t before = weft_boot_ns ();
  for (int fd = FD; fd <= OTHER; fd++) {
    fake_connect (fd);
    SAY (fd, STARTUP);
    app_hear (fd, "N");
    SAY (fd, QUERY);
  }
  uint64_t begun = weft_boot_ns (), due = pause_2ms ();
  probe_actions = 0;
  probe_connections_flush ();
  const weft_report_t *report = only_report ();
  assert_int_equal (report->flags, WEFT_REPORT_OPEN);
  assert_int_equal (report->opaque.calls, 4);
  assert_in_range (report->opaque.wait_ns, 2 * (due - begun), 2 * (weft_boot_ns () - before));
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, fake_setup, fake_teardown)
  const struct CMUnitTest tests[] = {
      TEST (test_a_call_that_is_given_up),     TEST (test_the_fourth_query_is_given_up),
      TEST (test_an_answer_after_all),         TEST (test_another_asks_after_one_has_given_up),
      TEST (test_calls_that_nobody_waits_for), TEST (test_several_wait_at_the_end_of_the_instruction),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
