/* SPDX-License-Identifier: Apache-2.0 */
/* fake_streams: stream sockets that exist only in a test, below the real hooks:
 * probe_real and probe_kernel point here. The kernel keeps every byte that the
 * peer would get, beside it whether it came from the application's own memory,
 * and takes as little of a call as it is told to.
 *
 * No framework: fuzz targets, unit tests and fault tests include it alike. */
#ifndef TESTS_FAKE_STREAMS_H
#define TESTS_FAKE_STREAMS_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../../instance/probe/connection.h"
#include "../../instance/probe/context.h"
#include "../../instance/probe/proof.h"
#include "../../instance/probe/socket_calls.h"
#include "../../instance/probe/state.h"
#include "../../instance/shm/writer.h"

#define STREAMS_FDS 16
#define STREAMS_MAX (1u << 20) /* bytes one way of one connection */
#define STREAM      static __attribute__ ((unused))

/* Answers for the next calls: how many bytes it takes, or with which errno it
 * fails (negative). Beyond the list: everything. */
typedef struct {
  uint8_t *sent;  /* what the peer received */
  uint8_t *whose; /* 1: from the application's memory */
  size_t sent_size;
  const uint8_t *to_read;
  size_t to_read_size, window; /* what has arrived of it */
  const uint8_t *memory;       /* of the application, in this call */
  size_t memory_size;
  uint64_t written, read;
  long plan[8];
  unsigned planned, plan_at;
  int read_error; /* of the next read, once */
  int nonblocking, dead;
  unsigned calls;
} stream_t;
static stream_t streams[STREAMS_FDS];
static uint64_t stream_bytes; /* through all of them, both ways */

static ssize_t stream_take (int fd, const struct iovec *iov, size_t count)
{
  stream_t *self = &streams[fd];
  size_t all = 0, done = 0;
  for (size_t i = 0; i < count; i++)
    all += iov[i].iov_len;
  long plan = self->plan_at < self->planned ? self->plan[self->plan_at++] : (long) all;
  self->calls++;
  if (self->dead)
    plan = -EPIPE;
  if (plan < 0) {
    errno = (int) -plan;
    return -1;
  }
  size_t left = (size_t) plan < all ? (size_t) plan : all;
  for (size_t i = 0; i < count && left; i++) {
    size_t size = iov[i].iov_len < left ? iov[i].iov_len : left;
    if (size == 0)
      continue;
    if (self->sent_size + size > STREAMS_MAX)
      abort ();
    const uint8_t *from = iov[i].iov_base;
    int own = from >= self->memory && from + size <= self->memory + self->memory_size;
    memcpy (self->sent + self->sent_size, from, size);
    memset (self->whose + self->sent_size, own, size);
    self->sent_size += size;
    left -= size;
    done += size;
  }
  self->written += done;
  stream_bytes += done;
  return (ssize_t) done;
}

static ssize_t stream_give (int fd, const struct iovec *iov, size_t count)
{
  stream_t *self = &streams[fd];
  size_t done = 0;
  self->calls++;
  if (self->read_error) {
    errno = self->read_error;
    self->read_error = 0;
    return -1;
  }
  for (size_t i = 0; i < count && self->window; i++) {
    size_t size = iov[i].iov_len < self->window ? iov[i].iov_len : self->window;
    if (size)
      memcpy (iov[i].iov_base, self->to_read, size);
    self->to_read += size;
    self->to_read_size -= size;
    self->window -= size;
    done += size;
  }
  self->read += done;
  stream_bytes += done;
  return (ssize_t) done;
}

/* ---- system calls -------------------------------------------------------- */
static ssize_t stream_write (int fd, const void *data, size_t size)
{
  struct iovec iov = {(void *) (uintptr_t) data, size};
  return stream_take (fd, &iov, 1);
}
static ssize_t stream_writev (int fd, const struct iovec *iov, int count)
{
  return stream_take (fd, iov, (size_t) count);
}
static ssize_t stream_send (int fd, const void *data, size_t size, int flags)
{
  return stream_write (fd, data, size);
}
static ssize_t stream_sendto (int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
                              socklen_t to_size)
{
  return stream_write (fd, data, size);
}
static ssize_t stream_sendmsg (int fd, const struct msghdr *message, int flags)
{
  return stream_take (fd, message->msg_iov, message->msg_iovlen);
}
/* `in` is not looked at: the test has put the file's bytes into `memory`. */
static ssize_t stream_sendfile (int out, int in, off_t *offset, size_t size)
{
  struct iovec iov = {(void *) (uintptr_t) streams[out].memory, size};
  return stream_take (out, &iov, 1);
}
static ssize_t stream_splice (int in, off64_t *in_at, int out, off64_t *out_at, size_t size, unsigned flags)
{
  return stream_sendfile (out, in, NULL, size);
}
static ssize_t stream_read (int fd, void *data, size_t size)
{
  struct iovec iov = {data, size};
  return stream_give (fd, &iov, 1);
}
static ssize_t stream_readv (int fd, const struct iovec *iov, int count)
{
  return stream_give (fd, iov, (size_t) count);
}
static ssize_t stream_recv (int fd, void *data, size_t size, int flags)
{
  return stream_read (fd, data, size);
}
static ssize_t stream_recvfrom (int fd, void *data, size_t size, int flags, struct sockaddr *from,
                                socklen_t *from_size)
{
  return stream_read (fd, data, size);
}
static ssize_t stream_recvmsg (int fd, struct msghdr *message, int flags)
{
  return stream_give (fd, message->msg_iov, message->msg_iovlen);
}
static int stream_connect (int fd, const struct sockaddr *address, socklen_t size)
{
  return 0;
}
static int stream_accept4 (int fd, struct sockaddr *address, socklen_t *size, int flags)
{
  return fd;
}
static int stream_shutdown (int fd, int how)
{
  return 0;
}
static int stream_close (int fd)
{
  return 0;
}
static int stream_dup (int fd)
{
  return STREAMS_FDS - 1;
}

/* ---- what the proof asks -------------------------------------------------- */
static probe_socket_t stream_describe (int fd, weft_address_t *ret_local, weft_address_t *ret_peer)
{
  static const weft_address_t loopback = {
      .ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}, .port = 80, .family = 4};
  *ret_local = *ret_peer = loopback;
  return fd < STREAMS_FDS - 1 ? PROBE_SOCKET_STREAM : PROBE_SOCKET_NONE;
}
static int stream_counts (int fd, probe_counts_t *ret_counts)
{
  *ret_counts = (probe_counts_t){streams[fd].written, streams[fd].read, streams[fd].window};
  return 0;
}
static int stream_nonblocking (int fd)
{
  return streams[fd].nonblocking;
}

static int stream_outcome (int fd)
{
  return 0;
}

/* ---- a connection ---------------------------------------------------------- */
/* What the peer will say; `client`: the kernel counts a SYN. Not born yet. */
STREAM void stream_open (int fd, int client, const uint8_t *to_read, size_t size)
{
  uint8_t *sent = streams[fd].sent, *whose = streams[fd].whose;
  if (!sent)
    sent = malloc (STREAMS_MAX);
  if (!whose)
    whose = malloc (STREAMS_MAX);
  if (!sent || !whose)
    abort ();
  streams[fd] = (stream_t){
      .sent = sent, .whose = whose, .to_read = to_read, .to_read_size = size, .written = (uint64_t) client};
}

/* Once: the hooks stand on this kernel, reports go to memory of their own. */
STREAM void streams_begin (probe_config_t *config)
{
  int fd;
  if (shm_create (NULL, "test", "0", 0, &probe_shm, &fd))
    abort ();
  probe_real = (probe_calls_t){.read = stream_read,
                               .readv = stream_readv,
                               .recv = stream_recv,
                               .recvfrom = stream_recvfrom,
                               .recvmsg = stream_recvmsg,
                               .write = stream_write,
                               .writev = stream_writev,
                               .send = stream_send,
                               .sendto = stream_sendto,
                               .sendmsg = stream_sendmsg,
                               .sendfile = stream_sendfile,
                               .splice = stream_splice,
                               .connect = stream_connect,
                               .accept4 = stream_accept4,
                               .shutdown = stream_shutdown,
                               .close = stream_close,
                               .dup = stream_dup};
  probe_kernel = (probe_kernel_t){stream_describe, stream_counts, stream_nonblocking, stream_outcome};
  probe_config = config;
  probe_calls_owner (getpid ());
  probe_leases_begin ();
}

/* Nothing is known of any connection, task or report; the hooks are active. */
STREAM void streams_reset (void)
{
  __atomic_store_n (&probe_actions, 0, __ATOMIC_SEQ_CST);
  probe_connections_flush ();
  probe_context_reset ();
  memset (shm_status (probe_shm)->counter, 0, sizeof shm_status (probe_shm)->counter);
  for (unsigned r = 0; r < SHM_RINGS; r++)
    __atomic_store_n (&shm_ring (probe_shm, r)->tail, shm_ring (probe_shm, r)->head, __ATOMIC_RELEASE);
  __atomic_store_n (&probe_actions, probe_config->actions, __ATOMIC_SEQ_CST);
}

#endif
