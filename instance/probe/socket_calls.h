/* SPDX-License-Identifier: Apache-2.0 */
/* socket_calls: the replacement functions that GOT slots point to, and the
 * originals below them.
 *
 * Each does: one load and branch (idle) → the original; active, on a quiet fd
 * (quiet.h) → the original; active → around the original. A per-thread guard keeps
 * our own calls out. */
#ifndef PROBE_SOCKET_CALLS_H
#define PROBE_SOCKET_CALLS_H

#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Reached without the GOT: one instruction less in every idle hook. */
#define PROBE_HIDDEN __attribute__ ((visibility ("hidden")))

/* X-macro: return type, name, parameters, arguments. The one list from which
 * originals, hooks and the slot table are made: what reads bytes of `fd`, what writes
 * them, what opens connections or waits for them, and the rest. */
#define PROBE_READ_MAP(XX)                                                                                   \
  XX (ssize_t, read, (int fd, void *data, size_t size), (fd, data, size))                                    \
  XX (ssize_t, readv, (int fd, const struct iovec *iov, int count), (fd, iov, count))                        \
  XX (ssize_t, recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags))                  \
  XX (ssize_t, recvfrom,                                                                                     \
      (int fd, void *data, size_t size, int flags, struct sockaddr *from, socklen_t *from_size),             \
      (fd, data, size, flags, from, from_size))                                                              \
  XX (ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
#define PROBE_WRITE_MAP(XX)                                                                                  \
  XX (ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))                             \
  XX (ssize_t, writev, (int fd, const struct iovec *iov, int count), (fd, iov, count))                       \
  XX (ssize_t, send, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags))            \
  XX (ssize_t, sendto,                                                                                       \
      (int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t to_size),      \
      (fd, data, size, flags, to, to_size))                                                                  \
  XX (ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
#define PROBE_WAIT_MAP(XX)                                                                                   \
  XX (int, connect, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size))           \
  XX (int, accept, (int fd, struct sockaddr *address, socklen_t *size), (fd, address, size))                 \
  XX (int, accept4, (int fd, struct sockaddr *address, socklen_t *size, int flags),                          \
      (fd, address, size, flags))                                                                            \
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
      (fd, events, max, timeout_ms, mask))                                                                   \
  XX (int, epoll_pwait2,                                                                                     \
      (int fd, struct epoll_event *events, int max, const struct timespec *timeout, const sigset_t *mask),   \
      (fd, events, max, timeout, mask))
#define PROBE_OTHER_MAP(XX)                                                                                  \
  XX (ssize_t, sendfile, (int out, int in, off_t *offset, size_t size), (out, in, offset, size))             \
  XX (ssize_t, sendfile64, (int out, int in, off64_t *offset, size_t size), (out, in, offset, size))         \
  XX (int, shutdown, (int fd, int how), (fd, how))                                                           \
  XX (int, close, (int fd), (fd))                                                                            \
  XX (int, dup, (int fd), (fd))                                                                              \
  XX (int, dup2, (int fd, int to), (fd, to))                                                                 \
  XX (int, dup3, (int fd, int to, int flags), (fd, to, flags))                                               \
  XX (int, close_range, (unsigned first, unsigned last, int flags), (first, last, flags))                    \
  XX (void, closefrom, (int low), (low))                                                                     \
  XX (int, fcntl, (int fd, int command, long argument), (fd, command, argument))                             \
  XX (int, fcntl64, (int fd, int command, long argument), (fd, command, argument))                           \
  XX (int, recvmmsg,                                                                                         \
      (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout),               \
      (fd, messages, count, flags, timeout))                                                                 \
  XX (int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned count, int flags),                          \
      (fd, messages, count, flags))                                                                          \
  XX (ssize_t, splice, (int in, off64_t *in_at, int out, off64_t *out_at, size_t size, unsigned flags),      \
      (in, in_at, out, out_at, size, flags))                                                                 \
  XX (int, getsockopt, (int fd, int level, int name, void *value, socklen_t *size),                          \
      (fd, level, name, value, size))                                                                        \
  XX (int, getaddrinfo,                                                                                      \
      (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret_list),     \
      (node, service, hints, ret_list))                                                                      \
  XX (struct hostent *, gethostbyname, (const char *node), (node))                                           \
  XX (struct hostent *, gethostbyname2, (const char *node, int family), (node, family))                      \
  XX (int, gethostbyname_r,                                                                                  \
      (const char *node, struct hostent *ret_host, char *data, size_t size, struct hostent **ret_result,     \
       int *ret_error),                                                                                      \
      (node, ret_host, data, size, ret_result, ret_error))                                                   \
  XX (int, gethostbyname2_r,                                                                                 \
      (const char *node, int family, struct hostent *ret_host, char *data, size_t size,                      \
       struct hostent **ret_result, int *ret_error),                                                         \
      (node, family, ret_host, data, size, ret_result, ret_error))
#define PROBE_CALL_MAP(XX) PROBE_READ_MAP (XX) PROBE_WRITE_MAP (XX) PROBE_WAIT_MAP (XX) PROBE_OTHER_MAP (XX)

/* What fortified code calls instead: the same with the size of the buffer. */
#define PROBE_CHECKED_MAP(XX)                                                                                \
  XX (ssize_t, __read_chk, (int fd, void *data, size_t size, size_t room), (fd, data, size, room))           \
  XX (ssize_t, __recv_chk, (int fd, void *data, size_t size, size_t room, int flags),                        \
      (fd, data, size, room, flags))                                                                         \
  XX (ssize_t, __recvfrom_chk,                                                                               \
      (int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *from,                       \
       socklen_t *from_size),                                                                                \
      (fd, data, size, room, flags, from, from_size))                                                        \
  XX (int, __poll_chk, (struct pollfd * fds, nfds_t count, int timeout_ms, size_t room),                     \
      (fds, count, timeout_ms, room))                                                                        \
  XX (int, __ppoll_chk,                                                                                      \
      (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask,              \
       size_t room),                                                                                         \
      (fds, count, timeout, mask, room))

/* The originals. Filled by probe_calls_resolve; a test or a benchmark points
 * them at its own fake kernel instead. */
typedef struct {
#define XX(type, name, params, args) type (*name) params;
  PROBE_CALL_MAP (XX)
  PROBE_CHECKED_MAP (XX)
#undef XX
} probe_calls_t;
extern probe_calls_t probe_real PROBE_HIDDEN;

#define XX(type, name, params, args) type probe_hook_##name params;
PROBE_CALL_MAP (XX)
PROBE_CHECKED_MAP (XX)
#undef XX

/* One call as got.c patches it. */
typedef struct {
  const char *name;
  void *hook, *original;
  int lazy_ok;    /* an unbound slot would be bound to `original` */
  int everywhere; /* also in the objects of the VM itself (libjvm) */
} probe_call_t;

/* Looks the originals up (RTLD_NEXT). 0 or WEFT_E_NOT_FOUND; a call that this
 * libc does not have is left out. */
int probe_calls_resolve (void);
/* What resolve found, aliases (__read) and fortified names included. Static. */
const probe_call_t *probe_calls_table (uint32_t *ret_count);
/* Fills name, original and lazy_ok of one row from its name. 0 or WEFT_E_NOT_FOUND. */
int probe_call_find (const char *name, probe_call_t *ret_call);
/* What makes a process that is unborn (probe.h) an instance: 1: the hooks are active now. Called by a
 * hook that reads a socket, opens a connection or waits; never by one that closes or
 * names descriptors: what a child does on its way to exec costs nothing. */
void probe_calls_birth (int (*birth) (void));
/* Since when and in which process the close family may be believed: called at
 * start and in a forked child. */
void probe_calls_owner (pid_t pid);

#endif
