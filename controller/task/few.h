/* SPDX-License-Identifier: Apache-2.0 */
/* few: finds the place of an id among few, each held once, the first place that it was added at. A
 * task of usual size is looked through without a search whose turns nothing can predict. What has
 * more than CTL_FEW ids is sorted (triples.h): here chosen ids could pile up in one slot. Header only. */
#ifndef CTL_FEW_H
#define CTL_FEW_H

#include <stdint.h>

#include "room.h"

#define CTL_FEW       64u
#define CTL_FEW_SLOTS (2u * CTL_FEW)
#define CTL_FEW_BITS  7u
_Static_assert(CTL_FEW_SLOTS == 1u << CTL_FEW_BITS && CTL_FEW < UINT8_MAX, "a slot is half free");

typedef struct {
  uint64_t id[CTL_FEW];
  uint8_t slot[CTL_FEW_SLOTS]; /* place + 1; 0: free */
} ctl_few_t;

static inline void ctl_few_clear (ctl_few_t *self)
{
  ctl_clear (self->slot, sizeof self->slot);
}

static inline uint32_t ctl_few_slot (const ctl_few_t *self, uint64_t id)
{
  uint32_t at = (uint32_t) (id * 0x9e3779b97f4a7c15ull >> (64 - CTL_FEW_BITS));
  while (self->slot[at] && self->id[self->slot[at] - 1] != id)
    at = (at + 1) % CTL_FEW_SLOTS;
  return at;
}

/* place: below CTL_FEW. 0: the id is there. */
static inline int ctl_few_add (ctl_few_t *self, uint64_t id, uint32_t place)
{
  uint32_t at = ctl_few_slot (self, id);
  if (self->slot[at])
    return 0;
  self->slot[at] = (uint8_t) (place + 1);
  self->id[place] = id;
  return 1;
}

/* UINT32_MAX: it is not there. */
static inline uint32_t ctl_few_find (const ctl_few_t *self, uint64_t id)
{
  return self->slot[ctl_few_slot (self, id)] - 1u;
}

#endif
