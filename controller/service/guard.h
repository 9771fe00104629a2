/* SPDX-License-Identifier: Apache-2.0 */
/* guard: who may connect to the controller's three sockets. It answers libzmq's
 * question for every peer that says who it is (ZAP), and counts what became of
 * those who do not.
 *
 *   ipc           uid of the peer as the kernel knows it: ours or root's
 *   tcp, keys     CURVE: the public key is admitted in the role of that socket
 *                 (clients: control; instances: instructions and reports)
 *   tcp, no keys  everybody who can reach the address
 *
 *  G1  whatever is not understood is refused
 *  G2  what a peer may do is settled before a byte of its messages is read
 *  G3  at most WEFT_CONNECTIONS_MAX are open; who says nothing is dropped after WEFT_HANDSHAKE_MS
 *  G4  the name that is admitted here is the "User-Id" of each message: audit and rates go by it
 * One thread. */
#ifndef CTL_GUARD_H
#define CTL_GUARD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../common/endpoint.h"
#include "../../common/limits.h"
#include "keyring.h"

#define CTL_GUARD_FDS 4

#define CTL_GUARD_MAP(XX)                                                                                    \
  XX (accepted, "connections")                                                                               \
  XX (open, "open now")                                                                                      \
  XX (admitted, "admitted")                                                                                  \
  XX (unlisted, "with a key that is not admitted there")                                                     \
  XX (foreign, "of another user")                                                                            \
  XX (full, "beyond the limit of connections")                                                               \
  XX (unclear, "that could not be judged")                                                                   \
  XX (broken, "that do not speak the protocol, or without the controller's key")                             \
  XX (silent, "that did not say who they are in time")                                                       \
  XX (hung_up, "that left before they said who they are")                                                    \
  XX (unfinished, "without a finished handshake, for whatever reason, or not yet")                           \
  XX (throttled, "requests beyond the rate of one client")

typedef struct {
#define XX(name, text) uint64_t name;
  CTL_GUARD_MAP (XX)
#undef XX
} ctl_guard_stats_t;

/* ---- one decision, without a socket ------------------------------------- */

typedef struct {
  int ipc;
  ctl_keyring_t *keyring; /* NULL: no keys */
  uid_t owner;
  uint64_t open; /* connections, this one included */
} ctl_guard_policy_t;

typedef struct {
  weft_endpoint_t socket;
  const char *mechanism;     /* "NULL", "CURVE", … */
  const char *address;       /* of the peer, as libzmq gives it */
  const uint8_t *credential; /* CURVE: the public key, 32 bytes */
  size_t credential_size;
} ctl_guard_request_t;

typedef enum {
  CTL_GUARD_ADMITTED,
  CTL_GUARD_UNLISTED,
  CTL_GUARD_FOREIGN,
  CTL_GUARD_FULL,
  CTL_GUARD_UNCLEAR
} ctl_guard_verdict_t;

/* ret_who: "uid 1000 pid 4242", "key box2", "tcp 127.0.0.1"; "" unless admitted. */
ctl_guard_verdict_t ctl_guard_judge (const ctl_guard_policy_t *policy, const ctl_guard_request_t *request,
                                     char ret_who[WEFT_WHO_MAX]);

/* ---- at the sockets ------------------------------------------------------ */

typedef struct ctl_guard_t ctl_guard_t;

/* For a controller that listens at `address`; `keys` a directory of keys, NULL: none. They are read for tcp
 * only. Status as of weft_keys_read, WEFT_E_NOMEM, with why. */
int ctl_guard_new (const char *address, const char *keys, ctl_guard_t **ret_self, char *why, size_t why_size);
void ctl_guard_destroy (ctl_guard_t **self_p);

/* Before any other socket of the context. WEFT_E_IO. */
int ctl_guard_open (ctl_guard_t *self, void *context);
/* Before the socket is bound. WEFT_E_IO. */
int ctl_guard_watch (ctl_guard_t *self, void *socket, weft_endpoint_t which);
/* After the sockets are closed, before the context is terminated. */
void ctl_guard_close (ctl_guard_t *self);

/* For poll (2): edge-triggered, so pump until 0 before waiting. -1 where there is none. */
void ctl_guard_fds (const ctl_guard_t *self, int ret_fds[CTL_GUARD_FDS]);
/* Judges who waits and counts what happened; how much of both. */
int ctl_guard_pump (ctl_guard_t *self);
/* A request was not answered because its client asks too often. */
void ctl_guard_throttled (ctl_guard_t *self);
const ctl_guard_stats_t *ctl_guard_stats (ctl_guard_t *self);
/* 1 and a line for the log if somebody was refused since the last time. */
int ctl_guard_complaint (ctl_guard_t *self, char *out, size_t size);

#endif
