/* SPDX-License-Identifier: Apache-2.0 */
/* reader: hostile memory, the control page, the spool, finding the memory. */
#include "over_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../common/clocks.h"
#include "../../../../common/ids.h"
#include "../../../../common/status.h"

static const shm_filter_t no_filter;

static void write_one (const char *name)
{
  weft_report_t report;
  memset (&report, 0, sizeof report);
  report.kind = WEFT_REPORT_EMBED;
  report.error = WEFT_ERROR_RESET;
  report.reason = WEFT_REASON_NO_CONTEXT;
  report.status = 503;
  report.flags = WEFT_REPORT_ORPHAN;
  report.instruction = 7;
  memset (report.task, 0xab, sizeof report.task);
  report.request = 1;
  report.subtask = 2;
  report.start_ns = 3;
  report.end_ns = 4;
  report.cpu_ns = 5;
  report.local.port = 80;
  report.peer.port = 8080;
  report.name = name;
  report.name_size = (uint16_t) strlen (name);
  assert_int_equal (shm_write (base, TID, &report), 1);
}

static void test_every_field_crosses (void **state)
{
  write_one ("GET /x");
  assert_int_equal (shm_reader_next (reader, &got), 1);
  assert_int_equal (got.kind, WEFT_REPORT_EMBED);
  assert_int_equal (got.error, WEFT_ERROR_RESET);
  assert_int_equal (got.reason, WEFT_REASON_NO_CONTEXT);
  assert_int_equal (got.status, 503);
  assert_int_equal (got.flags, WEFT_REPORT_ORPHAN);
  assert_int_equal (got.instruction, 7);
  assert_int_equal (got.tid, TID);
  assert_int_equal (got.task[15], 0xab);
  assert_true (got.request == 1 && got.subtask == 2 && got.start_ns == 3 && got.end_ns == 4 &&
               got.cpu_ns == 5);
  assert_int_equal (got.local.port, 80);
  assert_int_equal (got.peer.port, 8080);
  assert_int_equal (got.name_size, 6);
  assert_memory_equal (got.name, "GET /x", 6);
  assert_int_equal (shm_reader_next (reader, &got), 0);
  shm_reader_consume (reader);
  assert_true (shm_ring (base, 0)->tail == 128);
}

/* The event lies in our memory: the probe cannot change it after the check. */
static void test_events_are_copies (void **state)
{
  write_one ("GET /before");
  assert_int_equal (shm_reader_next (reader, &got), 1);
  memset (shm_ring_data (base, 0), 'Z', 256);
  assert_memory_equal (got.name, "GET /before", 11);
}

static void expect_corrupt (void)
{
  assert_int_equal (shm_reader_next (reader, &got), 0);
  assert_true (shm_reader_corrupt (reader) == 1);
  shm_reader_consume (reader);
  assert_true (shm_ring (base, 0)->tail == shm_ring (base, 0)->head);
  /* and the ring works again */
  shm_ring (base, 0)->head = shm_ring (base, 0)->tail =
      shm_ring (base, 0)->head / SHM_RING_SIZE * SHM_RING_SIZE;
}

static void test_size_zero (void **state)
{
  write_one ("GET /x");
  first_event ()->size = 0;
  expect_corrupt ();
}

static void test_size_past_the_ring (void **state)
{
  write_one ("GET /x");
  first_event ()->size = 0x7ffffff8;
  expect_corrupt ();
}

static void test_size_not_a_multiple (void **state)
{
  write_one ("GET /x");
  first_event ()->size = 125;
  expect_corrupt ();
}

static void test_size_past_the_head (void **state)
{
  write_one ("GET /x");
  first_event ()->size = 136;
  expect_corrupt ();
}

static void test_name_longer_than_its_record (void **state)
{
  write_one ("GET /x");
  first_event ()->name_size = 60000;
  expect_corrupt ();
}

static void test_unknown_kind (void **state)
{
  write_one ("GET /x");
  first_event ()->kind = 99;
  expect_corrupt ();
}

static void test_padding_that_does_not_reach_the_end (void **state)
{
  write_one ("GET /x");
  first_event ()->kind = 0;
  expect_corrupt ();
}

static void test_head_too_far (void **state)
{
  shm_ring (base, 0)->head = SHM_RING_SIZE + 8;
  assert_int_equal (shm_reader_next (reader, &got), 0);
  assert_true (shm_reader_corrupt (reader) == 1);
}

static void test_head_behind (void **state)
{
  write_one ("GET /x");
  assert_int_equal (shm_reader_next (reader, &got), 1);
  shm_ring (base, 0)->head = 0;
  assert_int_equal (shm_reader_next (reader, &got), 0);
  assert_true (shm_reader_corrupt (reader) == 1);
}

/* The tail in the memory is for the probe to read; a probe that writes it fools itself only. */
static void test_tail_in_memory_is_not_believed (void **state)
{
  write_one ("GET /x");
  shm_ring (base, 0)->tail = 0x123456789;
  assert_int_equal (shm_reader_next (reader, &got), 1);
  shm_reader_consume (reader);
  assert_true (shm_ring (base, 0)->tail == 128);
}

/* Garbage in every ring: no crash, no endless loop, only plausible events out. */
static void test_random_memory (void **state)
{
  weft_ids_t ids = {{1, 2, 3, 4}};
  for (int round = 0; round < 200; round++) {
    for (unsigned n = 0; n < SHM_RINGS; n++) {
      uint64_t *data = (uint64_t *) shm_ring_data (base, n);
      for (unsigned i = 0; i < 64; i++) {
        data[i] = weft_ids_next (&ids);
        if (i % 16 == 0)
          data[i] = (data[i] & 0x3ull << 32) | (120 + 8 * (data[i] % 21));
      }
      uint64_t tail = shm_ring (base, n)->tail;
      shm_ring (base, n)->head = round % 2 ? weft_ids_next (&ids) : tail + 8 * (weft_ids_next (&ids) % 8193);
    }
    for (int i = 0; shm_reader_next (reader, &got); i++) {
      assert_true (i < SHM_RINGS * 600);
      assert_true (got.name_size <= WEFT_NAME_MAX && got.kind >= 1 && got.kind <= 3);
    }
    shm_reader_consume (reader);
  }
  assert_true (shm_reader_corrupt (reader) > 0);
}

/* ---- rewritten while it is read --------------------------------------------- */
static uint32_t scribble;
static void *scribbler (void *arg)
{
  weft_ids_t ids = {{5, 6, 7, 8}};
  while (__atomic_load_n (&scribble, __ATOMIC_RELAXED)) {
    uint64_t r = weft_ids_next (&ids);
    volatile uint64_t *data = (volatile uint64_t *) shm_ring_data (base, 0);
    data[r % 1024] = r >> 16;
    if (r % 8 == 0)
      __atomic_store_n (&shm_ring (base, 0)->head, r >> 40 & ~7ull, __ATOMIC_RELAXED);
  }
  return NULL;
}

static void test_memory_rewritten_under_the_reader (void **state)
{
  pthread_t thread;
  scribble = 1;
  assert_int_equal (pthread_create (&thread, NULL, scribbler, NULL), 0);
  for (int i = 0; i < 200000; i++)
    if (shm_reader_next (reader, &got))
      assert_true (got.name_size <= WEFT_NAME_MAX);
  __atomic_store_n (&scribble, 0, __ATOMIC_RELAXED);
  pthread_join (thread, NULL);
}

static void test_status_is_made_plausible (void **state)
{
  shm_status_t status;
  memset (shm_status (base), 0xff, sizeof (shm_status_t));
  shm_reader_status (reader, &status);
  assert_int_equal (status.state, SHM_STATE_NONE);
  assert_int_equal (status.actions, 0x0f);
  assert_true (status.heartbeat_ns == 0);
}

/* ---- locks --------------------------------------------------------------------- */
/* Rings held by a thread that is gone. */
static void hold_dead (unsigned first, unsigned count)
{
  pid_t child = fork ();
  if (child == 0)
    _exit (0);
  waitpid (child, NULL, 0);
  for (unsigned n = first; n < first + count; n++)
    shm_ring (base, n)->owner = (uint32_t) child;
}

static void test_locks_of_dead_threads_are_broken (void **state)
{
  hold_dead (3, 1);
  shm_ring (base, 4)->owner = (uint32_t) syscall (SYS_gettid);
  assert_int_equal (shm_reader_break_locks (reader, getpid ()), 1);
  assert_int_equal (shm_ring (base, 3)->owner, 0);
  assert_int_equal (shm_ring (base, 4)->owner, syscall (SYS_gettid));
  assert_true (shm_reader_broken (reader) == 1);
}

/* ---- control page ---------------------------------------------------------------- */
static void test_configuration_is_a_seqlock (void **state)
{
  shm_control_t *control = shm_control (base);
  shm_rule_t rule = {.instruction = 5, .sample_num = 1, .sample_den = 10, .match = "POST /x"};
  shm_configure_with (reader, WEFT_REPORT_ROOT, 1, 1, &rule, 1, &no_filter);
  assert_int_equal (control->config_seq, 2);
  assert_int_equal (shm_config_seq (reader), 2);
  assert_int_equal (control->doorbell, 1);
  assert_int_equal (control->command, SHM_COMMAND_CONFIGURE);
  assert_string_equal (control->rules[0].match, "POST /x");
  assert_int_equal (control->rule_count, 1);
  shm_configure_with (reader, 0, 0, 0, NULL, 0, &no_filter);
  assert_int_equal (control->config_seq, 4);
  assert_int_equal (control->rules[0].instruction, 0);
  /* A sidecar that died in the middle of a change left it odd. */
  control->config_seq = 9;
  shm_reader_t *next;
  assert_int_equal (shm_reader_over (base, &next), 0);
  shm_configure_with (next, 1, 0, 0, NULL, 0, &no_filter);
  assert_int_equal (control->config_seq, 10);
  shm_reader_destroy (&next);
}

static void test_a_lease_rings_only_when_it_must (void **state)
{
  shm_control_t *control = shm_control (base);
  uint64_t now = weft_mono_ns ();
  shm_renew_lease (reader, now + 5 * WEFT_NS_PER_S);
  assert_int_equal (control->doorbell, 1); /* the one before had run out */
  shm_renew_lease (reader, now + 6 * WEFT_NS_PER_S);
  assert_int_equal (control->doorbell, 1);
  shm_renew_lease (reader, now + 1 * WEFT_NS_PER_S);
  assert_int_equal (control->doorbell, 2);
}

/* ---- spool ------------------------------------------------------------------------- */
static unsigned seal (uint64_t number, const char *text)
{
  unsigned slot;
  char *data = shm_spool_reserve (reader, &slot);
  assert_non_null (data);
  snprintf (data, WEFT_BATCH_MAX, "%s", text);
  static const uint64_t told[WEFT_LOSS_WIRE_COUNT] = {7};
  shm_spool_seal (reader, slot, number, strlen (text), told);
  return slot;
}

static void test_spool_in_order_until_released (void **state)
{
  uint64_t number;
  size_t size;
  assert_int_equal (shm_spool_used (reader), 0);
  assert_null (shm_spool_next (reader, 0, &number, &size));
  seal (2, "two");
  seal (1, "one!");
  assert_memory_equal (shm_spool_next (reader, 0, &number, &size), "one!", 4);
  assert_true (number == 1 && size == 4);
  assert_memory_equal (shm_spool_next (reader, 1, &number, &size), "two", 3);
  assert_true (shm_spool_last (reader) == 2);
  assert_int_equal (shm_spool_release (reader, 1), 1);
  assert_int_equal (shm_spool_used (reader), 1);
  assert_int_equal (shm_spool_release (reader, 9), 1);
  assert_null (shm_spool_next (reader, 0, &number, &size));
}

static void test_spool_full (void **state)
{
  unsigned slot;
  for (uint64_t n = 1; n <= SHM_SPOOL_SLOTS; n++)
    seal (n, "x");
  assert_null (shm_spool_reserve (reader, &slot));
  assert_int_equal (shm_spool_release (reader, 1), 1);
  assert_non_null (shm_spool_reserve (reader, &slot));
}

static void test_torn_slot_is_dropped (void **state)
{
  uint64_t number;
  size_t size;
  unsigned torn = seal (1, "one");
  seal (2, "two");
  ((uint8_t *) shm_spool (base, torn))[sizeof (shm_spool_t)] ^= 1;
  assert_non_null (shm_spool_next (reader, 0, &number, &size));
  assert_true (number == 2);
  assert_true (shm_reader_corrupt (reader) == 1);
  shm_spool (base, torn)->number = 3;
  shm_spool (base, torn)->size = 0xffffffff;
  assert_non_null (shm_spool_next (reader, 0, &number, &size));
  assert_true (number == 2);
}

static void test_a_new_sidecar_goes_on (void **state)
{
  write_one ("GET /1");
  write_one ("GET /2");
  assert_int_equal (shm_reader_next (reader, &got), 1);
  seal (41, "x");
  shm_reader_t *next;
  assert_int_equal (shm_reader_over (base, &next), 0);
  assert_int_equal (shm_reader_next (next, &got), 1);
  assert_memory_equal (got.name, "GET /2", 6);
  assert_true (shm_spool_last (next) == 41);
  shm_reader_destroy (&next);
}

/* L6: dead before the seal, nothing has happened; dead right behind it, all has. */
static void test_a_sidecar_that_dies_around_the_seal (void **state)
{
  shm_control_t *control = shm_control (base);
  shm_reader_t *next;
  write_one ("GET /1");
  write_one ("GET /2");
  assert_int_equal (shm_reader_next (reader, &got), 1);
  assert_int_equal (shm_reader_over (base, &next), 0);
  assert_int_equal (shm_reader_next (next, &got), 1);
  assert_memory_equal (got.name, "GET /1", 6);
  shm_reader_destroy (&next);
  seal (5, "x");
  for (unsigned n = 0; n < SHM_RINGS; n++)
    shm_ring (base, n)->tail = 0;
  control->batch_last = 4;
  memset (control->lost_reported, 0, sizeof control->lost_reported);
  assert_int_equal (shm_reader_over (base, &next), 0);
  assert_int_equal (shm_reader_next (next, &got), 1);
  assert_memory_equal (got.name, "GET /2", 6);
  assert_true (control->batch_last == 5 && control->lost_reported[0] == 7);
  shm_reader_destroy (&next);
}

/* L6 for broken locks: a batch that is sealed has told of them, one that is not has not. */
static void test_locks_broken_around_the_seal (void **state)
{
  shm_control_t *control = shm_control (base);
  shm_reader_t *next;
  hold_dead (3, 2);
  assert_int_equal (shm_reader_break_locks (reader, getpid ()), 2);
  assert_int_equal (shm_reader_over (base, &next), 0); /* dead before the seal: nobody heard of them */
  assert_true (shm_reader_broken_ever (next) == 0);
  shm_reader_destroy (&next);
  seal (5, "x");
  hold_dead (9, 1);
  assert_int_equal (shm_reader_break_locks (reader, getpid ()), 1);
  control->batch_last = 4; /* dead right behind the seal, the third one untold */
  control->broken_reported = 0;
  assert_int_equal (shm_reader_over (base, &next), 0);
  assert_true (shm_reader_broken_ever (next) == 2 && shm_reader_broken (next) == 0);
  assert_true (control->broken_reported == 2);
  shm_reader_destroy (&next);
  seal (6, "y");
  assert_true (shm_reader_broken_ever (reader) == 3 && control->broken_reported == 3);
}

static void test_what_is_unread_comes_again (void **state)
{
  write_one ("GET /1");
  write_one ("GET /2");
  assert_int_equal (shm_reader_next (reader, &got), 1);
  shm_reader_unread (reader);
  assert_int_equal (shm_reader_next (reader, &got), 1);
  assert_memory_equal (got.name, "GET /1", 6);
  assert_int_equal (shm_reader_next (reader, &got), 1);
  assert_int_equal (shm_reader_next (reader, &got), 0);
}

/* ---- finding it --------------------------------------------------------------------- */
static void test_open_own_process (void **state)
{
  shm_reader_t *self = NULL;
  assert_int_equal (shm_reader_open (getpid (), &self), 0);
  write_one ("GET /seen");
  assert_int_equal (shm_reader_next (self, &got), 1);
  assert_memory_equal (got.name, "GET /seen", 9);
  shm_reader_destroy (&self);
  assert_null (self);
  shm_reader_destroy (&self);
}

/* What is wrong with one memory is said; ret stays untouched. */
static void test_open_refuses (void **state)
{
  shm_reader_t *self = NULL;
  shm_head_t *head = base;
  head->version = SHM_VERSION + 1;
  assert_int_equal (shm_reader_open (getpid (), &self), WEFT_E_VERSION);
  head->version = 0;
  assert_int_equal (shm_reader_open (getpid (), &self), WEFT_E_MALFORMED);
  head->version = 1; /* of an older probe: it has less to say */
  head->total_size = 4096;
  assert_int_equal (shm_reader_open (getpid (), &self), WEFT_E_MALFORMED);
  head->total_size = SHM_SIZE;
  head->pid = 1; /* an inherited one */
  assert_int_equal (shm_reader_open (getpid (), &self), WEFT_E_NOT_FOUND);
  head->pid = (uint32_t) getpid ();
  head->magic = 0;
  assert_int_equal (shm_reader_open (getpid (), &self), WEFT_E_NOT_FOUND);
  assert_null (self);
}

static void test_open_refuses_what_is_not_sealed (void **state)
{
  shm_reader_t *self = NULL;
  shm_head_t copy = *(shm_head_t *) base;
  ((shm_head_t *) base)->magic = 0;
  int other = memfd_create (SHM_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  assert_int_equal (ftruncate (other, SHM_SIZE), 0);
  assert_int_equal (pwrite (other, &copy, sizeof copy, 0), sizeof copy);
  assert_int_equal (shm_reader_open (getpid (), &self), WEFT_E_MALFORMED);
  /* Sealed but of another size: a mapping would end in SIGBUS. */
  assert_int_equal (ftruncate (other, 4096), 0);
  assert_int_equal (fcntl (other, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  assert_int_equal (shm_reader_open (getpid (), &self), WEFT_E_MALFORMED);
  close (other);
  assert_null (self);
}

static void test_open_nobody (void **state)
{
  shm_reader_t *self = NULL;
  pid_t child = fork ();
  if (child == 0)
    _exit (0);
  waitpid (child, NULL, 0);
  assert_int_equal (shm_reader_open (child, &self), WEFT_E_GONE);
  assert_null (self);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, make, unmake)
  const struct CMUnitTest tests[] = {
      TEST (test_every_field_crosses),
      TEST (test_events_are_copies),
      TEST (test_size_zero),
      TEST (test_size_past_the_ring),
      TEST (test_size_not_a_multiple),
      TEST (test_size_past_the_head),
      TEST (test_name_longer_than_its_record),
      TEST (test_unknown_kind),
      TEST (test_padding_that_does_not_reach_the_end),
      TEST (test_head_too_far),
      TEST (test_head_behind),
      TEST (test_tail_in_memory_is_not_believed),
      TEST (test_random_memory),
      TEST (test_memory_rewritten_under_the_reader),
      TEST (test_status_is_made_plausible),
      TEST (test_locks_of_dead_threads_are_broken),
      TEST (test_locks_broken_around_the_seal),
      TEST (test_configuration_is_a_seqlock),
      TEST (test_a_lease_rings_only_when_it_must),
      TEST (test_spool_in_order_until_released),
      TEST (test_spool_full),
      TEST (test_torn_slot_is_dropped),
      TEST (test_a_new_sidecar_goes_on),
      TEST (test_a_sidecar_that_dies_around_the_seal),
      TEST (test_what_is_unread_comes_again),
      TEST (test_open_own_process),
      TEST (test_open_refuses),
      TEST (test_open_refuses_what_is_not_sealed),
      TEST (test_open_nobody),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
