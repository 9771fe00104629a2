/* SPDX-License-Identifier: Apache-2.0 */
/* control: the ROUTER socket of the command line. Takes requests off it, hands
 * them to requests.h, sends the answers. A client that went away, or does not
 * read, loses its answer; nobody waits for it. One thread. */
#ifndef CTL_CONTROL_H
#define CTL_CONTROL_H

#include <stddef.h>

#include "broadcast.h"
#include "requests.h"

typedef struct ctl_control_t ctl_control_t;

/* Borrows both. WEFT_E_BUSY, WEFT_E_IO with `why`. */
int ctl_control_new (ctl_broadcast_t *broadcast, ctl_house_t *house, ctl_control_t **ret_self, char *why,
                     size_t why_size);
void ctl_control_destroy (ctl_control_t **self_p);
/* Answers at most WEFT_CONTROL_BURST requests, each client at most WEFT_REQUESTS_RATE a second; how many. Edge-triggered fd: pump until 0. */
int ctl_control_pump (ctl_control_t *self);
int ctl_control_fd (const ctl_control_t *self);

#endif
