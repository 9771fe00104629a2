/* SPDX-License-Identifier: Apache-2.0 */
/* call_recorders: what the hooks stand on in their tests: a fake kernel, and recorders in
 * place of connection and context. `trace` holds what happened, in order. Header only;
 * once in a test binary. */
#ifndef TEST_CALL_RECORDERS_H
#define TEST_CALL_RECORDERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../instance/probe/connection.h"
#include "../../../../instance/probe/context.h"
#include "../../../../instance/probe/patience.h"
#include "../../../../instance/probe/quiet.h"
#include "../../../../instance/probe/reach.h"
#include "../../../../instance/probe/socket_calls.h"
#include "../../../../instance/probe/state.h"

#define FD 7

uint32_t probe_actions;
uint8_t probe_quiet[PROBE_FDS_MAX];
__thread uint8_t probe_context_count;
uint8_t probe_context_adapted;

static char trace[4096];
static int tracked, inserting, nested, waiting;
static ssize_t kernel_result;
static int kernel_errno;
static struct msghdr sent;
static int sent_flags;
static char insert_text[] = "insert";
static char abc[] = "abc";

__attribute__ ((format (printf, 1, 2))) static void note (const char *format, ...)
{
  size_t at = strlen (trace);
  va_list arguments;
  va_start (arguments, format);
  vsnprintf (trace + at, sizeof trace - at, format, arguments);
  va_end (arguments);
}

/* ---- recorders ----------------------------------------------------------------- */
void probe_connection_born (int fd, probe_role_t role)
{
  note ("born %d %s;", fd, role == PROBE_ROLE_CLIENT ? "client" : "server");
  errno = 99;
}
void probe_connection_refused (int fd, int error)
{
  note ("refused %d %d;", fd, error);
  errno = 99;
}
void probe_connection_closing (int fd)
{
  note ("closing %d;", fd);
  errno = 99;
}
void probe_connection_shared (int fd)
{
  note ("shared %d;", fd);
  errno = 99;
}
void probe_patience_waited (int fd)
{
  note ("waited %d;", fd);
  errno = 99;
}
void probe_connection_shutdown (int fd, int how)
{
  note ("shutdown %d %d;", fd, how);
}
probe_write_how_t probe_connection_before_write (int fd, const struct iovec *iov, int count, int flags,
                                                 probe_write_t *write)
{
  if (tracked && inserting && !write->room)
    return PROBE_WRITE_ROOM;
  note ("before_write %d x%d;", fd, count);
  if (!tracked)
    return PROBE_WRITE_PLAIN;
  write->insert = inserting;
  if (inserting) {
    write->room->iov[0] = iov[0];
    write->room->iov[1] = (struct iovec){insert_text, 6};
    write->iov_count = 2;
  }
  return PROBE_WRITE_TRACKED;
}
ssize_t probe_connection_after_write (int fd, probe_write_t *write, ssize_t result)
{
  note ("after_write %zd;", result);
  return write->insert ? result - 6 : result;
}
void probe_connection_sent_opaque (int fd, size_t size)
{
  note ("opaque %d %zu;", fd, size);
  errno = 99;
}
unsigned probe_connections_pending (void)
{
  return waiting;
}
int probe_connection_finish (int fd)
{
  note ("finish %d;", fd);
  errno = EAGAIN;
  return waiting == 1;
}
int probe_connection_before_read (int fd, probe_read_t *ret_read)
{
  note ("before_read %d;", fd);
  if (nested) {
    char byte;
    nested = 0;
    probe_hook_read (FD + 1, &byte, 1); /* as a signal handler would */
  }
  return tracked;
}
void probe_connection_after_read (int fd, const probe_read_t *read, const struct iovec *iov, int count,
                                  ssize_t result)
{
  note ("after_read x%d %zd;", count, result);
  errno = 99;
}
void probe_context_event_loop (void)
{
  note ("event_loop;");
  errno = 99;
}

/* Something is followed iff a subtask is open, here as there. */
int probe_reach_begin (probe_reach_t *ret_reach)
{
  ret_reach->start_ns = probe_context_count;
  return probe_context_count;
}
void probe_reach_connect (int fd, const probe_reach_t *reach, const struct sockaddr *address, socklen_t size,
                          int error)
{
  note ("reach %d %d;", fd, error);
  errno = 99;
}
void probe_reach_told (int fd, int error)
{
  note ("told %d %d;", fd, error);
  errno = 99;
}
int probe_reach_lookup (const char *node, int flags, probe_reach_t *ret_reach)
{
  return probe_reach_begin (ret_reach);
}
void probe_reach_looked_up (const probe_reach_t *reach, int again)
{
  note ("looked up%s;", again ? " in vain" : "");
}

/* ---- fake kernel ------------------------------------------------------------------- */
static ssize_t answer (void)
{
  errno = kernel_errno;
  return kernel_result;
}
#define FAKE(type, name, params, text, ...)                                                                  \
  static type fake_##name params                                                                             \
  {                                                                                                          \
    note (text, __VA_ARGS__);                                                                                \
    return (type) answer ();                                                                                 \
  }
FAKE (ssize_t, read, (int fd, void *data, size_t size), "read %d;", fd)
FAKE (ssize_t, readv, (int fd, const struct iovec *iov, int count), "readv %d x%d;", fd, count)
FAKE (ssize_t, recv, (int fd, void *data, size_t size, int flags), "recv %d %#x;", fd, flags)
FAKE (ssize_t, write, (int fd, const void *data, size_t size), "write %d;", fd)
FAKE (ssize_t, writev, (int fd, const struct iovec *iov, int count), "writev %d x%d;", fd, count)
FAKE (ssize_t, send, (int fd, const void *data, size_t size, int flags), "send %d %#x;", fd, flags)
FAKE (ssize_t, sendto,
      (int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t to_size),
      "sendto %d;", fd)
FAKE (ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), "recvmsg %d;", fd)
FAKE (ssize_t, sendfile, (int out, int in, off_t *offset, size_t size), "sendfile %d;", out)
FAKE (int, connect, (int fd, const struct sockaddr *address, socklen_t size), "connect %d;", fd)
FAKE (int, accept4, (int fd, struct sockaddr *address, socklen_t *size, int flags), "accept4 %d;", fd)
FAKE (int, close, (int fd), "close %d;", fd)
FAKE (int, dup, (int fd), "dup %d;", fd)
FAKE (int, dup2, (int fd, int to), "dup2 %d %d;", fd, to)
FAKE (int, fcntl, (int fd, int command, long argument), "fcntl %d;", fd)
FAKE (int, close_range, (unsigned first, unsigned last, int flags), "close_range %u;", first)
FAKE (int, poll, (struct pollfd * fds, nfds_t count, int timeout_ms), "poll x%lu;", (unsigned long) count)
FAKE (int, ppoll, (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask),
      "ppoll x%lu;", (unsigned long) count)
FAKE (int, select, (int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout),
      "select %d;", count)
FAKE (int, epoll_wait, (int fd, struct epoll_event *events, int max, int timeout_ms), "epoll_wait %d;", fd)
FAKE (ssize_t, __read_chk, (int fd, void *data, size_t size, size_t room), "__read_chk %d;", fd)

static ssize_t fake_sendmsg (int fd, const struct msghdr *message, int flags)
{
  note ("sendmsg %d x%zu %#x;", fd, message->msg_iovlen, flags);
  sent = *message;
  sent_flags = flags;
  return answer ();
}

static int begin (void **state)
{
  memset (&probe_real, 0, sizeof probe_real);
#define SET(name) probe_real.name = fake_##name
  SET (read), SET (readv), SET (recv), SET (write), SET (writev), SET (send), SET (sendto), SET (recvmsg);
  SET (sendmsg), SET (sendfile), SET (connect), SET (accept4), SET (close), SET (dup), SET (dup2);
  SET (fcntl), SET (close_range), SET (poll), SET (ppoll), SET (select), SET (epoll_wait), SET (__read_chk);
  trace[0] = 0;
  probe_actions = WEFT_ACTION_CAPTURE;
  tracked = 1;
  inserting = nested = waiting = 0;
  kernel_result = 3;
  kernel_errno = 0;
  probe_calls_owner (getpid ());
  errno = 11;
  return 0;
}

#define RECORDER static __attribute__ ((unused))

RECORDER void connect_answers (ssize_t result, int error)
{
  kernel_result = result;
  kernel_errno = error;
  assert_int_equal (probe_hook_connect (FD, NULL, 0), result);
  assert_int_equal (errno, error);
}

#endif
