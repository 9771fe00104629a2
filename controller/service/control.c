/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "../../common/status.h"

#define PARTS_MAX 3 /* identity, a REQ socket's empty delimiter, the request */

struct ctl_control_t {
  void *socket;
  ctl_house_t *house;
};

int ctl_control_new (ctl_broadcast_t *broadcast, ctl_house_t *house, ctl_control_t **ret_self, char *why,
                     size_t why_size)
{
  ctl_control_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->house = house;
  int rc = ctl_broadcast_bind (broadcast, ZMQ_ROUTER, WEFT_ENDPOINT_CONTROL, &self->socket, why, why_size);
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

int ctl_control_pump (ctl_control_t *self)
{
  int answered = 0;
  for (;;) {
    zmq_msg_t parts[PARTS_MAX];
    int count = receive (self, parts);
    if (count == 0)
      return answered;
    answered++;
    if (count < 0)
      continue;
    ctl_reply_t reply = {0};
    zmq_msg_t *request = &parts[count - 1];
    if (ctl_requests_answer (self->house, zmq_msg_data (request), zmq_msg_size (request), &reply) == 0)
      send_reply (self, parts, count, &reply);
    ctl_reply_clear (&reply);
    for (int n = 0; n < count; n++)
      zmq_msg_close (&parts[n]);
  }
}

int ctl_control_fd (const ctl_control_t *self)
{
  int fd = -1;
  size_t size = sizeof fd;
  zmq_getsockopt (self->socket, ZMQ_FD, &fd, &size);
  return fd;
}
