/* SPDX-License-Identifier: Apache-2.0 */
/* bus: the sidecar's two sockets: SUB for instructions, PUSH for reports. The
 * only module of the sidecar that knows ZeroMQ. Nothing here blocks but
 * car_bus_wait. One thread; made after the last fork. */
#ifndef CAR_BUS_H
#define CAR_BUS_H

#include <stddef.h>
#include <stdint.h>

#include "../../common/keys.h"
#include "../../common/wire.h"

#define CAR_BUS_SEND_HWM      16   /* 64 KiB batches in flight: 1 MiB; the spool holds the rest */
#define CAR_BUS_RECEIVE_HWM   1000 /* instructions are small */
#define CAR_BUS_LINGER_MS     500  /* for a BYE on its way out */
#define CAR_BUS_RECONNECT_MS  50   /* first pause before another connect */
#define CAR_BUS_RECONNECT_MAX 500
/* Over tcp: a network that was cut holds a connection up for as long again as the cut took,
 * while TCP doubles its pauses. One that says nothing is made anew instead. */
#define CAR_BUS_PING_MS    2000
#define CAR_BUS_SILENT_MS  6000
#define CAR_BUS_CONNECT_MS 3000
#define CAR_BUS_FDS_MAX    4
#define CAR_BUS_TOPICS_MAX 4096 /* two for every process of a tree, and room for those that end */

typedef struct car_bus_t car_bus_t;

/* controller: base address, see weft_endpoint. keys: of the instance, copied; NULL or
 * not loaded: none. 0, or a status with the reason in why. A controller that does
 * not listen yet is no failure. */
int car_bus_new (const char *controller, const weft_keys_t *keys, car_bus_t **ret_self, char *why,
                 size_t why_size);
void car_bus_destroy (car_bus_t **self_p);

/* Several may want the same topic: it ends with the last of them. */
int car_bus_subscribe (car_bus_t *self, const char *topic);
int car_bus_unsubscribe (car_bus_t *self, const char *topic);
/* 0; WEFT_E_BUSY: nobody takes it now; WEFT_E_IO. `self` is a car_bus_t. */
int car_bus_push (void *self, const void *data, size_t size);
/* 0 and a message (weft_bus_clear it) with the topic it came on, borrowed until the
 * next call; WEFT_E_NOT_FOUND: none is waiting. What is no message of ours is
 * skipped and counted. */
int car_bus_receive (car_bus_t *self, weft_bus_message_t *ret_message, const char **ret_topic);
/* Messages skipped. */
uint64_t car_bus_garbage (const car_bus_t *self);
/* Waits for a message, room to push (if want_push) or one of `fds`, at most
 * timeout_ms. *ret_ready: bit n for fds[n]. */
int car_bus_wait (car_bus_t *self, const int *fds, unsigned count, int want_push, int timeout_ms,
                  uint32_t *ret_ready);
/* 1 once after the connection for reports was lost: what was pushed before may
 * not have arrived. Known before anything can be pushed over the next one. */
int car_bus_interrupted (car_bus_t *self);

#endif
