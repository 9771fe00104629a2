/* SPDX-License-Identifier: Apache-2.0 */
/* What is packed comes back, whatever it is and beside whomever; other bytes are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "../../../../common/clocks.h"
#include "../../../../common/limits.h"
#include "../../../../common/status.h"
#include "../../../../controller/task/text.h"
#include "../../../../controller/task/varint.h"
#include "pack_v1.h"

#define ROUNDS 60u

static weft_ids_t random_ids (void)
{
  const char *given = getenv ("WEFT_SEED");
  uint64_t seed = given ? strtoull (given, NULL, 10) : weft_mono_ns ();
  printf ("WEFT_SEED=%llu\n", (unsigned long long) seed);
  return (weft_ids_t){{seed, seed + 1, seed + 2, 7}};
}

static void test_numbers (void **state)
{
  static const struct {
    uint64_t value;
    uint8_t size, bytes[9];
  } told[] = {{0, 1, {0x01}},
              {1, 1, {0x03}},
              {127, 1, {0xff}},
              {128, 2, {0x02, 0x02}},
              {16383, 2, {0xfe, 0xff}},
              {16384, 3, {0x04, 0x00, 0x02}},
              {(1ull << 56) - 1, 8, {0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
              {1ull << 56, 9, {0, 0, 0, 0, 0, 0, 0, 0, 1}},
              {UINT64_MAX, 9, {0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}};
  for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
    uint8_t bytes[CTL_VARINT_MOST];
    assert_int_equal (ctl_varint_put (bytes, told[i].value) - bytes, told[i].size);
    assert_int_equal (ctl_varint_size (told[i].value), told[i].size);
    assert_memory_equal (bytes, told[i].bytes, told[i].size);
  }
  weft_ids_t random = random_ids ();
  for (uint32_t n = 0; n < 20000; n++) {
    uint64_t value = weft_ids_next (&random) >> n % 64, back = ~value;
    uint8_t bytes[CTL_VARINT_MOST], *end = ctl_varint_put (bytes, value);
    size_t size = (size_t) (end - bytes);
    for (size_t cut = 0; cut <= size; cut++) {
      uint8_t *copy = malloc (cut + !cut); /* a sanitizer sees a byte too many */
      memcpy (copy, bytes, cut);
      weft_cursor_t cursor = {copy, copy + cut};
      assert_int_equal (ctl_varint_get (&cursor, &back), cut < size ? WEFT_E_MALFORMED : 0);
      assert_true (cut < size || (back == value && cursor.at == cursor.end));
      free (copy);
    }
    assert_true (ctl_zagzig (ctl_zigzag (value)) == value);
  }
  assert_true (ctl_zigzag (0 - (uint64_t) 3) == 5 && ctl_zigzag (3) == 6);
}

/* Two subtasks, byte for byte as pack.h draws them. */
static void test_the_layout (void **state)
{
  static const uint8_t wanted[] = {0x97, 2,    1,    0xff, 76,   0,    0,    0, /* a pack of one */
                                   0x10, 0x74, 0x61, 0x73, 0x6b, 0,    0,    0,    0,    0,
                                   0,    0,    0,    0, /* its host follows; its id */
                                   0,    0,    0,    0xe8, 3,    0,    0,    0,    0,    0,
                                   0,    5,    0x13, /* begun at 1000, two subtasks, host 9 */
                                   0x08, 0x16, 8,    7,    6,    5,    4,    3,    2,    1,
                                   1,    5, /* a root that answered 200; resource 0, name 2 */
                                   1,    4,    0x35, 0x0c, 0xf2, 0x0a, 4,    0x0f, /* + 0, 100000, cpu 700, something rare: instruction 7 */
                                   0x59, 9,    0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, /* proven */
                                   0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, 3,    3,
                                   0x0b, /* its request; called by the one before */
                                   2,    2,    0x42, 0x1f, 0x11, 0x19, 0x52, 6, /* + 64, 2000; 4 before, 6 after; 404 */
                                   0x0d, 0x0b, 'f',  'r',  'o',  'n',  't',  7,    'j',  'v',
                                   'm',  0x0b, 'G',  'E',  'T',  ' ',  '/', /* 6 texts */
                                   0x0d, 'o',  'r',  'd',  'e',  'r',  's',  1,    0x13, 'P',
                                   'O',  'S',  'T',  ' ',  '/',  'p',  'a',  'y',  5, /* 2 resources */
                                   0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa,
                                   0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xb2, 4,    1,    3,
                                   0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb,
                                   0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 1,    7,    9};
  ctl_subtask_t subtasks[2] = {{.id = 0x0102030405060708,
                                .hop = CTL_HOP_ROOT,
                                .answered = 1,
                                .status = 200,
                                .instruction = 7,
                                .pid = 300,
                                .service = "front",
                                .vm = "jvm",
                                .name = "GET /",
                                .start_ns = 1000,
                                .end_ns = 101000,
                                .cpu_ns = 700,
                                .host = 9,
                                .sender_host = 9},
                               {.id = 0x2122232425262728,
                                .request = 0x3132333435363738,
                                .caller = 0x0102030405060708,
                                .hop = CTL_HOP_PROVEN,
                                .answered = 1,
                                .status = 404,
                                .service = "orders",
                                .vm = "",
                                .name = "POST /pay",
                                .start_ns = 1064,
                                .end_ns = 3064,
                                .cpu_ns = WEFT_NS_NONE,
                                .sent_ns = 1060,
                                .answered_ns = 3070,
                                .host = 9,
                                .sender_host = 9}};
  ctl_execution_t execution = {
      .task = "task", .hosts = 1, .name = "", .origin = "", .subtasks = subtasks, .count = 2};
  ctl_execution_t *back = NULL;
  void *data;
  size_t size;
  memset (subtasks[0].instance, 0xaa, sizeof subtasks[0].instance);
  memset (subtasks[1].instance, 0xbb, sizeof subtasks[1].instance);
  assert_int_equal (ctl_execution_settle (&execution), 0);
  assert_int_equal (ctl_execution_pack (&execution, &data, &size), 0);
  assert_int_equal (size, sizeof wanted);
  assert_memory_equal (data, wanted, size);
  assert_int_equal (ctl_execution_unpack (wanted, sizeof wanted, &back), 0);
  any_same (&execution, back);
  ctl_execution_destroy (&back);
  assert_int_equal (ctl_pack_old_read (data, size, &back), WEFT_E_VERSION); /* P1 */
  ((uint8_t *) data)[1] = 3;
  assert_int_equal (ctl_execution_unpack (data, size, &back), WEFT_E_VERSION);
  free (data);
}

static void assert_holds (ctl_pack_t *pack, ctl_execution_t *const *executions, uint32_t count)
{
  const void *data;
  size_t size;
  assert_int_equal (ctl_pack_count (pack), count);
  assert_int_equal (ctl_pack_finish (pack, &data, &size), 0);
  assert_int_equal (size, ctl_pack_size (pack));
  assert_int_equal (ctl_pack_count_of (data, size), count);
  for (uint32_t i = count; i-- > 0;) {
    ctl_execution_t *back = NULL;
    assert_int_equal (ctl_pack_read (data, size, i, &back), 0);
    any_same (executions[i], back);
    ctl_execution_destroy (&back);
  }
  ctl_execution_t *none = NULL;
  assert_int_equal (ctl_pack_read (data, size, count, &none), WEFT_E_MALFORMED);
}

/* Of any content, whatever else is in the pack; one pack after the other. */
static void test_what_is_packed_comes_back (void **state)
{
  weft_ids_t random = random_ids ();
  ctl_pack_t *pack = ctl_pack_new ();
  for (uint32_t round = 0; round < ROUNDS; round++) {
    ctl_execution_t *executions[CTL_PACK_MOST];
    uint32_t count = 1 + (uint32_t) (weft_ids_next (&random) % CTL_PACK_MOST);
    for (uint32_t i = 0; i < count; i++) {
      executions[i] = any_execution (&random, 1 + (uint32_t) (weft_ids_next (&random) % 12));
      assert_int_equal (ctl_pack_add (pack, executions[i]), 0);
      if (weft_ids_next (&random) % 4 == 0) { /* looked at, taken back, and again */
        assert_holds (pack, executions, i + 1);
        ctl_pack_take_back (pack);
        assert_int_equal (ctl_pack_add (pack, executions[i]), 0);
      }
    }
    assert_holds (pack, executions, count);
    ctl_pack_empty (pack);
    for (uint32_t i = 0; i < count; i++)
      ctl_execution_destroy (&executions[i]);
  }
  ctl_pack_destroy (&pack);
}

static void test_a_full_pack_takes_no_more (void **state)
{
  weft_ids_t random = random_ids ();
  ctl_pack_t *pack = ctl_pack_new ();
  ctl_execution_t *one = any_execution (&random, 3), *executions[CTL_PACK_MOST];
  for (uint32_t i = 0; i < CTL_PACK_MOST; i++) {
    executions[i] = one;
    assert_int_equal (ctl_pack_add (pack, one), 0);
  }
  assert_int_equal (ctl_pack_add (pack, one), WEFT_E_FULL);
  assert_holds (pack, executions, CTL_PACK_MOST);
  ctl_pack_destroy (&pack);
  ctl_execution_destroy (&one);
}

/* Texts of its own go with the execution, and others come to stand where they stood. */
static void test_own_texts_are_not_told_apart_by_place (void **state)
{
  char words[2][16] = {"first", "second"}, at[16];
  ctl_pack_t *pack = ctl_pack_new ();
  ctl_text_t text = {0};
  for (uint32_t i = 0; i < 2; i++) {
    ctl_subtask_t subtask = {.id = 1, .service = at, .vm = at, .name = at, .cpu_ns = WEFT_NS_NONE};
    ctl_execution_t execution = {.hosts = 1, .origin = "", .subtasks = &subtask, .count = 1, .text = &text};
    memcpy (at, words[i], sizeof at);
    assert_int_equal (ctl_pack_add (pack, &execution), 0);
  }
  const void *data;
  size_t size;
  assert_int_equal (ctl_pack_finish (pack, &data, &size), 0);
  for (uint32_t i = 0; i < 2; i++) {
    ctl_execution_t *back = NULL;
    assert_int_equal (ctl_pack_read (data, size, i, &back), 0);
    assert_string_equal (back->name, words[i]);
    assert_string_equal (back->subtasks[0].service, words[i]);
    assert_string_equal (back->subtasks[0].vm, words[i]);
    ctl_execution_destroy (&back);
  }
  ctl_pack_destroy (&pack);
}

/* More texts and more resources than are looked up: some stand twice, none is taken for another. */
static void test_more_texts_than_are_looked_up (void **state)
{
  weft_ids_t random = random_ids ();
  uint32_t count = WEFT_SUBTASKS_PER_TASK_MAX;
  ctl_execution_t *self = any_execution (&random, count), *back = NULL;
  char (*names)[16] = calloc (count, sizeof *names);
  void *data;
  size_t size;
  for (uint32_t i = 0; i < count; i++) {
    snprintf (names[i], sizeof names[i], "%u", i % 5000);
    self->subtasks[i].name = names[i % 5000];
    self->subtasks[i].service = names[i % 3000];
    self->subtasks[i].pid = i % 7;
  }
  assert_int_equal (ctl_execution_settle (self), 0);
  assert_int_equal (ctl_execution_pack (self, &data, &size), 0);
  assert_int_equal (ctl_execution_unpack (data, size, &back), 0);
  any_same (self, back);
  ctl_execution_destroy (&back);
  ctl_execution_destroy (&self);
  free (names);
  free (data);
}

/* Five subtasks of a chain, as most tasks are: each thing that repeats stands once in the pack. */
static void test_how_big_it_is (void **state)
{
  static const char *const names[] = {"POST /checkout", "GET /orders/{id}", "GET /quote/{id}", "POST /pay",
                                      "GET /stock"};
  weft_ids_t random = random_ids ();
  ctl_pack_t *pack = ctl_pack_new ();
  for (uint32_t n = 0; n < 64; n++) {
    ctl_subtask_t subtasks[5];
    ctl_execution_t execution = {.hosts = 1, .origin = "", .subtasks = subtasks, .count = 5};
    weft_ids_task (&random, execution.task);
    for (uint32_t i = 0; i < 5; i++) {
      uint64_t start_ns = 1700000000000000000ull + n * 1000000 + i * 2000;
      subtasks[i] = (ctl_subtask_t){.id = weft_ids_next (&random),
                                    .request = i ? weft_ids_next (&random) : 0,
                                    .caller = i ? subtasks[i - 1].id : 0,
                                    .hop = i ? CTL_HOP_PROVEN : CTL_HOP_ROOT,
                                    .answered = 1,
                                    .status = 200,
                                    .instruction = i == 0,
                                    .pid = 1000 + i,
                                    .service = "orders",
                                    .vm = "jvm",
                                    .name = names[i],
                                    .start_ns = start_ns,
                                    .end_ns = start_ns + 50000000 - i * 9000000,
                                    .cpu_ns = 700000};
      memset (subtasks[i].instance, (int) i + 1, sizeof subtasks[i].instance);
      subtasks[i].sent_ns = i ? start_ns - 500 : 0;
      subtasks[i].answered_ns = i ? subtasks[i].end_ns + 500 : 0;
    }
    assert_int_equal (ctl_execution_settle (&execution), 0);
    assert_int_equal (ctl_pack_add (pack, &execution), 0);
  }
  printf ("%zu bytes a task\n", ctl_pack_size (pack) / 64);
  assert_true (ctl_pack_size (pack) / 64 <= 220);
  ctl_pack_destroy (&pack);
}

/* Every prefix is refused, and every flipped bit refused or read. The copy is on the heap at its exact size. */
static void test_damaged_packs (void **state)
{
  weft_ids_t random = random_ids ();
  ctl_pack_t *pack = ctl_pack_new ();
  const void *data;
  size_t size;
  uint32_t unharmed = 0;
  for (uint32_t i = 0; i < 5; i++) {
    ctl_execution_t *one = any_execution (&random, 4);
    assert_int_equal (ctl_pack_add (pack, one), 0);
    ctl_execution_destroy (&one);
  }
  assert_int_equal (ctl_pack_finish (pack, &data, &size), 0);
  for (size_t at = 0; at < size; at++)
    for (int bit = -1; bit < 8; bit++) {
      size_t left = bit < 0 ? at : size;
      uint8_t *copy = malloc (left + !left);
      memcpy (copy, data, left);
      if (bit >= 0)
        copy[at] ^= (uint8_t) (1u << bit);
      for (uint32_t place = 0; place < 5; place++) {
        ctl_execution_t *out = NULL;
        int rc = ctl_pack_read (copy, left, place, &out);
        assert_true (rc == WEFT_E_MALFORMED || (rc == 0 && bit >= 0));
        unharmed += rc == 0;
        ctl_execution_destroy (&out);
      }
      free (copy);
    }
  assert_true (unharmed > size * 8); /* P2 */
  ctl_pack_destroy (&pack);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_numbers),
      cmocka_unit_test (test_the_layout),
      cmocka_unit_test (test_what_is_packed_comes_back),
      cmocka_unit_test (test_a_full_pack_takes_no_more),
      cmocka_unit_test (test_own_texts_are_not_told_apart_by_place),
      cmocka_unit_test (test_more_texts_than_are_looked_up),
      cmocka_unit_test (test_how_big_it_is),
      cmocka_unit_test (test_damaged_packs),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
