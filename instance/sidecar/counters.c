/* SPDX-License-Identifier: Apache-2.0 */
#include "counters.h"

void car_counters_put (shm_reader_t *reader, car_drain_t *drain, weft_up_message_t *message)
{
  shm_status_t status;
  shm_reader_status (reader, &status);
  const uint64_t *counter = status.counter;
  message->active = status.actions;
  message->bytes_total = counter[SHM_COUNT_BYTES_TOTAL];
  message->bytes_spoken = counter[SHM_COUNT_BYTES_SPOKEN];
  message->connections_given_up = counter[SHM_COUNT_GIVEN_UP_OTHER] + counter[SHM_COUNT_GIVEN_UP_FRAMING] +
                                  counter[SHM_COUNT_GIVEN_UP_TUNNEL] + counter[SHM_COUNT_GIVEN_UP_PROOF] +
                                  counter[SHM_COUNT_GIVEN_UP_BUSY];
  message->requests_bare = counter[SHM_COUNT_BARE];
  message->requests_excluded = counter[SHM_COUNT_EXCLUDED];
  shm_reader_rest (reader, message->rest);
  message->events_written = car_drain_written (drain);
  message->requests_in = counter[SHM_COUNT_REQUESTS_IN];
  message->requests_unmatched = counter[SHM_COUNT_UNMATCHED];
  message->slots_written = status.slots_written;
  message->slots_restored = status.slots_restored;
  message->slots_foreign = status.slots_foreign;
}
