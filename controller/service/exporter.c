/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/ids.h"
#include "../../common/status.h"
#include "../view/otlp.h"

typedef struct item_t {
  struct item_t *next;
  ctl_execution_t *execution;
  uint32_t spans;
} item_t;

/* An instance as the thread may know it. */
typedef struct {
  uint8_t uuid[WEFT_UUID_SIZE];
  ctl_place_t place;
} known_t;

struct ctl_exporter_t {
  ctl_collector_t *collector;
  ctl_instances_t *instances; /* the loop's */
  pthread_t thread;
  pthread_mutex_t mutex; /* of all below, down to `changed` */
  item_t *first, **end;
  known_t *known; /* by index in the registry */
  uint32_t known_count;
  uint64_t room; /* spans that may still be put */
  int leaving;
  uint64_t until_ns; /* when leaving: what has not gone out by then is given up */
  ctl_exporter_stats_t stats;
  pthread_cond_t changed;
  /* The thread's own. */
  ctl_otlp_t *otlp;
  weft_ids_t ids;
  item_t *under_way; /* encoded, not posted yet */
};

const char *ctl_exporter_url (const ctl_exporter_t *self)
{
  return ctl_collector_url (self->collector);
}

void ctl_exporter_stats (ctl_exporter_t *self, ctl_exporter_stats_t *ret_stats)
{
  pthread_mutex_lock (&self->mutex);
  *ret_stats = self->stats;
  ret_stats->waiting = WEFT_EXPORT_SPANS_MAX - self->room;
  pthread_mutex_unlock (&self->mutex);
}

/* ---- the loop's side ------------------------------------------------------ */

/* With the mutex held. WEFT_E_NOMEM: its spans go without a host. */
static int note_place (ctl_exporter_t *self, const ctl_instance_t *instance)
{
  if (instance->index >= self->known_count) {
    uint32_t count = instance->index + 64;
    known_t *grown = realloc (self->known, count * sizeof *grown);
    if (!grown)
      return WEFT_E_NOMEM;
    memset (grown + self->known_count, 0, (count - self->known_count) * sizeof *grown);
    self->known = grown;
    self->known_count = count;
  }
  known_t *known = &self->known[instance->index];
  memcpy (known->uuid, instance->uuid, WEFT_UUID_SIZE);
  known->place =
      (ctl_place_t){instance->service, instance->vm, instance->version, instance->host, instance->pid};
  return 0;
}

static void note_places (ctl_exporter_t *self, const ctl_execution_t *execution)
{
  const uint8_t *last = NULL;
  for (uint32_t n = 0; n < execution->count; n++) {
    const uint8_t *uuid = execution->subtasks[n].instance;
    if (last && memcmp (last, uuid, WEFT_UUID_SIZE) == 0)
      continue;
    last = uuid;
    const ctl_instance_t *instance = ctl_instances_find (self->instances, uuid);
    if (instance)
      note_place (self, instance);
  }
}

int ctl_exporter_put (ctl_execution_t **execution_p, void *self_v)
{
  ctl_exporter_t *self = self_v;
  ctl_execution_t *execution = *execution_p;
  item_t *item = malloc (sizeof *item);
  uint32_t spans = ctl_spans_most (execution);
  *execution_p = NULL;
  pthread_mutex_lock (&self->mutex);
  int taken = item && !self->leaving && spans <= self->room;
  if (taken) {
    *item = (item_t){NULL, execution, spans};
    note_places (self, execution);
    self->room -= spans;
    *self->end = item;
    self->end = &item->next;
    pthread_cond_signal (&self->changed);
  } else {
    self->stats.given_up += spans;
    if (!self->stats.failing && !self->leaving && item)
      snprintf (self->stats.why, sizeof self->stats.why,
                "it is slower than what comes in: %u spans wait for it already",
                (unsigned) (WEFT_EXPORT_SPANS_MAX - self->room));
  }
  pthread_mutex_unlock (&self->mutex);
  if (!taken) {
    ctl_execution_destroy (&execution);
    free (item);
  }
  return 0;
}

/* ---- the thread's side ---------------------------------------------------- */

static int place_of (const uint8_t uuid[WEFT_UUID_SIZE], ctl_place_t *ret_place, void *self_v)
{
  ctl_exporter_t *self = self_v;
  int rc = WEFT_E_NOT_FOUND;
  pthread_mutex_lock (&self->mutex);
  for (uint32_t n = 0; rc && n < self->known_count; n++)
    if (memcmp (self->known[n].uuid, uuid, WEFT_UUID_SIZE) == 0) {
      *ret_place = self->known[n].place;
      rc = 0;
    }
  pthread_mutex_unlock (&self->mutex);
  return rc;
}

/* Until there is something to do, or the time is over. With the mutex held. */
static void wait_ms (ctl_exporter_t *self, uint64_t ms)
{
  struct timespec until;
  clock_gettime (CLOCK_MONOTONIC, &until);
  uint64_t ns = (uint64_t) until.tv_nsec + ms % 1000 * WEFT_NS_PER_MS;
  until.tv_sec += (time_t) (ms / 1000 + ns / 1000000000u);
  until.tv_nsec = (long) (ns % 1000000000u);
  pthread_cond_timedwait (&self->changed, &self->mutex, &until);
}

/* The pause before the next attempt, or less if the exporter ends. 0: it does, try no more. */
static int pause_before (ctl_exporter_t *self, uint64_t ms)
{
  uint64_t end_ns = weft_mono_ns () + ms * WEFT_NS_PER_MS, now_ns;
  pthread_mutex_lock (&self->mutex);
  while (!self->leaving && (now_ns = weft_mono_ns ()) < end_ns)
    wait_ms (self, (end_ns - now_ns) / WEFT_NS_PER_MS + 1);
  int leaving = self->leaving;
  pthread_mutex_unlock (&self->mutex);
  return !leaving;
}

static void note_outcome (ctl_exporter_t *self, int rc, uint32_t spans, const ctl_collector_answer_t *answer)
{
  uint64_t rejected = answer->rejected < spans ? answer->rejected : spans;
  pthread_mutex_lock (&self->mutex);
  self->stats.failing = rc < 0;
  if (rc == WEFT_E_TIMEOUT && self->leaving)
    self->until_ns = 0;
  if (*answer->why)
    memcpy (self->stats.why, answer->why, sizeof self->stats.why);
  if (rc == 0) {
    self->stats.sent += spans - rejected;
    self->stats.rejected += rejected;
  } else if (rc == WEFT_E_BUSY) {
    self->stats.retries++;
  } else {
    self->stats.given_up += spans;
  }
  pthread_mutex_unlock (&self->mutex);
}

/* Between half of it and all: senders that failed together do not come back together. */
static uint64_t jittered (ctl_exporter_t *self, uint64_t ms)
{
  return ms / 2 + weft_ids_next (&self->ids) % (ms / 2 + 1);
}

static int is_leaving (ctl_exporter_t *self)
{
  pthread_mutex_lock (&self->mutex);
  int leaving = self->leaving;
  pthread_mutex_unlock (&self->mutex);
  return leaving;
}

/* One message, until it is taken or given up. Always 0: what follows may fare better. */
static int post (const void *data, size_t size, uint32_t spans, void *self_v)
{
  ctl_exporter_t *self = self_v;
  ctl_collector_answer_t answer = {0};
  uint64_t pause_ms = WEFT_EXPORT_RETRY_LEAST_MS;
  uint64_t end_ns = weft_mono_ns () + WEFT_EXPORT_GIVE_UP_MS * WEFT_NS_PER_MS;
  for (;;) {
    int rc = ctl_collector_post (self->collector, data, size, &answer);
    uint64_t wait = jittered (self, pause_ms);
    if (answer.retry_after_ms)
      wait = answer.retry_after_ms < WEFT_EXPORT_AFTER_MOST_MS ? answer.retry_after_ms
                                                               : WEFT_EXPORT_AFTER_MOST_MS;
    if (rc == WEFT_E_BUSY && (is_leaving (self) || weft_mono_ns () + wait * WEFT_NS_PER_MS > end_ns))
      rc = WEFT_E_TIMEOUT;
    note_outcome (self, rc, spans, &answer);
    if (rc != WEFT_E_BUSY)
      return 0;
    pause_before (self, wait);
    pause_ms = 2 * pause_ms < WEFT_EXPORT_RETRY_MOST_MS ? 2 * pause_ms : WEFT_EXPORT_RETRY_MOST_MS;
  }
}

static void give_up (ctl_exporter_t *self, uint32_t spans)
{
  pthread_mutex_lock (&self->mutex);
  self->stats.given_up += spans;
  pthread_mutex_unlock (&self->mutex);
}

static void drop (ctl_exporter_t *self, item_t *item)
{
  while (item) {
    item_t *next = item->next;
    pthread_mutex_lock (&self->mutex);
    self->room += item->spans;
    pthread_mutex_unlock (&self->mutex);
    ctl_execution_destroy (&item->execution);
    free (item);
    item = next;
  }
}

/* Everything that is encoded goes out, then nobody needs it any more. */
static void flush (ctl_exporter_t *self)
{
  uint32_t spans = ctl_otlp_waiting (self->otlp);
  if (ctl_otlp_flush (self->otlp) < 0)
    give_up (self, spans);
  drop (self, self->under_way);
  self->under_way = NULL;
}

static void take (ctl_exporter_t *self, item_t *item)
{
  item->next = self->under_way;
  self->under_way = item;
  if (ctl_otlp_add (self->otlp, item->execution) < 0)
    give_up (self, item->spans);
}

static int count (const ctl_span_t *span, void *arg)
{
  ++*(uint32_t *) arg;
  return 0;
}

/* Too late for it. */
static void leave_out (ctl_exporter_t *self, item_t *item)
{
  uint32_t spans = 0;
  ctl_spans_each (item->execution, count, &spans);
  give_up (self, spans);
  item->next = NULL;
  drop (self, item);
}

static item_t *next_item (ctl_exporter_t *self)
{
  item_t *item = self->first;
  if (item) {
    self->first = item->next;
    if (!self->first)
      self->end = &self->first;
  }
  return item;
}

static void *run (void *self_v)
{
  ctl_exporter_t *self = self_v;
  uint64_t flush_ns = 0; /* 0: nothing is under way */
  for (int ending = 0; !ending;) {
    pthread_mutex_lock (&self->mutex);
    uint64_t now_ns = weft_mono_ns ();
    while (!self->first && !self->leaving && (flush_ns == 0 || now_ns < flush_ns)) {
      wait_ms (self, flush_ns ? (flush_ns - now_ns) / WEFT_NS_PER_MS + 1 : WEFT_EXPORT_GIVE_UP_MS);
      now_ns = weft_mono_ns ();
    }
    item_t *item = next_item (self);
    ending = !item && self->leaving;
    int late = self->leaving && now_ns >= self->until_ns;
    pthread_mutex_unlock (&self->mutex);
    if (item && late) {
      leave_out (self, item);
    } else if (item) {
      take (self, item);
      flush_ns = flush_ns ? flush_ns : now_ns + WEFT_EXPORT_LINGER_MS * WEFT_NS_PER_MS;
    }
    if (ending ||
        (flush_ns && (now_ns >= flush_ns || ctl_otlp_waiting (self->otlp) >= WEFT_OTLP_SPANS_MAX / 2))) {
      flush (self);
      flush_ns = 0;
    }
  }
  return NULL;
}

/* ---- life ----------------------------------------------------------------- */

static int start (ctl_exporter_t *self)
{
  pthread_condattr_t monotonic;
  sigset_t all, before;
  pthread_mutex_init (&self->mutex, NULL);
  pthread_condattr_init (&monotonic);
  pthread_condattr_setclock (&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init (&self->changed, &monotonic);
  pthread_condattr_destroy (&monotonic);
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &before);
  int error = pthread_create (&self->thread, NULL, run, self);
  pthread_sigmask (SIG_SETMASK, &before, NULL);
  if (error) {
    pthread_cond_destroy (&self->changed);
    pthread_mutex_destroy (&self->mutex);
  }
  return error ? WEFT_E_NOMEM : 0;
}

int ctl_exporter_new (ctl_collector_t **collector_p, ctl_instances_t *instances, ctl_exporter_t **ret_self)
{
  ctl_exporter_t *self = calloc (1, sizeof *self);
  ctl_otlp_options_t options = {WEFT_OTLP_SPANS_MAX, place_of, post, self};
  if (self) {
    self->collector = *collector_p;
    *collector_p = NULL;
    self->instances = instances;
    self->end = &self->first;
    self->room = WEFT_EXPORT_SPANS_MAX;
    weft_ids_seed (&self->ids);
    self->otlp = ctl_otlp_new (&options);
  }
  if (!self || !self->otlp || start (self) < 0) {
    if (self) {
      ctl_otlp_destroy (&self->otlp);
      ctl_collector_destroy (&self->collector);
    }
    ctl_collector_destroy (collector_p);
    free (self);
    return WEFT_E_NOMEM;
  }
  *ret_self = self;
  return 0;
}

void ctl_exporter_end (ctl_exporter_t *self)
{
  pthread_mutex_lock (&self->mutex);
  int again = self->leaving;
  uint64_t until_ns = weft_mono_ns () + WEFT_EXPORT_END_MS * WEFT_NS_PER_MS;
  self->leaving = 1;
  self->until_ns = again ? self->until_ns : until_ns;
  pthread_cond_signal (&self->changed);
  pthread_mutex_unlock (&self->mutex);
  if (again)
    return;
  ctl_collector_hurry (self->collector, until_ns);
  pthread_join (self->thread, NULL);
}

void ctl_exporter_destroy (ctl_exporter_t **self_p)
{
  ctl_exporter_t *self = *self_p;
  if (!self)
    return;
  ctl_exporter_end (self);
  pthread_cond_destroy (&self->changed);
  pthread_mutex_destroy (&self->mutex);
  ctl_otlp_destroy (&self->otlp);
  ctl_collector_destroy (&self->collector);
  free (self->known);
  free (self);
  *self_p = NULL;
}
