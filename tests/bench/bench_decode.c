/* SPDX-License-Identifier: Apache-2.0 */
/* What decoding one report costs, beside a streamed 128-byte memcpy: both walk
 * through memory larger than the last-level cache, as frames from a socket do. */
#include "../../common/batch.h"
#include "../../common/ids.h"
#include "bench.h"

#define FRAMES     2048u
#define COPY_BYTES 128u

static uint8_t *frames;
static size_t frame_size[FRAMES];
static uint32_t frame_reports[FRAMES];
static uint64_t total, decoded, sum;
static weft_batch_reader_t reader;

static int make_frames (void)
{
  weft_ids_t ids;
  weft_ids_seed (&ids);
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  frames = malloc ((size_t) FRAMES * WEFT_BATCH_MAX);
  if (!writer || !frames)
    return -1;
  char names[32][32];
  for (unsigned i = 0; i < 32; i++)
    snprintf (names[i], sizeof names[i], "GET /orders/{id}/items-%u", i);
  for (unsigned f = 0; f < FRAMES; f++) {
    weft_batch_head_t head = {.major = 1, .number = f + 1};
    if (weft_batch_writer_begin (writer, frames + (size_t) f * WEFT_BATCH_MAX, WEFT_BATCH_MAX, &head))
      return -1;
    for (unsigned i = 0;; i++) {
      weft_report_t report = {.kind = i & 1 ? WEFT_REPORT_EMBED : WEFT_REPORT_CAPTURE,
                              .status = 200,
                              .request = weft_ids_next (&ids),
                              .subtask = weft_ids_next (&ids),
                              .start_ns = 1000000u + i,
                              .end_ns = 2000000u + i,
                              .cpu_ns = 500,
                              .tid = 4711,
                              .name = names[i % 32]};
      report.name_size = (uint16_t) strlen (report.name);
      report.local.family = report.peer.family = 4;
      report.local.port = 8080;
      weft_ids_task (&ids, report.task);
      if (weft_batch_writer_add (writer, &report))
        break;
    }
    frame_reports[f] = weft_batch_writer_count (writer);
    total += frame_reports[f];
    if (weft_batch_writer_finish (writer, &head, &frame_size[f]))
      return -1;
  }
  weft_batch_writer_destroy (&writer);
  return 0;
}

static void decode (uint64_t n)
{
  uint64_t done = 0;
  weft_report_t report;
  for (unsigned f = 0; done < n; f = (f + 1) % FRAMES) {
    if (weft_batch_reader_begin (&reader, frames + (size_t) f * WEFT_BATCH_MAX, frame_size[f]))
      bench_failed = 1;
    uint32_t got = 0;
    while (weft_batch_reader_next (&reader, &report) == 1) {
      sum += report.request + report.task[0] + report.end_ns;
      got++;
    }
    if (got != frame_reports[f])
      bench_failed = 1;
    done += got;
    decoded += got;
  }
}

static void copy (uint64_t n)
{
  static uint8_t to[COPY_BYTES];
  size_t room = (size_t) FRAMES * WEFT_BATCH_MAX - COPY_BYTES;
  size_t at = 0;
  for (uint64_t i = 0; i < n; i++) {
    memcpy (to, frames + at, COPY_BYTES);
    BENCH_KEEP (to);
    at += COPY_BYTES;
    if (at >= room)
      at = 0;
  }
}

int main (void)
{
  if (make_frames ()) {
    puts ("decode: out of memory: FAIL");
    return 1;
  }
  bench_pair_t pair = bench_pair (decode, copy, 15 * total);
  char beside[128];
  snprintf (beside, sizeof beside, "%.1f ns a report of %.0f B, memcpy of 128 B %.1f ns", pair.subject,
            (double) frame_size[0] / frame_reports[0], pair.yardstick);
  bench_row ("decode a report / streamed 128-byte memcpy", pair.ratio, "x", 1, 10, beside);
  BENCH_KEEP (sum);
  return bench_failed;
}
