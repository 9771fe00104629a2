/* SPDX-License-Identifier: Apache-2.0 */
/* by_id: a list of what is found by an id, as places in another array: sorted by
 * id and place, then searched. Header only. */
#ifndef CTL_BY_ID_H
#define CTL_BY_ID_H

#include <stdint.h>

typedef struct {
  uint64_t id;
  uint32_t index;
} ctl_by_id_t;

/* For qsort. */
static inline int ctl_by_id_compare (const void *left, const void *right)
{
  const ctl_by_id_t *a = left, *b = right;
  if (a->id != b->id)
    return a->id < b->id ? -1 : 1;
  return a->index < b->index ? -1 : a->index > b->index;
}

/* Where those of this id begin, or would. */
static inline uint32_t ctl_by_id_first (const ctl_by_id_t *list, uint32_t count, uint64_t id)
{
  uint32_t low = 0, high = count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (list[middle].id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

#endif
