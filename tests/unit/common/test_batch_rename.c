/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../../common/batch.h"
#include "../../../common/batch_rename.h"
#include "../../../common/status.h"

static uint8_t frame[WEFT_BATCH_MAX], renamed[WEFT_BATCH_MAX];

/* A batch of `count` reports with and without CPU times, addresses, requests. */
static size_t make (uint32_t count)
{
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  weft_batch_head_t head = {.number = 7, .anchor = {1, 2}, .losses = {3}};
  size_t size = 0;
  memset (head.instance, 0x11, WEFT_UUID_SIZE);
  memset (head.start, 0x22, WEFT_UUID_SIZE);
  memset (head.boot, 0x33, WEFT_UUID_SIZE);
  assert_int_equal (weft_batch_writer_begin (writer, frame, sizeof frame, &head), 0);
  for (uint32_t n = 0; n < count; n++) {
    weft_report_t report = {.kind = (uint8_t) (1 + n % 3),
                            .task = {(uint8_t) (n / 4), 9},
                            .request = n % 5,
                            .subtask = n % 2 ? 0 : n,
                            .start_ns = n,
                            .end_ns = n + 1,
                            .cpu_ns = n % 2 ? WEFT_NS_NONE : n,
                            .name = n % 3 ? "GET /a" : "GET /b",
                            .name_size = 6};
    report.local.family = n % 4 ? 4 : 0;
    assert_int_equal (weft_batch_writer_add (writer, &report), 0);
  }
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  weft_batch_writer_destroy (&writer);
  return size;
}

static weft_rename_t other (const weft_rename_key_t *ids)
{
  weft_rename_t to = {.number = 12345678901ull, .ids = ids};
  memset (to.instance, 0xaa, WEFT_UUID_SIZE);
  memset (to.start, 0xbb, WEFT_UUID_SIZE);
  memset (to.boot, 0xcc, WEFT_UUID_SIZE);
  return to;
}

/* Reports of both frames side by side: ids mapped, all else as it was. */
static void test_everything_but_names_stays (void **state)
{
  static weft_batch_reader_t before, after;
  size_t size = make (200);
  weft_rename_key_t key = weft_rename_key (5, 1, 2);
  weft_rename_t to = other (&key);
  memcpy (renamed, frame, size);
  assert_int_equal (weft_batch_rename (renamed, size, &to), 0);
  assert_int_equal (weft_batch_reader_begin (&before, frame, size), 0);
  assert_int_equal (weft_batch_reader_begin (&after, renamed, size), 0);
  assert_int_equal (after.head.number, to.number);
  assert_memory_equal (after.head.instance, to.instance, WEFT_UUID_SIZE);
  assert_memory_equal (after.head.start, to.start, WEFT_UUID_SIZE);
  assert_memory_equal (after.head.boot, to.boot, WEFT_UUID_SIZE);
  assert_int_equal (after.head.losses[0], 3);
  weft_report_t a, b;
  for (int n = 0; n < 200; n++) {
    uint8_t task[16];
    assert_int_equal (weft_batch_reader_next (&before, &a), 1);
    assert_int_equal (weft_batch_reader_next (&after, &b), 1);
    weft_rename_16 (&key, a.task, task);
    assert_memory_equal (task, b.task, sizeof task);
    assert_memory_not_equal (a.task, b.task, sizeof task);
    assert_int_equal (b.request, weft_rename_id (&key, a.request));
    assert_int_equal (b.subtask, weft_rename_id (&key, a.subtask));
    assert_int_equal (a.request == 0, b.request == 0);
    assert_int_equal (a.start_ns, b.start_ns);
    assert_int_equal (a.cpu_ns, b.cpu_ns);
    assert_memory_equal (&a.local, &b.local, sizeof a.local);
    assert_memory_equal (a.name, b.name, a.name_size);
  }
  assert_int_equal (weft_batch_reader_next (&after, &b), 0);
}

static void test_ids_can_stay (void **state)
{
  size_t size = make (30);
  weft_rename_t to = other (NULL);
  memcpy (renamed, frame, size);
  assert_int_equal (weft_batch_rename (renamed, size, &to), 0);
  assert_memory_equal (renamed + 187, frame + 187, size - 187);
  assert_memory_not_equal (renamed, frame, 187);
}

/* Y2: whatever byte of the structure is another one, nothing is changed by halves. */
static void test_whole_or_not_at_all (void **state)
{
  static uint8_t spoilt[WEFT_BATCH_MAX];
  size_t size = make (40);
  weft_rename_key_t key = weft_rename_key (5, 1, 2);
  weft_rename_t to = other (&key);
  unsigned refused = 0;
  for (size_t at = 0; at < size; at++) {
    memcpy (spoilt, frame, size);
    spoilt[at] ^= 0xff;
    memcpy (renamed, spoilt, size);
    int rc = weft_batch_rename (renamed, size, &to);
    refused += rc < 0;
    if (rc < 0)
      assert_memory_equal (renamed, spoilt, size);
  }
  assert_true (refused > 40 * 8);
  for (size_t cut = 0; cut < size; cut++) {
    memcpy (renamed, frame, size);
    assert_int_equal (weft_batch_rename (renamed, cut, &to), WEFT_E_UNSUPPORTED);
    assert_memory_equal (renamed, frame, size);
  }
}

/* Y1, by looking: 20,000 small and neighbouring ids under several keys. */
static void test_one_to_one (void **state)
{
  static uint8_t seen[1u << 22];
  for (uint64_t seed = 1; seed < 4; seed++) {
    weft_rename_key_t key = weft_rename_key (seed, 3, seed), same = weft_rename_key (seed, 3, seed);
    uint32_t equal_low = 0;
    memset (seen, 0, sizeof seen);
    for (uint64_t id = 1; id <= 20000; id++) {
      uint64_t to = weft_rename_id (&key, id);
      assert_int_not_equal (to, 0);
      assert_int_equal (to, weft_rename_id (&same, id));
      equal_low += seen[to % sizeof seen];
      seen[to % sizeof seen] = 1;
    }
    assert_true (equal_low < 200); /* 48 expected of 20,000 drawn into 4 M places */
    assert_int_equal (weft_rename_id (&key, 0), 0);
  }
  weft_rename_key_t a = weft_rename_key (1, 3, 1), b = weft_rename_key (1, 3, 2);
  assert_int_not_equal (weft_rename_id (&a, 1), weft_rename_id (&b, 1));
  uint8_t zero[16] = {0}, out[16];
  weft_rename_16 (&a, zero, out);
  assert_memory_equal (out, zero, sizeof zero);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_everything_but_names_stays),
      cmocka_unit_test (test_ids_can_stay),
      cmocka_unit_test (test_whole_or_not_at_all),
      cmocka_unit_test (test_one_to_one),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
