/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/status.h"
#include "arm.h"
#include "claim.h"
#include "counters.h"
#include "drain.h"
#include "lineage.h"

#define PENDING_TICK_MS 2    /* the probe answers a configuration within a few of these */
#define PENDING_SLOW_MS 20   /* one that does not is looked at less often */
#define THREAD_WAIT_MS  1500 /* between "left" and the end of the probe's thread: it waits for a CPU */
#define PROBE_THREAD    "weft-probe"
#define COLLECTS_MAX    (SHM_SPOOL_SLOTS * 2) /* drains in a row until the rings are empty */

typedef enum { WORKING, LEAVING, CLOSING, DONE } phase_t;

struct car_session_t {
  car_session_options_t options;
  car_target_t target;
  shm_reader_t *reader;
  uint8_t instance[WEFT_UUID_SIZE], start[WEFT_UUID_SIZE], boot[WEFT_UUID_SIZE];
  char host[WEFT_HOST_MAX], service[WEFT_SERVICE_MAX], service_topic[WEFT_TOPIC_MAX], topic[WEFT_TOPIC_MAX];
  uint8_t controller[WEFT_UUID_SIZE];
  car_lineage_t lineage;
  car_bus_t *bus;
  car_arm_t *arm;
  car_drain_t *drain;
  phase_t phase;
  int gone;    /* the process has ended */
  int leaving; /* its probe was told to leave, while it lived */
  char reason[16];
  uint64_t image;
  int hello_due, hello_said, ack_due, bye_due, blocked, listed;
  int pushed;  /* S1: nothing older waits for room */
  int more;    /* the last look at the rings left something in them */
  int emptied; /* closing: everything was acknowledged */
  int told;    /* to end, by a signal */
  uint64_t drain_next_ns, hello_pause_ms, hello_next_ns, ack_next_ns, look_next_ns, image_next_ns;
  uint64_t exec_until_ns; /* 0, or: it runs another program, whose probe is waited for */
  uint64_t began_ns, young_until_ns, phase_until_ns, left_ns;
};

static uint64_t after (uint64_t now, uint64_t ms)
{
  return now + ms * WEFT_NS_PER_MS;
}

static int is_active (car_session_t *self)
{
  return __atomic_load_n (&shm_status (shm_reader_base (self->reader))->actions, __ATOMIC_RELAXED) != 0;
}

/* ---- what is said to the controller -------------------------------------- */

static int push_up (car_session_t *self, weft_up_message_t *message)
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

static void say_hello (car_session_t *self, uint64_t now)
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
  self->hello_said = 1;
  self->hello_next_ns = after (now, self->hello_pause_ms);
  if (self->hello_pause_ms < CAR_SESSION_HELLO_MAX_MS)
    self->hello_pause_ms *= 2;
}

/* Each has moments of its own: those of a large tree are not said all at once. */
static uint64_t next_ack (const car_session_t *self, uint64_t now)
{
  uint64_t period = CAR_SESSION_ACK_MS * WEFT_NS_PER_MS;
  uint64_t phase = period / 256 * self->instance[WEFT_UUID_SIZE - 1];
  return now + period - (now + phase) % period;
}

int car_session_owes (car_session_t *self, uint64_t now)
{
  if (now >= self->ack_next_ns)
    self->ack_due = 1;
  return self->ack_due && self->pushed /* S1 */ && self->phase != CLOSING && self->phase != DONE &&
         car_arm_in_force (self->arm);
}

void car_session_answer (car_session_t *self, uint64_t now)
{
  weft_up_message_t message = {.kind = WEFT_UP_ACK};
  car_counters_put (self->reader, self->drain, &message);
  if (push_up (self, &message) < 0)
    return;
  if (message.active)
    shm_wake (self->reader); /* what quiet connections move until then is in the next one */
  self->ack_due = 0;
  self->ack_next_ns = next_ack (self, now);
}

static void say_bye (car_session_t *self)
{
  if (!self->bye_due)
    return;
  weft_up_message_t message = {.kind = WEFT_UP_BYE};
  car_counters_put (self->reader, self->drain, &message);
  message.active = 0;
  message.threads_left = self->gone ? 0 : car_target_threads (self->target.pid, PROBE_THREAD);
  if (strcmp (self->reason, "exited") == 0) /* what it had rewritten went with it */
    message.slots_written = message.slots_restored = message.slots_foreign = 0;
  snprintf (message.reason, sizeof message.reason, "%s", self->reason);
  if (push_up (self, &message) == 0)
    self->bye_due = 0;
}

/* ---- what the process is -------------------------------------------------- */

static void request_hello (car_session_t *self, uint64_t now)
{
  self->hello_due = 1;
  self->hello_pause_ms = CAR_SESSION_HELLO_MS;
  if (self->hello_next_ns > after (now, CAR_SESSION_HELLO_MS))
    self->hello_next_ns = after (now, CAR_SESSION_HELLO_MS);
}

/* Name, version and ports as they are now; a HELLO when they have changed. */
static void look_at_target (car_session_t *self, uint64_t now)
{
  car_target_t target;
  if (car_target_identify (self->options.pid, self->service, &target) < 0)
    return;
  car_claim_vm (self->reader, &target);
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

static void take_probe (car_session_t *self)
{
  memcpy (self->start, ((const shm_head_t *) shm_reader_base (self->reader))->start, WEFT_UUID_SIZE);
  car_claim_service (self->reader, self->options.service, self->service);
  self->image = car_target_image (self->options.pid);
}

static void collect_all (car_session_t *self)
{
  for (unsigned i = 0; i < COLLECTS_MAX && car_drain_collect (self->drain, self->options.pid) == 0; i++)
    if (car_drain_push (self->drain, car_bus_push, self->bus, weft_mono_ns ()) < 0)
      break;
}

static void end_phase (car_session_t *self, phase_t phase, uint64_t now, uint64_t patience_ms)
{
  self->phase = phase;
  self->phase_until_ns = after (now, patience_ms);
}

static void begin_closing (car_session_t *self, const char *reason, uint64_t now)
{
  snprintf (self->reason, sizeof self->reason, "%s", reason);
  collect_all (self);
  car_drain_repush (self->drain); /* a controller that was away may have come back; nothing is to wait for */
  self->bye_due = 1;
  end_phase (self, CLOSING, now,
             strcmp (reason, "exited") == 0 && !self->told ? CAR_SESSION_GONE_MS : CAR_SESSION_CLOSE_MS);
}

void car_session_leave (car_session_t *self, uint64_t now)
{
  if (self->phase != WORKING)
    return;
  shm_command (self->reader, SHM_COMMAND_LEAVE);
  self->leaving = 1;
  end_phase (self, LEAVING, now, CAR_SESSION_LEAVE_MS);
}

/* The session goes on with the probe of a new image: the same instance, another start. */
int car_session_become (car_session_t *self, shm_reader_t **next_p, uint64_t now)
{
  car_drain_t *drain = NULL;
  collect_all (self);
  car_drain_push (self->drain, car_bus_push, self->bus, now);
  int status = car_claim_take (*next_p, self->instance, self->instance);
  if (status < 0)
    return status;
  status = car_drain_new (*next_p, self->instance, self->boot, self->options.desk, &drain);
  if (status < 0) {
    car_claim_drop (*next_p);
    return status;
  }
  car_drain_destroy (&self->drain);
  shm_reader_destroy (&self->reader);
  self->reader = *next_p;
  *next_p = NULL;
  self->drain = drain;
  self->exec_until_ns = 0;
  take_probe (self);
  car_arm_forget_probe (self->arm);
  self->young_until_ns = after (now, CAR_SESSION_YOUNG_MS);
  look_at_target (self, now);
  request_hello (self, now);
  return 0;
}

/* The process runs another program: what the old probe left is told, and the probe of the new one is waited
 * for, if one comes. */
static void await_exec (car_session_t *self, uint64_t now)
{
  shm_reader_t *next = NULL;
  if (shm_reader_open (self->options.pid, &next) == 0) {
    const shm_head_t *head = shm_reader_base (next);
    if (memcmp (head->start, self->start, WEFT_UUID_SIZE) != 0)
      car_session_become (self, &next, now);
    shm_reader_destroy (&next);
  }
  if (self->exec_until_ns && now >= self->exec_until_ns)
    begin_closing (self, "exited", now);
}

static void watch_process (car_session_t *self, uint64_t now)
{
  int young = now < self->young_until_ns;
  if (now >= self->image_next_ns) {
    self->image_next_ns = after (now, young ? CAR_SESSION_YOUNG_TICK_MS : CAR_SESSION_IMAGE_MS);
    uint64_t image = car_target_image (self->options.pid);
    if (image && self->image && image != self->image)
      self->exec_until_ns = after (now, CAR_SESSION_EXEC_MS);
    if (image)
      self->image = image;
  }
  if (self->exec_until_ns) {
    await_exec (self, now);
    return;
  }
  if (now >= self->look_next_ns) {
    look_at_target (self, now);
    self->look_next_ns = after (now, young ? CAR_SESSION_YOUNG_TICK_MS * 5 : CAR_SESSION_LOOK_MS);
  }
}

/* ---- what comes in --------------------------------------------------------- */

static void meet_controller (car_session_t *self, const uint8_t uuid[WEFT_UUID_SIZE], uint64_t now)
{
  if (memcmp (self->controller, uuid, WEFT_UUID_SIZE) == 0)
    return;
  memcpy (self->controller, uuid, WEFT_UUID_SIZE);
  car_drain_repush (self->drain);
  request_hello (self, now);
}

int car_session_listens (const car_session_t *self, const char *topic)
{
  return strcmp (topic, self->topic) == 0 || strcmp (topic, WEFT_TOPIC_ALL) == 0 ||
         strcmp (topic, self->service_topic) == 0;
}

void car_session_take (car_session_t *self, weft_bus_message_t *message, const char *topic, uint64_t now)
{
  int alone = strcmp (topic, self->topic) == 0;
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
      car_session_leave (self, now);
    break;
  }
}

void car_session_end (car_session_t *self, uint64_t now)
{
  self->told = 1;
  if (self->phase == CLOSING)
    self->phase_until_ns = now;
  car_session_leave (self, now);
}

void car_session_gone (car_session_t *self, uint64_t now)
{
  if (self->gone)
    return;
  self->gone = 1;
  if (self->phase != CLOSING)
    begin_closing (self, "exited", now);
}

/* ---- one step --------------------------------------------------------------- */

static void tell_listed (car_session_t *self, uint64_t now)
{
  int answered = car_arm_has_state (self->arm);
  if (self->listed || (!answered && now < after (self->began_ns, CAR_SESSION_LISTED_MS)))
    return;
  self->listed = 1;
  if (self->options.listed)
    self->options.listed (self->options.listed_arg, &self->target, answered);
}

static void step_working (car_session_t *self, uint64_t now)
{
  watch_process (self, now);
  if (self->phase != WORKING)
    return;
  if (!self->exec_until_ns)
    car_arm_apply (self->arm, self->reader, car_lineage_subject (&self->lineage), now);
  if (car_arm_settled (self->arm, self->reader, now)) {
    collect_all (self); /* S1: what was written under the configuration before */
    self->ack_due = 1;
  }
  say_hello (self, now);
  tell_listed (self, now);
}

static void step_leaving (car_session_t *self, uint64_t now)
{
  shm_status_t status;
  shm_reader_status (self->reader, &status);
  if (status.state == SHM_STATE_LEFT && self->left_ns == 0)
    self->left_ns = now;
  int left = self->left_ns != 0;
  if (left && (car_target_threads (self->target.pid, PROBE_THREAD) == 0 ||
               now >= after (self->left_ns, THREAD_WAIT_MS)))
    begin_closing (self, "detach", now);
  else if (!left && now >= self->phase_until_ns)
    begin_closing (self, "lost", now);
}

/* The BYE follows the acknowledgement of the last batch: nothing comes after it. */
static void step_closing (car_session_t *self, uint64_t now)
{
  if (!self->hello_said) /* it ended before it was known */
    say_hello (self, now);
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

void car_session_step (car_session_t *self, uint64_t now)
{
  self->blocked = 0;
  if (self->phase == WORKING)
    step_working (self, now);
  else if (self->phase == LEAVING)
    step_leaving (self, now);
  /* Not at every message: an acknowledgement would make a batch that makes another. */
  if (self->phase != WORKING || now >= self->drain_next_ns) {
    int pause_ms = car_drain_collect (self->drain, self->options.pid);
    self->drain_next_ns = after (now, (uint64_t) pause_ms);
    self->more = pause_ms < CAR_DRAIN_INTERVAL_MS;
  }
  self->pushed = car_drain_push (self->drain, car_bus_push, self->bus, now) == 0;
  if (!self->pushed)
    self->blocked = 1;
  if (self->phase == CLOSING)
    step_closing (self, now);
}

static int min_ms (int ms, uint64_t now, uint64_t until_ns)
{
  if (until_ns <= now)
    return 0;
  uint64_t left = (until_ns - now) / WEFT_NS_PER_MS + 1;
  return left < (uint64_t) ms ? (int) left : ms;
}

void car_session_interrupted (car_session_t *self, uint64_t now)
{
  car_drain_repush (self->drain); /* in order again, from the first one that is not acknowledged */
  request_hello (self, now);
}

int car_session_wait_ms (car_session_t *self, uint64_t now)
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
  if (self->exec_until_ns && ms > CAR_CLAIM_POLL_MIN_MS)
    ms = CAR_CLAIM_POLL_MIN_MS;
  if (!self->listed)
    ms = min_ms (ms, now, after (self->began_ns, CAR_SESSION_LISTED_MS));
  if (car_drain_waiting (self->drain) > 0 && ms > CAR_SESSION_TICK_MS / 2)
    ms = CAR_SESSION_TICK_MS / 2;
  return ms;
}

void car_session_rest (car_session_t *self)
{
  shm_reader_look_away (self->reader);
}

int car_session_done (const car_session_t *self)
{
  return self->phase == DONE;
}
int car_session_blocked (const car_session_t *self)
{
  return self->blocked;
}
int car_session_leaving (const car_session_t *self)
{
  return self->leaving;
}

const car_session_options_t *car_session_options (const car_session_t *self)
{
  return &self->options;
}

shm_reader_t *car_session_reader (car_session_t *self)
{
  return self->reader;
}

const uint8_t *car_session_instance (const car_session_t *self)
{
  return self->instance;
}

int car_session_descends (const car_session_t *self, const uint8_t instance[WEFT_UUID_SIZE])
{
  return car_lineage_holds (&self->lineage, instance);
}

/* ---- beginning and end ------------------------------------------------------ */

/* What a forked child is, without looking. */
static void inherit (car_session_t *self, const car_session_t *parent)
{
  pid_t pid = self->target.pid;
  self->target = parent->target;
  self->target.pid = pid;
  memcpy (self->service, parent->service, sizeof self->service);
  memcpy (self->controller, parent->controller, sizeof self->controller);
}

static int set_up (car_session_t *self)
{
  uint64_t now = weft_mono_ns ();
  const car_session_t *parent = self->options.parent;
  int forked = parent && self->options.forked;
  gethostname (self->host, sizeof self->host - 1);
  weft_boot_id (self->boot);
  self->began_ns = now;
  self->young_until_ns = self->options.launched ? after (now, CAR_SESSION_YOUNG_MS) : now;
  self->look_next_ns = after (now, self->options.launched ? CAR_SESSION_YOUNG_TICK_MS : CAR_SESSION_LOOK_MS);
  if (forked)
    inherit (self, parent);
  take_probe (self);
  weft_subject_t subject = {.service = self->target.service,
                            .vm = self->target.vm,
                            .host = self->host,
                            .instance = self->instance,
                            .pid = self->options.pid};
  car_lineage_begin (&self->lineage, &subject, parent ? &parent->lineage : NULL);
  self->options.parent = NULL;
  self->arm = car_arm_new (self->boot, self->options.shelf);
  int status = car_drain_new (self->reader, self->instance, self->boot, self->options.desk, &self->drain);
  if (!self->arm)
    status = WEFT_E_NOMEM;
  if (status < 0)
    return status;
  if (forked)
    car_arm_inherit (self->arm, parent->arm);
  weft_topic_instance (self->topic, self->instance);
  status = car_bus_subscribe (self->bus, self->topic);
  if (forked) {
    weft_topic_service (self->service_topic, self->target.service);
    car_bus_subscribe (self->bus, self->service_topic);
  } else
    look_at_target (self, now);
  request_hello (self, now);
  self->hello_pause_ms = CAR_SESSION_FIRST_MS;
  return status;
}

int car_session_new (const car_session_options_t *options, car_bus_t *bus, shm_reader_t **reader_p,
                     const uint8_t instance[WEFT_UUID_SIZE], car_session_t **ret_self)
{
  car_session_t *self = calloc (1, sizeof *self);
  if (!self) {
    shm_reader_destroy (reader_p);
    if (options->pidfd >= 0)
      close (options->pidfd);
    return WEFT_E_NOMEM;
  }
  self->options = *options;
  self->reader = *reader_p;
  *reader_p = NULL;
  self->bus = bus;
  self->target.pid = options->pid;
  memcpy (self->instance, instance, WEFT_UUID_SIZE);
  int status = set_up (self);
  if (status < 0)
    car_session_destroy (&self);
  else
    *ret_self = self;
  return status;
}

void car_session_destroy (car_session_t **self_p)
{
  car_session_t *self = *self_p;
  if (!self)
    return;
  if (self->service_topic[0])
    car_bus_unsubscribe (self->bus, self->service_topic);
  if (self->topic[0])
    car_bus_unsubscribe (self->bus, self->topic);
  car_drain_destroy (&self->drain);
  car_arm_destroy (&self->arm);
  car_claim_drop (self->reader);
  shm_reader_destroy (&self->reader);
  if (self->options.pidfd >= 0)
    close (self->options.pidfd);
  free (self);
  *self_p = NULL;
}
