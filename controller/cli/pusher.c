/* SPDX-License-Identifier: Apache-2.0 */
#include "pusher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "../../common/ids.h"
#include "../../common/status.h"
#include "../../common/wire.h"
#include "client.h"

#define LINGER_MS 2000

struct ctl_pusher_t {
  void *context, *push, *sub;
  weft_keys_t keys; /* of an instance: it speaks as one */
  zmq_msg_t frame;
  int has_frame;
};

static void *socket_to (ctl_pusher_t *self, int type, const char *address, weft_endpoint_t which)
{
  char endpoint[WEFT_ENDPOINT_MAX], why[200];
  int linger = LINGER_MS, ipv6 = strchr (address, '[') != NULL, hwm = WEFT_REPLAY_WINDOW;
  int64_t frame_max = WEFT_FRAME_MAX;
  if (weft_endpoint (address, which, endpoint, why, sizeof why) < 0)
    return NULL;
  void *socket = zmq_socket (self->context, type);
  if (!socket)
    return NULL;
  int failed = zmq_setsockopt (socket, ZMQ_LINGER, &linger, sizeof linger) < 0 ||
               zmq_setsockopt (socket, ZMQ_IPV6, &ipv6, sizeof ipv6) < 0 ||
               zmq_setsockopt (socket, ZMQ_MAXMSGSIZE, &frame_max, sizeof frame_max) < 0;
  if (self->keys.loaded)
    failed = failed ||
             zmq_setsockopt (socket, ZMQ_CURVE_SERVERKEY, self->keys.controller, WEFT_KEY_TEXT) < 0 ||
             zmq_setsockopt (socket, ZMQ_CURVE_PUBLICKEY, self->keys.own.public_key, WEFT_KEY_TEXT) < 0 ||
             zmq_setsockopt (socket, ZMQ_CURVE_SECRETKEY, self->keys.own.secret_key, WEFT_KEY_TEXT) < 0;
  if (type == ZMQ_PUSH)
    failed = failed || zmq_setsockopt (socket, ZMQ_SNDHWM, &hwm, sizeof hwm) < 0;
  else
    failed = failed || zmq_setsockopt (socket, ZMQ_SUBSCRIBE, "instance/", 9) < 0;
  if (failed || zmq_connect (socket, endpoint) < 0) {
    zmq_close (socket);
    return NULL;
  }
  return socket;
}

int ctl_pusher_open (const char *address, ctl_pusher_t **ret_self, char *why, size_t why_size)
{
  ctl_pusher_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  int status = ctl_client_keys (address, "instance", &self->keys, why, why_size);
  if (status < 0) {
    ctl_pusher_close (&self);
    return status;
  }
  self->context = zmq_ctx_new ();
  if (self->context) {
    self->sub = socket_to (self, ZMQ_SUB, address, WEFT_ENDPOINT_INSTRUCTIONS);
    self->push = socket_to (self, ZMQ_PUSH, address, WEFT_ENDPOINT_REPORTS);
  }
  if (!self->sub || !self->push) {
    snprintf (why, why_size, "%s", zmq_strerror (errno));
    ctl_pusher_close (&self);
    return WEFT_E_IO;
  }
  *ret_self = self;
  return 0;
}

void ctl_pusher_close (ctl_pusher_t **self_p)
{
  ctl_pusher_t *self = *self_p;
  if (!self)
    return;
  if (self->has_frame)
    zmq_msg_close (&self->frame);
  if (self->push)
    zmq_close (self->push);
  if (self->sub)
    zmq_close (self->sub);
  if (self->context)
    zmq_ctx_term (self->context);
  weft_keys_clear (&self->keys);
  free (self);
  *self_p = NULL;
}

void *ctl_pusher_frame (ctl_pusher_t *self, size_t size)
{
  if (self->has_frame)
    zmq_msg_close (&self->frame);
  self->has_frame = zmq_msg_init_size (&self->frame, size) == 0;
  return self->has_frame ? zmq_msg_data (&self->frame) : NULL;
}

int ctl_pusher_lend (ctl_pusher_t *self, const void *frame, size_t size)
{
  if (self->has_frame)
    zmq_msg_close (&self->frame);
  /* Without a function to free it, libzmq only ever reads it. */
  self->has_frame = zmq_msg_init_data (&self->frame, (void *) (uintptr_t) frame, size, NULL, NULL) == 0;
  return self->has_frame ? 0 : WEFT_E_NOMEM;
}

int ctl_pusher_send (ctl_pusher_t *self, size_t size)
{
  if (!self->has_frame || size > zmq_msg_size (&self->frame))
    return WEFT_E_STATE;
  if (size < zmq_msg_size (&self->frame)) {
    zmq_msg_t exact;
    if (zmq_msg_init_size (&exact, size) < 0)
      return WEFT_E_NOMEM;
    memcpy (zmq_msg_data (&exact), zmq_msg_data (&self->frame), size);
    zmq_msg_move (&self->frame, &exact);
    zmq_msg_close (&exact);
  }
  if (zmq_msg_send (&self->frame, self->push, ZMQ_DONTWAIT) < 0)
    return errno == EAGAIN || errno == EINTR ? WEFT_E_BUSY : WEFT_E_IO;
  self->has_frame = 0; /* a sent message is empty and needs no close */
  return 0;
}

/* "instance/" and a uuid. */
static int read_topic (const void *data, size_t size, uint8_t ret_instance[WEFT_UUID_SIZE])
{
  char text[37] = "";
  if (size != 9 + sizeof text - 1)
    return WEFT_E_MALFORMED;
  memcpy (text, (const char *) data + 9, sizeof text - 1);
  return weft_uuid_get (ret_instance, text);
}

/* Two frames, topic and map; anything else is nobody's. */
static int receive (ctl_pusher_t *self, uint8_t ret_instance[WEFT_UUID_SIZE], weft_bus_message_t *ret_message)
{
  int topic = WEFT_E_MALFORMED;
  int rc = WEFT_E_MALFORMED;
  for (int n = 0, more = 1; more; n++) {
    zmq_msg_t part;
    zmq_msg_init (&part);
    if (zmq_msg_recv (&part, self->sub, ZMQ_DONTWAIT) < 0) {
      zmq_msg_close (&part);
      return n ? rc : WEFT_E_BUSY;
    }
    more = zmq_msg_more (&part);
    if (n == 0)
      topic = read_topic (zmq_msg_data (&part), zmq_msg_size (&part), ret_instance);
    if (n == 1 && !more && topic == 0)
      rc = weft_bus_unpack (zmq_msg_data (&part), zmq_msg_size (&part), ret_message);
    zmq_msg_close (&part);
  }
  return rc;
}

int ctl_pusher_hear (ctl_pusher_t *self, unsigned wait_ms, ctl_pusher_heard_t *ret_heard)
{
  for (;;) {
    weft_bus_message_t message;
    uint8_t instance[WEFT_UUID_SIZE];
    int rc = receive (self, instance, &message);
    if (rc == WEFT_E_BUSY) {
      zmq_pollitem_t item = {.socket = self->sub, .events = ZMQ_POLLIN};
      if (wait_ms == 0 || zmq_poll (&item, 1, (long) wait_ms) <= 0)
        return 0;
      wait_ms = 0;
      continue;
    }
    if (rc < 0)
      continue;
    memset (ret_heard, 0, sizeof *ret_heard);
    memcpy (ret_heard->instance, instance, WEFT_UUID_SIZE);
    if (message.kind == WEFT_BUS_BATCH_ACK) {
      memcpy (ret_heard->start, message.start, WEFT_UUID_SIZE);
      ret_heard->number = message.number;
    }
    weft_bus_clear (&message);
    return 1;
  }
}
