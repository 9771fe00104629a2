/* SPDX-License-Identifier: Apache-2.0 */
/* socket_transfer: the active half of the calls that move bytes. */
#include <limits.h>
#include <string.h>

#include "socket_hooks.h"

/* ---- reading ------------------------------------------------------------ */
static inline __attribute__ ((always_inline)) int before_read (int fd, probe_read_t *ret_read)
{
  if (PROBE_UNLIKELY (probe_inside))
    return 0;
  probe_enter ();
  int tracked = probe_connection_before_read (fd, ret_read);
  probe_leave ();
  return tracked;
}

static ssize_t after_read (int fd, const probe_read_t *state, const struct iovec *iov, int count,
                           ssize_t result)
{
  int saved = errno;
  probe_enter ();
  probe_connection_after_read (fd, state, iov, count, result);
  probe_leave ();
  errno = saved;
  return result;
}

/* 1: these bytes stay in the stream, or come from beside it. MSG_TRUNC throws
 * stream bytes away unseen, MSG_OOB takes them out of order: after that nothing
 * is known of the stream. */
static int reads_nothing (int fd, int flags)
{
  if (PROBE_LIKELY (!(flags & (MSG_PEEK | MSG_ERRQUEUE | MSG_TRUNC | MSG_OOB))))
    return 0;
  if (!(flags & (MSG_PEEK | MSG_ERRQUEUE)))
    probe_two_names (fd);
  return 1;
}

ssize_t probe_active_read (int fd, void *data, size_t size)
{
  probe_read_t state;
  if (!before_read (fd, &state))
    return probe_real.read (fd, data, size);
  struct iovec iov = {data, size};
  return after_read (fd, &state, &iov, 1, probe_real.read (fd, data, size));
}

ssize_t probe_active_readv (int fd, const struct iovec *iov, int count)
{
  probe_read_t state;
  if (!before_read (fd, &state))
    return probe_real.readv (fd, iov, count);
  return after_read (fd, &state, iov, count, probe_real.readv (fd, iov, count));
}

ssize_t probe_active_recv (int fd, void *data, size_t size, int flags)
{
  probe_read_t state;
  if (reads_nothing (fd, flags) || !before_read (fd, &state))
    return probe_real.recv (fd, data, size, flags);
  struct iovec iov = {data, size};
  return after_read (fd, &state, &iov, 1, probe_real.recv (fd, data, size, flags));
}

ssize_t probe_active_recvfrom (int fd, void *data, size_t size, int flags, struct sockaddr *from,
                               socklen_t *from_size)
{
  probe_read_t state;
  if (reads_nothing (fd, flags) || !before_read (fd, &state))
    return probe_real.recvfrom (fd, data, size, flags, from, from_size);
  struct iovec iov = {data, size};
  return after_read (fd, &state, &iov, 1, probe_real.recvfrom (fd, data, size, flags, from, from_size));
}

/* fds that travel in a control message have two names from now on. */
static void give_up_passed (const struct msghdr *message)
{
  if (PROBE_LIKELY (!message || !message->msg_control || message->msg_controllen < CMSG_LEN (sizeof (int))))
    return;
  /* CMSG_NXTHDR wants a writable header; it only reads. */
  struct msghdr view = *message;
  for (struct cmsghdr *c = CMSG_FIRSTHDR (&view); c; c = CMSG_NXTHDR (&view, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len < CMSG_LEN (0))
      continue;
    size_t at = (size_t) ((unsigned char *) c - (unsigned char *) view.msg_control);
    size_t size = c->cmsg_len < view.msg_controllen - at ? c->cmsg_len : view.msg_controllen - at;
    size_t count = size < CMSG_LEN (0) ? 0 : (size - CMSG_LEN (0)) / sizeof (int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      memcpy (&fd, CMSG_DATA (c) + i * sizeof fd, sizeof fd);
      probe_two_names (fd);
    }
  }
}

ssize_t probe_active_recvmsg (int fd, struct msghdr *message, int flags)
{
  probe_read_t state;
  ssize_t result;
  if (reads_nothing (fd, flags) || !message || message->msg_iovlen > INT_MAX || !before_read (fd, &state))
    result = probe_real.recvmsg (fd, message, flags);
  else {
    result = probe_real.recvmsg (fd, message, flags);
    after_read (fd, &state, message->msg_iov, (int) message->msg_iovlen, result);
  }
  if (result >= 0)
    give_up_passed (message);
  return result;
}

int probe_active_recvmmsg (int fd, struct mmsghdr *messages, unsigned count, int flags,
                           struct timespec *timeout)
{
  probe_two_names (fd);
  return probe_real.recvmmsg (fd, messages, count, flags, timeout);
}

/* ---- writing ------------------------------------------------------------ */
/* A write on its way: which call the caller made, with what. */
typedef struct {
  int fd, flags;
  const struct msghdr *message; /* the caller's, NULL unless sendmsg */
} write_call_t;

/* 0: the rest of an insert comes before these bytes, and cannot leave now. */
static int finished (int fd)
{
  if (PROBE_LIKELY (!probe_connections_pending ()) || probe_inside)
    return 1;
  probe_enter ();
  int done = probe_connection_finish (fd);
  probe_leave ();
  return done;
}

/* 0: the plain call and nothing more; negative, with such flags alone: none, errno
 * says why. MSG_OOB leaves the order of the stream;
 * MSG_ZEROCOPY reads its vector after the call has returned, and ours is on the
 * stack; MSG_FASTOPEN opens a connection that we have not seen yet. */
static inline __attribute__ ((always_inline)) int before_write (int fd, const struct iovec *iov, int count,
                                                                int flags, probe_write_t *ret_write)
{
  if (PROBE_UNLIKELY (probe_inside || !iov || count <= 0))
    return 0;
  if (PROBE_UNLIKELY (flags & (MSG_OOB | MSG_ZEROCOPY | MSG_FASTOPEN))) {
    probe_two_names (fd);
    return finished (fd) ? 0 : -1;
  }
  probe_enter ();
  int tracked = probe_connection_before_write (fd, iov, count, flags, ret_write);
  probe_leave ();
  return tracked;
}

/* On a socket write(2) and writev(2) are sendmsg(2) with no flags. */
static ssize_t send_replaced (int fd, probe_write_t *state, const struct msghdr *callers, int flags)
{
  struct msghdr message;
  memset (&message, 0, sizeof message);
  if (callers)
    message = *callers;
  message.msg_iov = state->iov;
  message.msg_iovlen = (size_t) state->iov_count;
  return probe_real.sendmsg (fd, &message, flags);
}

static ssize_t after_write (int fd, probe_write_t *state, ssize_t result)
{
  probe_enter ();
  result = probe_connection_after_write (fd, state, result);
  probe_leave ();
  return result;
}

ssize_t probe_active_write (int fd, const void *data, size_t size)
{
  probe_write_t state;
  struct iovec iov = {(void *) (uintptr_t) data, size};
  if (!before_write (fd, &iov, 1, 0, &state))
    return probe_real.write (fd, data, size);
  return after_write (fd, &state,
                      state.insert ? send_replaced (fd, &state, NULL, 0) : probe_real.write (fd, data, size));
}

ssize_t probe_active_writev (int fd, const struct iovec *iov, int count)
{
  probe_write_t state;
  if (!before_write (fd, iov, count, 0, &state))
    return probe_real.writev (fd, iov, count);
  return after_write (
      fd, &state, state.insert ? send_replaced (fd, &state, NULL, 0) : probe_real.writev (fd, iov, count));
}

ssize_t probe_active_send (int fd, const void *data, size_t size, int flags)
{
  probe_write_t state;
  struct iovec iov = {(void *) (uintptr_t) data, size};
  int tracked = before_write (fd, &iov, 1, flags, &state);
  if (tracked <= 0)
    return tracked ? -1 : probe_real.send (fd, data, size, flags);
  return after_write (fd, &state,
                      state.insert ? send_replaced (fd, &state, NULL, flags)
                                   : probe_real.send (fd, data, size, flags));
}

ssize_t probe_active_sendto (int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
                             socklen_t to_size)
{
  probe_write_t state;
  struct iovec iov = {(void *) (uintptr_t) data, size};
  int tracked = before_write (fd, &iov, 1, flags, &state);
  if (tracked <= 0)
    return tracked ? -1 : probe_real.sendto (fd, data, size, flags, to, to_size);
  struct msghdr callers;
  memset (&callers, 0, sizeof callers);
  callers.msg_name = (void *) (uintptr_t) to;
  callers.msg_namelen = to ? to_size : 0;
  return after_write (fd, &state,
                      state.insert ? send_replaced (fd, &state, &callers, flags)
                                   : probe_real.sendto (fd, data, size, flags, to, to_size));
}

ssize_t probe_active_sendmsg (int fd, const struct msghdr *message, int flags)
{
  probe_write_t state;
  give_up_passed (message);
  int tracked = 0;
  if (message && message->msg_iovlen <= INT_MAX)
    tracked = before_write (fd, message->msg_iov, (int) message->msg_iovlen, flags, &state);
  if (tracked <= 0)
    return tracked ? -1 : probe_real.sendmsg (fd, message, flags);
  return after_write (fd, &state,
                      state.insert ? send_replaced (fd, &state, message, flags)
                                   : probe_real.sendmsg (fd, message, flags));
}

int probe_active_sendmmsg (int fd, struct mmsghdr *messages, unsigned count, int flags)
{
  probe_two_names (fd);
  if (!finished (fd))
    return -1;
  return probe_real.sendmmsg (fd, messages, count, flags);
}

static ssize_t sent_opaque (int fd, ssize_t result)
{
  int saved = errno;
  if (result > 0 && !probe_inside) {
    probe_enter ();
    probe_connection_sent_opaque (fd, (size_t) result);
    probe_leave ();
  }
  errno = saved;
  return result;
}

ssize_t probe_active_sendfile (int out, int in, off_t *offset, size_t size)
{
  if (!finished (out))
    return -1;
  return sent_opaque (out, probe_real.sendfile (out, in, offset, size));
}

ssize_t probe_active_sendfile64 (int out, int in, off64_t *offset, size_t size)
{
  if (!finished (out))
    return -1;
  return sent_opaque (out, probe_real.sendfile64 (out, in, offset, size));
}

ssize_t probe_active_splice (int in, off64_t *in_at, int out, off64_t *out_at, size_t size, unsigned flags)
{
  probe_two_names (in); /* bytes leave it that nobody looks at */
  if (!finished (out))
    return -1;
  return sent_opaque (out, probe_real.splice (in, in_at, out, out_at, size, flags));
}
