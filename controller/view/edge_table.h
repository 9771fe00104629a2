/* SPDX-License-Identifier: Apache-2.0 */
/* edge_table: `weft tasks --edges`: who calls whom in each task name, how often, how long and with how
 * many errors: one line an edge, for people, as JSON, for spreadsheets. WEFT_E_IO if the stream failed. */
#ifndef CTL_EDGE_TABLE_H
#define CTL_EDGE_TABLE_H

#include <stdio.h>

#include "../task/analyse.h"
#include "style.h"

/* WEFT_E_NOMEM, too. */
int ctl_edge_table_print (FILE *out, const ctl_style_t *style, const ctl_analysis_t *analysis);
/* One object a line: an edge as in the JSON of its task name, which is `task` and `task_service` in it. */
int ctl_edge_table_json (FILE *out, const json_t *analysis);
int ctl_edge_table_csv (FILE *out, const ctl_analysis_t *analysis);

#endif
