/* SPDX-License-Identifier: Apache-2.0 */
/* shop: random systems of services with one noise everywhere, and what can be planted in
 * some of their requests. The truth about every execution is known by construction. Header
 * only. */
#ifndef TEST_SHOP_H
#define TEST_SHOP_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../common/ids.h"
#include "../../../../controller/task/task.h"

#define SHOP_PLACES 10u
#define SHOP_ROOM   512u /* subtasks of one execution */
#define SHOP_MS     1000000.0

typedef enum { SHOP_UNIFORM, SHOP_EXPONENTIAL, SHOP_HALF_NORMAL, SHOP_LOG_NORMAL, SHOP_NOISES } shop_noise_t;
typedef enum {
  SHOP_NOTHING,
  SHOP_SLOW,
  SHOP_MANY,
  SHOP_RETRY,
  SHOP_LOCK,
  SHOP_QUEUE,
  SHOP_NETWORK,
  SHOP_HELD, /* for a part of the time before it is taken up, for the rest in itself */
  SHOP_POOL, /* likewise, in any place of that service */
  SHOP_CAUSES
} shop_cause_t;

typedef struct {
  int parent;   /* -1: the root */
  int parallel; /* with the call before it */
  char service[16], name[24];
  double base_ms;
  double often; /* it is called at all */
  int most;     /* times, if it is */
} shop_place_t;

typedef struct {
  weft_ids_t random;
  shop_place_t place[SHOP_PLACES];
  int places;
  shop_noise_t noise;
  double sigma;    /* of the log-normal noise */
  double load;     /* sigma of what slows down a whole execution */
  double pauses;   /* share of executions that one pause strikes, somewhere */
  double wake_ms;  /* until a callee takes a request up, about; a pause strikes there, too */
  double whole_ms; /* what an execution takes without noise */
  /* planted: */
  shop_cause_t cause;
  int at;          /* place */
  double share;    /* of the executions */
  double extra_ms; /* that it makes them longer, about */
  int hosts;       /* 2: the planted place is alone on the other one; 3: with its caller */
  /* the execution in hand: */
  ctl_execution_t *out;
  int hit;
  int struck; /* place: `at`, or one of its service */
  double pause_at_ms, spent_ms, factor;
} shop_t;

static inline double shop_draw (shop_t *self)
{
  return (double) (weft_ids_next (&self->random) >> 11) / 9007199254740992.0;
}

static inline int shop_below (shop_t *self, int below)
{
  return (int) (shop_draw (self) * below);
}

static inline double shop_normal (shop_t *self)
{
  return sqrt (-2 * log (1 - shop_draw (self))) * cos (2 * 3.14159265358979 * shop_draw (self));
}

/* A positive number around one. */
static inline double shop_noise (shop_t *self)
{
  switch (self->noise) {
  case SHOP_UNIFORM:
    return 0.5 + shop_draw (self);
  case SHOP_EXPONENTIAL:
    return -log (1 - shop_draw (self));
  case SHOP_HALF_NORMAL:
    return 1 + 0.3 * fabs (shop_normal (self));
  default:
    return exp (self->sigma * shop_normal (self));
  }
}

static inline void shop_new (shop_t *self, uint64_t seed)
{
  memset (self, 0, sizeof *self);
  for (int i = 0; i < 4; i++)
    self->random.s[i] = seed * 0x9e3779b97f4a7c15ull + (uint64_t) i + 1;
  for (int i = 0; i < 16; i++)
    weft_ids_next (&self->random);
  self->places = 3 + shop_below (self, (int) SHOP_PLACES - 2);
  int services = 2 + shop_below (self, 3);
  self->noise = (shop_noise_t) shop_below (self, SHOP_NOISES);
  self->sigma = 0.3 + 0.7 * shop_draw (self);
  self->load = shop_draw (self) < 0.5 ? 0 : 0.4 * shop_draw (self);
  self->pauses = shop_draw (self) < 0.5 ? 0 : 0.03;
  for (int i = 0; i < self->places; i++) {
    shop_place_t *place = &self->place[i];
    place->parent = i ? shop_below (self, i) : -1;
    place->parallel = shop_draw (self) < 0.2;
    place->base_ms = 0.5 + 8 * shop_draw (self);
    place->often = 1;
    place->most = 1;
    self->whole_ms += place->base_ms;
    snprintf (place->service, sizeof place->service, "service-%d", i ? shop_below (self, services) : 0);
    snprintf (place->name, sizeof place->name, "GET /%d", i);
  }
}

/* Requests that are not alike: calls that only some of them make, and some more than once. And threads that
 * take their time. */
static inline void shop_vary (shop_t *self)
{
  self->wake_ms = shop_draw (self) < 0.5 ? 0 : 2 * shop_draw (self);
  for (int i = 1; i < self->places; i++) {
    self->place[i].often = shop_draw (self) < 0.5 ? 1 : 0.2 + 0.8 * shop_draw (self);
    self->place[i].most = 1 + shop_below (self, 3);
  }
}

static inline ctl_subtask_t *shop_subtask (shop_t *self, int at, uint64_t caller)
{
  ctl_subtask_t *subtask = &self->out->subtasks[self->out->count++];
  *subtask = (ctl_subtask_t){.id = self->out->count,
                             .request = caller ? self->out->count + 1000 : 0,
                             .caller = caller,
                             .hop = caller ? CTL_HOP_PROVEN : CTL_HOP_ROOT,
                             .answered = 1,
                             .status = 200,
                             .service = self->place[at].service,
                             .vm = "jvm",
                             .name = self->place[at].name};
  return subtask;
}

/* Work in one place, and what strikes while it is done. */
static inline double shop_work (shop_t *self, double ms)
{
  ms *= shop_noise (self) * self->factor;
  self->spent_ms += ms;
  if (self->pause_at_ms >= 0 && self->spent_ms > self->pause_at_ms) {
    self->pause_at_ms = -1;
    ms += self->whole_ms * (1 + 2 * shop_draw (self));
  }
  return ms;
}

static inline double shop_emit (shop_t *self, int at, uint64_t caller, double sent_ms, int failing);

/* All calls of one place, one after another or side by side; returns when the caller goes on. */
static inline double shop_calls (shop_t *self, int at, uint64_t id, double now_ms)
{
  double begin_ms = now_ms, until_ms = now_ms;
  for (int i = at + 1; i < self->places; i++) {
    if (self->place[i].parent != at)
      continue;
    int planted = self->hit && self->struck == i;
    int usual = self->place[i].often == 1 || shop_draw (self) < self->place[i].often
                    ? 1 + (self->place[i].most > 1 ? shop_below (self, self->place[i].most) : 0)
                    : 0;
    int calls = planted && self->cause == SHOP_MANY ? 9 : planted && self->cause == SHOP_RETRY ? 4 : usual;
    if (self->out->count + (uint32_t) calls * SHOP_PLACES > SHOP_ROOM)
      break;
    for (int k = 0; k < calls; k++) {
      double from_ms = self->place[i].parallel && calls == 1 ? begin_ms : until_ms;
      if (k && self->cause == SHOP_RETRY)
        from_ms += self->extra_ms / 4;
      begin_ms = from_ms;
      double answered_ms =
          shop_emit (self, i, id, from_ms, planted && self->cause == SHOP_RETRY && k + 1 < calls);
      until_ms = answered_ms > until_ms ? answered_ms : until_ms;
    }
  }
  return until_ms;
}

/* Returns when the caller has the answer. */
static inline double shop_emit (shop_t *self, int at, uint64_t caller, double sent_ms, int failing)
{
  ctl_subtask_t *subtask = shop_subtask (self, at, caller);
  uint64_t id = subtask->id;
  int planted = self->hit && self->struck == at;
  double network_ms = caller ? 0.05 + 0.05 * shop_draw (self) : 0, before_ms = 0;
  if (planted && self->cause == SHOP_NETWORK)
    network_ms += self->extra_ms / 2;
  if (planted && self->cause == SHOP_QUEUE)
    before_ms = self->extra_ms;
  if (planted && (self->cause == SHOP_HELD || self->cause == SHOP_POOL))
    before_ms = self->extra_ms * shop_draw (self);
  if (caller && self->wake_ms > 0)
    before_ms += shop_work (self, self->wake_ms);
  double start_ms = sent_ms + network_ms + before_ms;
  double first_ms = shop_work (self, self->place[at].base_ms / 2);
  double now_ms = failing ? start_ms + first_ms : shop_calls (self, at, id, start_ms + first_ms);
  double last_ms = shop_work (self, self->place[at].base_ms / 2);
  double cpu_ms = 0.8 * (first_ms + last_ms);
  if (planted && (self->cause == SHOP_SLOW || self->cause == SHOP_LOCK))
    last_ms += self->extra_ms * (0.9 + 0.2 * shop_draw (self));
  if (planted && (self->cause == SHOP_HELD || self->cause == SHOP_POOL))
    last_ms += self->extra_ms - before_ms;
  if (planted && self->cause == SHOP_SLOW)
    cpu_ms += self->extra_ms * 0.9;
  double end_ms = now_ms + last_ms, answered_ms = end_ms + network_ms;
  subtask = &self->out->subtasks[id - 1];
  subtask->status = failing ? 503 : 200;
  subtask->start_ns = (uint64_t) (start_ms * SHOP_MS);
  subtask->end_ns = (uint64_t) (end_ms * SHOP_MS);
  subtask->cpu_ns = (uint64_t) (cpu_ms * SHOP_MS);
  subtask->host = self->hosts && self->at == at ? 2 : 1;
  subtask->sender_host = self->hosts == 3 && self->at == at ? 2 : 1;
  if (caller) {
    subtask->sent_ns = (uint64_t) (sent_ms * SHOP_MS);
    subtask->answered_ns = (uint64_t) (answered_ms * SHOP_MS);
  }
  return answered_ms;
}

/* Some other place of the service that is planted in. */
static inline int shop_struck (shop_t *self)
{
  int places[SHOP_PLACES], count = 0;
  for (int i = 1; i < self->places; i++)
    if (strcmp (self->place[i].service, self->place[self->at].service) == 0)
      places[count++] = i;
  return self->cause == SHOP_POOL ? places[shop_below (self, count)] : self->at;
}

/* Execution `number`; requests come so that some eight are open at once. */
static inline ctl_execution_t *shop_execution (shop_t *self, uint32_t number)
{
  self->out = calloc (1, sizeof *self->out);
  self->out->subtasks = calloc (SHOP_ROOM, sizeof *self->out->subtasks);
  uint64_t id = weft_ids_next (&self->random);
  memcpy (self->out->task, &id, sizeof id);
  memcpy (self->out->task + 8, &number, sizeof number);
  self->out->task[15] = 1;
  self->out->name = self->out->origin = "";
  self->out->hosts = self->hosts ? 2 : 1;
  int turn = (int) (1 / (self->share > 0 ? self->share : 1));
  /* a lock that is held makes all wait who come meanwhile: three in a row */
  self->hit = self->cause == SHOP_LOCK ? (int) number % turn < 3 : shop_draw (self) < self->share;
  self->hit &= self->cause != SHOP_NOTHING;
  self->struck = shop_struck (self);
  self->factor = exp (self->load * shop_normal (self));
  self->pause_at_ms = shop_draw (self) < self->pauses ? shop_draw (self) * self->whole_ms : -1;
  self->spent_ms = 0;
  shop_emit (self, 0, 0, 1000 + number * self->whole_ms / 8, 0);
  if (ctl_execution_settle (self->out))
    abort ();
  return self->out;
}

#endif
