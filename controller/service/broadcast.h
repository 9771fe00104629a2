/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast: the XPUB socket that instructions leave by, and, as the first
 * socket to open and the last to close, the owner of the ZeroMQ context that
 * intake and control borrow. Loses what a slow subscriber does not take: the
 * heartbeat's epoch and number let it notice and ask. One thread. */
#ifndef CTL_BROADCAST_H
#define CTL_BROADCAST_H

#include <stddef.h>
#include <stdint.h>

#include "../../common/wire.h"
#include "guard.h"
#include "instructions.h"

typedef struct ctl_broadcast_t ctl_broadcast_t;

/* Opens and binds at `address`, which the caller has claimed. `guard`, borrowed, judges who connects to any of
 * the three sockets; NULL: nobody does. WEFT_E_BUSY, WEFT_E_IO with `why`. */
int ctl_broadcast_new (const char *address, ctl_guard_t *guard, ctl_broadcast_t **ret_self, char *why,
                       size_t why_size);
/* Destroy after intake and control: waits for the context. */
void ctl_broadcast_destroy (ctl_broadcast_t **self_p);

/* For the other two sockets of this controller. `type` is ZeroMQ's; bounded water marks and frame
 * sizes, short linger. WEFT_E_BUSY, WEFT_E_IO with `why`. */
int ctl_broadcast_bind (ctl_broadcast_t *self, int type, weft_endpoint_t which, void **ret_socket, char *why,
                        size_t why_size);

/* To `topic`. The message says the rest; controller uuid is filled in here. */
int ctl_broadcast_send (ctl_broadcast_t *self, const char *topic, const weft_bus_message_t *message);
/* Every live instruction and their epoch, to `topic`. */
int ctl_broadcast_state (ctl_broadcast_t *self, const char *topic, const ctl_instructions_t *instructions);
const uint8_t *ctl_broadcast_uuid (const ctl_broadcast_t *self);

/* For poll (2): edge-triggered, so pump until 0 before waiting. */
int ctl_broadcast_fd (const ctl_broadcast_t *self);
/* Takes what subscribers say (their subscriptions) off the socket; the number of messages. */
int ctl_broadcast_pump (ctl_broadcast_t *self);

#endif
