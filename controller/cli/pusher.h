/* SPDX-License-Identifier: Apache-2.0 */
/* pusher: the instances' side of both buses, for a replay: frames go out by PUSH
 * under a water mark, acknowledgements come back by SUB. Knows ZeroMQ, and
 * nothing of what it sends. One thread. */
#ifndef CTL_PUSHER_H
#define CTL_PUSHER_H

#include <stddef.h>
#include <stdint.h>

#include "../../common/limits.h"

typedef struct ctl_pusher_t ctl_pusher_t;

/* WEFT_E_IO, WEFT_E_MALFORMED with `why`. */
int ctl_pusher_open (const char *address, ctl_pusher_t **ret_self, char *why, size_t why_size);
void ctl_pusher_close (ctl_pusher_t **self_p);

/* Room for a frame that send will send; borrowed until then. NULL: no memory. */
void *ctl_pusher_frame (ctl_pusher_t *self, size_t size);
/* `frame` itself will be sent, not a copy: it stays as it is until close. WEFT_E_NOMEM. */
int ctl_pusher_lend (ctl_pusher_t *self, const void *frame, size_t size);
/* Sends the first `size` bytes of what was made or lent. WEFT_E_BUSY: the water mark is reached, call again. */
int ctl_pusher_send (ctl_pusher_t *self, size_t size);

/* Something that the controller told an instance: batches up to `number` of `start` are taken, or
 * (number 0) anything else, which proves that we hear it. */
typedef struct {
  uint8_t instance[WEFT_UUID_SIZE]; /* whom it was told */
  uint8_t start[WEFT_UUID_SIZE];
  uint64_t number;
} ctl_pusher_heard_t;
/* 1: heard; 0: nothing within wait_ms. */
int ctl_pusher_hear (ctl_pusher_t *self, unsigned wait_ms, ctl_pusher_heard_t *ret_heard);

#endif
