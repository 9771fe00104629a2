/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../../common/batch.h"
#include "../../../../common/status.h"
#include "../../../../controller/service/replay_plan.h"

static char directory[64], path[96];
static ctl_recording_writer_t *writer;

static int setup (void **state)
{
  strcpy (directory, "/tmp/weft-plan-XXXXXX");
  if (!mkdtemp (directory))
    return -1;
  snprintf (path, sizeof path, "%s/r.weftr", directory);
  return ctl_recording_create (path, &writer);
}

static int teardown (void **state)
{
  unlink (path);
  return rmdir (directory);
}

/* A batch of instance `who` with one report for each digit of `tasks`. */
static void batch (int who, uint64_t number, const char *tasks)
{
  static uint8_t frame[WEFT_BATCH_MAX];
  weft_batch_writer_t *batch_writer = weft_batch_writer_new ();
  weft_batch_head_t head = {.number = number, .anchor = {100, 1100}, .to_ns = 1000 * number};
  size_t size = 0;
  memset (head.instance, who, WEFT_UUID_SIZE);
  memset (head.start, who + 1, WEFT_UUID_SIZE);
  assert_int_equal (weft_batch_writer_begin (batch_writer, frame, sizeof frame, &head), 0);
  for (; *tasks; tasks++) {
    weft_report_t report = {.kind = WEFT_REPORT_CAPTURE, .task = {(uint8_t) *tasks}, .subtask = 5};
    assert_int_equal (weft_batch_writer_add (batch_writer, &report), 0);
  }
  assert_int_equal (weft_batch_writer_finish (batch_writer, &head, &size), 0);
  assert_int_equal (ctl_recording_frame (writer, frame, size), 0);
  weft_batch_writer_destroy (&batch_writer);
}

static void message (int who, weft_up_kind_t kind, uint64_t epoch, const char *service)
{
  weft_up_message_t m = {.kind = kind, .epoch = epoch, .pid = 77, .bytes_total = 5};
  void *data = NULL;
  size_t size = 0;
  memset (m.instance, who, WEFT_UUID_SIZE);
  memset (m.start, who + 1, WEFT_UUID_SIZE);
  snprintf (m.service, sizeof m.service, "%s", service);
  assert_int_equal (weft_up_pack (&m, &data, &size), 0);
  assert_int_equal (ctl_recording_frame (writer, data, size), 0);
  free (data);
}

static ctl_plan_t *plan_of (ctl_recording_t **ret_recording)
{
  ctl_plan_t *plan = NULL;
  assert_int_equal (ctl_recording_finish (&writer), 0);
  assert_int_equal (ctl_recording_open (path, ret_recording), 0);
  assert_int_equal (ctl_plan_new (*ret_recording, 1, &plan), 0);
  return plan;
}

/* L2, L3 */
static void test_numbers_and_counts (void **state)
{
  ctl_recording_t *recording = NULL;
  batch (1, 9, "ab");
  batch (2, 1, "b");
  batch (1, 5, "a");
  batch (1, 9, "ab");
  batch (1, 6, "c");
  assert_int_equal (ctl_recording_frame (writer, "\xff\x01\x02", 3), 0);
  ctl_plan_t *plan = plan_of (&recording);
  assert_int_equal (plan->frame_count, 5);
  const uint64_t number[] = {1, 1, 2, 1, 3};
  for (int n = 0; n < 5; n++)
    assert_int_equal (plan->frames[n].number, number[n]);
  assert_int_equal (plan->frames[3].repeated, 1);
  assert_int_equal (plan->batches, 4);
  assert_int_equal (plan->reports, 5);
  assert_int_equal (plan->tasks, 3);
  assert_int_equal (plan->repeated, 1);
  assert_int_equal (plan->missing, 2); /* 7 and 8 of the first */
  assert_int_equal (plan->unread, 1);
  assert_int_equal (plan->instance_count, 2);
  assert_int_equal (plan->first_ns, 2000);
  assert_int_equal (plan->last_ns, 10000);
  ctl_plan_destroy (&plan);
  ctl_recording_close (&recording);
}

/* L1: wherever it stands, and of several always the same one. */
static void test_hello (void **state)
{
  ctl_recording_t *recording = NULL;
  ctl_plan_names_t names;
  weft_up_message_t hello;
  void *frame = NULL;
  size_t size = 0;
  batch (1, 1, "a");
  message (1, WEFT_UP_HELLO, 4, "later");
  message (1, WEFT_UP_HELLO, 0, "first");
  batch (3, 1, "a");
  ctl_plan_t *plan = plan_of (&recording);
  ctl_plan_names (1, 2, 0, &names);
  assert_int_equal (ctl_plan_hello (plan, &names, 0, &frame, &size), 0);
  assert_int_equal (weft_up_unpack (frame, size, &hello), 0);
  assert_string_equal (hello.service, "later");
  assert_int_equal (hello.pid, 77);
  assert_int_equal (hello.replayed, 1);
  assert_int_not_equal (hello.instance[0], 1);
  free (frame);
  assert_int_equal (ctl_plan_hello (plan, &names, 1, &frame, &size), 0);
  assert_int_equal (weft_up_unpack (frame, size, &hello), 0);
  assert_string_equal (hello.service, "");
  assert_int_equal (hello.replayed, 1);
  free (frame);
  ctl_plan_destroy (&plan);
  ctl_recording_close (&recording);
}

static void frame_as (const ctl_plan_t *plan, const ctl_plan_names_t *names, uint32_t index,
                      weft_batch_reader_t *ret_reader, weft_report_t *ret_report)
{
  static uint8_t out[WEFT_BATCH_MAX];
  size_t size = 0;
  assert_int_equal (ctl_plan_frame (plan, names, &plan->frames[index], out, &size), 0);
  assert_int_equal (weft_batch_reader_begin (ret_reader, out, size), 0);
  assert_int_equal (weft_batch_reader_next (ret_reader, ret_report), 1);
}

/* One repeat calls one thing by one name; two repeats share no name; the first keeps the ids. */
static void test_repeats (void **state)
{
  static weft_batch_reader_t reader, other;
  ctl_recording_t *recording = NULL;
  weft_report_t a, b;
  ctl_plan_names_t names[3], again;
  batch (1, 1, "a");
  batch (2, 1, "a");
  message (1, WEFT_UP_BYE, 0, "");
  ctl_plan_t *plan = plan_of (&recording);
  for (uint32_t k = 0; k < 3; k++)
    ctl_plan_names (5, 6, k, &names[k]);
  frame_as (plan, &names[0], 0, &reader, &a);
  assert_int_equal (a.task[0], 'a');
  assert_int_equal (a.subtask, 5);
  frame_as (plan, &names[1], 0, &reader, &a);
  frame_as (plan, &names[1], 1, &other, &b);
  assert_memory_equal (a.task, b.task, sizeof a.task);
  assert_memory_not_equal (reader.head.instance, other.head.instance, WEFT_UUID_SIZE);
  frame_as (plan, &names[2], 0, &other, &b);
  assert_memory_not_equal (a.task, b.task, sizeof a.task);
  assert_int_not_equal (a.subtask, b.subtask);
  assert_memory_not_equal (reader.head.instance, other.head.instance, WEFT_UUID_SIZE);
  assert_memory_not_equal (reader.head.start, other.head.start, WEFT_UUID_SIZE);
  /* another run of the same seed: the same tasks and instances, other lives of their probes */
  ctl_plan_names (5, 7, 1, &again);
  frame_as (plan, &again, 0, &other, &b);
  assert_memory_equal (a.task, b.task, sizeof a.task);
  assert_memory_equal (reader.head.instance, other.head.instance, WEFT_UUID_SIZE);
  assert_memory_not_equal (reader.head.start, other.head.start, WEFT_UUID_SIZE);
  uint8_t out[1024];
  size_t size = 0;
  weft_up_message_t bye;
  assert_int_equal (ctl_plan_frame (plan, &names[1], &plan->frames[2], out, &size), 0);
  assert_int_equal (weft_up_unpack (out, size, &bye), 0);
  assert_int_equal (bye.kind, WEFT_UP_BYE);
  assert_int_equal (bye.bytes_total, 5);
  assert_memory_equal (bye.instance, reader.head.instance, WEFT_UUID_SIZE);
  assert_memory_equal (bye.start, reader.head.start, WEFT_UUID_SIZE);
  ctl_plan_destroy (&plan);
  ctl_recording_close (&recording);
}

static void test_empty (void **state)
{
  ctl_recording_t *recording = NULL;
  ctl_plan_t *plan = plan_of (&recording);
  assert_int_equal (plan->frame_count + plan->start_count + plan->missing, 0);
  ctl_plan_destroy (&plan);
  ctl_recording_close (&recording);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (test_numbers_and_counts, setup, teardown),
      cmocka_unit_test_setup_teardown (test_hello, setup, teardown),
      cmocka_unit_test_setup_teardown (test_repeats, setup, teardown),
      cmocka_unit_test_setup_teardown (test_empty, setup, teardown),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
