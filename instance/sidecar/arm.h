/* SPDX-License-Identifier: Apache-2.0 */
/* arm: from the instructions that are alive to what this one probe is told.
 *
 *   STATE ──▶ live ──(selector holds)──▶ union ──▶ control page ──▶ config_seen
 *                                                      │                 │
 *   HEARTBEAT (same controller, same epoch, fresh) ──▶ lease             ▼ ACK due
 *
 *  A1  a lease is renewed only by a heartbeat that left the controller within
 *      the lease, or by the answer to a HELLO sent within it
 *  A2  without a lease nothing is armed: what the probe has not seen active it
 *      need not forget
 *  A3  an ACK is due only after the probe works under the configuration
 *  A4  nothing depends on CLOCK_REALTIME: a controller of this boot is on our
 *      monotonic clock; the clock of any other is known from the last HELLO and
 *      its answer, between which it was read. A heartbeat that seems older than
 *      the next one asks for a HELLO anew: drift never ends a lease
 *
 * Knows no socket; times are given by the caller. One thread. */
#ifndef CAR_ARM_H
#define CAR_ARM_H

#include "../../common/selector.h"
#include "../../common/wire.h"
#include "../shm/reader.h"
#include "live.h"

#define CAR_ARM_PATIENCE_MS 1000 /* until a silent probe is told again */
/* What this probe can do; other actions are not armed and not acknowledged. */
#define CAR_ARM_ACTIONS (WEFT_ACTION_ROOT | WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE)

typedef struct car_arm_t car_arm_t;

/* boot: this kernel's boot id, zeros if it is not known. shelf: see live.h. NULL when out of memory. */
car_arm_t *car_arm_new (const uint8_t boot[WEFT_UUID_SIZE], car_live_t **shelf);
void car_arm_destroy (car_arm_t **self_p);

/* Of a forked child, whose memory begins with what its parent's holds: knows what the parent knows, and
 * tells its probe the same, so that nothing is off in between. */
void car_arm_inherit (car_arm_t *self, const car_arm_t *parent);

/* A HELLO went out at mono_ns. */
void car_arm_said_hello (car_arm_t *self, uint64_t mono_ns);
/* Takes the instructions out of a STATE, unless it has them already, or they lie on the shelf. alone: it came on our own topic. */
void car_arm_take_state (car_arm_t *self, weft_bus_message_t *message, int alone, uint64_t mono_ns);
/* 1: a HELLO is due: this controller's state is not ours, or its clock is not known (A4);
 * 0: all is well. */
int car_arm_take_heartbeat (car_arm_t *self, const weft_bus_message_t *heartbeat, uint64_t mono_ns);
/* Brings lease and configuration of the probe to what holds now. */
void car_arm_apply (car_arm_t *self, shm_reader_t *reader, const weft_subject_t *subject, uint64_t mono_ns);
/* 1 once for every new epoch or configuration, when the probe works under it. */
int car_arm_settled (car_arm_t *self, shm_reader_t *reader, uint64_t mono_ns);
/* The probe is another one (exec): everything has to be told again. */
void car_arm_forget_probe (car_arm_t *self);

/* 1 while a configuration has not been seen by the probe. */
int car_arm_pending (const car_arm_t *self);
/* 1 while the probe works under all that is known: an ACK would be true. */
int car_arm_in_force (const car_arm_t *self);
uint64_t car_arm_epoch (const car_arm_t *self);
/* 1 after the first STATE of the controller now heard. */
int car_arm_has_state (const car_arm_t *self);

#endif
