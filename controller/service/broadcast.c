/* SPDX-License-Identifier: Apache-2.0 */
#include "broadcast.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uuid/uuid.h>
#include <zmq.h>

#include "../../common/clocks.h"
#include "../../common/status.h"

/* Messages, not bytes; instructions are small. */
#define SEND_HWM  1000
#define LINGER_MS 200

struct ctl_broadcast_t {
  void *context;
  void *socket;
  ctl_guard_t *guard;
  char address[WEFT_ENDPOINT_MAX];
  uint8_t uuid[WEFT_UUID_SIZE];
  uint8_t boot[WEFT_UUID_SIZE]; /* zeros: not known, then no clock of ours compares */
};

int ctl_broadcast_bind (ctl_broadcast_t *self, int type, weft_endpoint_t which, void **ret_socket, char *why,
                        size_t why_size)
{
  char endpoint[WEFT_ENDPOINT_MAX];
  int rc = weft_endpoint (self->address, which, endpoint, why, why_size);
  if (rc < 0)
    return rc;
  void *socket = zmq_socket (self->context, type);
  if (!socket) {
    snprintf (why, why_size, "%s", zmq_strerror (errno));
    return WEFT_E_IO;
  }
  int linger = LINGER_MS, send_mark = SEND_HWM, receive_mark = WEFT_RECEIVE_HWM,
      ipv6 = strchr (self->address, '[') != NULL;
  int64_t frame_max = WEFT_FRAME_MAX;
  if (zmq_setsockopt (socket, ZMQ_LINGER, &linger, sizeof linger) < 0 ||
      zmq_setsockopt (socket, ZMQ_SNDHWM, &send_mark, sizeof send_mark) < 0 ||
      zmq_setsockopt (socket, ZMQ_RCVHWM, &receive_mark, sizeof receive_mark) < 0 ||
      zmq_setsockopt (socket, ZMQ_IPV6, &ipv6, sizeof ipv6) < 0 ||
      zmq_setsockopt (socket, ZMQ_MAXMSGSIZE, &frame_max, sizeof frame_max) < 0 ||
      (self->guard && ctl_guard_watch (self->guard, socket, which) < 0) || zmq_bind (socket, endpoint) < 0) {
    int busy = errno == EADDRINUSE;
    if (busy)
      snprintf (why, why_size, "%s is in use by another program", endpoint);
    else
      snprintf (why, why_size, "%s: %s", endpoint, zmq_strerror (errno));
    zmq_close (socket);
    return busy ? WEFT_E_BUSY : WEFT_E_IO;
  }
  const char *path = weft_endpoint_directory (endpoint);
  if (path)
    chmod (path, 0600); /* in a directory that is closed anyway: a second lock */
  *ret_socket = socket;
  return 0;
}

int ctl_broadcast_new (const char *address, ctl_guard_t *guard, ctl_broadcast_t **ret_self, char *why,
                       size_t why_size)
{
  ctl_broadcast_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  int rc = WEFT_E_NOMEM;
  self->context = zmq_ctx_new ();
  if (self->context) {
    uuid_generate_random (self->uuid);
    weft_boot_id (self->boot);
    snprintf (self->address, sizeof self->address, "%s", address);
    self->guard = guard;
    rc = guard ? ctl_guard_open (guard, self->context) : 0;
  }
  if (rc == 0) {
    rc = ctl_broadcast_bind (self, ZMQ_XPUB, WEFT_ENDPOINT_INSTRUCTIONS, &self->socket, why, why_size);
  }
  if (rc < 0) {
    ctl_broadcast_destroy (&self);
    return rc;
  }
  *ret_self = self;
  return 0;
}

void ctl_broadcast_destroy (ctl_broadcast_t **self_p)
{
  ctl_broadcast_t *self = *self_p;
  if (!self)
    return;
  if (self->socket)
    zmq_close (self->socket);
  if (self->guard)
    ctl_guard_close (self->guard);
  if (self->context)
    zmq_ctx_term (self->context);
  free (self);
  *self_p = NULL;
}

int ctl_broadcast_send (ctl_broadcast_t *self, const char *topic, const weft_bus_message_t *message)
{
  weft_bus_message_t ours = *message;
  memcpy (ours.controller, self->uuid, sizeof ours.controller);
  memcpy (ours.boot, self->boot, sizeof ours.boot);
  ours.sent_ns = weft_mono_ns ();
  void *data = NULL;
  size_t size = 0;
  int rc = weft_bus_pack (&ours, &data, &size);
  if (rc < 0)
    return rc;
  if (zmq_send (self->socket, topic, strlen (topic), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ||
      zmq_send (self->socket, data, size, ZMQ_DONTWAIT) < 0)
    rc = WEFT_E_IO;
  free (data);
  return rc;
}

int ctl_broadcast_state (ctl_broadcast_t *self, const char *topic, const ctl_instructions_t *instructions)
{
  weft_bus_message_t state = {.kind = WEFT_BUS_STATE, .epoch = ctl_instructions_epoch (instructions)};
  const weft_instruction_t *live = ctl_instructions_live (instructions, &state.instruction_count);
  state.instructions = (weft_instruction_t *) (uintptr_t) live; /* packed, not kept */
  return ctl_broadcast_send (self, topic, &state);
}

const uint8_t *ctl_broadcast_uuid (const ctl_broadcast_t *self)
{
  return self->uuid;
}

int ctl_broadcast_fd (const ctl_broadcast_t *self)
{
  int fd = -1;
  size_t size = sizeof fd;
  zmq_getsockopt (self->socket, ZMQ_FD, &fd, &size);
  return fd;
}

int ctl_broadcast_pump (ctl_broadcast_t *self)
{
  int taken = 0;
  char topic[WEFT_TOPIC_MAX];
  while (taken < WEFT_INTAKE_BURST && zmq_recv (self->socket, topic, sizeof topic, ZMQ_DONTWAIT) >= 0)
    taken++;
  return taken;
}
