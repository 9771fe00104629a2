/* SPDX-License-Identifier: Apache-2.0 */
/* writer: the memory it makes, the rings it fills, what it counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../../common/status.h"
#include "../../../../instance/shm/reader.h"
#include "../../../../instance/shm/writer.h"

#define TID 4711u

static void *base;
static int fd;

static int make (void **state)
{
  return shm_create (NULL, "jvm", "17.0.15", 0x1234000, &base, &fd);
}

static int unmake (void **state)
{
  munmap (base, SHM_SIZE);
  close (fd);
  return 0;
}

static weft_report_t report_named (const char *name, size_t size)
{
  weft_report_t report;
  memset (&report, 0, sizeof report);
  report.kind = WEFT_REPORT_CAPTURE;
  report.request = 0x1122334455667788ull;
  report.name = name;
  report.name_size = (uint16_t) size;
  return report;
}

static void test_memory_is_sealed_and_named (void **state)
{
  struct stat st;
  char path[64], link[64] = {0};
  assert_int_equal (fstat (fd, &st), 0);
  assert_int_equal (st.st_size, SHM_SIZE);
  int seals = fcntl (fd, F_GET_SEALS);
  assert_int_equal (seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
                    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  assert_int_equal (ftruncate (fd, 4096), -1);
  assert_true (fd >= 100);
  assert_int_equal (fcntl (fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  snprintf (path, sizeof path, "/proc/self/fd/%d", fd);
  assert_true (readlink (path, link, sizeof link - 1) > 0);
  assert_string_equal (link, "/memfd:weft-probe (deleted)");
  const shm_head_t *head = base;
  assert_true (head->magic == SHM_MAGIC);
  assert_int_equal (head->pid, getpid ());
  assert_int_equal (head->total_size, 0x811000);
  assert_string_equal (head->vm, "jvm");
  assert_string_equal (head->vm_version, "17.0.15");
  assert_true (head->probe_base == 0x1234000);
}

static void test_every_life_has_its_own_start_id (void **state)
{
  void *other;
  int other_fd;
  assert_int_equal (shm_create (NULL, "", "", 0, &other, &other_fd), 0);
  assert_memory_not_equal (((shm_head_t *) base)->start, ((shm_head_t *) other)->start, WEFT_UUID_SIZE);
  munmap (other, SHM_SIZE);
  close (other_fd);
}

/* ftruncate past the limit would be SIGXFSZ, which ends a process. */
static void test_a_file_size_limit_is_an_error_not_a_signal (void **state)
{
  struct rlimit before, low;
  void *other = NULL;
  int other_fd = -1;
  assert_int_equal (getrlimit (RLIMIT_FSIZE, &before), 0);
  low = before;
  low.rlim_cur = 4096;
  assert_int_equal (setrlimit (RLIMIT_FSIZE, &low), 0);
  errno = 77;
  assert_int_equal (shm_create (NULL, "", "", 0, &other, &other_fd), WEFT_E_IO);
  assert_int_equal (errno, 77);
  assert_int_equal (setrlimit (RLIMIT_FSIZE, &before), 0);
  assert_null (other);
  assert_int_equal (other_fd, -1);
}

static void test_event_bytes (void **state)
{
  weft_report_t report = report_named ("GET /a/b/c", 10);
  assert_int_equal (shm_write (base, TID, &report), 1);
  unsigned n = TID % SHM_RINGS; /* 4711 mod 64 = 39 */
  assert_int_equal (n, 39);
  shm_ring_t *ring = shm_ring (base, n);
  assert_true (ring->head == 136); /* 120 + 10, up to a multiple of 8 */
  assert_true (ring->written == 1);
  assert_int_equal (ring->owner, 0);
  const uint8_t *data = shm_ring_data (base, n);
  const shm_event_t *event = (const shm_event_t *) data;
  assert_int_equal (event->size, 136);
  assert_int_equal (event->tid, TID);
  assert_int_equal (event->name_size, 10);
  assert_memory_equal (data + 120, "GET /a/b/c\0\0\0\0\0\0", 16);
}

static void test_long_name_is_cut_and_flagged (void **state)
{
  char name[WEFT_NAME_MAX + 40];
  memset (name, 'x', sizeof name);
  weft_report_t report = report_named (name, sizeof name);
  assert_int_equal (shm_write (base, TID, &report), 1);
  shm_reader_t *reader;
  assert_int_equal (shm_reader_over (base, &reader), 0);
  weft_report_t got;
  assert_int_equal (shm_reader_next (reader, &got), 1);
  assert_int_equal (got.name_size, WEFT_NAME_MAX);
  assert_true (got.flags & WEFT_REPORT_CUT);
  shm_reader_destroy (&reader);
}

/* 65,536 = 546 records of 120 bytes and 16 over: the 547th needs a padding
 * record of 16 bytes and starts at 0. All rings but one are borrowed. */
static void test_a_record_never_wraps (void **state)
{
  for (unsigned n = 1; n < SHM_RINGS; n++)
    shm_ring (base, n)->owner = 1;
  weft_report_t report = report_named ("", 0);
  for (int i = 0; i < 546; i++)
    assert_int_equal (shm_write (base, TID, &report), 1);
  shm_ring_t *ring = shm_ring (base, 0);
  assert_true (ring->head == 65520);
  /* Full: padding and record would need 136 of 16 free bytes. */
  assert_int_equal (shm_write (base, TID, &report), 0);
  assert_true (shm_status (base)->lost[WEFT_LOSS_RING_FULL] == 1);
  assert_true (shm_status (base)->lost[WEFT_LOSS_RING_BUSY] == 0);
  ring->tail = 120; /* exactly 136 free */
  assert_int_equal (shm_write (base, TID, &report), 1);
  assert_true (ring->head == 65520 + 16 + 120);
  const shm_event_t *padding = (const shm_event_t *) (shm_ring_data (base, 0) + 65520);
  assert_int_equal (padding->size, 16);
  assert_int_equal (padding->kind, 0);
}

static void test_padding_of_eight_bytes (void **state)
{
  for (unsigned n = 1; n < SHM_RINGS; n++)
    shm_ring (base, n)->owner = 1;
  shm_ring_t *ring = shm_ring (base, 0);
  ring->head = ring->tail = SHM_RING_SIZE - 8;
  weft_report_t report = report_named ("GET /", 5);
  assert_int_equal (shm_write (base, TID, &report), 1);
  assert_true (ring->head == SHM_RING_SIZE + 128);
  const shm_event_t *padding = (const shm_event_t *) (shm_ring_data (base, 0) + SHM_RING_SIZE - 8);
  assert_int_equal (padding->size, 8);
  shm_reader_t *reader;
  assert_int_equal (shm_reader_over (base, &reader), 0);
  weft_report_t got;
  assert_int_equal (shm_reader_next (reader, &got), 1);
  assert_memory_equal (got.name, "GET /", 5);
  assert_int_equal (shm_reader_next (reader, &got), 0);
  assert_true (shm_reader_corrupt (reader) == 0);
  shm_reader_destroy (&reader);
}

static void test_all_rings_busy (void **state)
{
  for (unsigned n = 0; n < SHM_RINGS; n++)
    shm_ring (base, n)->owner = 1;
  weft_report_t report = report_named ("GET /", 5);
  errno = 33;
  assert_int_equal (shm_write (base, TID, &report), 0);
  assert_int_equal (errno, 33);
  assert_true (shm_status (base)->lost[WEFT_LOSS_RING_BUSY] == 1);
  assert_int_equal (shm_quiesce (base, 500), WEFT_E_TIMEOUT);
  for (unsigned n = 0; n < SHM_RINGS; n++)
    shm_ring (base, n)->owner = 0;
  assert_int_equal (shm_quiesce (base, 500), 0);
}

/* The reader's words may hold anything: no write outside the ring. */
static void test_hostile_tail_and_head (void **state)
{
  weft_report_t report = report_named ("GET /", 5);
  for (unsigned n = 0; n < SHM_RINGS; n++)
    shm_ring (base, n)->tail = UINT64_MAX - 5;
  assert_int_equal (shm_write (base, TID, &report), 1); /* 6 used: room */
  for (unsigned n = 0; n < SHM_RINGS; n++)
    shm_ring (base, n)->tail = 1ull << 40;
  assert_int_equal (shm_write (base, TID, &report), 0);
  for (unsigned n = 0; n < SHM_RINGS; n++) {
    shm_ring (base, n)->head = SHM_RING_SIZE * 9ull - 3;
    shm_ring (base, n)->tail = SHM_RING_SIZE * 9ull - 3;
  }
  uint64_t spool_before = shm_spool (base, 0)->number;
  assert_int_equal (shm_write (base, TID, &report), 1);
  assert_true (shm_spool (base, 0)->number == spool_before);
}

static void test_nothing_after_left (void **state)
{
  weft_report_t report = report_named ("GET /", 5);
  __atomic_store_n (&shm_status (base)->state, SHM_STATE_LEFT, __ATOMIC_SEQ_CST);
  assert_int_equal (shm_write (base, TID, &report), 0);
  for (unsigned n = 0; n < SHM_RINGS; n++) {
    assert_true (shm_ring (base, n)->head == 0);
    assert_int_equal (shm_ring (base, n)->owner, 0);
  }
}

static void test_retired_memory_is_nobodys (void **state)
{
  void *view = mmap (NULL, SHM_SIZE, PROT_READ, MAP_SHARED, fd, 0);
  assert_ptr_not_equal (view, MAP_FAILED);
  weft_report_t report = report_named ("GET /", 5);
  assert_int_equal (shm_retire (base), 0);
  assert_int_equal (shm_write (base, TID, &report), 1); /* a late writer survives */
  for (unsigned n = 0; n < SHM_RINGS; n++)
    assert_true (shm_ring (view, n)->head == 0);
  munmap (view, SHM_SIZE);
  /* and the range takes the next memory */
  void *again;
  int again_fd;
  assert_int_equal (shm_create (base, "", "", 0, &again, &again_fd), 0);
  assert_ptr_equal (again, base);
  assert_true (((shm_head_t *) base)->magic == SHM_MAGIC);
  close (again_fd);
}

/* ---- many writers, one reader ------------------------------------------------ */
#define WRITERS 8
#define EVENTS  20000

static uint64_t written_by[WRITERS];
static uint32_t running;

static void *write_many (void *arg)
{
  uintptr_t me = (uintptr_t) arg;
  char name[8] = "w0";
  name[1] = (char) ('0' + me);
  weft_report_t report = report_named (name, 2);
  for (uint64_t i = 0; i < EVENTS; i++) {
    report.request = me << 32 | i;
    written_by[me] += (uint64_t) shm_write (base, (uint32_t) (100 + me), &report);
  }
  __atomic_sub_fetch (&running, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static void test_written_is_read_plus_lost (void **state)
{
  pthread_t threads[WRITERS];
  uint64_t last[WRITERS], read_of[WRITERS] = {0};
  memset (written_by, 0, sizeof written_by);
  memset (last, 0xff, sizeof last);
  running = WRITERS;
  shm_reader_t *reader;
  assert_int_equal (shm_reader_over (base, &reader), 0);
  for (uintptr_t i = 0; i < WRITERS; i++)
    assert_int_equal (pthread_create (&threads[i], NULL, write_many, (void *) i), 0);
  weft_report_t got;
  for (int left = 1; left;) {
    left = __atomic_load_n (&running, __ATOMIC_SEQ_CST) != 0;
    while (shm_reader_next (reader, &got)) {
      uint64_t who = got.request >> 32;
      assert_true (who < WRITERS && got.name_size == 2 && got.name[1] == (char) ('0' + who));
      assert_true (got.tid == 100 + who);
      read_of[who]++;
    }
    shm_reader_consume (reader);
  }
  uint64_t read = 0, written = 0, heads = 0;
  for (int i = 0; i < WRITERS; i++) {
    pthread_join (threads[i], NULL);
    assert_true (read_of[i] == written_by[i]);
    read += read_of[i];
    written += written_by[i];
  }
  for (unsigned n = 0; n < SHM_RINGS; n++)
    heads += shm_ring (base, n)->written;
  const uint64_t *lost = shm_status (base)->lost;
  assert_true (heads == written);
  assert_true (read + lost[WEFT_LOSS_RING_FULL] + lost[WEFT_LOSS_RING_BUSY] == WRITERS * EVENTS);
  assert_true (shm_reader_corrupt (reader) == 0);
  shm_reader_destroy (&reader);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, make, unmake)
  const struct CMUnitTest tests[] = {
      TEST (test_memory_is_sealed_and_named),
      TEST (test_every_life_has_its_own_start_id),
      TEST (test_a_file_size_limit_is_an_error_not_a_signal),
      TEST (test_event_bytes),
      TEST (test_long_name_is_cut_and_flagged),
      TEST (test_a_record_never_wraps),
      TEST (test_padding_of_eight_bytes),
      TEST (test_all_rings_busy),
      TEST (test_hostile_tail_and_head),
      TEST (test_nothing_after_left),
      TEST (test_retired_memory_is_nobodys),
      TEST (test_written_is_read_plus_lost),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
