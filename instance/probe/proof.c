/* SPDX-License-Identifier: Apache-2.0 */
#include "proof.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../../common/fault_step.h"
#include "record.h"

#define STABLE_TRIES 4 /* reads of the kernel's counts until two agree */
#define AGREE_TRIES  8 /* looks while another thread is between its system call and us */

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* ---- the real kernel ---------------------------------------------------- */
void probe_address_of (const struct sockaddr *from, socklen_t size, weft_address_t *ret_address)
{
  weft_address_t address;
  memset (&address, 0, sizeof address);
  sa_family_t family = from && size >= sizeof family ? from->sa_family : AF_UNSPEC;
  if (family == AF_INET && size >= sizeof (struct sockaddr_in)) {
    struct sockaddr_in in;
    memcpy (&in, from, sizeof in);
    memcpy (address.ip, mapped, sizeof mapped);
    memcpy (address.ip + 12, &in.sin_addr, 4);
    address.port = ntohs (in.sin_port);
    address.family = 4;
  } else if (family == AF_INET6 && size >= offsetof (struct sockaddr_in6, sin6_scope_id)) {
    struct sockaddr_in6 in;
    memcpy (&in, from, offsetof (struct sockaddr_in6, sin6_scope_id));
    memcpy (address.ip, &in.sin6_addr, 16);
    address.port = ntohs (in.sin6_port);
    // Both ends of one connection must read the same, whatever socket they use.
    address.family = memcmp (address.ip, mapped, sizeof mapped) == 0 ? 4 : 6;
  } else if (family == AF_UNIX) {
    address.family = 1;
  }
  *ret_address = address;
}

static probe_socket_t real_describe (int fd, weft_address_t *ret_local, weft_address_t *ret_peer)
{
  int type = 0;
  struct sockaddr_storage local, peer;
  socklen_t size = sizeof type;
  if (getsockopt (fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
    return PROBE_SOCKET_NONE;
  socklen_t local_size = sizeof local, peer_size = sizeof peer;
  memset (&local, 0, sizeof local);
  memset (&peer, 0, sizeof peer);
  if (getsockname (fd, (struct sockaddr *) &local, &local_size) != 0)
    return PROBE_SOCKET_NONE;
  if (local.ss_family != AF_INET && local.ss_family != AF_INET6 && local.ss_family != AF_UNIX)
    return PROBE_SOCKET_NONE;
  if (getpeername (fd, (struct sockaddr *) &peer, &peer_size) != 0)
    return PROBE_SOCKET_UNCONNECTED;
  probe_address_of ((const struct sockaddr *) &local, sizeof local, ret_local);
  probe_address_of ((const struct sockaddr *) &peer, sizeof peer, ret_peer);
  if (ret_peer->family == 0)
    ret_peer->family = 1; // an unnamed unix socket
  return PROBE_SOCKET_STREAM;
}

#define SYN_SENT 2 /* of tcpi_state; netinet/tcp.h, which names it, cannot stand beside linux/tcp.h */

static int tcp_info (int fd, struct tcp_info *ret_info)
{
  socklen_t size = sizeof *ret_info;
  memset (ret_info, 0, sizeof *ret_info);
  if (getsockopt (fd, IPPROTO_TCP, TCP_INFO, ret_info, &size) != 0)
    return -1;
  return size >= offsetof (struct tcp_info, tcpi_segs_out) ? 0 : -1;
}

static int real_counts (int fd, probe_counts_t *ret_counts)
{
  struct tcp_info before, after;
  if (tcp_info (fd, &before))
    return -1;
  for (int i = 0; i < STABLE_TRIES; i++) {
    int unsent = 0, unread = 0;
    if (ioctl (fd, SIOCOUTQ, &unsent) != 0 || ioctl (fd, SIOCINQ, &unread) != 0 || tcp_info (fd, &after))
      return -1;
    if (before.tcpi_bytes_acked == after.tcpi_bytes_acked &&
        before.tcpi_bytes_received == after.tcpi_bytes_received) {
      ret_counts->written = after.tcpi_bytes_acked + (uint64_t) unsent;
      ret_counts->read = after.tcpi_bytes_received - (uint64_t) unread;
      ret_counts->unread = (uint64_t) unread;
      return 0;
    }
    before = after;
  }
  return -1;
}

static int real_nonblocking (int fd)
{
  int flags = fcntl (fd, F_GETFL);
  return flags < 0 || (flags & O_NONBLOCK);
}

static int real_outcome (int fd)
{
  struct tcp_info info;
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt (fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error)
    return error;
  return tcp_info (fd, &info) == 0 && info.tcpi_state == SYN_SENT ? ETIMEDOUT : 0;
}

probe_kernel_t probe_kernel = {real_describe, real_counts, real_nonblocking, real_outcome};

static int kernel_counts (int fd, probe_counts_t *ret_counts)
{
  return WEFT_STEP_FAILS ("counts") ? -1 : probe_kernel.counts (fd, ret_counts);
}

/* ---- the proof ---------------------------------------------------------- */
/* Only what is seen from birth can be a unix socket in state PROVEN. */
static int is_unix (const probe_connection_t *self)
{
  return self->peer.family == 1;
}

static int agrees (const probe_connection_t *self, const probe_counts_t *counts)
{
  return !WEFT_STEP_FAILS ("agreement") && counts->written == self->base[PROBE_OUT] + self->seen[PROBE_OUT] &&
         counts->read == self->base[PROBE_IN] + __atomic_load_n (&self->seen[PROBE_IN], __ATOMIC_ACQUIRE);
}

int probe_proof_holds (probe_connection_t *self)
{
  probe_counts_t counts;
  int calling = 0;
  if (is_unix (self))
    return 1;
  for (int i = 0; i < AGREE_TRIES; i++) {
    if (i)
      sched_yield ();
    // Looked at first: who is in a call now may be behind it when we count.
    calling |= __atomic_load_n (&self->calling[PROBE_IN], __ATOMIC_ACQUIRE) |
               __atomic_load_n (&self->calling[PROBE_OUT], __ATOMIC_ACQUIRE);
    if (kernel_counts (self->fd, &counts) == 0 && agrees (self, &counts))
      return 1;
    if (!calling && i)
      return 0;
  }
  return calling ? -1 : 0;
}

/* ---- from mid-life ------------------------------------------------------ */
static void candidate_start (probe_connection_t *self, probe_direction_t direction)
{
  int client = direction == PROBE_OUT;
  probe_http1_init (&self->machine[PROBE_OUT], client ? PROBE_HTTP1_REQUEST : PROBE_HTTP1_RESPONSE);
  probe_http1_init (&self->machine[PROBE_IN], client ? PROBE_HTTP1_RESPONSE : PROBE_HTTP1_REQUEST);
  self->pushed = self->popped = 0;
  self->seen[PROBE_IN] = self->seen[PROBE_OUT] = 0;
  self->role = client ? PROBE_ROLE_CLIENT : PROBE_ROLE_SERVER;
  self->tries++;
}

/* Nothing had passed before these bytes: its birth went unseen (a thread that was
 * already waiting in accept, say), but not one byte of it. */
static int untouched (const probe_connection_t *self, probe_direction_t direction,
                      const probe_counts_t *counts, size_t size)
{
  if (self->last)
    return 0;
  if (direction == PROBE_OUT)
    return counts->written == 1 && counts->read == 0 && counts->unread == 0; // 1: our SYN
  return counts->written == 0 && counts->read == size;
}

int probe_proof_candidate (probe_connection_t *self, probe_direction_t direction, const void *data,
                           size_t first_size, size_t size)
{
  probe_counts_t counts;
  probe_direction_t other = direction ^ 1;
  int request = probe_http1_request_line (data, first_size);
  // Without a turn, or in the middle of something; at first sight the counts may still tell.
  if (self->last == (uint8_t) direction + 1 || (self->last && !request) || is_unix (self))
    return 0;
  if (!probe_try_hold (self, other))
    return 0;
  int ok = kernel_counts (self->fd, &counts) == 0;
  int fresh = ok && untouched (self, direction, &counts, size);
  // An answer that is still waiting belongs to a request that we did not see.
  if (!fresh && (!request || (direction == PROBE_OUT && counts.unread)))
    ok = 0;
  if (ok && direction == PROBE_IN && counts.read < size)
    ok = 0;
  if (ok) {
    candidate_start (self, direction);
    self->base[PROBE_OUT] = counts.written;
    self->base[PROBE_IN] = direction == PROBE_IN ? counts.read - size : counts.read;
    __atomic_store_n (&self->state, fresh ? PROBE_PROVEN : PROBE_CANDIDATE, __ATOMIC_RELEASE);
  }
  probe_release (self, other);
  return ok;
}

int probe_proof_complete (probe_connection_t *self)
{
  probe_counts_t counts;
  if (kernel_counts (self->fd, &counts) || !agrees (self, &counts) || counts.unread)
    return 0;
  probe_count_bytes (self);
  uint8_t candidate = PROBE_CANDIDATE;
  return __atomic_compare_exchange_n (&self->state, &candidate, PROBE_PROVEN, 0, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE);
}

int probe_address_private (const weft_address_t *address)
{
  const uint8_t *ip = address->ip;
  if (address->family == 1)
    return 1;
  if (address->family == 4)
    return ip[12] == 127 || ip[12] == 10 || (ip[12] == 172 && (ip[13] & 0xf0) == 16) ||
           (ip[12] == 192 && ip[13] == 168) || (ip[12] == 169 && ip[13] == 254);
  if (address->family != 6)
    return 0;
  static const uint8_t loopback[16] = {[15] = 1};
  return memcmp (ip, loopback, sizeof loopback) == 0 || (ip[0] & 0xfe) == 0xfc ||
         (ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80);
}
