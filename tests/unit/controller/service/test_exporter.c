/* SPDX-License-Identifier: Apache-2.0 */
/* A collector that is there, busy, silent or gone: every span that was put is in the end sent,
 * rejected or given up (X3), and nobody waits (X1). */
#include "../view/golden.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../../common/clocks.h"
#include "../../../../common/limits.h"
#include "../../../../controller/service/exporter.h"

#define SPANS 22u /* of golden_shop */

typedef struct {
  int fd, port;
  pthread_t thread;
  _Atomic int messages, silent; /* silent: says nothing until it is 0 again */
  const char *answers[8];       /* in turn; then 200 */
} server_t;

static void answer (server_t *self, int fd)
{
  static const char taken[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  static _Thread_local char head[4096];
  size_t size = 0, left = 0;
  char *end = NULL;
  while (!end && size < sizeof head - 1) {
    ssize_t got = read (fd, head + size, sizeof head - 1 - size);
    if (got <= 0)
      return;
    size += (size_t) got;
    head[size] = 0;
    end = strstr (head, "\r\n\r\n");
  }
  const char *length = strstr (head, "Content-Length: ");
  assert_true (end && length && strncmp (head, "POST /v1/traces HTTP/1.1\r\n", 26) == 0);
  left = strtoul (length + 16, NULL, 10) - (size - (size_t) (end + 4 - head));
  for (ssize_t got; left > 0 && (got = read (fd, head, left < sizeof head ? left : sizeof head)) > 0;)
    left -= (size_t) got;
  while (self->silent)
    usleep (1000);
  int number = self->messages++;
  const char *text = number < 8 && self->answers[number] ? self->answers[number] : taken;
  if (write (fd, text, strlen (text)) < 0)
    return;
}

static void *serve (void *self_v)
{
  server_t *self = self_v;
  for (int fd; (fd = accept (self->fd, NULL, NULL)) >= 0;) {
    answer (self, fd);
    close (fd);
  }
  return NULL;
}

static void server_begin (server_t *self)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  self->fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true (self->fd >= 0 && bind (self->fd, (struct sockaddr *) &address, size) == 0 &&
               listen (self->fd, 8) == 0);
  getsockname (self->fd, (struct sockaddr *) &address, &size);
  self->port = ntohs (address.sin_port);
  assert_int_equal (pthread_create (&self->thread, NULL, serve, self), 0);
}

static void server_end (server_t *self)
{
  self->silent = 0;
  shutdown (self->fd, SHUT_RDWR);
  pthread_join (self->thread, NULL);
  close (self->fd);
}

static ctl_exporter_t *exporter_new (ctl_instances_t *instances, int port)
{
  char url[64], why[200];
  ctl_collector_t *collector = NULL;
  ctl_exporter_t *self = NULL;
  setenv ("no_proxy", "127.0.0.1", 1);
  snprintf (url, sizeof url, "http://user:secret@127.0.0.1:%d", port);
  assert_int_equal (ctl_collector_new (url, &collector, why, sizeof why), 0);
  assert_int_equal (ctl_exporter_new (&collector, instances, &self), 0);
  assert_null (collector);
  snprintf (url, sizeof url, "http://127.0.0.1:%d/v1/traces", port);
  assert_string_equal (ctl_exporter_url (self), url); /* no password */
  return self;
}

static void put (ctl_exporter_t *exporter, unsigned count)
{
  for (unsigned n = 0; n < count; n++) {
    ctl_execution_t *shop = golden_shop ((uint8_t) n, 1);
    assert_int_equal (ctl_exporter_put (&shop, exporter), 0);
    assert_null (shop);
  }
}

static ctl_exporter_stats_t stats_of (ctl_exporter_t *exporter)
{
  ctl_exporter_stats_t stats;
  ctl_exporter_stats (exporter, &stats);
  return stats;
}

static void test_what_is_put_is_sent (void **state)
{
  (void) state;
  server_t server = {.answers = {"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"}};
  ctl_instances_t *instances = ctl_instances_new ();
  server_begin (&server);
  ctl_exporter_t *exporter = exporter_new (instances, server.port);
  put (exporter, 500);
  uint64_t end_ns = weft_mono_ns () + 20 * 1000 * WEFT_NS_PER_MS;
  while (stats_of (exporter).sent < 500 * SPANS && weft_mono_ns () < end_ns)
    usleep (10000);
  ctl_exporter_stats_t stats = stats_of (exporter);
  assert_int_equal (stats.sent, 500 * SPANS);
  assert_true (stats.given_up == 0 && stats.retries == 1 && !stats.failing);
  ctl_exporter_destroy (&exporter);
  assert_true (server.messages > 500 * (int) SPANS / WEFT_OTLP_SPANS_MAX);
  server_end (&server);
  ctl_instances_destroy (&instances);
}

/* X1, X2: while it says nothing, the queue fills, then what comes is given up; at once, both. */
static void test_a_silent_collector (void **state)
{
  (void) state;
  server_t server = {.silent = 1};
  ctl_instances_t *instances = ctl_instances_new ();
  server_begin (&server);
  ctl_exporter_t *exporter = exporter_new (instances, server.port);
  unsigned many = WEFT_EXPORT_SPANS_MAX / SPANS + 1000;
  put (exporter, many);
  ctl_exporter_stats_t stats = stats_of (exporter);
  assert_true (stats.waiting <= WEFT_EXPORT_SPANS_MAX && stats.waiting > WEFT_EXPORT_SPANS_MAX - SPANS);
  assert_int_equal (stats.waiting + stats.given_up, many * SPANS);
  assert_non_null (strstr (stats.why, "slower than what comes in"));
  uint64_t start_ns = weft_mono_ns ();
  ctl_exporter_end (exporter);
  assert_true (weft_mono_ns () - start_ns < (WEFT_EXPORT_END_MS + 5000) * WEFT_NS_PER_MS);
  put (exporter, 1);
  stats = stats_of (exporter);
  assert_int_equal (stats.waiting, 0);
  assert_int_equal (stats.sent + stats.rejected + stats.given_up, (many + 1) * SPANS);
  ctl_exporter_destroy (&exporter);
  ctl_exporter_destroy (&exporter);
  server_end (&server);
  ctl_instances_destroy (&instances);
}

static void test_a_collector_that_would_never_take_it (void **state)
{
  (void) state;
  server_t server = {.answers = {"HTTP/1.1 401 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"}};
  ctl_instances_t *instances = ctl_instances_new ();
  server_begin (&server);
  ctl_exporter_t *exporter = exporter_new (instances, server.port);
  put (exporter, 1);
  ctl_exporter_end (exporter); /* what waits goes out first */
  ctl_exporter_stats_t stats = stats_of (exporter);
  assert_true (stats.given_up == SPANS && stats.sent == 0 && stats.retries == 0 && stats.failing);
  assert_non_null (strstr (stats.why, "status 401"));
  assert_int_equal (server.messages, 1);
  ctl_exporter_destroy (&exporter);
  server_end (&server);
  ctl_instances_destroy (&instances);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_what_is_put_is_sent),
      cmocka_unit_test (test_a_silent_collector),
      cmocka_unit_test (test_a_collector_that_would_never_take_it),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
