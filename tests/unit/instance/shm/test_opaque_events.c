/* SPDX-License-Identifier: Apache-2.0 */
/* writer and reader: events of kind opaque, which carry numbers where others carry a name. */
#include "over_memory.h"

#include <string.h>

static weft_report_t make_report (weft_report_kind_t kind)
{
  weft_report_t report;
  memset (&report, 0, sizeof report);
  report.kind = (uint8_t) kind;
  report.request = 1;
  report.name = "GET /longer/than/that";
  report.name_size = 21;
  report.protocol = WEFT_PROTOCOL_REDIS;
  report.opaque = (weft_opaque_t){.bytes_out = 1, .bytes_in = UINT64_MAX, .wait_ns = 3, .calls = 4};
  return report;
}

static void test_it_crosses (void **state)
{
  weft_report_t report = make_report (WEFT_REPORT_OPAQUE), next = make_report (WEFT_REPORT_EMBED);
  assert_int_equal (shm_write (base, TID, &report), 1);
  assert_int_equal (shm_write (base, TID, &next), 1);
  assert_int_equal (first_event ()->size, 152);
  assert_int_equal (shm_reader_next (reader, &got), 1);
  assert_int_equal (got.kind, WEFT_REPORT_OPAQUE);
  assert_memory_equal (&got.opaque, &report.opaque, sizeof got.opaque);
  assert_int_equal (got.name_size, 5);
  assert_memory_equal (got.name, "redis", 5); /* not what the probe had in `name` */
  assert_int_equal (got.flags, 0);
  assert_int_equal (shm_reader_next (reader, &got), 1);
  assert_int_equal (got.name_size, 21);
  assert_int_equal (shm_reader_next (reader, &got), 0);
  assert_int_equal (shm_reader_corrupt (reader), 0);
}

static void test_a_protocol_that_is_none (void **state)
{
  weft_report_t report = make_report (WEFT_REPORT_OPAQUE);
  report.protocol = WEFT_PROTOCOL_COUNT;
  assert_int_equal (shm_write (base, TID, &report), 1);
  assert_int_equal (shm_reader_next (reader, &got), 1);
  assert_memory_equal (got.name, "unknown", 8);
}

static void test_another_size_is_damage (void **state)
{
  weft_report_t report = make_report (WEFT_REPORT_OPAQUE);
  assert_int_equal (shm_write (base, TID, &report), 1);
  first_event ()->name_size = 8;
  assert_int_equal (shm_reader_next (reader, &got), 0);
  assert_int_equal (shm_reader_corrupt (reader), 1);
  assert_int_equal (shm_write (base, TID, &report), 1);
  shm_event_t *second = (shm_event_t *) (void *) (shm_ring_data (base, 0) + 152);
  second->size = 120;
  assert_int_equal (shm_reader_next (reader, &got), 0);
  assert_int_equal (shm_reader_corrupt (reader), 2);
}

static void test_the_rest_of_the_traffic (void **state)
{
  uint64_t rest[WEFT_PROTOCOL_COUNT];
  shm_rest (base)->bytes[WEFT_PROTOCOL_TLS] = 77;
  shm_reader_rest (reader, rest);
  assert_int_equal (rest[WEFT_PROTOCOL_TLS], 77);
  assert_int_equal (rest[WEFT_PROTOCOL_REDIS], 0);
  /* a place of its own: counters may grow without moving it */
  assert_true ((char *) shm_rest (base) - (char *) base == 0x2800);
}

int main (void)
{
#define CASE(name) cmocka_unit_test_setup_teardown (name, make, unmake)
  const struct CMUnitTest tests[] = {
      CASE (test_it_crosses),
      CASE (test_a_protocol_that_is_none),
      CASE (test_another_size_is_damage),
      CASE (test_the_rest_of_the_traffic),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
