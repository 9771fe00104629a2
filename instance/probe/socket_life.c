/* SPDX-License-Identifier: Apache-2.0 */
/* socket_life: the active half of the calls by which sockets come and go, and of
 * those that wait for them. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "context.h"
#include "patience.h"
#include "reach.h"
#include "socket_hooks.h"

static pid_t owner_pid;

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
  if (!probe_inside) {
    probe_enter ();
    probe_connection_born (fd, role);
    probe_leave ();
  }
  errno = saved;
}

static void closing (int fd)
{
  int saved = errno;
  if (!probe_inside) {
    probe_enter ();
    probe_connection_closing (fd);
    probe_leave ();
  }
  errno = saved;
}

/* How a connect went, if it did not reach its peer. */
static void reached (int fd, const probe_reach_t *reach, const struct sockaddr *address, socklen_t size,
                     int error)
{
  if (!reach->start_ns || probe_inside)
    return;
  probe_enter ();
  probe_reach_connect (fd, reach, address, size, error);
  probe_leave ();
  errno = error;
}

int probe_active_connect (int fd, const struct sockaddr *address, socklen_t size)
{
  probe_reach_t reach = {0};
  if (!probe_inside && probe_context_near ()) {
    probe_enter ();
    probe_reach_begin (&reach);
    probe_leave ();
  }
  int result = probe_real.connect (fd, address, size);
  /* An interrupted connect goes on in the background like a non-blocking one. */
  if (result == 0 || errno == EINPROGRESS || errno == EINTR) {
    born (fd, PROBE_ROLE_CLIENT);
  } else if (errno != EALREADY && errno != EISCONN && !probe_inside) {
    int saved = errno;
    probe_enter ();
    probe_connection_refused (fd, saved);
    probe_leave ();
    errno = saved;
  }
  if (result != 0)
    reached (fd, &reach, address, size, errno);
  return result;
}

int probe_active_getsockopt (int fd, int level, int name, void *value, socklen_t *size)
{
  int result = probe_real.getsockopt (fd, level, name, value, size);
  int error = 0;
  if (level != SOL_SOCKET || name != SO_ERROR || result != 0 || probe_inside || !value || !size ||
      *size < sizeof error)
    return result;
  memcpy (&error, value, sizeof error);
  if (error) {
    int saved = errno;
    probe_enter ();
    probe_reach_told (fd, error);
    probe_leave ();
    errno = saved;
  }
  return result;
}

/* The calling thread may be one who hands work on (X3); result is passed through. */
static int waited (int several, int result)
{
  int saved = errno;
  if (several && !probe_inside) {
    probe_enter ();
    probe_context_event_loop ();
    probe_leave ();
  }
  errno = saved;
  return result;
}

/* Whoever takes connections in may be one who hands them on: as after a wait for several
 * sockets, and with a request open on this thread certainly (X3). */
static void accepts (void)
{
  waited (probe_context_near (), 0);
}

static int accepted (int result)
{
  if (result >= 0)
    born (result, PROBE_ROLE_SERVER);
  return waited (result >= 0, result);
}

int probe_active_accept (int fd, struct sockaddr *address, socklen_t *size)
{
  accepts ();
  return accepted (probe_real.accept (fd, address, size));
}

int probe_active_accept4 (int fd, struct sockaddr *address, socklen_t *size, int flags)
{
  accepts ();
  return accepted (probe_real.accept4 (fd, address, size, flags));
}

int probe_active_shutdown (int fd, int how)
{
  int saved = errno;
  if (!probe_inside) {
    probe_enter ();
    probe_connection_shutdown (fd, how);
    probe_leave ();
  }
  errno = saved;
  return probe_real.shutdown (fd, how);
}

int probe_active_close (int fd)
{
  if (own_process ())
    closing (fd);
  return probe_real.close (fd);
}

static int duplicated (int fd, int result)
{
  if (result >= 0) {
    probe_two_names (fd);
    probe_two_names (result);
  }
  return result;
}

int probe_active_dup (int fd)
{
  int result = probe_real.dup (fd);
  return own_process () ? duplicated (fd, result) : result;
}

int probe_active_dup2 (int fd, int to)
{
  if (fd == to || !own_process ())
    return probe_real.dup2 (fd, to);
  closing (to);
  return duplicated (fd, probe_real.dup2 (fd, to));
}

int probe_active_dup3 (int fd, int to, int flags)
{
  if (fd == to || !own_process ())
    return probe_real.dup3 (fd, to, flags);
  closing (to);
  return duplicated (fd, probe_real.dup3 (fd, to, flags));
}

int probe_active_fcntl (int fd, int command, long argument)
{
  int result = probe_real.fcntl (fd, command, argument);
  if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && own_process ())
    duplicated (fd, result);
  return result;
}

int probe_active_fcntl64 (int fd, int command, long argument)
{
  int result = probe_real.fcntl64 (fd, command, argument);
  if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && own_process ())
    duplicated (fd, result);
  return result;
}

static void closing_from (unsigned first, unsigned last)
{
  for (unsigned fd = first; fd <= last && fd < PROBE_FDS_MAX; fd++)
    closing ((int) fd);
}

int probe_active_close_range (unsigned first, unsigned last, int flags)
{
  /* With UNSHARE only the caller's copy of the table changes, with CLOEXEC nothing is closed. */
  if (flags == 0 && own_process ())
    closing_from (first, last);
  return probe_real.close_range (first, last, flags);
}

void probe_active_closefrom (int low)
{
  if (own_process ())
    closing_from (low < 0 ? 0 : (unsigned) low, UINT_MAX);
  probe_real.closefrom (low);
}

/* ---- waiting ------------------------------------------------------------- */
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

/* One socket alone, and nothing came of it. */
static int waited_for (const struct pollfd *fds, int result)
{
  if (result == 0 && !probe_inside) {
    int saved = errno;
    probe_enter ();
    probe_patience_waited (fds->fd);
    probe_leave ();
    errno = saved;
  }
  return result;
}

int probe_active_poll (struct pollfd *fds, nfds_t count, int timeout_ms)
{
  int result = waited (count > 1, probe_real.poll (fds, count, timeout_ms));
  return count == 1 && timeout_ms > 0 ? waited_for (fds, result) : result;
}

int probe_active_ppoll (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                        const sigset_t *mask)
{
  int look = timeout && timeout->tv_sec == 0 && timeout->tv_nsec == 0;
  int result = waited (count > 1, probe_real.ppoll (fds, count, timeout, mask));
  return count == 1 && !look ? waited_for (fds, result) : result;
}

int probe_active_select (int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
  int several = several_set (count, in, out, except);
  return waited (several, probe_real.select (count, in, out, except, timeout));
}

int probe_active_pselect (int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
                          const sigset_t *mask)
{
  int several = several_set (count, in, out, except);
  return waited (several, probe_real.pselect (count, in, out, except, timeout, mask));
}

int probe_active_epoll_wait (int fd, struct epoll_event *events, int max, int timeout_ms)
{
  return waited (1, probe_real.epoll_wait (fd, events, max, timeout_ms));
}

int probe_active_epoll_pwait (int fd, struct epoll_event *events, int max, int timeout_ms,
                              const sigset_t *mask)
{
  return waited (1, probe_real.epoll_pwait (fd, events, max, timeout_ms, mask));
}

int probe_active_epoll_pwait2 (int fd, struct epoll_event *events, int max, const struct timespec *timeout,
                               const sigset_t *mask)
{
  return waited (1, probe_real.epoll_pwait2 (fd, events, max, timeout, mask));
}

void probe_calls_owner (pid_t pid)
{
  owner_pid = pid;
}
