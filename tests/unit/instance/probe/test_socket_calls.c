/* SPDX-License-Identifier: Apache-2.0 */
/* socket_calls: the hooks over a fake kernel, with recorders in place of
 * connection and context. `trace` holds what happened, in order. */
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
int probe_connection_before_write (int fd, const struct iovec *iov, int count, int flags,
                                   probe_write_t *ret_write)
{
  note ("before_write %d x%d;", fd, count);
  if (!tracked)
    return 0;
  ret_write->insert = inserting;
  if (inserting) {
    ret_write->iov[0] = iov[0];
    ret_write->iov[1] = (struct iovec){insert_text, 6};
    ret_write->iov_count = 2;
  }
  return 1;
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

/* ---- idle ---------------------------------------------------------------------------- */
static void test_idle_is_the_call_alone (void **state)
{
  char data[8];
  probe_actions = 0;
  assert_int_equal (probe_hook_read (FD, data, 8), 3);
  assert_int_equal (probe_hook_write (FD, data, 8), 3);
  assert_int_equal (probe_hook_close (FD), 3);
  assert_int_equal (probe_hook_epoll_wait (FD, NULL, 1, 0), 3);
  assert_string_equal (trace, "read 7;write 7;close 7;epoll_wait 7;");
}

/* ---- reading --------------------------------------------------------------------------- */
static void test_read_around (void **state)
{
  char data[8];
  kernel_errno = 22;
  assert_int_equal (probe_hook_read (FD, data, 8), 3);
  assert_string_equal (trace, "before_read 7;read 7;after_read x1 3;");
  assert_int_equal (errno, 22); /* the kernel's, although the recorder wrote 99 */
}

static void test_failing_read_keeps_its_errno (void **state)
{
  char data[8];
  kernel_result = -1;
  kernel_errno = EAGAIN;
  assert_int_equal (probe_hook_recv (FD, data, 8, 0), -1);
  assert_int_equal (errno, EAGAIN);
  assert_string_equal (trace, "before_read 7;recv 7 0;after_read x1 -1;");
}

static void test_untracked_read_is_plain (void **state)
{
  struct iovec iov[2];
  memset (iov, 0, sizeof iov);
  tracked = 0;
  probe_hook_readv (FD, iov, 2);
  assert_string_equal (trace, "before_read 7;readv 7 x2;");
}

static void test_peek_leaves_the_stream (void **state)
{
  char data[8];
  probe_hook_recv (FD, data, 8, MSG_PEEK | MSG_TRUNC);
  assert_string_equal (trace, "recv 7 0x22;");
}

/* Bytes thrown away unseen: nothing is known of the stream from here on. */
static void test_trunc_and_oob_give_up (void **state)
{
  char data[8];
  probe_hook_recv (FD, data, 8, MSG_TRUNC);
  probe_hook_recv (FD, data, 8, MSG_OOB);
  assert_string_equal (trace, "shared 7;recv 7 0x20;shared 7;recv 7 0x1;");
}

static void test_call_inside_our_own_code_is_plain (void **state)
{
  char data[8];
  nested = 1;
  probe_hook_read (FD, data, 8);
  assert_string_equal (trace, "before_read 7;read 8;read 7;after_read x1 3;");
  trace[0] = 0;
  probe_hook_read (FD, data, 8);
  assert_string_equal (trace, "before_read 7;read 7;after_read x1 3;");
}

/* ---- writing --------------------------------------------------------------------------- */
static void test_write_without_insert_is_the_callers_call (void **state)
{
  struct iovec iov[2];
  memset (iov, 0, sizeof iov);
  assert_int_equal (probe_hook_write (FD, "abc", 3), 3);
  probe_hook_writev (FD, iov, 2);
  probe_hook_send (FD, "abc", 3, MSG_NOSIGNAL);
  assert_string_equal (trace, "before_write 7 x1;write 7;after_write 3;"
                              "before_write 7 x2;writev 7 x2;after_write 3;"
                              "before_write 7 x1;send 7 0x4000;after_write 3;");
}

static void test_insert_goes_out_in_one_sendmsg (void **state)
{
  inserting = 1;
  kernel_result = 9;
  assert_int_equal (probe_hook_write (FD, "abc", 3), 3); /* its own three bytes (C3) */
  assert_string_equal (trace, "before_write 7 x1;sendmsg 7 x2 0;after_write 9;");
  assert_memory_equal (sent.msg_iov[1].iov_base, "insert", 6);
}

static void test_flags_address_and_control_are_kept (void **state)
{
  struct sockaddr address;
  char control[64];
  struct iovec iov = {abc, 3};
  struct msghdr message;
  memset (&message, 0, sizeof message);
  memset (control, 0, sizeof control);
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = 8;
  inserting = 1;
  kernel_result = 9;
  probe_hook_send (FD, "abc", 3, MSG_MORE | MSG_NOSIGNAL);
  assert_int_equal (sent_flags, MSG_MORE | MSG_NOSIGNAL);
  probe_hook_sendto (FD, "abc", 3, MSG_DONTWAIT, &address, sizeof address);
  assert_ptr_equal (sent.msg_name, &address);
  assert_int_equal (sent.msg_namelen, sizeof address);
  assert_int_equal (sent_flags, MSG_DONTWAIT);
  probe_hook_sendmsg (FD, &message, 0);
  assert_ptr_equal (sent.msg_control, control);
  assert_int_equal (sent.msg_controllen, 8);
  assert_int_equal (message.msg_iovlen, 1); /* the caller's own is untouched */
}

/* The kernel reads a MSG_ZEROCOPY vector after the call; ours would be gone. */
static void test_zerocopy_is_never_inserted_into (void **state)
{
  inserting = 1;
  probe_hook_send (FD, "abc", 3, MSG_ZEROCOPY);
  assert_string_equal (trace, "shared 7;send 7 0x4000000;");
}

static void test_bad_vectors_are_the_kernels (void **state)
{
  probe_hook_writev (FD, NULL, 3);
  probe_hook_writev (FD, (struct iovec *) 1, -1);
  assert_string_equal (trace, "writev 7 x3;writev 7 x-1;");
}

static void test_sendfile_is_opaque (void **state)
{
  probe_hook_sendfile (FD, 3, NULL, 10);
  kernel_result = -1;
  kernel_errno = EAGAIN;
  probe_hook_sendfile (FD, 3, NULL, 10);
  assert_string_equal (trace, "sendfile 7;opaque 7 3;sendfile 7;");
  assert_int_equal (errno, EAGAIN);
}

static void test_rest_of_an_insert_comes_first (void **state)
{
  struct mmsghdr several;
  waiting = 1; // it can be sent now
  assert_int_equal (probe_hook_sendfile (FD, 3, NULL, 10), 3);
  assert_string_equal (trace, "finish 7;sendfile 7;opaque 7 3;");
  trace[0] = 0;
  waiting = 2; // it cannot: the call fails as it would have for a full socket
  assert_int_equal (probe_hook_sendfile (FD, 3, NULL, 10), -1);
  assert_int_equal (errno, EAGAIN);
  assert_int_equal (probe_hook_splice (3, NULL, FD, NULL, 10, 0), -1);
  assert_int_equal (probe_hook_sendmmsg (FD, &several, 1, 0), -1);
  assert_int_equal (probe_hook_send (FD, "abc", 3, MSG_ZEROCOPY), -1);
  assert_int_equal (errno, EAGAIN);
  assert_string_equal (trace, "finish 7;shared 3;finish 7;shared 7;finish 7;shared 7;finish 7;");
}

static void test_passed_fds_have_two_names (void **state)
{
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE (2 * sizeof (int))];
  } control;
  struct msghdr message;
  int fds[2] = {21, 22};
  memset (&message, 0, sizeof message);
  memset (&control, 0, sizeof control);
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  control.head.cmsg_level = SOL_SOCKET;
  control.head.cmsg_type = SCM_RIGHTS;
  control.head.cmsg_len = CMSG_LEN (sizeof fds);
  memcpy (CMSG_DATA (&control.head), fds, sizeof fds);
  tracked = 0;
  probe_hook_recvmsg (FD, &message, 0);
  probe_hook_sendmsg (FD, &message, 0);
  assert_string_equal (trace, "before_read 7;recvmsg 7;shared 21;shared 22;"
                              "shared 21;shared 22;sendmsg 7 x0 0;");
}

/* ---- birth and death --------------------------------------------------------------------- */
static void connect_answers (ssize_t result, int error)
{
  kernel_result = result;
  kernel_errno = error;
  assert_int_equal (probe_hook_connect (FD, NULL, 0), result);
  assert_int_equal (errno, error);
}

static void test_connect (void **state)
{
  connect_answers (0, 0);
  connect_answers (-1, EINPROGRESS);
  connect_answers (-1, EINTR);
  connect_answers (-1, EALREADY);
  connect_answers (-1, EISCONN);
  connect_answers (-1, ECONNREFUSED);
  assert_string_equal (trace, "connect 7;born 7 client;connect 7;born 7 client;connect 7;born 7 client;"
                              "connect 7;connect 7;connect 7;refused 7 111;");
}

static void test_accept (void **state)
{
  kernel_result = 40;
  assert_int_equal (probe_hook_accept4 (FD, NULL, NULL, 0), 40);
  kernel_result = -1;
  probe_hook_accept4 (FD, NULL, NULL, 0);
  assert_string_equal (trace, "accept4 7;born 40 server;accept4 7;");
}

static void test_close_is_told_before (void **state)
{
  probe_hook_close (FD);
  assert_string_equal (trace, "closing 7;close 7;");
}

/* The recorder stands in memory that parent and vfork child share. */
static void test_close_in_a_vfork_child_is_plain (void **state)
{
  /* NOLINTBEGIN: what a careful program does not do is what is tested */
  pid_t child = vfork ();
  if (child == 0) {
    probe_hook_close (FD);
    probe_hook_dup2 (FD, 8);
    probe_hook_dup (FD);
    probe_hook_fcntl (FD, F_DUPFD, 0);
    probe_hook_close_range (3, 9, 0);
    _exit (0);
  }
  /* NOLINTEND */
  waitpid (child, NULL, 0);
  assert_string_equal (trace, "close 7;dup2 7 8;dup 7;fcntl 7;close_range 3;");
}

static void test_dup_family (void **state)
{
  kernel_result = 8;
  probe_hook_dup2 (FD, 8);
  assert_string_equal (trace, "closing 8;dup2 7 8;shared 7;shared 8;");
  trace[0] = 0;
  probe_hook_dup2 (FD, FD); /* changes nothing */
  probe_hook_dup (FD);
  probe_hook_fcntl (FD, F_DUPFD_CLOEXEC, 3);
  probe_hook_fcntl (FD, F_GETFL, 0);
  assert_string_equal (trace, "dup2 7 7;dup 7;shared 7;shared 8;fcntl 7;shared 7;shared 8;fcntl 7;");
}

static void test_close_range (void **state)
{
  probe_hook_close_range (5, 7, 0);
  probe_hook_close_range (5, 7, CLOSE_RANGE_CLOEXEC);
  probe_hook_close_range (7, 5, 0);
  probe_hook_close_range (PROBE_FDS_MAX - 1, UINT32_MAX, 0);
  assert_string_equal (trace, "closing 5;closing 6;closing 7;close_range 5;close_range 5;close_range 7;"
                              "closing 65535;close_range 65535;");
}

/* ---- waiting ------------------------------------------------------------------------------ */
static void test_waiting_for_one_is_no_event_loop (void **state)
{
  fd_set in;
  FD_ZERO (&in);
  FD_SET (9, &in);
  struct pollfd fds[2];
  memset (fds, 0, sizeof fds);
  probe_hook_poll (fds, 1, 0);
  probe_hook_select (10, &in, NULL, NULL, NULL);
  assert_string_equal (trace, "poll x1;select 10;");
}

static void test_waiting_in_vain (void **state)
{
  struct pollfd fds[2] = {{.fd = 9}, {.fd = 4}};
  struct timespec none = {0}, some = {.tv_nsec = 1};
  kernel_errno = EINTR;
  kernel_result = 0;
  probe_hook_poll (fds, 1, 5);
  probe_hook_poll (fds, 1, 0); // only looked
  assert_string_equal (trace, "poll x1;waited 9;poll x1;");
  trace[0] = 0;
  probe_hook_ppoll (fds, 1, &some, NULL);
  probe_hook_ppoll (fds, 1, &none, NULL);
  assert_string_equal (trace, "ppoll x1;waited 9;ppoll x1;");
  trace[0] = 0;
  probe_hook_poll (fds, 2, 5); // for whom?
  kernel_result = 1;
  probe_hook_poll (fds, 1, 5);
  kernel_result = -1;
  probe_hook_poll (NULL, 1, 5);
  assert_string_equal (trace, "poll x2;event_loop;poll x1;poll x1;");
  assert_int_equal (errno, EINTR);
}

static void test_waiting_for_several_is (void **state)
{
  fd_set in, out;
  FD_ZERO (&in);
  FD_ZERO (&out);
  FD_SET (9, &in);
  FD_SET (4, &out);
  struct pollfd fds[2];
  memset (fds, 0, sizeof fds);
  kernel_errno = EINTR;
  probe_hook_poll (fds, 2, 0);
  probe_hook_select (10, &in, &out, NULL, NULL);
  probe_hook_epoll_wait (FD, NULL, 1, 0);
  assert_string_equal (trace, "poll x2;event_loop;select 10;event_loop;epoll_wait 7;event_loop;");
  assert_int_equal (errno, EINTR);
}

/* ---- fortified, originals ------------------------------------------------------------------ */
static void test_fortified_read (void **state)
{
  char data[8];
  tracked = 0;
  probe_hook___read_chk (FD, data, 8, 8);
  probe_hook___read_chk (FD, data, 9, 8);
  assert_string_equal (trace, "before_read 7;read 7;__read_chk 7;");
}

static void test_resolve (void **state)
{
  uint32_t count;
  memset (&probe_real, 0, sizeof probe_real);
  assert_int_equal (probe_calls_resolve (), 0);
  const probe_call_t *table = probe_calls_table (&count);
  unsigned reads = 0;
  for (uint32_t i = 0; i < count; i++) {
    assert_non_null (table[i].original);
    assert_int_equal (table[i].everywhere, 0);
    if (table[i].hook == (void *) probe_hook_read) {
      reads++; /* read and __read */
      assert_ptr_equal (table[i].original, (void *) probe_real.read);
    }
  }
#ifdef __SANITIZE_ADDRESS__
  assert_int_equal (reads, 1); /* the sanitizer has a read, and no __read */
#else
  assert_int_equal (reads, 2);
#endif
  probe_call_t call = {.name = "untouched"};
  assert_true (probe_call_find ("weft_no_such_call", &call) < 0);
  assert_string_equal (call.name, "untouched");
}

/* ---- quiet fds, outcomes of connects, lookups ---------------------------------------- */
static void moves (const char *expected)
{
  char data[4];
  trace[0] = 0;
  tracked = 1;
  kernel_result = 3;
  probe_hook_send (FD, abc, 3, 0);
  probe_hook_recv (FD, data, sizeof data, 0);
  assert_string_equal (trace, expected);
}

#define WRITE_PLAIN  "send 7 0;"
#define WRITE_LOOKED "before_write 7 x1;send 7 0;after_write 3;"
#define READ_PLAIN   "recv 7 0;"
#define READ_LOOKED  "before_read 7;recv 7 0;after_read x1 3;"

static void test_quiet_fds_are_the_call_alone (void **state)
{
  for (unsigned near = 0; near < 3; near++) {
    probe_context_count = near == 1;
    probe_context_adapted = near == 2;
    probe_quiet[FD] = PROBE_FD_LOOK;
    moves (WRITE_LOOKED READ_LOOKED);
    probe_quiet[FD] = PROBE_FD_QUIET;
    moves (WRITE_PLAIN READ_PLAIN);
    probe_quiet[FD] = PROBE_FD_SERVER;
    moves (near ? WRITE_PLAIN READ_LOOKED : WRITE_PLAIN READ_PLAIN);
    probe_quiet[FD] = PROBE_FD_CLIENT;
    moves (near ? WRITE_LOOKED READ_PLAIN : WRITE_PLAIN READ_PLAIN);
    probe_quiet[FD] = PROBE_FD_CALLING;
    moves (WRITE_LOOKED READ_LOOKED);
  }
  probe_quiet[FD] = PROBE_FD_LOOK;
  probe_context_count = probe_context_adapted = 0;
}

static int socket_error;
static int fake_getsockopt (int fd, int level, int name, void *value, socklen_t *size)
{
  memcpy (value, &socket_error, sizeof socket_error);
  errno = 7;
  return 0;
}

static void test_outcome_of_a_connect (void **state)
{
  int error;
  socklen_t size = sizeof error;
  probe_context_count = 1;
  connect_answers (-1, EINPROGRESS);
  assert_string_equal (trace, "connect 7;born 7 client;reach 7 115;");
  trace[0] = 0;
  connect_answers (-1, ECONNREFUSED);
  assert_string_equal (trace, "connect 7;refused 7 111;reach 7 111;");
  trace[0] = 0;
  connect_answers (0, 0);
  assert_string_equal (trace, "connect 7;born 7 client;");
  probe_context_count = 0;
  probe_real.getsockopt = fake_getsockopt;
  trace[0] = 0;
  assert_int_equal (probe_hook_getsockopt (FD, SOL_SOCKET, SO_ERROR, &error, &size), 0);
  assert_string_equal (trace, "");
  socket_error = ECONNREFUSED;
  assert_int_equal (probe_hook_getsockopt (FD, SOL_SOCKET, SO_RCVBUF, &error, &size), 0);
  assert_string_equal (trace, "");
  assert_int_equal (probe_hook_getsockopt (FD, SOL_SOCKET, SO_ERROR, &error, &size), 0);
  assert_int_equal (errno, 7);
  assert_string_equal (trace, "told 7 111;");
}

static int lookup_result;
static int fake_getaddrinfo (const char *node, const char *service, const struct addrinfo *hints,
                             struct addrinfo **ret_list)
{
  note ("getaddrinfo;");
  return lookup_result;
}
static struct hostent *fake_gethostbyname (const char *node)
{
  note ("gethostbyname;");
  h_errno = TRY_AGAIN;
  return NULL;
}

static void test_lookups (void **state)
{
  struct addrinfo *list;
  probe_real.getaddrinfo = fake_getaddrinfo;
  probe_real.gethostbyname = fake_gethostbyname;
  trace[0] = 0;
  assert_int_equal (probe_hook_getaddrinfo ("db", NULL, NULL, &list), 0);
  assert_string_equal (trace, "getaddrinfo;");
  probe_context_count = 1;
  assert_int_equal (probe_hook_getaddrinfo ("db", NULL, NULL, &list), 0);
  lookup_result = EAI_AGAIN;
  assert_int_equal (probe_hook_getaddrinfo ("db", NULL, NULL, &list), EAI_AGAIN);
  assert_null (probe_hook_gethostbyname ("db"));
  assert_string_equal (trace, "getaddrinfo;getaddrinfo;looked up;getaddrinfo;looked up in vain;"
                              "gethostbyname;looked up in vain;");
  probe_context_count = 0;
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, begin)
  const struct CMUnitTest tests[] = {
      TEST (test_idle_is_the_call_alone),
      TEST (test_read_around),
      TEST (test_failing_read_keeps_its_errno),
      TEST (test_untracked_read_is_plain),
      TEST (test_peek_leaves_the_stream),
      TEST (test_trunc_and_oob_give_up),
      TEST (test_call_inside_our_own_code_is_plain),
      TEST (test_write_without_insert_is_the_callers_call),
      TEST (test_insert_goes_out_in_one_sendmsg),
      TEST (test_flags_address_and_control_are_kept),
      TEST (test_zerocopy_is_never_inserted_into),
      TEST (test_bad_vectors_are_the_kernels),
      TEST (test_sendfile_is_opaque),
      TEST (test_rest_of_an_insert_comes_first),
      TEST (test_passed_fds_have_two_names),
      TEST (test_connect),
      TEST (test_accept),
      TEST (test_close_is_told_before),
      TEST (test_close_in_a_vfork_child_is_plain),
      TEST (test_dup_family),
      TEST (test_close_range),
      TEST (test_waiting_for_one_is_no_event_loop),
      TEST (test_waiting_in_vain),
      TEST (test_waiting_for_several_is),
      TEST (test_fortified_read),
      TEST (test_quiet_fds_are_the_call_alone),
      TEST (test_outcome_of_a_connect),
      TEST (test_lookups),
      TEST (test_resolve),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
