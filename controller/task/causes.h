/* SPDX-License-Identifier: Apache-2.0 */
/* causes: what is told of a difference between the slowest executions and the usual ones:
 * how many calls, how long one takes, computing or not. What differs is the business of why.h.
 *
 * One thread, no I/O. */
#ifndef CTL_CAUSES_H
#define CTL_CAUSES_H

#include "traits.h"

/* Borrows all. */
typedef struct {
  ctl_traits_t *traits;
  const ctl_sample_t *const *slow;
  uint32_t slow_count;
  const ctl_sample_t *const *usual;
  uint32_t usual_count;
} ctl_causes_t;

/* more_ns: by how much the slow ones' mean of that trait is longer. Texts in *ret_cause are the places'. */
void ctl_causes_tell (const ctl_causes_t *self, uint32_t trait, double more_ns, ctl_why_cause_t *ret_cause);

#endif
