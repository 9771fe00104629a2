/* SPDX-License-Identifier: Apache-2.0 */
/* triples: what is to be put in order, as three numbers: the ones to order by, then the place of
 * what they stand for. Moving these is cheap where moving that is not, and a task has so few that
 * a general sort would spend its time in being called. */
#ifndef CTL_TRIPLES_H
#define CTL_TRIPLES_H

#include <stdint.h>

typedef struct {
  uint64_t first, second, third;
} ctl_triple_t;

static inline int ctl_triple_is_less (const ctl_triple_t *a, const ctl_triple_t *b)
{
  if (a->first != b->first)
    return a->first < b->first;
  return a->second != b->second ? a->second < b->second : a->third < b->third;
}

/* By first, then second, then third. O(n log n), whatever their order was. */
void ctl_triples_sort (ctl_triple_t *list, uint32_t count);

/* Where those of this `first` begin in a sorted list, or would. */
static inline uint32_t ctl_triples_first (const ctl_triple_t *list, uint32_t count, uint64_t first)
{
  uint32_t low = 0;
  while (count > 0) {
    uint32_t half = count / 2;
    int behind = list[low + half].first < first;
    low += behind ? half + 1 : 0;
    count = behind ? count - half - 1 : half;
  }
  return low;
}

#endif
