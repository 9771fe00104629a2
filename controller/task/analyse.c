/* SPDX-License-Identifier: Apache-2.0 */
/* Per task name an even sample of executions is kept: those whose mixed task id
 * is below a threshold. Whenever the sample is full the threshold is halved and
 * what is above goes: O(1) an execution, and the same executions give the same
 * sample in any order (A1). */
#include "analyse.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/ids.h"
#include "../../common/status.h"
#include "mix.h"
#include "names.h"

#define PATHS_MAX 1024u /* rows of one task name; deeper or wider trees lose their rarest rows */
#define NO_PATH   UINT32_MAX

/* A row: service, VM and name below another row. */
typedef struct {
  uint32_t parent, depth;
  uint32_t service, vm, name; /* ctl_names_id */
  ctl_hop_t hop;
} path_t;

/* What one execution adds to one row. */
typedef struct {
  uint32_t path, calls;
  uint64_t self_ns;
} part_t;

typedef struct {
  uint64_t hash;
  uint64_t duration_ns, network_ns;
  part_t *part; /* NULL: not among those that the rows are made of */
  uint32_t parts;
} sample_t;

typedef struct {
  uint32_t name, service; /* ctl_names_id */
  uint64_t executions, complete, errors;
  uint64_t max_ns;
  uint8_t slowest[WEFT_TASK_ID_SIZE];
  uint64_t keep, keep_parts; /* thresholds of the hash, inclusive */
  sample_t *sample;
  uint32_t samples, sample_capacity, with_parts;
  path_t *path;
  uint32_t paths, path_capacity;
} group_t;

struct ctl_analyse_t {
  ctl_names_t *names;
  group_t *group;
  uint32_t groups, group_capacity;
  uint64_t more_names;
  ctl_analysis_orphan_t *orphan;
  uint32_t orphans, orphan_capacity;
  uint64_t executions, complete, orphan_trees, truncated;
  uint64_t hops[CTL_HOP_COUNT];
  uint32_t path_of[WEFT_SUBTASKS_PER_TASK_MAX]; /* of the execution in hand */
  part_t part[PATHS_MAX];
};

ctl_analyse_t *ctl_analyse_new (void)
{
  ctl_analyse_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  self->names = ctl_names_new ();
  if (!self->names)
    ctl_analyse_destroy (&self);
  return self;
}

void ctl_analyse_destroy (ctl_analyse_t **self_p)
{
  ctl_analyse_t *self = *self_p;
  if (!self)
    return;
  for (uint32_t i = 0; i < self->groups; i++) {
    for (uint32_t k = 0; k < self->group[i].samples; k++)
      free (self->group[i].sample[k].part);
    free (self->group[i].sample);
    free (self->group[i].path);
  }
  free (self->group);
  free (self->orphan);
  ctl_names_destroy (&self->names);
  free (self);
  *self_p = NULL;
}

/* Makes room for one more of `size` bytes. */
static int grow (void **array_p, uint32_t count, uint32_t *capacity, size_t size)
{
  if (count < *capacity)
    return 0;
  uint32_t wanted = *capacity ? *capacity * 2 : 16;
  void *grown = realloc (*array_p, wanted * size);
  if (!grown)
    return WEFT_E_NOMEM;
  *array_p = grown;
  *capacity = wanted;
  return 0;
}

/* The same in every process and on every run: it only spreads ids that may count upwards. */
static uint64_t hash_of (const uint8_t task[WEFT_TASK_ID_SIZE])
{
  static const ctl_seed_t fixed = {0x9e3779b97f4a7c15ull, 0xd1b54a32d192ed03ull};
  return ctl_mix_16 (&fixed, task);
}

static int text_id (ctl_analyse_t *self, const char *text, uint32_t *ret_id)
{
  return ctl_names_id (self->names, text, strlen (text), ret_id);
}

/* ---- adding ---------------------------------------------------------------------- */

static int add_orphan (ctl_analyse_t *self, const ctl_execution_t *execution)
{
  uint32_t id;
  int rc = text_id (self, execution->origin, &id);
  if (rc)
    return rc;
  const char *service = ctl_names_text (self->names, id);
  uint32_t i = 0;
  while (i < self->orphans &&
         (self->orphan[i].service != service || self->orphan[i].reason != execution->reason))
    i++;
  if (i == WEFT_ANALYSE_ORPHANS_MAX)
    i = WEFT_ANALYSE_ORPHANS_MAX - 1; /* the last one takes the rest: counted, not told apart */
  else if (i == self->orphans) {
    void *array = self->orphan;
    rc = grow (&array, self->orphans, &self->orphan_capacity, sizeof *self->orphan);
    self->orphan = array;
    if (rc)
      return rc;
    self->orphan[self->orphans++] = (ctl_analysis_orphan_t){service, execution->reason, 0};
  }
  self->orphan[i].count++;
  self->orphan_trees++;
  return 0;
}

/* NULL in *ret_group: the name is beyond WEFT_ANALYSE_NAMES_MAX. */
static int group_of (ctl_analyse_t *self, const ctl_execution_t *execution, group_t **ret_group)
{
  uint32_t name, service;
  int rc = text_id (self, execution->name, &name);
  if (rc == 0)
    rc = text_id (self, execution->subtasks[0].service, &service);
  if (rc)
    return rc;
  *ret_group = NULL;
  for (uint32_t i = 0; i < self->groups; i++)
    if (self->group[i].name == name && self->group[i].service == service) {
      *ret_group = &self->group[i];
      return 0;
    }
  if (self->groups == WEFT_ANALYSE_NAMES_MAX)
    return 0;
  void *array = self->group;
  rc = grow (&array, self->groups, &self->group_capacity, sizeof *self->group);
  self->group = array;
  if (rc)
    return rc;
  *ret_group = &self->group[self->groups++];
  **ret_group = (group_t){.name = name, .service = service, .keep = UINT64_MAX, .keep_parts = UINT64_MAX};
  return 0;
}

static int path_of (ctl_analyse_t *self, group_t *group, const ctl_subtask_t *subtask, uint32_t parent,
                    uint32_t *ret_path)
{
  path_t wanted = {.parent = parent, .depth = subtask->depth, .hop = subtask->hop};
  int rc = text_id (self, subtask->service, &wanted.service);
  if (rc == 0)
    rc = text_id (self, subtask->vm, &wanted.vm);
  if (rc == 0)
    rc = text_id (self, subtask->name, &wanted.name);
  if (rc)
    return rc;
  for (uint32_t i = 0; i < group->paths; i++) {
    const path_t *path = &group->path[i];
    if (path->parent == parent && path->name == wanted.name && path->service == wanted.service &&
        path->vm == wanted.vm) {
      *ret_path = i;
      return 0;
    }
  }
  if (group->paths == PATHS_MAX) {
    *ret_path = NO_PATH;
    return 0;
  }
  void *array = group->path;
  rc = grow (&array, group->paths, &group->path_capacity, sizeof *group->path);
  group->path = array;
  if (rc)
    return rc;
  *ret_path = group->paths;
  group->path[group->paths++] = wanted;
  return 0;
}

/* Time between caller and callee; two clocks that disagree make no negative network. */
static uint64_t network_ns (const ctl_execution_t *execution)
{
  uint64_t sum_ns = 0;
  for (uint32_t i = 0; i < execution->count; i++) {
    const ctl_subtask_t *hop = &execution->subtasks[i];
    uint64_t outer_ns = hop->answered_ns - hop->sent_ns, inner_ns = hop->end_ns - hop->start_ns;
    if (hop->hop == CTL_HOP_PROVEN && hop->sent_ns && outer_ns > inner_ns)
      sum_ns += outer_ns - inner_ns;
  }
  return sum_ns;
}

static int fill_parts (ctl_analyse_t *self, group_t *group, const ctl_execution_t *execution,
                       sample_t *sample)
{
  uint32_t parts = 0;
  for (uint32_t i = 0; i < execution->count && i < WEFT_SUBTASKS_PER_TASK_MAX; i++) {
    const ctl_subtask_t *subtask = &execution->subtasks[i];
    uint32_t parent = subtask->parent == CTL_NO_PARENT ? NO_PATH : self->path_of[subtask->parent], path;
    self->path_of[i] = NO_PATH;
    if (subtask->parent != CTL_NO_PARENT && parent == NO_PATH)
      continue; /* below a row that was left out */
    int rc = path_of (self, group, subtask, parent, &path);
    if (rc)
      return rc;
    self->path_of[i] = path;
    if (path == NO_PATH)
      continue;
    uint32_t k = 0;
    while (k < parts && self->part[k].path != path)
      k++;
    if (k == parts)
      self->part[parts++] = (part_t){.path = path};
    uint32_t calls = subtask->hop == CTL_HOP_OPAQUE ? subtask->calls : 1;
    self->part[k].calls +=
        calls < UINT32_MAX - self->part[k].calls ? calls : UINT32_MAX - self->part[k].calls;
    self->part[k].self_ns += subtask->self_ns;
  }
  sample->part = malloc ((parts ? parts : 1) * sizeof *sample->part);
  if (!sample->part)
    return WEFT_E_NOMEM;
  memcpy (sample->part, self->part, parts * sizeof *sample->part);
  sample->parts = parts;
  return 0;
}

static void drop_parts (group_t *group, sample_t *sample)
{
  if (!sample->part)
    return;
  free (sample->part);
  sample->part = NULL;
  group->with_parts--;
}

static void thin_out (group_t *group)
{
  while (group->with_parts > CTL_ANALYSE_TREES) {
    group->keep_parts /= 2;
    for (uint32_t i = 0; i < group->samples; i++)
      if (group->sample[i].hash > group->keep_parts)
        drop_parts (group, &group->sample[i]);
  }
  while (group->samples > CTL_ANALYSE_DURATIONS) {
    group->keep /= 2;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < group->samples; i++)
      if (group->sample[i].hash <= group->keep)
        group->sample[kept++] = group->sample[i];
      else
        drop_parts (group, &group->sample[i]);
    group->samples = kept;
  }
}

static int add_sample (ctl_analyse_t *self, group_t *group, const ctl_execution_t *execution)
{
  sample_t sample = {.hash = hash_of (execution->task), .duration_ns = execution->duration_ns};
  if (sample.hash > group->keep)
    return 0;
  void *array = group->sample;
  int rc = grow (&array, group->samples, &group->sample_capacity, sizeof *group->sample);
  group->sample = array;
  if (rc)
    return rc;
  if (sample.hash <= group->keep_parts) {
    sample.network_ns = network_ns (execution);
    rc = fill_parts (self, group, execution, &sample);
    if (rc)
      return rc;
    group->with_parts++;
  }
  group->sample[group->samples++] = sample;
  thin_out (group);
  return 0;
}

/* A duration among the others; no part of a tree. */
static int count_sample (group_t *group, const ctl_execution_t *execution)
{
  __typeof__ (*group->sample) sample = {.hash = hash_of (execution->task),
                                        .duration_ns = execution->duration_ns};
  if (sample.hash > group->keep)
    return 0;
  void *array = group->sample;
  int rc = grow (&array, group->samples, &group->sample_capacity, sizeof *group->sample);
  group->sample = array;
  if (rc)
    return rc;
  group->sample[group->samples++] = sample;
  thin_out (group);
  return 0;
}

/* summary_only: there is no tree. */
static int add (ctl_analyse_t *self, const ctl_execution_t *execution, int summary_only)
{
  group_t *group = NULL;
  if (execution->count == 0)
    return 0;
  int orphan = execution->kind == CTL_KIND_ORPHAN;
  int rc = orphan ? add_orphan (self, execution) : group_of (self, execution, &group);
  if (rc == 0 && group)
    rc = summary_only ? count_sample (group, execution) : add_sample (self, group, execution);
  if (rc)
    return rc;
  for (int i = 0; i < CTL_HOP_COUNT; i++)
    self->hops[i] += execution->hops[i];
  self->truncated += execution->truncated;
  if (orphan)
    return 0;
  self->executions++;
  self->complete += execution->complete;
  if (!group) {
    self->more_names++;
    return 0;
  }
  group->complete += execution->complete;
  group->errors += (uint64_t) ctl_execution_has_error (execution);
  if (group->executions++ == 0 || execution->duration_ns > group->max_ns ||
      (execution->duration_ns == group->max_ns &&
       memcmp (execution->task, group->slowest, WEFT_TASK_ID_SIZE) < 0)) {
    group->max_ns = execution->duration_ns;
    memcpy (group->slowest, execution->task, WEFT_TASK_ID_SIZE);
  }
  return 0;
}

int ctl_analyse_add (ctl_analyse_t *self, const ctl_execution_t *execution)
{
  return add (self, execution, 0);
}

int ctl_analyse_count (ctl_analyse_t *self, const ctl_summary_t *summary)
{
  ctl_subtask_t top = {.service = summary->service, .error = summary->error ? WEFT_ERROR_CLOSED : 0};
  ctl_execution_t one = {.kind = (ctl_kind_t) summary->kind,
                         .complete = summary->complete,
                         .reason = summary->reason,
                         .name = summary->name,
                         .origin = summary->origin,
                         .duration_ns = summary->duration_ns,
                         .truncated = summary->truncated,
                         .subtasks = &top,
                         .count = 1};
  memcpy (one.task, summary->task, sizeof one.task);
  memcpy (one.hops, summary->hops, sizeof one.hops);
  return add (self, &one, 1);
}

/* ---- finishing ------------------------------------------------------------------- */

static int compare_samples (const void *left, const void *right)
{
  const sample_t *a = left, *b = right;
  if (a->duration_ns != b->duration_ns)
    return a->duration_ns < b->duration_ns ? -1 : 1;
  return a->hash < b->hash ? -1 : a->hash > b->hash;
}

/* The smallest duration that at least `percent` of the executions do not exceed. */
static uint64_t percentile (const sample_t *sample, uint32_t samples, uint32_t percent)
{
  uint64_t rank = ((uint64_t) samples * percent + 99) / 100;
  return samples ? sample[rank ? rank - 1 : 0].duration_ns : 0;
}

/* Sums per row while it is being worked out. */
typedef struct {
  uint64_t calls, self_ns;
} sum_t;

/* Rows in tree order: each below its parent, the most expensive first. */
typedef struct {
  uint32_t path, parent;
  uint64_t self_ns;
  const char *service, *name;
} place_t;

static int compare_places (const void *left, const void *right)
{
  const place_t *a = left, *b = right;
  if (a->parent != b->parent)
    return a->parent < b->parent ? -1 : 1;
  if (a->self_ns != b->self_ns)
    return a->self_ns > b->self_ns ? -1 : 1;
  int order = strcmp (a->service, b->service);
  return order ? order : strcmp (a->name, b->name);
}

static uint32_t first_of (const place_t *place, uint32_t places, uint32_t parent)
{
  uint32_t low = 0, high = places;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (place[middle].parent < parent)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

typedef struct {
  const ctl_analyse_t *self;
  const group_t *group;
  const sum_t *sum;
  place_t *place;
  uint32_t places;
  uint32_t *stack; /* places yet to come, the next one last */
  ctl_analysis_name_t *out;
} rows_t;

static void emit_row (rows_t *rows, const place_t *place)
{
  const path_t *path = &rows->group->path[place->path];
  const sum_t *sum = &rows->sum[place->path];
  ctl_analysis_row_t *row = &rows->out->rows[rows->out->row_count++];
  row->service = ctl_names_text (rows->self->names, path->service);
  row->vm = ctl_names_text (rows->self->names, path->vm);
  row->name = ctl_names_text (rows->self->names, path->name);
  row->depth = path->depth;
  row->hop = path->hop;
  row->calls = (double) sum->calls / rows->out->sample;
  row->self_ns = sum->self_ns / rows->out->sample;
  row->share = rows->out->mean_ns ? (double) row->self_ns / (double) rows->out->mean_ns : 0;
}

static void emit_rows (rows_t *rows)
{
  uint32_t depth = 0, path = NO_PATH;
  qsort (rows->place, rows->places, sizeof *rows->place, compare_places);
  for (;;) {
    uint32_t from = first_of (rows->place, rows->places, path), to = from;
    while (to < rows->places && rows->place[to].parent == path)
      to++;
    while (to > from)
      rows->stack[depth++] = --to;
    if (!depth)
      return;
    const place_t *place = &rows->place[rows->stack[--depth]];
    emit_row (rows, place);
    path = place->path;
  }
}

/* The middle half of the executions that have parts: what is usual, not what is extreme. */
static int finish_rows (const ctl_analyse_t *self, const group_t *group, ctl_analysis_name_t *out)
{
  uint64_t low_ns = percentile (group->sample, group->samples, 25);
  uint64_t high_ns = percentile (group->sample, group->samples, 75);
  uint64_t duration_ns = 0, gap_ns = 0;
  sum_t *sum = calloc (group->paths + 1u, sizeof *sum);
  place_t *place = calloc (group->paths + 1u, sizeof *place);
  uint32_t *stack = calloc (group->paths + 1u, sizeof *stack);
  out->rows = calloc (group->paths + 1u, sizeof *out->rows);
  rows_t rows = {.self = self, .group = group, .sum = sum, .place = place, .stack = stack, .out = out};
  int rc = sum && place && stack && out->rows ? 0 : WEFT_E_NOMEM;
  for (uint32_t i = 0; i < group->samples && rc == 0; i++) {
    const sample_t *sample = &group->sample[i];
    if (!sample->part || sample->duration_ns < low_ns || sample->duration_ns > high_ns)
      continue;
    out->sample++;
    duration_ns += sample->duration_ns;
    gap_ns += sample->network_ns;
    for (uint32_t k = 0; k < sample->parts; k++) {
      sum[sample->part[k].path].calls += sample->part[k].calls;
      sum[sample->part[k].path].self_ns += sample->part[k].self_ns;
    }
  }
  if (rc == 0 && out->sample) {
    out->mean_ns = duration_ns / out->sample;
    out->network_ns = gap_ns / out->sample;
    for (uint32_t i = 0; i < group->paths; i++)
      if (sum[i].calls)
        place[rows.places++] = (place_t){i, group->path[i].parent, sum[i].self_ns,
                                         ctl_names_text (self->names, group->path[i].service),
                                         ctl_names_text (self->names, group->path[i].name)};
    emit_rows (&rows);
  }
  free (sum);
  free (place);
  free (stack);
  return rc;
}

static int finish_name (const ctl_analyse_t *self, group_t *group, ctl_analysis_name_t *out)
{
  if (group->samples > 1)
    qsort (group->sample, group->samples, sizeof *group->sample, compare_samples);
  out->name = ctl_names_text (self->names, group->name);
  out->service = ctl_names_text (self->names, group->service);
  out->executions = group->executions;
  out->complete = group->complete;
  out->errors = group->errors;
  out->p50_ns = percentile (group->sample, group->samples, 50);
  out->p90_ns = percentile (group->sample, group->samples, 90);
  out->p99_ns = percentile (group->sample, group->samples, 99);
  out->max_ns = group->max_ns;
  memcpy (out->slowest, group->slowest, WEFT_TASK_ID_SIZE);
  return finish_rows (self, group, out);
}

static int compare_names (const void *left, const void *right)
{
  const ctl_analysis_name_t *a = left, *b = right;
  if (a->executions != b->executions)
    return a->executions > b->executions ? -1 : 1;
  int order = strcmp (a->name, b->name);
  return order ? order : strcmp (a->service, b->service);
}

static int compare_orphans (const void *left, const void *right)
{
  const ctl_analysis_orphan_t *a = left, *b = right;
  if (a->count != b->count)
    return a->count > b->count ? -1 : 1;
  int order = strcmp (a->service, b->service);
  return order ? order : (int) a->reason - (int) b->reason;
}

static int finish (ctl_analyse_t *self, ctl_analysis_t *out)
{
  out->executions = self->executions;
  out->complete = self->complete;
  out->orphan_trees = self->orphan_trees;
  out->more_names = self->more_names;
  out->truncated = self->truncated;
  memcpy (out->hops, self->hops, sizeof out->hops);
  out->names = calloc (self->groups + 1u, sizeof *out->names);
  out->orphans = calloc (self->orphans + 1u, sizeof *out->orphans);
  if (!out->names || !out->orphans)
    return WEFT_E_NOMEM;
  int rc = 0;
  for (uint32_t i = 0; i < self->groups && rc == 0; i++)
    rc = finish_name (self, &self->group[i], &out->names[out->name_count++]);
  qsort (out->names, out->name_count, sizeof *out->names, compare_names);
  if (self->orphans)
    memcpy (out->orphans, self->orphan, self->orphans * sizeof *out->orphans);
  out->orphan_count = self->orphans;
  qsort (out->orphans, out->orphan_count, sizeof *out->orphans, compare_orphans);
  return rc;
}

/* The strings of the result must outlive self: it is taken through its own JSON. */
int ctl_analyse_finish (ctl_analyse_t *self, ctl_analysis_t **ret_analysis)
{
  ctl_analysis_t *borrowing = calloc (1, sizeof *borrowing);
  if (!borrowing)
    return WEFT_E_NOMEM;
  int rc = finish (self, borrowing);
  if (rc == 0) {
    json_t *json = ctl_analysis_json (borrowing);
    rc = json ? ctl_analysis_from_json (json, ret_analysis) : WEFT_E_NOMEM;
    json_decref (json);
  }
  ctl_analysis_destroy (&borrowing);
  return rc;
}
