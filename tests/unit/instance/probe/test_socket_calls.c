/* SPDX-License-Identifier: Apache-2.0 */
/* socket_calls: the hooks over a fake kernel, with recorders in place of
 * connection and context. `trace` holds what happened, in order. */
#include "call_recorders.h"

#include "../../../../instance/probe/socket_hooks.h"

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
  assert_string_equal (trace, "accept4 7;born 40 server;event_loop;accept4 7;");
}

/* By a signal handler, which leaves us inside as it found us. */
static void test_accept_inside_our_own_code_is_plain (void **state)
{
  probe_context_count = 1;
  probe_inside = 1;
  kernel_result = 40;
  assert_int_equal (probe_hook_accept4 (FD, NULL, NULL, 0), 40);
  assert_int_equal (probe_inside, 1);
  assert_string_equal (trace, "accept4 7;");
  probe_inside = 0;
  probe_context_count = 0;
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
      TEST (test_accept_inside_our_own_code_is_plain),
      TEST (test_close_is_told_before),
      TEST (test_close_in_a_vfork_child_is_plain),
      TEST (test_dup_family),
      TEST (test_close_range),
      TEST (test_waiting_for_one_is_no_event_loop),
      TEST (test_waiting_in_vain),
      TEST (test_waiting_for_several_is),
      TEST (test_fortified_read),
      TEST (test_resolve),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
