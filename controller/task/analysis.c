/* SPDX-License-Identifier: Apache-2.0 */
/* analysis: the result of analyse.h as JSON and back. */
#include <stdlib.h>
#include <string.h>

#include "../../common/ids.h"
#include "../../common/status.h"
#include "analyse.h"
#include "utf8.h"

#define ROWS_MOST 65536u

void ctl_analysis_destroy (ctl_analysis_t **self_p)
{
  ctl_analysis_t *self = *self_p;
  if (!self)
    return;
  for (uint32_t i = 0; i < self->name_count; i++) {
    free (self->names[i].rows);
    free (self->names[i].edges);
  }
  free (self->names);
  free (self->orphans);
  json_decref (self->text);
  free (self);
  *self_p = NULL;
}

/* ---- out ------------------------------------------------------------------------- */

static json_t *number (uint64_t value)
{
  return json_integer (value > INT64_MAX ? INT64_MAX : (json_int_t) value);
}

static json_t *done (json_t *json, int rc)
{
  if (rc == 0)
    return json;
  json_decref (json);
  return NULL;
}

const char *ctl_why_kind_text (ctl_why_kind_t kind)
{
  static const char *const texts[] = {
#define XX(name, text) text,
    CTL_WHY_KIND_MAP (XX)
#undef XX
  };
  return (unsigned) kind < CTL_WHY_KIND_COUNT ? texts[kind] : "";
}

const char *ctl_why_verdict_text (ctl_why_verdict_t verdict)
{
  static const char *const texts[] = {
#define XX(name, text) text,
    CTL_WHY_VERDICT_MAP (XX)
#undef XX
  };
  return (unsigned) verdict < CTL_WHY_VERDICT_COUNT ? texts[verdict] : "";
}

/* The numbers of a row, an edge, a cause and a verdict, in their order. */
#define ROW_NUMBER_MAP(XX)                                                                                   \
  XX (children_ns)                                                                                           \
  XX (network_ns)                                                                                            \
  XX (queue_ns)                                                                                              \
  XX (critical_ns)                                                                                           \
  XX (parallel)
#define EDGE_NUMBER_MAP(XX)                                                                                  \
  XX (calls)                                                                                                 \
  XX (errors)                                                                                                \
  XX (p50_ns)                                                                                                \
  XX (p90_ns)                                                                                                \
  XX (p99_ns)                                                                                                \
  XX (max_ns)
#define CAUSE_NUMBER_MAP(XX)                                                                                 \
  XX (more_ns)                                                                                               \
  XX (before_ns)                                                                                             \
  XX (behind_ns)                                                                                             \
  XX (each_ns)                                                                                               \
  XX (usual_ns)
#define CAUSE_REAL_MAP(XX)                                                                                   \
  XX (calls)                                                                                                 \
  XX (usual_calls)                                                                                           \
  XX (failed)                                                                                                \
  XX (apart)
#define WHY_NUMBER_MAP(XX)                                                                                   \
  XX (slow)                                                                                                  \
  XX (of)                                                                                                    \
  XX (slow_ns)                                                                                               \
  XX (mean_ns)                                                                                               \
  XX (other_ns)                                                                                              \
  XX (unknown)
/* What an edge and a cause are called. */
#define PLACE_TEXT_MAP(XX)                                                                                   \
  XX (from_service)                                                                                          \
  XX (from_name)                                                                                             \
  XX (service)                                                                                               \
  XX (vm)                                                                                                    \
  XX (name)

static json_t *row_json (const ctl_analysis_row_t *row)
{
  json_t *json = json_object ();
  int rc = json_object_set_new (json, "service", ctl_utf8_json (row->service));
  rc |= json_object_set_new (json, "vm", ctl_utf8_json (row->vm));
  rc |= json_object_set_new (json, "name", ctl_utf8_json (row->name));
  rc |= json_object_set_new (json, "depth", number (row->depth));
  rc |= json_object_set_new (json, "hop", json_string (ctl_hop_text (row->hop)));
  rc |= json_object_set_new (json, "calls", json_real (row->calls));
  rc |= json_object_set_new (json, "self_ns", number (row->self_ns));
  rc |= json_object_set_new (json, "share", json_real (row->share));
#define XX(field) rc |= json_object_set_new (json, #field, number (row->field));
  ROW_NUMBER_MAP (XX)
#undef XX
  return done (json, rc);
}

static json_t *edge_json (const ctl_analysis_edge_t *edge)
{
  json_t *json = json_object ();
  int rc = 0;
#define XX(field) rc |= json_object_set_new (json, #field, ctl_utf8_json (edge->field));
  PLACE_TEXT_MAP (XX)
#undef XX
  rc |= json_object_set_new (json, "hop", json_string (ctl_hop_text (edge->hop)));
#define XX(field) rc |= json_object_set_new (json, #field, number (edge->field));
  EDGE_NUMBER_MAP (XX)
#undef XX
  return done (json, rc);
}

static json_t *cause_json (const ctl_why_cause_t *cause)
{
  json_t *json = json_object ();
  int rc = json_object_set_new (json, "kind", json_string (ctl_why_kind_text (cause->kind)));
  rc |= json_object_set_new (json, "own", json_string (ctl_why_kind_text (cause->own)));
  rc |= json_object_set_new (json, "behind", ctl_utf8_json (cause->behind));
#define XX(field) rc |= json_object_set_new (json, #field, ctl_utf8_json (cause->field));
  PLACE_TEXT_MAP (XX)
#undef XX
  rc |= json_object_set_new (json, "hop", json_string (ctl_hop_text (cause->hop)));
#define XX(field) rc |= json_object_set_new (json, #field, number (cause->field));
  CAUSE_NUMBER_MAP (XX)
#undef XX
#define XX(field) rc |= json_object_set_new (json, #field, json_real (cause->field));
  CAUSE_REAL_MAP (XX)
#undef XX
  return done (json, rc);
}

static json_t *why_json (const ctl_why_t *why)
{
  json_t *json = json_object (), *causes = json_array ();
  int rc = json_object_set_new (json, "verdict", json_string (ctl_why_verdict_text (why->verdict)));
  for (uint32_t i = 0; i < why->cause_count; i++)
    rc |= json_array_append_new (causes, cause_json (&why->causes[i]));
#define XX(field) rc |= json_object_set_new (json, #field, number (why->field));
  WHY_NUMBER_MAP (XX)
#undef XX
  rc |= json_object_set_new (json, "causes", causes);
  return done (json, rc);
}

/* The numbers of a name, in their order. */
#define NAME_NUMBER_MAP(XX)                                                                                  \
  XX (executions)                                                                                            \
  XX (complete)                                                                                              \
  XX (errors)                                                                                                \
  XX (p50_ns)                                                                                                \
  XX (p90_ns)                                                                                                \
  XX (p99_ns)                                                                                                \
  XX (max_ns)                                                                                                \
  XX (total_ns)                                                                                              \
  XX (mean_ns)                                                                                               \
  XX (network_ns)                                                                                            \
  XX (sample)                                                                                                \
  XX (more_edges)

static json_t *name_json (const ctl_analysis_name_t *name)
{
  char slowest[2 * WEFT_TASK_ID_SIZE];
  json_t *json = json_object (), *rows = json_array (), *edges = json_array ();
  int rc = 0;
  weft_hex_put (slowest, name->slowest, WEFT_TASK_ID_SIZE);
  for (uint32_t i = 0; i < name->row_count; i++)
    rc |= json_array_append_new (rows, row_json (&name->rows[i]));
  rc |= json_object_set_new (json, "name", ctl_utf8_json (name->name));
  rc |= json_object_set_new (json, "service", ctl_utf8_json (name->service));
#define XX(field) rc |= json_object_set_new (json, #field, number (name->field));
  NAME_NUMBER_MAP (XX)
#undef XX
  rc |= json_object_set_new (json, "slowest", json_stringn (slowest, sizeof slowest));
  rc |= json_object_set_new (json, "rows", rows);
  for (uint32_t i = 0; i < name->edge_count; i++)
    rc |= json_array_append_new (edges, edge_json (&name->edges[i]));
  rc |= json_object_set_new (json, "edges", edges);
  rc |= json_object_set_new (json, "why", why_json (&name->why));
  return done (json, rc);
}

static json_t *orphan_json (const ctl_analysis_orphan_t *orphan)
{
  json_t *json = json_object ();
  int rc = json_object_set_new (json, "service", ctl_utf8_json (orphan->service));
  rc |= json_object_set_new (json, "reason", number (orphan->reason));
  rc |= json_object_set_new (json, "text", json_string (ctl_reason_text (orphan->reason)));
  rc |= json_object_set_new (json, "count", number (orphan->count));
  return done (json, rc);
}

json_t *ctl_analysis_json (const ctl_analysis_t *self)
{
  json_t *json = json_object (), *names = json_array (), *orphans = json_array ();
  json_t *hops = json_object (), *losses = json_object ();
  int rc = 0;
  for (uint32_t i = 0; i < self->name_count; i++)
    rc |= json_array_append_new (names, name_json (&self->names[i]));
  for (uint32_t i = 0; i < self->orphan_count; i++)
    rc |= json_array_append_new (orphans, orphan_json (&self->orphans[i]));
  for (int i = 0; i < CTL_HOP_COUNT; i++)
    rc |= json_object_set_new (hops, ctl_hop_text ((ctl_hop_t) i), number (self->hops[i]));
  for (int i = 0; i < WEFT_LOSS_COUNT; i++)
    rc |= json_object_set_new (losses, ctl_loss_text (i), number (self->losses[i]));
  rc |= json_object_set_new (json, "executions", number (self->executions));
  rc |= json_object_set_new (json, "complete", number (self->complete));
  rc |= json_object_set_new (json, "orphan_trees", number (self->orphan_trees));
  rc |= json_object_set_new (json, "more_names", number (self->more_names));
  rc |= json_object_set_new (json, "truncated", number (self->truncated));
  rc |= json_object_set_new (json, "tails_unknown", number (self->tails));
  rc |= json_object_set_new (json, "names", names);
  rc |= json_object_set_new (json, "orphans", orphans);
  rc |= json_object_set_new (json, "hops", hops);
  rc |= json_object_set_new (json, "losses", losses);
  return done (json, rc);
}

/* ---- in -------------------------------------------------------------------------- */

/* The first field that is wrong is remembered; what is read after it counts for nothing. */
static uint64_t number_at (const json_t *json, const char *key, uint64_t most, int *rc)
{
  const json_t *value = json_object_get (json, key);
  if (!json_is_integer (value) || json_integer_value (value) < 0 ||
      (uint64_t) json_integer_value (value) > most) {
    *rc = WEFT_E_MALFORMED;
    return 0;
  }
  return (uint64_t) json_integer_value (value);
}

static double real_at (const json_t *json, const char *key, int *rc)
{
  const json_t *value = json_object_get (json, key);
  if (!json_is_number (value) || json_number_value (value) < 0)
    *rc = WEFT_E_MALFORMED;
  return json_number_value (value);
}

/* Borrowed from `json`, whose copy the analysis keeps. */
static const char *text_at (const json_t *json, const char *key, int *rc)
{
  const char *text = json_string_value (json_object_get (json, key));
  if (!text)
    *rc = WEFT_E_MALFORMED;
  return text ? text : "";
}

static void *array_at (const json_t *json, const char *key, uint32_t most, size_t size,
                       const json_t **ret_array, int *rc)
{
  *ret_array = json_object_get (json, key);
  size_t count = json_array_size (*ret_array);
  if (!json_is_array (*ret_array) || count > most) {
    *rc = WEFT_E_MALFORMED;
    *ret_array = NULL;
    return NULL;
  }
  void *items = calloc (count + 1, size);
  if (!items) {
    *rc = WEFT_E_NOMEM;
    *ret_array = NULL;
  }
  return items;
}

static ctl_hop_t hop_at (const json_t *json, int *rc)
{
  const char *text = text_at (json, "hop", rc);
  for (int i = 0; i < CTL_HOP_COUNT; i++)
    if (strcmp (text, ctl_hop_text ((ctl_hop_t) i)) == 0)
      return (ctl_hop_t) i;
  *rc = WEFT_E_MALFORMED;
  return CTL_HOP_ROOT;
}

static void edge_from (const json_t *json, ctl_analysis_edge_t *edge, int *rc)
{
#define XX(field) edge->field = text_at (json, #field, rc);
  PLACE_TEXT_MAP (XX)
#undef XX
  edge->hop = hop_at (json, rc);
#define XX(field) edge->field = number_at (json, #field, INT64_MAX, rc);
  EDGE_NUMBER_MAP (XX)
#undef XX
}

/* Which of `count` texts stands under `key`. */
static int one_of (const json_t *json, const char *key, const char *(*text_of) (int), int count, int *rc)
{
  const char *text = text_at (json, key, rc);
  for (int i = 0; i < count; i++)
    if (strcmp (text, text_of (i)) == 0)
      return i;
  *rc = WEFT_E_MALFORMED;
  return 0;
}

static const char *kind_text (int kind)
{
  return ctl_why_kind_text ((ctl_why_kind_t) kind);
}

static const char *verdict_text (int verdict)
{
  return ctl_why_verdict_text ((ctl_why_verdict_t) verdict);
}

static void cause_from (const json_t *json, ctl_why_cause_t *cause, int *rc)
{
  cause->kind = (ctl_why_kind_t) one_of (json, "kind", kind_text, CTL_WHY_KIND_COUNT, rc);
  cause->own = (ctl_why_kind_t) one_of (json, "own", kind_text, CTL_WHY_KIND_COUNT, rc);
  cause->behind = text_at (json, "behind", rc);
#define XX(field) cause->field = text_at (json, #field, rc);
  PLACE_TEXT_MAP (XX)
#undef XX
  cause->hop = hop_at (json, rc);
#define XX(field) cause->field = number_at (json, #field, INT64_MAX, rc);
  CAUSE_NUMBER_MAP (XX)
#undef XX
#define XX(field) cause->field = real_at (json, #field, rc);
  CAUSE_REAL_MAP (XX)
#undef XX
}

static void why_from (const json_t *json, ctl_why_t *why, int *rc)
{
  const json_t *causes = json_object_get (json, "causes");
  why->verdict = (ctl_why_verdict_t) one_of (json, "verdict", verdict_text, CTL_WHY_VERDICT_COUNT, rc);
#define XX(field)                                                                                            \
  why->field = (__typeof__ (why->field)) number_at (                                                         \
      json, #field, sizeof why->field == 4 ? UINT32_MAX : (uint64_t) INT64_MAX, rc);
  WHY_NUMBER_MAP (XX)
#undef XX
  if (!json_is_array (causes) || json_array_size (causes) > CTL_WHY_CAUSES_MAX)
    *rc = WEFT_E_MALFORMED;
  for (size_t i = 0; i < json_array_size (causes) && *rc == 0; i++)
    cause_from (json_array_get (causes, i), &why->causes[why->cause_count++], rc);
}

static void name_from (const json_t *json, ctl_analysis_name_t *name, int *rc)
{
  const json_t *rows, *edges;
  name->name = text_at (json, "name", rc);
  name->service = text_at (json, "service", rc);
#define XX(field)                                                                                            \
  name->field = (__typeof__ (name->field)) number_at (                                                       \
      json, #field, sizeof name->field == 4 ? UINT32_MAX : (uint64_t) INT64_MAX, rc);
  NAME_NUMBER_MAP (XX)
#undef XX
  const char *slowest = text_at (json, "slowest", rc);
  if (strlen (slowest) != 2 * WEFT_TASK_ID_SIZE || weft_hex_get (name->slowest, slowest, WEFT_TASK_ID_SIZE))
    *rc = WEFT_E_MALFORMED;
  name->rows = array_at (json, "rows", ROWS_MOST, sizeof *name->rows, &rows, rc);
  for (size_t i = 0; i < json_array_size (rows) && *rc == 0; i++) {
    const json_t *from = json_array_get (rows, i);
    ctl_analysis_row_t *row = &name->rows[name->row_count++];
    row->service = text_at (from, "service", rc);
    row->vm = text_at (from, "vm", rc);
    row->name = text_at (from, "name", rc);
    row->depth = (uint32_t) number_at (from, "depth", WEFT_SUBTASKS_PER_TASK_MAX, rc);
    row->hop = hop_at (from, rc);
    row->calls = real_at (from, "calls", rc);
    row->self_ns = number_at (from, "self_ns", INT64_MAX, rc);
    row->share = real_at (from, "share", rc);
#define XX(field)                                                                                            \
  row->field = (__typeof__ (row->field)) number_at (                                                         \
      from, #field, sizeof row->field == 4 ? UINT32_MAX : (uint64_t) INT64_MAX, rc);
    ROW_NUMBER_MAP (XX)
#undef XX
  }
  name->edges = array_at (json, "edges", CTL_EDGES_MAX, sizeof *name->edges, &edges, rc);
  for (size_t i = 0; i < json_array_size (edges) && *rc == 0; i++)
    edge_from (json_array_get (edges, i), &name->edges[name->edge_count++], rc);
  why_from (json_object_get (json, "why"), &name->why, rc);
}

static void fill (const json_t *json, ctl_analysis_t *self, int *rc)
{
  const json_t *names, *orphans, *hops = json_object_get (json, "hops"),
                                 *losses = json_object_get (json, "losses");
  self->executions = number_at (json, "executions", INT64_MAX, rc);
  self->complete = number_at (json, "complete", INT64_MAX, rc);
  self->orphan_trees = number_at (json, "orphan_trees", INT64_MAX, rc);
  self->more_names = number_at (json, "more_names", INT64_MAX, rc);
  self->truncated = number_at (json, "truncated", INT64_MAX, rc);
  self->tails = number_at (json, "tails_unknown", INT64_MAX, rc);
  for (int i = 0; i < CTL_HOP_COUNT; i++)
    self->hops[i] = number_at (hops, ctl_hop_text ((ctl_hop_t) i), INT64_MAX, rc);
  for (int i = 0; i < WEFT_LOSS_COUNT; i++)
    self->losses[i] = number_at (losses, ctl_loss_text (i), INT64_MAX, rc);
  self->names = array_at (json, "names", WEFT_ANALYSE_NAMES_MAX, sizeof *self->names, &names, rc);
  for (size_t i = 0; i < json_array_size (names) && *rc == 0; i++)
    name_from (json_array_get (names, i), &self->names[self->name_count++], rc);
  self->orphans = array_at (json, "orphans", WEFT_ANALYSE_ORPHANS_MAX, sizeof *self->orphans, &orphans, rc);
  for (size_t i = 0; i < json_array_size (orphans) && *rc == 0; i++) {
    const json_t *from = json_array_get (orphans, i);
    ctl_analysis_orphan_t *orphan = &self->orphans[self->orphan_count++];
    orphan->service = text_at (from, "service", rc);
    orphan->reason = (uint8_t) number_at (from, "reason", UINT8_MAX, rc);
    orphan->count = number_at (from, "count", INT64_MAX, rc);
  }
}

int ctl_analysis_from_json (const json_t *json, ctl_analysis_t **ret_analysis)
{
  ctl_analysis_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  int rc = 0;
  self->text = json_deep_copy (json);
  if (!self->text)
    rc = json ? WEFT_E_NOMEM : WEFT_E_MALFORMED;
  else
    fill (self->text, self, &rc);
  if (rc) {
    ctl_analysis_destroy (&self);
    return rc;
  }
  *ret_analysis = self;
  return 0;
}
