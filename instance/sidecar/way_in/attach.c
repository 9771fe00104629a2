/* SPDX-License-Identifier: Apache-2.0 */
#include "attach.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../common/clocks.h"
#include "../../../common/ids.h"
#include "../../../common/log.h"
#include "../../../common/status.h"
#include "../background.h"
#include "../claim.h"
#include "../paths.h"
#include "../tree.h"
#include "check.h"
#include "hotspot.h"
#include "ptrace.h"

#define LEAVING_POLL_MS 2

/* What a sidecar tells the foreground; one write, smaller than PIPE_BUF. */
typedef struct {
  int joined;              /* 1: by this sidecar; 2: was joined before; 0: see text */
  unsigned ms, stopped_us; /* in all; and how long a thread of it was held */
  uint8_t instance[WEFT_UUID_SIZE];
  char vm[16], version[WEFT_VM_VERSION_MAX], service[WEFT_SERVICE_MAX];
  char text[CAR_WHY_MAX + 128];
} result_t;

typedef struct {
  int fd;
  result_t result;
} teller_t;

/* What the foreground waits for. */
typedef struct {
  pid_t pid;
  uint64_t began_ns;
  int shown; /* stderr is a terminal, and nobody parses what is printed */
} waiting_t;

static void tell (teller_t *teller)
{
  if (teller->fd < 0)
    return;
  ssize_t done = write (teller->fd, &teller->result, sizeof teller->result);
  (void) done; /* nobody listens any more: the sidecar works on */
  close (teller->fd);
  teller->fd = -1;
}

static void set_target (result_t *result, const car_target_t *target)
{
  memcpy (result->vm, target->vm, sizeof result->vm);
  memcpy (result->version, target->version, sizeof result->version);
  memcpy (result->service, target->service, sizeof result->service);
}

static void on_listed (void *arg, const car_target_t *target, int answered)
{
  teller_t *teller = arg;
  (void) answered; /* a controller may come later */
  set_target (&teller->result, target);
  tell (teller);
}

/* Brings the probe in if it is not there, and finds its memory. */
static int enter (const car_target_t *target, car_way_t way, int pidfd, shm_reader_t **ret_reader,
                  unsigned *ret_stopped_us, char *why, size_t why_size)
{
  char library[CAR_PATH_MAX] = "";
  int status = 0;
  if (way == CAR_WAY_HOTSPOT || way == CAR_WAY_PTRACE)
    status = car_paths_probe (library, sizeof library, why, why_size);
  if (status == 0 && way == CAR_WAY_HOTSPOT)
    status = car_hotspot_load (target, pidfd, library, why, why_size);
  if (status == 0 && way == CAR_WAY_PTRACE)
    status = car_ptrace_load (target, pidfd, library, ret_stopped_us, why, why_size);
  if (status < 0)
    return status;
  status = car_claim_await (target->pid, pidfd, NULL, CAR_ATTACH_PROBE_MS, ret_reader);
  if (status < 0)
    snprintf (why, why_size,
              "the probe was loaded but its memory is unusable (%s); restart it under `weft run`",
              weft_status_text (status));
  return status;
}

/* A sidecar that has left the process says so before it lets go of the probe: who is told of it and joins
 * again at once would find it joined. */
static void check_when_left (const car_target_t *target, int any, car_check_t *check)
{
  uint64_t until_ns = weft_mono_ns () + CAR_ATTACH_LEAVING_MS * WEFT_NS_PER_MS;
  car_check (target, any, check);
  while (check->way == CAR_WAY_JOINED && check->leaving && weft_mono_ns () < until_ns) {
    poll (NULL, 0, LEAVING_POLL_MS);
    car_check (target, any, check);
  }
}

/* The sidecar's process, from here to its end. */
static void work (const car_attach_options_t *options, pid_t pid, teller_t *teller)
{
  uint64_t began_ns = weft_mono_ns ();
  result_t *result = &teller->result;
  car_target_t target;
  car_check_t check;
  shm_reader_t *reader = NULL;
  char why[CAR_WHY_MAX] = "";
  int pidfd = (int) syscall (SYS_pidfd_open, pid, 0);
  if (pidfd < 0 || car_target_identify (pid, options->service, &target) < 0) {
    snprintf (result->text, sizeof result->text,
              "no process has the pid %d; `weft profile` without a pid lists what can be joined", (int) pid);
    return;
  }
  check_when_left (&target, options->any, &check);
  set_target (result, &target);
  if (check.way == CAR_WAY_JOINED && check.leaving) {
    car_check_line (&target, "its last sidecar is still leaving it; try again", result->text,
                    sizeof result->text);
    return;
  }
  if (check.way == CAR_WAY_JOINED) {
    result->joined = 2;
    memcpy (result->instance, check.instance, WEFT_UUID_SIZE);
    if (check.service[0])
      memcpy (result->service, check.service, sizeof result->service);
    return;
  }
  int status = check.way == CAR_WAY_NONE
                   ? WEFT_E_UNSUPPORTED
                   : enter (&target, check.way, pidfd, &reader, &result->stopped_us, why, sizeof why);
  if (status < 0) {
    car_check_line (&target, check.way == CAR_WAY_NONE ? check.why : why, result->text, sizeof result->text);
    return;
  }
  status = car_claim_take (reader, NULL, result->instance);
  if (status < 0) {
    result->joined = status == WEFT_E_BUSY ? 2 : 0;
    car_check_line (&target, "another sidecar was quicker; try again", result->text, sizeof result->text);
    shm_reader_destroy (&reader);
    return;
  }
  result->joined = 1;
  result->ms = (unsigned) ((weft_mono_ns () - began_ns) / WEFT_NS_PER_MS);
  car_session_options_t session = {.pid = pid,
                                   .pidfd = pidfd,
                                   .service = options->service,
                                   .controller = options->controller,
                                   .keys = options->keys,
                                   .listed = on_listed,
                                   .listed_arg = teller};
  status = car_tree_run (&session, NULL, &reader, result->instance, why, sizeof why);
  if (status < 0 && teller->fd >= 0) {
    result->joined = 0;
    snprintf (result->text, sizeof result->text, "cannot report on %d: %s", (int) pid, why);
  }
}

/* Starts one sidecar; the read end of its pipe, or a status. */
static int start (const car_attach_options_t *options, pid_t pid)
{
  int ends[2];
  if (pipe2 (ends, O_CLOEXEC) < 0)
    return WEFT_E_IO;
  int here = car_background (pid, &ends[1], 1);
  if (here == 0) {
    teller_t teller = {.fd = ends[1]};
    work (options, pid, &teller);
    tell (&teller);
    _exit (0);
  }
  close (ends[1]);
  if (here < 0) {
    close (ends[0]);
    return here;
  }
  return ends[0];
}

/* One that takes long is named to whoever sits there. 1: something stands on the line. */
static int say_joining (const waiting_t *waiting, uint64_t now_ns)
{
  uint64_t ms = (now_ns - waiting->began_ns) / WEFT_NS_PER_MS;
  if (!waiting->shown || ms < CAR_ATTACH_SAY_MS)
    return 0;
  fprintf (stderr, "\r\033[Kjoining %d: %.1f s", (int) waiting->pid, (double) ms / 1000);
  return 1;
}

static int receive (int fd, const waiting_t *waiting, result_t *ret_result)
{
  uint64_t until_ns = weft_mono_ns () + CAR_ATTACH_WAIT_MS * WEFT_NS_PER_MS;
  int said = 0, rc = WEFT_E_TIMEOUT;
  for (uint64_t now; rc == WEFT_E_TIMEOUT && (now = weft_mono_ns ()) < until_ns;) {
    struct pollfd item = {.fd = fd, .events = POLLIN};
    if (poll (&item, 1, CAR_ATTACH_STEP_MS) < 1) {
      said |= say_joining (waiting, now);
      continue;
    }
    ssize_t got = read (fd, ret_result, sizeof *ret_result);
    if (got < 0 && errno == EINTR)
      continue;
    rc = got == (ssize_t) sizeof *ret_result ? 0 : WEFT_E_GONE;
  }
  if (said)
    fputs ("\r\033[K", stderr);
  return rc;
}

static void print_joined (const car_attach_options_t *options, pid_t pid, const result_t *result)
{
  char uuid[37];
  weft_uuid_put (uuid, result->instance);
  if (!options->json) {
    fprintf (options->out, "%s %d %s (%s %s) as %s in %u ms\n",
             result->joined == 2 ? "already joined" : "joined", (int) pid, result->service,
             car_target_vm_name (result->vm), result->version, uuid, result->ms);
    return;
  }
  json_t *line =
      json_pack ("{s:i, s:s, s:s, s:s, s:s, s:i, s:i, s:b}", "pid", (int) pid, "instance", uuid, "vm",
                 result->vm, "version", result->version, "service", result->service, "joined_ms",
                 (int) result->ms, "stopped_us", (int) result->stopped_us, "already", result->joined == 2);
  if (!line)
    return;
  json_dumpf (line, options->out, JSON_COMPACT);
  fputc ('\n', options->out);
  json_decref (line);
}

unsigned car_attach (const car_attach_options_t *options, const pid_t *pids, unsigned count)
{
  int fd[CAR_ATTACH_PIDS_MAX];
  unsigned failed = 0;
  waiting_t waiting = {.shown = !options->json && isatty (STDERR_FILENO), .began_ns = weft_mono_ns ()};
  for (unsigned i = 0; i < count; i++)
    fd[i] = start (options, pids[i]);
  for (unsigned i = 0; i < count; i++) {
    result_t result;
    waiting.pid = pids[i];
    int status = fd[i] < 0 ? fd[i] : receive (fd[i], &waiting, &result);
    if (fd[i] >= 0)
      close (fd[i]);
    if (status == 0 && result.joined) {
      print_joined (options, pids[i], &result);
      continue;
    }
    failed++;
    if (status == 0)
      weft_log_error ("%s", result.text);
    else
      weft_log_error ("cannot join %d: its sidecar did not start (%s); see WEFT_LOG=/path/of/a/file",
                      (int) pids[i], weft_status_text (status));
  }
  fflush (options->out);
  return failed;
}
