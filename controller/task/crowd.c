/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"

#define FENCE          5.0
#define FENCE_SHARE    0.05     /* of the median duration, at least */
#define FENCE_LEAST_NS 100000.0 /* a wake-up more or less is nothing that one could mend */
#define LOWER_FACTOR   2.5 /* of the lower half's spread: what is in many executions hides in the upper one */

int ctl_crowd_new (ctl_crowd_t *self, size_t most)
{
  self->sample = calloc (most + 1, sizeof (void *));
  return self->sample ? 0 : WEFT_E_NOMEM;
}

static void clear_values (ctl_crowd_t *self)
{
  if (self->owns)
    free (self->value);
  self->value = NULL;
  self->owns = 0;
}

void ctl_crowd_clear (ctl_crowd_t *self)
{
  clear_values (self);
  free (self->sample);
  free (self->mean);
  *self = (ctl_crowd_t){0};
}

int ctl_crowd_fill (ctl_crowd_t *self, const ctl_traits_t *traits)
{
  clear_values (self);
  self->width = traits->keys * CTL_TRAIT_COUNT;
  self->value = calloc ((size_t) self->count * self->width + 1, sizeof *self->value);
  self->owns = 1;
  if (!self->value)
    return WEFT_E_NOMEM;
  for (uint32_t i = 0; i < self->count; i++)
    ctl_traits_fill (traits, self->sample[i], ctl_crowd_row (self, i));
  return 0;
}

void ctl_crowd_view (ctl_crowd_t *self, const ctl_crowd_t *of, uint32_t first)
{
  clear_values (self);
  self->width = of->width;
  self->value = ctl_crowd_row (of, first);
}

int ctl_crowd_pick (ctl_crowd_t *self, const ctl_crowd_t *of)
{
  clear_values (self);
  self->width = of->width;
  self->value = calloc ((size_t) self->count * self->width + 1, sizeof *self->value);
  self->owns = 1;
  if (!self->value)
    return WEFT_E_NOMEM;
  for (uint32_t i = 0; i < self->count; i++)
    for (uint32_t k = 0; k < of->count; k++)
      if (of->sample[k] == self->sample[i])
        memcpy (ctl_crowd_row (self, i), ctl_crowd_row (of, k), self->width * sizeof *self->value);
  return 0;
}

int ctl_crowd_average (ctl_crowd_t *self)
{
  free (self->mean);
  self->mean = calloc (self->width + 1u, sizeof *self->mean);
  if (!self->mean)
    return WEFT_E_NOMEM;
  for (uint32_t i = 0; i < self->count; i++) {
    const float *row = ctl_crowd_row (self, i);
    for (uint32_t t = 0; t < self->width; t++)
      self->mean[t] += (double) row[t] / self->count;
  }
  return 0;
}

double ctl_crowd_duration (const ctl_crowd_t *self)
{
  double sum_ns = 0;
  for (uint32_t i = 0; i < self->count; i++)
    sum_ns += (double) self->sample[i]->duration_ns;
  return self->count ? sum_ns / self->count : 0;
}

double ctl_crowd_median (const ctl_crowd_t *self)
{
  uint32_t middle = self->count / 2;
  return self->count ? (double) self->sample[middle]->duration_ns : 0;
}

static int compare_floats (const void *left, const void *right)
{
  float a = *(const float *) left, b = *(const float *) right;
  return a < b ? -1 : a > b;
}

void ctl_crowd_sort (float *column, uint32_t count)
{
  qsort (column, count, sizeof *column, compare_floats);
}

double ctl_crowd_fence (const ctl_crowd_t *self, uint32_t trait, float *column, double *ret_median_ns)
{
  uint32_t count = self->count;
  for (uint32_t i = 0; i < count; i++)
    column[i] = ctl_crowd_row (self, i)[trait];
  ctl_crowd_sort (column, count);
  double low = (double) column[count / 4], middle = (double) column[count / 2],
         high = (double) column[count - 1 - count / 4];
  double spread = high - middle, lower = LOWER_FACTOR * (middle - low);
  if (low > 0 && lower < spread)
    spread = lower;
  double fence = FENCE * spread, least = FENCE_SHARE * ctl_crowd_median (self);
  fence = fence < least ? least : fence;
  *ret_median_ns = middle;
  return fence < FENCE_LEAST_NS ? FENCE_LEAST_NS : fence;
}
