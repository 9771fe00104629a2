/* SPDX-License-Identifier: Apache-2.0 */
/* batch: reports of kind opaque, which have more fields than the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../../../common/batch.h"
#include "../../../common/batch_rename.h"
#include "../../../common/status.h"
#include "../../../common/wire.h"

static const weft_batch_head_t head = {
    .instance = {1}, .start = {2}, .boot = {3}, .number = 1, .from_ns = 5, .to_ns = 9};
static uint8_t frame[WEFT_BATCH_MAX], other[WEFT_BATCH_MAX];

static weft_report_t make_report (weft_report_kind_t kind)
{
  weft_report_t report;
  memset (&report, 0, sizeof report);
  report.kind = (uint8_t) kind;
  report.request = 0x1111222233334444ull;
  report.subtask = 0x5555666677778888ull;
  report.start_ns = 600;
  report.end_ns = 700;
  report.cpu_ns = WEFT_NS_NONE;
  report.local = (weft_address_t){{0}, 0, 4, 0};
  report.peer = (weft_address_t){{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 5}, 5432, 4, 0};
  report.name = "postgresql";
  report.name_size = 10;
  report.opaque = (weft_opaque_t){.bytes_out = 1ull << 40, .bytes_in = 7, .wait_ns = 112000000, .calls = 38};
  return report;
}

static size_t write_batch (const weft_report_t *reports, size_t count)
{
  size_t size;
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  assert_int_equal (weft_batch_writer_begin (writer, frame, sizeof frame, &head), 0);
  for (size_t i = 0; i < count; i++)
    assert_int_equal (weft_batch_writer_add (writer, &reports[i]), 0);
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  weft_batch_writer_destroy (&writer);
  return size;
}

static void round_trip_among_others (void **state)
{
  weft_report_t in[] = {make_report (WEFT_REPORT_OPAQUE), make_report (WEFT_REPORT_CAPTURE),
                        make_report (WEFT_REPORT_OPAQUE)},
                out;
  weft_batch_reader_t reader;
  memset (&in[2].peer, 0, sizeof in[2].peer); /* a lookup has none */
  in[2].error = WEFT_ERROR_TIMEOUT;
  in[2].opaque.calls = UINT32_MAX;
  in[2].opaque.bytes_in = UINT64_MAX;
  size_t size = write_batch (in, 3);
  assert_int_equal (weft_batch_reader_begin (&reader, frame, size), 0);
  for (int i = 0; i < 3; i++) {
    assert_int_equal (weft_batch_reader_next (&reader, &out), 1);
    assert_int_equal (out.kind, in[i].kind);
    assert_int_equal (out.error, in[i].error);
    assert_int_equal (out.request, in[i].request);
    assert_int_equal (out.subtask, in[i].subtask);
    assert_memory_equal (&out.peer, &in[i].peer, sizeof out.peer);
    assert_int_equal (out.name_size, 10);
    assert_memory_equal (out.name, "postgresql", 10);
    if (out.kind == WEFT_REPORT_OPAQUE)
      assert_memory_equal (&out.opaque, &in[i].opaque, sizeof out.opaque);
  }
  assert_int_equal (weft_batch_reader_next (&reader, &out), 0);
  assert_int_equal (reader.skipped, 0);
}

/* As PROTOCOL.md draws it: cpu nil, both addresses, so 124 bytes and four numbers more. */
static void layout_as_drawn (void **state)
{
  weft_report_t in = make_report (WEFT_REPORT_OPAQUE);
  size_t size = write_batch (&in, 1);
  const uint8_t *b = frame + 187 + 14;
  assert_memory_equal (b, "\xdc\x00\x14\x04\xce", 5);
  assert_memory_equal (b + 121, "\xcd\0\0\xcf\0\0\0\0\0\0\0\x26\xcf\0\0\x01\0\0\0\0\0", 21);
  assert_memory_equal (b + 142, "\xcf\0\0\0\0\0\0\0\x07\xcf\0\0\0\0\x06\xac\xfc\0", 18);
  assert_int_equal (size, 187 + 14 + 160);
}

/* A newer minor version may append; one field less than there must be is damage. */
static void more_fields_and_fewer (void **state)
{
  weft_report_t in = make_report (WEFT_REPORT_OPAQUE), out;
  weft_batch_reader_t reader;
  size_t size = write_batch (&in, 1);
  frame[187 + 14 + 2] = 21;
  frame[size] = 0xc0;
  assert_int_equal (weft_batch_reader_begin (&reader, frame, size + 1), 0);
  assert_int_equal (weft_batch_reader_next (&reader, &out), 1);
  assert_int_equal (out.opaque.wait_ns, 112000000);
  assert_int_equal (reader.skipped, 1);
  frame[187 + 14 + 2] = 19;
  assert_int_equal (weft_batch_reader_begin (&reader, frame, size - 9), 0);
  assert_int_equal (weft_batch_reader_next (&reader, &out), WEFT_E_MALFORMED);
}

static void replay_renames_the_ids (void **state)
{
  weft_report_t in[] = {make_report (WEFT_REPORT_OPAQUE), make_report (WEFT_REPORT_EMBED)}, out;
  in[1].cpu_ns = 5;
  weft_batch_reader_t reader;
  weft_rename_key_t key = weft_rename_key (1, 2, 3);
  weft_rename_t to = {.instance = {9}, .start = {8}, .boot = {7}, .number = 4, .ids = &key};
  size_t size = write_batch (in, 2);
  memcpy (other, frame, size);
  assert_int_equal (weft_batch_rename (other, size, &to), 0);
  assert_int_equal (weft_batch_reader_begin (&reader, other, size), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal (weft_batch_reader_next (&reader, &out), 1);
    assert_int_equal (out.request, weft_rename_id (&key, in[i].request));
    assert_int_equal (out.subtask, weft_rename_id (&key, in[i].subtask));
    if (i == 0)
      assert_memory_equal (&out.opaque, &in[i].opaque, sizeof out.opaque);
  }
  assert_int_equal (weft_batch_reader_next (&reader, &out), 0);
}

/* What the rest of the traffic is, by protocol: as many as there are, zeros at the end left out. */
static void rest_of_the_traffic (void **state)
{
  weft_up_message_t in = {.kind = WEFT_UP_ACK, .bytes_total = 100, .bytes_spoken = 40}, out;
  void *data;
  size_t size;
  in.rest[WEFT_PROTOCOL_POSTGRESQL] = 50;
  in.rest[WEFT_PROTOCOL_TCP] = 10;
  assert_int_equal (weft_up_pack (&in, &data, &size), 0);
  assert_int_equal (weft_up_unpack (data, size, &out), 0);
  assert_memory_equal (out.rest, in.rest, sizeof in.rest);
  const char *key = memmem (data, size, "\xa4rest", 5);
  assert_non_null (key);
  assert_int_equal ((uint8_t) key[5], 0x90 | (WEFT_PROTOCOL_POSTGRESQL + 1));
  free (data);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (round_trip_among_others), cmocka_unit_test (layout_as_drawn),
      cmocka_unit_test (more_fields_and_fewer),   cmocka_unit_test (replay_renames_the_ids),
      cmocka_unit_test (rest_of_the_traffic),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
