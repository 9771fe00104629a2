/* SPDX-License-Identifier: Apache-2.0 */
/* rates: task names with how many of them a second there were (`weft top`). */
#ifndef CTL_RATES_H
#define CTL_RATES_H

#include <stdio.h>

#include "../task/analyse.h"
#include "style.h"

/* For people: a line on the whole, then one for each of the first `most` names. WEFT_E_NOMEM, WEFT_E_IO. */
int ctl_rates (FILE *out, const ctl_style_t *style, const ctl_analysis_t *analysis, uint64_t window_ns,
               uint32_t most);
int ctl_rates_csv (FILE *out, const ctl_analysis_t *analysis, uint64_t window_ns);
/* One object a name, one a line. */
int ctl_rates_json (FILE *out, const ctl_analysis_t *analysis, uint64_t window_ns);

#endif
