/* SPDX-License-Identifier: Apache-2.0 */
/* proof: does the kernel agree that we saw every byte of a connection (C2), and
 * how a connection from before the attach comes to be understood.
 *
 * UNKNOWN -> CANDIDATE at a request line after a turn, with the kernel's counts
 * as a base; CANDIDATE -> PROVEN after one exchange in lockstep: the request
 * ended exactly where its bytes ended, its answer too, nothing came between,
 * nothing is waiting, and the kernel counted what we counted. UNKNOWN -> PROVEN
 * at once where the kernel says that nothing had passed before our first sight. */
#ifndef PROBE_PROOF_H
#define PROBE_PROOF_H

#include "exchange.h"

#define PROBE_PROOF_EVERY     64 /* insertions between two proofs; a proof costs about 1 us */
#define PROBE_CANDIDACIES_MAX 8  /* a stream that failed so often is left alone */

/* What the kernel has counted: bytes written (sent or queued), read by
 * somebody, received but not read yet. */
typedef struct {
  uint64_t written, read, unread;
} probe_counts_t;

typedef enum { PROBE_SOCKET_STREAM, PROBE_SOCKET_UNCONNECTED, PROBE_SOCKET_NONE } probe_socket_t;

/* The questions that the probe asks the kernel; a test answers them itself. */
typedef struct {
  /* Kind of the fd and, if it is a connected stream, both ends. */
  probe_socket_t (*describe) (int fd, weft_address_t *ret_local, weft_address_t *ret_peer);
  /* 0, or negative: no TCP socket, or the counts do not stand still. */
  int (*counts) (int fd, probe_counts_t *ret_counts);
  /* 1: O_NONBLOCK is set. */
  int (*nonblocking) (int fd);
  /* Of a connect that nobody has heard of again: 0, or why it has not reached its peer
   * (ETIMEDOUT: it has not ended). */
  int (*outcome) (int fd);
} probe_kernel_t;
extern probe_kernel_t probe_kernel;

/* 1: the kernel agrees; 0: it does not; -1: cannot be said now, somebody is in
 * a system call on it. The caller owns the outbound direction. */
int probe_proof_holds (probe_connection_t *self);
/* UNKNOWN: are these bytes, which pass in `direction`, the start of a request?
 * 1: now CANDIDATE or PROVEN, with a role. The caller owns the direction. Inbound bytes
 * were read already, outbound ones are not written yet. */
int probe_proof_candidate (probe_connection_t *self, probe_direction_t direction, const void *data,
                           size_t first_size, size_t size);
/* CANDIDATE: an exchange is over. 1: now PROVEN. */
int probe_proof_complete (probe_connection_t *self);
/* Family 0 where it is none that we know. */
void probe_address_of (const struct sockaddr *from, socklen_t size, weft_address_t *ret_address);
/* 1: loopback, private or link-local, or a unix socket. */
int probe_address_private (const weft_address_t *address);

#endif
