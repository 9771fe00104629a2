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

#include "../../../../common/batch.h"
#include "../../../../common/clocks.h"
#include "../../../../common/status.h"
#include "../../../../instance/shm/writer.h"
#include "../../../../instance/sidecar/drain.h"

#define TID 4242

static const uint8_t instance[WEFT_UUID_SIZE] = {1}, boot[WEFT_UUID_SIZE] = {2}, start[WEFT_UUID_SIZE] = {3};

typedef struct {
  uint8_t *base;
  shm_reader_t *reader;
  car_drain_t *drain;
} stage_t;

/* What was pushed. */
typedef struct {
  int busy_after; /* pushes that succeed before nobody takes any more; -1: no limit */
  unsigned count;
  uint64_t number[256];
  uint32_t reports[256];
  uint64_t losses[256][WEFT_LOSS_WIRE_COUNT];
  char name[64];
} sink_t;

static int take (void *to, const void *data, size_t size)
{
  sink_t *sink = to;
  weft_batch_reader_t reader;
  weft_report_t report;
  if (sink->busy_after == 0)
    return WEFT_E_BUSY;
  if (sink->busy_after > 0)
    sink->busy_after--;
  assert_int_equal (weft_batch_reader_begin (&reader, data, size), 0);
  assert_memory_equal (reader.head.instance, instance, WEFT_UUID_SIZE);
  assert_memory_equal (reader.head.start, start, WEFT_UUID_SIZE);
  assert_memory_equal (reader.head.boot, boot, WEFT_UUID_SIZE);
  assert_true (reader.head.from_ns <= reader.head.to_ns);
  unsigned at = sink->count++ % 256;
  sink->number[at] = reader.head.number;
  sink->reports[at] = 0;
  memcpy (sink->losses[at], reader.head.losses, sizeof sink->losses[at]);
  while (weft_batch_reader_next (&reader, &report) == 1) {
    sink->reports[at]++;
    snprintf (sink->name, sizeof sink->name, "%.*s", (int) report.name_size, report.name);
  }
  assert_int_equal (sink->reports[at], reader.head.reports);
  return 0;
}

static int set_up (void **state)
{
  stage_t *stage = calloc (1, sizeof *stage);
  stage->base = aligned_alloc (4096, (SHM_SIZE + 4095) / 4096 * 4096);
  memset (stage->base, 0, SHM_SIZE);
  memcpy (((shm_head_t *) (void *) stage->base)->start, start, WEFT_UUID_SIZE);
  assert_int_equal (shm_reader_over (stage->base, &stage->reader), 0);
  assert_int_equal (car_drain_new (stage->reader, instance, boot, NULL, &stage->drain), 0);
  *state = stage;
  return 0;
}

static int tear_down (void **state)
{
  stage_t *stage = *state;
  car_drain_destroy (&stage->drain);
  shm_reader_destroy (&stage->reader);
  free (stage->base);
  free (stage);
  return 0;
}

static int put (stage_t *stage, const char *name)
{
  weft_report_t report = {.kind = WEFT_REPORT_CAPTURE,
                          .status = 200,
                          .request = 5,
                          .subtask = 6,
                          .start_ns = 10,
                          .end_ns = 20,
                          .cpu_ns = WEFT_NS_NONE,
                          .task = {9}};
  report.name = name;
  report.name_size = (uint16_t) strlen (name);
  return shm_write (stage->base, TID, &report);
}

static void reports_become_a_batch (void **state)
{
  stage_t *stage = *state;
  sink_t sink = {.busy_after = -1};
  put (stage, "GET /users/12345");
  put (stage, "GET /users/12346");
  assert_int_equal (car_drain_collect (stage->drain, 1), CAR_DRAIN_INTERVAL_MS);
  assert_int_equal (car_drain_push (stage->drain, take, &sink, 1), 0);
  assert_int_equal (sink.count, 1);
  assert_int_equal (sink.number[0], 1);
  assert_int_equal (sink.reports[0], 2);
  assert_string_equal (sink.name, "GET /users/{id}");
  assert_int_equal (car_drain_push (stage->drain, take, &sink, 2), 0); /* out once */
  assert_int_equal (sink.count, 1);
  assert_int_equal (car_drain_waiting (stage->drain), 1);
  car_drain_acked (stage->drain, instance, 1, 3); /* another start id */
  assert_int_equal (car_drain_waiting (stage->drain), 1);
  car_drain_acked (stage->drain, start, 2, 3); /* a number that was never used */
  assert_int_equal (car_drain_waiting (stage->drain), 1);
  car_drain_acked (stage->drain, start, 1, 3);
  assert_int_equal (car_drain_waiting (stage->drain), 0);
}

static void nothing_makes_no_batch (void **state)
{
  stage_t *stage = *state;
  for (int i = 0; i < 10; i++)
    assert_int_equal (car_drain_collect (stage->drain, 1), CAR_DRAIN_INTERVAL_MS);
  assert_int_equal (car_drain_waiting (stage->drain), 0);
  assert_int_equal (car_drain_number (stage->drain), 0);
}

static void silence_pushes_again_with_growing_patience (void **state)
{
  stage_t *stage = *state;
  sink_t sink = {.busy_after = -1};
  uint64_t t = 1000 * WEFT_NS_PER_S;
  put (stage, "GET /");
  car_drain_collect (stage->drain, 1);
  put (stage, "GET /");
  car_drain_collect (stage->drain, 1);
  car_drain_push (stage->drain, take, &sink, t);
  assert_int_equal (sink.count, 2);
  car_drain_push (stage->drain, take, &sink, t + CAR_DRAIN_REPUSH_MS * WEFT_NS_PER_MS);
  assert_int_equal (sink.count, 2);
  t += (CAR_DRAIN_REPUSH_MS + 1) * WEFT_NS_PER_MS;
  car_drain_push (stage->drain, take, &sink, t);
  assert_int_equal (sink.count, 4); /* the same numbers, in order */
  assert_int_equal (sink.number[2], 1);
  assert_int_equal (sink.number[3], 2);
  car_drain_push (stage->drain, take, &sink, t + (CAR_DRAIN_REPUSH_MS + 1) * WEFT_NS_PER_MS);
  assert_int_equal (sink.count, 4);
  car_drain_push (stage->drain, take, &sink, t + (2 * CAR_DRAIN_REPUSH_MS + 1) * WEFT_NS_PER_MS);
  assert_int_equal (sink.count, 6);
  car_drain_repush (stage->drain); /* another controller: at once */
  car_drain_push (stage->drain, take, &sink, t + (2 * CAR_DRAIN_REPUSH_MS + 2) * WEFT_NS_PER_MS);
  assert_int_equal (sink.count, 8);
}

static void a_busy_bus_loses_nothing (void **state)
{
  stage_t *stage = *state;
  sink_t sink = {.busy_after = 1};
  for (int i = 0; i < 3; i++) {
    put (stage, "GET /");
    car_drain_collect (stage->drain, 1);
  }
  assert_int_equal (car_drain_push (stage->drain, take, &sink, 1), WEFT_E_BUSY);
  sink.busy_after = -1;
  assert_int_equal (car_drain_push (stage->drain, take, &sink, 2), 0);
  assert_int_equal (sink.count, 3);
  for (unsigned i = 0; i < 3; i++)
    assert_int_equal (sink.number[i], i + 1);
}

static void rings_that_lie_are_counted_and_not_hurried_for (void **state)
{
  stage_t *stage = *state;
  sink_t sink = {.busy_after = -1};
  for (unsigned i = 0; i < SHM_RINGS; i++)
    shm_ring (stage->base, i)->head = 1ull << 40;
  assert_int_equal (car_drain_collect (stage->drain, 1), CAR_DRAIN_INTERVAL_MS);
  car_drain_push (stage->drain, take, &sink, 1);
  assert_int_equal (sink.count, 1);
  assert_int_equal (sink.reports[0], 0);
  assert_int_equal (sink.losses[0][WEFT_LOSS_UNDECODABLE], SHM_RINGS);
  for (unsigned i = 0; i < SHM_RINGS; i++) /* rings that are empty and claim to be full */
    shm_ring (stage->base, i)->tail = (1ull << 40) - SHM_RING_SIZE;
  assert_int_equal (car_drain_collect (stage->drain, 1), CAR_DRAIN_INTERVAL_MS);
}

/* The one before went down with batch 1 in its hands. */
static void a_new_controller_frees_only_what_it_was_sent (void **state)
{
  stage_t *stage = *state;
  sink_t sink = {.busy_after = -1};
  for (int i = 0; i < 2; i++) {
    put (stage, "GET /");
    car_drain_collect (stage->drain, 1);
  }
  car_drain_push (stage->drain, take, &sink, 1);
  car_drain_repush (stage->drain);
  car_drain_acked (stage->drain, start, 2, 2);
  assert_int_equal (car_drain_waiting (stage->drain), 2);
  car_drain_push (stage->drain, take, &sink, 3);
  assert_int_equal (sink.count, 4);
  car_drain_acked (stage->drain, start, 2, 4);
  assert_int_equal (car_drain_waiting (stage->drain), 0);
}

static void losses_are_told_once (void **state)
{
  stage_t *stage = *state;
  sink_t sink = {.busy_after = -1};
  shm_status (stage->base)->lost[WEFT_LOSS_RING_BUSY] = 7;
  car_drain_collect (stage->drain, 1); /* a batch of losses alone */
  put (stage, "GET /");
  car_drain_collect (stage->drain, 1);
  shm_status (stage->base)->lost[WEFT_LOSS_RING_BUSY] = 9;
  put (stage, "GET /");
  car_drain_collect (stage->drain, 1);
  car_drain_push (stage->drain, take, &sink, 1);
  assert_int_equal (sink.count, 3);
  assert_int_equal (sink.reports[0], 0);
  assert_int_equal (sink.losses[0][WEFT_LOSS_RING_BUSY], 7);
  assert_int_equal (sink.losses[1][WEFT_LOSS_RING_BUSY], 0);
  assert_int_equal (sink.losses[2][WEFT_LOSS_RING_BUSY], 2);
}

static void a_full_spool_stops_reading_and_says_so (void **state)
{
  stage_t *stage = *state;
  sink_t sink = {.busy_after = -1};
  uint64_t written = 0, dropped = 0, told = 0, reports = 0;
  for (unsigned i = 0; i < SHM_SPOOL_SLOTS; i++) {
    written += (uint64_t) put (stage, "GET /");
    car_drain_collect (stage->drain, 1);
  }
  assert_int_equal (car_drain_waiting (stage->drain), SHM_SPOOL_SLOTS);
  while (put (stage, "GET /")) { /* into the rings, as long as they take */
    written++;
    if (written % 1000 == 0)
      car_drain_collect (stage->drain, 1);
  }
  for (dropped = 1; dropped < 100; dropped++)
    assert_int_equal (put (stage, "GET /"), 0);
  car_drain_collect (stage->drain, 1);
  assert_int_equal (car_drain_waiting (stage->drain), SHM_SPOOL_SLOTS);
  for (unsigned round = 0; round < 20; round++) {
    car_drain_push (stage->drain, take, &sink, round + 1);
    car_drain_acked (stage->drain, start, car_drain_number (stage->drain), round + 1);
    car_drain_collect (stage->drain, 1);
  }
  assert_true (sink.count < 256);
  for (unsigned i = 0; i < sink.count; i++) {
    reports += sink.reports[i];
    told += sink.losses[i][WEFT_LOSS_SPOOL_FULL];
    assert_int_equal (sink.losses[i][WEFT_LOSS_RING_FULL], 0);
    assert_int_equal (sink.number[i], i + 1);
  }
  assert_int_equal (told, dropped);
  assert_int_equal (reports, written);
  assert_int_equal (car_drain_written (stage->drain), reports + told);
}

static void a_successor_goes_on (void **state)
{
  stage_t *stage = *state;
  sink_t sink = {.busy_after = -1};
  shm_status (stage->base)->lost[WEFT_LOSS_RING_BUSY] = 5;
  for (int i = 0; i < 3; i++) {
    put (stage, "GET /");
    car_drain_collect (stage->drain, 1);
  }
  sink_t before = {.busy_after = -1};
  car_drain_push (stage->drain, take, &before, 1);
  car_drain_acked (stage->drain, start, 2, 1);
  car_drain_destroy (&stage->drain); /* died; batch 3 is in the spool */
  assert_int_equal (car_drain_new (stage->reader, instance, boot, NULL, &stage->drain), 0);
  put (stage, "GET /");
  car_drain_collect (stage->drain, 1);
  car_drain_push (stage->drain, take, &sink, 1);
  assert_int_equal (sink.count, 2);
  assert_int_equal (sink.number[0], 3);
  assert_int_equal (sink.number[1], 4);
  assert_int_equal (sink.losses[1][WEFT_LOSS_RING_BUSY], 0); /* told by the predecessor */
  car_drain_acked (stage->drain, start, 4, 2);
  car_drain_destroy (&stage->drain); /* with an empty spool numbers go on as well */
  assert_int_equal (car_drain_new (stage->reader, instance, boot, NULL, &stage->drain), 0);
  assert_int_equal (car_drain_number (stage->drain), 4);
}

static void a_hostile_page_does_no_harm (void **state)
{
  stage_t *stage = *state;
  sink_t sink = {.busy_after = -1};
  memset (stage->base + SHM_CONTROL_AT, 0xff, 0x1000);
  memset (stage->base + SHM_RINGS_AT, 0xff, SHM_RINGS * sizeof (shm_ring_t));
  memset (stage->base + SHM_SPOOL_AT, 0xff, SHM_SIZE - SHM_SPOOL_AT);
  car_drain_destroy (&stage->drain);
  assert_int_equal (car_drain_new (stage->reader, instance, boot, NULL, &stage->drain), 0);
  for (int i = 0; i < 10; i++)
    car_drain_collect (stage->drain, 1);
  while (car_drain_push (stage->drain, take, &sink, 1) == 0 && sink.count < 10 &&
         car_drain_waiting (stage->drain))
    car_drain_acked (stage->drain, start, car_drain_number (stage->drain), 1);
  assert_true (car_drain_number (stage->drain) < 1000);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (reports_become_a_batch, set_up, tear_down),
      cmocka_unit_test_setup_teardown (nothing_makes_no_batch, set_up, tear_down),
      cmocka_unit_test_setup_teardown (silence_pushes_again_with_growing_patience, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_busy_bus_loses_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_new_controller_frees_only_what_it_was_sent, set_up, tear_down),
      cmocka_unit_test_setup_teardown (rings_that_lie_are_counted_and_not_hurried_for, set_up, tear_down),
      cmocka_unit_test_setup_teardown (losses_are_told_once, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_full_spool_stops_reading_and_says_so, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_successor_goes_on, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_hostile_page_does_no_harm, set_up, tear_down),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
