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

/* Negative, with such flags alone: no call, errno says why. MSG_OOB leaves the order of
 * the stream; MSG_ZEROCOPY reads its vector after the call has returned, and ours is on
 * the stack; MSG_FASTOPEN opens a connection that we have not seen yet. */
#define NO_CALL (-1)
static inline __attribute__ ((always_inline)) int before_write (int fd, const struct iovec *iov, int count,
                                                                int flags, probe_write_t *write)
{
  if (PROBE_UNLIKELY (probe_inside || !iov || count <= 0))
    return PROBE_WRITE_PLAIN;
  if (PROBE_UNLIKELY (flags & (MSG_OOB | MSG_ZEROCOPY | MSG_FASTOPEN))) {
    probe_two_names (fd);
    return finished (fd) ? PROBE_WRITE_PLAIN : NO_CALL;
  }
  probe_enter ();
  int how = (int) probe_connection_before_write (fd, iov, count, flags, write);
  probe_leave ();
  return how;
}

static ssize_t after_write (int fd, probe_write_t *write, ssize_t result)
{
  probe_enter ();
  result = probe_connection_after_write (fd, write, result);
  probe_leave ();
  return result;
}

/* Which call the caller made, with what. */
typedef struct {
  enum { BY_WRITE, BY_WRITEV, BY_SEND, BY_SENDTO, BY_SENDMSG } by;
  int fd, count, flags;
  const struct iovec *iov;
  const struct msghdr *message; /* of sendmsg, and the address of sendto; else NULL */
} write_call_t;

static ssize_t as_called (const write_call_t *call)
{
  const struct iovec *iov = call->iov;
  const struct msghdr *message = call->message;
  switch (call->by) {
  case BY_WRITE:
    return probe_real.write (call->fd, iov->iov_base, iov->iov_len);
  case BY_WRITEV:
    return probe_real.writev (call->fd, iov, call->count);
  case BY_SEND:
    return probe_real.send (call->fd, iov->iov_base, iov->iov_len, call->flags);
  case BY_SENDTO:
    return probe_real.sendto (call->fd, iov->iov_base, iov->iov_len, call->flags, message->msg_name,
                              message->msg_namelen);
  default:
    return probe_real.sendmsg (call->fd, message, call->flags);
  }
}

/* On a socket write(2) and writev(2) are sendmsg(2) with no flags. */
static ssize_t send_replaced (const write_call_t *call, const probe_write_t *write)
{
  struct msghdr message;
  memset (&message, 0, sizeof message);
  if (call->message)
    message = *call->message;
  message.msg_iov = write->room->iov;
  message.msg_iovlen = (size_t) write->iov_count;
  return probe_real.sendmsg (call->fd, &message, call->flags);
}

/* A write that may be altered: the only frame in which there is room for that. */
static __attribute__ ((noinline)) ssize_t with_room (const write_call_t *call)
{
  probe_room_t room;
  probe_write_t write;
  write.room = &room;
  int how = before_write (call->fd, call->iov, call->count, call->flags, &write);
  if (how != PROBE_WRITE_TRACKED)
    return how == NO_CALL ? -1 : as_called (call);
  return after_write (call->fd, &write, write.insert ? send_replaced (call, &write) : as_called (call));
}

ssize_t probe_active_write (int fd, const void *data, size_t size)
{
  probe_write_t write;
  write.room = NULL;
  struct iovec iov = {(void *) (uintptr_t) data, size};
  int how = before_write (fd, &iov, 1, 0, &write);
  if (how == PROBE_WRITE_TRACKED)
    return after_write (fd, &write, probe_real.write (fd, data, size));
  if (how == PROBE_WRITE_PLAIN)
    return probe_real.write (fd, data, size);
  return with_room (&(write_call_t){.by = BY_WRITE, .fd = fd, .iov = &iov, .count = 1});
}

ssize_t probe_active_writev (int fd, const struct iovec *iov, int count)
{
  probe_write_t write;
  write.room = NULL;
  int how = before_write (fd, iov, count, 0, &write);
  if (how == PROBE_WRITE_TRACKED)
    return after_write (fd, &write, probe_real.writev (fd, iov, count));
  if (how == PROBE_WRITE_PLAIN)
    return probe_real.writev (fd, iov, count);
  return with_room (&(write_call_t){.by = BY_WRITEV, .fd = fd, .iov = iov, .count = count});
}

ssize_t probe_active_send (int fd, const void *data, size_t size, int flags)
{
  probe_write_t write;
  write.room = NULL;
  struct iovec iov = {(void *) (uintptr_t) data, size};
  int how = before_write (fd, &iov, 1, flags, &write);
  if (how == PROBE_WRITE_TRACKED)
    return after_write (fd, &write, probe_real.send (fd, data, size, flags));
  if (how != PROBE_WRITE_ROOM)
    return how == NO_CALL ? -1 : probe_real.send (fd, data, size, flags);
  return with_room (&(write_call_t){.by = BY_SEND, .fd = fd, .iov = &iov, .count = 1, .flags = flags});
}

ssize_t probe_active_sendto (int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
                             socklen_t to_size)
{
  probe_write_t write;
  write.room = NULL;
  struct iovec iov = {(void *) (uintptr_t) data, size};
  int how = before_write (fd, &iov, 1, flags, &write);
  if (how == PROBE_WRITE_TRACKED)
    return after_write (fd, &write, probe_real.sendto (fd, data, size, flags, to, to_size));
  if (how != PROBE_WRITE_ROOM)
    return how == NO_CALL ? -1 : probe_real.sendto (fd, data, size, flags, to, to_size);
  struct msghdr message;
  memset (&message, 0, sizeof message);
  message.msg_name = (void *) (uintptr_t) to;
  message.msg_namelen = to_size;
  return with_room (&(write_call_t){
      .by = BY_SENDTO, .fd = fd, .iov = &iov, .count = 1, .flags = flags, .message = &message});
}

ssize_t probe_active_sendmsg (int fd, const struct msghdr *message, int flags)
{
  probe_write_t write;
  write.room = NULL;
  give_up_passed (message);
  int how = PROBE_WRITE_PLAIN;
  if (message && message->msg_iovlen <= INT_MAX)
    how = before_write (fd, message->msg_iov, (int) message->msg_iovlen, flags, &write);
  if (how == PROBE_WRITE_TRACKED)
    return after_write (fd, &write, probe_real.sendmsg (fd, message, flags));
  if (how != PROBE_WRITE_ROOM)
    return how == NO_CALL ? -1 : probe_real.sendmsg (fd, message, flags);
  return with_room (&(write_call_t){.by = BY_SENDMSG,
                                    .fd = fd,
                                    .iov = message->msg_iov,
                                    .count = (int) message->msg_iovlen,
                                    .flags = flags,
                                    .message = message});
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
