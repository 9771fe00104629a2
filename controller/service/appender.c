/* SPDX-License-Identifier: Apache-2.0 */
#include "appender.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct ctl_appender_t {
  pthread_t thread;
  pthread_mutex_t mutex; /* of all below */
  pthread_cond_t begun, ended;
  enum { IDLE, BEGUN, UNDER_WAY } state;
  ctl_journal_t *journal;
  const ctl_journal_frame_t *frames;
  unsigned count;
  int status, leaving;
};

/* With the mutex held, which it gives up meanwhile: A1 keeps everybody else off what is used here. */
static void append (ctl_appender_t *self)
{
  ctl_journal_t *journal = self->journal;
  self->state = UNDER_WAY;
  pthread_mutex_unlock (&self->mutex);
  int status = ctl_journal_append_all (journal, self->frames, self->count);
  pthread_mutex_lock (&self->mutex);
  self->status = status;
  self->state = IDLE;
}

static void *run (void *self_v)
{
  ctl_appender_t *self = self_v;
  pthread_mutex_lock (&self->mutex);
  for (;;) {
    while (self->state != BEGUN && !self->leaving)
      pthread_cond_wait (&self->begun, &self->mutex);
    if (self->state != BEGUN)
      break;
    append (self);
    pthread_cond_signal (&self->ended);
  }
  pthread_mutex_unlock (&self->mutex);
  return NULL;
}

ctl_appender_t *ctl_appender_new (void)
{
  ctl_appender_t *self = calloc (1, sizeof *self);
  sigset_t all, before;
  if (!self)
    return NULL;
  pthread_mutex_init (&self->mutex, NULL);
  pthread_cond_init (&self->begun, NULL);
  pthread_cond_init (&self->ended, NULL);
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  int error = pthread_create (&self->thread, NULL, run, self);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  if (error) {
    free (self);
    return NULL;
  }
  return self;
}

void ctl_appender_destroy (ctl_appender_t **self_p)
{
  ctl_appender_t *self = *self_p;
  if (!self)
    return;
  pthread_mutex_lock (&self->mutex);
  self->leaving = 1;
  pthread_cond_signal (&self->begun);
  pthread_mutex_unlock (&self->mutex);
  pthread_join (self->thread, NULL);
  pthread_cond_destroy (&self->begun);
  pthread_cond_destroy (&self->ended);
  pthread_mutex_destroy (&self->mutex);
  free (self);
  *self_p = NULL;
}

void ctl_appender_begin (ctl_appender_t *self, ctl_journal_t *journal, const ctl_journal_frame_t *frames,
                         unsigned count)
{
  pthread_mutex_lock (&self->mutex);
  assert (self->state == IDLE); /* A2 */
  self->state = BEGUN;
  self->journal = journal;
  self->frames = frames;
  self->count = count;
  pthread_cond_signal (&self->begun);
  pthread_mutex_unlock (&self->mutex);
}

int ctl_appender_end (ctl_appender_t *self)
{
  pthread_mutex_lock (&self->mutex);
  if (self->state == BEGUN) /* the thread's turn has not come: all CPUs are busy */
    append (self);
  while (self->state != IDLE)
    pthread_cond_wait (&self->ended, &self->mutex);
  int status = self->status;
  pthread_mutex_unlock (&self->mutex);
  return status;
}
