/* SPDX-License-Identifier: Apache-2.0 */
/* context: known only where it cannot be wrong (X1 to X4). */
#include <pthread.h>

#include "../../../support/fake_kernel.h"

static const uint8_t task[16] = {1, [15] = 2};
static const uint8_t other[16] = {3, [15] = 4};

static void assert_unknown (weft_reason_t expected)
{
  probe_context_t context;
  weft_reason_t reason = WEFT_REASON_NONE;
  assert_int_equal (probe_context_current (&context, &reason), 0);
  assert_int_equal (reason, expected);
}

static void assert_known (const uint8_t *expected, uint64_t subtask)
{
  probe_context_t context;
  weft_reason_t reason;
  assert_int_equal (probe_context_current (&context, &reason), 1);
  assert_memory_equal (context.task, expected, 16);
  assert_true (context.subtask == subtask);
}

static void test_open_and_close (void **state)
{
  assert_unknown (WEFT_REASON_NO_CONTEXT);
  probe_handle_t handle = probe_context_open (task, 5);
  assert_true (handle != 0);
  assert_known (task, 5);
  probe_context_close (handle);
  assert_unknown (WEFT_REASON_NO_CONTEXT);
  // X1: a handle is good once; the entry may stand for another subtask by now.
  probe_handle_t next = probe_context_open (other, 5);
  assert_true (next != handle);
  probe_context_close (handle);
  assert_known (other, 5);
  probe_context_close (next);
  probe_context_close (0);
}

static void test_several (void **state)
{
  probe_handle_t a = probe_context_open (task, 1), b = probe_context_open (other, 2);
  assert_unknown (WEFT_REASON_SEVERAL_OPEN);
  probe_context_close (a);
  assert_known (other, 2);
  probe_context_close (b);
  assert_unknown (WEFT_REASON_NO_CONTEXT);
}

static void test_more_than_remembered (void **state)
{
  probe_handle_t handles[6];
  for (int i = 0; i < 6; i++)
    handles[i] = probe_context_open (task, 10u + (unsigned) i);
  for (int i = 0; i < 5; i++)
    probe_context_close (handles[i]);
  // One is open, but the slot does not know which.
  assert_unknown (WEFT_REASON_SEVERAL_OPEN);
  probe_context_close (handles[5]);
}

static void test_foreign_work (void **state)
{
  probe_context_foreign ();
  assert_unknown (WEFT_REASON_NO_CONTEXT);
  probe_handle_t a = probe_context_open (task, 1);
  assert_known (task, 1);
  probe_context_foreign (); // which of the two does the thread work for?
  assert_unknown (WEFT_REASON_SEVERAL_OPEN);
  probe_context_close (a);
  assert_unknown (WEFT_REASON_NO_CONTEXT);
  probe_handle_t b = probe_context_open (task, 2);
  assert_known (task, 2);
  probe_context_close (b);
}

/* On a thread of its own: what a thread has shown once holds for its life. */
static void *loops (void *unused)
{
  probe_context_event_loop ();
  assert_unknown (WEFT_REASON_EVENT_LOOP);
  probe_handle_t a = probe_context_open (task, 1);
  assert_unknown (WEFT_REASON_EVENT_LOOP); // does this thread do the work itself?
  probe_context_close (a);
  probe_context_event_loop ();
  probe_handle_t b = probe_context_open (task, 2);
  assert_known (task, 2);      // it does: X3
  probe_context_event_loop (); // waits while its work is open: for good
  assert_unknown (WEFT_REASON_EVENT_LOOP);
  probe_context_close (b);
  probe_handle_t c = probe_context_open (task, 3);
  assert_unknown (WEFT_REASON_EVENT_LOOP);
  probe_context_close (c);
  probe_context_reset ();
  assert_unknown (WEFT_REASON_NO_CONTEXT);
  return NULL;
}

static void elsewhere_run (void *(*run) (void *) )
{
  pthread_t thread;
  assert_int_equal (pthread_create (&thread, NULL, run, NULL), 0);
  pthread_join (thread, NULL);
}

static void test_event_loop (void **state)
{
  elsewhere_run (loops);
}

/* What waits behind another request may be taken up by any thread. */
static void test_queued (void **state)
{
  probe_handle_t a = probe_context_open (task, 1), b = probe_context_open (other, 2);
  probe_context_queued (b);
  assert_unknown (WEFT_REASON_SEVERAL_OPEN);
  probe_context_close (a);
  assert_unknown (WEFT_REASON_SEVERAL_OPEN);
  probe_context_close (b);
  a = probe_context_open (task, 3);
  assert_known (task, 3);
  probe_context_close (a);
  probe_context_queued (a); // gone: nobody's
  probe_context_queued (0);
}

static void test_reset (void **state)
{
  probe_handle_t a = probe_context_receive (task, 1, 99);
  probe_context_t context;
  assert_int_equal (probe_context_find (task, 99, &context), 1);
  probe_context_reset ();
  assert_unknown (WEFT_REASON_NO_CONTEXT);
  assert_int_equal (probe_context_find (task, 99, &context), 0);
  probe_context_close (a);
}

static void test_find (void **state)
{
  probe_context_t context;
  probe_handle_t a = probe_context_receive (task, 11, 99), b = probe_context_receive (other, 12, 99);
  assert_int_equal (probe_context_find (task, 99, &context), 1);
  assert_true (context.subtask == 11);
  assert_int_equal (probe_context_find (other, 99, &context), 1);
  assert_true (context.subtask == 12);
  assert_int_equal (probe_context_find (task, 98, &context), 0);
  assert_int_equal (probe_context_find (task, 0, &context), 0);
  probe_handle_t again = probe_context_receive (task, 13, 99); // a retry: which of the two forwards?
  assert_int_equal (probe_context_find (task, 99, &context), 2);
  probe_context_close (again);
  assert_int_equal (probe_context_find (task, 99, &context), 1);
  probe_context_close (a);
  assert_int_equal (probe_context_find (task, 99, &context), 0);
  probe_context_close (b);
}

static void test_full (void **state)
{
  static probe_handle_t handles[8192];
  unsigned opened = 0;
  for (unsigned i = 0; i < 8192; i++) {
    handles[opened] = probe_context_open (task, i + 1);
    if (!handles[opened])
      break;
    opened++;
  }
  assert_true (opened > 1000 && opened <= 4096);
  assert_int_equal (fake_counter (SHM_COUNT_TABLE_FULL), 1);
  for (unsigned i = 0; i < opened; i++)
    probe_context_close (handles[i]);
  assert_unknown (WEFT_REASON_SEVERAL_OPEN);
}

static void *elsewhere (void *handle)
{
  assert_unknown (WEFT_REASON_NO_CONTEXT);
  probe_context_close (*(probe_handle_t *) handle);
  return NULL;
}

static void test_other_thread (void **state)
{
  pthread_t thread;
  probe_handle_t handle = probe_context_open (task, 1);
  assert_int_equal (pthread_create (&thread, NULL, elsewhere, &handle), 0);
  pthread_join (thread, NULL);
  assert_unknown (WEFT_REASON_NO_CONTEXT);
}

/* ---- an adapter --------------------------------------------------------- */
static probe_handle_t slot_value;
static int slot_result;
static int slot_get (probe_handle_t *ret_handle)
{
  *ret_handle = slot_value;
  return slot_result;
}
static int slot_set (probe_handle_t handle)
{
  slot_value = handle;
  return 0;
}

static const probe_slot_t slot = {slot_get, slot_set};

static void test_adapter (void **state)
{
  slot_value = 0;
  slot_result = 0;
  probe_context_use (&slot);
  assert_unknown (WEFT_REASON_NO_CONTEXT);
  probe_handle_t a = probe_context_open (task, 1);
  assert_true (slot_value == a);
  slot_value = 0; // another virtual thread on the same thread: X4
  probe_context_event_loop ();
  slot_value = 0;
  probe_handle_t b = probe_context_open (other, 2);
  assert_known (other, 2);
  slot_value = a;
  assert_known (task, 1);
  slot_result = -1;
  assert_unknown (WEFT_REASON_VM_CONTEXT);
  slot_result = 0;
  probe_context_close (a);
  assert_unknown (WEFT_REASON_NO_CONTEXT);
  probe_context_close (b);
  probe_context_use_none ();
  b = probe_context_open (other, 3);
  assert_unknown (WEFT_REASON_VM_CONTEXT);
  probe_context_close (b);
  probe_context_use (NULL);
}

/* X2 on a logical thread. */
static void test_adapter_several (void **state)
{
  slot_value = 0;
  slot_result = 0;
  probe_context_use (&slot);
  probe_handle_t a = probe_context_open (task, 1), b = probe_context_open (other, 2);
  assert_unknown (WEFT_REASON_SEVERAL_OPEN);
  probe_context_close (a);
  assert_known (other, 2);
  a = probe_context_open (task, 3);
  probe_handle_t c = probe_context_open (task, 4);
  probe_context_close (a);
  probe_context_close (b);
  assert_unknown (WEFT_REASON_SEVERAL_OPEN); // three were open: no more account
  probe_context_close (c);
  a = probe_context_open (task, 5);
  assert_known (task, 5);
  probe_context_foreign ();
  assert_unknown (WEFT_REASON_SEVERAL_OPEN);
  probe_context_close (a);
  probe_context_use (NULL);
}

/* X3 on a logical thread. */
static void *adapter_loops (void *unused)
{
  slot_value = 0;
  slot_result = 0;
  probe_context_use (&slot);
  probe_context_event_loop ();
  assert_unknown (WEFT_REASON_EVENT_LOOP);
  probe_handle_t a = probe_context_open (task, 1);
  assert_unknown (WEFT_REASON_EVENT_LOOP);
  probe_context_close (a);
  probe_context_event_loop ();
  assert_unknown (WEFT_REASON_EVENT_LOOP);
  a = probe_context_open (task, 2);
  assert_known (task, 2);
  probe_context_event_loop (); // for good
  assert_unknown (WEFT_REASON_EVENT_LOOP);
  probe_context_close (a);
  a = probe_context_open (task, 3);
  assert_unknown (WEFT_REASON_EVENT_LOOP);
  probe_context_close (a);
  probe_context_reset ();
  a = probe_context_open (task, 4);
  assert_known (task, 4);
  probe_context_close (a);
  probe_context_use (NULL);
  return NULL;
}

static void test_adapter_event_loop (void **state)
{
  elsewhere_run (adapter_loops);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, fake_setup)
  const struct CMUnitTest tests[] = {
      TEST (test_open_and_close), TEST (test_several),         TEST (test_more_than_remembered),
      TEST (test_event_loop),     TEST (test_foreign_work),    TEST (test_reset),
      TEST (test_find),           TEST (test_other_thread),    TEST (test_full),
      TEST (test_adapter),        TEST (test_adapter_several), TEST (test_adapter_event_loop),
      TEST (test_queued),
  };
  return cmocka_run_group_tests (tests, NULL, fake_teardown);
}
