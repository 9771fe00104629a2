/* SPDX-License-Identifier: Apache-2.0 */
#include "traits.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"

/* How often one execution called a place for each call of its caller. */
typedef struct {
  uint32_t place;
  double ratio;
} ratio_t;

void ctl_traits_destroy (ctl_traits_t **self_p)
{
  ctl_traits_t *self = *self_p;
  if (!self)
    return;
  for (int level = 0; level < CTL_TRAIT_LEVELS; level++)
    free (self->key_of[level]);
  free (self->usual);
  free (self->scratch);
  free (self);
  *self_p = NULL;
}

static ctl_trait_key_t key_at (const ctl_places_t *places, uint32_t index, ctl_trait_level_t level)
{
  const ctl_place_t *place = &places->place[index];
  ctl_trait_key_t key = {
      .service = place->service, .vm = place->vm, .hop = place->hop, .level = level, .edges = 1};
  key.name = level == CTL_TRAIT_SERVICE ? "" : place->name;
  key.from_service = key.from_name = "";
  if (level == CTL_TRAIT_EDGE && place->parent != CTL_NO_PLACE) {
    key.from_service = places->place[place->parent].service;
    key.from_name = places->place[place->parent].name;
  }
  return key;
}

/* A root, a proven request and one whose sender is unknown are the same callee. */
static int same_sort (ctl_hop_t a, ctl_hop_t b)
{
  int leaf_a = a == CTL_HOP_EMBED_ONLY || a == CTL_HOP_OPAQUE,
      leaf_b = b == CTL_HOP_EMBED_ONLY || b == CTL_HOP_OPAQUE;
  return leaf_a || leaf_b ? a == b : 1;
}

/* "" is one text whoever wrote it. */
static int same_text (const char *a, const char *b)
{
  return a == b || (!*a && !*b);
}

static int is_key (const ctl_trait_key_t *a, const ctl_trait_key_t *b)
{
  return a->level == b->level && same_text (a->name, b->name) && a->service == b->service && a->vm == b->vm &&
         same_text (a->from_name, b->from_name) && same_text (a->from_service, b->from_service) &&
         same_sort (a->hop, b->hop);
}

static uint32_t key_of (ctl_traits_t *self, const ctl_trait_key_t *wanted, uint32_t first)
{
  for (uint32_t i = first; i < self->keys; i++)
    if (is_key (&self->key[i], wanted))
      return i;
  if (self->keys - first == CTL_TRAIT_KEYS_MAX)
    return CTL_TRAIT_NO_KEY;
  self->key[self->keys] = *wanted;
  return self->keys++;
}

static void fill_keys (ctl_traits_t *self)
{
  const ctl_places_t *places = self->places;
  for (int level = 0; level < CTL_TRAIT_LEVELS; level++) {
    uint32_t first = self->keys;
    for (uint32_t i = 0; i < places->count; i++) {
      ctl_trait_key_t key = key_at (places, i, (ctl_trait_level_t) level);
      self->key_of[level][i] = key_of (self, &key, first);
    }
  }
  /* how many edges each comprises: those whose first place leads to it */
  for (uint32_t k = 0; k < self->keys; k++)
    self->key[k].edges = self->key[k].level == CTL_TRAIT_EDGE;
  uint8_t counted[CTL_TRAIT_KEYS_MAX] = {0};
  for (uint32_t i = 0; i < places->count; i++) {
    uint32_t edge = self->key_of[CTL_TRAIT_EDGE][i];
    if (edge == CTL_TRAIT_NO_KEY || counted[edge])
      continue;
    counted[edge] = 1;
    for (int level = CTL_TRAIT_NAME; level < CTL_TRAIT_LEVELS; level++)
      if (self->key_of[level][i] != CTL_TRAIT_NO_KEY)
        self->key[self->key_of[level][i]].edges++;
  }
}

static int compare_ratios (const void *left, const void *right)
{
  const ratio_t *a = left, *b = right;
  if (a->place != b->place)
    return a->place < b->place ? -1 : 1;
  return a->ratio < b->ratio ? -1 : a->ratio > b->ratio;
}

static double calls_of_caller (const ctl_traits_t *self, const ctl_part_t *part, const double *calls)
{
  uint32_t parent = self->places->place[part->place].parent;
  return parent == CTL_NO_PLACE ? 1 : calls[parent];
}

/* T2. Executions in which the caller was there and this place was not count as none. */
static int fill_usual (ctl_traits_t *self, const ctl_sample_t *const *usual, uint32_t usual_count)
{
  size_t all = 0, count = 0;
  for (uint32_t i = 0; i < usual_count; i++)
    all += usual[i]->parts;
  ratio_t *ratio = malloc ((all + 1) * sizeof *ratio);
  uint32_t *present = calloc (self->places->count + 1u, sizeof *present);
  double *calls = self->scratch;
  for (uint32_t i = 0; i < usual_count && ratio && present; i++)
    for (uint32_t k = 0; k < usual[i]->parts; k++) {
      const ctl_part_t *part = &usual[i]->part[k];
      double of = calls_of_caller (self, part, calls);
      calls[part->place] = part->calls;
      present[part->place]++;
      ratio[count++] = (ratio_t){part->place, of > 0 ? part->calls / of : 0};
    }
  if (ratio && present)
    qsort (ratio, count, sizeof *ratio, compare_ratios);
  for (size_t from = 0, to; ratio && present && from < count; from = to) {
    uint32_t place = ratio[from].place, parent = self->places->place[place].parent;
    for (to = from; to < count && ratio[to].place == place; to++)
      ;
    size_t whole = parent == CTL_NO_PLACE ? usual_count : present[parent], here = to - from;
    size_t absent = whole > here ? whole - here : 0, middle = (absent + here) / 2;
    self->usual[place] = middle < absent ? 0 : ratio[from + middle - absent].ratio;
  }
  int rc = ratio && present ? 0 : WEFT_E_NOMEM;
  free (ratio);
  free (present);
  return rc;
}

int ctl_traits_new (const ctl_places_t *places, const ctl_sample_t *const *usual, uint32_t usual_count,
                    ctl_traits_t **ret_self)
{
  ctl_traits_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->places = places;
  self->usual = calloc (places->count + 1u, sizeof *self->usual);
  self->scratch = calloc (3 * (places->count + 1u), sizeof *self->scratch);
  int rc = self->usual && self->scratch ? 0 : WEFT_E_NOMEM;
  for (int level = 0; level < CTL_TRAIT_LEVELS; level++) {
    self->key_of[level] = calloc (places->count + 1u, sizeof *self->key_of[level]);
    rc = self->key_of[level] ? rc : WEFT_E_NOMEM;
  }
  if (rc == 0) {
    fill_keys (self);
    rc = fill_usual (self, usual, usual_count);
  }
  if (rc)
    ctl_traits_destroy (&self);
  else
    *ret_self = self;
  return rc;
}

static void put (const ctl_traits_t *self, uint32_t place, ctl_trait_kind_t kind, double ns, float *values)
{
  for (int level = 0; level < CTL_TRAIT_LEVELS; level++)
    if (self->key_of[level][place] != CTL_TRAIT_NO_KEY)
      values[self->key_of[level][place] * CTL_TRAIT_COUNT + kind] += (float) ns;
}

/* keep: how much of what was spent at a place belongs to the usual number of calls there. From the
 * leaves up what is below each call, then from the top down who made too many (L1). */
void ctl_traits_fill (const ctl_traits_t *self, const ctl_sample_t *sample, float *values)
{
  uint32_t count = self->places->count;
  double *calls = self->scratch, *below = calls + count, *keep = below + count;
  memset (values, 0, (size_t) self->keys * CTL_TRAIT_COUNT * sizeof *values);
  for (uint32_t k = 0; k < sample->parts; k++) {
    const ctl_part_t *part = &sample->part[k];
    calls[part->place] = part->calls;
    below[part->place] = (double) (part->critical_self_ns + part->critical_network_ns);
  }
  for (uint32_t k = sample->parts; k-- > 0;) {
    const ctl_part_t *part = &sample->part[k];
    uint32_t parent = self->places->place[part->place].parent;
    if (parent != CTL_NO_PLACE)
      below[parent] += below[part->place] + (double) part->critical_gap_ns;
  }
  for (uint32_t k = 0; k < sample->parts; k++) {
    const ctl_part_t *part = &sample->part[k];
    uint32_t parent = self->places->place[part->place].parent;
    double above = parent == CTL_NO_PLACE ? 1 : keep[parent];
    double expected = self->usual[part->place] * calls_of_caller (self, part, calls);
    double extra = part->calls > expected ? 1 - expected / part->calls : 0;
    double own = above * (1 - extra);
    keep[part->place] = own;
    put (self, part->place, CTL_TRAIT_CALLS,
         above * (extra * below[part->place] + (double) part->critical_gap_ns), values);
    put (self, part->place, CTL_TRAIT_SELF, own * (double) part->critical_self_ns, values);
    put (self, part->place, CTL_TRAIT_QUEUE, own * (double) part->critical_queue_ns, values);
    put (self, part->place, CTL_TRAIT_NETWORK,
         own * (double) (part->critical_network_ns - part->critical_queue_ns), values);
    put (self, part->place, CTL_TRAIT_HELD, own * (double) (part->critical_self_ns + part->critical_queue_ns),
         values);
  }
}

static int is_key_within (const ctl_traits_t *self, uint32_t inner, uint32_t outer)
{
  if (inner == outer)
    return 1;
  for (uint32_t i = 0; i < self->places->count; i++)
    for (int level = 0; level < CTL_TRAIT_LEVELS; level++)
      if (self->key_of[level][i] == inner)
        return self->key_of[self->key[outer].level][i] == outer &&
               self->key[inner].level <= self->key[outer].level;
  return 0;
}

static int is_kind_within (uint32_t inner, uint32_t outer)
{
  return inner == outer || (outer == CTL_TRAIT_HELD && (inner == CTL_TRAIT_SELF || inner == CTL_TRAIT_QUEUE));
}

int ctl_traits_within (const ctl_traits_t *self, uint32_t inner, uint32_t outer)
{
  return is_kind_within (inner % CTL_TRAIT_COUNT, outer % CTL_TRAIT_COUNT) &&
         is_key_within (self, inner / CTL_TRAIT_COUNT, outer / CTL_TRAIT_COUNT);
}

int ctl_traits_share (const ctl_traits_t *self, uint32_t inner, uint32_t outer)
{
  return (is_kind_within (inner % CTL_TRAIT_COUNT, outer % CTL_TRAIT_COUNT) ||
          is_kind_within (outer % CTL_TRAIT_COUNT, inner % CTL_TRAIT_COUNT)) &&
         is_key_within (self, inner / CTL_TRAIT_COUNT, outer / CTL_TRAIT_COUNT);
}
