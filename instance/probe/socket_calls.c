/* SPDX-License-Identifier: Apache-2.0 */
/* socket_calls: the replacement functions. Each hook is made from the one list
 * in socket_calls.h: one load, one branch, and either the original as a tail
 * call or active_<name>, which stands below it.
 *
 * `inside` is set while the probe's own code runs, not during the system call:
 * a signal handler that interrupts us there gets the plain call. */
#include "socket_calls.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/close_range.h>
#include <string.h>
#include <unistd.h>

#include "../../common/status.h"
#include "connection.h"
#include "context.h"
#include "state.h"

probe_calls_t probe_real;

static __thread uint32_t inside;
static pid_t owner_pid;

#define ACTIVE static __attribute__ ((noinline))

static void enter (void)
{
  inside = 1;
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
}
static void leave (void)
{
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
  inside = 0;
}

/* ---- reading ------------------------------------------------------------ */
static inline __attribute__ ((always_inline)) int before_read (int fd, probe_read_t *ret_read)
{
  if (PROBE_UNLIKELY (inside))
    return 0;
  enter ();
  int tracked = probe_connection_before_read (fd, ret_read);
  leave ();
  return tracked;
}

static ssize_t after_read (int fd, const probe_read_t *state, const struct iovec *iov, int count,
                           ssize_t result)
{
  int saved = errno;
  enter ();
  probe_connection_after_read (fd, state, iov, count, result);
  leave ();
  errno = saved;
  return result;
}

static void give_up (int fd)
{
  int saved = errno;
  if (inside)
    return;
  enter ();
  probe_connection_shared (fd);
  leave ();
  errno = saved;
}

/* 1: these bytes stay in the stream, or come from beside it. MSG_TRUNC throws
 * stream bytes away unseen, MSG_OOB takes them out of order: after that nothing
 * is known of the stream. */
static int reads_nothing (int fd, int flags)
{
  if (PROBE_LIKELY (!(flags & (MSG_PEEK | MSG_ERRQUEUE | MSG_TRUNC | MSG_OOB))))
    return 0;
  if (!(flags & (MSG_PEEK | MSG_ERRQUEUE)))
    give_up (fd);
  return 1;
}

ACTIVE ssize_t active_read (int fd, void *data, size_t size)
{
  probe_read_t state;
  if (!before_read (fd, &state))
    return probe_real.read (fd, data, size);
  struct iovec iov = {data, size};
  return after_read (fd, &state, &iov, 1, probe_real.read (fd, data, size));
}

ACTIVE ssize_t active_readv (int fd, const struct iovec *iov, int count)
{
  probe_read_t state;
  if (!before_read (fd, &state))
    return probe_real.readv (fd, iov, count);
  return after_read (fd, &state, iov, count, probe_real.readv (fd, iov, count));
}

ACTIVE ssize_t active_recv (int fd, void *data, size_t size, int flags)
{
  probe_read_t state;
  if (reads_nothing (fd, flags) || !before_read (fd, &state))
    return probe_real.recv (fd, data, size, flags);
  struct iovec iov = {data, size};
  return after_read (fd, &state, &iov, 1, probe_real.recv (fd, data, size, flags));
}

ACTIVE ssize_t active_recvfrom (int fd, void *data, size_t size, int flags, struct sockaddr *from,
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
      give_up (fd);
    }
  }
}

ACTIVE ssize_t active_recvmsg (int fd, struct msghdr *message, int flags)
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

ACTIVE int active_recvmmsg (int fd, struct mmsghdr *messages, unsigned count, int flags,
                            struct timespec *timeout)
{
  give_up (fd);
  return probe_real.recvmmsg (fd, messages, count, flags, timeout);
}

/* ---- writing ------------------------------------------------------------ */
/* A write on its way: which call the caller made, with what. */
typedef struct {
  int fd, flags;
  const struct msghdr *message; /* the caller's, NULL unless sendmsg */
} write_call_t;

/* 0: the plain call and nothing more. MSG_OOB leaves the order of the stream;
 * MSG_ZEROCOPY reads its vector after the call has returned, and ours is on the
 * stack; MSG_FASTOPEN opens a connection that we have not seen yet. */
static inline __attribute__ ((always_inline)) int before_write (int fd, const struct iovec *iov, int count,
                                                                int flags, probe_write_t *ret_write)
{
  if (PROBE_UNLIKELY (inside || !iov || count <= 0))
    return 0;
  if (PROBE_UNLIKELY (flags & (MSG_OOB | MSG_ZEROCOPY | MSG_FASTOPEN))) {
    give_up (fd);
    return 0;
  }
  enter ();
  int tracked = probe_connection_before_write (fd, iov, count, flags, ret_write);
  leave ();
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
  enter ();
  result = probe_connection_after_write (fd, state, result);
  leave ();
  return result;
}

ACTIVE ssize_t active_write (int fd, const void *data, size_t size)
{
  probe_write_t state;
  struct iovec iov = {(void *) (uintptr_t) data, size};
  if (!before_write (fd, &iov, 1, 0, &state))
    return probe_real.write (fd, data, size);
  return after_write (fd, &state,
                      state.insert ? send_replaced (fd, &state, NULL, 0) : probe_real.write (fd, data, size));
}

ACTIVE ssize_t active_writev (int fd, const struct iovec *iov, int count)
{
  probe_write_t state;
  if (!before_write (fd, iov, count, 0, &state))
    return probe_real.writev (fd, iov, count);
  return after_write (
      fd, &state, state.insert ? send_replaced (fd, &state, NULL, 0) : probe_real.writev (fd, iov, count));
}

ACTIVE ssize_t active_send (int fd, const void *data, size_t size, int flags)
{
  probe_write_t state;
  struct iovec iov = {(void *) (uintptr_t) data, size};
  if (!before_write (fd, &iov, 1, flags, &state))
    return probe_real.send (fd, data, size, flags);
  return after_write (fd, &state,
                      state.insert ? send_replaced (fd, &state, NULL, flags)
                                   : probe_real.send (fd, data, size, flags));
}

ACTIVE ssize_t active_sendto (int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
                              socklen_t to_size)
{
  probe_write_t state;
  struct iovec iov = {(void *) (uintptr_t) data, size};
  if (!before_write (fd, &iov, 1, flags, &state))
    return probe_real.sendto (fd, data, size, flags, to, to_size);
  struct msghdr callers;
  memset (&callers, 0, sizeof callers);
  callers.msg_name = (void *) (uintptr_t) to;
  callers.msg_namelen = to ? to_size : 0;
  return after_write (fd, &state,
                      state.insert ? send_replaced (fd, &state, &callers, flags)
                                   : probe_real.sendto (fd, data, size, flags, to, to_size));
}

ACTIVE ssize_t active_sendmsg (int fd, const struct msghdr *message, int flags)
{
  probe_write_t state;
  give_up_passed (message);
  if (!message || message->msg_iovlen > INT_MAX ||
      !before_write (fd, message->msg_iov, (int) message->msg_iovlen, flags, &state))
    return probe_real.sendmsg (fd, message, flags);
  return after_write (fd, &state,
                      state.insert ? send_replaced (fd, &state, message, flags)
                                   : probe_real.sendmsg (fd, message, flags));
}

ACTIVE int active_sendmmsg (int fd, struct mmsghdr *messages, unsigned count, int flags)
{
  give_up (fd);
  return probe_real.sendmmsg (fd, messages, count, flags);
}

static ssize_t sent_opaque (int fd, ssize_t result)
{
  int saved = errno;
  if (result > 0 && !inside) {
    enter ();
    probe_connection_sent_opaque (fd, (size_t) result);
    leave ();
  }
  errno = saved;
  return result;
}

ACTIVE ssize_t active_sendfile (int out, int in, off_t *offset, size_t size)
{
  return sent_opaque (out, probe_real.sendfile (out, in, offset, size));
}

ACTIVE ssize_t active_sendfile64 (int out, int in, off64_t *offset, size_t size)
{
  return sent_opaque (out, probe_real.sendfile64 (out, in, offset, size));
}

ACTIVE ssize_t active_splice (int in, off64_t *in_at, int out, off64_t *out_at, size_t size, unsigned flags)
{
  give_up (in); /* bytes leave it that nobody looks at */
  return sent_opaque (out, probe_real.splice (in, in_at, out, out_at, size, flags));
}

/* ---- birth and death ----------------------------------------------------- */
/* A vfork child runs these in its parent's memory: what it closes is its own
 * copy of the fd, and the parent's table must not hear of it. */
static int own_process (void)
{
  return getpid () == owner_pid;
}

static void born (int fd, probe_role_t role)
{
  int saved = errno;
  if (!inside) {
    enter ();
    probe_connection_born (fd, role);
    leave ();
  }
  errno = saved;
}

static void closing (int fd)
{
  int saved = errno;
  if (!inside) {
    enter ();
    probe_connection_closing (fd);
    leave ();
  }
  errno = saved;
}

ACTIVE int active_connect (int fd, const struct sockaddr *address, socklen_t size)
{
  int result = probe_real.connect (fd, address, size);
  /* An interrupted connect goes on in the background like a non-blocking one. */
  if (result == 0 || errno == EINPROGRESS || errno == EINTR)
    born (fd, PROBE_ROLE_CLIENT);
  else if (errno != EALREADY && errno != EISCONN && !inside) {
    int saved = errno;
    enter ();
    probe_connection_refused (fd, saved);
    leave ();
    errno = saved;
  }
  return result;
}

ACTIVE int active_accept (int fd, struct sockaddr *address, socklen_t *size)
{
  int result = probe_real.accept (fd, address, size);
  if (result >= 0)
    born (result, PROBE_ROLE_SERVER);
  return result;
}

ACTIVE int active_accept4 (int fd, struct sockaddr *address, socklen_t *size, int flags)
{
  int result = probe_real.accept4 (fd, address, size, flags);
  if (result >= 0)
    born (result, PROBE_ROLE_SERVER);
  return result;
}

ACTIVE int active_shutdown (int fd, int how)
{
  int saved = errno;
  if (!inside) {
    enter ();
    probe_connection_shutdown (fd, how);
    leave ();
  }
  errno = saved;
  return probe_real.shutdown (fd, how);
}

ACTIVE int active_close (int fd)
{
  if (own_process ())
    closing (fd);
  return probe_real.close (fd);
}

static int two_names (int fd, int result)
{
  if (result >= 0) {
    give_up (fd);
    give_up (result);
  }
  return result;
}

ACTIVE int active_dup (int fd)
{
  int result = probe_real.dup (fd);
  return own_process () ? two_names (fd, result) : result;
}

ACTIVE int active_dup2 (int fd, int to)
{
  if (fd == to || !own_process ())
    return probe_real.dup2 (fd, to);
  closing (to);
  return two_names (fd, probe_real.dup2 (fd, to));
}

ACTIVE int active_dup3 (int fd, int to, int flags)
{
  if (fd == to || !own_process ())
    return probe_real.dup3 (fd, to, flags);
  closing (to);
  return two_names (fd, probe_real.dup3 (fd, to, flags));
}

ACTIVE int active_fcntl (int fd, int command, long argument)
{
  int result = probe_real.fcntl (fd, command, argument);
  if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && own_process ())
    two_names (fd, result);
  return result;
}

ACTIVE int active_fcntl64 (int fd, int command, long argument)
{
  int result = probe_real.fcntl64 (fd, command, argument);
  if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && own_process ())
    two_names (fd, result);
  return result;
}

static void closing_from (unsigned first, unsigned last)
{
  for (unsigned fd = first; fd <= last && fd < PROBE_FDS_MAX; fd++)
    closing ((int) fd);
}

ACTIVE int active_close_range (unsigned first, unsigned last, int flags)
{
  /* With UNSHARE only the caller's copy of the table changes, with CLOEXEC nothing is closed. */
  if (flags == 0 && own_process ())
    closing_from (first, last);
  return probe_real.close_range (first, last, flags);
}

ACTIVE void active_closefrom (int low)
{
  if (own_process ())
    closing_from (low < 0 ? 0 : (unsigned) low, UINT_MAX);
  probe_real.closefrom (low);
}

/* ---- waiting ------------------------------------------------------------- */
static int waited (int several, int result)
{
  int saved = errno;
  if (several && !inside) {
    enter ();
    probe_context_event_loop ();
    leave ();
  }
  errno = saved;
  return result;
}

/* Read before the call: it overwrites the sets. */
static int several_set (int count, const fd_set *in, const fd_set *out, const fd_set *except)
{
  const fd_set *sets[] = {in, out, except};
  unsigned found = 0;
  for (unsigned s = 0; s < 3; s++)
    for (int fd = 0; sets[s] && fd < count && fd < FD_SETSIZE && found < 2; fd++)
      found += FD_ISSET (fd, sets[s]) ? 1 : 0;
  /* Sets beyond FD_SETSIZE are somebody's private art: assume the worst. */
  return found > 1 || count > FD_SETSIZE;
}

ACTIVE int active_poll (struct pollfd *fds, nfds_t count, int timeout_ms)
{
  return waited (count > 1, probe_real.poll (fds, count, timeout_ms));
}

ACTIVE int active_ppoll (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                         const sigset_t *mask)
{
  return waited (count > 1, probe_real.ppoll (fds, count, timeout, mask));
}

ACTIVE int active_select (int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
  int several = several_set (count, in, out, except);
  return waited (several, probe_real.select (count, in, out, except, timeout));
}

ACTIVE int active_pselect (int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
                           const sigset_t *mask)
{
  int several = several_set (count, in, out, except);
  return waited (several, probe_real.pselect (count, in, out, except, timeout, mask));
}

ACTIVE int active_epoll_wait (int fd, struct epoll_event *events, int max, int timeout_ms)
{
  return waited (1, probe_real.epoll_wait (fd, events, max, timeout_ms));
}

ACTIVE int active_epoll_pwait (int fd, struct epoll_event *events, int max, int timeout_ms,
                               const sigset_t *mask)
{
  return waited (1, probe_real.epoll_pwait (fd, events, max, timeout_ms, mask));
}

ACTIVE int active_epoll_pwait2 (int fd, struct epoll_event *events, int max, const struct timespec *timeout,
                                const sigset_t *mask)
{
  return waited (1, probe_real.epoll_pwait2 (fd, events, max, timeout, mask));
}

/* ---- the hooks ----------------------------------------------------------- */
#define XX(type, name, params, args)                                                                         \
  type probe_hook_##name params                                                                              \
  {                                                                                                          \
    if (PROBE_LIKELY (!probe_active ()))                                                                     \
      return probe_real.name args;                                                                           \
    return active_##name args;                                                                               \
  }
PROBE_CALL_MAP (XX)
#undef XX

/* Where the check of the fortified call would fail, it is the one to say so. */
ssize_t probe_hook___read_chk (int fd, void *data, size_t size, size_t room)
{
  return size <= room ? probe_hook_read (fd, data, size) : probe_real.__read_chk (fd, data, size, room);
}

ssize_t probe_hook___recv_chk (int fd, void *data, size_t size, size_t room, int flags)
{
  return size <= room ? probe_hook_recv (fd, data, size, flags)
                      : probe_real.__recv_chk (fd, data, size, room, flags);
}

ssize_t probe_hook___recvfrom_chk (int fd, void *data, size_t size, size_t room, int flags,
                                   struct sockaddr *from, socklen_t *from_size)
{
  return size <= room ? probe_hook_recvfrom (fd, data, size, flags, from, from_size)
                      : probe_real.__recvfrom_chk (fd, data, size, room, flags, from, from_size);
}

int probe_hook___poll_chk (struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
  return room / sizeof *fds >= count ? probe_hook_poll (fds, count, timeout_ms)
                                     : probe_real.__poll_chk (fds, count, timeout_ms, room);
}

int probe_hook___ppoll_chk (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                            const sigset_t *mask, size_t room)
{
  return room / sizeof *fds >= count ? probe_hook_ppoll (fds, count, timeout, mask)
                                     : probe_real.__ppoll_chk (fds, count, timeout, mask, room);
}

/* ---- originals ----------------------------------------------------------- */
/* Names that libc exports for the same function. */
#define ALIAS_MAP(XX)                                                                                        \
  XX (__read, read)                                                                                          \
  XX (__write, write)                                                                                        \
  XX (__connect, connect)                                                                                    \
  XX (__send, send)                                                                                          \
  XX (__close, close)                                                                                        \
  XX (__dup2, dup2)                                                                                          \
  XX (__fcntl, fcntl)                                                                                        \
  XX (__poll, poll)                                                                                          \
  XX (__select, select)

#define XX(type, name, params, args) +1
#define YY(alias, name)              +1
#define TABLE_MAX                    (0 PROBE_CALL_MAP (XX) PROBE_CHECKED_MAP (XX) ALIAS_MAP (YY))
static probe_call_t table[TABLE_MAX];
#undef XX
#undef YY
static uint32_t table_count;

/* A lazily bound slot goes to whatever the global scope has first. In a
 * fixed-address executable that takes a function's address this is its own PLT
 * entry, an undefined symbol with a value; behind it stands the same original. */
static int binds_to (const char *name, const void *original)
{
  void *first = dlsym (RTLD_DEFAULT, name);
  if (first == original)
    return 1;
  Dl_info info;
  void *found = NULL;
  if (!first || !dladdr1 (first, &info, &found, RTLD_DL_SYMENT) || !found)
    return 0;
  const ElfW (Sym) *symbol = found;
  return symbol->st_shndx == SHN_UNDEF;
}

int probe_call_find (const char *name, probe_call_t *ret_call)
{
  void *original = dlsym (RTLD_NEXT, name);
  if (!original)
    return WEFT_E_NOT_FOUND;
  ret_call->name = name;
  ret_call->original = original;
  ret_call->lazy_ok = binds_to (name, original);
  return 0;
}

static void add (const char *name, void *hook, void *field)
{
  probe_call_t call = {.hook = hook};
  if (probe_call_find (name, &call) != 0)
    return;
  memcpy (field, &call.original, sizeof call.original);
  table[table_count++] = call;
}

/* Where a library preloaded over libc has one name but not the other, the two
 * are no longer the same call. */
static void add_alias (const char *name, void *hook, const void *original)
{
  probe_call_t call = {.hook = hook};
  if (probe_call_find (name, &call) == 0 && call.original == original)
    table[table_count++] = call;
}

int probe_calls_resolve (void)
{
  table_count = 0;
#define XX(type, name, params, args) add (#name, (void *) probe_hook_##name, &probe_real.name);
  PROBE_CALL_MAP (XX)
  PROBE_CHECKED_MAP (XX)
#undef XX
#define XX(alias, name) add_alias (#alias, (void *) probe_hook_##name, (const void *) probe_real.name);
  ALIAS_MAP (XX)
#undef XX
  dlerror (); /* what a missing name left behind is not the application's error */
  /* The hooks call these on behalf of others. */
  return probe_real.read && probe_real.sendmsg && probe_real.close ? 0 : WEFT_E_NOT_FOUND;
}

const probe_call_t *probe_calls_table (uint32_t *ret_count)
{
  *ret_count = table_count;
  return table;
}

void probe_calls_owner (pid_t pid)
{
  owner_pid = pid;
}
