/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory as the probe's writer uses it, scribbled over by the other
 * side: a write is made inside the rings, or dropped and counted; nothing else
 * is touched and nobody waits. */
#include "../../instance/shm/writer.h"
#include "scribble.h"

#define WRITES 48

/* Everything but the rings, the counts and what the input wrote stays as it was. */
static uint64_t sum_of (const uint8_t *base)
{
  uint64_t sum = 1469598103934665603u;
  for (size_t at = SHM_HEAD_AT; at < SHM_STATUS_AT; at += 8) {
    uint64_t word;
    memcpy (&word, base + at, 8);
    sum = (sum ^ word) * 1099511628211u;
  }
  for (size_t at = SHM_SPOOL_AT; at < SHM_SPOOL_AT + 4096; at++)
    sum = (sum ^ base[at]) * 1099511628211u;
  return sum;
}

static uint64_t lost (uint8_t *base)
{
  const uint64_t *count = shm_status (base)->lost;
  return count[WEFT_LOSS_RING_FULL] + count[WEFT_LOSS_RING_BUSY];
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static char name[WEFT_NAME_MAX + 64];
  fuzz_input_t input = {data, data + size};
  uint8_t *base = scribble_memory ();
  memset (name, 'n', sizeof name);
  unsigned scribbles = (unsigned) fuzz_take (&input, 1) % 24;
  for (unsigned i = 0; i < scribbles; i++)
    scribble_once (base, &input);
  uint64_t before = sum_of (base);
  for (unsigned i = 0; i < WRITES; i++) {
    weft_report_t report = {.kind = (uint8_t) fuzz_take (&input, 1), .name = name};
    report.name_size = (uint16_t) (fuzz_take (&input, 1) % sizeof name);
    uint64_t dropped = lost (base);
    int left = shm_status (base)->state == SHM_STATE_LEFT;
    int done = shm_write (base, 1 + (uint32_t) fuzz_take (&input, 1) % 64, &report);
    FUZZ_MUST (done == 0 || done == 1);
    FUZZ_MUST (left ? !done : lost (base) == dropped + (uint64_t) !done);
  }
  FUZZ_MUST (sum_of (base) == before);
  shm_quiesce (base, 0);
  return 0;
}
