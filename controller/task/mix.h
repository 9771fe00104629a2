/* SPDX-License-Identifier: Apache-2.0 */
/* mix: the one hash of the tables here: a 64 x 64 -> 128 bit multiplication,
 * folded. Task ids come from others: without the seed, which nobody outside the
 * process knows, chosen ids could pile up in one place. Header only. */
#ifndef CTL_MIX_H
#define CTL_MIX_H

#include <stdint.h>
#include <string.h>

#include "../../common/ids.h"

typedef struct {
  uint64_t a, b;
} ctl_seed_t;

static inline void ctl_seed_take (ctl_seed_t *ret_seed)
{
  weft_ids_t ids;
  weft_ids_seed (&ids);
  ret_seed->a = weft_ids_next (&ids) | 1;
  ret_seed->b = weft_ids_next (&ids) | 1;
}

static inline uint64_t ctl_mix_fold (uint64_t a, uint64_t b)
{
  unsigned __int128 product = (unsigned __int128) a * b;
  return (uint64_t) product ^ (uint64_t) (product >> 64);
}

static inline uint64_t ctl_mix_16 (const ctl_seed_t *seed, const uint8_t bytes[16])
{
  uint64_t low, high;
  memcpy (&low, bytes, 8);
  memcpy (&high, bytes + 8, 8);
  return ctl_mix_fold (ctl_mix_fold (low ^ seed->a, seed->b) ^ high, seed->a);
}

static inline uint64_t ctl_mix_bytes (const ctl_seed_t *seed, const void *bytes, size_t size)
{
  const uint8_t *at = bytes;
  uint64_t hash = seed->a ^ size;
  for (; size >= 8; size -= 8, at += 8) {
    uint64_t word;
    memcpy (&word, at, 8);
    hash = ctl_mix_fold (hash ^ word, seed->b);
  }
  uint64_t rest = 0;
  memcpy (&rest, at, size);
  return ctl_mix_fold (hash ^ rest, seed->a);
}

#endif
