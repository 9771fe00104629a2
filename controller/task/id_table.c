/* SPDX-License-Identifier: Apache-2.0 */
#include "id_table.h"

#include <stdlib.h>

#include "../../common/status.h"

#define NUMBER_MASK ((UINT64_C (1) << CTL_ID_TABLE_BITS) - 1)
#define LEAST_BITS  10u

/* The upper part of a slot, never 0. */
static uint64_t hash_of (const ctl_id_table_t *self, const uint8_t id[16])
{
  return (ctl_mix_16 (&self->seed, id) | UINT64_C (1) << CTL_ID_TABLE_BITS) & ~NUMBER_MASK;
}

/* The highest number below `end` that ends in these bits. */
static int64_t number_of (uint64_t slot, int64_t end)
{
  return end - 1 - (int64_t) (((uint64_t) (end - 1) - slot) & NUMBER_MASK);
}

static size_t place_of (uint64_t slot, unsigned bits)
{
  return (size_t) (slot >> (64 - bits));
}

int ctl_id_table_init (ctl_id_table_t *self)
{
  *self = (ctl_id_table_t){.bits = LEAST_BITS};
  ctl_seed_take (&self->seed);
  self->slot = calloc ((size_t) 1 << self->bits, sizeof *self->slot);
  return self->slot ? 0 : WEFT_E_NOMEM;
}

void ctl_id_table_clear (ctl_id_table_t *self)
{
  free (self->slot);
  *self = (ctl_id_table_t){0};
}

static void insert (uint64_t *slots, unsigned bits, uint64_t slot)
{
  size_t mask = ((size_t) 1 << bits) - 1, at = place_of (slot, bits);
  while (slots[at])
    at = (at + 1) & mask;
  slots[at] = slot;
}

/* Into one of the size that those need which are still there. */
static int rebuild (ctl_id_table_t *self, int64_t first, int64_t end)
{
  size_t size = (size_t) 1 << self->bits, stay = 0;
  for (size_t at = 0; at < size; at++)
    stay += self->slot[at] && number_of (self->slot[at], end) >= first;
  unsigned bits = LEAST_BITS;
  while (((size_t) 1 << bits) < 2 * stay)
    bits++;
  uint64_t *slots = calloc ((size_t) 1 << bits, sizeof *slots);
  if (!slots)
    return WEFT_E_NOMEM;
  for (size_t at = 0; at < size; at++)
    if (self->slot[at] && number_of (self->slot[at], end) >= first)
      insert (slots, bits, self->slot[at]);
  free (self->slot);
  self->slot = slots;
  self->bits = bits;
  self->used = stay;
  return 0;
}

int ctl_id_table_add (ctl_id_table_t *self, const uint8_t id[16], int64_t number, int64_t first, int64_t end)
{
  size_t size = (size_t) 1 << self->bits;
  uint64_t slot = hash_of (self, id) | ((uint64_t) number & NUMBER_MASK);
  for (size_t at = place_of (slot, self->bits); self->slot[at]; at = (at + 1) & (size - 1))
    if (self->slot[at] == slot)
      return 0; /* what was rolled back comes again under the same number */
  if (self->used >= size / 4 * 3) {
    int rc = rebuild (self, first, end);
    if (rc)
      return rc;
  }
  insert (self->slot, self->bits, slot);
  self->used++;
  return 0;
}

void ctl_id_table_prefetch (const ctl_id_table_t *self, const uint8_t id[16])
{
  __builtin_prefetch (&self->slot[place_of (hash_of (self, id), self->bits)], 1);
}

ctl_id_search_t ctl_id_table_search (const ctl_id_table_t *self, const uint8_t id[16])
{
  uint64_t hash = hash_of (self, id);
  return (ctl_id_search_t){hash, place_of (hash, self->bits)};
}

int ctl_id_table_next (const ctl_id_table_t *self, ctl_id_search_t *search, int64_t end, int64_t *ret_number)
{
  size_t mask = ((size_t) 1 << self->bits) - 1;
  while (self->slot[search->at]) {
    uint64_t slot = self->slot[search->at];
    search->at = (search->at + 1) & mask;
    if ((slot & ~NUMBER_MASK) == search->hash) {
      *ret_number = number_of (slot, end);
      return 1;
    }
  }
  return 0;
}
