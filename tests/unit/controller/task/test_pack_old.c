/* SPDX-License-Identifier: Apache-2.0 */
/* What version 1 wrote is read, and no more of it than is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../../../common/clocks.h"
#include "../../../../common/status.h"
#include "pack_v1.h"

static weft_ids_t random_ids (void)
{
  const char *given = getenv ("WEFT_SEED");
  uint64_t seed = given ? strtoull (given, NULL, 10) : weft_mono_ns ();
  printf ("WEFT_SEED=%llu\n", (unsigned long long) seed);
  return (weft_ids_t){{seed, seed + 1, seed + 2, 7}};
}

/* Of any content; fields that were appended later are stepped over. */
static void test_what_was_packed_comes_back (void **state)
{
  weft_ids_t random = random_ids ();
  for (uint32_t round = 0; round < 500; round++) {
    ctl_execution_t *self = any_execution (&random, 1 + (uint32_t) (weft_ids_next (&random) % 20)),
                    *back = NULL;
    size_t size;
    void *data = v1_pack (self, round % 3, &size);
    assert_int_equal (ctl_execution_unpack (data, size, &back), 0);
    any_same (self, back);
    ctl_execution_destroy (&back);
    ctl_execution_destroy (&self);
    free (data);
  }
}

/* An opaque leaf of before its calls were told, and a head of before hosts were. */
static void test_the_row_grew_at_its_end (void **state)
{
  ctl_subtask_t leaf = {.id = 11, .hop = CTL_HOP_OPAQUE, .service = "", .vm = "", .name = "tcp", .calls = 38};
  ctl_execution_t self = {.hosts = 1, .origin = "", .subtasks = &leaf, .count = 1}, *back = NULL;
  size_t size;
  uint8_t *data = v1_pack (&self, 0, &size);
  /* the one subtask: an array of 24, the last four of a byte each; behind it three fields of the head */
  uint8_t *array = memmem (data, size, "\x91\xdc\x00\x18\x0b", 5);
  assert_non_null (array);
  array[3] = 20;
  assert_int_equal (data[0], 0x9a);
  data[0] = 0x97;
  assert_int_equal (ctl_execution_unpack (data, size - 4 - 3, &back), 0);
  assert_int_equal (back->subtasks[0].hop, CTL_HOP_OPAQUE);
  assert_int_equal (back->subtasks[0].calls, 0);
  ctl_execution_destroy (&back);
  free (data);
}

/* Every prefix is refused, every flipped bit refused or read, another version named. */
static void test_damaged_bytes (void **state)
{
  weft_ids_t random = random_ids ();
  ctl_execution_t *self = any_execution (&random, 4), *out = NULL;
  size_t size;
  uint8_t *data = v1_pack (self, 1, &size);
  for (size_t at = 0; at < size; at++)
    for (int bit = -1; bit < 8; bit++) {
      size_t left = bit < 0 ? at : size;
      uint8_t *copy = malloc (left + !left);
      memcpy (copy, data, left);
      if (bit >= 0)
        copy[at] ^= (uint8_t) (1u << bit);
      int rc = ctl_pack_old_read (copy, left, &out);
      assert_true (bit >= 0 || rc == WEFT_E_MALFORMED);
      if (rc == 0)
        ctl_execution_destroy (&out);
      free (copy);
    }
  data[1] = 2;
  assert_int_equal (ctl_execution_unpack (data, size, &out), WEFT_E_VERSION);
  ctl_execution_destroy (&self);
  free (data);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_what_was_packed_comes_back),
      cmocka_unit_test (test_the_row_grew_at_its_end),
      cmocka_unit_test (test_damaged_bytes),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
