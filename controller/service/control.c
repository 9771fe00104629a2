/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "../../common/clocks.h"
#include "../../common/status.h"
#include "rate.h"

#define PARTS_MAX 3 /* identity, a REQ socket's empty delimiter, the request */

struct ctl_control_t {
  void *socket;
  ctl_house_t *house;
  ctl_rate_t *rate;
};

int ctl_control_new (ctl_broadcast_t *broadcast, ctl_house_t *house, ctl_control_t **ret_self, char *why,
                     size_t why_size)
{
  ctl_control_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->house = house;
  self->rate = ctl_rate_new ();
  int rc = !self->rate ? WEFT_E_NOMEM
                       : ctl_broadcast_bind (broadcast, ZMQ_ROUTER, WEFT_ENDPOINT_CONTROL, &self->socket, why,
                                             why_size);
  if (rc < 0) {
    ctl_control_destroy (&self);
    return rc;
  }
  *ret_self = self;
  return 0;
}

void ctl_control_destroy (ctl_control_t **self_p)
{
  if (!*self_p)
    return;
  if ((*self_p)->socket)
    zmq_close ((*self_p)->socket);
  ctl_rate_destroy (&(*self_p)->rate);
  free (*self_p);
  *self_p = NULL;
}

static void free_data (void *data, void *hint)
{
  free (data);
}

/* Hands malloc'd bytes to ZeroMQ without a copy. */
static int send_owned (void *socket, void *data, size_t size, int flags)
{
  zmq_msg_t message;
  if (zmq_msg_init_data (&message, data, size, free_data, NULL) < 0) {
    free (data);
    return -1;
  }
  if (zmq_msg_send (&message, socket, flags | ZMQ_DONTWAIT) < 0) {
    zmq_msg_close (&message);
    return -1;
  }
  return 0;
}

static void send_reply (ctl_control_t *self, zmq_msg_t *parts, int part_count, ctl_reply_t *reply)
{
  char *text = json_dumps (reply->body, JSON_COMPACT);
  if (!text)
    return;
  for (int n = 0; n < part_count - 1; n++) {
    if (zmq_msg_send (&parts[n], self->socket, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
      free (text);
      return;
    }
  }
  if (send_owned (self->socket, text, strlen (text), reply->frame_count ? ZMQ_SNDMORE : 0) < 0)
    return;
  for (uint32_t n = 0; n < reply->frame_count; n++) {
    ctl_frame_t frame = reply->frames[n];
    reply->frames[n].data = NULL;
    if (send_owned (self->socket, frame.data, frame.size, n + 1 < reply->frame_count ? ZMQ_SNDMORE : 0) < 0)
      return;
  }
}

/* Reads one message whole; the number of its parts, 0: none is there, -1: one that is no request. */
static int receive (ctl_control_t *self, zmq_msg_t parts[PARTS_MAX])
{
  int count = 0, too_many = 0;
  for (int more = 1; more;) {
    zmq_msg_t part;
    zmq_msg_init (&part);
    if (zmq_msg_recv (&part, self->socket, ZMQ_DONTWAIT) < 0) {
      zmq_msg_close (&part);
      break;
    }
    more = zmq_msg_more (&part);
    if (count == PARTS_MAX) {
      too_many = 1;
    } else {
      zmq_msg_init (&parts[count]);
      zmq_msg_move (&parts[count++], &part);
    }
    zmq_msg_close (&part);
  }
  int delimited = count == PARTS_MAX && zmq_msg_size (&parts[1]) == 0;
  if (count == 0 || (!too_many && (count == 2 || delimited)))
    return count;
  for (int n = 0; n < count; n++)
    zmq_msg_close (&parts[n]);
  return -1;
}

/* One that asks too often is told so, at no cost but that: nothing of its request is read. */
static int refuse_haste (ctl_control_t *self, zmq_msg_t *identity, ctl_reply_t *reply)
{
  if (ctl_rate_take (self->rate, zmq_msg_data (identity), zmq_msg_size (identity), weft_mono_ns ()))
    return 0;
  if (self->house->guard)
    ctl_guard_throttled (self->house->guard);
  ctl_reply_refuse (reply, WEFT_E_BUSY, "more than %d requests a second from one client; ask less often",
                    WEFT_REQUESTS_RATE);
  return 1;
}

int ctl_control_pump (ctl_control_t *self)
{
  int answered = 0;
  while (answered < WEFT_CONTROL_BURST) {
    zmq_msg_t parts[PARTS_MAX];
    int count = receive (self, parts);
    if (count == 0)
      break;
    answered++;
    if (count < 0)
      continue;
    ctl_reply_t reply = {0};
    zmq_msg_t *request = &parts[count - 1];
    self->house->who = zmq_msg_gets (request, "User-Id");
    if (refuse_haste (self, &parts[0], &reply) ||
        ctl_requests_answer (self->house, zmq_msg_data (request), zmq_msg_size (request), &reply) == 0)
      send_reply (self, parts, count, &reply);
    self->house->who = NULL;
    ctl_reply_clear (&reply);
    for (int n = 0; n < count; n++)
      zmq_msg_close (&parts[n]);
  }
  return answered;
}

int ctl_control_fd (const ctl_control_t *self)
{
  int fd = -1;
  size_t size = sizeof fd;
  zmq_getsockopt (self->socket, ZMQ_FD, &fd, &size);
  return fd;
}
