/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that are not batches. What is taken can be said again, and is
 * then the same. */
#include "../../common/wire.h"
#include "fuzz.h"

static void instructions (const uint8_t *data, size_t size)
{
  weft_bus_message_t message, again;
  void *packed = NULL, *twice = NULL;
  size_t packed_size = 0, twice_size = 0;
  if (weft_bus_unpack (data, size, &message) < 0)
    return;
  FUZZ_MUST (message.instruction_count <= WEFT_INSTRUCTIONS_MAX);
  FUZZ_MUST (weft_bus_pack (&message, &packed, &packed_size) == 0);
  FUZZ_MUST (weft_bus_unpack (packed, packed_size, &again) == 0);
  FUZZ_MUST (weft_bus_pack (&again, &twice, &twice_size) == 0);
  FUZZ_MUST (packed_size == twice_size && memcmp (packed, twice, twice_size) == 0);
  weft_bus_clear (&message);
  weft_bus_clear (&again);
  free (packed);
  free (twice);
}

static void reports (const uint8_t *data, size_t size)
{
  weft_up_message_t message, again;
  weft_up_kind_t kind;
  void *packed = NULL, *twice = NULL;
  size_t packed_size = 0, twice_size = 0;
  weft_up_kind (data, size, &kind);
  if (weft_up_unpack (data, size, &message) < 0)
    return;
  FUZZ_MUST (strnlen (message.service, sizeof message.service) < sizeof message.service);
  FUZZ_MUST (strnlen (message.reason, sizeof message.reason) < sizeof message.reason);
  if (weft_up_pack (&message, &packed, &packed_size) < 0)
    return;
  FUZZ_MUST (weft_up_unpack (packed, packed_size, &again) == 0);
  FUZZ_MUST (weft_up_pack (&again, &twice, &twice_size) == 0);
  FUZZ_MUST (packed_size == twice_size && memcmp (packed, twice, twice_size) == 0);
  free (packed);
  free (twice);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  instructions (data, size);
  reports (data, size);
  return 0;
}
