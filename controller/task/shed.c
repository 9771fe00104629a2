/* SPDX-License-Identifier: Apache-2.0 */
#include "shed.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "mix.h"

#define SLOTS (2u * WEFT_SHED_REMEMBERED) /* at most half full */

/* Two generations of ids: the older one is forgotten when the younger one is full, or old enough. */
struct ctl_shed_t {
  ctl_seed_t seed; /* of the tables, not of the places: chosen ids do not pile up */
  uint32_t threshold;
  uint64_t shed;
  uint64_t *young, *old; /* hashes, 0: free; made when the first task is shed */
  uint32_t count;
  uint64_t now_ns, turned_ns;
  uint64_t until_ns; /* X2: the threshold does not rise before */
  uint64_t last_ns;  /* something was shed or remembered to be */
  int remembers;
};

ctl_shed_t *ctl_shed_new (void)
{
  ctl_shed_t *self = calloc (1, sizeof *self);
  if (self) {
    self->threshold = CTL_SHED_NOTHING;
    ctl_seed_take (&self->seed);
  }
  return self;
}

void ctl_shed_destroy (ctl_shed_t **self_p)
{
  if (!*self_p)
    return;
  free ((*self_p)->young);
  free ((*self_p)->old);
  free (*self_p);
  *self_p = NULL;
}

/* The same for everybody and at any time: no secret in it. Ids may differ in few bits. */
static uint64_t hash_of (const uint8_t task[WEFT_TASK_ID_SIZE])
{
  uint64_t half[2], hash = 0;
  memcpy (half, task, sizeof half);
  for (int n = 0; n < 2; n++) {
    hash = (hash ^ half[n]) * 0x9e3779b97f4a7c15ull;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ull;
    hash ^= hash >> 31;
  }
  return hash ? hash : 1;
}

static uint64_t *place_of (const ctl_shed_t *self, uint64_t *table, uint64_t hash)
{
  uint32_t at = (uint32_t) ctl_mix_fold (hash ^ self->seed.a, self->seed.b);
  while (table[at % SLOTS] && table[at % SLOTS] != hash)
    at++;
  return &table[at % SLOTS];
}

static int is_remembered (ctl_shed_t *self, uint64_t hash)
{
  return self->young && (*place_of (self, self->young, hash) || *place_of (self, self->old, hash));
}

static void turn (ctl_shed_t *self)
{
  uint64_t *free_one = self->old;
  self->old = self->young;
  self->young = free_one;
  memset (free_one, 0, SLOTS * sizeof *free_one);
  self->count = 0;
  self->turned_ns = self->now_ns;
}

static void remember (ctl_shed_t *self, uint64_t hash)
{
  if (!self->young) {
    self->young = calloc (SLOTS, sizeof *self->young);
    self->old = calloc (SLOTS, sizeof *self->old);
    if (!self->young || !self->old) {
      free (self->young);
      free (self->old);
      self->young = self->old = NULL;
      self->until_ns = self->now_ns + WEFT_SHED_MEMORY_MS * WEFT_NS_PER_MS;
      return;
    }
    self->turned_ns = self->now_ns;
  }
  if (self->count == WEFT_SHED_REMEMBERED) {
    /* The generation that goes was filled sooner than its time: what it held may come again. */
    if (self->now_ns - self->turned_ns < WEFT_SHED_MEMORY_MS * WEFT_NS_PER_MS)
      self->until_ns = self->now_ns + WEFT_SHED_MEMORY_MS * WEFT_NS_PER_MS;
    turn (self);
  }
  uint64_t *place = place_of (self, self->young, hash);
  self->count += *place == 0;
  *place = hash;
  self->last_ns = self->now_ns;
  self->remembers = 1;
}

int ctl_shed_active (const ctl_shed_t *self)
{
  return self->threshold < CTL_SHED_NOTHING || self->remembers;
}

int ctl_shed_holds (ctl_shed_t *self, const uint8_t task[WEFT_TASK_ID_SIZE], int open)
{
  if (open)
    return 0;
  uint64_t hash = hash_of (task);
  if (hash >> 48 < self->threshold && !is_remembered (self, hash))
    return 0;
  remember (self, hash);
  self->shed++;
  return 1;
}

void ctl_shed_tick (ctl_shed_t *self, uint64_t now_ns)
{
  self->now_ns = now_ns;
  if (!self->young)
    return;
  if (now_ns - self->turned_ns >= WEFT_SHED_MEMORY_MS * WEFT_NS_PER_MS)
    turn (self);
  if (now_ns - self->last_ns >= 2 * WEFT_SHED_MEMORY_MS * WEFT_NS_PER_MS)
    self->remembers = 0;
}

uint32_t ctl_shed_keep (ctl_shed_t *self, uint32_t threshold)
{
  if (threshold < self->threshold || self->now_ns >= self->until_ns)
    self->threshold = threshold < CTL_SHED_NOTHING ? threshold : CTL_SHED_NOTHING;
  return self->threshold;
}

uint64_t ctl_shed_count (const ctl_shed_t *self)
{
  return self->shed;
}

uint32_t ctl_shed_threshold (const ctl_shed_t *self)
{
  return self->threshold;
}
