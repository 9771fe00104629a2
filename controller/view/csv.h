/* SPDX-License-Identifier: Apache-2.0 */
/* csv: the listing verbs for spreadsheets (RFC 4180, header line first, times
 * in ns). A field that a spreadsheet would take for a formula gets a leading
 * apostrophe. WEFT_E_IO if the stream failed. */
#ifndef CTL_CSV_H
#define CTL_CSV_H

#include <stdio.h>

#include "../task/analyse.h"
#include "../task/instances.h"

/* One field and what follows it. RFC 4180 quotes; a leading = + - @ would be a formula, tab and CR lead to
 * one. Other control characters become blanks, bytes that are no UTF-8 question marks. */
void ctl_csv_text (FILE *out, const char *value, char end);
int ctl_csv_tasks (FILE *out, const ctl_analysis_t *analysis); /* `weft tasks --csv` */
int ctl_csv_each_head (FILE *out);                             /* `weft tasks --each --csv` */
int ctl_csv_each (FILE *out, const ctl_execution_t *execution);
int ctl_csv_execution (FILE *out, const ctl_execution_t *execution); /* `weft show --csv`: a line a subtask */
int ctl_csv_instances (FILE *out, const ctl_instance_t *const *instances,
                       uint32_t count); /* `weft ls --csv` */

#endif
