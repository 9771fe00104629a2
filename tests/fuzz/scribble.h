/* SPDX-License-Identifier: Apache-2.0 */
/* scribble: memory as shm/layout.h draws it, between two pages that nobody may
 * touch, with what a stranger wrote into it. */
#ifndef SCRIBBLE_H
#define SCRIBBLE_H

#include <sys/mman.h>

#include "../../instance/shm/layout.h"
#include "fuzz.h"

#define SCRIBBLE_GUARD 4096u

/* Zeroed; the same one each time. */
static inline void *scribble_memory (void)
{
  static uint8_t *base;
  size_t size = (SHM_SIZE + SCRIBBLE_GUARD - 1) / SCRIBBLE_GUARD * SCRIBBLE_GUARD;
  if (!base) {
    uint8_t *all = mmap (NULL, size + 2 * SCRIBBLE_GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FUZZ_MUST (all != MAP_FAILED);
    base = all + SCRIBBLE_GUARD;
    FUZZ_MUST (mprotect (base, size, PROT_READ | PROT_WRITE) == 0);
  }
  FUZZ_MUST (madvise (base, size, MADV_DONTNEED) == 0);
  return base;
}

/* One write: where (one of the regions, then a place in it), how much, what. */
static inline void scribble_once (uint8_t *base, fuzz_input_t *input)
{
  uint8_t region = (uint8_t) fuzz_take (input, 1);
  uint32_t place = (uint32_t) fuzz_take (input, 2);
  uint32_t ring = region >> 3 & 3u; /* few, so that they meet */
  size_t at, end;
  switch (region & 7u) {
  case 0: /* a ring's owner, head, written */
    at = SHM_RINGS_AT + ring * sizeof (shm_ring_t) + place % 3 * 8;
    break;
  case 1: /* its tail */
    at = SHM_RINGS_AT + ring * sizeof (shm_ring_t) + offsetof (shm_ring_t, tail);
    break;
  case 2:
  case 3: /* its data */
    at = SHM_DATA_AT + ring * SHM_RING_SIZE + place;
    break;
  case 4:
    at = SHM_CONTROL_AT + place % sizeof (shm_control_t);
    break;
  case 5:
    at = SHM_STATUS_AT + place % sizeof (shm_status_t);
    break;
  case 6: /* a slot's number, size, checksum */
    at = SHM_SPOOL_AT + ring * SHM_SPOOL_SLOT_SIZE + place % 16;
    break;
  default: /* its batch */
    at = SHM_SPOOL_AT + ring * SHM_SPOOL_SLOT_SIZE + 64 + place;
  }
  end = at + fuzz_take (input, 1) % 160 + 1;
  for (; at < end && at < SHM_SIZE && input->at < input->end; at++)
    base[at] = *input->at++;
}

#endif
