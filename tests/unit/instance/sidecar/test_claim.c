/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h must follow these */
#include <cmocka.h>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../common/status.h"
#include "../../../../instance/sidecar/claim.h"

static shm_reader_t *memory (uint8_t **ret_base)
{
  shm_reader_t *reader;
  *ret_base = aligned_alloc (4096, (SHM_SIZE + 4095) / 4096 * 4096);
  memset (*ret_base, 0, SHM_SIZE);
  assert_int_equal (shm_reader_over (*ret_base, &reader), 0);
  return reader;
}

static pid_t start_other (const char *name, int ends[2])
{
  char byte = 0;
  int up[2];
  assert_int_equal (pipe (ends), 0);
  assert_int_equal (pipe (up), 0);
  pid_t child = fork ();
  if (child == 0) {
    prctl (PR_SET_NAME, name);
    close (ends[1]);
    ssize_t done = write (up[1], &byte, 1);
    done += read (ends[0], &byte, 1);
    _exit (done == 99);
  }
  assert_int_equal (read (up[0], &byte, 1), 1);
  close (up[0]), close (up[1]), close (ends[0]);
  return child;
}

static void one_sidecar_at_a_time (void **state)
{
  uint8_t *base, uuid[WEFT_UUID_SIZE], again[WEFT_UUID_SIZE];
  int ends[2];
  shm_reader_t *reader = memory (&base);
  pid_t other = start_other (CAR_CLAIM_PROGRAM, ends);
  shm_control (base)->sidecar_pid = (uint64_t) other;
  memset (shm_control (base)->instance, 0x5a, WEFT_UUID_SIZE);
  assert_int_equal (car_claim_holder (reader), other);
  assert_int_equal (car_claim_take (reader, NULL, uuid), WEFT_E_BUSY);
  assert_int_equal (uuid[0], 0x5a);
  close (ends[1]); /* it dies; its successor keeps the uuid */
  assert_int_equal (waitpid (other, NULL, 0), other);
  assert_int_equal (car_claim_holder (reader), 0);
  assert_int_equal (car_claim_take (reader, NULL, again), 0);
  assert_memory_equal (again, uuid, WEFT_UUID_SIZE);
  assert_int_equal (shm_control (base)->sidecar_pid, getpid ());
  car_claim_drop (reader);
  assert_int_equal (shm_control (base)->sidecar_pid, 0);
  shm_reader_destroy (&reader);
  free (base);
}

static void a_pid_used_by_another_program_holds_nothing (void **state)
{
  uint8_t *base, uuid[WEFT_UUID_SIZE];
  int ends[2];
  shm_reader_t *reader = memory (&base);
  pid_t other = start_other ("nginx", ends);
  shm_control (base)->sidecar_pid = (uint64_t) other;
  assert_int_equal (car_claim_holder (reader), 0);
  assert_int_equal (car_claim_take (reader, NULL, uuid), 0);
  shm_control (base)->sidecar_pid = UINT64_MAX; /* scribbled over */
  assert_int_equal (car_claim_holder (reader), 0);
  close (ends[1]);
  assert_int_equal (waitpid (other, NULL, 0), other);
  shm_reader_destroy (&reader);
  free (base);
}

static void a_new_probe_gets_a_new_or_the_given_uuid (void **state)
{
  static const uint8_t zero[WEFT_UUID_SIZE], given[WEFT_UUID_SIZE] = {9, 9};
  uint8_t *base, one[WEFT_UUID_SIZE], two[WEFT_UUID_SIZE];
  shm_reader_t *reader = memory (&base);
  assert_int_equal (car_claim_take (reader, NULL, one), 0);
  assert_memory_not_equal (one, zero, WEFT_UUID_SIZE);
  memset (base + SHM_CONTROL_AT, 0, sizeof (shm_control_t));
  assert_int_equal (car_claim_take (reader, NULL, two), 0);
  assert_memory_not_equal (one, two, WEFT_UUID_SIZE);
  memset (base + SHM_CONTROL_AT, 0, sizeof (shm_control_t));
  assert_int_equal (car_claim_take (reader, given, two), 0);
  assert_memory_equal (two, given, WEFT_UUID_SIZE);
  shm_reader_destroy (&reader);
  free (base);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (one_sidecar_at_a_time),
      cmocka_unit_test (a_pid_used_by_another_program_holds_nothing),
      cmocka_unit_test (a_new_probe_gets_a_new_or_the_given_uuid),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
