/* SPDX-License-Identifier: Apache-2.0 */
/* waterfall: one execution as a tree on a time axis (`weft show`), for people. */
#ifndef CTL_WATERFALL_H
#define CTL_WATERFALL_H

#include <stdio.h>

#include "../task/task.h"
#include "style.h"

/* What is alike, many or deep is folded as fold.h says, unless `all`. WEFT_E_IO, WEFT_E_NOMEM. */
int ctl_waterfall (FILE *out, const ctl_style_t *style, const ctl_execution_t *execution, int all);

#endif
