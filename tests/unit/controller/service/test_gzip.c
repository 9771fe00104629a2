/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "../../../../controller/service/gzip.h"

#define MOST 300000u

/* What zlib's own reader makes of it, which checks the length and the CRC-32 of the member. */
static void assert_packed (ctl_gzip_t *gzip, unsigned char *data, size_t size, size_t most)
{
  static unsigned char room[MOST + 1];
  const void *packed = NULL;
  size_t packed_size = 0;
  assert_int_equal (ctl_gzip_pack (gzip, data, size, &packed, &packed_size), 0);
  assert_true (packed_size <= most);
  unsigned char *copy = malloc (packed_size);
  memcpy (copy, packed, packed_size);
  z_stream stream = {
      .next_in = copy, .avail_in = (uInt) packed_size, .next_out = room, .avail_out = sizeof room};
  assert_int_equal (inflateInit2 (&stream, MAX_WBITS + 16), Z_OK);
  assert_int_equal (inflate (&stream, Z_FINISH), Z_STREAM_END);
  assert_true (stream.avail_in == 0 && stream.total_out == size && memcmp (room, data, size) == 0);
  inflateEnd (&stream);
  free (copy);
}

static void test_every_message_is_a_whole_member (void **state)
{
  static unsigned char same[MOST], noise[MOST];
  (void) state;
  uint32_t drawn = 1;
  for (size_t n = 0; n < MOST; n++) {
    same[n] = (unsigned char) (n % 50);
    noise[n] = (unsigned char) ((drawn = drawn * 1664525u + 1013904223u) >> 24);
  }
  ctl_gzip_t *gzip = ctl_gzip_new ();
  assert_non_null (gzip);
  assert_packed (gzip, same, MOST, MOST / 50);
  assert_packed (gzip, noise, MOST, MOST + 200); /* nothing to gain */
  assert_packed (gzip, same, 0, 40);
  assert_packed (gzip, same, MOST, MOST / 50); /* of before nothing is left */
  ctl_gzip_destroy (&gzip);
  ctl_gzip_destroy (&gzip);
}

int main (void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test (test_every_message_is_a_whole_member)};
  return cmocka_run_group_tests (tests, NULL, NULL);
}
