/* SPDX-License-Identifier: Apache-2.0 */
/* opaque_calls: a subtask and its calls on given-up connections, over a fake kernel.
 * Header only; a test begins with it. */
#ifndef TEST_OPAQUE_CALLS_H
#define TEST_OPAQUE_CALLS_H

#include "../../../../instance/probe/opaque.h"
#include "../../../support/fake_kernel.h"

#define FD    5
#define OTHER 6

#define STARTUP "\0\0\0\x08\x04\xd2\x16\x2f"
#define QUERY   "Q\0\0\0\x0dSELECT 1\0"

static const uint8_t task[WEFT_TASK_ID_SIZE] = {7};
static uint64_t subtask;

static probe_handle_t open_subtask (void)
{
  return probe_context_open (task, ++subtask);
}

/* As an exchange that was answered does it. */
static void end_subtask (probe_handle_t handle)
{
  probe_context_close (handle);
  probe_opaque_finish (handle, 0);
}

static const weft_report_t *only_report (void)
{
  assert_int_equal (fake_report_count, 1);
  const weft_report_t *report = &fake_reports[0].report;
  assert_int_equal (report->kind, WEFT_REPORT_OPAQUE);
  assert_memory_equal (report->task, task, sizeof task);
  assert_int_equal (report->subtask, subtask);
  assert_true (report->request != 0);
  fake_report_count = 0;
  return report;
}

#define SAY(fd, text) app_write_all (fd, text, sizeof (text) - 1)

static void fail_read (int fd, ssize_t result, int error)
{
  probe_read_t read;
  char byte;
  struct iovec iov = {&byte, 1};
  assert_int_equal (probe_connection_before_read (fd, &read), 1);
  errno = error;
  probe_connection_after_read (fd, &read, &iov, 1, result);
}

#endif
