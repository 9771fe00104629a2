/* SPDX-License-Identifier: Apache-2.0 */
#include "rates.h"

#include "../../common/clocks.h"
#include "../../common/status.h"
#include "csv.h"
#include "grid.h"
#include "json.h"
#include "wrap.h"

static double per_s (uint64_t count, uint64_t window_ns)
{
  return window_ns ? (double) count * (double) WEFT_NS_PER_S / (double) window_ns : 0;
}

/* Three digits or so: 0.02, 3.4, 118. */
static const char *rate_text (char *out, size_t size, double rate)
{
  snprintf (out, size, "%.*f", rate >= 99.95 || rate <= 0 ? 0 : rate >= 0.995 ? 1 : 2, rate);
  return out;
}

static void print_whole (FILE *out, const ctl_style_t *style, const ctl_analysis_t *analysis,
                         uint64_t window_ns)
{
  char number[32], rate[32];
  ctl_wrap_t wrap;
  ctl_style_number (number, sizeof number, analysis->executions);
  ctl_wrap_begin (&wrap, out, style, "");
  ctl_wrap_item (&wrap, "last %.10g s", (double) window_ns / (double) WEFT_NS_PER_S);
  ctl_wrap_item (&wrap, "%s tasks, %s a second", number,
                 rate_text (rate, sizeof rate, per_s (analysis->executions, window_ns)));
  ctl_style_number (number, sizeof number, analysis->complete);
  ctl_wrap_item (&wrap, "complete %s", number);
  ctl_style_number (number, sizeof number, analysis->orphan_trees);
  ctl_wrap_item (&wrap, "orphans %s", number);
  ctl_style_number (number, sizeof number, ctl_losses_sum (analysis->losses));
  ctl_wrap_item (&wrap, "lost %s", number);
  ctl_wrap_end (&wrap);
}

int ctl_rates (FILE *out, const ctl_style_t *style, const ctl_analysis_t *analysis, uint64_t window_ns,
               uint32_t most)
{
  static const ctl_grid_column_t columns[] = {{"TASK", 0, 1},
                                              {"SERVICE", 0, 1},
                                              {"A SECOND", 1, 0},
                                              {"COUNT", 1, CTL_GRID_SPARE},
                                              {"p50 ms", 1, 0},
                                              {"p99 ms", 1, 0},
                                              {"max ms", 1, CTL_GRID_SPARE},
                                              {"ERRORS", 1, 0}};
  ctl_grid_t *grid = ctl_grid_new (style, columns, sizeof columns / sizeof *columns);
  if (!grid)
    return WEFT_E_NOMEM;
  print_whole (out, style, analysis, window_ns);
  for (uint32_t i = 0; i < analysis->name_count && i < most; i++) {
    const ctl_analysis_name_t *name = &analysis->names[i];
    char text[32];
    ctl_grid_cell (grid, name->name);
    ctl_grid_cell (grid, name->service);
    ctl_grid_own (grid, "%s", rate_text (text, sizeof text, per_s (name->executions, window_ns)));
    ctl_style_number (text, sizeof text, name->executions);
    ctl_grid_own (grid, "%s", text);
    const uint64_t times_ns[] = {name->p50_ns, name->p99_ns, name->max_ns};
    for (size_t k = 0; k < sizeof times_ns / sizeof *times_ns; k++) {
      ctl_style_ms (text, sizeof text, times_ns[k]);
      ctl_grid_own (grid, "%s", text);
    }
    ctl_style_number (text, sizeof text, name->errors);
    ctl_grid_own (grid, "%s", text);
  }
  int rc = ctl_grid_print (grid, out);
  ctl_grid_destroy (&grid);
  if (rc == 0 && analysis->name_count > most)
    fprintf (out, "%u more\n", analysis->name_count - most);
  return rc < 0 ? rc : ferror (out) ? WEFT_E_IO : 0;
}

int ctl_rates_csv (FILE *out, const ctl_analysis_t *analysis, uint64_t window_ns)
{
  fputs ("name,service,per_s,executions,p50_ns,p99_ns,max_ns,errors\n", out);
  for (uint32_t i = 0; i < analysis->name_count; i++) {
    const ctl_analysis_name_t *name = &analysis->names[i];
    ctl_csv_text (out, name->name, ',');
    ctl_csv_text (out, name->service, ',');
    fprintf (out, "%.3f,%llu,%llu,%llu,%llu,%llu\n", per_s (name->executions, window_ns),
             (unsigned long long) name->executions, (unsigned long long) name->p50_ns,
             (unsigned long long) name->p99_ns, (unsigned long long) name->max_ns,
             (unsigned long long) name->errors);
  }
  return ferror (out) ? WEFT_E_IO : 0;
}

int ctl_rates_json (FILE *out, const ctl_analysis_t *analysis, uint64_t window_ns)
{
  int rc = 0;
  for (uint32_t i = 0; i < analysis->name_count && rc == 0; i++) {
    const ctl_analysis_name_t *name = &analysis->names[i];
    rc = ctl_json_line (out, json_pack ("{s:o, s:o, s:f, s:I, s:I, s:I, s:I, s:I}", "name",
                                        ctl_json_text (name->name), "service", ctl_json_text (name->service),
                                        "per_s", per_s (name->executions, window_ns), "executions",
                                        (json_int_t) name->executions, "p50_ns", (json_int_t) name->p50_ns,
                                        "p99_ns", (json_int_t) name->p99_ns, "max_ns",
                                        (json_int_t) name->max_ns, "errors", (json_int_t) name->errors));
  }
  return rc;
}
