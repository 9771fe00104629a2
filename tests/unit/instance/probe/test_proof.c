/* SPDX-License-Identifier: Apache-2.0 */
/* proof: what the real kernel counts on real sockets, over loopback. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../support/fake_kernel.h"

static probe_kernel_t real;

static int keep_real (void **state)
{
  real = probe_kernel;
  return 0;
}

/* *ret_server is accepted, the return value is the client's end. */
static int pair (int family, int *ret_server)
{
  union {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
  } address;
  memset (&address, 0, sizeof address);
  address.any.sa_family = (sa_family_t) family;
  if (family == AF_INET)
    address.in.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
  else
    address.in6.sin6_addr = (struct in6_addr) IN6ADDR_LOOPBACK_INIT;
  socklen_t size = family == AF_INET ? sizeof address.in : sizeof address.in6;
  int listener = socket (family, SOCK_STREAM, 0);
  if (listener < 0 || bind (listener, &address.any, size) != 0)
    return -1;
  assert_int_equal (listen (listener, 1), 0);
  assert_int_equal (getsockname (listener, &address.any, &size), 0);
  int client = socket (family, SOCK_STREAM, 0);
  weft_address_t local, peer;
  assert_int_equal (real.describe (client, &local, &peer), PROBE_SOCKET_UNCONNECTED);
  assert_int_equal (connect (client, &address.any, size), 0);
  *ret_server = accept (listener, NULL, NULL);
  assert_true (*ret_server >= 0);
  close (listener);
  return client;
}

static void assert_counts (int fd, uint64_t written, uint64_t read, uint64_t unread)
{
  probe_counts_t counts;
  assert_int_equal (real.counts (fd, &counts), 0);
  assert_int_equal (counts.written, written);
  assert_int_equal (counts.read, read);
  assert_int_equal (counts.unread, unread);
}

static void test_counts (void **state)
{
  static char bulk[1 << 20];
  char buffer[256];
  int server = -1, client = pair (AF_INET, &server);
  // The SYN counts on the side that connected.
  assert_counts (client, 1, 0, 0);
  assert_counts (server, 0, 0, 0);
  assert_int_equal (write (client, bulk, 100), 100);
  assert_counts (client, 101, 0, 0);
  assert_int_equal (recv (server, buffer, 100, MSG_PEEK), 100);
  assert_counts (server, 0, 0, 100);
  assert_int_equal (read (server, buffer, 30), 30);
  assert_counts (server, 0, 30, 70);
  assert_int_equal (write (server, bulk, 7), 7);
  assert_counts (server, 7, 30, 70);
  assert_int_equal (read (client, buffer, 7), 7);
  assert_counts (client, 101, 7, 0);
  // Queued counts as written, whether it has left or not.
  assert_int_equal (fcntl (client, F_SETFL, O_NONBLOCK), 0);
  uint64_t written = 101;
  for (ssize_t n; (n = write (client, bulk, sizeof bulk)) > 0; written += (uint64_t) n)
    ;
  assert_true (written > 102);
  assert_counts (client, written, 7, 0);
  assert_int_equal (real.nonblocking (client), 1);
  assert_int_equal (real.nonblocking (server), 0);
  close (client);
  close (server);
}

static void test_describe (void **state)
{
  weft_address_t local, peer, mirrored_local, mirrored_peer;
  for (int i = 0; i < 2; i++) {
    int server, client = pair (i ? AF_INET6 : AF_INET, &server);
    if (client < 0)
      continue; // no IPv6 here
    assert_int_equal (real.describe (client, &local, &peer), PROBE_SOCKET_STREAM);
    assert_int_equal (real.describe (server, &mirrored_local, &mirrored_peer), PROBE_SOCKET_STREAM);
    assert_memory_equal (&local, &mirrored_peer, sizeof local);
    assert_memory_equal (&peer, &mirrored_local, sizeof peer);
    assert_int_equal (local.family, i ? 6 : 4);
    assert_true (probe_address_private (&peer));
    close (client);
    close (server);
  }
  int unix_pair[2], file = open ("/dev/null", O_RDWR), datagram = socket (AF_INET, SOCK_DGRAM, 0);
  assert_int_equal (socketpair (AF_UNIX, SOCK_STREAM, 0, unix_pair), 0);
  assert_int_equal (real.describe (unix_pair[0], &local, &peer), PROBE_SOCKET_STREAM);
  assert_int_equal (peer.family, 1);
  assert_int_equal (real.describe (file, &local, &peer), PROBE_SOCKET_NONE);
  assert_int_equal (real.describe (datagram, &local, &peer), PROBE_SOCKET_NONE);
  assert_int_equal (real.describe (-1, &local, &peer), PROBE_SOCKET_NONE);
  probe_counts_t counts;
  assert_true (real.counts (file, &counts) < 0);
  assert_true (real.counts (unix_pair[0], &counts) < 0);
  close (unix_pair[0]);
  close (unix_pair[1]);
  close (file);
  close (datagram);
}

/* A whole request between two sockets of this process, both sides followed. */
static void test_both_sides (void **state)
{
  static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
  char buffer[512];
  probe_room_t room;
  probe_write_t out = {.room = &room};
  probe_read_t in;
  fake_rule (1, "");
  probe_kernel = real;
  int server = -1, client = pair (AF_INET, &server);
  probe_connection_born (client, PROBE_ROLE_CLIENT);
  probe_connection_born (server, PROBE_ROLE_SERVER);
  for (int i = 0; i < 70; i++) {
    struct iovec iov = {(void *) (uintptr_t) request, sizeof request - 1};
    assert_int_equal (probe_connection_before_write (client, &iov, 1, 0, &out), 1);
    assert_int_equal (out.insert, 1);
    struct msghdr message = {.msg_iov = out.room->iov, .msg_iovlen = (size_t) out.iov_count};
    ssize_t n = sendmsg (client, &message, 0);
    assert_int_equal (probe_connection_after_write (client, &out, n), sizeof request - 1);
    iov = (struct iovec){buffer, sizeof buffer};
    assert_int_equal (probe_connection_before_read (server, &in), 1);
    probe_connection_after_read (server, &in, &iov, 1, read (server, buffer, sizeof buffer));
    iov = (struct iovec){(void *) (uintptr_t) answer, sizeof answer - 1};
    assert_int_equal (probe_connection_before_write (server, &iov, 1, 0, &out), 1);
    assert_int_equal (out.insert, 0);
    assert_int_equal (probe_connection_after_write (server, &out, write (server, answer, sizeof answer - 1)),
                      sizeof answer - 1);
    iov = (struct iovec){buffer, sizeof buffer};
    assert_int_equal (probe_connection_before_read (client, &in), 1);
    probe_connection_after_read (client, &in, &iov, 1, read (client, buffer, sizeof buffer));
  }
  assert_int_equal (fake_report_count, 140);
  for (unsigned i = 0; i < fake_report_count; i += 2) {
    const weft_report_t *capture = &fake_reports[i].report, *embed = &fake_reports[i + 1].report;
    assert_int_equal (capture->kind, WEFT_REPORT_CAPTURE);
    assert_int_equal (embed->kind, WEFT_REPORT_EMBED);
    assert_memory_equal (capture->task, embed->task, 16);
    assert_true (capture->request == embed->request);
    assert_true (embed->start_ns <= capture->start_ns && capture->end_ns <= embed->end_ns);
    assert_memory_equal (&capture->local, &embed->peer, sizeof capture->local);
    assert_memory_equal (&capture->peer, &embed->local, sizeof capture->local);
  }
  // Bytes past the probe: the next proof finds them, before anything else is inserted.
  assert_int_equal (write (client, "x", 1), 1);
  uint64_t embedded = fake_counter (SHM_COUNT_EMBEDDED);
  for (int i = 0; i < PROBE_PROOF_EVERY && !fake_counter (SHM_COUNT_GIVEN_UP_PROOF); i++) {
    struct iovec iov = {(void *) (uintptr_t) request, sizeof request - 1};
    probe_connection_before_write (client, &iov, 1, 0, &out);
    struct msghdr message = {.msg_iov = out.insert ? out.room->iov : &iov,
                             .msg_iovlen = (size_t) (out.insert ? out.iov_count : 1)};
    probe_connection_after_write (client, &out, sendmsg (client, &message, 0));
    iov = (struct iovec){(void *) (uintptr_t) answer, sizeof answer - 1};
    assert_int_equal (write (server, answer, sizeof answer - 1), sizeof answer - 1);
    iov = (struct iovec){buffer, sizeof buffer};
    probe_connection_before_read (client, &in);
    probe_connection_after_read (client, &in, &iov, 1, read (client, buffer, sizeof buffer));
  }
  assert_int_equal (fake_counter (SHM_COUNT_GIVEN_UP_PROOF), 1);
  assert_true (fake_counter (SHM_COUNT_EMBEDDED) - embedded < PROBE_PROOF_EVERY);
  close (client);
  close (server);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup (name, fake_setup)
  const struct CMUnitTest tests[] = {TEST (test_counts), TEST (test_describe), TEST (test_both_sides)};
  return cmocka_run_group_tests (tests, keep_real, fake_teardown);
}
