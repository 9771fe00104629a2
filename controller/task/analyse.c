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
#include "edges.h"
#include "mix.h"
#include "names.h"
#include "places.h"
#include "rows.h"
#include "why.h"

typedef struct {
  uint32_t name, service; /* ctl_names_id */
  uint64_t executions, complete, errors;
  uint64_t read; /* complete ones whose trees were read */
  uint64_t max_ns, total_ns;
  uint8_t slowest[WEFT_TASK_ID_SIZE];
  uint64_t keep, keep_parts; /* thresholds of the hash, inclusive */
  ctl_sample_t *sample;
  uint32_t samples, sample_capacity, with_parts;
  ctl_sample_t *slow; /* complete ones, all with parts: the slowest are among them */
  uint32_t slows, slow_capacity;
  ctl_sample_t least; /* what is behind this is none of the slowest; no duration: not full yet */
  ctl_places_t places;
  uint64_t more_edges;
} group_t;

struct ctl_analyse_t {
  ctl_names_t *names;
  group_t *group;
  uint32_t groups, group_capacity;
  uint64_t more_names;
  ctl_analysis_orphan_t *orphan;
  uint32_t orphans, orphan_capacity;
  ctl_why_orphan_t *time; /* of orphan trees */
  uint32_t times, time_capacity;
  uint64_t executions, complete, orphan_trees, truncated;
  uint64_t hops[CTL_HOP_COUNT];
  ctl_edges_t *edges;
  ctl_places_work_t work; /* the execution in hand */
};

ctl_analyse_t *ctl_analyse_new (void)
{
  ctl_analyse_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  self->names = ctl_names_new ();
  self->edges = ctl_edges_new ();
  if (!self->names || !self->edges)
    ctl_analyse_destroy (&self);
  return self;
}

static void group_clear (group_t *group)
{
  for (uint32_t k = 0; k < group->samples; k++)
    free (group->sample[k].part);
  for (uint32_t k = 0; k < group->slows; k++)
    free (group->slow[k].part);
  free (group->sample);
  free (group->slow);
  ctl_places_clear (&group->places);
}

void ctl_analyse_destroy (ctl_analyse_t **self_p)
{
  ctl_analyse_t *self = *self_p;
  if (!self)
    return;
  for (uint32_t i = 0; i < self->groups; i++)
    group_clear (&self->group[i]);
  free (self->group);
  free (self->orphan);
  free (self->time);
  ctl_edges_destroy (&self->edges);
  ctl_names_destroy (&self->names);
  ctl_places_work_clear (&self->work);
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

/* One clock for all of its times, or 0. */
static uint32_t host_of (const ctl_execution_t *execution)
{
  return execution->hosts <= 1 ? execution->subtasks[0].host : 0;
}

static int add_time (ctl_analyse_t *self, const char *service, const ctl_execution_t *execution)
{
  if (self->times == CTL_WHY_TIMES_MAX)
    return 0;
  void *array = self->time;
  int rc = grow (&array, self->times, &self->time_capacity, sizeof *self->time);
  self->time = array;
  if (rc == 0)
    self->time[self->times++] = (ctl_why_orphan_t){
        service, execution->start_ns, execution->start_ns + execution->duration_ns, host_of (execution)};
  return rc;
}

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
  return add_time (self, service, execution);
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

static void drop_parts (group_t *group, ctl_sample_t *sample)
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

/* The slowest first; equally slow ones in an order that is the same in every run. */
static int compare_slow (const void *left, const void *right)
{
  const ctl_sample_t *a = left, *b = right;
  if (a->duration_ns != b->duration_ns)
    return a->duration_ns > b->duration_ns ? -1 : 1;
  return a->hash < b->hash ? -1 : a->hash > b->hash;
}

/* Twice as many as are wanted are let in before the slower half of them stays: O(log) an execution. */
static int add_slow (ctl_analyse_t *self, group_t *group, const ctl_execution_t *execution,
                     const ctl_sample_t *sample)
{
  if (!execution->complete || (group->least.duration_ns && compare_slow (sample, &group->least) > 0))
    return 0;
  void *array = group->slow;
  int rc = grow (&array, group->slows, &group->slow_capacity, sizeof *group->slow);
  group->slow = array;
  ctl_sample_t *one = &group->slow[group->slows];
  if (rc == 0) {
    *one = *sample;
    rc = ctl_places_parts (&group->places, &self->work, execution, one);
  }
  if (rc)
    return rc;
  if (++group->slows < 2 * CTL_WHY_SLOW_MAX)
    return 0;
  qsort (group->slow, group->slows, sizeof *group->slow, compare_slow);
  while (group->slows > CTL_WHY_SLOW_MAX)
    free (group->slow[--group->slows].part);
  group->least = group->slow[group->slows - 1];
  return 0;
}

static int add_sample (ctl_analyse_t *self, group_t *group, const ctl_execution_t *execution)
{
  ctl_sample_t sample = {.hash = hash_of (execution->task),
                         .start_ns = execution->start_ns,
                         .duration_ns = execution->duration_ns,
                         .host = host_of (execution),
                         .complete = execution->complete};
  int rc = ctl_places_begin (&self->work, self->names, execution);
  if (rc == 0)
    rc = ctl_edges_add (self->edges, (uint32_t) (group - self->group), sample.hash, execution, &self->work,
                        &group->more_edges);
  if (rc == 0)
    rc = add_slow (self, group, execution, &sample);
  if (rc || sample.hash > group->keep)
    return rc;
  void *array = group->sample;
  rc = grow (&array, group->samples, &group->sample_capacity, sizeof *group->sample);
  group->sample = array;
  if (rc == 0 && sample.hash <= group->keep_parts) {
    rc = ctl_places_parts (&group->places, &self->work, execution, &sample);
    group->with_parts += rc == 0;
  }
  if (rc)
    return rc;
  group->sample[group->samples++] = sample;
  thin_out (group);
  return 0;
}

/* A duration among the others; no part of a tree. */
static int count_sample (group_t *group, const ctl_execution_t *execution)
{
  ctl_sample_t sample = {.hash = hash_of (execution->task), .duration_ns = execution->duration_ns};
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
  group->read += execution->complete && !summary_only;
  group->errors += (uint64_t) ctl_execution_failed (execution);
  group->total_ns += execution->duration_ns;
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
  const ctl_sample_t *a = left, *b = right;
  if (a->duration_ns != b->duration_ns)
    return a->duration_ns < b->duration_ns ? -1 : 1;
  return a->hash < b->hash ? -1 : a->hash > b->hash;
}

static int finish_name (ctl_analyse_t *self, group_t *group, ctl_analysis_name_t *out)
{
  if (group->samples > 1)
    qsort (group->sample, group->samples, sizeof *group->sample, compare_samples);
  out->name = ctl_names_text (self->names, group->name);
  out->service = ctl_names_text (self->names, group->service);
  out->executions = group->executions;
  out->complete = group->complete;
  out->errors = group->errors;
  out->p50_ns = ctl_samples_percentile (group->sample, group->samples, 50);
  out->p90_ns = ctl_samples_percentile (group->sample, group->samples, 90);
  out->p99_ns = ctl_samples_percentile (group->sample, group->samples, 99);
  out->max_ns = group->max_ns;
  out->total_ns = group->total_ns;
  memcpy (out->slowest, group->slowest, WEFT_TASK_ID_SIZE);
  out->more_edges = group->more_edges;
  if (group->slows > 1)
    qsort (group->slow, group->slows, sizeof *group->slow, compare_slow);
  uint32_t slows = group->slows < CTL_WHY_SLOW_MAX ? group->slows : CTL_WHY_SLOW_MAX;
  ctl_why_orphans_t orphans = {self->orphan, self->orphans, self->time, self->times};
  int rc = ctl_rows (&group->places, group->sample, group->samples, out);
  if (rc == 0)
    rc = ctl_edges_of (self->edges, (uint32_t) (group - self->group), &out->edges, &out->edge_count);
  if (rc == 0)
    rc = ctl_why (&group->places, group->sample, group->samples, group->slow, slows, group->read, &orphans,
                  &out->why);
  return rc;
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
