/* SPDX-License-Identifier: Apache-2.0 */
/* What the hooks cost inside a VM: idle, active on bytes that start no request,
 * and a whole request with its response, each beside the bare call. The kernel
 * below is a fake that only counts, so the differences are ours alone. */
#include <time.h>

#include "../../instance/probe/connection.h"
#include "../../instance/probe/context.h"
#include "../../instance/probe/opaque.h"
#include "../../instance/probe/proof.h"
#include "../../instance/probe/socket_calls.h"
#include "../../instance/probe/state.h"
#include "../../instance/shm/writer.h"
#define BENCH_CLOCK CLOCK_THREAD_CPUTIME_ID /* what a neighbour takes is none of ours */
#include "bench.h"

#define CALLS       20000000u
#define EXCHANGES   1000000u
#define DRAIN_EVERY 64u
#define IDLE_FD     10
#define BODY_FD     11
#define OTHER_FD    12
#define FILE_FD     13
#define CLIENT_FD   14
#define SERVER_FD   15
#define BODY_BYTES  8192u
#define ANSWER_FD   16
#define FOREIGN_FD  17
#define UNIX_FD     18
#define FD_LIMIT    32

static const char request[] = "POST /orders/checkout?cart=8812 HTTP/1.1\r\nHost: orders.internal:8080\r\n"
                              "User-Agent: python-requests/2.28.1\r\nAccept-Encoding: gzip, deflate\r\n"
                              "Accept: */*\r\nConnection: keep-alive\r\nContent-Type: application/json\r\n"
                              "Content-Length: 25\r\n\r\n{\"cart\":8812,\"items\":[1]}";
static const char marked[] = "POST /orders/checkout?cart=8812 HTTP/1.1\r\nHost: orders.internal:8080\r\n"
                             "User-Agent: python-requests/2.28.1\r\nAccept-Encoding: gzip, deflate\r\n"
                             "Accept: */*\r\nConnection: keep-alive\r\nContent-Type: application/json\r\n"
                             "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
                             "Content-Length: 25\r\n\r\n{\"cart\":8812,\"items\":[1]}";
static const char response[] =
    "HTTP/1.1 200 OK\r\nDate: Sun, 29 Nov 2026 12:00:00 GMT\r\n"
    "Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"total\":\"12.5\"}";
static const char long_answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 900000000000000\r\n\r\n";
static char body[BODY_BYTES];

/* ---- the fake kernel ------------------------------------------------------ */
static uint64_t written[FD_LIMIT], read_bytes[FD_LIMIT];

static ssize_t fake_send (int fd, const void *data, size_t size, int flags)
{
  written[fd] += size;
  return (ssize_t) size;
}

static ssize_t fake_sendmsg (int fd, const struct msghdr *message, int flags)
{
  size_t size = 0;
  for (size_t i = 0; i < message->msg_iovlen; i++)
    size += message->msg_iov[i].iov_len;
  written[fd] += size;
  return (ssize_t) size;
}

static ssize_t fake_recv (int fd, void *data, size_t size, int flags)
{
  read_bytes[fd] += size;
  return (ssize_t) size;
}

static int fake_accept4 (int fd, struct sockaddr *address, socklen_t *size, int flags)
{
  return fd;
}
static int fake_connect (int fd, const struct sockaddr *address, socklen_t size)
{
  return 0;
}

static probe_socket_t fake_describe (int fd, weft_address_t *ret_local, weft_address_t *ret_peer)
{
  static const weft_address_t loopback = {
      .ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}, .port = 8080, .family = 4};
  *ret_local = *ret_peer = loopback;
  if (fd == UNIX_FD)
    *ret_local = *ret_peer = (weft_address_t){.family = 1};
  return fd == FILE_FD ? PROBE_SOCKET_NONE : PROBE_SOCKET_STREAM;
}

static int fake_counts (int fd, probe_counts_t *ret_counts)
{
  /* Who connected has a SYN counted, too. */
  *ret_counts = (probe_counts_t){
      .written = written[fd] + (fd == CLIENT_FD || fd == OTHER_FD || fd == ANSWER_FD || fd == UNIX_FD),
      .read = read_bytes[fd]};
  return 0;
}

static int fake_outcome (int fd)
{
  return 0;
}

static int fake_nonblocking (int fd)
{
  return 0;
}

/* ---- subjects and yardsticks ---------------------------------------------- */
BENCH_SUBJECT (idle_hook, probe_hook_recv (IDLE_FD, body, BODY_BYTES, 0))
BENCH_SUBJECT (bare_recv, probe_real.recv (IDLE_FD, body, BODY_BYTES, 0))
BENCH_SUBJECT (body_hook, probe_hook_send (BODY_FD, body, BODY_BYTES, 0))
BENCH_SUBJECT (bare_send, probe_real.send (BODY_FD, body, BODY_BYTES, 0))
BENCH_SUBJECT (answer_hook, probe_hook_recv (ANSWER_FD, body, BODY_BYTES, 0))
BENCH_SUBJECT (other_hook, probe_hook_send (OTHER_FD, body, BODY_BYTES, 0))
BENCH_SUBJECT (other_read_hook, probe_hook_recv (OTHER_FD, body, BODY_BYTES, 0))
BENCH_SUBJECT (foreign_hook, probe_hook_send (FOREIGN_FD, body, BODY_BYTES, 0))
BENCH_SUBJECT (foreign_read_hook, probe_hook_recv (FOREIGN_FD, body, BODY_BYTES, 0))
BENCH_SUBJECT (unix_hook, probe_hook_send (UNIX_FD, body, BODY_BYTES, 0))
BENCH_SUBJECT (file_hook, probe_hook_send (FILE_FD, body, BODY_BYTES, 0))

static uint64_t events;

static void empty_rings (void)
{
  for (unsigned r = 0; r < SHM_RINGS; r++) {
    shm_ring_t *ring = shm_ring (probe_shm, r);
    __atomic_store_n (&ring->tail, ring->head, __ATOMIC_RELEASE);
  }
}

static void client_hooks (uint64_t n)
{
  for (uint64_t i = 0; i < n; i++) {
    probe_hook_send (CLIENT_FD, request, sizeof request - 1, 0);
    probe_hook_recv (CLIENT_FD, (void *) (uintptr_t) response, sizeof response - 1, 0);
    if (++events % DRAIN_EVERY == 0)
      empty_rings ();
  }
}

/* A query and its answer on a connection that is not spoken, in a known subtask. */
static void opaque_hooks (uint64_t n)
{
  for (uint64_t i = 0; i < n; i++) {
    BENCH_KEEP (probe_hook_send (OTHER_FD, body, BODY_BYTES, 0));
    BENCH_KEEP (probe_hook_recv (OTHER_FD, body, BODY_BYTES, 0));
    events++;
  }
}

static void opaque_bare (uint64_t n)
{
  for (uint64_t i = 0; i < n; i++) {
    BENCH_KEEP (probe_real.send (IDLE_FD, body, BODY_BYTES, 0));
    BENCH_KEEP (probe_real.recv (IDLE_FD, body, BODY_BYTES, 0));
  }
}

static void client_bare (uint64_t n)
{
  for (uint64_t i = 0; i < n; i++) {
    probe_real.send (IDLE_FD, request, sizeof request - 1, 0);
    probe_real.recv (IDLE_FD, (void *) (uintptr_t) response, sizeof response - 1, 0);
  }
}

static void server_hooks (uint64_t n)
{
  for (uint64_t i = 0; i < n; i++) {
    probe_hook_recv (SERVER_FD, (void *) (uintptr_t) marked, sizeof marked - 1, 0);
    probe_hook_send (SERVER_FD, response, sizeof response - 1, 0);
    if (++events % DRAIN_EVERY == 0)
      empty_rings ();
  }
}

/* What a captured request costs in any case: two readings of the thread's CPU clock. */
static void server_bare (uint64_t n)
{
  struct timespec t;
  for (uint64_t i = 0; i < n; i++) {
    probe_real.recv (IDLE_FD, (void *) (uintptr_t) marked, sizeof marked - 1, 0);
    clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
    BENCH_KEEP (t.tv_nsec);
    probe_real.send (IDLE_FD, response, sizeof response - 1, 0);
    clock_gettime (CLOCK_THREAD_CPUTIME_ID, &t);
    BENCH_KEEP (t.tv_nsec);
  }
}

/* ---- set up ---------------------------------------------------------------- */
static uint64_t counter (shm_counter_t which)
{
  return shm_status (probe_shm)->counter[which];
}

static void begin (void)
{
  static probe_config_t config = {.serial = 1,
                                  .actions = WEFT_ACTION_ROOT | WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE};
  int fd;
  if (shm_create (NULL, "bench", "0", 0, &probe_shm, &fd)) {
    puts ("hooks: no shared memory: FAIL");
    exit (1);
  }
  probe_real.send = fake_send;
  probe_real.sendmsg = fake_sendmsg;
  probe_real.recv = fake_recv;
  probe_real.accept4 = fake_accept4;
  probe_real.connect = fake_connect;
  probe_kernel = (probe_kernel_t){fake_describe, fake_counts, fake_nonblocking, fake_outcome};
  probe_config = &config;
  probe_leases_begin ();
}

/* Connections that are not HTTP, one of each role and a unix socket. */
static void foreign_connections (void)
{
  probe_hook_connect (OTHER_FD, NULL, 0);
  memset (body, 0x16, sizeof body);
  probe_hook_send (OTHER_FD, body, sizeof body, 0);
  probe_hook_accept4 (FOREIGN_FD, NULL, NULL, 0);
  probe_hook_recv (FOREIGN_FD, body, sizeof body, 0);
  probe_hook_connect (UNIX_FD, NULL, 0);
  probe_hook_send (UNIX_FD, body, sizeof body, 0);
}

/* A server and a client in the middle of long answers. The server's subtask stays open. */
static void connections (void)
{
  /* Both while nothing is open: afterwards this thread would be a loop (X3). */
  probe_hook_accept4 (BODY_FD, NULL, NULL, 0);
  probe_hook_accept4 (SERVER_FD, NULL, NULL, 0);
  probe_hook_recv (BODY_FD, (void *) (uintptr_t) marked, sizeof marked - 1, 0);
  probe_hook_send (BODY_FD, long_answer, sizeof long_answer - 1, 0);
  probe_hook_connect (ANSWER_FD, NULL, 0);
  probe_hook_send (ANSWER_FD, request, sizeof request - 1, 0);
  probe_hook_recv (ANSWER_FD, (void *) (uintptr_t) long_answer, sizeof long_answer - 1, 0);
  probe_hook_connect (CLIENT_FD, NULL, 0);
}

static void pair_row (const char *what, bench_fn *subject, bench_fn *yardstick, uint64_t n, double must)
{
  bench_pair_t aa = bench_pair (yardstick, yardstick, n);
  bench_pair_t pair = bench_pair (subject, yardstick, n);
  char beside[96];
  snprintf (beside, sizeof beside, "%.1f ns, bare %.1f ns, median %.1f, A/A %+.2f ns", pair.subject,
            pair.yardstick, pair.usual, aa.difference);
  bench_row (what, pair.difference, "ns", 1, must, beside);
}

/* The report that its end writes says how many calls there were: the first event of its ring. */
static void opaque_rows (probe_handle_t handle)
{
  uint64_t before = events;
  pair_row ("opaque call in a known subtask, both hooks", opaque_hooks, opaque_bare, EXCHANGES, 200);
  probe_context_close (handle);
  probe_opaque_finish (handle, 0);
  uint64_t calls = 0;
  for (unsigned r = 0; r < SHM_RINGS; r++) {
    const shm_event_t *event = (const shm_event_t *) (const void *) shm_ring_data (probe_shm, r);
    if (event->kind == WEFT_REPORT_OPAQUE) {
      weft_opaque_t all;
      memcpy (&all, (const char *) event + SHM_EVENT_NAME_AT, sizeof all);
      calls += all.calls;
    }
  }
  bench_equal ("opaque calls told", calls, events - before);
  empty_rings ();
}

int main (void)
{
  begin ();
  __atomic_store_n (&probe_actions, 0, __ATOMIC_RELAXED);
  pair_row ("idle hook over the bare call", idle_hook, bare_recv, CALLS, 3);
  __atomic_store_n (&probe_actions, probe_config->actions, __ATOMIC_RELAXED);
  uint8_t task[WEFT_TASK_ID_SIZE] = {1};
  foreign_connections ();
  probe_context_close (probe_context_open (task, 7)); /* it answers by itself, as well as accepting (X3) */
  pair_row ("active hook, client given up, write", other_hook, bare_send, CALLS, 3);
  pair_row ("active hook, client given up, read", other_read_hook, bare_recv, CALLS, 3);
  pair_row ("active hook, server given up, write", foreign_hook, bare_send, CALLS, 3);
  pair_row ("active hook, server given up, read", foreign_read_hook, bare_recv, CALLS, 3);
  pair_row ("active hook, unix socket given up, write", unix_hook, bare_send, CALLS, 12);
  probe_handle_t handle = probe_context_open (task, 7);
  opaque_rows (handle);

  connections ();
  pair_row ("active hook, body write, tracked connection", body_hook, bare_send, CALLS, 12);
  pair_row ("active hook, body read, tracked connection", answer_hook, bare_recv, CALLS, 12);
  pair_row ("active hook, no socket", file_hook, bare_send, CALLS, 12);

  handle = probe_context_open (task, 7);
  uint64_t before = events, embedded = counter (SHM_COUNT_EMBEDDED);
  pair_row ("client: request and response in the VM", client_hooks, client_bare, EXCHANGES, 500);
  bench_equal ("requests marked", counter (SHM_COUNT_EMBEDDED) - embedded, events - before);
  probe_context_close (handle);

  before = events;
  uint64_t captured = counter (SHM_COUNT_CAPTURED);
  pair_row ("server: the same, beside two CPU clock readings", server_hooks, server_bare, EXCHANGES, 500);
  bench_equal ("requests captured", counter (SHM_COUNT_CAPTURED) - captured, events - before);
  bench_equal ("events lost",
               shm_status (probe_shm)->lost[WEFT_LOSS_RING_FULL] +
                   shm_status (probe_shm)->lost[WEFT_LOSS_RING_BUSY],
               0);
  bench_equal ("connections given up (three on purpose)",
               counter (SHM_COUNT_GIVEN_UP_OTHER) + counter (SHM_COUNT_GIVEN_UP_PROOF) +
                   counter (SHM_COUNT_GIVEN_UP_FRAMING),
               3);
  return bench_failed;
}
