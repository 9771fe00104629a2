/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/log.h"
#include "../../common/status.h"
#include "arm.h"
#include "bus.h"
#include "claim.h"
#include "drain.h"

#define PENDING_TICK_MS 2   /* the probe answers a configuration within a few of these */
#define PENDING_SLOW_MS 20  /* one that does not is looked at less often */
#define THREAD_WAIT_MS  200 /* between "left" and the end of the probe's thread */
#define PROBE_THREAD    "weft-probe"
#define COLLECTS_MAX    (SHM_SPOOL_SLOTS * 2) /* drains in a row until the rings are empty */

typedef enum { WORKING, LEAVING, CLOSING, DONE } phase_t;

typedef struct {
  const car_session_options_t *options;
  car_target_t target;
  shm_reader_t *reader;
  uint8_t instance[WEFT_UUID_SIZE], start[WEFT_UUID_SIZE], boot[WEFT_UUID_SIZE];
  char host[WEFT_HOST_MAX], service[WEFT_SERVICE_MAX], service_topic[WEFT_TOPIC_MAX];
  uint8_t controller[WEFT_UUID_SIZE];
  car_bus_t *bus;
  car_arm_t *arm;
  car_drain_t *drain;
  int signals;
  phase_t phase;
  int gone; /* the process has ended */
  char reason[16];
  uint64_t image;
  int hello_due, ack_due, bye_due, blocked, listed;
  int more;    /* the last look at the rings left something in them */
  int emptied; /* closing: everything was acknowledged */
  int told;    /* to end, by a signal */
  uint64_t drain_next_ns, hello_pause_ms, hello_next_ns, ack_next_ns, look_next_ns, image_next_ns;
  uint64_t began_ns, young_until_ns, phase_until_ns, left_ns;
} session_t;

static uint64_t after (uint64_t now, uint64_t ms)
{
  return now + ms * WEFT_NS_PER_MS;
}

static int is_active (session_t *self)
{
  shm_status_t status;
  shm_reader_status (self->reader, &status);
  return status.actions != 0;
}

/* ---- what is said to the controller -------------------------------------- */

static int push_up (session_t *self, weft_up_message_t *message)
{
  void *data;
  size_t size;
  memcpy (message->instance, self->instance, WEFT_UUID_SIZE);
  memcpy (message->start, self->start, WEFT_UUID_SIZE);
  message->epoch = car_arm_epoch (self->arm);
  int status = weft_up_pack (message, &data, &size);
  if (status < 0)
    return status;
  status = car_bus_push (self->bus, data, size);
  free (data);
  if (status < 0)
    self->blocked = 1;
  return status;
}

static void set_counters (session_t *self, weft_up_message_t *message)
{
  shm_status_t status;
  shm_reader_status (self->reader, &status);
  const uint64_t *counter = status.counter;
  message->active = status.actions;
  message->bytes_total = counter[SHM_COUNT_BYTES_TOTAL];
  message->bytes_spoken = counter[SHM_COUNT_BYTES_SPOKEN];
  message->connections_given_up = counter[SHM_COUNT_GIVEN_UP_OTHER] + counter[SHM_COUNT_GIVEN_UP_FRAMING] +
                                  counter[SHM_COUNT_GIVEN_UP_TUNNEL] + counter[SHM_COUNT_GIVEN_UP_PROOF] +
                                  counter[SHM_COUNT_GIVEN_UP_BUSY];
  message->requests_bare = counter[SHM_COUNT_BARE];
  message->requests_excluded = counter[SHM_COUNT_EXCLUDED];
  shm_reader_rest (self->reader, message->rest);
  message->events_written = car_drain_written (self->drain);
  message->requests_in = counter[SHM_COUNT_REQUESTS_IN];
  message->requests_unmatched = counter[SHM_COUNT_UNMATCHED];
  message->slots_written = status.slots_written;
  message->slots_restored = status.slots_restored;
  message->slots_foreign = status.slots_foreign;
}

static void say_hello (session_t *self, uint64_t now)
{
  if (!self->hello_due || now < self->hello_next_ns)
    return;
  weft_up_message_t message = {.kind = WEFT_UP_HELLO, .pid = self->target.pid};
  memcpy (message.boot, self->boot, WEFT_UUID_SIZE);
  snprintf (message.vm, sizeof message.vm, "%s", self->target.vm);
  snprintf (message.version, sizeof message.version, "%s", self->target.version);
  snprintf (message.service, sizeof message.service, "%s", self->target.service);
  snprintf (message.host, sizeof message.host, "%s", self->host);
  snprintf (message.listens, sizeof message.listens, "%s", self->target.listens);
  if (push_up (self, &message) < 0)
    return;
  car_arm_said_hello (self->arm, now);
  self->hello_next_ns = after (now, self->hello_pause_ms);
  if (self->hello_pause_ms < CAR_SESSION_HELLO_MAX_MS)
    self->hello_pause_ms *= 2;
}

static void say_ack (session_t *self, uint64_t now)
{
  if (now >= self->ack_next_ns)
    self->ack_due = 1;
  if (!self->ack_due || !car_arm_in_force (self->arm))
    return;
  weft_up_message_t message = {.kind = WEFT_UP_ACK};
  set_counters (self, &message);
  if (push_up (self, &message) < 0)
    return;
  if (message.active)
    shm_wake (self->reader); /* what quiet connections move until then is in the next one */
  self->ack_due = 0;
  self->ack_next_ns = after (now, CAR_SESSION_ACK_MS);
}

static unsigned count_threads (pid_t pid)
{
  char path[64], file[320], comm[32];
  unsigned count = 0;
  snprintf (path, sizeof path, "/proc/%d/task", (int) pid);
  DIR *dir = opendir (path);
  struct dirent *entry;
  while (dir && (entry = readdir (dir))) {
    if (entry->d_name[0] == '.')
      continue;
    snprintf (file, sizeof file, "task/%s/comm", entry->d_name);
    if (car_target_read (pid, file, comm, sizeof comm) > 0)
      count += strncmp (comm, PROBE_THREAD, sizeof PROBE_THREAD - 1) == 0;
  }
  if (dir)
    closedir (dir);
  return count;
}

static void say_bye (session_t *self)
{
  if (!self->bye_due)
    return;
  weft_up_message_t message = {.kind = WEFT_UP_BYE};
  set_counters (self, &message);
  message.active = 0;
  message.threads_left = self->gone ? 0 : count_threads (self->target.pid);
  if (strcmp (self->reason, "exited") == 0) /* what it had rewritten went with it */
    message.slots_written = message.slots_restored = message.slots_foreign = 0;
  snprintf (message.reason, sizeof message.reason, "%s", self->reason);
  if (push_up (self, &message) == 0)
    self->bye_due = 0;
}

/* ---- what the process is -------------------------------------------------- */

static void request_hello (session_t *self, uint64_t now)
{
  self->hello_due = 1;
  self->hello_pause_ms = CAR_SESSION_HELLO_MS;
  if (self->hello_next_ns > after (now, CAR_SESSION_HELLO_MS))
    self->hello_next_ns = after (now, CAR_SESSION_HELLO_MS);
}

/* Name, version and ports as they are now; a HELLO when they have changed. */
static void look_at_target (session_t *self, uint64_t now)
{
  car_target_t target;
  if (car_target_identify (self->options->pid, self->service, &target) < 0)
    return;
  const shm_head_t *head = shm_reader_base (self->reader);
  char vm[sizeof head->vm + 1] = "", version[sizeof head->vm_version + 1] = "";
  memcpy (vm, head->vm, sizeof head->vm);
  memcpy (version, head->vm_version, sizeof head->vm_version);
  if (!target.vm[0])
    snprintf (target.vm, sizeof target.vm, "%.15s", vm);
  version[strspn (version, "0123456789.")] = '\0'; /* "3.11.7 (main, …)" */
  if (strcmp (target.vm, vm) == 0 && strlen (version) > strlen (target.version) &&
      strncmp (version, target.version, strlen (target.version)) == 0)
    snprintf (target.version, sizeof target.version, "%.47s", version);
  int same = strcmp (target.vm, self->target.vm) == 0 && strcmp (target.version, self->target.version) == 0 &&
             strcmp (target.service, self->target.service) == 0 &&
             strcmp (target.listens, self->target.listens) == 0;
  self->target = target;
  if (same)
    return;
  char topic[WEFT_TOPIC_MAX];
  weft_topic_service (topic, target.service);
  if (strcmp (topic, self->service_topic) != 0) {
    car_bus_subscribe (self->bus, topic);
    if (self->service_topic[0])
      car_bus_unsubscribe (self->bus, self->service_topic);
    memcpy (self->service_topic, topic, sizeof topic);
  }
  request_hello (self, now);
}

static void take_probe (session_t *self)
{
  memcpy (self->start, ((const shm_head_t *) shm_reader_base (self->reader))->start, WEFT_UUID_SIZE);
  car_claim_service (self->reader, self->options->service, self->service);
  self->image = car_target_image (self->options->pid);
}

static void collect_all (session_t *self)
{
  for (unsigned i = 0; i < COLLECTS_MAX && car_drain_collect (self->drain, self->options->pid) == 0; i++)
    if (car_drain_push (self->drain, car_bus_push, self->bus, weft_mono_ns ()) < 0)
      break;
}

static void end_phase (session_t *self, phase_t phase, uint64_t now, uint64_t patience_ms)
{
  self->phase = phase;
  self->phase_until_ns = after (now, patience_ms);
}

static void begin_closing (session_t *self, const char *reason, uint64_t now)
{
  snprintf (self->reason, sizeof self->reason, "%s", reason);
  collect_all (self);
  car_drain_repush (self->drain); /* a controller that was away may have come back; nothing is to wait for */
  self->bye_due = 1;
  end_phase (self, CLOSING, now,
             strcmp (reason, "exited") == 0 && !self->told ? CAR_SESSION_GONE_MS : CAR_SESSION_CLOSE_MS);
}

static void begin_leaving (session_t *self, uint64_t now)
{
  if (self->phase != WORKING)
    return;
  shm_command (self->reader, SHM_COMMAND_LEAVE);
  self->left_ns = 0;
  end_phase (self, LEAVING, now, CAR_SESSION_LEAVE_MS);
}

/* The process runs another program now: what the old probe left is told, then
 * the session goes on with the probe of the new image, if one comes. */
static void follow_exec (session_t *self, uint64_t now)
{
  collect_all (self);
  car_drain_push (self->drain, car_bus_push, self->bus, now);
  shm_reader_t *next = NULL;
  if (car_claim_await (self->options->pid, self->options->pidfd, self->start, CAR_SESSION_EXEC_MS, &next) <
          0 ||
      car_claim_take (next, self->instance, self->instance) < 0) {
    shm_reader_destroy (&next);
    begin_closing (self, "exited", weft_mono_ns ());
    return;
  }
  car_drain_t *drain;
  if (car_drain_new (next, self->instance, self->boot, &drain) < 0) {
    shm_reader_destroy (&next);
    begin_closing (self, "lost", weft_mono_ns ());
    return;
  }
  car_drain_destroy (&self->drain);
  shm_reader_destroy (&self->reader);
  self->reader = next;
  self->drain = drain;
  now = weft_mono_ns ();
  take_probe (self);
  car_arm_forget_probe (self->arm);
  self->young_until_ns = after (now, CAR_SESSION_YOUNG_MS);
  look_at_target (self, now);
  request_hello (self, now);
}

static void watch_process (session_t *self, uint64_t now)
{
  int young = now < self->young_until_ns;
  if (now >= self->image_next_ns) {
    self->image_next_ns = after (now, young ? CAR_SESSION_YOUNG_TICK_MS : CAR_SESSION_TICK_MS);
    uint64_t image = car_target_image (self->options->pid);
    if (image && self->image && image != self->image) {
      follow_exec (self, now);
      return;
    }
    if (image)
      self->image = image;
  }
  if (now >= self->look_next_ns) {
    look_at_target (self, now);
    self->look_next_ns = after (now, young ? CAR_SESSION_YOUNG_TICK_MS * 5 : CAR_SESSION_LOOK_MS);
  }
}

/* ---- what comes in --------------------------------------------------------- */

static void meet_controller (session_t *self, const uint8_t uuid[WEFT_UUID_SIZE], uint64_t now)
{
  if (memcmp (self->controller, uuid, WEFT_UUID_SIZE) == 0)
    return;
  memcpy (self->controller, uuid, WEFT_UUID_SIZE);
  car_drain_repush (self->drain);
  request_hello (self, now);
}

static void take_message (session_t *self, weft_bus_message_t *message, int alone, uint64_t now)
{
  switch (message->kind) {
  case WEFT_BUS_HEARTBEAT:
    meet_controller (self, message->controller, now);
    if (car_arm_take_heartbeat (self->arm, message, now))
      request_hello (self, now);
    break;
  case WEFT_BUS_STATE:
    meet_controller (self, message->controller, now);
    car_arm_take_state (self->arm, message, alone, now);
    if (alone)
      self->hello_due = 0;
    break;
  case WEFT_BUS_BATCH_ACK:
    meet_controller (self, message->controller, now);
    if (alone)
      car_drain_acked (self->drain, message->start, message->number, now);
    break;
  case WEFT_BUS_LEAVE:
    if (alone)
      begin_leaving (self, now);
    break;
  }
}

static void take_messages (session_t *self, uint64_t now)
{
  weft_bus_message_t message;
  int alone;
  while (car_bus_receive (self->bus, &message, &alone) == 0) {
    take_message (self, &message, alone, now);
    weft_bus_clear (&message);
  }
}

static void take_signal (session_t *self, uint64_t now)
{
  struct signalfd_siginfo info;
  if (read (self->signals, &info, sizeof info) != (ssize_t) sizeof info)
    return;
  self->told = 1;
  if (self->phase == CLOSING)
    self->phase_until_ns = now;
  begin_leaving (self, now);
}

/* ---- the loop --------------------------------------------------------------- */

static void tell_listed (session_t *self, uint64_t now)
{
  int answered = car_arm_has_state (self->arm);
  if (self->listed || (!answered && now < after (self->began_ns, CAR_SESSION_LISTED_MS)))
    return;
  self->listed = 1;
  if (self->options->listed)
    self->options->listed (self->options->listed_arg, &self->target, answered);
}

static void step_working (session_t *self, uint64_t now)
{
  watch_process (self, now);
  if (self->phase != WORKING)
    return;
  weft_subject_t subject = {.service = self->target.service,
                            .vm = self->target.vm,
                            .host = self->host,
                            .instance = self->instance,
                            .pid = self->target.pid};
  car_arm_apply (self->arm, self->reader, &subject, now);
  if (car_arm_settled (self->arm, self->reader, now)) {
    collect_all (self); /* S1: what was written under the configuration before */
    self->ack_due = 1;
  }
  say_hello (self, now);
  tell_listed (self, now);
}

static void step_leaving (session_t *self, uint64_t now)
{
  shm_status_t status;
  shm_reader_status (self->reader, &status);
  if (status.state == SHM_STATE_LEFT && self->left_ns == 0)
    self->left_ns = now;
  int left = self->left_ns != 0;
  if (left && (count_threads (self->target.pid) == 0 || now >= after (self->left_ns, THREAD_WAIT_MS)))
    begin_closing (self, "detach", now);
  else if (now >= self->phase_until_ns)
    begin_closing (self, left ? "detach" : "lost", now);
}

/* The BYE follows the acknowledgement of the last batch: nothing comes after it. */
static void step_closing (session_t *self, uint64_t now)
{
  int rest = car_drain_waiting (self->drain) > 0;
  uint64_t bye_until_ns = after (now, CAR_SESSION_CLOSE_MS);
  if (!rest && !self->emptied && bye_until_ns < self->phase_until_ns) /* S4 */
    self->phase_until_ns = bye_until_ns;
  self->emptied |= !rest;
  if (!rest || now >= self->phase_until_ns)
    say_bye (self);
  if (!self->bye_due || now >= self->phase_until_ns)
    self->phase = DONE;
}

static void step (session_t *self, uint64_t now)
{
  self->blocked = 0;
  if (self->phase == WORKING)
    step_working (self, now);
  else if (self->phase == LEAVING)
    step_leaving (self, now);
  /* Not at every message: an acknowledgement would make a batch that makes another. */
  if (self->phase != WORKING || now >= self->drain_next_ns) {
    int pause_ms = car_drain_collect (self->drain, self->options->pid);
    self->drain_next_ns = after (now, (uint64_t) pause_ms);
    self->more = pause_ms < CAR_DRAIN_INTERVAL_MS;
  }
  if (car_bus_interrupted (self->bus)) { /* in order again, from the first one that is not acknowledged */
    car_drain_repush (self->drain);
    request_hello (self, now);
  }
  int out = car_drain_push (self->drain, car_bus_push, self->bus, now) == 0;
  if (!out)
    self->blocked = 1;
  if (self->phase == CLOSING)
    step_closing (self, now);
  else if (out)
    say_ack (self, now); /* S1 */
}

static int min_ms (int ms, uint64_t now, uint64_t until_ns)
{
  if (until_ns <= now)
    return 0;
  uint64_t left = (until_ns - now) / WEFT_NS_PER_MS + 1;
  return left < (uint64_t) ms ? (int) left : ms;
}

static int next_wait_ms (session_t *self, uint64_t now)
{
  int ms = CAR_SESSION_TICK_MS;
  if (self->phase == CLOSING && !self->more &&
      now + CAR_SESSION_CLOSE_MS * WEFT_NS_PER_MS < self->phase_until_ns)
    return CAR_SESSION_GONE_TICK_MS; /* messages wake it sooner */
  if (self->phase == LEAVING || self->phase == CLOSING)
    return CAR_DRAIN_HURRY_MS * 2;
  if (is_active (self) || self->more) /* more: idle again, with rings that are not empty yet */
    ms = min_ms (ms, now, self->drain_next_ns);
  if (car_arm_pending (self->arm)) {
    int pause = now < after (self->began_ns, CAR_ARM_PATIENCE_MS) || is_active (self) ? PENDING_TICK_MS
                                                                                      : PENDING_SLOW_MS;
    ms = ms < pause ? ms : pause;
  }
  if (self->hello_due && !self->blocked)
    ms = min_ms (ms, now, self->hello_next_ns);
  if (now < self->young_until_ns)
    ms = min_ms (ms, now, self->image_next_ns);
  if (!self->listed)
    ms = min_ms (ms, now, after (self->began_ns, CAR_SESSION_LISTED_MS));
  if (car_drain_waiting (self->drain) > 0 && ms > CAR_SESSION_TICK_MS / 2)
    ms = CAR_SESSION_TICK_MS / 2;
  return ms;
}

static int loop (session_t *self)
{
  while (self->phase != DONE) {
    uint32_t ready = 0;
    int fds[2] = {self->signals, self->options->pidfd};
    int status = car_bus_wait (self->bus, fds, self->gone ? 1 : 2, self->blocked,
                               next_wait_ms (self, weft_mono_ns ()), &ready);
    if (status < 0)
      return status;
    uint64_t now = weft_mono_ns ();
    take_messages (self, now);
    if (ready & 1u)
      take_signal (self, now);
    if ((ready & 2u) && !self->gone) {
      self->gone = 1;
      if (self->phase != CLOSING)
        begin_closing (self, "exited", now);
    }
    step (self, now);
  }
  return 0;
}

static int open_signals (void)
{
  sigset_t set;
  sigemptyset (&set);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGINT);
  sigaddset (&set, SIGHUP);
  return signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int set_up (session_t *self, char *why, size_t why_size)
{
  char topic[WEFT_TOPIC_MAX];
  uint64_t now = weft_mono_ns ();
  gethostname (self->host, sizeof self->host - 1);
  weft_boot_id (self->boot);
  self->began_ns = now;
  self->young_until_ns = self->options->launched ? after (now, CAR_SESSION_YOUNG_MS) : now;
  self->look_next_ns = after (now, self->options->launched ? CAR_SESSION_YOUNG_TICK_MS : CAR_SESSION_LOOK_MS);
  take_probe (self);
  self->signals = open_signals ();
  self->arm = car_arm_new (self->boot);
  int status = car_drain_new (self->reader, self->instance, self->boot, &self->drain);
  if (!self->arm || self->signals < 0)
    status = WEFT_E_NOMEM;
  snprintf (why, why_size, "%s", weft_status_text (status));
  if (status == 0)
    status = car_bus_new (self->options->controller, self->options->keys, &self->bus, why, why_size);
  if (status < 0)
    return status;
  car_bus_subscribe (self->bus, WEFT_TOPIC_ALL);
  weft_topic_instance (topic, self->instance);
  car_bus_subscribe (self->bus, topic);
  look_at_target (self, now);
  request_hello (self, now);
  self->hello_pause_ms = CAR_SESSION_FIRST_MS;
  return 0;
}

int car_session_run (const car_session_options_t *options, shm_reader_t **reader_p,
                     const uint8_t instance[WEFT_UUID_SIZE], char *why, size_t why_size)
{
  session_t self = {.options = options, .reader = *reader_p, .signals = -1, .target = {.pid = options->pid}};
  *reader_p = NULL;
  memcpy (self.instance, instance, WEFT_UUID_SIZE);
  int status = set_up (&self, why, why_size);
  if (status == 0)
    status = loop (&self);
  car_bus_destroy (&self.bus);
  car_drain_destroy (&self.drain);
  car_arm_destroy (&self.arm);
  if (self.signals >= 0)
    close (self.signals);
  car_claim_drop (self.reader);
  shm_reader_destroy (&self.reader);
  return status;
}
