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

#include <msgpack.h>

#include "../../../common/status.h"
#include "../../../common/wire.h"

static weft_up_message_t make_up (weft_up_kind_t kind)
{
  weft_up_message_t m;
  memset (&m, 0, sizeof (m));
  m.kind = kind;
  memset (m.instance, 0x11, 16);
  memset (m.start, 0x22, 16);
  return m;
}

static void up_round_trip (weft_up_message_t *in)
{
  void *data;
  size_t size;
  weft_up_message_t out;
  weft_up_kind_t kind;
  assert_int_equal (weft_up_pack (in, &data, &size), 0);
  assert_int_equal (weft_up_kind (data, size, &kind), 0);
  assert_int_equal (kind, in->kind);
  assert_int_equal (weft_up_unpack (data, size, &out), 0);
  assert_memory_equal (&out, in, sizeof (out));
  free (data);
}

static void hello_ack_bye (void **state)
{
  weft_up_message_t m = make_up (WEFT_UP_HELLO);
  m.epoch = 7;
  memset (m.boot, 0x33, 16);
  m.pid = 4188;
  strcpy (m.vm, "jvm");
  strcpy (m.version, "HotSpot 17.0.15");
  strcpy (m.service, "orders");
  strcpy (m.host, "node-3");
  strcpy (m.listens, ":8080 :8081");
  up_round_trip (&m);
  m = make_up (WEFT_UP_ACK);
  m.epoch = UINT64_MAX;
  m.active = WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE;
  m.bytes_total = 1ull << 40;
  m.bytes_spoken = 5;
  m.connections_given_up = 6;
  m.requests_bare = 7;
  m.events_written = 8;
  m.requests_in = 412;
  m.requests_unmatched = 411;
  m.requests_excluded = 6;
  up_round_trip (&m);
  m = make_up (WEFT_UP_BYE);
  m.bytes_total = 9;
  m.slots_written = 57;
  m.slots_restored = 56;
  m.slots_foreign = 1;
  m.threads_left = 2;
  strcpy (m.reason, "detach");
  up_round_trip (&m);
}

/* What a kind does not carry does not travel. */
static void ack_carries_no_names (void **state)
{
  weft_up_message_t m = make_up (WEFT_UP_ACK), out;
  void *data;
  size_t size;
  strcpy (m.service, "orders");
  m.pid = 5;
  assert_int_equal (weft_up_pack (&m, &data, &size), 0);
  assert_null (memmem (data, size, "orders", 6));
  assert_int_equal (weft_up_unpack (data, size, &out), 0);
  assert_int_equal (out.pid, 0);
  free (data);
}

static void up_kinds_and_versions (void **state)
{
  static const struct {
    const char *bytes;
    size_t size;
    int status;
  } row[] = {
#define ROW(text, status) {text, sizeof (text) - 1, status}
      ROW ("\x94\x01\x00\x01\x80", 0),
      ROW ("\x9d\x01\x05\x04", 0), /* only the front is looked at */
      ROW ("\xdd\x00\x00\x00\x04\xcd\x00\x01\x00\xcc\x03", 0),
      ROW ("\x94\x01\x00\x05\x80", WEFT_E_UNSUPPORTED),
      ROW ("\x94\x01\x00\x00\x80", WEFT_E_UNSUPPORTED),
      ROW ("\x94\x02\x00\x01\x80", WEFT_E_VERSION),
      ROW ("\x94\x02\x00\xc1", WEFT_E_VERSION),
      ROW ("\x94\x00\x00\x01\x80", WEFT_E_MALFORMED),
      ROW ("\x92\x01\x00", WEFT_E_MALFORMED),
      ROW ("\x94\x01\x00", WEFT_E_MALFORMED),
      ROW ("\x94\xff\x00\x01", WEFT_E_MALFORMED),
      ROW ("\x80", WEFT_E_MALFORMED),
      ROW ("GET / HTTP/1.1\r\n\r\n", WEFT_E_MALFORMED),
      ROW ("", WEFT_E_MALFORMED),
#undef ROW
  };
  for (size_t i = 0; i < sizeof (row) / sizeof (row[0]); i++) {
    weft_up_kind_t kind = (weft_up_kind_t) 77;
    int status = weft_up_kind (row[i].bytes, row[i].size, &kind);
    if (status != row[i].status)
      fail_msg ("row %zu gives %d", i, status);
    assert_int_equal (kind == (weft_up_kind_t) 77, status < 0);
  }
}

#define ID                                                                                                   \
  "\xc4\x10"                                                                                                 \
  "iiiiiiiiiiiiiiii"
#define BYE_FRONT "\xa8instance" ID "\xa5start" ID

static void up_keys (void **state)
{
  static const struct {
    const char *bytes;
    size_t size;
    int status;
  } row[] = {
#define ROW(text, status) {text, sizeof (text) - 1, status}
      ROW ("\x94\x01\x00\x03\x82" BYE_FRONT, 0),
      /* a newer minor: a key more, a field more after the map */
      ROW ("\x95\x01\x09\x03\x83" BYE_FRONT "\xa5newer\x92\xc0\x81\x01\x02\xc3", 0),
      ROW ("\x94\x01\x00\x03\x81\xa8instance" ID, WEFT_E_MALFORMED),                      /* start missing */
      ROW ("\x94\x01\x00\x03\x82\xa8instance" ID "\xa5start\x01", WEFT_E_MALFORMED),      /* type */
      ROW ("\x94\x01\x00\x03\x82\xa8instance" ID "\xa5start\xc4\x01i", WEFT_E_MALFORMED), /* size */
      ROW ("\x94\x01\x00\x03\x83" BYE_FRONT "\xadslots_foreign\xff", WEFT_E_MALFORMED),   /* negative */
      ROW ("\x94\x01\x00\x03\x83" BYE_FRONT "\xadslots_foreign\xcf\0\0\0\1\0\0\0\0",
           WEFT_E_MALFORMED),                                          /* 2^32 */
      ROW ("\x94\x01\x00\x03\x82" BYE_FRONT "\xc0", WEFT_E_MALFORMED), /* bytes after the end */
      ROW ("\x94\x01\x00\x03\xdf\xff\xff\xff\xff", WEFT_E_MALFORMED),  /* a count that nothing bears out */
      ROW ("\x93\x01\x00\x03", WEFT_E_MALFORMED),                      /* no map */
      ROW ("\x94\x01\x00\x03\x90", WEFT_E_MALFORMED),
      ROW ("\x94\x01\x00\x04\x80", WEFT_E_UNSUPPORTED), /* a batch: not ours to read */
#undef ROW
  };
  for (size_t i = 0; i < sizeof (row) / sizeof (row[0]); i++) {
    weft_up_message_t m;
    memset (&m, 0x5a, sizeof (m));
    int status = weft_up_unpack (row[i].bytes, row[i].size, &m);
    if (status != row[i].status)
      fail_msg ("row %zu gives %d", i, status);
    assert_int_equal (m.instance[0], status < 0 ? 0x5a : 'i');
  }
}

static void texts_are_cut (void **state)
{
  msgpack_sbuffer buffer;
  msgpack_packer pk;
  weft_up_message_t m;
  char text[100];
  memset (text, 'r', sizeof (text));
  msgpack_sbuffer_init (&buffer);
  msgpack_packer_init (&pk, &buffer, msgpack_sbuffer_write);
  msgpack_sbuffer_write (&buffer, "\x94\x01\x00\x03\x83" BYE_FRONT,
                         sizeof ("\x94\x01\x00\x03\x83" BYE_FRONT) - 1);
  msgpack_pack_str_with_body (&pk, "reason", 6);
  msgpack_pack_str_with_body (&pk, text, sizeof (text));
  assert_int_equal (weft_up_unpack (buffer.data, buffer.size, &m), 0);
  assert_int_equal (strlen (m.reason), sizeof (m.reason) - 1);
  msgpack_sbuffer_destroy (&buffer);
}

/* ---- instruction bus ------------------------------------------------------ */
static weft_instruction_t *make_instructions (void)
{
  weft_instruction_t *in = calloc (2, sizeof (*in));
  in[0].number = 3;
  in[0].actions = WEFT_ACTION_ROOT | WEFT_ACTION_EMBED;
  in[0].selector_count = 2;
  strcpy (in[0].selectors[0], "service=front,vm=cpython");
  strcpy (in[0].selectors[1], "pid=17");
  strcpy (in[0].match, "POST /checkout");
  in[0].sample_num = 1;
  in[0].sample_den = 100;
  in[0].max_roots = 1000;
  in[0].carrier = WEFT_CARRIER_WEFT;
  in[0].embed_to = WEFT_EMBED_TO_ANY;
  in[0].lease_ms = 5000;
  in[0].networks[0] = (weft_network_t){{[10] = 0xff, [11] = 0xff, [12] = 10}, 104};
  in[0].networks[1] = (weft_network_t){{0xfd}, 8};
  in[0].network_count = 2;
  strcpy (in[0].header, "x-debug");
  strcpy (in[0].excludes[0], "/health");
  strcpy (in[0].excludes[1], "GET /admin/**");
  in[0].exclude_count = 2;
  in[1].number = 4;
  in[1].actions = WEFT_ACTION_CAPTURE;
  in[1].sample_num = in[1].sample_den = 1;
  in[1].lease_ms = 2000;
  return in;
}

static void bus_round_trips (void **state)
{
  for (weft_bus_kind_t kind = WEFT_BUS_HEARTBEAT; kind <= WEFT_BUS_LEAVE; kind++) {
    weft_bus_message_t in, out;
    void *data;
    size_t size;
    memset (&in, 0, sizeof (in));
    in.kind = kind;
    memset (in.controller, 0x44, 16);
    if (kind == WEFT_BUS_HEARTBEAT || kind == WEFT_BUS_STATE)
      in.epoch = 8;
    if (kind == WEFT_BUS_HEARTBEAT || kind == WEFT_BUS_STATE) {
      memset (in.boot, 0x66, 16);
      in.sent_ns = 1700000000000000000ull;
    }
    if (kind == WEFT_BUS_HEARTBEAT)
      in.seq = 9;
    if (kind == WEFT_BUS_BATCH_ACK) {
      in.number = 12;
      memset (in.start, 0x55, 16);
    }
    if (kind == WEFT_BUS_STATE) {
      in.instructions = make_instructions ();
      in.instruction_count = 2;
    }
    assert_int_equal (weft_bus_pack (&in, &data, &size), 0);
    assert_int_equal (weft_bus_unpack (data, size, &out), 0);
    if (kind == WEFT_BUS_STATE) {
      assert_int_equal (out.instruction_count, 2);
      assert_memory_equal (out.instructions, in.instructions, 2 * sizeof (*in.instructions));
      free (in.instructions);
      in.instructions = out.instructions;
    }
    assert_memory_equal (&out, &in, sizeof (in));
    weft_bus_clear (&out);
    weft_bus_clear (&out);
    free (data);
  }
}

/* Every truncation and every value of every byte of a state, at exact size. */
static void bus_hostile_bytes (void **state)
{
  weft_bus_message_t in, out;
  void *data;
  size_t size;
  memset (&in, 0, sizeof (in));
  in.kind = WEFT_BUS_STATE;
  in.instructions = make_instructions ();
  in.instruction_count = 2;
  assert_int_equal (weft_bus_pack (&in, &data, &size), 0);
  free (in.instructions);
  for (size_t cut = 0; cut < size; cut++) {
    uint8_t *exact = malloc (cut ? cut : 1);
    memcpy (exact, data, cut);
    assert_int_equal (weft_bus_unpack (exact, cut, &out), WEFT_E_MALFORMED);
    free (exact);
  }
  uint8_t *bytes = data;
  for (size_t at = 0; at < size; at++) {
    uint8_t kept = bytes[at];
    for (unsigned value = 0; value < 256; value += 3) {
      bytes[at] = (uint8_t) value;
      if (weft_bus_unpack (bytes, size, &out) < 0)
        continue;
      for (uint32_t i = 0; i < out.instruction_count; i++) {
        assert_in_range (out.instructions[i].selector_count, 0, WEFT_SELECTORS_MAX);
        assert_true (out.instructions[i].sample_den > 0);
        assert_true (strlen (out.instructions[i].match) < WEFT_MATCH_MAX);
      }
      weft_bus_clear (&out);
    }
    bytes[at] = kept;
  }
  free (data);
}

#define BUS_FRONT                                                                                            \
  "\xa1v\x92\x01\x00\xaa"                                                                                    \
  "controller" ID
#define STATE                                                                                                \
  BUS_FRONT "\xa4kind\x02\xa4"                                                                               \
            "boot" ID "\xa7sent_ns\x01\xa5"                                                                  \
            "epoch\x01\xac"                                                                                  \
            "instructions"

static void bus_keys (void **state)
{
  static const struct {
    const char *bytes;
    size_t size;
    int status;
  } row[] = {
#define ROW(text, status) {text, sizeof (text) - 1, status}
      ROW ("\x83" BUS_FRONT "\xa4kind\x04", 0),
      ROW ("\x84" BUS_FRONT "\xa4kind\x04\xa1z\x93\1\2\3", 0),
      ROW ("\x83" BUS_FRONT "\xa4kind\x05", WEFT_E_UNSUPPORTED),
      ROW ("\x83" BUS_FRONT "\xa4kind\x01", WEFT_E_MALFORMED), /* no epoch */
      ROW ("\x83\xa1v\x92\x02\x00\xaa"
           "controller" ID "\xa4kind\x04",
           WEFT_E_VERSION),
      ROW ("\x81\xa1v\x92\x02\x00", WEFT_E_VERSION),
      ROW ("\x82\xa4kind\x04\xaa"
           "controller" ID,
           WEFT_E_MALFORMED), /* no version */
      ROW ("\x92\x01\x02", WEFT_E_MALFORMED),
      ROW ("\x87" STATE "\x90", 0),
      ROW ("\x87" STATE "\x91\x80", WEFT_E_MALFORMED),
      ROW ("\x87" STATE "\x91\x84\xa6number\x01\xa7"
           "actions\x04\xa8"
           "lease_ms\x05\xa9selectors\x91\xa1*",
           0),
      ROW ("\x87" STATE "\x91\x84\xa6number\x00\xa7"
           "actions\x04\xa8"
           "lease_ms\x05\xa9selectors\x91\xa1*",
           WEFT_E_MALFORMED), /* number 0 is none */
      ROW ("\x87" STATE "\x91\x85\xa6number\x01\xa7"
           "actions\x04\xa8"
           "lease_ms\x05\xa9selectors\x90\xa6sample"
           "\x92\x01\x00",
           WEFT_E_MALFORMED), /* one in none */
      ROW ("\x87" STATE "\x91\x84\xa6number\x01\xa7"
           "actions\x04\xa8"
           "lease_ms\x05\xa9selectors\x91\xa2*\0",
           WEFT_E_MALFORMED), /* a selector that would read shorter than it is */
#define ONE(more)                                                                                            \
  "\x87" STATE "\x91\x85\xa6number\x01\xa7"                                                                  \
  "actions\x04\xa8"                                                                                          \
  "lease_ms\x05\xa9selectors\x90" more
#define V4 "\0\0\0\0\0\0\0\0\0\0\xff\xff"
      ROW (ONE ("\xa8networks\x90"), 0),
      ROW (ONE ("\xa8networks\x92\xc4\x11" V4 "\x0a\0\0\0\x68\xc4\x11" V4 "\x0a\x01\x02\x03\x80"), 0),
      ROW (ONE ("\xa8networks\x91\xc4\x11" V4 "\x0a\x01\0\0\x68"), WEFT_E_MALFORMED), /* 10.1.0.0/8 */
      ROW (ONE ("\xa8networks\x91\xc4\x11" V4 "\x0a\0\0\0\x81"), WEFT_E_MALFORMED),   /* 129 bits */
      ROW (ONE ("\xa8networks\x91\xc4\x10" V4 "\x0a\0\0\0"), WEFT_E_MALFORMED),
      ROW (ONE ("\xa8networks\x91\x07"), WEFT_E_MALFORMED),
      ROW (ONE ("\xa8networks\xc0"), WEFT_E_MALFORMED),
      ROW (ONE ("\xa8"
                "excludes\x91\xa7/health"),
           0),
      ROW (ONE ("\xa8"
                "excludes\x91\xa2/\0"),
           WEFT_E_MALFORMED),
      ROW (ONE ("\xa8"
                "excludes\xa1/"),
           WEFT_E_MALFORMED),
      ROW (ONE ("\xa8"
                "excludes\xdc\x00\x21"),
           WEFT_E_MALFORMED), /* 33 of them */
      ROW (ONE ("\xa6header\xa7x-debug"), 0),
      ROW (ONE ("\xa6header\xd9\x20xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), WEFT_E_MALFORMED), /* 32 characters */
#undef V4
#undef ONE
#undef ROW
  };
  for (size_t i = 0; i < sizeof (row) / sizeof (row[0]); i++) {
    weft_bus_message_t m;
    memset (&m, 0x5a, sizeof (m));
    int status = weft_bus_unpack (row[i].bytes, row[i].size, &m);
    if (status != row[i].status)
      fail_msg ("row %zu gives %d", i, status);
    assert_int_equal (m.controller[0], status < 0 ? 0x5a : 'i');
    if (status == 0)
      weft_bus_clear (&m);
  }
}

static void bounds (void **state)
{
  weft_bus_message_t m;
  weft_up_message_t up = make_up (WEFT_UP_BATCH);
  void *data = NULL;
  size_t size = 0;
  uint8_t *big = calloc (1, WEFT_FRAME_MAX + 1);
  memset (&m, 0, sizeof (m));
  assert_int_equal (weft_bus_pack (&m, &data, &size), WEFT_E_RANGE); /* kind 0 */
  m.kind = WEFT_BUS_STATE;
  m.instruction_count = WEFT_INSTRUCTIONS_MAX + 1;
  assert_int_equal (weft_bus_pack (&m, &data, &size), WEFT_E_RANGE);
  /* sixteen instructions of sixteen selectors of 511 bytes make no frame */
  m.instruction_count = WEFT_INSTRUCTIONS_MAX;
  m.instructions = calloc (WEFT_INSTRUCTIONS_MAX, sizeof (*m.instructions));
  for (unsigned i = 0; i < WEFT_INSTRUCTIONS_MAX; i++) {
    m.instructions[i].selector_count = WEFT_SELECTORS_MAX;
    for (unsigned k = 0; k < WEFT_SELECTORS_MAX; k++)
      memset (m.instructions[i].selectors[k], 's', WEFT_SELECTOR_MAX - 1);
  }
  assert_int_equal (weft_bus_pack (&m, &data, &size), WEFT_E_RANGE);
  weft_bus_clear (&m);
  assert_int_equal (weft_up_pack (&up, &data, &size), WEFT_E_RANGE);
  assert_null (data);
  assert_int_equal (weft_bus_unpack (big, WEFT_FRAME_MAX + 1, &m), WEFT_E_RANGE);
  memset (big, 0x91, WEFT_FRAME_MAX);
  big[WEFT_FRAME_MAX - 1] = 0;
  assert_int_equal (weft_bus_unpack (big, WEFT_FRAME_MAX, &m), WEFT_E_MALFORMED); /* nested without end */
  free (big);
}

static void topics (void **state)
{
  static const uint8_t uuid[16] = {0x01, 0x92, 0xf3, 0xc4, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1};
  char out[WEFT_TOPIC_MAX], longer[200];
  weft_topic_instance (out, uuid);
  assert_string_equal (out, "instance/0192f3c4-0000-7000-8000-000000000001");
  weft_topic_service (out, "orders");
  assert_string_equal (out, "service/orders");
  memset (longer, 's', sizeof (longer));
  longer[199] = 0;
  weft_topic_service (out, longer);
  assert_int_equal (strlen (out), 8 + WEFT_SERVICE_MAX - 1);
}

/* Without the keys that 1.1 added. */
static void an_ack_of_1_0 (void **state)
{
  static const uint8_t id[16] = {7};
  static const char *const ids[] = {"instance", "start"}, *const numbers[] = {"epoch", "active"};
  weft_up_message_t out;
  msgpack_sbuffer buffer;
  msgpack_packer pk;
  msgpack_sbuffer_init (&buffer);
  msgpack_packer_init (&pk, &buffer, msgpack_sbuffer_write);
  msgpack_pack_array (&pk, 4);
  msgpack_pack_int (&pk, 1);
  msgpack_pack_int (&pk, 0);
  msgpack_pack_int (&pk, WEFT_UP_ACK);
  msgpack_pack_map (&pk, 4);
  for (int n = 0; n < 2; n++) {
    msgpack_pack_str_with_body (&pk, ids[n], strlen (ids[n]));
    msgpack_pack_bin_with_body (&pk, id, sizeof id);
    msgpack_pack_str_with_body (&pk, numbers[n], strlen (numbers[n]));
    msgpack_pack_int (&pk, 6);
  }
  assert_int_equal (weft_up_unpack (buffer.data, buffer.size, &out), 0);
  assert_true (out.epoch == 6 && out.active == 6);
  assert_true (out.requests_in == 0 && out.requests_unmatched == 0);
  msgpack_sbuffer_destroy (&buffer);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (hello_ack_bye),
      cmocka_unit_test (ack_carries_no_names),
      cmocka_unit_test (up_kinds_and_versions),
      cmocka_unit_test (up_keys),
      cmocka_unit_test (an_ack_of_1_0),
      cmocka_unit_test (texts_are_cut),
      cmocka_unit_test (bus_round_trips),
      cmocka_unit_test (bus_hostile_bytes),
      cmocka_unit_test (bus_keys),
      cmocka_unit_test (bounds),
      cmocka_unit_test (topics),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
