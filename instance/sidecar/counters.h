/* SPDX-License-Identifier: Apache-2.0 */
/* counters: what an ACK and a BYE say of a probe in numbers, out of its memory. */
#ifndef CAR_COUNTERS_H
#define CAR_COUNTERS_H

#include "../../common/wire.h"
#include "../shm/reader.h"
#include "drain.h"

/* Fills the numbers of an ACK or a BYE; whose it is and why stays as it is. */
void car_counters_put (shm_reader_t *reader, car_drain_t *drain, weft_up_message_t *message);

#endif
