/* SPDX-License-Identifier: Apache-2.0 */
#include "triples.h"

#include <stdlib.h>

#define FEW 24u /* up to here moving each to its place takes less */

static int compare (const void *left, const void *right)
{
  const ctl_triple_t *a = left, *b = right;
  return ctl_triple_is_less (a, b) ? -1 : ctl_triple_is_less (b, a);
}

void ctl_triples_sort (ctl_triple_t *list, uint32_t count)
{
  if (count > FEW) {
    qsort (list, count, sizeof *list, compare);
    return;
  }
  for (uint32_t i = 1; i < count; i++) {
    ctl_triple_t one = list[i];
    uint32_t at = i;
    for (; at > 0 && ctl_triple_is_less (&one, &list[at - 1]); at--)
      list[at] = list[at - 1];
    list[at] = one;
  }
}
