/* SPDX-License-Identifier: Apache-2.0 */
/* reach: what a subtask waits for before it can talk to a peer: names that are looked up,
 * and connects, of which those that fail are told: refused, timed out, reset. One that is
 * still under way when connect returns is noted with its connection; how it went is told
 * by SO_ERROR, by the first transfer that fails, or by the kernel's state at the close: an
 * application that has waited long enough just closes.
 *
 *  A1  only from within a known subtask; a name never leaves this file
 *  A2  a connect is told once, and never after bytes have passed
 *
 * Any thread, errno kept. */
#ifndef PROBE_REACH_H
#define PROBE_REACH_H

#include <sys/socket.h>

#include "exchange.h"

typedef struct {
  uint64_t start_ns; /* 0: not followed */
  probe_context_t of;
} probe_reach_t;
/* Something that takes time begins. 0: nobody's (A1). */
int probe_reach_begin (probe_reach_t *ret_reach);

/* connect() is under way (`error` EINPROGRESS or EINTR; its connection has been born), or
 * has failed at once. */
void probe_reach_connect (int fd, const probe_reach_t *reach, const struct sockaddr *address, socklen_t size,
                          int error);
/* SO_ERROR was asked for and is `error`; or a transfer failed with it. */
void probe_reach_told (int fd, int error);
/* The connection is closed, its fd is still open. */
void probe_reach_closing (probe_connection_t *self);

/* 1: `node` has to be looked up, and ret_reach says since when. `flags` as in addrinfo. */
int probe_reach_lookup (const char *node, int flags, probe_reach_t *ret_reach);
/* `again`: no server answered. */
void probe_reach_looked_up (const probe_reach_t *reach, int again);

#endif
