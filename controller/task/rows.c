/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"

/* Sums per place while they are being worked out. */
typedef struct {
  uint64_t calls, self_ns, children_ns, network_ns, queue_ns, critical_ns;
  uint32_t parallel;
} sum_t;

/* Rows in tree order: each below its parent, the most expensive first. */
typedef struct {
  uint32_t place, parent;
  uint64_t self_ns;
  const char *service, *name;
} spot_t;

typedef struct {
  const ctl_places_t *places;
  sum_t *sum;
  spot_t *spot;
  uint32_t spots;
  uint32_t *stack; /* spots yet to come, the next one last */
  ctl_analysis_name_t *out;
} rows_t;

uint64_t ctl_samples_percentile (const ctl_sample_t *sample, uint32_t samples, uint32_t percent)
{
  uint64_t rank = ((uint64_t) samples * percent + 99) / 100;
  return samples ? sample[rank ? rank - 1 : 0].duration_ns : 0;
}

static int compare_spots (const void *left, const void *right)
{
  const spot_t *a = left, *b = right;
  if (a->parent != b->parent)
    return a->parent < b->parent ? -1 : 1;
  if (a->self_ns != b->self_ns)
    return a->self_ns > b->self_ns ? -1 : 1;
  int order = strcmp (a->service, b->service);
  return order ? order : strcmp (a->name, b->name);
}

static uint32_t first_of (const spot_t *spot, uint32_t spots, uint32_t parent)
{
  uint32_t low = 0, high = spots;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (spot[middle].parent < parent)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void emit_row (rows_t *rows, const spot_t *spot)
{
  const ctl_place_t *place = &rows->places->place[spot->place];
  const sum_t *sum = &rows->sum[spot->place];
  uint32_t sample = rows->out->sample;
  ctl_analysis_row_t *row = &rows->out->rows[rows->out->row_count++];
  row->service = place->service;
  row->vm = place->vm;
  row->name = place->name;
  row->depth = place->depth;
  row->hop = place->hop;
  row->calls = (double) sum->calls / sample;
  row->self_ns = sum->self_ns / sample;
  row->share = rows->out->mean_ns ? (double) row->self_ns / (double) rows->out->mean_ns : 0;
  row->children_ns = sum->children_ns / sample;
  row->network_ns = sum->network_ns / sample;
  row->queue_ns = sum->queue_ns / sample;
  row->critical_ns = sum->critical_ns / sample;
  row->parallel = sum->parallel;
}

static void emit_rows (rows_t *rows)
{
  uint32_t depth = 0, place = CTL_NO_PLACE;
  qsort (rows->spot, rows->spots, sizeof *rows->spot, compare_spots);
  for (;;) {
    uint32_t from = first_of (rows->spot, rows->spots, place), to = from;
    while (to < rows->spots && rows->spot[to].parent == place)
      to++;
    while (to > from)
      rows->stack[depth++] = --to;
    if (!depth)
      return;
    const spot_t *spot = &rows->spot[rows->stack[--depth]];
    emit_row (rows, spot);
    place = spot->place;
  }
}

static void add (rows_t *rows, const ctl_sample_t *sample, uint64_t *network_ns)
{
  for (uint32_t k = 0; k < sample->parts; k++) {
    const ctl_part_t *part = &sample->part[k];
    sum_t *sum = &rows->sum[part->place];
    sum->calls += part->calls;
    sum->self_ns += part->self_ns;
    sum->children_ns += part->children_ns;
    sum->network_ns += part->network_ns;
    sum->queue_ns += part->queue_ns;
    sum->critical_ns += part->critical_self_ns + part->critical_gap_ns + part->critical_network_ns;
    sum->parallel = part->parallel > sum->parallel ? part->parallel : sum->parallel;
    *network_ns += part->network_ns;
  }
}

/* The middle half of the executions that have parts: what is usual, not what is extreme. */
static void fill (rows_t *rows, const ctl_sample_t *sample, uint32_t samples)
{
  ctl_analysis_name_t *out = rows->out;
  uint64_t low_ns = ctl_samples_percentile (sample, samples, 25);
  uint64_t high_ns = ctl_samples_percentile (sample, samples, 75);
  uint64_t duration_ns = 0, network_ns = 0;
  for (uint32_t i = 0; i < samples; i++) {
    if (!sample[i].part || sample[i].duration_ns < low_ns || sample[i].duration_ns > high_ns)
      continue;
    out->sample++;
    duration_ns += sample[i].duration_ns;
    add (rows, &sample[i], &network_ns);
  }
  if (!out->sample)
    return;
  out->mean_ns = duration_ns / out->sample;
  out->network_ns = network_ns / out->sample;
  for (uint32_t i = 0; i < rows->places->count; i++)
    if (rows->sum[i].calls)
      rows->spot[rows->spots++] = (spot_t){i, rows->places->place[i].parent, rows->sum[i].self_ns,
                                           rows->places->place[i].service, rows->places->place[i].name};
  emit_rows (rows);
}

int ctl_rows (const ctl_places_t *places, const ctl_sample_t *sample, uint32_t samples,
              ctl_analysis_name_t *out)
{
  rows_t rows = {.places = places, .out = out};
  rows.sum = calloc (places->count + 1u, sizeof *rows.sum);
  rows.spot = calloc (places->count + 1u, sizeof *rows.spot);
  rows.stack = calloc (places->count + 1u, sizeof *rows.stack);
  out->rows = calloc (places->count + 1u, sizeof *out->rows);
  int rc = rows.sum && rows.spot && rows.stack && out->rows ? 0 : WEFT_E_NOMEM;
  if (rc == 0)
    fill (&rows, sample, samples);
  free (rows.sum);
  free (rows.spot);
  free (rows.stack);
  return rc;
}
