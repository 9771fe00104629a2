/* SPDX-License-Identifier: Apache-2.0 */
#include "edge_table.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/limits.h"
#include "../../common/status.h"
#include "csv.h"
#include "grid.h"
#include "json.h"

#define PLACE_MAX (2 * WEFT_NAME_MAX)

/* "orders POST /orders", "postgresql 10.0.0.5:5432"; `nobody` if there is no text. */
static void place_cell (ctl_grid_t *grid, const char *service, const char *name, ctl_hop_t hop,
                        const char *nobody)
{
  char place[PLACE_MAX];
  int opaque = hop == CTL_HOP_OPAQUE;
  const char *first = opaque ? name : service, *second = opaque ? service : name;
  snprintf (place, sizeof place, "%s%s%s", first, *first && *second ? " " : "", second);
  ctl_grid_cell (grid, *place ? place : nobody);
}

int ctl_edge_table_print (FILE *out, const ctl_style_t *style, const ctl_analysis_t *analysis)
{
  static const ctl_grid_column_t columns[] = {{"TASK", 0, 1},
                                              {"CALLER", 0, 1},
                                              {"CALLEE", 0, 1},
                                              {"CALLS", 1, 0},
                                              {"ERRORS", 1, 0},
                                              {"p50 ms", 1, 0},
                                              {"p90 ms", 1, CTL_GRID_SPARE},
                                              {"p99 ms", 1, 0},
                                              {"max ms", 1, CTL_GRID_SPARE}};
  ctl_grid_t *grid = ctl_grid_new (style, columns, sizeof columns / sizeof *columns);
  if (!grid)
    return WEFT_E_NOMEM;
  for (uint32_t i = 0; i < analysis->name_count; i++)
    for (uint32_t k = 0; k < analysis->names[i].edge_count; k++) {
      const ctl_analysis_edge_t *edge = &analysis->names[i].edges[k];
      ctl_grid_cell (grid, analysis->names[i].name);
      place_cell (grid, edge->from_service, edge->from_name, CTL_HOP_ROOT,
                  edge->hop == CTL_HOP_ROOT ? "outside" : "unknown");
      place_cell (grid, edge->service, edge->name, edge->hop, "unnamed");
      ctl_grid_number (grid, edge->calls);
      ctl_grid_number (grid, edge->errors);
      ctl_grid_ms (grid, edge->p50_ns);
      ctl_grid_ms (grid, edge->p90_ns);
      ctl_grid_ms (grid, edge->p99_ns);
      ctl_grid_ms (grid, edge->max_ns);
    }
  int rc = ctl_grid_print (grid, out);
  ctl_grid_destroy (&grid);
  return rc ? rc : ferror (out) ? WEFT_E_IO : 0;
}

int ctl_edge_table_json (FILE *out, const json_t *analysis)
{
  size_t n, k;
  json_t *name, *edge;
  int rc = 0;
  json_array_foreach (json_object_get (analysis, "names"), n, name)
  {
    json_array_foreach (json_object_get (name, "edges"), k, edge)
    {
      json_t *line = json_copy (edge);
      if (!line || json_object_set (line, "task", json_object_get (name, "name")) < 0 ||
          json_object_set (line, "task_service", json_object_get (name, "service")) < 0) {
        json_decref (line);
        return WEFT_E_NOMEM;
      }
      rc = ctl_json_line (out, line);
      if (rc < 0)
        return rc;
    }
  }
  return rc;
}

int ctl_edge_table_csv (FILE *out, const ctl_analysis_t *analysis)
{
  fputs ("task,task_service,from_service,from_name,service,vm,name,hop,calls,errors,p50_ns,p90_ns,p99_ns,max_"
         "ns\n",
         out);
  for (uint32_t i = 0; i < analysis->name_count; i++)
    for (uint32_t k = 0; k < analysis->names[i].edge_count; k++) {
      const ctl_analysis_edge_t *edge = &analysis->names[i].edges[k];
      const char *const texts[] = {analysis->names[i].name,
                                   analysis->names[i].service,
                                   edge->from_service,
                                   edge->from_name,
                                   edge->service,
                                   edge->vm,
                                   edge->name};
      const uint64_t numbers[] = {edge->calls,  edge->errors, edge->p50_ns,
                                  edge->p90_ns, edge->p99_ns, edge->max_ns};
      for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
        ctl_csv_text (out, texts[t], ',');
      fputs (ctl_hop_text (edge->hop), out);
      for (size_t t = 0; t < sizeof numbers / sizeof *numbers; t++)
        fprintf (out, ",%llu", (unsigned long long) numbers[t]);
      fputc ('\n', out);
    }
  return ferror (out) ? WEFT_E_IO : 0;
}
