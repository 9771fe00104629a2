/* SPDX-License-Identifier: Apache-2.0 */
/* rows: where the time goes, as a table: the mean of the middle half of the executions
 * of one task name at each of their places. */
#ifndef CTL_ROWS_H
#define CTL_ROWS_H

#include "analyse.h"
#include "places.h"

/* The smallest duration that at least `percent` of the samples do not exceed; they are sorted. */
uint64_t ctl_samples_percentile (const ctl_sample_t *sample, uint32_t samples, uint32_t percent);
/* Fills rows, sample, mean_ns and network_ns. Texts are borrowed from the places. 0 or WEFT_E_NOMEM. */
int ctl_rows (const ctl_places_t *places, const ctl_sample_t *sample, uint32_t samples,
              ctl_analysis_name_t *out);

#endif
