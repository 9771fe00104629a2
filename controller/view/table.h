/* SPDX-License-Identifier: Apache-2.0 */
/* table: the report of `weft profile` and the tables of `weft tasks` and
 * `weft ls`, for people. Prints to a stream; WEFT_E_IO if that failed. */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include <stdio.h>

#include "../task/analyse.h"
#include "../task/instances.h"
#include "style.h"

/* `weft profile`: the header, why the slowest are slow, where the time goes and the slowest execution of each task
 * name (the `names_max` most frequent, 0: all), then what is complete, orphaned, lost and,
 * of `instances` (may be NULL), the visible share of the traffic. */
int ctl_table_profile (FILE *out, const ctl_style_t *style, const ctl_analysis_t *analysis,
                       uint32_t names_max, const ctl_instance_t *const *instances, uint32_t instance_count);
/* `weft tasks`: one line a task name. */
int ctl_table_tasks (FILE *out, const ctl_style_t *style, const ctl_analysis_t *analysis);
/* `weft tasks --each`: one line an execution. Print the head once. */
int ctl_table_each_head (FILE *out, const ctl_style_t *style);
int ctl_table_each (FILE *out, const ctl_style_t *style, const ctl_execution_t *execution);
/* `weft ls`: one line an instance. */
int ctl_table_instances (FILE *out, const ctl_style_t *style, const ctl_instance_t *const *instances,
                         uint32_t count);
/* `weft ls --losses`: what each wrote, what came in, what was lost by which cause. */
int ctl_table_losses (FILE *out, const ctl_style_t *style, const ctl_instance_t *const *instances,
                      uint32_t count);

#endif
