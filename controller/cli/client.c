/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "../../common/clocks.h"
#include "../../common/keys.h"
#include "../../common/log.h"
#include "../../common/status.h"
#include "../../common/wire.h"
#include "../service/place.h"
#include "progress.h"

#define RETRY_MS 20
#define LOOK_MS  500 /* between two looks whether it is still there */
#define STEP_MS  ((long) CTL_PROGRESS_EVERY_MS)

struct ctl_client_t {
  void *context;
  void *socket;
  char address[WEFT_ENDPOINT_MAX];
  void *monitor; /* of the socket: whether its keys, or ours, are refused */
  int refused, hung_up;
  int gone; /* it was said once; nobody is asked again */
};

static struct {
  char keys[WEFT_KEYS_DIR_MAX];
  int plain_tcp;
} use;

void ctl_client_use (const char *keys, int plain_tcp)
{
  snprintf (use.keys, sizeof use.keys, "%s", keys);
  use.plain_tcp = plain_tcp;
}

void ctl_client_close (ctl_client_t **self_p)
{
  ctl_client_t *self = *self_p;
  if (!self)
    return;
  if (self->socket)
    zmq_close (self->socket);
  if (self->monitor)
    zmq_close (self->monitor);
  if (self->context)
    zmq_ctx_term (self->context);
  free (self);
  *self_p = NULL;
}

static int secure (ctl_client_t *self, const weft_keys_t *keys)
{
  static const char place[] = "inproc://client-monitor";
  if (keys->loaded &&
      (zmq_setsockopt (self->socket, ZMQ_CURVE_SERVERKEY, keys->controller, WEFT_KEY_TEXT) < 0 ||
       zmq_setsockopt (self->socket, ZMQ_CURVE_PUBLICKEY, keys->own.public_key, WEFT_KEY_TEXT) < 0 ||
       zmq_setsockopt (self->socket, ZMQ_CURVE_SECRETKEY, keys->own.secret_key, WEFT_KEY_TEXT) < 0))
    return -1;
  if (zmq_socket_monitor (self->socket, place,
                          ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                              ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) < 0)
    return -1;
  int unlimited = 0;
  self->monitor = zmq_socket (self->context, ZMQ_PAIR);
  return self->monitor && zmq_setsockopt (self->monitor, ZMQ_RCVHWM, &unlimited, sizeof unlimited) == 0
             ? zmq_connect (self->monitor, place)
             : -1;
}

static int connect_to (const char *address, const weft_keys_t *keys, ctl_client_t **ret_self)
{
  char endpoint[WEFT_ENDPOINT_MAX], why[200];
  int rc = weft_endpoint (address, WEFT_ENDPOINT_CONTROL, endpoint, why, sizeof why);
  if (rc < 0)
    return rc;
  ctl_client_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  snprintf (self->address, sizeof self->address, "%s", address);
  int linger = 100, ipv6 = strchr (address, '[') != NULL;
  int64_t frame_max = WEFT_REPLY_MAX;
  self->context = zmq_ctx_new ();
  self->socket = self->context ? zmq_socket (self->context, ZMQ_DEALER) : NULL;
  if (!self->socket || zmq_setsockopt (self->socket, ZMQ_LINGER, &linger, sizeof linger) < 0 ||
      zmq_setsockopt (self->socket, ZMQ_IPV6, &ipv6, sizeof ipv6) < 0 ||
      zmq_setsockopt (self->socket, ZMQ_MAXMSGSIZE, &frame_max, sizeof frame_max) < 0 ||
      secure (self, keys) < 0 || zmq_connect (self->socket, endpoint) < 0) {
    ctl_client_close (&self);
    return WEFT_E_IO;
  }
  *ret_self = self;
  return 0;
}

/* ---- asking ------------------------------------------------------------- */

/* A controller that ended has left a socket nobody listens on. */
static int somebody_listens (const char *address)
{
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  const char *dir = ctl_place_ipc_dir (address);
  if (!dir)
    return 1;
  if ((size_t) snprintf (name.sun_path, sizeof name.sun_path, "%s/control", dir) >= sizeof name.sun_path)
    return 0;
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int rc = fd < 0 ? -1 : connect (fd, (struct sockaddr *) &name, sizeof name);
  if (fd >= 0)
    close (fd);
  return rc == 0;
}

/* The first refusal stands: libzmq would try for ever. One that hangs up does not know our idea of its key, or
 * is on its way down. */
static void note_refusal (ctl_client_t *self)
{
  uint8_t frame[6];
  char endpoint[WEFT_ENDPOINT_MAX];
  while (zmq_recv (self->monitor, frame, sizeof frame, ZMQ_DONTWAIT) == (int) sizeof frame) {
    zmq_recv (self->monitor, endpoint, sizeof endpoint, ZMQ_DONTWAIT);
    uint16_t event;
    memcpy (&event, frame, sizeof event);
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
      self->hung_up = 1;
    else
      self->refused = 1;
  }
}

static int await (ctl_client_t *self, unsigned timeout_ms, ctl_progress_t *progress)
{
  uint64_t now_ns = weft_mono_ns (), look_ns = now_ns + LOOK_MS * WEFT_NS_PER_MS;
  uint64_t end_ns = now_ns + timeout_ms * WEFT_NS_PER_MS;
  for (;; now_ns = weft_mono_ns ()) {
    zmq_pollitem_t items[2] = {{.socket = self->socket, .events = ZMQ_POLLIN},
                               {.socket = self->monitor, .events = ZMQ_POLLIN}};
    long left_ms = now_ns < end_ns ? (long) ((end_ns - now_ns) / WEFT_NS_PER_MS) + 1 : 0;
    int rc = zmq_poll (items, 2, left_ms < STEP_MS ? left_ms : STEP_MS);
    if (rc > 0 && items[0].revents)
      return 0;
    if (rc > 0) {
      note_refusal (self);
      if (self->refused)
        return WEFT_E_DENIED;
    }
    if (rc < 0 && errno != EINTR)
      return WEFT_E_IO;
    if (rc == 0 && left_ms <= STEP_MS)
      return self->hung_up ? WEFT_E_DENIED : WEFT_E_TIMEOUT;
    ctl_progress_say (progress, "waiting for the controller's answer: %.1f s",
                      ctl_progress_seconds (progress));
    if (now_ns < look_ns)
      continue;
    look_ns = now_ns + LOOK_MS * WEFT_NS_PER_MS;
    if (!somebody_listens (self->address))
      return WEFT_E_GONE;
  }
}

/* A whole message: its first frame is the body, fn gets the others. */
static int receive (ctl_client_t *self, ctl_client_frame_fn *fn, void *arg, json_t **ret_body)
{
  int rc = 0, more = 1;
  json_t *body = NULL;
  for (int n = 0; more; n++) {
    zmq_msg_t frame;
    zmq_msg_init (&frame);
    if (zmq_msg_recv (&frame, self->socket, 0) < 0) {
      zmq_msg_close (&frame);
      if (errno == EINTR) {
        n--;
        continue;
      }
      rc = WEFT_E_IO;
      break;
    }
    more = zmq_msg_more (&frame);
    if (n == 0)
      body = json_loadb (zmq_msg_data (&frame), zmq_msg_size (&frame), 0, NULL);
    else if (rc == 0 && fn)
      rc = fn (zmq_msg_data (&frame), zmq_msg_size (&frame), arg);
    zmq_msg_close (&frame);
  }
  if (rc == 0 && !json_is_object (body))
    rc = WEFT_E_MALFORMED;
  if (rc < 0)
    json_decref (body);
  else
    *ret_body = body;
  return rc;
}

static int exchange (ctl_client_t *self, json_t *request, unsigned timeout_ms, ctl_client_frame_fn *fn,
                     void *arg, json_t **ret_body)
{
  char *text = request ? json_dumps (request, JSON_COMPACT) : NULL;
  json_decref (request);
  if (!text)
    return WEFT_E_NOMEM;
  int rc = zmq_send (self->socket, text, strlen (text), ZMQ_DONTWAIT) < 0 ? WEFT_E_IO : 0;
  free (text);
  ctl_progress_t progress;
  ctl_progress_begin (&progress);
  if (rc == 0)
    rc = await (self, timeout_ms, &progress);
  ctl_progress_wipe (&progress);
  return rc < 0 ? rc : receive (self, fn, arg, ret_body);
}

static int status_of (const json_t *body)
{
  const char *name = json_string_value (json_object_get (body, "status"));
#define XX(number, id, text)                                                                                 \
  if (name && strcmp (name, #id) == 0)                                                                       \
    return -(number);
  WEFT_STATUS_MAP (XX)
#undef XX
  return WEFT_E_STATE;
}

static int answer (int rc, json_t *body, json_t **ret_reply)
{
  if (rc == 0 && !json_is_true (json_object_get (body, "ok")))
    rc = status_of (body);
  if (rc == 0 && ret_reply)
    *ret_reply = body;
  else
    json_decref (body);
  return rc;
}

int ctl_client_ask (ctl_client_t *self, json_t *request, ctl_client_frame_fn *fn, void *arg,
                    json_t **ret_reply)
{
  json_t *body = NULL;
  if (self->gone) {
    json_decref (request);
    return WEFT_E_GONE;
  }
  int rc = exchange (self, request, WEFT_REPLY_MS, fn, arg, &body);
  const char *why = json_string_value (json_object_get (body, "why"));
  if (rc < 0 || why)
    ctl_progress_clear ();
  self->gone = rc == WEFT_E_GONE || rc == WEFT_E_TIMEOUT;
  if (rc == WEFT_E_GONE)
    weft_log_error (
        "the controller at %s has ended: what it was told ends with its lease; start it again with this "
        "verb",
        self->address);
  else if (rc == WEFT_E_TIMEOUT)
    weft_log_error (
        "the controller at %s does not answer within %d s: it hangs or is overloaded; end it and try "
        "again",
        self->address, WEFT_REPLY_MS / 1000);
  else if (rc < 0)
    weft_log_error ("the answer of the controller at %s cannot be used: %s", self->address,
                    weft_status_text (rc));
  else if (why)
    weft_log_error ("%s", why);
  return answer (rc, body, ret_reply);
}

int ctl_client_try (ctl_client_t *self, json_t *request, unsigned timeout_ms, json_t **ret_reply)
{
  json_t *body = NULL;
  int rc = exchange (self, request, timeout_ms, NULL, NULL, &body);
  return answer (rc, body, ret_reply);
}

/* ---- finding or starting one -------------------------------------------- */

static int reach (const char *address, const weft_keys_t *keys, ctl_client_t **ret_self)
{
  if (!somebody_listens (address))
    return WEFT_E_NOT_FOUND;
  ctl_client_t *self = NULL;
  int rc = connect_to (address, keys, &self);
  if (rc == 0)
    rc = ctl_client_try (self, json_pack ("{s:s}", "op", "ping"), WEFT_PING_MS, NULL);
  if (rc < 0)
    ctl_client_close (&self);
  else
    *ret_self = self;
  return rc;
}

static int has_store (void)
{
  char dir[480], path[512];
  if (ctl_place_state_dir (dir, sizeof dir) < 0)
    return 0;
  snprintf (path, sizeof path, "%s/weft.db", dir);
  return access (path, F_OK) == 0;
}

static void become_controller (const char *address, int stderr_fd)
{
  int null_fd = open ("/dev/null", O_RDWR | O_CLOEXEC);
  dup2 (null_fd, STDIN_FILENO);
  dup2 (null_fd, STDOUT_FILENO);
  dup2 (stderr_fd, STDERR_FILENO);
  char idle[24];
  snprintf (idle, sizeof idle, "%dms", WEFT_CONTROLLER_IDLE_MS);
  execl ("/proc/self/exe", "weft", "controller", "--background", "--listen", address, "--idle-exit", idle,
         (char *) NULL);
  _exit (127);
}

/* A controller that opens a large store, or a store of before, takes its time. */
static void await_word (int fd, ctl_progress_t *progress)
{
  struct pollfd one = {.fd = fd, .events = POLLIN};
  while (poll (&one, 1, STEP_MS) == 0)
    ctl_progress_say (progress, "a controller starts and opens its store: %.1f s",
                      ctl_progress_seconds (progress));
}

/* Starts one; what it has to say comes back in `said`. */
static int start (const char *address, char *said, size_t said_size)
{
  int fds[2];
  if (pipe2 (fds, O_CLOEXEC) < 0)
    return WEFT_E_IO;
  pid_t child = fork ();
  if (child == 0)
    become_controller (address, fds[1]);
  close (fds[1]);
  size_t have = 0;
  ctl_progress_t progress;
  ctl_progress_begin (&progress);
  for (ssize_t size = 1; child > 0 && (size > 0 || errno == EINTR) && have + 1 < said_size;) {
    await_word (fds[0], &progress);
    size = read (fds[0], said + have, said_size - 1 - have);
    if (size == 0)
      break;
    have += size > 0 ? (size_t) size : 0;
  }
  said[have] = 0;
  ctl_progress_wipe (&progress);
  close (fds[0]);
  int status = 0;
  while (child > 0 && waitpid (child, &status, 0) < 0 && errno == EINTR)
    ;
  return child > 0 && WIFEXITED (status) && WEXITSTATUS (status) == 0 ? 0 : WEFT_E_STATE;
}

static int start_and_reach (const char *address, const weft_keys_t *keys, ctl_client_t **ret_self)
{
  char said[1024] = "";
  int started = start (address, said, sizeof said);
  /* Another verb may have started one at the same moment: then ours could not. */
  uint64_t end_ns = weft_mono_ns () + (started == 0 ? WEFT_AUTOSTART_MS : 1000) * WEFT_NS_PER_MS;
  int rc;
  while ((rc = reach (address, keys, ret_self)) < 0 && weft_mono_ns () < end_ns) {
    struct timespec pause = {.tv_nsec = RETRY_MS * (long) WEFT_NS_PER_MS};
    nanosleep (&pause, NULL);
  }
  if (rc < 0 && *said)
    fputs (said, stderr); /* one line already */
  else if (rc < 0)
    weft_log_error ("no controller could be started at %s; start one with `weft controller` to see why",
                    address);
  return rc;
}

/* Where controllers are started by somebody else, a second one in a gap between two is in the way. */
static int may_start (void)
{
  const char *text = getenv ("WEFT_AUTOSTART");
  return !text || strcmp (text, "no") != 0;
}

static int open_with (const char *address, const weft_keys_t *keys, ctl_client_how_t how,
                      ctl_client_t **ret_self)
{
  int rc = reach (address, keys, ret_self);
  if (rc == 0)
    return 0;
  int local = ctl_place_ipc_dir (address) != NULL;
  if (rc == WEFT_E_NOT_FOUND && local && may_start () &&
      (how == CTL_CLIENT_START || (how == CTL_CLIENT_STORE && has_store ())))
    return start_and_reach (address, keys, ret_self);
  if (rc == WEFT_E_DENIED)
    weft_log_error ("the controller at %s refuses us: %s", address,
                    local ? "it belongs to another user; be that user, or root"
                    : keys->loaded
                        ? "our client.key is not admitted there, or controller.pub is not its key; see "
                          "`weft keys --help`"
                        : "it wants keys, or does not speak our protocol; give --keys DIR");
  else if (rc == WEFT_E_NOT_FOUND)
    weft_log_error (
        "no controller at %s: nobody listens there; start one with `weft controller`, or choose with "
        "--controller",
        address);
  else if (rc == WEFT_E_TIMEOUT)
    weft_log_error (
        "no answer of the controller at %s within %u s: it hangs or is overloaded, or somebody else listens "
        "there; end it, or choose another with --controller",
        address, WEFT_PING_MS / 1000);
  else
    weft_log_error ("no controller at %s: %s; choose with --controller", address, weft_status_text (rc));
  return rc;
}

int ctl_client_keys (const char *address, const char *role, weft_keys_t *ret_keys, char *why, size_t why_size)
{
  *ret_keys = (weft_keys_t){.plain_tcp = use.plain_tcp};
  return weft_keys_for (address, use.keys, role, ret_keys, why, why_size);
}

int ctl_client_open (const char *address, ctl_client_how_t how, ctl_client_t **ret_self)
{
  weft_keys_t keys;
  char why[WEFT_KEYS_DIR_MAX + 300] = "";
  int rc = ctl_client_keys (address, "client", &keys, why, sizeof why);
  if (rc < 0)
    weft_log_error ("cannot connect to %s: %s", address, *why ? why : weft_status_text (rc));
  else
    rc = open_with (address, &keys, how, ret_self);
  weft_keys_clear (&keys);
  return rc;
}
