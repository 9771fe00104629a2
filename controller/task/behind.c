/* SPDX-License-Identifier: Apache-2.0 */
#include "behind.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"

#define HALF     0.5
#define OUTGROWN 0.4 /* of what an execution takes longer: a shorter wait is not why it is slow */
#define SLOWER   0.2 /* of the median: who takes less longer is not slow */

/* What one execution does at the callee in hand, and the largest of what it takes longer below. */
typedef struct {
  uint64_t from_ns, to_ns; /* it has a thread there; to_ns 0: it was not there */
  double more_ns;
  uint32_t reason;
} stay_t;

typedef struct {
  const ctl_traits_t *traits;
  ctl_crowd_t *crowd[2]; /* all, the slowest */
  const double *usual;
  float *column;
  double *fence_ns;  /* by trait, beyond `usual`; below 0: not looked at yet */
  uint32_t *place;   /* by key: its first one */
  uint8_t *is_below; /* by key: below the callee in hand */
  stay_t *stay[2];
  double weight;       /* one of `all` stands for so many; one of the slowest for itself */
  uint8_t *is_slow;    /* by execution of `all`: it is among the slowest */
  double *waited_ns;   /* by key: before it, by all together; 0: of no weight */
  uint32_t *before[2]; /* by execution: the key before which it waits, CTL_TRAIT_NO_KEY: none */
  ctl_behind_t *behind;
} work_t;

static uint32_t queue_of (uint32_t key)
{
  return key * CTL_TRAIT_COUNT + CTL_TRAIT_QUEUE;
}

static double more_of (const work_t *work, const float *row, uint32_t trait)
{
  return (double) row[trait] - work->usual[trait];
}

static double fence_of (work_t *work, uint32_t trait)
{
  double median_ns;
  if (work->fence_ns[trait] < 0)
    work->fence_ns[trait] = ctl_crowd_fence (work->crowd[0], trait, work->column, &median_ns);
  return work->fence_ns[trait];
}

static int is_edge (const work_t *work, uint32_t key)
{
  return work->traits->key[key].level == CTL_TRAIT_EDGE;
}

/* Before which callee each one waits for most of what it takes longer. */
static void find_waiting (work_t *work, int which)
{
  const ctl_crowd_t *crowd = work->crowd[which];
  double median_ns = ctl_crowd_median (work->crowd[0]);
  for (uint32_t i = 0; i < crowd->count; i++) {
    const float *row = ctl_crowd_row (crowd, i);
    double longer_ns = (double) crowd->sample[i]->duration_ns - median_ns, most_ns = OUTGROWN * longer_ns;
    int is_slow = longer_ns > SLOWER * median_ns && crowd->sample[i]->host;
    uint32_t before = CTL_TRAIT_NO_KEY;
    for (uint32_t k = 0; k < work->traits->keys && is_slow; k++) {
      double more_ns = is_edge (work, k) ? more_of (work, row, queue_of (k)) : 0;
      if (more_ns > most_ns && more_ns > fence_of (work, queue_of (k))) {
        most_ns = more_ns;
        before = k;
      }
    }
    work->before[which][i] = before;
    if (before != CTL_TRAIT_NO_KEY)
      work->waited_ns[before] += most_ns;
  }
}

/* All edges to other services that are below one of that key somewhere. */
static void find_below (work_t *work, uint32_t key)
{
  const ctl_traits_t *traits = work->traits;
  const uint32_t *key_of = traits->key_of[CTL_TRAIT_EDGE];
  memset (work->is_below, 0, traits->keys);
  for (uint32_t i = 0; i < traits->places->count; i++) {
    uint32_t at = traits->places->place[i].parent;
    while (at != CTL_NO_PLACE && key_of[at] != key)
      at = traits->places->place[at].parent;
    if (at != CTL_NO_PLACE && key_of[i] != CTL_TRAIT_NO_KEY)
      work->is_below[key_of[i]] = traits->key[key_of[i]].service != traits->key[key].service;
  }
}

/* The largest difference yet, in what that key comprises. */
static void find_reason (work_t *work, const float *row, uint32_t key, stay_t *stay)
{
  for (uint32_t t = key * CTL_TRAIT_COUNT; t < (key + 1) * CTL_TRAIT_COUNT; t++) {
    double more_ns = t % CTL_TRAIT_COUNT == CTL_TRAIT_HELD ? 0 : more_of (work, row, t);
    if (more_ns > stay->more_ns && more_ns > fence_of (work, t)) {
      stay->more_ns = more_ns;
      stay->reason = t;
    }
  }
}

static void find_stays (work_t *work, uint32_t key, int which)
{
  const ctl_crowd_t *crowd = work->crowd[which];
  const uint32_t *key_of = work->traits->key_of[CTL_TRAIT_EDGE];
  for (uint32_t i = 0; i < crowd->count; i++) {
    const ctl_sample_t *sample = crowd->sample[i];
    stay_t *stay = &work->stay[which][i];
    *stay = (stay_t){.from_ns = UINT64_MAX};
    for (uint32_t p = 0; p < sample->parts; p++) {
      const ctl_part_t *part = &sample->part[p];
      if (key_of[part->place] != key)
        continue;
      stay->from_ns = part->from_ns < stay->from_ns ? part->from_ns : stay->from_ns;
      stay->to_ns = part->to_ns > stay->to_ns ? part->to_ns : stay->to_ns;
    }
    for (uint32_t k = 0; k < work->traits->keys && stay->to_ns; k++)
      if (work->is_below[k])
        find_reason (work, ctl_crowd_row (crowd, i), k, stay);
  }
}

/* For how long one had a thread there while another waited until `until_ns` for one. */
static double overlap_of (const stay_t *stay, double until_ns, double waits_ns)
{
  double from_ns = (double) stay->from_ns, to_ns = (double) stay->to_ns, since_ns = until_ns - waits_ns;
  from_ns = from_ns > since_ns ? from_ns : since_ns;
  to_ns = to_ns < until_ns ? to_ns : until_ns;
  return stay->to_ns && to_ns > from_ns ? to_ns - from_ns : 0;
}

/* B1. NULL: nobody who explains it was there. */
static const stay_t *find_keeper (const work_t *work, const ctl_sample_t *waiting, const stay_t *own,
                                  double waits_ns)
{
  const stay_t *found = NULL;
  double kept_ns = 0, all_ns = 0;
  for (int which = 0; which < 2; which++)
    for (uint32_t i = 0; i < work->crowd[which]->count; i++) {
      const ctl_sample_t *other = work->crowd[which]->sample[i];
      const stay_t *stay = &work->stay[which][i];
      if (other->host != waiting->host || other->hash == waiting->hash || (which == 0 && work->is_slow[i]))
        continue;
      double overlap_ns = overlap_of (stay, (double) own->from_ns, waits_ns);
      double weight = which == 0 ? work->weight : 1;
      all_ns += weight * overlap_ns;
      if (stay->more_ns < HALF * waits_ns)
        continue;
      kept_ns += weight * overlap_ns;
      if (overlap_ns >= HALF * waits_ns && (!found || stay->more_ns > found->more_ns))
        found = stay;
    }
  return kept_ns >= HALF * all_ns ? found : NULL;
}

static void add (const work_t *work, float *row, uint32_t trait, double ns)
{
  const ctl_traits_t *traits = work->traits;
  uint32_t kind = trait % CTL_TRAIT_COUNT, place = work->place[trait / CTL_TRAIT_COUNT];
  for (int level = 0; level < CTL_TRAIT_LEVELS; level++) {
    uint32_t key = traits->key_of[level][place];
    if (key == CTL_TRAIT_NO_KEY)
      continue;
    row[key * CTL_TRAIT_COUNT + kind] += (float) ns;
    if (kind == CTL_TRAIT_QUEUE || kind == CTL_TRAIT_SELF)
      row[key * CTL_TRAIT_COUNT + CTL_TRAIT_HELD] += (float) ns;
  }
}

/* Who waits before that callee. */
static void move (work_t *work, uint32_t key, int which)
{
  ctl_crowd_t *crowd = work->crowd[which];
  for (uint32_t i = 0; i < crowd->count; i++) {
    if (work->before[which][i] != key)
      continue;
    float *row = ctl_crowd_row (crowd, i);
    double waits_ns = more_of (work, row, queue_of (key));
    const stay_t *keeper = find_keeper (work, crowd->sample[i], &work->stay[which][i], waits_ns);
    if (!keeper)
      continue;
    add (work, row, queue_of (key), -waits_ns);
    add (work, row, keeper->reason, waits_ns);
    if (which == 1)
      work->behind[i] = (ctl_behind_t){waits_ns, queue_of (key), keeper->reason};
  }
}

/* Only those before which most time was waited keep theirs. */
static void choose_callees (work_t *work)
{
  double chosen_ns[CTL_BEHIND_CALLEES];
  uint32_t keys = work->traits->keys, chosen[CTL_BEHIND_CALLEES], count = 0;
  for (; count < CTL_BEHIND_CALLEES; count++) {
    uint32_t most = 0;
    for (uint32_t k = 1; k < keys; k++)
      most = work->waited_ns[k] > work->waited_ns[most] ? k : most;
    if (keys == 0 || work->waited_ns[most] <= 0)
      break;
    chosen[count] = most;
    chosen_ns[count] = work->waited_ns[most];
    work->waited_ns[most] = 0;
  }
  memset (work->waited_ns, 0, keys * sizeof *work->waited_ns);
  while (count--)
    work->waited_ns[chosen[count]] = chosen_ns[count];
}

static uint32_t depth_of (const work_t *work, uint32_t key)
{
  return work->traits->places->place[work->place[key]].depth;
}

/* B2: from the deepest on. */
static void move_all (work_t *work)
{
  uint32_t keys = work->traits->keys, deepest = 0;
  for (uint32_t k = 0; k < keys; k++)
    deepest = is_edge (work, k) && depth_of (work, k) > deepest ? depth_of (work, k) : deepest;
  for (uint32_t depth = deepest + 1; depth-- > 0;)
    for (uint32_t k = 0; k < keys; k++) {
      if (!is_edge (work, k) || depth_of (work, k) != depth || work->waited_ns[k] <= 0)
        continue;
      find_below (work, k);
      for (int which = 0; which < 2; which++)
        find_stays (work, k, which);
      for (int which = 0; which < 2; which++)
        move (work, k, which);
    }
}

static void find_slow (work_t *work)
{
  const ctl_crowd_t *all = work->crowd[0], *slowest = work->crowd[1];
  for (uint32_t i = 0; i < all->count; i++)
    for (uint32_t k = 0; k < slowest->count && !work->is_slow[i]; k++)
      work->is_slow[i] = all->sample[i]->hash == slowest->sample[k]->hash;
}

static int make_room (work_t *work)
{
  const ctl_traits_t *traits = work->traits;
  work->column = calloc (work->crowd[0]->count + 1u, sizeof *work->column);
  work->fence_ns = calloc (work->crowd[0]->width + 1u, sizeof *work->fence_ns);
  work->place = calloc (traits->keys + 1u, sizeof *work->place);
  work->is_below = calloc (traits->keys + 1u, sizeof *work->is_below);
  work->is_slow = calloc (work->crowd[0]->count + 1u, sizeof *work->is_slow);
  work->waited_ns = calloc (traits->keys + 1u, sizeof *work->waited_ns);
  int enough =
      work->waited_ns && work->column && work->fence_ns && work->place && work->is_below && work->is_slow;
  for (int which = 0; which < 2; which++) {
    work->stay[which] = calloc (work->crowd[which]->count + 1u, sizeof (stay_t));
    work->before[which] = calloc (work->crowd[which]->count + 1u, sizeof (uint32_t));
    enough = enough && work->stay[which] && work->before[which];
  }
  if (!enough)
    return WEFT_E_NOMEM;
  for (uint32_t t = 0; t < work->crowd[0]->width; t++)
    work->fence_ns[t] = -1;
  for (uint32_t i = traits->places->count; i-- > 0;)
    for (int level = 0; level < CTL_TRAIT_LEVELS; level++)
      if (traits->key_of[level][i] != CTL_TRAIT_NO_KEY)
        work->place[traits->key_of[level][i]] = i;
  return 0;
}

int ctl_behind (const ctl_traits_t *traits, ctl_crowd_t *all, ctl_crowd_t *slowest, const double *usual,
                uint64_t complete, ctl_behind_t *ret_behind)
{
  work_t work = {.traits = traits, .crowd = {all, slowest}, .usual = usual, .behind = ret_behind};
  work.weight = (double) complete / (all->count ? all->count : 1);
  int rc = make_room (&work);
  if (rc == 0) {
    find_slow (&work);
    find_waiting (&work, 0);
    find_waiting (&work, 1);
    choose_callees (&work);
    move_all (&work);
  }
  free (work.column);
  free (work.fence_ns);
  free (work.place);
  free (work.is_below);
  free (work.is_slow);
  free (work.waited_ns);
  for (int which = 0; which < 2; which++) {
    free (work.stay[which]);
    free (work.before[which]);
  }
  return rc;
}
