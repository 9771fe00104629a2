/* SPDX-License-Identifier: Apache-2.0 */
#include "triples.h"

#include <stdlib.h>
#include <string.h>

#define VERY_FEW 64u
#define TOGETHER 4u
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

/* Each goes behind as many as are less: no turn depends on what they are. Whether no two are equal; else
 * they are as before. */
static int enumerate (ctl_triple_t *list, uint32_t count)
{
  ctl_triple_t copy[VERY_FEW];
  uint64_t key[VERY_FEW + TOGETHER];
  uint64_t taken = 0, twice = 0;
  for (uint32_t i = 0; i < count; i++) {
    copy[i] = list[i];
    key[i] = list[i].first;
  }
  for (uint32_t i = count; i % TOGETHER; i++)
    key[i] = UINT64_MAX; /* less than none */
  for (uint32_t i = 0; i < count; i++) {
    uint64_t first = key[i];
    uint32_t behind = 0;
    for (uint32_t k = 0; k < count; k += TOGETHER) {
      behind += key[k] < first;
      behind += key[k + 1] < first;
      behind += key[k + 2] < first;
      behind += key[k + 3] < first;
    }
    twice |= taken >> behind & 1;
    taken |= 1ull << behind;
    list[behind] = copy[i];
  }
  if (twice)
    memcpy (list, copy, count * sizeof *list);
  return !twice;
}
_Static_assert(VERY_FEW <= 64 && TOGETHER == 4, "places are bits of a word");

void ctl_triples_sort (ctl_triple_t *list, uint32_t count)
{
  static const uint32_t gaps[] = {301, 132, 57, 23, 10, 4};
  if (count > FEW) {
    qsort (list, count, sizeof *list, compare);
    return;
  }
  if (count <= VERY_FEW && enumerate (list, count))
    return;
  for (uint32_t i = 0; i < sizeof gaps / sizeof *gaps; i++)
    if (count > 2 * gaps[i])
      pass (list, count, gaps[i]);
  pass (list, count, 1);
}
