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

#include "../../../../common/status.h"
#include "../../../../controller/service/recording.h"

#define FRAMES 5

static char directory[64], path[96];
static const size_t size_of[FRAMES] = {1, 7, 8, 100, 300};
static uint8_t whole[4096];
static size_t whole_size;

static void fill (uint8_t *frame, int n)
{
  memset (frame, 0x40 + n, size_of[n]);
}

static int setup (void **state)
{
  ctl_recording_writer_t *writer = NULL;
  uint8_t frame[300];
  strcpy (directory, "/tmp/weft-recording-XXXXXX");
  if (!mkdtemp (directory))
    return -1;
  snprintf (path, sizeof path, "%s/r.weftr", directory);
  assert_int_equal (ctl_recording_create (path, &writer), 0);
  for (int n = 0; n < FRAMES; n++) {
    fill (frame, n);
    assert_int_equal (ctl_recording_frame (writer, frame, size_of[n]), 0);
  }
  assert_int_equal (ctl_recording_finish (&writer), 0);
  FILE *file = fopen (path, "rb");
  whole_size = fread (whole, 1, sizeof whole, file);
  fclose (file);
  return 0;
}

static int teardown (void **state)
{
  unlink (path);
  return rmdir (directory);
}

static void put (const void *data, size_t size)
{
  FILE *file = fopen (path, "wb");
  assert_int_equal (fwrite (data, 1, size, file), size);
  fclose (file);
}

/* Which of the frames can be read, as bits; each must be as it was written. */
static unsigned readable (uint64_t *ret_damaged, uint64_t *ret_bytes)
{
  ctl_recording_t *recording = NULL;
  uint8_t frame[300];
  unsigned found = 0;
  const void *data;
  size_t size;
  assert_int_equal (ctl_recording_open (path, &recording), 0);
  while (ctl_recording_next (recording, &data, &size) == 1) {
    int n = ((const uint8_t *) data)[0] - 0x40;
    assert_in_range (n, 0, FRAMES - 1);
    assert_int_equal (size, size_of[n]);
    fill (frame, n);
    assert_memory_equal (data, frame, size);
    assert_true (found < 1u << n); /* in order */
    found |= 1u << n;
  }
  *ret_damaged = ctl_recording_stats (recording)->damaged;
  *ret_bytes = ctl_recording_stats (recording)->damaged_bytes;
  ctl_recording_close (&recording);
  return found;
}

static size_t end_of (int frame)
{
  size_t at = sizeof (ctl_recording_head_t);
  for (int n = 0; n <= frame; n++)
    at += ctl_record_total (size_of[n]);
  return at;
}

static void test_what_was_written_is_read (void **state)
{
  uint64_t damaged, bytes;
  put (whole, whole_size);
  assert_int_equal (whole_size, end_of (FRAMES - 1));
  assert_int_equal (readable (&damaged, &bytes), (1u << FRAMES) - 1);
  assert_int_equal (damaged, 0);
}

/* F1, at every byte. */
static void test_torn_tail (void **state)
{
  for (size_t cut = sizeof (ctl_recording_head_t); cut < whole_size; cut++) {
    uint64_t damaged, bytes;
    unsigned want = 0;
    size_t sound = sizeof (ctl_recording_head_t);
    for (int n = 0; n < FRAMES && end_of (n) <= cut; n++) {
      want |= 1u << n;
      sound = end_of (n);
    }
    put (whole, cut);
    assert_int_equal (readable (&damaged, &bytes), want);
    assert_int_equal (damaged, cut > sound);
    assert_int_equal (bytes, cut - sound);
  }
}

/* F2, at every bit behind the head: at most the record that it is in is lost. */
static void test_flipped_bit (void **state)
{
  static uint8_t spoilt[sizeof whole];
  for (size_t bit = sizeof (ctl_recording_head_t) * 8; bit < whole_size * 8; bit++) {
    uint64_t damaged, bytes;
    int hit = 0;
    while (end_of (hit) <= bit / 8)
      hit++;
    size_t begin = end_of (hit) - ctl_record_total (size_of[hit]), in = bit / 8 - begin;
    int covered = in < 12 || (in >= 16 && in < 16 + size_of[hit]);
    memcpy (spoilt, whole, whole_size);
    spoilt[bit / 8] ^= (uint8_t) (1u << bit % 8);
    put (spoilt, whole_size);
    unsigned all = (1u << FRAMES) - 1;
    assert_int_equal (readable (&damaged, &bytes), covered ? all & ~(1u << hit) : all);
    assert_int_equal (damaged, covered);
    assert_int_equal (bytes, covered ? ctl_record_total (size_of[hit]) : 0);
  }
}

static void test_a_spoilt_head_is_refused (void **state)
{
  static uint8_t spoilt[sizeof whole];
  ctl_recording_t *recording = NULL;
  for (size_t at = 0; at < sizeof (ctl_recording_head_t); at++) {
    memcpy (spoilt, whole, whole_size);
    spoilt[at] ^= 0x10;
    put (spoilt, whole_size);
    assert_true (ctl_recording_open (path, &recording) < 0);
    put (whole, at);
    assert_int_equal (ctl_recording_open (path, &recording), WEFT_E_MALFORMED);
  }
  assert_int_equal (ctl_recording_open ("/nonexistent", &recording), WEFT_E_IO);
  assert_int_equal (ctl_recording_open ("/tmp", &recording), WEFT_E_MALFORMED);
  memcpy (spoilt, whole, whole_size);
  spoilt[4] = 2; /* the checksum does not cover it */
  put (spoilt, whole_size);
  assert_int_equal (ctl_recording_open (path, &recording), WEFT_E_VERSION);
}

/* F3 */
static void test_nothing_is_written_over (void **state)
{
  ctl_recording_writer_t *writer = NULL;
  put (whole, whole_size);
  assert_int_equal (ctl_recording_create (path, &writer), WEFT_E_BUSY);
  uint64_t damaged, bytes;
  assert_int_equal (readable (&damaged, &bytes), (1u << FRAMES) - 1);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_what_was_written_is_read),
      cmocka_unit_test (test_torn_tail),
      cmocka_unit_test (test_flipped_bit),
      cmocka_unit_test (test_a_spoilt_head_is_refused),
      cmocka_unit_test (test_nothing_is_written_over),
  };
  return cmocka_run_group_tests (tests, setup, teardown);
}
