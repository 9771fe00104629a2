/* SPDX-License-Identifier: Apache-2.0 */
/* client: one conversation with a controller, and its start in the background
 * if none listens at a local address. The only room of the command line that
 * knows ZeroMQ. One thread. */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "../../common/keys.h"

typedef enum {
  CTL_CLIENT_EXISTING, /* there must be one */
  CTL_CLIENT_STORE,    /* start one if there is a store it can answer from */
  CTL_CLIENT_START     /* start one */
} ctl_client_how_t;

typedef struct ctl_client_t ctl_client_t;

/* For every client that is opened from then on: the directory of keys ("": none), and whether plain tcp
 * beyond this host is wanted. The directory is copied. */
void ctl_client_use (const char *keys, int plain_tcp);

/* What "client" or "instance" needs for that address, of the same directory; clear them after use. Status
 * as of weft_keys_read, with why. */
int ctl_client_keys (const char *address, const char *role, weft_keys_t *ret_keys, char *why,
                     size_t why_size);

/* 0, or a status; why not has been said on stderr. */
int ctl_client_open (const char *address, ctl_client_how_t how, ctl_client_t **ret_self);
void ctl_client_close (ctl_client_t **self_p);

/* Called with each frame behind the answer, borrowed. Its status ends the call. */
typedef int (ctl_client_frame_fn) (const void *data, size_t size, void *arg);

/* Takes the reference to `request`. 0: *ret_reply is the answer, a new reference (ret_reply may be
 * NULL). Else a status, and the controller's reason, or that it does not answer, has been said. */
int ctl_client_ask (ctl_client_t *self, json_t *request, ctl_client_frame_fn *fn, void *arg,
                    json_t **ret_reply);
/* The same with a bound, and nothing is said. */
int ctl_client_try (ctl_client_t *self, json_t *request, unsigned timeout_ms, json_t **ret_reply);

#endif
