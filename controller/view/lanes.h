/* SPDX-License-Identifier: Apache-2.0 */
/* lanes: places beside each other for spans that may overlap. Spans come in the order of their
 * starts, of one moment the longest first; each gets the lane of the span that it belongs
 * below, if it lies within that one there, else one in which everything has ended, else a new one.
 * So in one lane spans lie within each other or apart. One thread. */
#ifndef CTL_LANES_H
#define CTL_LANES_H

#include <stdint.h>

#define CTL_LANE_NONE UINT32_MAX

typedef struct ctl_lanes_t ctl_lanes_t;

ctl_lanes_t *ctl_lanes_new (void);
void ctl_lanes_destroy (ctl_lanes_t **self_p);
/* The lane for start..end, of `wanted` if that is possible (CTL_LANE_NONE: of none). WEFT_E_NOMEM. */
int ctl_lanes_take (ctl_lanes_t *self, uint64_t start_ns, uint64_t end_ns, uint32_t wanted,
                    uint32_t *ret_lane);
uint32_t ctl_lanes_count (const ctl_lanes_t *self);

#endif
