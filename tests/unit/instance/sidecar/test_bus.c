/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h must follow these */
#include <cmocka.h>

#include <unistd.h>
#include <zmq.h>

#include "../../../../common/status.h"
#include "../../../../instance/sidecar/bus.h"

typedef struct {
  char directory[64], base[80];
  void *context, *publisher, *sink;
  car_bus_t *bus;
} stage_t;

static int set_up (void **state)
{
  char endpoint[WEFT_ENDPOINT_MAX], why[128] = "";
  stage_t *stage = calloc (1, sizeof *stage);
  snprintf (stage->directory, sizeof stage->directory, "/tmp/weft-test-bus-XXXXXX");
  assert_non_null (mkdtemp (stage->directory));
  snprintf (stage->base, sizeof stage->base, "ipc://%s", stage->directory);
  stage->context = zmq_ctx_new ();
  stage->publisher = zmq_socket (stage->context, ZMQ_XPUB);
  stage->sink = zmq_socket (stage->context, ZMQ_PULL);
  int zero = 0, wait = 3000;
  zmq_setsockopt (stage->publisher, ZMQ_LINGER, &zero, sizeof zero);
  zmq_setsockopt (stage->publisher, ZMQ_RCVTIMEO, &wait, sizeof wait);
  zmq_setsockopt (stage->sink, ZMQ_RCVTIMEO, &wait, sizeof wait);
  assert_int_equal (car_bus_new (stage->base, NULL, &stage->bus, why, sizeof why), 0);
  assert_int_equal (car_bus_push (stage->bus, "x", 1), WEFT_E_BUSY); /* no controller: nothing is queued */
  weft_endpoint (stage->base, WEFT_ENDPOINT_INSTRUCTIONS, endpoint, why, sizeof why);
  assert_int_equal (zmq_bind (stage->publisher, endpoint), 0);
  weft_endpoint (stage->base, WEFT_ENDPOINT_REPORTS, endpoint, why, sizeof why);
  assert_int_equal (zmq_bind (stage->sink, endpoint), 0);
  *state = stage;
  return 0;
}

static int tear_down (void **state)
{
  static const char *const names[] = {"instructions", "reports"};
  stage_t *stage = *state;
  char path[128];
  car_bus_destroy (&stage->bus);
  zmq_close (stage->publisher);
  zmq_close (stage->sink);
  zmq_ctx_term (stage->context);
  for (int i = 0; i < 2; i++) {
    snprintf (path, sizeof path, "%s/%s", stage->directory, names[i]);
    unlink (path);
  }
  rmdir (stage->directory);
  free (stage);
  return 0;
}

/* Subscribes and waits until the publisher has heard of it. */
static void listen_to (stage_t *stage, const char *topic)
{
  char frame[128];
  assert_int_equal (car_bus_subscribe (stage->bus, topic), 0);
  int size = zmq_recv (stage->publisher, frame, sizeof frame, 0);
  assert_int_equal (size, strlen (topic) + 1);
  assert_memory_equal (frame + 1, topic, strlen (topic));
}

static void send_parts (stage_t *stage, const char *topic, const void *data, size_t size, int extra)
{
  zmq_send (stage->publisher, topic, strlen (topic), ZMQ_SNDMORE);
  zmq_send (stage->publisher, data, size, extra ? ZMQ_SNDMORE : 0);
  if (extra)
    zmq_send (stage->publisher, "more", 4, 0);
}

static int receive (stage_t *stage, weft_bus_message_t *message, const char **topic)
{
  for (int i = 0; i < 100; i++) {
    uint32_t ready;
    int status = car_bus_receive (stage->bus, message, topic);
    if (status != WEFT_E_NOT_FOUND)
      return status;
    assert_int_equal (car_bus_wait (stage->bus, NULL, 0, 0, 30, &ready), 0);
  }
  return WEFT_E_TIMEOUT;
}

static void garbage_and_neighbours_are_skipped (void **state)
{
  stage_t *stage = *state;
  static const uint8_t uuid[WEFT_UUID_SIZE] = {1, 2, 3};
  char own[WEFT_TOPIC_MAX];
  weft_topic_instance (own, uuid);
  listen_to (stage, "all");
  listen_to (stage, "service/order");
  listen_to (stage, own);
  weft_bus_message_t beat = {.kind = WEFT_BUS_HEARTBEAT, .epoch = 4, .seq = 9, .sent_ns = 1};
  weft_bus_message_t got;
  void *data;
  size_t size;
  const char *topic = NULL;
  assert_int_equal (weft_bus_pack (&beat, &data, &size), 0);
  send_parts (stage, "all", "\xc1\xc1 garbage", 10, 0);
  send_parts (stage, "service/orders", data, size, 0); /* a neighbour with a longer name */
  send_parts (stage, "all", data, size, 1);            /* three frames */
  zmq_send (stage->publisher, "all", 3, 0);            /* one */
  send_parts (stage, own, data, size, 0);
  send_parts (stage, "all", data, size, 0);
  assert_int_equal (receive (stage, &got, &topic), 0);
  assert_string_equal (topic, own);
  assert_int_equal (got.epoch, 4);
  assert_int_equal (got.seq, 9);
  weft_bus_clear (&got);
  assert_int_equal (receive (stage, &got, &topic), 0);
  assert_string_equal (topic, "all");
  weft_bus_clear (&got);
  assert_int_equal (car_bus_garbage (stage->bus), 4);
  assert_int_equal (car_bus_receive (stage->bus, &got, &topic), WEFT_E_NOT_FOUND);
  free (data);
}

static void a_topic_ends_with_the_last_who_wants_it (void **state)
{
  stage_t *stage = *state;
  weft_bus_message_t beat = {.kind = WEFT_BUS_HEARTBEAT}, got;
  void *data;
  size_t size;
  const char *topic;
  listen_to (stage, "service/shared");
  assert_int_equal (car_bus_subscribe (stage->bus, "service/shared"),
                    0); /* no second word to the publisher */
  assert_int_equal (car_bus_unsubscribe (stage->bus, "service/shared"), 0);
  weft_bus_pack (&beat, &data, &size);
  send_parts (stage, "service/shared", data, size, 0);
  assert_int_equal (receive (stage, &got, &topic), 0);
  assert_string_equal (topic, "service/shared");
  weft_bus_clear (&got);
  assert_int_equal (car_bus_unsubscribe (stage->bus, "service/shared"), 0);
  assert_int_equal (car_bus_unsubscribe (stage->bus, "service/shared"), WEFT_E_NOT_FOUND);
  free (data);
}

static void a_topic_that_was_left_is_silent (void **state)
{
  stage_t *stage = *state;
  weft_bus_message_t beat = {.kind = WEFT_BUS_HEARTBEAT}, got;
  void *data;
  size_t size;
  const char *topic;
  char frame[128];
  listen_to (stage, "service/old");
  assert_int_equal (car_bus_unsubscribe (stage->bus, "service/old"), 0);
  assert_int_equal (car_bus_unsubscribe (stage->bus, "service/old"), WEFT_E_NOT_FOUND);
  assert_int_equal (zmq_recv (stage->publisher, frame, sizeof frame, 0), 12);
  assert_int_equal (frame[0], 0); /* the publisher knows */
  listen_to (stage, "service/new");
  weft_bus_pack (&beat, &data, &size);
  send_parts (stage, "service/old", data, size, 0);
  send_parts (stage, "service/new", data, size, 0);
  assert_int_equal (receive (stage, &got, &topic), 0);
  assert_int_equal (car_bus_receive (stage->bus, &got, &topic), WEFT_E_NOT_FOUND);
  free (data);
}

static void a_push_arrives_once_a_controller_is_there (void **state)
{
  stage_t *stage = *state;
  char frame[16];
  uint32_t ready;
  int status = WEFT_E_BUSY;
  for (int i = 0; i < 100 && status == WEFT_E_BUSY; i++) {
    assert_int_equal (car_bus_wait (stage->bus, NULL, 0, 1, 50, &ready), 0);
    status = car_bus_push (stage->bus, "hello", 5);
  }
  assert_int_equal (status, 0);
  assert_int_equal (zmq_recv (stage->sink, frame, sizeof frame, 0), 5);
  assert_memory_equal (frame, "hello", 5);
}

static void a_lost_connection_is_known_before_the_next (void **state)
{
  stage_t *stage = *state;
  uint32_t ready;
  int status = WEFT_E_BUSY, known = 0;
  for (int i = 0; i < 100 && status == WEFT_E_BUSY; i++) {
    assert_int_equal (car_bus_wait (stage->bus, NULL, 0, 1, 50, &ready), 0);
    status = car_bus_push (stage->bus, "one", 3);
  }
  assert_int_equal (status, 0);
  assert_int_equal (car_bus_interrupted (stage->bus), 0);
  char frame[16];
  assert_int_equal (zmq_recv (stage->sink, frame, sizeof frame, 0), 3);
  int zero = 0;
  zmq_setsockopt (stage->sink, ZMQ_LINGER, &zero, sizeof zero);
  zmq_close (stage->sink);
  for (int i = 0; i < 100 && !known; i++) {
    assert_int_equal (car_bus_wait (stage->bus, NULL, 0, 0, 10, &ready), 0);
    known = car_bus_interrupted (stage->bus);
  }
  assert_int_equal (known, 1);
  assert_int_equal (car_bus_interrupted (stage->bus), 0); /* once */
  assert_int_equal (car_bus_push (stage->bus, "two", 3), WEFT_E_BUSY);
  stage->sink = zmq_socket (stage->context, ZMQ_PULL);
}

static void descriptors_are_watched (void **state)
{
  stage_t *stage = *state;
  int ends[2], other[2];
  uint32_t ready = 77;
  assert_int_equal (pipe (ends), 0);
  assert_int_equal (pipe (other), 0);
  int fds[2] = {ends[0], other[0]};
  assert_int_equal (car_bus_wait (stage->bus, fds, 2, 0, 1, &ready), 0);
  assert_int_equal (ready, 0);
  assert_int_equal (write (other[1], "x", 1), 1);
  assert_int_equal (car_bus_wait (stage->bus, fds, 2, 0, 1000, &ready), 0);
  assert_int_equal (ready, 2);
  close (ends[0]), close (ends[1]), close (other[0]), close (other[1]);
}

static void bad_addresses_are_refused (void **state)
{
  car_bus_t *bus = NULL;
  char why[128] = "";
  assert_true (car_bus_new ("http://localhost", NULL, &bus, why, sizeof why) < 0);
  assert_true (strlen (why) > 0);
  assert_null (bus);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (garbage_and_neighbours_are_skipped, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_topic_ends_with_the_last_who_wants_it, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_topic_that_was_left_is_silent, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_push_arrives_once_a_controller_is_there, set_up, tear_down),
      cmocka_unit_test_setup_teardown (a_lost_connection_is_known_before_the_next, set_up, tear_down),
      cmocka_unit_test_setup_teardown (descriptors_are_watched, set_up, tear_down),
      cmocka_unit_test (bad_addresses_are_refused),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
