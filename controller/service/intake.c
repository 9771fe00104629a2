/* SPDX-License-Identifier: Apache-2.0 */
#include "intake.h"

#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "../../common/fault.h"
#include "../../common/status.h"
#include "appender.h"
#include "sequence.h"

/* A batch that is new, looked at and not yet journalled. */
typedef struct {
  const void *frame;
  size_t size;
  weft_batch_head_t head;
  zmq_msg_t message; /* what holds the frame, if `held` */
  int held;
} waiting_t;

/* While one is gathered, the one before is on its way into the journal. */
typedef struct {
  waiting_t batch[CTL_JOURNAL_TOGETHER];
  ctl_journal_frame_t frames[CTL_JOURNAL_TOGETHER];
  unsigned count;
  int begun; /* the appender has it */
} group_t;

typedef struct {
  uint8_t instance[WEFT_UUID_SIZE], start[WEFT_UUID_SIZE];
  uint64_t done;
} answer_t;

struct ctl_intake_t {
  ctl_intake_links_t links;
  ctl_intake_stats_t stats;
  ctl_sequence_t *sequence;
  void *socket;
  int uncounted;
  const char *who;            /* sent the frame at hand, as the guard named it; NULL: not known */
  weft_batch_reader_t reader; /* 16 KiB: too much for a stack frame on the way */
  ctl_appender_t *appender;   /* NULL: not needed yet */
  group_t groups[2];
  unsigned gathering;                     /* of the two */
  answer_t answers[CTL_JOURNAL_TOGETHER]; /* one for each start */
  unsigned answer_count;
};

ctl_intake_t *ctl_intake_new (const ctl_intake_links_t *links)
{
  ctl_intake_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  self->links = *links;
  self->sequence = ctl_sequence_new ();
  if (!self->sequence)
    ctl_intake_destroy (&self);
  return self;
}

void ctl_intake_destroy (ctl_intake_t **self_p)
{
  ctl_intake_t *self = *self_p;
  if (!self)
    return;
  if (self->socket)
    zmq_close (self->socket);
  ctl_appender_destroy (&self->appender);
  ctl_sequence_destroy (&self->sequence);
  free (self);
  *self_p = NULL;
}

void ctl_intake_link (ctl_intake_t *self, const ctl_intake_links_t *links)
{
  self->links = *links;
}

int ctl_intake_listen (ctl_intake_t *self, char *why, size_t why_size)
{
  return ctl_broadcast_bind (self->links.broadcast, ZMQ_PULL, WEFT_ENDPOINT_REPORTS, &self->socket, why,
                             why_size);
}

/* N3: every way out of here is counted once. */
static int count (ctl_intake_t *self, int status)
{
  switch (status) {
  case WEFT_OK:
    break;
  case WEFT_E_VERSION:
    self->stats.version++;
    break;
  case WEFT_E_UNSUPPORTED:
    self->stats.unsupported++;
    break;
  case WEFT_E_MALFORMED:
  case WEFT_E_RANGE:
    self->stats.malformed++;
    break;
  default:
    self->stats.refused++;
  }
  return status;
}

static int journal (ctl_intake_t *self, const void *frame, size_t size)
{
  int rc = self->links.journal ? ctl_journal_append (self->links.journal, frame, size) : 0;
  if (rc < 0)
    self->stats.unjournalled++;
  return rc;
}

static void answer_state (ctl_intake_t *self, const uint8_t instance[WEFT_UUID_SIZE])
{
  if (!self->links.broadcast)
    return;
  char topic[WEFT_TOPIC_MAX];
  weft_topic_instance (topic, instance);
  ctl_broadcast_state (self->links.broadcast, topic, self->links.instructions);
}

static void send_answers (ctl_intake_t *self)
{
  for (unsigned n = 0; n < self->answer_count; n++) {
    weft_bus_message_t ack = {.kind = WEFT_BUS_BATCH_ACK, .number = self->answers[n].done};
    memcpy (ack.start, self->answers[n].start, sizeof ack.start);
    char topic[WEFT_TOPIC_MAX];
    weft_topic_instance (topic, self->answers[n].instance);
    ctl_broadcast_send (self->links.broadcast, topic, &ack);
    WEFT_FAULT_POINT ("ack");
  }
  self->answer_count = 0;
}

/* An answer names all batches up to `done`: the last one for a start says what those before it said. */
static void answer_batch (ctl_intake_t *self, const ctl_sequence_entry_t *entry)
{
  if (!self->links.broadcast)
    return;
  for (unsigned n = 0; n < self->answer_count; n++)
    if (memcmp (self->answers[n].start, entry->start, WEFT_UUID_SIZE) == 0 &&
        memcmp (self->answers[n].instance, entry->instance, WEFT_UUID_SIZE) == 0) {
      self->answers[n].done = entry->done;
      return;
    }
  if (self->answer_count == CTL_JOURNAL_TOGETHER)
    send_answers (self);
  answer_t *answer = &self->answers[self->answer_count++];
  memcpy (answer->instance, entry->instance, WEFT_UUID_SIZE);
  memcpy (answer->start, entry->start, WEFT_UUID_SIZE);
  answer->done = entry->done;
}

static int take_message (ctl_intake_t *self, const void *frame, size_t size)
{
  weft_up_message_t message;
  int rc = weft_up_unpack (frame, size, &message);
  if (rc < 0)
    return count (self, rc);
  ctl_instance_t *instance = ctl_instances_find (self->links.instances, message.instance);
  int same_life = instance && memcmp (instance->start, message.start, sizeof message.start) == 0;
  int was_there = instance && instance->presence != CTL_INSTANCE_LEFT;
  uint64_t acked = same_life ? instance->epoch : 0;
  rc = ctl_instances_take (self->links.instances, &message, &instance);
  if (rc < 0)
    return count (self, rc);
  if (message.kind != WEFT_UP_HELLO && !message.active)
    ctl_correlate_idle (self->links.correlate, instance->index);
  switch (message.kind) {
  case WEFT_UP_HELLO:
    self->stats.hellos++;
    instance->epoch = acked; /* the epoch it has heard of is not yet one that it works under */
    answer_state (self, message.instance);
    /* So that a recovery knows the names. If there is no room the live registry still does. */
    journal (self, frame, size);
    if (!same_life)
      ctl_audit_attach (self->links.audit, self->who, &message);
    break;
  case WEFT_UP_ACK:
    self->stats.acks++;
    break;
  default:
    self->stats.byes++;
    if (was_there)
      ctl_audit_left (self->links.audit, self->who, &message, instance);
    journal (self, frame, size);
  }
  return 0;
}

/* What the registry is told of a batch. Its times are the sender's boottime: losses are kept by wall clock. */
static void note_batch (ctl_intake_t *self, ctl_instance_t *instance, const weft_batch_head_t *head,
                        uint32_t reports, const uint64_t here[WEFT_LOSS_COUNT])
{
  uint64_t wall_ns = head->anchor.real_ns - head->anchor.boot_ns; /* wraps where it has to */
  uint64_t losses[WEFT_LOSS_COUNT];
  for (unsigned n = 0; n < WEFT_LOSS_COUNT; n++)
    losses[n] = here[n] + (n < WEFT_LOSS_WIRE_COUNT ? head->losses[n] : 0);
  uint64_t counted[WEFT_LOSS_COUNT];
  memcpy (counted, instance->losses, sizeof counted);
  instance->stored += self->uncounted ? 0 : reports;
  instance->last_batch = head->number;
  if (!self->links.broadcast) /* recovery: it was not now that it spoke */
    instance->heard_ns = head->to_ns + wall_ns;
  ctl_instances_lost (self->links.instances, instance, head->from_ns + wall_ns, head->to_ns + wall_ns,
                      losses);
  if (self->uncounted) /* their interval is new, the sum is not */
    memcpy (instance->losses, counted, sizeof counted);
}

void ctl_intake_uncounted (ctl_intake_t *self, int yes)
{
  self->uncounted = yes;
}

/* N1. A batch may need all the room that there is for what the store has not taken. */
static int make_room (ctl_intake_t *self)
{
  int rc = ctl_correlate_room (self->links.correlate);
  if (rc == WEFT_E_FULL && self->links.sink) {
    ctl_sink_run (self->links.sink, weft_mono_ns (), 0); /* whoever runs it regularly says what fails */
    rc = ctl_correlate_room (self->links.correlate);
  }
  if (rc < 0)
    self->stats.deferred++;
  return rc;
}

/* Into the correlator; it is journalled. */
static void enter_batch (ctl_intake_t *self, const waiting_t *batch)
{
  ctl_instance_t *instance = NULL;
  uint32_t reports = 0;
  uint64_t here[WEFT_LOSS_COUNT] = {0}, shed = ctl_shed_count (ctl_correlate_shedder (self->links.correlate));
  int rc = ctl_correlate_batch (self->links.correlate, batch->frame, batch->size, &reports);
  count (self, rc);
  WEFT_FAULT_POINT ("correlate");
  here[WEFT_LOSS_SHED] = shed = ctl_shed_count (ctl_correlate_shedder (self->links.correlate)) - shed;
  if (reports + shed < batch->head.reports) /* what it says it holds, and did not give */
    here[rc == 0 ? WEFT_LOSS_VERSION : WEFT_LOSS_UNDECODABLE] = batch->head.reports - reports - shed;
  if (ctl_instances_touch (self->links.instances, batch->head.instance, &instance) == 0)
    note_batch (self, instance, &batch->head, reports, here);
  self->stats.batches++;
  self->stats.reports += reports;
}

/* These are in the journal: remembered and acknowledged (N1). */
static void answer (ctl_intake_t *self, const waiting_t *batches, unsigned count)
{
  for (unsigned n = 0; n < count; n++) {
    const weft_batch_head_t *head = &batches[n].head;
    ctl_sequence_entry_t *entry = NULL;
    if (ctl_sequence_of (self->sequence, head->instance, head->start, head->number, &entry) < 0)
      continue;
    ctl_sequence_take (entry, head->number);
    answer_batch (self, entry);
  }
  send_answers (self);
}

/* What the journal refuses stays with its sender. The status of the last one. */
static int enter_one_by_one (ctl_intake_t *self, const group_t *group)
{
  int rc = 0;
  for (unsigned n = 0; n < group->count; n++) {
    const waiting_t *batch = &group->batch[n];
    rc = make_room (self);
    if (rc == 0)
      rc = journal (self, batch->frame, batch->size);
    if (rc < 0)
      continue;
    answer (self, batch, 1);
    enter_batch (self, batch);
  }
  return rc;
}

static void begin_append (ctl_intake_t *self, group_t *group)
{
  group->begun = 0;
  if (group->count < 2 || !self->links.journal)
    return;
  if (!self->appender)
    self->appender = ctl_appender_new ();
  if (!self->appender)
    return;
  for (unsigned n = 0; n < group->count; n++)
    group->frames[n] = (ctl_journal_frame_t){group->batch[n].frame, group->batch[n].size};
  ctl_appender_begin (self->appender, self->links.journal, group->frames, group->count);
  group->begun = 1;
}

/* The group before is acknowledged as soon as it is journalled; then, while the one that was gathered
 * is on its way into the journal, it is correlated. The status of its last batch. */
static int pass_on (ctl_intake_t *self)
{
  group_t *gathered = &self->groups[self->gathering], *before = &self->groups[!self->gathering];
  int rc = 0, together = before->begun && ctl_appender_end (self->appender) == 0;
  if (together)
    answer (self, before->batch, before->count);
  else
    rc = enter_one_by_one (self, before);
  begin_append (self, gathered);
  for (unsigned n = 0; n < before->count; n++) {
    if (together)
      enter_batch (self, &before->batch[n]);
    if (before->batch[n].held)
      zmq_msg_close (&before->batch[n].message);
  }
  before->count = 0;
  before->begun = 0;
  self->gathering = !self->gathering;
  return rc;
}

/* All that was taken so far is entered, or refused. */
static int drain (ctl_intake_t *self)
{
  int rc = 0;
  while (self->groups[0].count + self->groups[1].count)
    rc = pass_on (self);
  send_answers (self);
  return rc;
}

/* 1: the batch whose head the reader has is there already; 0: it is new, *ret_entry is its place. */
static int look_batch (ctl_intake_t *self, ctl_sequence_entry_t **ret_entry)
{
  const weft_batch_head_t *head = &self->reader.head;
  int rc = ctl_sequence_of (self->sequence, head->instance, head->start, head->number, ret_entry);
  if (rc < 0)
    return count (self, rc);
  rc = ctl_sequence_look (*ret_entry, head->number);
  self->stats.gap += rc == WEFT_E_RANGE;
  return rc;
}

/* Whether this one may be looked at before those are entered that wait: what is known of its start
 * will then be the same, and there is room for all. */
static int can_join (const ctl_intake_t *self, const weft_batch_head_t *head)
{
  const group_t *const groups[2] = {&self->groups[self->gathering], &self->groups[!self->gathering]};
  if (!ctl_correlate_ease (self->links.correlate, groups[0]->count + groups[1]->count + 1))
    return 0;
  for (unsigned g = 0; g < 2; g++)
    for (unsigned n = groups[g]->count; n > 0; n--) {
      const weft_batch_head_t *other = &groups[g]->batch[n - 1].head;
      if (memcmp (other->start, head->start, WEFT_UUID_SIZE) == 0 &&
          memcmp (other->instance, head->instance, WEFT_UUID_SIZE) == 0)
        return head->number == other->number + 1;
    }
  return 1;
}

/* Puts a batch to those that wait. `message`: holds the frame and is taken over; NULL: the frame
 * outlasts the next drain. */
static int take_batch (ctl_intake_t *self, const void *frame, size_t size, zmq_msg_t *message)
{
  ctl_sequence_entry_t *entry = NULL;
  ctl_instance_t *instance = NULL;
  int rc = weft_batch_reader_begin (&self->reader, frame, size);
  if (self->groups[0].count + self->groups[1].count && (rc < 0 || !can_join (self, &self->reader.head)))
    drain (self); /* which leaves the reader alone */
  rc = rc < 0 ? count (self, rc) : look_batch (self, &entry);
  if (rc == 1) {
    self->stats.duplicates++;
    answer_batch (self, entry); /* the first answer was lost */
    return 0;
  }
  if (rc == 0)
    rc = count (self, ctl_instances_touch (self->links.instances, self->reader.head.instance, &instance));
  if (rc < 0)
    return rc;
  if (self->groups[self->gathering].count == CTL_JOURNAL_TOGETHER)
    pass_on (self);
  group_t *group = &self->groups[self->gathering];
  waiting_t *batch = &group->batch[group->count++];
  batch->frame = frame;
  batch->size = size;
  batch->head = self->reader.head;
  batch->held = message != NULL;
  if (message) {
    zmq_msg_init (&batch->message);
    zmq_msg_move (&batch->message, message);
    batch->frame = zmq_msg_data (&batch->message);
  }
  return 0;
}

int ctl_intake_recall (ctl_intake_t *self, const void *frame, size_t size)
{
  static const uint64_t none[WEFT_LOSS_COUNT];
  const weft_batch_head_t *head = &self->reader.head;
  ctl_sequence_entry_t *entry = NULL;
  ctl_instance_t *instance = NULL;
  int rc = weft_batch_reader_begin (&self->reader, frame, size);
  rc = rc < 0 ? count (self, rc) : look_batch (self, &entry);
  if (rc)
    return rc < 0 ? rc : 0;
  rc = ctl_instances_touch (self->links.instances, head->instance, &instance);
  if (rc < 0)
    return count (self, rc);
  note_batch (self, instance, head, head->reports, none);
  ctl_sequence_take (entry, head->number);
  return 0;
}

static int take_frame (ctl_intake_t *self, const void *frame, size_t size, zmq_msg_t *message)
{
  self->stats.frames++;
  weft_up_kind_t kind;
  int rc = size > WEFT_FRAME_MAX ? WEFT_E_RANGE : weft_up_kind (frame, size, &kind);
  if (rc < 0)
    return count (self, rc);
  if (kind == WEFT_UP_BATCH)
    return take_batch (self, frame, size, message);
  drain (self); /* what was said before it counts before it */
  return take_message (self, frame, size);
}

int ctl_intake_frame (ctl_intake_t *self, const void *frame, size_t size)
{
  int rc = take_frame (self, frame, size, NULL);
  int entered = drain (self);
  return rc ? rc : entered;
}

int ctl_intake_pump (ctl_intake_t *self)
{
  int taken = 0;
  int more = 0;
  while (taken < WEFT_INTAKE_BURST || more) {
    zmq_msg_t frame;
    zmq_msg_init (&frame);
    if (zmq_msg_recv (&frame, self->socket, ZMQ_DONTWAIT) < 0) {
      zmq_msg_close (&frame);
      break;
    }
    int follows = more;
    more = zmq_msg_more (&frame);
    /* One frame is one message; of what has several, the sender is none of ours. */
    if (more || follows) {
      self->stats.frames++;
      count (self, WEFT_E_MALFORMED);
    } else {
      self->who = zmq_msg_gets (&frame, "User-Id");
      take_frame (self, zmq_msg_data (&frame), zmq_msg_size (&frame), &frame);
      self->who = NULL;
    }
    zmq_msg_close (&frame);
    taken++;
  }
  drain (self);
  return taken;
}

int ctl_intake_fd (const ctl_intake_t *self)
{
  int fd = -1;
  size_t size = sizeof fd;
  zmq_getsockopt (self->socket, ZMQ_FD, &fd, &size);
  return fd;
}

const ctl_intake_stats_t *ctl_intake_stats (const ctl_intake_t *self)
{
  return &self->stats;
}
