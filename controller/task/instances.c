/* SPDX-License-Identifier: Apache-2.0 */
#include "instances.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"
#include "mix.h"
#include "names.h"
#include "task.h"

#define SLOTS (WEFT_INSTANCES_MAX * 2u) /* power of two, at most half full */

struct ctl_instances_t {
  ctl_seed_t seed;
  ctl_names_t *names;
  ctl_instance_t *instance[WEFT_INSTANCES_MAX];
  uint32_t count;
  uint16_t slot[SLOTS]; /* index + 1 */
  ctl_loss_interval_t *intervals;
  uint32_t interval_count, interval_capacity;
};

ctl_instances_t *ctl_instances_new (void)
{
  ctl_instances_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  ctl_seed_take (&self->seed);
  self->names = ctl_names_new ();
  if (!self->names)
    ctl_instances_destroy (&self);
  return self;
}

void ctl_instances_destroy (ctl_instances_t **self_p)
{
  ctl_instances_t *self = *self_p;
  if (!self)
    return;
  for (uint32_t i = 0; i < self->count; i++)
    free (self->instance[i]);
  free (self->intervals);
  ctl_names_destroy (&self->names);
  free (self);
  *self_p = NULL;
}

ctl_names_t *ctl_instances_names (ctl_instances_t *self)
{
  return self->names;
}

const char *ctl_instances_intern (ctl_instances_t *self, const char *text, size_t size)
{
  uint32_t id;
  return ctl_names_id (self->names, text, size, &id) ? NULL : ctl_names_text (self->names, id);
}

static uint32_t slot_of (const ctl_instances_t *self, const uint8_t uuid[WEFT_UUID_SIZE])
{
  uint32_t at = (uint32_t) ctl_mix_16 (&self->seed, uuid) & (SLOTS - 1);
  while (self->slot[at] && memcmp (self->instance[self->slot[at] - 1]->uuid, uuid, WEFT_UUID_SIZE) != 0)
    at = (at + 1) & (SLOTS - 1);
  return at;
}

ctl_instance_t *ctl_instances_find (ctl_instances_t *self, const uint8_t uuid[WEFT_UUID_SIZE])
{
  uint32_t at = slot_of (self, uuid);
  return self->slot[at] ? self->instance[self->slot[at] - 1] : NULL;
}

int ctl_instances_touch (ctl_instances_t *self, const uint8_t uuid[WEFT_UUID_SIZE],
                         ctl_instance_t **ret_instance)
{
  uint32_t at = slot_of (self, uuid);
  if (!self->slot[at]) {
    if (self->count == WEFT_INSTANCES_MAX)
      return WEFT_E_FULL;
    ctl_instance_t *made = calloc (1, sizeof *made);
    if (!made)
      return WEFT_E_NOMEM;
    memcpy (made->uuid, uuid, WEFT_UUID_SIZE);
    made->index = self->count;
    made->vm = made->version = made->service = made->host = made->listens = "";
    self->instance[self->count++] = made;
    self->slot[at] = (uint16_t) self->count;
  }
  ctl_instance_t *instance = self->instance[self->slot[at] - 1];
  instance->seen_ns = weft_mono_ns ();
  instance->heard_ns = weft_clock_ns (CLOCK_REALTIME);
  if (!instance->tail_until_ns)
    instance->tail_since_ns = 0; /* it goes on where it was */
  *ret_instance = instance;
  return 0;
}

static int take_hello (ctl_instances_t *self, ctl_instance_t *instance, const weft_up_message_t *message)
{
  const char *vm = ctl_instances_intern (self, message->vm, sizeof message->vm);
  const char *version = ctl_instances_intern (self, message->version, sizeof message->version);
  const char *service = ctl_instances_intern (self, message->service, sizeof message->service);
  const char *host = ctl_instances_intern (self, message->host, sizeof message->host);
  const char *listens = ctl_instances_intern (self, message->listens, sizeof message->listens);
  if (!vm || !version || !service || !host || !listens)
    return WEFT_E_NOMEM;
  instance->vm = vm;
  instance->version = version;
  instance->service = service;
  instance->host = host;
  instance->listens = listens;
  instance->pid = message->pid;
  memcpy (instance->boot, message->boot, WEFT_UUID_SIZE);
  instance->epoch = message->epoch;
  /* Nobody stands behind a recording: it is not waited for, asked, or told anything. */
  instance->replayed = message->replayed != 0;
  instance->presence = instance->replayed ? CTL_INSTANCE_LEFT : CTL_INSTANCE_PRESENT;
  return 0;
}

/* Batch numbers and what the probe counts begin anew with each of its lives. */
static void begin_life (ctl_instance_t *instance, const uint8_t start[WEFT_UUID_SIZE], uint64_t tail_ns)
{
  if (memcmp (instance->start, start, WEFT_UUID_SIZE) == 0)
    return;
  /* What an earlier life had to say has been said, or never will be. */
  static const uint8_t none[WEFT_UUID_SIZE];
  if (!instance->farewell && memcmp (instance->start, none, sizeof none) != 0) {
    instance->tail_since_ns = tail_ns;
    instance->tail_until_ns = instance->heard_ns;
  }
  memcpy (instance->start, start, WEFT_UUID_SIZE);
  instance->written_before = instance->written;
  instance->farewell = 0;
  instance->joined = 0;
  instance->leaving_ns = 0;
  instance->last_batch = 0;
  instance->active = 0;
  instance->bytes_total = instance->bytes_spoken = instance->given_up = instance->bare = 0;
  instance->requests_in = instance->requests_unmatched = instance->requests_excluded = 0;
  memset (instance->rest, 0, sizeof instance->rest);
  instance->slots_written = instance->slots_restored = instance->slots_foreign = instance->threads_left = 0;
}

int ctl_instances_take (ctl_instances_t *self, const weft_up_message_t *message,
                        ctl_instance_t **ret_instance)
{
  ctl_instance_t *instance = ctl_instances_find (self, message->instance);
  if (!instance && message->kind != WEFT_UP_HELLO)
    return WEFT_E_NOT_FOUND;
  uint64_t before_ns = instance ? instance->heard_ns : 0;
  int rc = ctl_instances_touch (self, message->instance, &instance);
  if (rc == 0 && message->kind == WEFT_UP_HELLO)
    rc = take_hello (self, instance, message);
  if (rc)
    return rc;
  /* A BYE of an earlier life says nothing about this one. */
  if (message->kind == WEFT_UP_BYE && memcmp (instance->start, message->start, WEFT_UUID_SIZE) != 0) {
    *ret_instance = instance;
    return 0;
  }
  begin_life (instance, message->start, before_ns);
  if (message->kind == WEFT_UP_ACK) {
    instance->presence = CTL_INSTANCE_PRESENT;
    instance->epoch = message->epoch;
    instance->active = message->active;
  }
  if (message->kind != WEFT_UP_HELLO) {
    instance->bytes_total = message->bytes_total;
    instance->bytes_spoken = message->bytes_spoken;
    memcpy (instance->rest, message->rest, sizeof instance->rest);
    instance->given_up = message->connections_given_up;
    instance->bare = message->requests_bare;
    instance->requests_in = message->requests_in;
    instance->requests_unmatched = message->requests_unmatched;
    instance->requests_excluded = message->requests_excluded;
    instance->written = instance->written_before + message->events_written;
    instance->farewell = message->kind == WEFT_UP_BYE;
  }
  if (message->kind == WEFT_UP_BYE) {
    instance->presence = CTL_INSTANCE_LEFT;
    instance->active = 0;
    instance->slots_written = message->slots_written;
    instance->slots_restored = message->slots_restored;
    instance->slots_foreign = message->slots_foreign;
    instance->threads_left = message->threads_left;
  }
  *ret_instance = instance;
  return 0;
}

uint32_t ctl_instances_count (const ctl_instances_t *self)
{
  return self->count;
}

ctl_instance_t *ctl_instances_at (ctl_instances_t *self, uint32_t index)
{
  return index < self->count ? self->instance[index] : NULL;
}

int ctl_instance_is_notable (const ctl_instance_t *instance)
{
  if (instance->presence != CTL_INSTANCE_LEFT)
    return 1;
  return !instance->replayed && (instance->tail_since_ns || ctl_losses_sum (instance->losses) > 0);
}

void ctl_instances_silent (ctl_instance_t *instance)
{
  if (!instance->farewell && !instance->replayed && !instance->tail_since_ns)
    instance->tail_since_ns = instance->heard_ns;
}

uint32_t ctl_instances_tails_in (const ctl_instances_t *self, uint64_t from_ns, uint64_t to_ns)
{
  uint32_t count = 0;
  for (uint32_t i = 0; i < self->count; i++) {
    const ctl_instance_t *instance = self->instance[i];
    count += instance->tail_since_ns && instance->tail_since_ns <= to_ns &&
             (!instance->tail_until_ns || instance->tail_until_ns >= from_ns);
  }
  return count;
}

const ctl_loss_interval_t *ctl_instances_intervals (const ctl_instances_t *self, uint32_t *ret_count)
{
  *ret_count = self->interval_count;
  return self->intervals;
}

static void add_losses (uint64_t into[WEFT_LOSS_COUNT], const uint64_t losses[WEFT_LOSS_COUNT])
{
  for (int i = 0; i < WEFT_LOSS_COUNT; i++)
    into[i] = into[i] + losses[i] < into[i] ? UINT64_MAX : into[i] + losses[i];
}

/* Joins neighbours: half as many intervals, none of their losses forgotten. */
static void join_neighbours (ctl_instances_t *self)
{
  uint32_t kept = 0;
  for (uint32_t i = 0; i < self->interval_count; i += 2) {
    ctl_loss_interval_t joined = self->intervals[i];
    if (i + 1 < self->interval_count) {
      const ctl_loss_interval_t *next = &self->intervals[i + 1];
      if (next->instance != joined.instance)
        joined.instance = CTL_LOSS_SEVERAL;
      joined.from_ns = next->from_ns < joined.from_ns ? next->from_ns : joined.from_ns;
      joined.to_ns = next->to_ns > joined.to_ns ? next->to_ns : joined.to_ns;
      add_losses (joined.losses, next->losses);
    }
    self->intervals[kept++] = joined;
  }
  self->interval_count = kept;
}

void ctl_instances_lost (ctl_instances_t *self, ctl_instance_t *instance, uint64_t from_ns, uint64_t to_ns,
                         const uint64_t losses[WEFT_LOSS_COUNT])
{
  uint64_t any = 0;
  for (int i = 0; i < WEFT_LOSS_COUNT; i++)
    any |= losses[i];
  if (!any)
    return;
  add_losses (instance->losses, losses);
  if (self->interval_count == self->interval_capacity && self->interval_capacity < WEFT_LOSS_INTERVALS_MAX) {
    uint32_t capacity = self->interval_capacity ? self->interval_capacity * 2 : 64;
    ctl_loss_interval_t *grown = realloc (self->intervals, capacity * sizeof *grown);
    if (grown) {
      self->intervals = grown;
      self->interval_capacity = capacity;
    }
  }
  if (self->interval_count == self->interval_capacity)
    join_neighbours (self);
  if (self->interval_count == self->interval_capacity)
    return; /* not one interval could be allocated; the instance's own sum has it */
  ctl_loss_interval_t *interval = &self->intervals[self->interval_count++];
  interval->instance = instance->index;
  interval->from_ns = from_ns;
  interval->to_ns = to_ns < from_ns ? from_ns : to_ns;
  memcpy (interval->losses, losses, sizeof interval->losses);
}

void ctl_instances_losses_in (const ctl_instances_t *self, uint64_t from_ns, uint64_t to_ns,
                              uint64_t ret_losses[WEFT_LOSS_COUNT])
{
  memset (ret_losses, 0, WEFT_LOSS_COUNT * sizeof *ret_losses);
  for (uint32_t i = 0; i < self->interval_count; i++)
    if (self->intervals[i].from_ns <= to_ns && self->intervals[i].to_ns >= from_ns)
      add_losses (ret_losses, self->intervals[i].losses);
}
