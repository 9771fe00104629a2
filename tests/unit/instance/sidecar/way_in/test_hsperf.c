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

#include "../../../../../common/status.h"
#include "../../../../../instance/sidecar/way_in/hsperf.h"

#define PROLOGUE 32

/* One entry: header, name at 20, data behind it. Returns its length. */
static size_t put_entry (uint8_t *at, const char *name, const char *value, uint8_t type)
{
  uint32_t data_at = 20 + (uint32_t) strlen (name) + 1, count = (uint32_t) strlen (value) + 1;
  uint32_t length = (data_at + count + 7) / 8 * 8;
  uint32_t words[3] = {length, 20, count};
  memset (at, 0, length);
  memcpy (at, words, sizeof words);
  at[12] = type;
  memcpy (at + 16, &data_at, 4);
  memcpy (at + 20, name, strlen (name) + 1);
  memcpy (at + data_at, value, count);
  return length;
}

static size_t make_image (uint8_t *image)
{
  static const uint8_t prologue[8] = {0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1};
  uint32_t first = PROLOGUE, entries = 3;
  memset (image, 0, PROLOGUE);
  memcpy (image, prologue, sizeof prologue);
  memcpy (image + 24, &first, 4);
  memcpy (image + 28, &entries, 4);
  size_t at = PROLOGUE;
  at += put_entry (image + at, "java.rt.vmFlags", "-Xmx1g", 'B');
  at += put_entry (image + at, "sun.rt.jvmCapabilities", "1100000000", 'B');
  at += put_entry (image + at, "sun.os.hrt.frequency", "12345678", 'J');
  return at;
}

static void finds_strings (void **state)
{
  uint8_t image[512];
  char out[32];
  size_t size = make_image (image);
  assert_int_equal (car_hsperf_string (image, size, "sun.rt.jvmCapabilities", out, sizeof out), 0);
  assert_string_equal (out, "1100000000");
  assert_int_equal (car_hsperf_string (image, size, "sun.rt.jvmCapabilities", out, 4), 0);
  assert_string_equal (out, "110");
  assert_int_equal (car_hsperf_string (image, size, "sun.rt.jvm", out, sizeof out), WEFT_E_NOT_FOUND);
  assert_int_equal (car_hsperf_string (image, size, "sun.os.hrt.frequency", out, sizeof out),
                    WEFT_E_MALFORMED); /* no string */
}

/* Every cut and every byte set to 0xff: an answer or a refusal, nothing else.
 * The image ends where its allocation ends, so that a sanitizer sees more. */
static void damage_is_survived (void **state)
{
  uint8_t image[512];
  char out[16];
  size_t size = make_image (image);
  for (size_t cut = 0; cut < size; cut++) {
    uint8_t *copy = malloc (cut ? cut : 1);
    memcpy (copy, image, cut);
    int status = car_hsperf_string (copy, cut, "sun.rt.jvmCapabilities", out, sizeof out);
    assert_true (status <= 0);
    free (copy);
  }
  for (size_t at = 0; at < size; at++) {
    uint8_t *copy = malloc (size);
    memcpy (copy, image, size);
    copy[at] = 0xff;
    int status = car_hsperf_string (copy, size, "sun.rt.jvmCapabilities", out, sizeof out);
    assert_true (status <= 0);
    free (copy);
  }
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (finds_strings),
      cmocka_unit_test (damage_is_survived),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
