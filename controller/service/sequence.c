/* SPDX-License-Identifier: Apache-2.0 */
#include "sequence.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/crc32c.h"
#include "../../common/status.h"

/* Open addressing, at most half full. */
struct ctl_sequence_t {
  ctl_sequence_entry_t *entries;
  uint32_t size; /* a power of two */
  uint32_t count;
};

ctl_sequence_t *ctl_sequence_new (void)
{
  ctl_sequence_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  self->size = 64;
  self->entries = calloc (self->size, sizeof *self->entries);
  if (!self->entries)
    ctl_sequence_destroy (&self);
  return self;
}

void ctl_sequence_destroy (ctl_sequence_t **self_p)
{
  if (!*self_p)
    return;
  free ((*self_p)->entries);
  free (*self_p);
  *self_p = NULL;
}

static ctl_sequence_entry_t *place_of (const ctl_sequence_t *self, const uint8_t *instance,
                                       const uint8_t *start)
{
  uint32_t at = weft_crc32c (weft_crc32c (0, instance, WEFT_UUID_SIZE), start, WEFT_UUID_SIZE);
  for (;; at++) {
    ctl_sequence_entry_t *entry = &self->entries[at & (self->size - 1)];
    if (!entry->used || (memcmp (entry->instance, instance, WEFT_UUID_SIZE) == 0 &&
                         memcmp (entry->start, start, WEFT_UUID_SIZE) == 0))
      return entry;
  }
}

static int grow (ctl_sequence_t *self)
{
  ctl_sequence_t larger = {.size = self->size * 2};
  larger.entries = calloc (larger.size, sizeof *larger.entries);
  if (!larger.entries)
    return WEFT_E_NOMEM;
  for (uint32_t n = 0; n < self->size; n++)
    if (self->entries[n].used)
      *place_of (&larger, self->entries[n].instance, self->entries[n].start) = self->entries[n];
  free (self->entries);
  self->entries = larger.entries;
  self->size = larger.size;
  return 0;
}

int ctl_sequence_of (ctl_sequence_t *self, const uint8_t instance[WEFT_UUID_SIZE],
                     const uint8_t start[WEFT_UUID_SIZE], uint64_t number, ctl_sequence_entry_t **ret_entry)
{
  ctl_sequence_entry_t *entry = place_of (self, instance, start);
  if (!entry->used) {
    if (self->count >= WEFT_STARTS_MAX)
      return WEFT_E_FULL;
    if (2 * (self->count + 1) > self->size) {
      int rc = grow (self);
      if (rc < 0)
        return rc;
      entry = place_of (self, instance, start);
    }
    memcpy (entry->instance, instance, WEFT_UUID_SIZE);
    memcpy (entry->start, start, WEFT_UUID_SIZE);
    entry->done = number ? number - 1 : 0;
    entry->ahead = 0;
    entry->used = 1;
    self->count++;
  }
  *ret_entry = entry;
  return 0;
}

int ctl_sequence_look (const ctl_sequence_entry_t *entry, uint64_t number)
{
  if (number <= entry->done)
    return 1;
  uint64_t bit = number - entry->done - 1;
  if (bit >= WEFT_BATCH_AHEAD_MAX)
    return WEFT_E_RANGE;
  return (int) (entry->ahead >> bit & 1);
}

void ctl_sequence_take (ctl_sequence_entry_t *entry, uint64_t number)
{
  entry->ahead |= 1ull << (number - entry->done - 1);
  while (entry->ahead & 1) {
    entry->done++;
    entry->ahead >>= 1;
  }
}
