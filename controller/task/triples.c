/* SPDX-License-Identifier: Apache-2.0 */
#include "triples.h"

#include <stdlib.h>

#define VERY_FEW 32u
#define FEW      512u /* up to here the general sort's calls cost more than its fewer steps save */

static int compare (const void *left, const void *right)
{
  const ctl_triple_t *a = left, *b = right;
  return ctl_triple_is_less (a, b) ? -1 : ctl_triple_is_less (b, a);
}

/* One pass of Shell's sort (Ciura's gaps, Best increments for the average case of Shellsort, 2001). */
static void pass (ctl_triple_t *list, uint32_t count, uint32_t gap)
{
  for (uint32_t i = gap; i < count; i++) {
    ctl_triple_t one = list[i];
    uint32_t at = i;
    for (; at >= gap && ctl_triple_is_less (&one, &list[at - gap]); at -= gap)
      list[at] = list[at - gap];
    list[at] = one;
  }
}

/* Each goes behind as many as are less: no turn depends on what they are. Equal ones by place. */
static void enumerate (ctl_triple_t *list, uint32_t count)
{
  ctl_triple_t copy[VERY_FEW];
  uint8_t behind[VERY_FEW];
  for (uint32_t i = 0; i < count; i++) {
    uint8_t own = 0;
    copy[i] = list[i];
    for (uint32_t k = 0; k < i; k++) {
      uint8_t less = copy[k].first <= copy[i].first;
      own = (uint8_t) (own + less);
      behind[k] = (uint8_t) (behind[k] + 1 - less);
    }
    behind[i] = own;
  }
  for (uint32_t i = 0; i < count; i++)
    list[behind[i]] = copy[i];
}

void ctl_triples_sort (ctl_triple_t *list, uint32_t count)
{
  static const uint32_t gaps[] = {301, 132, 57, 23, 10, 4};
  if (count > FEW) {
    qsort (list, count, sizeof *list, compare);
    return;
  }
  if (count <= VERY_FEW)
    enumerate (list, count);
  for (uint32_t i = 0; count > VERY_FEW && i < sizeof gaps / sizeof *gaps; i++)
    if (count > 2 * gaps[i])
      pass (list, count, gaps[i]);
  pass (list, count, 1);
}
