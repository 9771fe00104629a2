/* SPDX-License-Identifier: Apache-2.0 */
/* crowd: some executions of one task name and what each trait takes in each of them (traits.h):
 * a row of `width` values by execution.
 *
 * One thread, no I/O. */
#ifndef CTL_CROWD_H
#define CTL_CROWD_H

#include "traits.h"

/* Owns the array of samples and, if `owns`, the values. */
typedef struct {
  const ctl_sample_t **sample;
  uint32_t count, width; /* width: traits */
  float *value;
  double *mean; /* by trait */
  int owns;
} ctl_crowd_t;

/* Room for so many samples. 0 or WEFT_E_NOMEM, as all here. */
int ctl_crowd_new (ctl_crowd_t *self, size_t most);
void ctl_crowd_clear (ctl_crowd_t *self);
/* The values of all its samples, without means. */
int ctl_crowd_fill (ctl_crowd_t *self, const ctl_traits_t *traits);
/* Those of `of`, whose samples from `first` on are these; borrowed. */
void ctl_crowd_view (ctl_crowd_t *self, const ctl_crowd_t *of, uint32_t first);
/* Copies of the values that they have in `of`, where all of them are. */
int ctl_crowd_pick (ctl_crowd_t *self, const ctl_crowd_t *of);
/* Means of the values as they are now. */
int ctl_crowd_average (ctl_crowd_t *self);

static inline float *ctl_crowd_row (const ctl_crowd_t *self, uint32_t index)
{
  return &self->value[(size_t) index * self->width];
}

double ctl_crowd_duration (const ctl_crowd_t *self); /* mean, ns */
double ctl_crowd_median (const ctl_crowd_t *self);   /* of durations, which are sorted */

void ctl_crowd_sort (float *column, uint32_t count); /* upwards */
/* How far beyond the median of a trait, *ret_median_ns, is more than its spread explains. The samples are sorted by
 * duration; `column` has room for a value of each. */
double ctl_crowd_fence (const ctl_crowd_t *self, uint32_t trait, float *column, double *ret_median_ns);

#endif
