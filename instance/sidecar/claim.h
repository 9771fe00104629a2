/* SPDX-License-Identifier: Apache-2.0 */
/* claim: one sidecar for one probe. Who works for a probe stands in its shared
 * memory (sidecar_pid, instance), so that no file, lock or directory can
 * disagree with it, and a successor of a sidecar that died keeps its uuid. */
#ifndef CAR_CLAIM_H
#define CAR_CLAIM_H

#include <stdint.h>

#include "../shm/reader.h"
#include "target.h"

#define CAR_CLAIM_POLL_MIN_MS 2 /* between two looks for a probe that is to come … */
#define CAR_CLAIM_POLL_MAX_MS 50
#define CAR_CLAIM_PROGRAM     "weft-instance" /* what a living sidecar is called */

/* Waits for the probe's memory in process `pid`, whose pidfd is given; `not` is
 * a start id that does not count (NULL: any does). 0; WEFT_E_TIMEOUT;
 * WEFT_E_GONE: the process ended; else what shm_reader_open found wrong. */
int car_claim_await (pid_t pid, int pidfd, const uint8_t *not_start, unsigned timeout_ms,
                     shm_reader_t **ret_reader);
/* Becomes the sidecar. *ret_instance: the uuid that goes with the probe, kept
 * from a predecessor, or a new one. WEFT_E_BUSY: another one lives, and
 * *ret_instance is its uuid. `prefer` (may be NULL): uuid to use if there is none. */
int car_claim_take (shm_reader_t *reader, const uint8_t *prefer, uint8_t ret_instance[WEFT_UUID_SIZE]);
/* The service name that a user once gave to this instance, cut and terminated;
 * `given` (may be NULL or "") becomes it. */
void car_claim_service (shm_reader_t *reader, const char *given, char out[WEFT_SERVICE_MAX]);
/* What the probe says of its VM, as far as it says more than was seen from outside. */
void car_claim_vm (shm_reader_t *reader, car_target_t *target);
/* Gives it back. */
void car_claim_drop (shm_reader_t *reader);
/* pid of the living sidecar of this probe, 0: none. */
pid_t car_claim_holder (shm_reader_t *reader);

#endif
