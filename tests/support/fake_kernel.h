/* SPDX-License-Identifier: Apache-2.0 */
/* fake_kernel: sockets that exist only in a test, below the probe's connection
 * functions, and the words of the probe's state. Everything is static: each test
 * binary includes it once.
 *
 * A call goes as a hook would do it: before, the system call (here), after. The
 * kernel takes at most `accept` bytes a call, or fails with `error`. */
#ifndef TESTS_FAKE_KERNEL_H
#define TESTS_FAKE_KERNEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../instance/probe/connection.h"
#include "../../instance/probe/context.h"
#include "../../instance/probe/proof.h"
#include "../../instance/probe/record.h"
#include "../../instance/probe/socket_calls.h"
#include "../../instance/probe/state.h"
#include "../../instance/shm/writer.h"

/* Not every test uses all of it. */
#define FAKE static __attribute__ ((unused))

#define FAKE_FDS    64
#define FAKE_STREAM (4u << 20)
#define FAKE_REPORT 4096

/* ---- the probe's state -------------------------------------------------- */
uint32_t probe_actions;
static probe_config_t fake_config;
probe_config_t *probe_config = &fake_config;
static _Alignas(4096) char fake_memory[SHM_RINGS_AT];
void *probe_shm = fake_memory;
probe_calls_t probe_real;
static _Thread_local weft_ids_t fake_ids; /* of each thread, as in a VM */
static uint32_t fake_tid = 100;

uint32_t probe_tid (void)
{
  return fake_tid;
}
weft_ids_t *probe_ids (void)
{
  if (!fake_ids.s[0])
    weft_ids_seed (&fake_ids);
  return &fake_ids;
}

/* ---- reports ------------------------------------------------------------ */
typedef struct {
  weft_report_t report;
  char name[WEFT_NAME_MAX + 1];
} fake_report_t;
static fake_report_t fake_reports[FAKE_REPORT];
static unsigned fake_report_count;

int shm_write (void *base, uint32_t tid, const weft_report_t *report)
{
  assert_ptr_equal (base, probe_shm);
  unsigned n = __atomic_fetch_add (&fake_report_count, 1, __ATOMIC_RELAXED);
  if (n >= FAKE_REPORT)
    return 0;
  fake_report_t *to = &fake_reports[n];
  to->report = *report;
  memcpy (to->name, report->name, report->name_size);
  to->name[report->name_size] = 0;
  return 1;
}

FAKE uint64_t fake_counter (shm_counter_t counter)
{
  /* What connections keep back shows at their end only. */
  for (uint32_t i = 0; i < PROBE_CONNECTIONS_MAX; i++)
    if (probe_pool[i].fd >= 0 && probe_pool[i].requests)
      probe_count_bytes (&probe_pool[i]);
  return shm_status (probe_shm)->counter[counter];
}

/* ---- sockets ------------------------------------------------------------ */
typedef struct {
  probe_socket_t kind;
  int family; /* of weft_address_t */
  uint8_t peer_ip[4];
  uint16_t local_port, peer_port; /* 0: 10000 and the fd, 80 */
  char *sent;                     /* what the peer received */
  size_t sent_size;
  const char *to_read; /* what it will send */
  size_t to_read_size;
  uint64_t written, read; /* kernel's counts */
  size_t accept;          /* most bytes of one call, 0: all */
  int error;              /* of the next write, once */
  int nonblocking, not_a_socket;
  int outcome; /* of a connect that nobody heard of again */
  unsigned proofs, describes;
  void (*during_write) (int fd); /* runs when the bytes have left, before after_write */
} fake_socket_t;
static fake_socket_t fake[FAKE_FDS];

static probe_socket_t fake_describe (int fd, weft_address_t *ret_local, weft_address_t *ret_peer)
{
  static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
  fake[fd].describes++;
  if (fake[fd].kind != PROBE_SOCKET_STREAM)
    return fake[fd].kind;
  memset (ret_local, 0, sizeof *ret_local);
  memset (ret_peer, 0, sizeof *ret_peer);
  ret_local->family = ret_peer->family = (uint8_t) fake[fd].family;
  ret_local->port = fake[fd].local_port ? fake[fd].local_port : (uint16_t) (10000 + fd);
  ret_peer->port = fake[fd].peer_port ? fake[fd].peer_port : 80;
  memcpy (ret_local->ip, mapped, 12);
  memcpy (ret_peer->ip, mapped, 12);
  memcpy (ret_local->ip + 12, (uint8_t[]){127, 0, 0, 1}, 4);
  memcpy (ret_peer->ip + 12, fake[fd].peer_ip, 4);
  return PROBE_SOCKET_STREAM;
}

static int fake_counts (int fd, probe_counts_t *ret_counts)
{
  fake[fd].proofs++;
  if (fake[fd].not_a_socket)
    return -1;
  ret_counts->written = fake[fd].written;
  ret_counts->read = fake[fd].read;
  ret_counts->unread = fake[fd].to_read_size;
  return 0;
}

static int fake_nonblocking (int fd)
{
  return fake[fd].nonblocking;
}

static int fake_outcome (int fd)
{
  return fake[fd].outcome;
}

static ssize_t fake_take (int fd, const struct iovec *iov, size_t count)
{
  fake_socket_t *socket = &fake[fd];
  size_t left = socket->accept ? socket->accept : SIZE_MAX, done = 0;
  if (socket->error) {
    errno = socket->error;
    socket->error = 0;
    return -1;
  }
  for (size_t i = 0; i < count && left; i++) {
    size_t size = iov[i].iov_len < left ? iov[i].iov_len : left;
    assert_true (socket->sent_size + size <= FAKE_STREAM);
    if (size)
      memcpy (socket->sent + socket->sent_size, iov[i].iov_base, size);
    socket->sent_size += size;
    left -= size;
    done += size;
  }
  socket->written += done;
  if (socket->during_write)
    socket->during_write (fd);
  return (ssize_t) done;
}

static ssize_t fake_sendmsg (int fd, const struct msghdr *message, int flags)
{
  if (fake[fd].not_a_socket) {
    errno = ENOTSOCK;
    return -1;
  }
  return fake_take (fd, message->msg_iov, message->msg_iovlen);
}
static ssize_t fake_writev (int fd, const struct iovec *iov, int count)
{
  return fake_take (fd, iov, (size_t) count);
}
static ssize_t fake_send (int fd, const void *data, size_t size, int flags)
{
  struct iovec iov = {(void *) (uintptr_t) data, size};
  return fake_take (fd, &iov, 1);
}

/* ---- the calls of an application ----------------------------------------- */
static ssize_t app_writev (int fd, const struct iovec *iov, int count)
{
  probe_room_t room;
  probe_write_t write = {.room = &room};
  errno = 4711;
  int tracked = probe_connection_before_write (fd, iov, count, 0, &write);
  assert_int_equal (errno, 4711);
  if (!tracked)
    return fake_writev (fd, iov, count);
  struct msghdr message = {.msg_iov = write.room->iov, .msg_iovlen = (size_t) write.iov_count};
  ssize_t result = write.insert ? fake_sendmsg (fd, &message, 0) : fake_writev (fd, iov, count);
  return probe_connection_after_write (fd, &write, result);
}

static ssize_t app_write (int fd, const void *data, size_t size)
{
  // A copy of exactly this size: a sanitizer sees every byte too many.
  char *copy = malloc (size ? size : 1);
  assert_non_null (copy);
  memcpy (copy, data, size);
  struct iovec iov = {copy, size};
  ssize_t result = app_writev (fd, &iov, 1);
  int saved = errno;
  assert_memory_equal (copy, data, size);
  free (copy);
  errno = saved;
  return result;
}

/* Until everything has left, as an application does. */
FAKE void app_write_all (int fd, const char *data, size_t size)
{
  for (unsigned stuck = 0; size;) {
    ssize_t result = app_write (fd, data, size);
    if (result < 0) {
      assert_int_equal (errno, EAGAIN);
      assert_true (++stuck < 1000);
      continue;
    }
    assert_true (result > 0 && (size_t) result <= size);
    data += result;
    size -= (size_t) result;
  }
}
FAKE void app_say (int fd, const char *text)
{
  app_write_all (fd, text, strlen (text));
}

static ssize_t app_read (int fd, void *data, size_t size)
{
  fake_socket_t *socket = &fake[fd];
  probe_read_t read;
  int tracked = probe_connection_before_read (fd, &read);
  size_t got = socket->to_read_size < size ? socket->to_read_size : size;
  if (got)
    memcpy (data, socket->to_read, got);
  socket->to_read += got;
  socket->to_read_size -= got;
  socket->read += got;
  struct iovec iov = {data, size};
  if (tracked)
    probe_connection_after_read (fd, &read, &iov, 1, (ssize_t) got);
  return (ssize_t) got;
}

static void peer_bytes (int fd, const char *data, size_t size)
{
  fake[fd].to_read = data;
  fake[fd].to_read_size = size;
}
/* The peer sends `text`; the application reads it in pieces of `piece` bytes. */
FAKE void app_hear_by (int fd, const char *text, size_t piece)
{
  peer_bytes (fd, text, strlen (text));
  while (fake[fd].to_read_size) {
    size_t size = piece < fake[fd].to_read_size ? piece : fake[fd].to_read_size;
    char *buffer = malloc (size);
    assert_non_null (buffer);
    app_read (fd, buffer, size);
    free (buffer);
  }
}
FAKE void app_hear (int fd, const char *text)
{
  app_hear_by (fd, text, SIZE_MAX);
}
FAKE void app_end_of_stream (int fd)
{
  char byte;
  peer_bytes (fd, NULL, 0);
  assert_int_equal (app_read (fd, &byte, 1), 0);
}

/* A fresh socket at fd, with what an earlier one sent forgotten. */
static void fake_socket (int fd)
{
  char *sent = fake[fd].sent ? fake[fd].sent : malloc (FAKE_STREAM);
  assert_non_null (sent);
  fake[fd] =
      (fake_socket_t){.kind = PROBE_SOCKET_STREAM, .family = 4, .peer_ip = {127, 0, 0, 1}, .sent = sent};
}
FAKE void fake_connect (int fd)
{
  fake_socket (fd);
  fake[fd].written = 1; /* the SYN */
  probe_connection_born (fd, PROBE_ROLE_CLIENT);
}
FAKE void fake_accept (int fd)
{
  fake_socket (fd);
  probe_connection_born (fd, PROBE_ROLE_SERVER);
}

FAKE void fake_rule (uint32_t instruction, const char *match)
{
  shm_rule_t *rule = &fake_config.rules[fake_config.rule_count++];
  *rule = (shm_rule_t){.instruction = instruction, .sample_num = 1, .sample_den = 1};
  snprintf (rule->match, sizeof rule->match, "%s", match);
}

FAKE int fake_setup (void **state)
{
  probe_kernel = (probe_kernel_t){fake_describe, fake_counts, fake_nonblocking, fake_outcome};
  probe_real.sendmsg = fake_sendmsg;
  probe_real.writev = fake_writev;
  probe_real.send = fake_send;
  probe_actions = 0;
  probe_connections_flush ();
  probe_context_reset ();
  probe_context_use (NULL);
  memset (fake_memory, 0, sizeof fake_memory);
  memset (&fake_config, 0, sizeof fake_config);
  fake_config.serial = 1;
  fake_report_count = 0;
  fake_tid = 100;
  probe_actions = WEFT_ACTION_ROOT | WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE;
  return 0;
}

FAKE int fake_teardown (void **state)
{
  for (int fd = 0; fd < FAKE_FDS; fd++) {
    free (fake[fd].sent);
    fake[fd].sent = NULL;
  }
  return 0;
}

/* ---- looking at what the peer received ----------------------------------- */
/* Cuts one line that begins with `field` out of what was sent at fd; returns
 * its value, "" if there is none. *ret_at: where it stood. */
FAKE const char *cut_line (int fd, const char *field, size_t *ret_at)
{
  static char value[256];
  char *end = fake[fd].sent + fake[fd].sent_size;
  size_t field_size = strlen (field);
  for (char *at = fake[fd].sent; at + field_size < end; at++) {
    if (memcmp (at, field, field_size) != 0 || (at > fake[fd].sent && at[-1] != '\n'))
      continue;
    char *stop = memchr (at, '\n', (size_t) (end - at));
    assert_non_null (stop);
    assert_true (stop[-1] == '\r');
    snprintf (value, sizeof value, "%.*s", (int) (stop - 1 - at - (ptrdiff_t) field_size), at + field_size);
    memmove (at, stop + 1, (size_t) (end - stop - 1));
    fake[fd].sent_size -= (size_t) (stop + 1 - at);
    *ret_at = (size_t) (at - fake[fd].sent);
    return value;
  }
  *ret_at = 0;
  return "";
}
FAKE void assert_sent (int fd, const char *text, size_t size)
{
  assert_int_equal (fake[fd].sent_size, size);
  assert_memory_equal (fake[fd].sent, text, size);
}

#endif
