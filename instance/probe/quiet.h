/* SPDX-License-Identifier: Apache-2.0 */
/* quiet: fds of which a hook has nothing to do but the call: connections that were given
 * up. One byte an fd, looked at before anything else; what passes there the kernel counts.
 *
 *   LOOK ──▶ QUIET, SERVER           given up, nobody's calls
 *     │
 *     └────▶ CLIENT ◀──▶ CALLING     given up, of ours: the calls of a subtask (opaque.h)
 *
 *  Q1  an fd is not quiet unless its connection is given up for good (C5), nothing of an
 *      insert is pending on it, and it is a TCP socket: a unix socket's bytes only we count
 *  Q2  the byte belongs to the entry in probe_fds: whoever sets it looks again whether
 *      the entry is still the one; whoever takes the entry out clears it afterwards
 *  Q3  SERVER: a read is work that nobody follows, once something is open on the thread
 *      (probe_context_foreign). CLIENT: a write may be a call, once something is */
#ifndef PROBE_QUIET_H
#define PROBE_QUIET_H

#include <stdint.h>

#include "context.h"
#include "exchange.h"

enum { PROBE_FD_LOOK, PROBE_FD_QUIET, PROBE_FD_SERVER, PROBE_FD_CLIENT, PROBE_FD_CALLING };

#pragma GCC visibility push(hidden)
extern uint8_t probe_quiet[PROBE_FDS_MAX];
#pragma GCC visibility pop

static inline uint8_t probe_quiet_fd (int fd)
{
  return (unsigned) fd < PROBE_FDS_MAX ? __atomic_load_n (&probe_quiet[fd], __ATOMIC_RELAXED) : PROBE_FD_LOOK;
}

/* A given-up connection is about to be used: from its next call on the kernel counts, where
 * Q1 holds. 0: it is no connection, and the record may be gone. */
int probe_quiet_become (probe_connection_t *self, int fd);
/* Around a read on it. 0: the plain call; 1: heard is due. `room`: of the caller's buffers. */
int probe_quiet_reads (probe_connection_t *self, int fd, probe_read_t *read);
void probe_quiet_heard (const probe_read_t *read, ssize_t result, size_t room);
/* Q2. */
void probe_quiet_set (const probe_connection_t *self, int fd, uint8_t state);
/* Adds what the kernel has counted since the last time. */
void probe_quiet_count (probe_connection_t *self);

/* 1: the plain call and nothing more. */
static inline int probe_quiet_write (int fd)
{
  uint8_t state = probe_quiet_fd (fd);
  return state != PROBE_FD_LOOK &&
         (state <= PROBE_FD_SERVER || (state == PROBE_FD_CLIENT && !probe_context_near ()));
}
static inline int probe_quiet_read (int fd)
{
  uint8_t state = probe_quiet_fd (fd);
  return (state & 1) || (state == PROBE_FD_SERVER && !probe_context_near ());
}
_Static_assert((PROBE_FD_QUIET & 1) && (PROBE_FD_CLIENT & 1) && !(PROBE_FD_LOOK & 1) &&
                   !(PROBE_FD_SERVER & 1) && !(PROBE_FD_CALLING & 1),
               "what is never looked at when it is read is odd");

#endif
