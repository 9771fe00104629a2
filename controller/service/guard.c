/* SPDX-License-Identifier: Apache-2.0 */
#include "guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "../../common/status.h"

#define ZAP_PLACE   "inproc://zeromq.zap.01" /* RFC 27 of ZeroMQ */
#define ZAP_VERSION "1.0"
#define FRAMES_MAX  7 /* of a ZAP request: version, id, domain, address, identity, mechanism, one credential */
#define SOCKETS     3
#define KEY_SIZE    32

#define EVENTS                                                                                               \
  (ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |                             \
   ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |                              \
   ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)

/* By weft_endpoint_t. */
static const char *const domain[SOCKETS] = {"control", "instructions", "reports"};

struct ctl_guard_t {
  ctl_guard_policy_t policy;
  void *context, *zap;
  void *monitor[SOCKETS];
  ctl_guard_stats_t stats, told;
  uint64_t finished, refused; /* handshakes */
  uint64_t closed;            /* connections */
};

/* ---- one decision ------------------------------------------------------- */

/* "localhost:UID:GID:PID", the last three from SO_PEERCRED. */
static int read_peer (const char *address, unsigned long *ret_uid, unsigned long *ret_pid)
{
  unsigned long number[3];
  const char *at = address + strlen (address);
  for (int n = 2; n >= 0; n--) {
    const char *end = at;
    while (at > address && at[-1] >= '0' && at[-1] <= '9')
      at--;
    if (at == end || end - at > 10 || at == address || at[-1] != ':')
      return WEFT_E_MALFORMED;
    number[n] = strtoul (at, NULL, 10);
    at--; /* the colon */
  }
  *ret_uid = number[0];
  *ret_pid = number[2];
  return 0;
}

static ctl_guard_verdict_t judge_ipc (const ctl_guard_policy_t *policy, const ctl_guard_request_t *request,
                                      char *ret_who)
{
  unsigned long uid, pid;
  if (strcmp (request->mechanism, "NULL") != 0 || read_peer (request->address, &uid, &pid) < 0)
    return CTL_GUARD_UNCLEAR;
  if (uid != policy->owner && uid != 0)
    return CTL_GUARD_FOREIGN;
  snprintf (ret_who, WEFT_WHO_MAX, "uid %lu pid %lu", uid, pid);
  return CTL_GUARD_ADMITTED;
}

static ctl_guard_verdict_t judge_key (const ctl_guard_policy_t *policy, const ctl_guard_request_t *request,
                                      char *ret_who)
{
  char text[WEFT_KEY_TEXT];
  ctl_role_t role = request->socket == WEFT_ENDPOINT_CONTROL ? CTL_ROLE_CLIENT : CTL_ROLE_INSTANCE;
  if (strcmp (request->mechanism, "CURVE") != 0 || request->credential_size != KEY_SIZE ||
      !zmq_z85_encode (text, request->credential, KEY_SIZE))
    return CTL_GUARD_UNCLEAR;
  const char *name = ctl_keyring_find (policy->keyring, role, text);
  if (!name)
    return CTL_GUARD_UNLISTED;
  snprintf (ret_who, WEFT_WHO_MAX, "key %s", name);
  return CTL_GUARD_ADMITTED;
}

ctl_guard_verdict_t ctl_guard_judge (const ctl_guard_policy_t *policy, const ctl_guard_request_t *request,
                                     char ret_who[WEFT_WHO_MAX])
{
  *ret_who = 0;
  if (policy->open > WEFT_CONNECTIONS_MAX)
    return CTL_GUARD_FULL;
  if (policy->ipc)
    return judge_ipc (policy, request, ret_who);
  if (policy->keyring)
    return judge_key (policy, request, ret_who);
  if (strcmp (request->mechanism, "NULL") != 0)
    return CTL_GUARD_UNCLEAR;
  snprintf (ret_who, WEFT_WHO_MAX, "tcp %.64s", request->address);
  return CTL_GUARD_ADMITTED;
}

/* ---- ZAP ---------------------------------------------------------------- */

typedef struct {
  uint8_t data[256];
  size_t size;
} frame_t;

/* One request whole. 0; WEFT_E_NOT_FOUND: none waits; WEFT_E_MALFORMED: the id stands, if there is one. */
static int receive (ctl_guard_t *self, frame_t frames[FRAMES_MAX], int *ret_count)
{
  int count = 0, status = 0, more = 1;
  while (more) {
    zmq_msg_t part;
    zmq_msg_init (&part);
    if (zmq_msg_recv (&part, self->zap, ZMQ_DONTWAIT) < 0) {
      zmq_msg_close (&part);
      return count == 0 ? WEFT_E_NOT_FOUND : WEFT_E_MALFORMED;
    }
    more = zmq_msg_more (&part);
    size_t size = zmq_msg_size (&part);
    if (count == FRAMES_MAX || size >= sizeof frames[0].data) {
      status = WEFT_E_MALFORMED;
    } else {
      memcpy (frames[count].data, zmq_msg_data (&part), size);
      frames[count].data[size] = 0;
      frames[count++].size = size;
    }
    zmq_msg_close (&part);
  }
  *ret_count = count;
  return status;
}

static ctl_guard_verdict_t judge (ctl_guard_t *self, const frame_t *frames, int count, char *ret_who)
{
  int which = 0;
  *ret_who = 0;
  if (count < 6 || strcmp ((const char *) frames[0].data, ZAP_VERSION) != 0)
    return CTL_GUARD_UNCLEAR;
  while (which < SOCKETS && strcmp ((const char *) frames[2].data, domain[which]) != 0)
    which++;
  if (which == SOCKETS)
    return CTL_GUARD_UNCLEAR;
  ctl_guard_request_t request = {.socket = (weft_endpoint_t) which,
                                 .address = (const char *) frames[3].data,
                                 .mechanism = (const char *) frames[5].data,
                                 .credential = count > 6 ? frames[6].data : NULL,
                                 .credential_size = count > 6 ? frames[6].size : 0};
  self->policy.open = self->stats.accepted - self->closed;
  return ctl_guard_judge (&self->policy, &request, ret_who);
}

static void answer (ctl_guard_t *self, const frame_t *id, ctl_guard_verdict_t verdict, const char *who)
{
  static const char *const code[] = {"200", "400", "400", "300", "500"};
  static const char *const text[] = {"welcome", "key not admitted", "not your controller", "full",
                                     "not understood"};
  const struct {
    const void *data;
    size_t size;
  } parts[] = {{ZAP_VERSION, 3},    {id->data, id->size},
               {code[verdict], 3},  {text[verdict], strlen (text[verdict])},
               {who, strlen (who)}, {"", 0}};
  int count = sizeof parts / sizeof *parts;
  for (int n = 0; n < count; n++)
    if (zmq_send (self->zap, parts[n].data, parts[n].size, ZMQ_DONTWAIT | (n + 1 < count ? ZMQ_SNDMORE : 0)) <
        0)
      return; /* who asked is gone */
}

static int pump_zap (ctl_guard_t *self)
{
  int done = 0;
  for (; done < WEFT_GUARD_BURST; done++) {
    frame_t frames[FRAMES_MAX];
    char who[WEFT_WHO_MAX];
    int count = 0;
    int status = receive (self, frames, &count);
    if (status == WEFT_E_NOT_FOUND)
      break;
    ctl_guard_verdict_t verdict = CTL_GUARD_UNCLEAR; /* G1 */
    *who = 0;
    if (status == 0)
      verdict = judge (self, frames, count, who);
    uint64_t *counter[] = {&self->stats.admitted, &self->stats.unlisted, &self->stats.foreign,
                           &self->stats.full, &self->stats.unclear};
    ++*counter[verdict];
    frame_t none = {{0}, 0};
    answer (self, count > 1 ? &frames[1] : &none, verdict, who);
  }
  return done;
}

/* ---- what happens at the sockets ----------------------------------------- */

static void take_event (ctl_guard_t *self, unsigned event, unsigned value)
{
  switch (event) {
  case ZMQ_EVENT_ACCEPTED:
    self->stats.accepted++;
    break;
  case ZMQ_EVENT_DISCONNECTED:
    self->closed++;
    break;
  case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
    self->finished++;
    break;
  case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH: /* counted by its reason where it was decided */
    self->refused++;
    break;
  case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
    self->stats.broken++;
    break;
  case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
    if (value == EPIPE || value == ECONNRESET)
      self->stats.hung_up++;
    else
      self->stats.silent++;
    break;
  default:
    break;
  }
}

/* Two frames: event and value in the host's byte order, and the endpoint. */
static int pump_monitor (ctl_guard_t *self, void *monitor)
{
  int done = 0;
  for (; monitor && done < WEFT_GUARD_BURST; done++) {
    uint8_t frame[6];
    char endpoint[WEFT_ENDPOINT_MAX];
    uint16_t event;
    uint32_t value;
    int size = zmq_recv (monitor, frame, sizeof frame, ZMQ_DONTWAIT);
    if (size < 0)
      break;
    zmq_recv (monitor, endpoint, sizeof endpoint, ZMQ_DONTWAIT);
    if (size != (int) sizeof frame)
      continue;
    memcpy (&event, frame, sizeof event);
    memcpy (&value, frame + sizeof event, sizeof value);
    take_event (self, event, value);
  }
  return done;
}

int ctl_guard_pump (ctl_guard_t *self)
{
  int done = pump_zap (self);
  for (int n = 0; n < SOCKETS; n++)
    done += pump_monitor (self, self->monitor[n]);
  return done;
}

/* ---- life --------------------------------------------------------------- */

int ctl_guard_new (const char *address, const char *keys, ctl_guard_t **ret_self, char *why, size_t why_size)
{
  ctl_guard_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->policy.ipc = weft_endpoint_directory (address) != NULL;
  self->policy.owner = geteuid ();
  int rc = self->policy.ipc || !keys ? 0 : ctl_keyring_new (keys, &self->policy.keyring, why, why_size);
  if (rc < 0)
    ctl_guard_destroy (&self);
  else
    *ret_self = self;
  return rc;
}

void ctl_guard_destroy (ctl_guard_t **self_p)
{
  ctl_guard_t *self = *self_p;
  if (!self)
    return;
  ctl_guard_close (self);
  ctl_keyring_destroy (&self->policy.keyring);
  free (self);
  *self_p = NULL;
}

int ctl_guard_open (ctl_guard_t *self, void *context)
{
  int linger = 0;
  self->context = context;
  self->zap = zmq_socket (context, ZMQ_REP);
  if (!self->zap || zmq_setsockopt (self->zap, ZMQ_LINGER, &linger, sizeof linger) < 0 ||
      zmq_bind (self->zap, ZAP_PLACE) < 0)
    return WEFT_E_IO;
  return 0;
}

static int set_server (ctl_guard_t *self, void *socket)
{
  int server = 1;
  if (!self->policy.keyring)
    return 0;
  const char *secret = ctl_keyring_own (self->policy.keyring)->secret_key;
  return zmq_setsockopt (socket, ZMQ_CURVE_SERVER, &server, sizeof server) < 0 ||
                 zmq_setsockopt (socket, ZMQ_CURVE_SECRETKEY, secret, WEFT_KEY_TEXT) < 0
             ? WEFT_E_IO
             : 0;
}

int ctl_guard_watch (ctl_guard_t *self, void *socket, weft_endpoint_t which)
{
  char place[48];
  int linger = 0, unlimited = 0, handshake_ms = WEFT_HANDSHAKE_MS, backlog = WEFT_BACKLOG, alive = 1;
  snprintf (place, sizeof place, "inproc://guard-%s", domain[which]);
  if (set_server (self, socket) < 0 ||
      zmq_setsockopt (socket, ZMQ_ZAP_DOMAIN, domain[which], strlen (domain[which])) < 0 ||
      zmq_setsockopt (socket, ZMQ_HANDSHAKE_IVL, &handshake_ms, sizeof handshake_ms) < 0 ||
      zmq_setsockopt (socket, ZMQ_BACKLOG, &backlog, sizeof backlog) < 0 ||
      zmq_setsockopt (socket, ZMQ_TCP_KEEPALIVE, &alive, sizeof alive) < 0 ||
      zmq_socket_monitor (socket, place, EVENTS) < 0)
    return WEFT_E_IO;
  /* Without a water mark: libzmq's own thread must never wait for us to read its events. Their number is
   * bounded by that of connections. */
  void *monitor = self->monitor[which] = zmq_socket (self->context, ZMQ_PAIR);
  if (!monitor || zmq_setsockopt (monitor, ZMQ_LINGER, &linger, sizeof linger) < 0 ||
      zmq_setsockopt (monitor, ZMQ_RCVHWM, &unlimited, sizeof unlimited) < 0 ||
      zmq_connect (monitor, place) < 0)
    return WEFT_E_IO;
  return 0;
}

void ctl_guard_close (ctl_guard_t *self)
{
  for (int n = 0; n < SOCKETS; n++) {
    if (self->monitor[n])
      zmq_close (self->monitor[n]);
    self->monitor[n] = NULL;
  }
  if (self->zap)
    zmq_close (self->zap);
  self->zap = NULL;
}

static int fd_of (void *socket)
{
  int fd = -1;
  size_t size = sizeof fd;
  if (socket)
    zmq_getsockopt (socket, ZMQ_FD, &fd, &size);
  return fd;
}

void ctl_guard_fds (const ctl_guard_t *self, int ret_fds[CTL_GUARD_FDS])
{
  ret_fds[0] = fd_of (self->zap);
  for (int n = 0; n < SOCKETS; n++)
    ret_fds[1 + n] = fd_of (self->monitor[n]);
}

/* ---- what is told -------------------------------------------------------- */

void ctl_guard_throttled (ctl_guard_t *self)
{
  self->stats.throttled++;
}

const ctl_guard_stats_t *ctl_guard_stats (ctl_guard_t *self)
{
  uint64_t accepted = self->stats.accepted;
  self->stats.open = accepted > self->closed ? accepted - self->closed : 0;
  self->stats.unfinished = accepted > self->finished ? accepted - self->finished : 0;
  return &self->stats;
}

int ctl_guard_complaint (ctl_guard_t *self, char *out, size_t size)
{
  const ctl_guard_stats_t *then = &self->told;
  ctl_guard_stats_t now = *ctl_guard_stats (self);
  uint64_t key = now.unlisted - then->unlisted, user = now.foreign - then->foreign,
           full = now.full - then->full;
  uint64_t broken = now.broken - then->broken + now.unclear - then->unclear,
           silent = now.silent - then->silent;
  uint64_t often = now.throttled - then->throttled;
  if (key + user + full + broken + silent + often == 0)
    return 0;
  snprintf (
      out, size,
      "strangers refused: %llu with a key not admitted, %llu of another user, %llu without our protocol or "
      "key, %llu that said nothing, %llu beyond the limit of connections, %llu requests beyond the rate",
      (unsigned long long) key, (unsigned long long) user, (unsigned long long) broken,
      (unsigned long long) silent, (unsigned long long) full, (unsigned long long) often);
  self->told = now;
  return 1;
}
