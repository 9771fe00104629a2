/* SPDX-License-Identifier: Apache-2.0 */
#include "replayer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/ids.h"
#include "../../common/status.h"
#include "pusher.h"

#define GREET_MS       20 /* between two hellos until the first answer */
#define GREET_WHOLE_MS 2000
#define WAIT_MS        50 /* between two looks at `stop` */

/* One start of one repeat. */
typedef struct {
  uint8_t instance[WEFT_UUID_SIZE], start[WEFT_UUID_SIZE];
  uint64_t acked;
  uint8_t greeted;
} slot_t;

typedef struct {
  uint32_t slot, frame;
} flight_t;

typedef struct {
  const ctl_plan_t *plan;
  const ctl_replay_options_t *options;
  ctl_pusher_t *pusher;
  ctl_plan_names_t *names; /* by repeat */
  slot_t *slots;           /* by repeat * starts + start */
  uint32_t slot_count;
  uint32_t *table; /* slot + 1 by start id; open addressing, at most half full */
  uint32_t table_size;
  flight_t flights[WEFT_REPLAY_WINDOW]; /* a ring, oldest first */
  uint32_t first, flying;
  uint64_t progress_ns, resend_ns; /* CLOCK_MONOTONIC */
  ctl_replay_result_t result;
} replay_t;

static int stopped (const replay_t *self)
{
  return self->options->stop && *self->options->stop;
}

static uint32_t place_of (const replay_t *self, const uint8_t instance[WEFT_UUID_SIZE],
                          const uint8_t start[WEFT_UUID_SIZE])
{
  uint64_t hash;
  memcpy (&hash, start, sizeof hash); /* renamed: as good as random */
  for (uint32_t at = (uint32_t) hash;; at++) {
    uint32_t slot = self->table[at & (self->table_size - 1)];
    if (!slot || (memcmp (self->slots[slot - 1].start, start, WEFT_UUID_SIZE) == 0 &&
                  memcmp (self->slots[slot - 1].instance, instance, WEFT_UUID_SIZE) == 0))
      return at & (self->table_size - 1);
  }
}

static int make_slots (replay_t *self)
{
  const ctl_plan_t *plan = self->plan;
  uint32_t repeat = self->options->repeat;
  uint64_t run;
  weft_ids_t ids;
  weft_ids_seed (&ids);
  run = weft_ids_next (&ids);
  self->slot_count = plan->start_count * repeat;
  for (self->table_size = 16; self->table_size < 2 * self->slot_count + 2;)
    self->table_size *= 2;
  self->names = calloc (repeat, sizeof *self->names);
  self->slots = calloc (self->slot_count + 1u, sizeof *self->slots);
  self->table = calloc (self->table_size, sizeof *self->table);
  if (!self->names || !self->slots || !self->table)
    return WEFT_E_NOMEM;
  for (uint32_t k = 0; k < repeat; k++) {
    ctl_plan_names (self->options->seed, run, k, &self->names[k]);
    for (uint32_t n = 0; n < plan->start_count; n++) {
      uint32_t slot = k * plan->start_count + n;
      weft_rename_t to;
      ctl_plan_rename_start (&self->names[k], &plan->starts[n], &to);
      memcpy (self->slots[slot].instance, to.instance, WEFT_UUID_SIZE);
      memcpy (self->slots[slot].start, to.start, WEFT_UUID_SIZE);
      self->table[place_of (self, to.instance, to.start)] = slot + 1;
    }
  }
  return 0;
}

/* ---- acknowledgements ---------------------------------------------------- */

static const ctl_plan_frame_t *frame_of (const replay_t *self, const flight_t *flight)
{
  return &self->plan->frames[flight->frame];
}

/* Takes off the ring what is acknowledged, from its oldest on. */
static void land (replay_t *self)
{
  while (self->flying) {
    const flight_t *oldest = &self->flights[self->first];
    if (self->slots[oldest->slot].acked < frame_of (self, oldest)->number)
      return;
    self->first = (self->first + 1) % WEFT_REPLAY_WINDOW;
    self->flying--;
    self->progress_ns = self->resend_ns = weft_mono_ns ();
  }
}

static int hear (replay_t *self, unsigned wait_ms)
{
  ctl_pusher_heard_t heard;
  int any = 0;
  while (ctl_pusher_hear (self->pusher, any ? 0 : wait_ms, &heard)) {
    any = 1;
    if (!heard.number)
      continue;
    uint32_t slot = self->table[place_of (self, heard.instance, heard.start)];
    if (slot && self->slots[slot - 1].acked < heard.number)
      self->slots[slot - 1].acked = heard.number;
  }
  land (self);
  return any;
}

/* ---- sending ---------------------------------------------------------------- */

static int push (replay_t *self, size_t size)
{
  for (;;) {
    int rc = ctl_pusher_send (self->pusher, size);
    if (rc != WEFT_E_BUSY)
      return rc;
    if (weft_mono_ns () - self->progress_ns > WEFT_REPLAY_STALL_MS * WEFT_NS_PER_MS)
      return WEFT_E_TIMEOUT;
    if (stopped (self))
      return WEFT_E_STATE;
    hear (self, 1);
  }
}

static int greet (replay_t *self, uint32_t slot)
{
  void *frame = NULL;
  size_t size = 0;
  int rc = ctl_plan_hello (self->plan, &self->names[slot / self->plan->start_count],
                           slot % self->plan->start_count, &frame, &size);
  void *room = rc == 0 ? ctl_pusher_frame (self->pusher, size) : NULL;
  if (rc == 0 && !room)
    rc = WEFT_E_NOMEM;
  if (rc == 0) {
    memcpy (room, frame, size);
    rc = push (self, size);
  }
  free (frame);
  self->slots[slot].greeted = rc == 0;
  return rc;
}

/* Until the controller answers, we do not hear its acknowledgements: a subscription takes its time. */
static int greet_first (replay_t *self)
{
  for (unsigned waited = 0; waited < GREET_WHOLE_MS && !stopped (self); waited += GREET_MS) {
    int rc = greet (self, 0);
    if (rc < 0)
      return rc;
    ctl_pusher_heard_t heard;
    if (ctl_pusher_hear (self->pusher, GREET_MS, &heard))
      return 0;
  }
  return stopped (self) ? WEFT_E_STATE : WEFT_E_TIMEOUT;
}

static int send_one (replay_t *self, uint32_t slot, uint32_t index)
{
  const ctl_plan_frame_t *frame = &self->plan->frames[index];
  const ctl_plan_names_t *names = &self->names[slot / self->plan->start_count];
  size_t size = frame->size + (frame->number ? 0 : WEFT_REPORT_MAX);
  int rc;
  if (ctl_plan_frame_in_place (self->plan, names, frame) == 0) {
    rc = ctl_pusher_lend (self->pusher, frame->frame, size);
  } else {
    void *room = ctl_pusher_frame (self->pusher, size);
    rc = room ? ctl_plan_frame (self->plan, names, frame, room, &size) : WEFT_E_NOMEM;
  }
  return rc < 0 ? rc : push (self, size);
}

/* E1: everything that waits, again and in its order. */
static int send_again (replay_t *self)
{
  int rc = 0;
  uint32_t flying = self->flying, first = self->first;
  self->resend_ns = weft_mono_ns ();
  for (uint32_t n = 0; rc == 0 && n < flying; n++) {
    const flight_t flight = self->flights[(first + n) % WEFT_REPLAY_WINDOW];
    if (self->slots[flight.slot].acked >= frame_of (self, &flight)->number)
      continue;
    rc = send_one (self, flight.slot, flight.frame);
    self->result.sent_again++;
  }
  return rc;
}

static void say_progress (const replay_t *self)
{
  if (self->options->progress)
    ctl_progress_say (self->options->progress, "replaying: %llu of %llu batches, %llu reports",
                      (unsigned long long) self->result.batches,
                      (unsigned long long) self->plan->batches * self->options->repeat,
                      (unsigned long long) self->result.reports);
}

/* Until at most `most` batches wait. */
static int await (replay_t *self, uint32_t most)
{
  int rc = 0;
  while (rc == 0 && self->flying > most) {
    if (stopped (self))
      return WEFT_E_STATE;
    say_progress (self);
    hear (self, WAIT_MS);
    uint64_t now_ns = weft_mono_ns ();
    if (self->flying && now_ns - self->progress_ns > WEFT_REPLAY_STALL_MS * WEFT_NS_PER_MS)
      return WEFT_E_TIMEOUT;
    if (self->flying && now_ns - self->resend_ns > WEFT_REPLAY_RESEND_MS * WEFT_NS_PER_MS)
      rc = send_again (self);
  }
  return rc;
}

static int send_frame (replay_t *self, uint32_t repeat, uint32_t index)
{
  const ctl_plan_frame_t *frame = &self->plan->frames[index];
  uint32_t slot = repeat * self->plan->start_count + frame->start;
  int rc = self->slots[slot].greeted ? 0 : greet (self, slot);
  if (rc == 0 && frame->number)
    rc = await (self, WEFT_REPLAY_WINDOW - 1);
  if (rc == 0)
    rc = send_one (self, slot, index);
  if (rc < 0 || !frame->number)
    return rc;
  if (self->flying == 0)
    self->progress_ns = self->resend_ns = weft_mono_ns ();
  self->flights[(self->first + self->flying++) % WEFT_REPLAY_WINDOW] = (flight_t){slot, index};
  self->result.batches += !frame->repeated;
  self->result.reports += frame->reports;
  return 0;
}

/* Waits until it is the frame's turn. */
static int pace (replay_t *self, uint64_t began_ns, uint64_t wall_ns)
{
  if (self->options->speed <= 0 || wall_ns <= self->plan->first_ns)
    return 0;
  double after_ns = (double) (wall_ns - self->plan->first_ns) / self->options->speed;
  if (after_ns > (double) WEFT_FOR_MAX_MS * (double) WEFT_NS_PER_MS)
    after_ns = 0; /* a clock that jumped, not a pause that somebody waits for */
  uint64_t due_ns = began_ns + (uint64_t) after_ns;
  for (uint64_t now_ns; (now_ns = weft_mono_ns ()) < due_ns;) {
    uint64_t left_ms = (due_ns - now_ns) / WEFT_NS_PER_MS + 1;
    if (stopped (self))
      return WEFT_E_STATE;
    say_progress (self);
    hear (self, left_ms < WAIT_MS ? (unsigned) left_ms : WAIT_MS);
    int rc = self->flying ? await (self, self->flying) : 0;
    if (rc < 0)
      return rc;
  }
  return 0;
}

static int send_all (replay_t *self)
{
  uint64_t began_ns = self->progress_ns = self->resend_ns = weft_mono_ns ();
  int rc = self->slot_count ? greet_first (self) : 0;
  began_ns = rc == 0 ? weft_mono_ns () : began_ns;
  self->progress_ns = self->resend_ns = began_ns;
  for (uint32_t n = 0; rc == 0 && n < self->plan->frame_count; n++) {
    say_progress (self);
    rc = pace (self, began_ns, self->plan->frames[n].wall_ns);
    for (uint32_t k = 0; rc == 0 && k < self->options->repeat; k++)
      rc = stopped (self) ? WEFT_E_STATE : send_frame (self, k, n);
  }
  for (uint32_t n = 0; rc == 0 && n < self->slot_count; n++)
    if (!self->slots[n].greeted)
      rc = greet (self, n);
  if (rc == 0)
    rc = await (self, 0);
  self->result.seconds = (double) (weft_mono_ns () - began_ns) / 1e9;
  self->result.whole = rc == 0;
  return rc == WEFT_E_STATE ? 0 : rc;
}

static int check (const ctl_plan_t *plan, const ctl_replay_options_t *options, char *why, size_t why_size)
{
  uint64_t instances = (uint64_t) plan->start_count * options->repeat;
  if (instances <= WEFT_INSTANCES_MAX)
    return 0;
  snprintf (why, why_size,
            "%llu instances are more than the %d that a controller knows; give a smaller --repeat",
            (unsigned long long) instances, WEFT_INSTANCES_MAX);
  return WEFT_E_FULL;
}

int ctl_replay_run (const ctl_plan_t *plan, const ctl_replay_options_t *options,
                    ctl_replay_result_t *ret_result, char *why, size_t why_size)
{
  replay_t *self = calloc (1, sizeof *self);
  int rc = self ? check (plan, options, why, why_size) : WEFT_E_NOMEM;
  *ret_result = (ctl_replay_result_t){0};
  if (rc == 0) {
    self->plan = plan;
    self->options = options;
    rc = make_slots (self);
  }
  if (rc == 0)
    rc = ctl_pusher_open (options->address, &self->pusher, why, why_size);
  if (rc == 0) {
    rc = send_all (self);
    *ret_result = self->result;
    if (rc < 0)
      snprintf (why, why_size, "%s",
                rc == WEFT_E_TIMEOUT ? "it acknowledges nothing any more; is its disk full?"
                                     : weft_status_text (rc));
  }
  if (self) {
    ctl_pusher_close (&self->pusher);
    free (self->names);
    free (self->slots);
    free (self->table);
  }
  free (self);
  return rc;
}
