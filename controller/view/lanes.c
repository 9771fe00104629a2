/* SPDX-License-Identifier: Apache-2.0 */
#include "lanes.h"

#include <stdlib.h>

#include "../../common/status.h"

#define NOTHING UINT32_MAX

/* A span that may not have ended: within it, `below` that it lies in. */
typedef struct {
  uint64_t end_ns;
  uint32_t below;
} open_t;

typedef struct {
  uint64_t free_ns; /* when all in it will have ended */
  uint32_t top;     /* the innermost in `open` */
} lane_t;

struct ctl_lanes_t {
  lane_t *lane;
  uint32_t *heap; /* lanes, the one that is free first at the front */
  uint32_t count, room;
  open_t *open; /* of all lanes, never taken back */
  uint32_t open_count, open_room;
};

ctl_lanes_t *ctl_lanes_new (void)
{
  return calloc (1, sizeof (ctl_lanes_t));
}

void ctl_lanes_destroy (ctl_lanes_t **self_p)
{
  if (!*self_p)
    return;
  free ((*self_p)->lane);
  free ((*self_p)->heap);
  free ((*self_p)->open);
  free (*self_p);
  *self_p = NULL;
}

uint32_t ctl_lanes_count (const ctl_lanes_t *self)
{
  return self->count;
}

static uint64_t free_at (const ctl_lanes_t *self, uint32_t place)
{
  return self->lane[self->heap[place]].free_ns;
}

static void swap (ctl_lanes_t *self, uint32_t a, uint32_t b)
{
  uint32_t lane = self->heap[a];
  self->heap[a] = self->heap[b];
  self->heap[b] = lane;
}

static void sink_front (ctl_lanes_t *self)
{
  for (uint32_t at = 0;;) {
    uint32_t least = at;
    for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < self->count; child++)
      if (free_at (self, child) < free_at (self, least))
        least = child;
    if (least == at)
      return;
    swap (self, at, least);
    at = least;
  }
}

static void raise_last (ctl_lanes_t *self)
{
  for (uint32_t at = self->count - 1; at && free_at (self, at) < free_at (self, (at - 1) / 2);
       at = (at - 1) / 2)
    swap (self, at, (at - 1) / 2);
}

static int make_room (ctl_lanes_t *self)
{
  if (self->open_count == self->open_room) {
    uint32_t room = self->open_room ? 2 * self->open_room : 64;
    open_t *grown = realloc (self->open, room * sizeof *grown);
    if (!grown)
      return WEFT_E_NOMEM;
    self->open = grown;
    self->open_room = room;
  }
  if (self->count == self->room) {
    uint32_t room = self->room ? 2 * self->room : 8;
    lane_t *lane = realloc (self->lane, room * sizeof *lane);
    if (lane)
      self->lane = lane;
    uint32_t *heap = realloc (self->heap, room * sizeof *heap);
    if (heap)
      self->heap = heap;
    if (!lane || !heap)
      return WEFT_E_NOMEM;
    self->room = room;
  }
  return 0;
}

/* Within what is still open in this lane. */
static int fits_within (ctl_lanes_t *self, uint32_t number, uint64_t start_ns, uint64_t end_ns)
{
  lane_t *lane = &self->lane[number];
  while (lane->top != NOTHING && self->open[lane->top].end_ns <= start_ns)
    lane->top = self->open[lane->top].below;
  return lane->top != NOTHING && self->open[lane->top].end_ns >= end_ns;
}

int ctl_lanes_take (ctl_lanes_t *self, uint64_t start_ns, uint64_t end_ns, uint32_t wanted,
                    uint32_t *ret_lane)
{
  int rc = make_room (self);
  if (rc)
    return rc;
  uint32_t number = wanted;
  open_t *made = &self->open[self->open_count];
  *made = (open_t){end_ns, NOTHING};
  if (wanted < self->count && fits_within (self, wanted, start_ns, end_ns)) {
    made->below = self->lane[wanted].top;
  } else if (self->count && free_at (self, 0) <= start_ns) {
    number = self->heap[0];
    self->lane[number].free_ns = end_ns;
    sink_front (self);
  } else {
    number = self->count++;
    self->lane[number].free_ns = end_ns;
    self->heap[number] = number;
    raise_last (self);
  }
  self->lane[number].top = self->open_count++;
  *ret_lane = number;
  return 0;
}
