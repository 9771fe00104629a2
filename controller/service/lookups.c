/* SPDX-License-Identifier: Apache-2.0 */
#include "lookups.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/pattern.h"
#include "../../common/status.h"
#include "../task/analyse.h"
#include "../task/mix.h"
#include "../task/pack.h"
#include "questions.h"

/* Which executions a request means: without instructions all that began in the window; with
 * them, the tasks that they started, whenever, and the orphans of the window. */
typedef struct {
  uint32_t instructions[WEFT_INSTRUCTIONS_MAX];
  uint32_t instruction_count;
  uint64_t from_ns, to_ns;
  const char *name;    /* exactly; NULL: any */
  const char *match;   /* a pattern of names, or one of them word for word; NULL: any */
  const char *service; /* of the top; NULL: any */
  uint64_t slower_ns;  /* only what took longer */
  int errors;          /* only what went wrong somewhere */
} scope_t;

typedef struct {
  const scope_t *scope;
  const ctl_house_t *house;
  int others; /* not what these instructions started */
  ctl_execution_fn *fn;
  void *arg;
} filter_t;

static int read_scope (const json_t *request, scope_t *ret_scope, ctl_reply_t *reply)
{
  scope_t scope = {.to_ns = UINT64_MAX,
                   .name = json_string_value (json_object_get (request, "name")),
                   .match = json_string_value (json_object_get (request, "match")),
                   .service = json_string_value (json_object_get (request, "service")),
                   .errors = json_is_true (json_object_get (request, "errors"))};
  char why[160] = "";
  if (scope.match && weft_pattern_check (scope.match, why, sizeof why) < 0)
    return ctl_reply_refuse (reply, WEFT_E_MALFORMED, "bad pattern of names: %s", why);
  const json_t *numbers = json_object_get (request, "instructions");
  if (json_array_size (numbers) > WEFT_INSTRUCTIONS_MAX)
    return ctl_reply_refuse (reply, WEFT_E_RANGE, "at most %d instructions at once", WEFT_INSTRUCTIONS_MAX);
  for (size_t n = 0; n < json_array_size (numbers); n++) {
    json_int_t number = json_integer_value (json_array_get (numbers, n));
    if (number <= 0 || number > UINT32_MAX)
      return ctl_reply_refuse (reply, WEFT_E_RANGE, "an instruction's number is a positive integer");
    scope.instructions[scope.instruction_count++] = (uint32_t) number;
  }
  const json_t *from = json_object_get (request, "from_ns"), *to = json_object_get (request, "to_ns"),
               *slower = json_object_get (request, "slower_ns");
  if (json_is_integer (slower) && json_integer_value (slower) >= 0)
    scope.slower_ns = (uint64_t) json_integer_value (slower);
  if (json_is_integer (from) && json_integer_value (from) >= 0)
    scope.from_ns = (uint64_t) json_integer_value (from);
  if (json_is_integer (to) && json_integer_value (to) >= 0)
    scope.to_ns = (uint64_t) json_integer_value (to);
  *ret_scope = scope;
  return 0;
}

/* One root carries the number of one instruction, though another one may have asked for the same. What it
 * would have started counts for both; not what it might have, had it drawn or counted otherwise. */
static int would_start (const filter_t *self, const ctl_execution_t *execution)
{
  const ctl_instance_t *instance = NULL;
  if (execution->count)
    instance = ctl_instances_find (self->house->instances, execution->subtasks[0].instance);
  for (uint32_t n = 0; instance && n < self->scope->instruction_count; n++) {
    int live = 0;
    const weft_instruction_t *one =
        ctl_instructions_find (self->house->instructions, self->scope->instructions[n], &live);
    if (one && one->sample_num == one->sample_den && !one->max_roots && (one->actions & WEFT_ACTION_ROOT) &&
        ctl_instruction_selects (one, instance) &&
        ctl_instruction_matches (one, execution->name, strlen (execution->name)))
      return 1;
  }
  return 0;
}

static int is_other (const filter_t *self, const ctl_execution_t *execution)
{
  if (execution->kind == CTL_KIND_ORPHAN)
    return 1;
  for (uint32_t n = 0; n < self->scope->instruction_count; n++)
    if (self->scope->instructions[n] == execution->instruction)
      return 0;
  return execution->instruction && self->scope->from_ns && self->scope->to_ns != UINT64_MAX &&
         would_start (self, execution);
}

/* As they stand in a summary, too. */
static int is_meant (const scope_t *scope, const char *name, const char *service, uint64_t duration_ns,
                     int failed)
{
  if (scope->name && strcmp (scope->name, name) != 0)
    return 0;
  if (scope->match && strcmp (scope->match, name) != 0 &&
      !weft_pattern_holds (scope->match, name, strlen (name)))
    return 0;
  if (scope->service && strcmp (scope->service, service) != 0)
    return 0;
  return duration_ns >= scope->slower_ns && (!scope->errors || failed);
}

static int is_meant_whole (const scope_t *scope, const ctl_execution_t *execution)
{
  return is_meant (scope, execution->name, execution->count ? execution->subtasks[0].service : "",
                   execution->duration_ns, scope->errors && ctl_execution_failed (execution));
}

static int filter (ctl_execution_t **execution_p, void *arg)
{
  const filter_t *self = arg;
  const ctl_execution_t *execution = *execution_p;
  if (self->others && !is_other (self, execution))
    return 0;
  if (!self->others && self->scope->instruction_count && execution->kind == CTL_KIND_ORPHAN)
    return 0;
  if (!is_meant_whole (self->scope, execution))
    return 0;
  return self->fn (execution_p, self->arg);
}

/* What ends the walk through one place without being an error. */
#define ENOUGH 1

/* `in_store` as in ctl_places_t. */
static int each_of (ctl_house_t *house, const scope_t *scope, int *in_store, ctl_execution_fn *fn, void *arg)
{
  const ctl_places_t places = {house->correlate, house->store, in_store};
  filter_t f = {.scope = scope, .house = house, .fn = fn, .arg = arg};
  if (scope->instruction_count == 0)
    return ctl_questions_each (&places, 0, scope->from_ns, scope->to_ns, filter, &f);
  int rc = 0;
  for (uint32_t n = 0; rc >= 0 && n < scope->instruction_count; n++)
    rc = ctl_questions_each (&places, scope->instructions[n], 0, UINT64_MAX, filter, &f);
  f.others = 1;
  if (rc >= 0)
    rc = ctl_questions_each (&places, 0, scope->from_ns, scope->to_ns, filter, &f);
  return rc;
}

int ctl_lookup_waiting (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  json_int_t number = json_integer_value (json_object_get (request, "number"));
  uint64_t waiting = ctl_correlate_waiting (house->correlate, (uint32_t) number);
  return json_object_set_new (reply->body, "waiting", json_integer ((json_int_t) waiting)) < 0 ? WEFT_E_NOMEM
                                                                                               : 0;
}

static int analyse_one (ctl_execution_t **execution_p, void *arg)
{
  return ctl_analyse_add (arg, *execution_p);
}

/* Of a store of many tasks an even part is read, the same for the same tasks; the others are counted. */
typedef struct {
  ctl_analyse_t *analyse;
  const scope_t *scope;
  uint64_t keep; /* of the hash of the id, inclusive */
} skim_t;

static int analyse_summary (const ctl_summary_t *summary, void *arg)
{
  static const ctl_seed_t fixed = {0xd1b54a32d192ed03ull, 0x9e3779b97f4a7c15ull};
  const skim_t *self = arg;
  if (!is_meant (self->scope, summary->name, summary->service, summary->duration_ns, summary->error))
    return 0;
  return ctl_mix_16 (&fixed, summary->task) <= self->keep ? 1 : ctl_analyse_count (self->analyse, summary);
}

static int analyse_whole (ctl_execution_t **execution_p, void *arg)
{
  const skim_t *self = arg;
  if (!is_meant_whole (self->scope, *execution_p))
    return 0;
  return ctl_analyse_add (self->analyse, *execution_p);
}

static int analyse_scope (ctl_house_t *house, const scope_t *scope, ctl_analyse_t *analyse)
{
  uint64_t stored = 0;
  if (house->store)
    stored = ctl_store_count (house->store, scope->from_ns, scope->to_ns);
  if (scope->instruction_count || stored <= WEFT_ANALYSE_TREES_READ)
    return each_of (house, scope, NULL, analyse_one, analyse);
  const ctl_places_t places = {house->correlate, house->store, NULL};
  skim_t skim = {analyse, scope, UINT64_MAX / stored * WEFT_ANALYSE_TREES_READ};
  return ctl_questions_skim (&places, scope->from_ns, scope->to_ns, analyse_summary, analyse_whole, &skim);
}

int ctl_lookup_tasks (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  scope_t scope = {0};
  int rc = read_scope (request, &scope, reply);
  if (rc < 0)
    return rc;
  ctl_analysis_t *analysis = NULL;
  ctl_analyse_t *analyse = ctl_analyse_new ();
  rc = analyse ? analyse_scope (house, &scope, analyse) : WEFT_E_NOMEM;
  if (rc == 0)
    rc = ctl_analyse_finish (analyse, &analysis);
  ctl_analyse_destroy (&analyse);
  if (!analysis)
    return ctl_reply_refuse (reply, rc, "the executions could not be read: %s",
                             house->store ? ctl_store_why (house->store) : weft_status_text (rc));
  ctl_instances_losses_in (house->instances, scope.from_ns, scope.to_ns, analysis->losses);
  analysis->tails = ctl_instances_tails_in (house->instances, scope.from_ns, scope.to_ns);
  rc = json_object_set_new (reply->body, "analysis", ctl_analysis_json (analysis)) < 0 ? WEFT_E_NOMEM : 0;
  ctl_analysis_destroy (&analysis);
  return rc;
}

/* ---- each ----------------------------------------------------------------- */

/* One execution on its way into the answer. */
typedef struct {
  uint64_t key; /* the larger, the more wanted: start or duration */
  uint8_t task[WEFT_TASK_ID_SIZE];
  ctl_frame_t frame;
} picked_t;

/* The `limit` executions that are newest, or slowest, whatever order they come in: up to twice as many are
 * kept, then the lesser half is dropped. */
typedef struct {
  picked_t *picked;
  uint32_t count, limit;
  int more;     /* some were dropped */
  int slowest;  /* by duration, not by start */
  int is_full;  /* picked[limit - 1] is the least that can still be wanted */
  int in_store; /* newest first: what follows is not wanted either */
} collect_t;

/* Newest or slowest first, of equal ones by id: a total order, the same for the same tasks. */
static int compare_picked (const void *left, const void *right)
{
  const picked_t *a = left, *b = right;
  if (a->key != b->key)
    return a->key > b->key ? -1 : 1;
  return memcmp (a->task, b->task, sizeof a->task);
}

static void sort_and_cut (collect_t *self)
{
  if (self->count)
    qsort (self->picked, self->count, sizeof *self->picked, compare_picked);
  self->more |= self->count > self->limit;
  while (self->count > self->limit)
    free (self->picked[--self->count].frame.data);
  self->is_full = self->count == self->limit;
}

static int make_room (collect_t *self)
{
  if (self->count == 2 * self->limit) {
    sort_and_cut (self);
    return 0;
  }
  if (self->count & (self->count - 1)) /* grows at powers of two */
    return 0;
  picked_t *grown = realloc (self->picked, (self->count ? self->count * 2u : 1u) * sizeof *grown);
  if (!grown)
    return WEFT_E_NOMEM;
  self->picked = grown;
  return 0;
}

static int collect_one (ctl_execution_t **execution_p, void *arg)
{
  collect_t *self = arg;
  const ctl_execution_t *execution = *execution_p;
  picked_t one = {.key = self->slowest ? execution->duration_ns : execution->start_ns};
  memcpy (one.task, execution->task, sizeof one.task);
  if (self->in_store && self->count >= self->limit && !self->is_full)
    sort_and_cut (self);
  if (self->in_store && self->is_full && compare_picked (&one, &self->picked[self->limit - 1]) > 0) {
    self->more = 1;
    return self->slowest ? 0 : ENOUGH;
  }
  int rc = make_room (self);
  if (rc == 0)
    rc = ctl_execution_pack (execution, &one.frame.data, &one.frame.size);
  if (rc == 0)
    self->picked[self->count++] = one;
  return rc;
}

/* Hands the frames over to the reply; frees what is not wanted. */
static int answer_picked (collect_t *self, int rc, ctl_reply_t *reply)
{
  sort_and_cut (self);
  for (uint32_t n = 0; n < self->count; n++) {
    if (rc >= 0)
      rc = ctl_reply_frame (reply, self->picked[n].frame.data, self->picked[n].frame.size);
    else
      free (self->picked[n].frame.data);
  }
  free (self->picked);
  return rc < 0 ? rc : 0;
}

int ctl_lookup_each (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  scope_t scope = {0};
  int rc = read_scope (request, &scope, reply);
  if (rc < 0)
    return rc;
  json_int_t limit = json_integer_value (json_object_get (request, "limit"));
  const char *order = json_string_value (json_object_get (request, "order"));
  collect_t collect = {.slowest = order && strcmp (order, "slowest") == 0,
                       .limit = limit > 0 && limit < WEFT_EACH_MAX ? (uint32_t) limit : WEFT_EACH_MAX};
  rc = each_of (house, &scope, &collect.in_store, collect_one, &collect);
  rc = answer_picked (&collect, rc, reply);
  if (rc < 0)
    return ctl_reply_refuse (reply, rc, "the executions could not be read: %s",
                             house->store ? ctl_store_why (house->store) : weft_status_text (rc));
  if (json_object_set_new (reply->body, "count", json_integer (reply->frame_count)) < 0 ||
      json_object_set_new (reply->body, "more", json_boolean (collect.more)) < 0)
    return WEFT_E_NOMEM;
  return 0;
}

int ctl_lookup_show (ctl_house_t *house, const json_t *request, ctl_reply_t *reply)
{
  const char *prefix = json_string_value (json_object_get (request, "task"));
  ctl_places_t places = {house->correlate, house->store, NULL};
  ctl_execution_t *execution = NULL;
  uint32_t count = 0;
  int rc = ctl_questions_find (&places, prefix ? prefix : "", &execution, &count);
  if (rc == WEFT_E_MALFORMED)
    return ctl_reply_refuse (
        reply, rc,
        "bad task '%.40s': 4 to 32 lower-case hexadecimal digits are meant; `weft tasks --each` lists them",
        prefix ? prefix : "");
  if (rc == WEFT_E_NOT_FOUND)
    return ctl_reply_refuse (reply, rc, "no task begins with %s; `weft tasks --each` lists them", prefix);
  if (rc == WEFT_E_BUSY)
    return ctl_reply_refuse (reply, rc, "%u tasks begin with %s; give more digits", count, prefix);
  if (rc < 0)
    return ctl_reply_refuse (reply, rc, "the store could not be read: %s",
                             house->store ? ctl_store_why (house->store) : weft_status_text (rc));
  void *data = NULL;
  size_t size = 0;
  rc = ctl_execution_pack (execution, &data, &size);
  if (rc == 0)
    rc = ctl_reply_frame (reply, data, size);
  ctl_execution_destroy (&execution);
  return rc;
}
