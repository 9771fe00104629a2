/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory as a sidecar reads it, written by a VM that went mad, before
 * and while it is read. Whatever stands there, what goes out is whole batches. */
#include <unistd.h>

#include "../../common/batch.h"
#include "../../instance/sidecar/drain.h"
#include "scribble.h"

#define ROUNDS  4
#define READS   (SHM_RINGS * SHM_RING_SIZE / SHM_EVENT_NAME_AT + 1)
#define BATCHES (SHM_SPOOL_SLOTS * 2)

static weft_batch_reader_t batch;

static int push (void *to, const void *data, size_t size)
{
  weft_report_t report;
  const uint8_t *ours = to;
  FUZZ_MUST (size <= WEFT_BATCH_MAX);
  /* A batch that the VM itself sealed, checksum and all, is the controller's to refuse. */
  if (weft_batch_reader_begin (&batch, data, size) < 0)
    return 0;
  if (memcmp (batch.head.instance, ours, WEFT_UUID_SIZE) == 0)
    while (weft_batch_reader_next (&batch, &report) == 1)
      FUZZ_MUST (report.name_size <= WEFT_NAME_MAX);
  return 0;
}

static void read_plainly (void *base, fuzz_input_t *input)
{
  shm_reader_t *reader;
  weft_report_t report;
  shm_status_t status;
  unsigned reads = 0;
  FUZZ_MUST (shm_reader_over (base, &reader) == 0);
  while (shm_reader_next (reader, &report) == 1) {
    FUZZ_MUST (++reads <= READS);
    FUZZ_MUST (report.name_size <= WEFT_NAME_MAX && report.kind >= 1 && report.kind <= 3);
    if (reads % 8 == 0)
      scribble_once (base, input);
    if (input->at == input->end && reads > READS / 2)
      break;
  }
  shm_reader_status (reader, &status);
  FUZZ_MUST (status.state <= SHM_STATE_LEFT);
  shm_reader_destroy (&reader);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static const uint8_t instance[WEFT_UUID_SIZE] = {7}, boot[WEFT_UUID_SIZE] = {8};
  fuzz_input_t input = {data, data + size};
  uint8_t *base = scribble_memory ();
  shm_reader_t *reader;
  car_drain_t *drain;
  uint64_t mono_ns = 1;
  unsigned first = (unsigned) fuzz_take (&input, 1);
  for (unsigned i = 0; i < first % 32; i++)
    scribble_once (base, &input);
  if (first & 0x80u)
    read_plainly (base, &input);
  FUZZ_MUST (shm_reader_over (base, &reader) == 0);
  FUZZ_MUST (car_drain_new (reader, instance, boot, NULL, &drain) == 0);
  for (unsigned round = 0; round < ROUNDS; round++) {
    for (unsigned i = 0; car_drain_collect (drain, getpid ()) == 0 && i < BATCHES; i++)
      ;
    car_drain_push (drain, push, (void *) (uintptr_t) instance, mono_ns += 1000000000u);
    car_drain_acked (drain, ((shm_head_t *) base)->start,
                     car_drain_number (drain) - fuzz_take (&input, 1) % 3, mono_ns);
    FUZZ_MUST (car_drain_waiting (drain) <= SHM_SPOOL_SLOTS);
    scribble_once (base, &input);
    scribble_once (base, &input);
  }
  car_drain_destroy (&drain);
  shm_reader_destroy (&reader);
  return 0;
}
