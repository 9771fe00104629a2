/* SPDX-License-Identifier: Apache-2.0 */
#include "hotspot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../../common/clocks.h"
#include "../../../common/status.h"
#include "hsperf.h"

#define OPTIONS_MAX    131072 /* bytes of command line and environment searched for flags */
#define POLL_MS        2
#define FLAG_NO_ATTACH "+DisableAttachMechanism"

static void socket_path (const car_target_t *target, char *out, size_t size)
{
  snprintf (out, size, "/proc/%d/root/tmp/.java_pid%d", (int) target->pid, (int) target->nspid);
}

static int socket_is_there (const car_target_t *target)
{
  char path[96];
  struct stat info;
  socket_path (target, path, sizeof path);
  return lstat (path, &info) == 0 && S_ISSOCK (info.st_mode) &&
         (info.st_uid == target->uid || info.st_uid == 0);
}

char car_hotspot_capability (const car_target_t *target)
{
  char room[1024], path[256], value[80];
  struct passwd entry, *found = NULL;
  if (getpwuid_r (target->uid, &entry, room, sizeof room, &found) != 0 || !found)
    return 0;
  snprintf (path, sizeof path, "/proc/%d/root/tmp/hsperfdata_%s/%d", (int) target->pid, found->pw_name,
            (int) target->nspid);
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0)
    return 0;
  char *image = malloc (CAR_HSPERF_MAX);
  ssize_t size = image ? read (fd, image, CAR_HSPERF_MAX) : -1;
  close (fd);
  int status = size > 0
                   ? car_hsperf_string (image, (size_t) size, "sun.rt.jvmCapabilities", value, sizeof value)
                   : WEFT_E_NOT_FOUND;
  free (image);
  return status == 0 ? value[0] : 0;
}

int car_hotspot_has_flag (pid_t pid, const char *flag)
{
  static const char *const files[] = {"cmdline", "environ"};
  int found = 0;
  char *text = malloc (OPTIONS_MAX);
  for (unsigned i = 0; text && i < 2 && !found; i++) {
    ssize_t size = car_target_read (pid, files[i], text, OPTIONS_MAX);
    found = size > 0 && memmem (text, (size_t) size, flag, strlen (flag)) != NULL;
  }
  free (text);
  return found;
}

int car_hotspot_check (const car_target_t *target, char *why, size_t why_size)
{
  char capability = car_hotspot_capability (target);
  if (capability == '0' || (capability == 0 && car_hotspot_has_flag (target->pid, FLAG_NO_ATTACH))) {
    snprintf (why, why_size,
              "started with -XX:" FLAG_NO_ATTACH "; restart without it or start it with `weft run`");
    return WEFT_E_UNSUPPORTED;
  }
  if (!socket_is_there (target) && !(target->signals_caught & 1ull << (SIGQUIT - 1))) {
    snprintf (why, why_size,
              "it has no attach socket and does not catch SIGQUIT (still starting, or its signals were "
              "replaced); try again, or start it with `weft run`");
    return WEFT_E_UNSUPPORTED;
  }
  if (car_hotspot_has_flag (target->pid, "-XX:-EnableDynamicAgentLoading")) {
    snprintf (why, why_size,
              "started with -XX:-EnableDynamicAgentLoading; restart without it or start it with `weft run`");
    return WEFT_E_UNSUPPORTED;
  }
  return 0;
}

/* The JVM talks to its own user and group, or to root. */
static void become (uid_t uid, gid_t gid)
{
  if (setegid (gid) < 0 || seteuid (uid) < 0)
    return; /* not root: the check of the JVM decides */
}

static int make_trigger (const car_target_t *target, char path[96])
{
  static const char *const places[] = {"cwd", "root/tmp"};
  for (unsigned i = 0; i < 2; i++) {
    snprintf (path, 96, "/proc/%d/%s/.attach_pid%d", (int) target->pid, places[i], (int) target->nspid);
    unlink (path); /* left behind by somebody; it has no content */
    int fd = open (path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0660);
    if (fd >= 0) {
      close (fd);
      return 0;
    }
  }
  return WEFT_E_IO;
}

/* Makes the JVM open its attach socket. */
static int wake_listener (const car_target_t *target, int pidfd, char *why, size_t why_size)
{
  char path[96];
  uint64_t until_ns = weft_mono_ns () + CAR_HOTSPOT_WAIT_MS * WEFT_NS_PER_MS;
  if (make_trigger (target, path) < 0) {
    snprintf (why, why_size,
              "neither its working directory nor its /tmp can be written (%s); make one writable",
              strerror (errno));
    return WEFT_E_DENIED;
  }
  int status = car_target_is_same (target) ? 0 : WEFT_E_STATE;
  if (status == 0 && syscall (SYS_pidfd_send_signal, pidfd, SIGQUIT, NULL, 0) < 0)
    status = WEFT_E_GONE;
  while (status == 0 && !socket_is_there (target)) {
    struct pollfd gone = {.fd = pidfd, .events = POLLIN};
    if (poll (&gone, 1, POLL_MS) == 1)
      status = WEFT_E_GONE;
    else if (weft_mono_ns () > until_ns)
      status = WEFT_E_TIMEOUT;
  }
  unlink (path); /* H2 */
  if (status == WEFT_E_STATE)
    snprintf (why, why_size, CAR_TARGET_CHANGED);
  else if (status == WEFT_E_GONE)
    snprintf (why, why_size, "it ended meanwhile; look for its successor with `weft profile`");
  else if (status < 0)
    snprintf (why, why_size,
              "it did not open its attach socket within %d s (stopped, or at a long safepoint); "
              "try again",
              CAR_HOTSPOT_WAIT_MS / 1000);
  return status;
}

static int open_socket (const car_target_t *target, char *why, size_t why_size)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct timeval wait = {.tv_sec = CAR_HOTSPOT_WAIT_MS / 1000};
  struct ucred peer;
  socklen_t size = sizeof peer;
  socket_path (target, address.sun_path, sizeof address.sun_path);
  int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return WEFT_E_IO;
  setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  setsockopt (fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
  if (connect (fd, (struct sockaddr *) &address, sizeof address) < 0) {
    snprintf (why, why_size,
              "its attach socket cannot be reached (%s); try again, or start it with `weft run`",
              strerror (errno));
    close (fd);
    return WEFT_E_IO;
  }
  if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid != target->pid) {
    snprintf (why, why_size, "the socket /tmp/.java_pid%d belongs to process %d, not to it; remove that file",
              (int) target->nspid, (int) peer.pid);
    close (fd);
    return WEFT_E_DENIED;
  }
  return fd;
}

/* The whole answer, terminated. */
static int ask (int fd, const char *request, size_t size, char *answer, char *why, size_t why_size)
{
  uint64_t until_ns = weft_mono_ns () + CAR_HOTSPOT_WAIT_MS * WEFT_NS_PER_MS;
  size_t at = 0;
  if (send (fd, request, size, MSG_NOSIGNAL) != (ssize_t) size)
    return WEFT_E_IO;
  while (at < CAR_HOTSPOT_ANSWER_MAX - 1) {
    ssize_t got = recv (fd, answer + at, CAR_HOTSPOT_ANSWER_MAX - 1 - at, 0);
    if (got < 0 && errno == EINTR && weft_mono_ns () < until_ns)
      continue;
    if (got < 0 || weft_mono_ns () > until_ns) {
      snprintf (why, why_size, "it took the request but did not answer within %d s; try again",
                CAR_HOTSPOT_WAIT_MS / 1000);
      return WEFT_E_TIMEOUT;
    }
    if (got == 0)
      break;
    at += (size_t) got;
  }
  answer[at] = '\0';
  return 0;
}

int car_hotspot_answer (const char *answer, char *why, size_t why_size)
{
  static const char code[] = "return code: ";
  /* The status in the first line says that the request was understood; since
   * JDK 21 it is 0 even where nothing was loaded. */
  const char *at = strstr (answer, code);
  if (at && strtol (at + sizeof code - 1, NULL, 10) == 0)
    return 0;
  if (at) {
    snprintf (why, why_size, "the probe refused to start there (%ld); restart it under `weft run`",
              strtol (at + sizeof code - 1, NULL, 10));
    return WEFT_E_UNSUPPORTED;
  }
  if (strstr (answer, "EnableDynamicAgentLoading") ||
      strstr (answer, "Dynamic agent loading is not enabled")) {
    snprintf (why, why_size,
              "started with -XX:-EnableDynamicAgentLoading; restart without it or start it with `weft run`");
    return WEFT_E_UNSUPPORTED;
  }
  const char *text = strchr (answer, '\n');
  text = text ? text + strspn (text, "\n ") : answer;
  int size = (int) strcspn (text, "\n");
  if (size == 0)
    snprintf (why, why_size, "it closed the connection without an answer; try again, or use `weft run`");
  else
    snprintf (why, why_size, "it said \"%.*s\"; start it with `weft run`", size < 200 ? size : 200, text);
  return WEFT_E_UNSUPPORTED;
}

static int speak (const car_target_t *target, int pidfd, const char *library, char *why, size_t why_size)
{
  char request[CAR_HOTSPOT_REQUEST_MAX];
  int size = snprintf (request, sizeof request, "1%cload%c%s%ctrue%c%c", 0, 0, library, 0, 0, 0);
  if (size >= (int) sizeof request) {
    snprintf (why, why_size, "the path of the probe library is too long (%s); install weft elsewhere",
              library);
    return WEFT_E_RANGE;
  }
  if (!socket_is_there (target)) {
    int status = wake_listener (target, pidfd, why, why_size);
    if (status < 0)
      return status;
  }
  int fd = open_socket (target, why, why_size);
  if (fd < 0)
    return fd;
  char *answer = malloc (CAR_HOTSPOT_ANSWER_MAX);
  if (!answer)
    snprintf (why, why_size, CAR_NO_MEMORY);
  int status = answer ? ask (fd, request, (size_t) size, answer, why, why_size) : WEFT_E_NOMEM;
  close (fd);
  if (status == 0)
    status = car_hotspot_answer (answer, why, why_size);
  free (answer);
  return status;
}

/* The JVM opens the path in its own mount namespace: it must be the same file. */
static int same_file_there (const car_target_t *target, const char *library)
{
  char path[CAR_PATH_MAX + 64];
  struct stat here, there;
  snprintf (path, sizeof path, "/proc/%d/root%s", (int) target->pid, library);
  return stat (library, &here) == 0 && stat (path, &there) == 0 && here.st_dev == there.st_dev &&
         here.st_ino == there.st_ino;
}

int car_hotspot_load (const car_target_t *target, int pidfd, const char *library, char *why, size_t why_size)
{
  if (!same_file_there (target, library)) {
    snprintf (why, why_size,
              "it lives in another mount namespace and does not see %s; mount that file there too", library);
    return WEFT_E_UNSUPPORTED;
  }
  int status = car_target_await_continued (target->pid, CAR_TARGET_STOPPED_MS); /* H4 */
  if (status < 0) {
    snprintf (why, why_size, CAR_TARGET_STOPPED, (int) target->pid);
    return status;
  }
  uid_t uid = geteuid ();
  gid_t gid = getegid ();
  snprintf (why, why_size, "its attach socket failed (%s); try again", weft_status_text (WEFT_E_IO));
  become (target->uid, target->gid);
  status = speak (target, pidfd, library, why, why_size);
  if (seteuid (uid) < 0 || setegid (gid) < 0)
    return WEFT_E_DENIED;
  return status;
}
