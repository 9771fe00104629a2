/* SPDX-License-Identifier: Apache-2.0 */
/* What one event into a ring costs, beside clock_gettime of the same run. */
#include "../../common/ids.h"
#include "../../instance/shm/reader.h"
#include "../../instance/shm/writer.h"
#include "bench.h"

#define EVENTS      3000000u
#define DRAIN_EVERY 128u

static void *base;
static shm_reader_t *reader;
static weft_report_t report;
static uint64_t written, read_back;

static void events (uint64_t n)
{
  for (uint64_t i = 0; i < n; i++) {
    report.request = i + 1;
    written += (uint64_t) shm_write (base, 1, &report);
    if (i % DRAIN_EVERY == DRAIN_EVERY - 1)
      /* Empties the ring without the reader's copy: its cost is measured in the pipeline. */
      for (unsigned r = 0; r < SHM_RINGS; r++) {
        shm_ring_t *ring = shm_ring (base, r);
        read_back += ring->head != ring->tail ? DRAIN_EVERY : 0;
        __atomic_store_n (&ring->tail, ring->head, __ATOMIC_RELEASE);
      }
  }
}

static void clocks (uint64_t n)
{
  struct timespec t;
  for (uint64_t i = 0; i < n; i++) {
    clock_gettime (CLOCK_MONOTONIC, &t);
    BENCH_KEEP (t.tv_nsec);
  }
}

static void read_all (uint64_t n)
{
  weft_report_t out;
  for (uint64_t i = 0; i < n;) {
    for (unsigned k = 0; k < DRAIN_EVERY; k++)
      shm_write (base, 1, &report);
    for (unsigned k = 0; k < DRAIN_EVERY; k++, i++)
      if (shm_reader_next (reader, &out) != 1)
        bench_failed = 1;
    shm_reader_consume (reader);
  }
}

int main (void)
{
  int fd;
  if (shm_create (NULL, "bench", "0", 0, &base, &fd) || shm_reader_over (base, &reader)) {
    puts ("ring: no shared memory: FAIL");
    return 1;
  }
  report.kind = WEFT_REPORT_EMBED;
  report.name = "POST /orders/checkout";
  report.name_size = 21;
  bench_pair_t aa = bench_pair (clocks, clocks, EVENTS);
  bench_pair_t pair = bench_pair (events, clocks, EVENTS);
  char beside[96];
  snprintf (beside, sizeof beside, "%.1f ns, clock_gettime %.1f ns, A/A %.3f", pair.subject, pair.yardstick,
            aa.ratio);
  bench_row ("event into a ring / clock_gettime", pair.ratio, "x", 1, 2.5, beside);
  bench_equal ("events written", written, pair.runs);
  shm_status_t status;
  shm_reader_status (reader, &status);
  bench_equal ("events lost", status.lost[WEFT_LOSS_RING_FULL] + status.lost[WEFT_LOSS_RING_BUSY], 0);
  while (shm_reader_next (reader, &report) == 1)
    ;
  shm_reader_consume (reader);
  report.name = "POST /orders/checkout";
  report.name_size = 21;
  bench_pair_t both = bench_pair (read_all, clocks, EVENTS);
  bench_note ("event written and read back", both.subject, "ns", "");
  (void) read_back;
  return bench_failed;
}
