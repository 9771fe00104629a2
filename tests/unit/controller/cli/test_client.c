/* SPDX-License-Identifier: Apache-2.0 */
/* The client against a real controller process behind ipc sockets, and what an
 * instance sees beside them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "../../../../common/batch.h"
#include "../../../../common/status.h"
#include "../../../../common/wire.h"
#include "../../../../controller/cli/client.h"
#include "../../../../controller/cli/orders.h"
#include "../../../../controller/cli/roster.h"
#include "../../../../controller/service/service.h"

static char base[64], address[80];
static pid_t controller;

/* Somebody takes connections: a socket has its file a moment before. */
static int listens (void)
{
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  snprintf (name.sun_path, sizeof name.sun_path, "%s/ctl/control", base);
  int fd = socket (AF_UNIX, SOCK_STREAM, 0);
  int rc = connect (fd, (const struct sockaddr *) &name, sizeof name);
  close (fd);
  return rc == 0;
}

/* The process is forked before this one has a ZeroMQ context. */
static int start (void)
{
  char store[80];
  snprintf (store, sizeof store, "%s/weft.db", base);
  controller = fork ();
  if (controller == 0) {
    ctl_service_options_t options = {.listen = address, .store = store};
    _exit (ctl_service_run (&options) < 0 ? 1 : 0);
  }
  for (int n = 0; n < 2000 && !listens (); n++)
    ctl_pause_ms (10);
  return listens () ? 0 : -1;
}

static int end (int number)
{
  int status = -1;
  kill (controller, number);
  waitpid (controller, &status, 0);
  return status;
}

static int setup (void **state)
{
  strcpy (base, "/tmp/weft-client-XXXXXX");
  if (!mkdtemp (base))
    return -1;
  snprintf (address, sizeof address, "ipc://%s/ctl", base);
  return start ();
}

static int teardown (void **state)
{
  char command[128];
  snprintf (command, sizeof command, "rm -rf '%s'", base);
  int status = end (SIGTERM);
  return system (command) | status;
}

/* stderr of what is expected to complain goes here. */
static int quiet (void)
{
  int saved = dup (STDERR_FILENO), null_fd = open ("/dev/null", O_WRONLY);
  dup2 (null_fd, STDERR_FILENO);
  close (null_fd);
  return saved;
}

static void loud (int saved)
{
  dup2 (saved, STDERR_FILENO);
  close (saved);
}

/* ---- an instance -------------------------------------------------------- */

typedef struct {
  void *context, *sub, *push;
  uint8_t uuid[WEFT_UUID_SIZE];
} peer_t;

static void peer_open (peer_t *self, uint8_t who)
{
  char endpoint[WEFT_ENDPOINT_MAX], why[100], topic[WEFT_TOPIC_MAX];
  int linger = 0, timeout = 20000;
  memset (self->uuid, who, sizeof self->uuid);
  self->context = zmq_ctx_new ();
  self->sub = zmq_socket (self->context, ZMQ_SUB);
  self->push = zmq_socket (self->context, ZMQ_PUSH);
  zmq_setsockopt (self->sub, ZMQ_LINGER, &linger, sizeof linger);
  zmq_setsockopt (self->push, ZMQ_LINGER, &linger, sizeof linger);
  zmq_setsockopt (self->sub, ZMQ_RCVTIMEO, &timeout, sizeof timeout);
  weft_topic_instance (topic, self->uuid);
  zmq_setsockopt (self->sub, ZMQ_SUBSCRIBE, topic, strlen (topic));
  zmq_setsockopt (self->sub, ZMQ_SUBSCRIBE, "all", 3);
  assert_int_equal (weft_endpoint (address, WEFT_ENDPOINT_INSTRUCTIONS, endpoint, why, sizeof why), 0);
  assert_int_equal (zmq_connect (self->sub, endpoint), 0);
  assert_int_equal (weft_endpoint (address, WEFT_ENDPOINT_REPORTS, endpoint, why, sizeof why), 0);
  assert_int_equal (zmq_connect (self->push, endpoint), 0);
}

static void peer_close (peer_t *self)
{
  zmq_close (self->sub);
  zmq_close (self->push);
  zmq_ctx_term (self->context);
}

static void peer_say (peer_t *self, weft_up_kind_t kind, uint64_t epoch)
{
  weft_up_message_t m = {.kind = kind, .epoch = epoch, .pid = 77, .slots_written = 19, .slots_restored = 19};
  void *data = NULL;
  size_t size = 0;
  memcpy (m.instance, self->uuid, sizeof m.instance);
  memcpy (m.start, self->uuid, sizeof m.start);
  strcpy (m.vm, "jvm");
  strcpy (m.service, "orders");
  assert_int_equal (weft_up_pack (&m, &data, &size), 0);
  assert_int_equal (zmq_send (self->push, data, size, 0), (int) size);
  free (data);
}

/* The next message of that kind; clear it. */
static void peer_hear (peer_t *self, weft_bus_kind_t kind, char *ret_topic, weft_bus_message_t *ret_message)
{
  for (;;) {
    char frame[65536];
    int topic = zmq_recv (self->sub, ret_topic, WEFT_TOPIC_MAX - 1, 0);
    assert_true (topic > 0);
    ret_topic[topic] = 0;
    int size = zmq_recv (self->sub, frame, sizeof frame, 0);
    assert_int_equal (weft_bus_unpack (frame, (size_t) size, ret_message), 0);
    if (ret_message->kind == kind)
      return;
    weft_bus_clear (ret_message);
  }
}

/* ---- tests -------------------------------------------------------------- */

static void test_ping_and_end (void **state)
{
  ctl_client_t *client = NULL;
  json_t *reply = NULL;
  assert_int_equal (ctl_client_open (address, CTL_CLIENT_EXISTING, &client), 0);
  assert_int_equal (ctl_client_ask (client, json_pack ("{s:s}", "op", "ping"), NULL, NULL, &reply), 0);
  assert_int_equal (json_integer_value (json_object_get (reply, "pid")), controller);
  json_decref (reply);
  assert_int_equal (ctl_client_try (client, json_pack ("{s:s}", "op", "fly"), 1000, NULL),
                    WEFT_E_UNSUPPORTED);
  ctl_client_close (&client);
  ctl_client_close (&client);
  assert_int_equal (end (SIGTERM), 0);
  char path[128];
  snprintf (path, sizeof path, "%s/ctl/control", base);
  assert_int_equal (access (path, F_OK), -1); /* its sockets are gone */
  int saved = quiet ();
  assert_int_equal (ctl_client_open (address, CTL_CLIENT_EXISTING, &client), WEFT_E_NOT_FOUND);
  loud (saved);
  assert_null (client);
  assert_int_equal (start (), 0); /* for the teardown */
}

static void test_an_instruction_reaches_an_instance (void **state)
{
  ctl_client_t *client = NULL;
  peer_t peer = {0};
  char topic[WEFT_TOPIC_MAX], own[WEFT_TOPIC_MAX];
  weft_bus_message_t heard = {0};
  weft_instruction_t *order = calloc (1, sizeof *order);
  uint32_t number = 0;
  ctl_standing_counts_t counts = {0};
  assert_int_equal (ctl_client_open (address, CTL_CLIENT_EXISTING, &client), 0);
  peer_open (&peer, 0x5a);
  peer_hear (&peer, WEFT_BUS_HEARTBEAT, topic, &heard); /* subscribed from here on */
  assert_string_equal (topic, "all");
  uint64_t epoch = heard.epoch;
  weft_bus_clear (&heard);
  peer_say (&peer, WEFT_UP_HELLO, 0);
  peer_hear (&peer, WEFT_BUS_STATE, topic, &heard);
  weft_topic_instance (own, peer.uuid);
  assert_string_equal (topic, own); /* answered alone */
  assert_int_equal (heard.instruction_count, 0);
  weft_bus_clear (&heard);

  *order = (weft_instruction_t){.actions = WEFT_ACTION_EMBED,
                                .selector_count = 1,
                                .sample_num = 1,
                                .sample_den = 1,
                                .lease_ms = WEFT_LEASE_MS};
  strcpy (order->selectors[0], "service=orders");
  assert_int_equal (ctl_order_send (client, order, 0, &number), 0);
  peer_hear (&peer, WEFT_BUS_STATE, topic, &heard);
  assert_string_equal (topic, "all");
  assert_int_equal (heard.epoch, epoch + 1);
  assert_int_equal (heard.instruction_count, 1);
  assert_int_equal (heard.instructions[0].number, number);
  assert_int_equal (heard.instructions[0].actions, WEFT_ACTION_EMBED);
  assert_string_equal (heard.instructions[0].selectors[0], "service=orders");
  weft_bus_clear (&heard);
  assert_int_equal (ctl_order_await (client, number, 50, NULL, &counts), 0);
  assert_int_equal (counts.expected, 1);
  assert_int_equal (counts.active, 0);
  ctl_standing_clear (&counts);
  peer_say (&peer, WEFT_UP_ACK, epoch + 1);
  assert_int_equal (ctl_order_await (client, number, 2000, NULL, &counts), 0);
  assert_int_equal (counts.active, 1);
  ctl_standing_clear (&counts);

  assert_int_equal (
      ctl_client_ask (client, json_pack ("{s:s, s:[i]}", "op", "detach", "pids", 77), NULL, NULL, NULL), 0);
  peer_hear (&peer, WEFT_BUS_LEAVE, topic, &heard);
  assert_string_equal (topic, own);
  weft_bus_clear (&heard);
  peer_say (&peer, WEFT_UP_BYE, 0);
  ctl_roster_t roster = {0};
  for (int n = 0; n < 200; n++) {
    ctl_roster_clear (&roster);
    assert_int_equal (
        ctl_roster_read (client, json_pack ("{s:[s]}", "uuids", own + strlen ("instance/")), &roster), 0);
    if (roster.count == 1 && roster.instances[0].presence == CTL_INSTANCE_LEFT)
      break;
    ctl_pause_ms (10);
  }
  assert_int_equal (roster.instances[0].presence, CTL_INSTANCE_LEFT);
  assert_int_equal (roster.instances[0].slots_restored, 19);
  ctl_roster_clear (&roster);
  peer_close (&peer);
  ctl_client_close (&client);
  free (order);
}

/* A batch is acknowledged on the instance's topic, cumulatively, and survives the controller's death. */
static void test_a_batch_outlives_a_killed_controller (void **state)
{
  peer_t peer = {0};
  char topic[WEFT_TOPIC_MAX];
  weft_bus_message_t heard = {0};
  weft_batch_writer_t *writer = weft_batch_writer_new ();
  static uint8_t frame[WEFT_BATCH_MAX];
  weft_batch_head_t head = {.major = 1, .number = 1};
  weft_report_t report = {.kind = WEFT_REPORT_CAPTURE,
                          .flags = WEFT_REPORT_ROOT,
                          .instruction = 1,
                          .subtask = 9,
                          .start_ns = 5,
                          .end_ns = 9,
                          .cpu_ns = WEFT_NS_NONE,
                          .name = "GET /",
                          .name_size = 5,
                          .task = {0xab, 0xcd}};
  size_t size = 0;
  peer_open (&peer, 0x33);
  peer_hear (&peer, WEFT_BUS_HEARTBEAT, topic, &heard);
  weft_bus_clear (&heard);
  peer_say (&peer, WEFT_UP_HELLO, 0);
  memcpy (head.instance, peer.uuid, sizeof head.instance);
  memcpy (head.start, peer.uuid, sizeof head.start);
  assert_int_equal (weft_batch_writer_begin (writer, frame, sizeof frame, &head), 0);
  assert_int_equal (weft_batch_writer_add (writer, &report), 0);
  assert_int_equal (weft_batch_writer_finish (writer, &head, &size), 0);
  weft_batch_writer_destroy (&writer);
  assert_int_equal (zmq_send (peer.push, frame, size, 0), (int) size);
  peer_hear (&peer, WEFT_BUS_BATCH_ACK, topic, &heard);
  assert_int_equal (heard.number, 1);
  assert_memory_equal (heard.start, peer.uuid, sizeof heard.start);
  weft_bus_clear (&heard);
  peer_close (&peer);

  assert_int_equal (end (SIGKILL), SIGKILL); /* before anything had settled */
  assert_int_equal (start (), 0);
  ctl_client_t *client = NULL;
  json_t *reply = NULL;
  assert_int_equal (ctl_client_open (address, CTL_CLIENT_EXISTING, &client), 0);
  assert_int_equal (
      ctl_client_ask (client, json_pack ("{s:s, s:s}", "op", "show", "task", "abcd"), NULL, NULL, &reply), 0);
  json_decref (reply);
  ctl_client_close (&client);
}

static void test_a_second_controller_is_refused (void **state)
{
  pid_t second = fork ();
  if (second == 0) {
    char store[80];
    quiet ();
    snprintf (store, sizeof store, "%s/other.db", base);
    ctl_service_options_t options = {.listen = address, .store = store};
    _exit (ctl_service_run (&options) == WEFT_E_BUSY ? 42 : 1);
  }
  int status = 0;
  waitpid (second, &status, 0);
  assert_true (WIFEXITED (status));
  assert_int_equal (WEXITSTATUS (status), 42);
  ctl_client_t *client = NULL;
  assert_int_equal (ctl_client_open (address, CTL_CLIENT_EXISTING, &client), 0); /* the first goes on */
  ctl_client_close (&client);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
int main (void)
{
  const struct CMUnitTest tests[] = {
      TEST (test_ping_and_end),
      TEST (test_an_instruction_reaches_an_instance),
      TEST (test_a_batch_outlives_a_killed_controller),
      TEST (test_a_second_controller_is_refused),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
