/* SPDX-License-Identifier: Apache-2.0 */
/* socket_calls: the replacement functions that GOT slots point to, and the
 * originals below them.
 *
 * Each does: one load and branch (idle) → the original; active → around the
 * original. A per-thread guard keeps our own calls out. */
#ifndef PROBE_SOCKET_CALLS_H
#define PROBE_SOCKET_CALLS_H

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* X-macro: return type, name, parameters, arguments. The one list from which
 * originals, hooks and the slot table are made. */
#define PROBE_CALL_MAP(XX)                                                                                   \
  XX (ssize_t, read, (int fd, void *data, size_t size), (fd, data, size))                                    \
  XX (ssize_t, readv, (int fd, const struct iovec *iov, int count), (fd, iov, count))                        \
  XX (ssize_t, recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags))                  \
  XX (ssize_t, recvfrom,                                                                                     \
      (int fd, void *data, size_t size, int flags, struct sockaddr *from, socklen_t *from_size),             \
      (fd, data, size, flags, from, from_size))                                                              \
  XX (ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))                   \
  XX (ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))                             \
  XX (ssize_t, writev, (int fd, const struct iovec *iov, int count), (fd, iov, count))                       \
  XX (ssize_t, send, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags))            \
  XX (ssize_t, sendto,                                                                                       \
      (int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t to_size),      \
      (fd, data, size, flags, to, to_size))                                                                  \
  XX (ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))             \
  XX (ssize_t, sendfile, (int out, int in, off_t *offset, size_t size), (out, in, offset, size))             \
  XX (ssize_t, sendfile64, (int out, int in, off64_t *offset, size_t size), (out, in, offset, size))         \
  XX (int, connect, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size))           \
  XX (int, accept, (int fd, struct sockaddr *address, socklen_t *size), (fd, address, size))                 \
  XX (int, accept4, (int fd, struct sockaddr *address, socklen_t *size, int flags),                          \
      (fd, address, size, flags))                                                                            \
  XX (int, shutdown, (int fd, int how), (fd, how))                                                           \
  XX (int, close, (int fd), (fd))                                                                            \
  XX (int, dup, (int fd), (fd))                                                                              \
  XX (int, dup2, (int fd, int to), (fd, to))                                                                 \
  XX (int, dup3, (int fd, int to, int flags), (fd, to, flags))                                               \
  XX (int, poll, (struct pollfd * fds, nfds_t count, int timeout_ms), (fds, count, timeout_ms))              \
  XX (int, ppoll, (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask), \
      (fds, count, timeout, mask))                                                                           \
  XX (int, select, (int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout),            \
      (count, in, out, except, timeout))                                                                     \
  XX (int, pselect,                                                                                          \
      (int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,                   \
       const sigset_t *mask),                                                                                \
      (count, in, out, except, timeout, mask))                                                               \
  XX (int, epoll_wait, (int fd, struct epoll_event *events, int max, int timeout_ms),                        \
      (fd, events, max, timeout_ms))                                                                         \
  XX (int, epoll_pwait, (int fd, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask), \
      (fd, events, max, timeout_ms, mask))

/* The originals. Filled by probe_calls_resolve; a test or a benchmark points
 * them at its own fake kernel instead. */
typedef struct {
#define XX(type, name, params, args) type (*name) params;
  PROBE_CALL_MAP (XX)
#undef XX
} probe_calls_t;
extern probe_calls_t probe_real;

#define XX(type, name, params, args) type probe_hook_##name params;
PROBE_CALL_MAP (XX)
#undef XX

/* Looks the originals up (RTLD_NEXT). 0 or WEFT_E_NOT_FOUND. */
int probe_calls_resolve (void);

#endif
