/* SPDX-License-Identifier: Apache-2.0 */
/* pools: services in a row, of which all behind the first have a few threads each, moment by
 * moment: who waits before which of them, and for whom, follows from who was there first. Header only. */
#ifndef TEST_POOLS_H
#define TEST_POOLS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../common/ids.h"
#include "../../../../controller/task/task.h"

#define POOLS_REQUESTS 720u
#define POOLS_JOBS     (2 * POOLS_REQUESTS) /* with those of others */
#define POOLS_STEPS    200u
#define POOLS_CALLS    24u /* of one request */
#define POOLS_MANY     16u
#define POOLS_MS       1000000.0
#define POOLS_WAKE_MS  0.2 /* until a thread that has something to do goes on */

typedef enum {
  POOLS_FRONT,
  POOLS_MIDDLE,
  POOLS_INNER,
  POOLS_LAST,
  POOLS_LOCK_M,
  POOLS_LOCK_L,
  POOLS_COUNT
} pools_place_t;

typedef enum {
  POOLS_NOTHING,
  POOLS_TAKEN_MIDDLE, /* others keep all its threads */
  POOLS_TAKEN_LAST,
  POOLS_LOCK_MIDDLE, /* one of others holds what all of its threads need */
  POOLS_LOCK_LAST,
  POOLS_SLOW_LAST, /* the request itself takes long there */
  POOLS_MANY_LAST, /* or goes there often */
  POOLS_CAUSES
} pools_cause_t;

typedef enum { POOLS_WORK, POOLS_ENTER, POOLS_START, POOLS_LEAVE, POOLS_ANSWER } pools_verb_t;

typedef struct {
  pools_verb_t verb;
  pools_place_t place;
  double ms;
} pools_step_t;

typedef struct {
  pools_place_t place;
  double sent_ms, start_ms, end_ms, answered_ms;
} pools_call_t;

typedef struct {
  pools_step_t step[POOLS_STEPS];
  uint32_t steps, next;
  pools_call_t call[POOLS_CALLS];
  uint32_t calls, open[POOLS_COUNT]; /* the call that is going on there */
  int is_others;
  double due_ms; /* when it goes on; below 0: it waits for a thread, or is over */
} pools_job_t;

typedef struct {
  uint32_t threads, busy, queue[POOLS_JOBS * POOLS_CALLS], first, last;
} pools_pool_t;

typedef struct {
  weft_ids_t random;
  pools_cause_t cause;
  double base_ms, sigma, gap_ms, extra_ms;
  uint32_t every;
  int is_deep; /* there is one more between the middle and the last */
  pools_pool_t pool[POOLS_COUNT];
  pools_job_t job[POOLS_JOBS];
  uint32_t jobs;
} pools_t;

static inline double pools_draw (pools_t *self)
{
  return (double) (weft_ids_next (&self->random) >> 11) / 9007199254740992.0;
}

static inline double pools_noise (pools_t *self)
{
  double normal = sqrt (-2 * log (1 - pools_draw (self))) * cos (2 * 3.14159265358979 * pools_draw (self));
  return exp (self->sigma * normal);
}

static inline double pools_wake (pools_t *self)
{
  return POOLS_WAKE_MS * (0.1 - log (1 - pools_draw (self)));
}

static inline void pools_do (pools_job_t *job, pools_verb_t verb, pools_place_t place, double ms)
{
  job->step[job->steps++] = (pools_step_t){verb, place, ms};
}

static inline double pools_work (pools_t *self)
{
  return self->base_ms * pools_noise (self) / 2;
}

static inline int pools_locks (const pools_t *self, pools_place_t place)
{
  return self->cause == (place == POOLS_LAST ? POOLS_LOCK_LAST : POOLS_LOCK_MIDDLE);
}

/* Work that needs the lock of that place, where there is one. */
static inline void pools_locked (pools_t *self, pools_job_t *job, pools_place_t place, double ms)
{
  pools_place_t lock = place == POOLS_LAST ? POOLS_LOCK_L : POOLS_LOCK_M;
  if (pools_locks (self, place))
    pools_do (job, POOLS_ENTER, lock, 0);
  pools_do (job, POOLS_WORK, place, ms);
  if (pools_locks (self, place))
    pools_do (job, POOLS_LEAVE, lock, 0);
}

/* A thread of that place is asked for, wakes up, ... */
static inline void pools_begin (pools_t *self, pools_job_t *job, pools_place_t place)
{
  pools_do (job, POOLS_ENTER, place, 0);
  pools_do (job, POOLS_WORK, place, pools_wake (self));
  pools_do (job, POOLS_START, place, 0);
}

/* ... and answers, and its caller wakes up. */
static inline void pools_end (pools_t *self, pools_job_t *job, pools_place_t place)
{
  pools_do (job, POOLS_LEAVE, place, 0);
  pools_do (job, POOLS_WORK, place, pools_wake (self));
  pools_do (job, POOLS_ANSWER, place, 0);
}

static inline void pools_request (pools_t *self, double at_ms, int hit)
{
  pools_job_t *job = &self->job[self->jobs++];
  uint32_t calls = hit && self->cause == POOLS_MANY_LAST ? POOLS_MANY : 1;
  *job = (pools_job_t){.due_ms = at_ms};
  pools_begin (self, job, POOLS_FRONT);
  pools_do (job, POOLS_WORK, POOLS_FRONT, pools_work (self));
  pools_begin (self, job, POOLS_MIDDLE);
  pools_locked (self, job, POOLS_MIDDLE, pools_work (self));
  if (self->is_deep) {
    pools_begin (self, job, POOLS_INNER);
    pools_do (job, POOLS_WORK, POOLS_INNER, pools_work (self));
  }
  for (uint32_t i = 0; i < calls; i++) {
    pools_begin (self, job, POOLS_LAST);
    pools_locked (self, job, POOLS_LAST, pools_work (self));
    if (hit && self->cause == POOLS_SLOW_LAST)
      pools_do (job, POOLS_WORK, POOLS_LAST, self->extra_ms);
    if (hit && self->cause == POOLS_MANY_LAST)
      pools_do (job, POOLS_WORK, POOLS_LAST, self->extra_ms / POOLS_MANY);
    pools_end (self, job, POOLS_LAST);
  }
  if (self->is_deep)
    pools_end (self, job, POOLS_INNER);
  pools_do (job, POOLS_WORK, POOLS_MIDDLE, pools_work (self));
  pools_end (self, job, POOLS_MIDDLE);
  pools_do (job, POOLS_WORK, POOLS_FRONT, pools_work (self));
  pools_end (self, job, POOLS_FRONT);
}

/* What others want there, all at once. */
static inline void pools_others (pools_t *self, double at_ms)
{
  pools_place_t place =
      self->cause == POOLS_TAKEN_MIDDLE || self->cause == POOLS_LOCK_MIDDLE ? POOLS_MIDDLE : POOLS_LAST;
  uint32_t count = pools_locks (self, place) ? 1 : self->pool[place].threads;
  for (uint32_t i = 0; i < count; i++) {
    pools_job_t *job = &self->job[self->jobs++];
    *job = (pools_job_t){.due_ms = at_ms, .is_others = 1};
    pools_begin (self, job, place);
    pools_locked (self, job, place, self->extra_ms * (0.9 + 0.2 * pools_draw (self)));
    pools_end (self, job, place);
  }
}

/* Whether it has a thread there, or the lock, and goes on. */
static inline int pools_enter (pools_t *self, uint32_t number, pools_place_t place, double now_ms)
{
  pools_job_t *job = &self->job[number];
  pools_pool_t *pool = &self->pool[place];
  if (place < POOLS_LOCK_M) {
    job->open[place] = job->calls;
    job->call[job->calls++] = (pools_call_t){.place = place, .sent_ms = now_ms};
  }
  if (pool->busy == pool->threads) {
    pool->queue[pool->last++] = number;
    job->due_ms = -1;
    return 0;
  }
  pool->busy++;
  return 1;
}

static inline void pools_leave (pools_t *self, uint32_t number, pools_place_t place, double now_ms)
{
  pools_job_t *job = &self->job[number];
  pools_pool_t *pool = &self->pool[place];
  if (place < POOLS_LOCK_M)
    job->call[job->open[place]].end_ms = now_ms;
  if (pool->first == pool->last) {
    pool->busy--;
    return;
  }
  self->job[pool->queue[pool->first++]].due_ms = now_ms;
}

static inline void pools_go_on (pools_t *self, uint32_t number)
{
  pools_job_t *job = &self->job[number];
  while (job->next < job->steps) {
    const pools_step_t *step = &job->step[job->next++];
    if (step->verb == POOLS_WORK) {
      job->due_ms += step->ms;
      return;
    }
    if (step->verb == POOLS_START)
      job->call[job->open[step->place]].start_ms = job->due_ms;
    else if (step->verb == POOLS_ANSWER)
      job->call[job->open[step->place]].answered_ms = job->due_ms;
    else if (step->verb == POOLS_LEAVE)
      pools_leave (self, number, step->place, job->due_ms);
    else if (!pools_enter (self, number, step->place, job->due_ms))
      return;
  }
  job->due_ms = -1;
}

/* Until all are done. */
static inline void pools_run (pools_t *self)
{
  for (;;) {
    uint32_t next = UINT32_MAX;
    for (uint32_t i = 0; i < self->jobs; i++)
      if (self->job[i].due_ms >= 0 && (next == UINT32_MAX || self->job[i].due_ms < self->job[next].due_ms))
        next = i;
    if (next == UINT32_MAX)
      return;
    pools_go_on (self, next);
  }
}

static inline void pools_new (pools_t *self, uint64_t seed, pools_cause_t cause, int is_deep)
{
  memset (self, 0, sizeof *self);
  for (int i = 0; i < 4; i++)
    self->random.s[i] = seed * 0x9e3779b97f4a7c15ull + (uint64_t) i + 1;
  for (int i = 0; i < 16; i++)
    weft_ids_next (&self->random);
  self->cause = cause;
  self->is_deep = is_deep;
  self->base_ms = 4 + 8 * pools_draw (self);
  self->sigma = 0.1 + 0.3 * pools_draw (self);
  self->pool[POOLS_FRONT].threads = POOLS_JOBS;
  self->pool[POOLS_MIDDLE].threads = 2 + (uint32_t) (4 * pools_draw (self));
  self->pool[POOLS_INNER].threads = self->pool[POOLS_MIDDLE].threads;
  self->pool[POOLS_LAST].threads = 2 + (uint32_t) (3 * pools_draw (self));
  self->pool[POOLS_LOCK_M].threads = self->pool[POOLS_LOCK_L].threads = 1;
  uint32_t few = self->pool[POOLS_LAST].threads < self->pool[POOLS_MIDDLE].threads
                     ? self->pool[POOLS_LAST].threads
                     : self->pool[POOLS_MIDDLE].threads;
  few = cause == POOLS_LOCK_LAST || cause == POOLS_LOCK_MIDDLE ? 1 : few;
  /* the pools are busy for a third to two thirds of the time */
  self->gap_ms = 2 * self->base_ms / few * (1.5 + 1.5 * pools_draw (self));
  /* who comes meanwhile is a part of all */
  self->extra_ms = self->gap_ms * (4 + 8 * pools_draw (self)) + 4 * self->base_ms;
  self->every = 60;
  double at_ms = 1000;
  for (uint32_t i = 0; i < POOLS_REQUESTS; i++) {
    at_ms += self->gap_ms * -log (1 - pools_draw (self));
    int hit = i % self->every == self->every / 2;
    if (hit && cause != POOLS_NOTHING && cause < POOLS_SLOW_LAST)
      pools_others (self, at_ms - 0.01);
    pools_request (self, at_ms, hit);
  }
  pools_run (self);
}

static inline ctl_subtask_t pools_subtask (const pools_call_t *call, uint32_t index, uint64_t caller)
{
  static const char *const service[] = {"front", "middle", "inner", "last"};
  static const char *const name[] = {"GET /", "GET /m", "GET /i", "GET /l"};
  double cpu_ms = (call->end_ms - call->start_ms) / 4;
  ctl_subtask_t subtask = {.id = index + 1,
                           .request = caller ? index + 1001 : 0,
                           .caller = caller,
                           .hop = caller ? CTL_HOP_PROVEN : CTL_HOP_ROOT,
                           .answered = 1,
                           .status = 200,
                           .host = 1,
                           .sender_host = 1,
                           .service = service[call->place],
                           .vm = "jvm",
                           .name = name[call->place],
                           .start_ns = (uint64_t) (call->start_ms * POOLS_MS),
                           .end_ns = (uint64_t) (call->end_ms * POOLS_MS),
                           .cpu_ns = (uint64_t) (cpu_ms * POOLS_MS)};
  if (caller) {
    subtask.sent_ns = (uint64_t) (call->sent_ms * POOLS_MS);
    subtask.answered_ns = (uint64_t) (call->answered_ms * POOLS_MS);
  }
  return subtask;
}

/* NULL: that one is of others. */
static inline ctl_execution_t *pools_execution (const pools_t *self, uint32_t number)
{
  static const uint64_t caller[] = {0, 1, 2, 2};
  const pools_job_t *job = &self->job[number];
  if (job->is_others)
    return NULL;
  ctl_execution_t *out = calloc (1, sizeof *out);
  out->subtasks = calloc (POOLS_CALLS, sizeof *out->subtasks);
  uint64_t id = number * 0x9e3779b97f4a7c15ull + 1;
  memcpy (out->task, &id, sizeof id);
  memcpy (out->task + 8, &number, sizeof number);
  out->task[15] = 1;
  out->name = out->origin = "";
  out->hosts = 1;
  for (uint32_t i = 0; i < job->calls; i++)
    out->subtasks[out->count++] = pools_subtask (
        &job->call[i], i, caller[job->call[i].place] + (job->call[i].place == POOLS_LAST && self->is_deep));
  if (ctl_execution_settle (out))
    abort ();
  return out;
}

#endif
