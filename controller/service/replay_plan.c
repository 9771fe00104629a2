/* SPDX-License-Identifier: Apache-2.0 */
#include "replay_plan.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/batch.h"
#include "../../common/status.h"

#define PURPOSE_UUIDS  1u
#define PURPOSE_STARTS 2u
#define PURPOSE_IDS    3u

/* ---- a set of pairs of words, each with a value ---------------------------- */
typedef struct {
  uint64_t a, b; /* both 0: free */
  uint64_t value;
} pair_t;

typedef struct {
  pair_t *pairs;
  uint32_t size, count; /* size a power of two, at most half full */
} pairs_t;

typedef struct {
  ctl_plan_t *plan;
  pairs_t tasks;   /* task id */
  pairs_t numbers; /* start index + 1, number -> number given */
  uint32_t start_room, frame_room;
  int rename_ids;
  weft_batch_reader_t reader;
  uint8_t scratch[WEFT_FRAME_MAX];
} work_t;

static pair_t *place_of (const pairs_t *self, uint64_t a, uint64_t b)
{
  uint64_t hash = (a ^ (b * 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;
  for (uint32_t at = (uint32_t) (hash >> 32);; at++) {
    pair_t *pair = &self->pairs[at & (self->size - 1)];
    if ((pair->a == a && pair->b == b) || (pair->a | pair->b) == 0)
      return pair;
  }
}

static int grow (pairs_t *self)
{
  pairs_t larger = {.size = self->size ? self->size * 2 : 1024, .count = self->count};
  larger.pairs = calloc (larger.size, sizeof *larger.pairs);
  if (!larger.pairs)
    return WEFT_E_NOMEM;
  for (uint32_t n = 0; n < self->size; n++)
    if (self->pairs[n].a | self->pairs[n].b)
      *place_of (&larger, self->pairs[n].a, self->pairs[n].b) = self->pairs[n];
  free (self->pairs);
  *self = larger;
  return 0;
}

/* 1: made, its value 0; 0: there already. */
static int find_or_make (pairs_t *self, uint64_t a, uint64_t b, pair_t **ret_pair)
{
  if (2 * (self->count + 1) > self->size) {
    if (self->count >= WEFT_REPLAY_TASKS_MAX)
      return WEFT_E_FULL;
    int rc = grow (self);
    if (rc < 0)
      return rc;
  }
  pair_t *pair = place_of (self, a, b);
  *ret_pair = pair;
  if (pair->a | pair->b)
    return 0;
  *pair = (pair_t){a, b, 0};
  self->count++;
  return 1;
}

/* ---- who -------------------------------------------------------------------- */

static int make_start (work_t *self, const uint8_t *instance, const uint8_t *start, const uint8_t *boot,
                       uint32_t *ret_index)
{
  ctl_plan_t *plan = self->plan;
  int known = 0;
  for (uint32_t n = 0; n < plan->start_count; n++)
    known |= memcmp (plan->starts[n].instance, instance, WEFT_UUID_SIZE) == 0;
  if (plan->start_count == WEFT_INSTANCES_MAX)
    return WEFT_E_FULL;
  if (plan->start_count == self->start_room) {
    uint32_t room = self->start_room ? self->start_room * 2 : 16;
    ctl_plan_start_t *grown = realloc (plan->starts, room * sizeof *grown);
    if (!grown)
      return WEFT_E_NOMEM;
    plan->starts = grown;
    self->start_room = room;
  }
  ctl_plan_start_t *made = &plan->starts[plan->start_count];
  memset (made, 0, sizeof *made);
  memcpy (made->instance, instance, WEFT_UUID_SIZE);
  memcpy (made->start, start, WEFT_UUID_SIZE);
  memcpy (made->boot, boot, WEFT_UUID_SIZE);
  plan->instance_count += !known;
  *ret_index = plan->start_count++;
  return 0;
}

static int start_of (work_t *self, const uint8_t *instance, const uint8_t *start, const uint8_t *boot,
                     uint32_t *ret_index)
{
  for (uint32_t n = 0; n < self->plan->start_count; n++)
    if (memcmp (self->plan->starts[n].start, start, WEFT_UUID_SIZE) == 0 &&
        memcmp (self->plan->starts[n].instance, instance, WEFT_UUID_SIZE) == 0) {
      *ret_index = n;
      return 0;
    }
  return make_start (self, instance, start, boot, ret_index);
}

/* ---- what --------------------------------------------------------------------- */

static int add_frame (work_t *self, const ctl_plan_frame_t *frame)
{
  ctl_plan_t *plan = self->plan;
  if (plan->frame_count == self->frame_room) {
    uint32_t room = self->frame_room ? self->frame_room * 2 : 256;
    ctl_plan_frame_t *grown = realloc (plan->frames, room * sizeof *grown);
    if (!grown)
      return WEFT_E_NOMEM;
    plan->frames = grown;
    self->frame_room = room;
  }
  plan->frames[plan->frame_count++] = *frame;
  return 0;
}

/* L1: of several hellos the one that knew the latest epoch, then the one with the greater bytes:
 * which one it is does not depend on their order. */
static void take_hello (ctl_plan_start_t *start, const weft_up_message_t *message, const void *frame,
                        size_t size)
{
  if (start->hello && start->hello_epoch == message->epoch) {
    size_t both = size < start->hello_size ? size : start->hello_size;
    int order = memcmp (frame, start->hello, both);
    if (order < 0 || (order == 0 && size <= start->hello_size))
      return;
  } else if (start->hello && start->hello_epoch > message->epoch) {
    return;
  }
  start->hello = frame;
  start->hello_size = size;
  start->hello_epoch = message->epoch;
}

static int take_message (work_t *self, const void *frame, size_t size)
{
  weft_up_message_t message;
  uint32_t index;
  if (weft_up_unpack (frame, size, &message) < 0) {
    self->plan->unread++;
    return 0;
  }
  if (message.kind != WEFT_UP_HELLO && message.kind != WEFT_UP_BYE)
    return 0;
  int rc = start_of (self, message.instance, message.start, message.boot, &index);
  if (rc < 0)
    return rc;
  if (message.kind == WEFT_UP_HELLO) {
    memcpy (self->plan->starts[index].boot, message.boot, WEFT_UUID_SIZE);
    take_hello (&self->plan->starts[index], &message, frame, size);
    return 0;
  }
  ctl_plan_frame_t bye = {.frame = frame, .size = (uint32_t) size, .start = index};
  bye.wall_ns = self->plan->frame_count ? self->plan->frames[self->plan->frame_count - 1].wall_ns : 0;
  return add_frame (self, &bye);
}

/* Counts reports and tasks; what is malformed behind some of them is the controller's to count. */
static int count_reports (work_t *self, uint32_t *ret_reports)
{
  weft_report_t report;
  uint32_t reports = 0;
  while (weft_batch_reader_next (&self->reader, &report) == 1) {
    uint64_t half[2];
    pair_t *pair;
    reports++;
    if (report.kind == WEFT_REPORT_BARE)
      continue;
    memcpy (half, report.task, sizeof half);
    if ((half[0] | half[1]) == 0)
      continue;
    int rc = find_or_make (&self->tasks, half[0], half[1], &pair);
    if (rc < 0)
      return rc;
    self->plan->tasks += (uint64_t) rc;
  }
  *ret_reports = reports;
  return 0;
}

static int can_be_renamed (work_t *self, const void *frame, size_t size)
{
  static const weft_rename_key_t any = {1, 2};
  weft_rename_t to = {.number = 1, .ids = self->rename_ids ? &any : NULL};
  memcpy (self->scratch, frame, size);
  return weft_batch_rename (self->scratch, size, &to) == 0;
}

/* The page of a head that will be changed where it lies (ctl_plan_frame_in_place) becomes ours now, not
 * when it is the frame's turn. */
static void make_ours (const void *frame)
{
  volatile uint8_t *head = (void *) (uintptr_t) frame;
  *head = *head;
}

/* L2 */
static int give_number (work_t *self, uint64_t number, ctl_plan_frame_t *batch)
{
  pair_t *pair = NULL;
  int rc = find_or_make (&self->numbers, batch->start + 1u, number, &pair);
  if (rc < 0)
    return rc;
  if (rc == 1)
    pair->value = ++self->plan->starts[batch->start].taken;
  batch->repeated = rc == 0;
  batch->number = pair->value;
  return 0;
}

static int take_batch (work_t *self, const void *frame, size_t size)
{
  ctl_plan_t *plan = self->plan;
  ctl_plan_frame_t batch = {.frame = frame, .size = (uint32_t) size};
  if (weft_batch_reader_begin (&self->reader, frame, size) < 0) {
    plan->unread++;
    return 0;
  }
  const weft_batch_head_t *head = &self->reader.head;
  int rc = start_of (self, head->instance, head->start, head->boot, &batch.start);
  if (rc < 0)
    return rc;
  ctl_plan_start_t *start = &plan->starts[batch.start];
  start->lowest = start->lowest && start->lowest < head->number ? start->lowest : head->number;
  start->highest = start->highest > head->number ? start->highest : head->number;
  if (!can_be_renamed (self, frame, size)) {
    start->left_out++;
    plan->unrenamed++;
    return 0;
  }
  make_ours (frame);
  rc = give_number (self, head->number, &batch);
  if (rc == 0 && !batch.repeated)
    rc = count_reports (self, &batch.reports);
  if (rc < 0)
    return rc;
  batch.wall_ns = head->to_ns + (head->anchor.real_ns - head->anchor.boot_ns);
  plan->batches += !batch.repeated;
  plan->repeated += batch.repeated;
  plan->reports += batch.reports;
  plan->first_ns = plan->first_ns && plan->first_ns < batch.wall_ns ? plan->first_ns : batch.wall_ns;
  plan->last_ns = plan->last_ns > batch.wall_ns ? plan->last_ns : batch.wall_ns;
  return add_frame (self, &batch);
}

static int read_all (work_t *self, ctl_recording_t *recording)
{
  const void *frame;
  size_t size;
  int rc = 0;
  while (rc == 0 && ctl_recording_next (recording, &frame, &size) == 1) {
    weft_up_kind_t kind;
    if (weft_up_kind (frame, size, &kind) < 0)
      self->plan->unread++;
    else
      rc = kind == WEFT_UP_BATCH ? take_batch (self, frame, size) : take_message (self, frame, size);
  }
  for (uint32_t n = 0; n < self->plan->start_count; n++) {
    const ctl_plan_start_t *start = &self->plan->starts[n];
    uint64_t there = start->taken + start->left_out;
    if (there && start->highest - start->lowest >= there)
      self->plan->missing += start->highest - start->lowest + 1 - there;
  }
  return rc;
}

int ctl_plan_new (ctl_recording_t *recording, int rename_ids, ctl_plan_t **ret_self)
{
  work_t *work = calloc (1, sizeof *work);
  int rc = WEFT_E_NOMEM;
  if (work && (work->plan = calloc (1, sizeof *work->plan))) {
    work->rename_ids = rename_ids;
    rc = read_all (work, recording);
  }
  if (rc == 0)
    *ret_self = work->plan;
  else if (work)
    ctl_plan_destroy (&work->plan);
  if (work) {
    free (work->tasks.pairs);
    free (work->numbers.pairs);
  }
  free (work);
  return rc;
}

void ctl_plan_destroy (ctl_plan_t **self_p)
{
  if (!*self_p)
    return;
  free ((*self_p)->starts);
  free ((*self_p)->frames);
  free (*self_p);
  *self_p = NULL;
}

/* ---- names of one repeat -------------------------------------------------- */

void ctl_plan_names (uint64_t seed, uint64_t run, uint32_t repeat, ctl_plan_names_t *ret_names)
{
  /* Of the first repeat the instances are the same in every replay: what is compared with an
   * earlier answer can be compared byte by byte. Never are they those that were recorded. */
  ret_names->keep_ids = repeat == 0;
  ret_names->uuids = weft_rename_key (repeat ? seed : 0, PURPOSE_UUIDS, repeat);
  ret_names->starts = weft_rename_key (run, PURPOSE_STARTS, repeat);
  ret_names->ids = weft_rename_key (seed, PURPOSE_IDS, repeat);
}

void ctl_plan_rename_start (const ctl_plan_names_t *names, const ctl_plan_start_t *start,
                            weft_rename_t *ret_to)
{
  weft_rename_t to = {.number = 1, .ids = names->keep_ids ? NULL : &names->ids};
  weft_rename_16 (&names->uuids, start->instance, to.instance);
  weft_rename_16 (&names->starts, start->start, to.start);
  memcpy (to.boot, start->boot, WEFT_UUID_SIZE); /* the times are still that kernel's */
  *ret_to = to;
}

int ctl_plan_hello (const ctl_plan_t *self, const ctl_plan_names_t *names, uint32_t start, void **ret_frame,
                    size_t *ret_size)
{
  const ctl_plan_start_t *of = &self->starts[start];
  weft_up_message_t message = {0};
  weft_rename_t to;
  if (of->hello && weft_up_unpack (of->hello, of->hello_size, &message) < 0)
    return WEFT_E_MALFORMED;
  ctl_plan_rename_start (names, of, &to);
  message.kind = WEFT_UP_HELLO;
  message.epoch = 0;
  message.replayed = 1;
  memcpy (message.instance, to.instance, WEFT_UUID_SIZE);
  memcpy (message.start, to.start, WEFT_UUID_SIZE);
  memcpy (message.boot, to.boot, WEFT_UUID_SIZE);
  return weft_up_pack (&message, ret_frame, ret_size);
}

static int bye_as (const ctl_plan_frame_t *frame, const weft_rename_t *to, void *out, size_t *ret_size)
{
  weft_up_message_t message;
  void *packed = NULL;
  int rc = weft_up_unpack (frame->frame, frame->size, &message);
  if (rc < 0)
    return rc;
  memcpy (message.instance, to->instance, WEFT_UUID_SIZE);
  memcpy (message.start, to->start, WEFT_UUID_SIZE);
  rc = weft_up_pack (&message, &packed, ret_size);
  if (rc == 0 && *ret_size > frame->size + WEFT_REPORT_MAX)
    rc = WEFT_E_RANGE;
  if (rc == 0)
    memcpy (out, packed, *ret_size);
  free (packed);
  return rc;
}

int ctl_plan_frame (const ctl_plan_t *self, const ctl_plan_names_t *names, const ctl_plan_frame_t *frame,
                    void *out, size_t *ret_size)
{
  weft_rename_t to;
  ctl_plan_rename_start (names, &self->starts[frame->start], &to);
  if (frame->number == 0)
    return bye_as (frame, &to, out, ret_size);
  to.number = frame->number;
  memcpy (out, frame->frame, frame->size);
  *ret_size = frame->size;
  return weft_batch_rename (out, frame->size, &to);
}

int ctl_plan_frame_in_place (const ctl_plan_t *self, const ctl_plan_names_t *names,
                             const ctl_plan_frame_t *frame)
{
  weft_rename_t to;
  if (!names->keep_ids || frame->number == 0)
    return WEFT_E_UNSUPPORTED;
  ctl_plan_rename_start (names, &self->starts[frame->start], &to);
  to.number = frame->number;
  return weft_batch_rename ((void *) (uintptr_t) frame->frame, frame->size, &to);
}
