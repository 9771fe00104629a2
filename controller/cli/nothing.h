/* SPDX-License-Identifier: Apache-2.0 */
/* nothing: why a window has no task, in one line. */
#ifndef CTL_NOTHING_H
#define CTL_NOTHING_H

#include "../task/analyse.h"
#include "window.h"

/* Looks at the window's traffic (ctl_window_traffic was called) and orphans. `match` "": none was given;
 * draws: not every request was meant (--sample, --max). */
void ctl_nothing_explain (ctl_window_t *window, const ctl_analysis_t *analysis, const char *match, int draws);
/* The number of insertions, deletions and replacements between two texts, as far as their first 160 bytes. */
unsigned ctl_nothing_distance (const char *a, const char *b);

#endif
