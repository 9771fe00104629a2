/* SPDX-License-Identifier: Apache-2.0 */
#include "bus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "../../common/status.h"

typedef struct {
  char text[WEFT_TOPIC_MAX];
  unsigned users; /* who want it; 0: a free place */
} topic_t;

struct car_bus_t {
  void *context, *instructions, *reports;
  void *monitor; /* of reports */
  uint64_t garbage;
  topic_t *topic;
  unsigned topic_count;
};

static int set_option (void *socket, int option, int value)
{
  return zmq_setsockopt (socket, option, &value, sizeof value);
}

/* Only who has the controller's secret is listened to, and only that one can read what is said. */
static int set_keys (void *socket, const weft_keys_t *keys)
{
  if (!keys || !keys->loaded)
    return 0;
  return zmq_setsockopt (socket, ZMQ_CURVE_SERVERKEY, keys->controller, WEFT_KEY_TEXT) |
         zmq_setsockopt (socket, ZMQ_CURVE_PUBLICKEY, keys->own.public_key, WEFT_KEY_TEXT) |
         zmq_setsockopt (socket, ZMQ_CURVE_SECRETKEY, keys->own.secret_key, WEFT_KEY_TEXT);
}

static int set_patience (void *socket, const char *endpoint)
{
  if (strncmp (endpoint, "tcp://", strlen ("tcp://")) != 0)
    return 0;
  return set_option (socket, ZMQ_HEARTBEAT_IVL, CAR_BUS_PING_MS) |
         set_option (socket, ZMQ_HEARTBEAT_TIMEOUT, CAR_BUS_SILENT_MS) |
         set_option (socket, ZMQ_CONNECT_TIMEOUT, CAR_BUS_CONNECT_MS);
}

static int connect_socket (car_bus_t *self, const weft_keys_t *keys, int type, const char *endpoint,
                           void **ret_socket)
{
  void *socket = zmq_socket (self->context, type);
  if (!socket)
    return WEFT_E_NOMEM;
  int64_t frame_max = WEFT_FRAME_MAX;
  int rc = set_option (socket, ZMQ_LINGER, CAR_BUS_LINGER_MS);
  rc |= set_option (socket, ZMQ_RECONNECT_IVL, CAR_BUS_RECONNECT_MS);
  rc |= set_option (socket, ZMQ_RECONNECT_IVL_MAX, CAR_BUS_RECONNECT_MAX);
  rc |= set_option (socket, ZMQ_SNDHWM, CAR_BUS_SEND_HWM);
  rc |= set_option (socket, ZMQ_RCVHWM, CAR_BUS_RECEIVE_HWM);
  rc |= set_keys (socket, keys);
  rc |= set_patience (socket, endpoint);
  rc |= set_option (socket, ZMQ_IPV6, strchr (endpoint, '[') != NULL);
  rc |= zmq_setsockopt (socket, ZMQ_MAXMSGSIZE, &frame_max, sizeof frame_max);
  /* Nothing is queued for a controller that is not there: batches wait in the
   * spool, which outlives this process. */
  if (type == ZMQ_PUSH)
    rc |= set_option (socket, ZMQ_IMMEDIATE, 1);
  if (rc != 0 || zmq_connect (socket, endpoint) != 0) {
    zmq_close (socket);
    return WEFT_E_IO;
  }
  *ret_socket = socket;
  return 0;
}

/* Tells of lost connections. A reconnect takes CAR_BUS_RECONNECT_MS at least,
 * the event is there at once. */
static int watch_reports (car_bus_t *self)
{
  static const char place[] = "inproc://reports-monitor";
  if (zmq_socket_monitor (self->reports, place, ZMQ_EVENT_DISCONNECTED) != 0)
    return WEFT_E_IO;
  self->monitor = zmq_socket (self->context, ZMQ_PAIR);
  if (!self->monitor)
    return WEFT_E_NOMEM;
  return set_option (self->monitor, ZMQ_LINGER, 0) == 0 && zmq_connect (self->monitor, place) == 0
             ? 0
             : WEFT_E_IO;
}

int car_bus_new (const char *controller, const weft_keys_t *keys, car_bus_t **ret_self, char *why,
                 size_t why_size)
{
  char down[WEFT_ENDPOINT_MAX], up[WEFT_ENDPOINT_MAX];
  int status = weft_endpoint (controller, WEFT_ENDPOINT_INSTRUCTIONS, down, why, why_size);
  if (status == 0)
    status = weft_endpoint (controller, WEFT_ENDPOINT_REPORTS, up, why, why_size);
  if (status < 0)
    return status;
  car_bus_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->context = zmq_ctx_new ();
  status = self->context ? 0 : WEFT_E_NOMEM;
  if (status == 0)
    status = connect_socket (self, keys, ZMQ_SUB, down, &self->instructions);
  if (status == 0)
    status = connect_socket (self, keys, ZMQ_PUSH, up, &self->reports);
  if (status == 0)
    status = watch_reports (self);
  if (status < 0) {
    snprintf (why, why_size, "cannot connect to %s: %s", controller, zmq_strerror (zmq_errno ()));
    car_bus_destroy (&self);
    return status;
  }
  *ret_self = self;
  return 0;
}

void car_bus_destroy (car_bus_t **self_p)
{
  if (!self_p || !*self_p)
    return;
  car_bus_t *self = *self_p;
  if (self->instructions)
    zmq_close (self->instructions);
  if (self->monitor)
    zmq_close (self->monitor);
  if (self->reports)
    zmq_close (self->reports);
  if (self->context)
    zmq_ctx_term (self->context);
  free (self->topic);
  free (self);
  *self_p = NULL;
}

/* The place of a topic of `size` bytes that somebody wants, or NULL. */
static topic_t *find_topic (car_bus_t *self, const char *topic, size_t size)
{
  for (unsigned i = 0; i < self->topic_count; i++)
    if (self->topic[i].users && strlen (self->topic[i].text) == size &&
        memcmp (self->topic[i].text, topic, size) == 0)
      return &self->topic[i];
  return NULL;
}

static topic_t *free_topic (car_bus_t *self)
{
  for (unsigned i = 0; i < self->topic_count; i++)
    if (!self->topic[i].users)
      return &self->topic[i];
  if (self->topic_count == CAR_BUS_TOPICS_MAX)
    return NULL;
  topic_t *grown = realloc (self->topic, (self->topic_count + 1) * sizeof *grown);
  if (!grown)
    return NULL;
  self->topic = grown;
  return &grown[self->topic_count++];
}

int car_bus_subscribe (car_bus_t *self, const char *topic)
{
  size_t size = strlen (topic);
  if (size == 0 || size >= WEFT_TOPIC_MAX)
    return WEFT_E_RANGE;
  topic_t *place = find_topic (self, topic, size);
  if (place) {
    place->users++;
    return 0;
  }
  place = free_topic (self);
  if (!place)
    return WEFT_E_FULL;
  place->users = 0;
  if (zmq_setsockopt (self->instructions, ZMQ_SUBSCRIBE, topic, size) != 0)
    return WEFT_E_IO;
  memcpy (place->text, topic, size + 1);
  place->users = 1;
  return 0;
}

int car_bus_unsubscribe (car_bus_t *self, const char *topic)
{
  topic_t *place = find_topic (self, topic, strlen (topic));
  if (!place)
    return WEFT_E_NOT_FOUND;
  if (--place->users)
    return 0;
  return zmq_setsockopt (self->instructions, ZMQ_UNSUBSCRIBE, topic, strlen (topic)) == 0 ? 0 : WEFT_E_IO;
}

int car_bus_push (void *self_v, const void *data, size_t size)
{
  car_bus_t *self = self_v;
  for (;;) {
    if (zmq_send (self->reports, data, size, ZMQ_DONTWAIT) >= 0)
      return 0;
    if (zmq_errno () != EINTR)
      return zmq_errno () == EAGAIN ? WEFT_E_BUSY : WEFT_E_IO;
  }
}

/* One multipart message: [topic][map], nothing else. 0; WEFT_E_NOT_FOUND: none
 * is waiting; WEFT_E_MALFORMED: skipped. ZeroMQ delivers multipart messages
 * whole and filters by prefix: the topic is compared here. */
static int receive_one (car_bus_t *self, weft_bus_message_t *ret_message, const char **ret_topic)
{
  const topic_t *topic = NULL;
  int status = 0, more = 1;
  for (int part = 0; more; part++) {
    zmq_msg_t frame;
    zmq_msg_init (&frame);
    if (zmq_msg_recv (&frame, self->instructions, ZMQ_DONTWAIT) < 0) {
      int nothing = part == 0 && zmq_errno () != EINTR;
      zmq_msg_close (&frame);
      return nothing ? WEFT_E_NOT_FOUND : WEFT_E_MALFORMED;
    }
    const char *data = zmq_msg_data (&frame);
    size_t size = zmq_msg_size (&frame);
    more = zmq_msg_more (&frame);
    if (part == 0)
      topic = size < WEFT_TOPIC_MAX ? find_topic (self, data, size) : NULL;
    if (part != (more ? 0 : 1) || !topic)
      status = WEFT_E_MALFORMED;
    else if (part == 1 && status == 0)
      status = weft_bus_unpack (data, size, ret_message);
    zmq_msg_close (&frame);
  }
  if (status < 0)
    return WEFT_E_MALFORMED;
  *ret_topic = topic->text;
  return 0;
}

int car_bus_receive (car_bus_t *self, weft_bus_message_t *ret_message, const char **ret_topic)
{
  for (int i = 0; i < CAR_BUS_RECEIVE_HWM; i++) {
    int status = receive_one (self, ret_message, ret_topic);
    if (status != WEFT_E_MALFORMED)
      return status;
    self->garbage++;
  }
  return WEFT_E_NOT_FOUND;
}

uint64_t car_bus_garbage (const car_bus_t *self)
{
  return self->garbage;
}

int car_bus_wait (car_bus_t *self, const int *fds, unsigned count, int want_push, int timeout_ms,
                  uint32_t *ret_ready)
{
  zmq_pollitem_t items[CAR_BUS_FDS_MAX + 2];
  unsigned at = 0;
  for (; at < count && at < CAR_BUS_FDS_MAX; at++)
    items[at] = (zmq_pollitem_t){.fd = fds[at], .events = ZMQ_POLLIN};
  unsigned watched = at;
  items[at++] = (zmq_pollitem_t){.socket = self->instructions, .events = ZMQ_POLLIN};
  if (want_push)
    items[at++] = (zmq_pollitem_t){.socket = self->reports, .events = ZMQ_POLLOUT};
  if (zmq_poll (items, (int) at, timeout_ms) < 0)
    return zmq_errno () == EINTR ? 0 : WEFT_E_IO;
  uint32_t ready = 0;
  for (unsigned i = 0; i < watched; i++)
    if (items[i].revents)
      ready |= 1u << i;
  *ret_ready = ready;
  return 0;
}

int car_bus_interrupted (car_bus_t *self)
{
  int interrupted = 0;
  char frame[WEFT_ENDPOINT_MAX];
  while (zmq_recv (self->monitor, frame, sizeof frame, ZMQ_DONTWAIT) >= 0)
    interrupted = 1; /* the only event that was asked for */
  return interrupted;
}
