/* SPDX-License-Identifier: Apache-2.0 */
#include "why.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/limits.h"
#include "../../common/status.h"
#include "behind.h"
#include "causes.h"
#include "crowd.h"

#define POOL_SHARE      0.05 /* the witnesses are among these */
#define POOL_LEAST      25u
#define WITNESSES_LEAST 4u
#define WITNESSES_MOST  20u
#define HALF_AS_SLOW    0.5 /* a witness takes this much of what the slowest take longer */
#define APART           0.5 /* of what they take longer: two ends so far apart are two incidents */
#define WEIGHT          0.25
#define OUTGROWN        0.4
#define MOST_WITNESSES  0.6
#define MOST_BESIDE     0.4 /* of calls and queues: the others may have been held up beside, or behind */
#define CHANCE_LEAST    0.05
#define CHANCE_OF_CALLS 0.02
#define RARE_CALLS      0.1 /* of all executions come near so many at most */
#define CHANCE_ALL      0.01
#define SLOWER_LEAST    0.2 /* of the median: less is no slow percentile */
#define FINE_ENOUGH     0.8 /* an edge that tells so much of it is named in place of what comprises it */
#define ONE_ENOUGH      0.7 /* a kind of time that tells so much is named in place of two together */
#define PART_OF_HELD    0.2 /* of what the slowest take longer: each of two kinds of time that are one */

/* Where the slowest of all were held up by something that strikes anywhere, look further. */
static const double slow_share[] = {0.01, 0.05};

typedef struct {
  ctl_traits_t *traits;
  uint32_t width;                   /* traits */
  ctl_crowd_t all, slowest;         /* by duration: upwards, downwards */
  ctl_crowd_t usual, slow, witness; /* some of `all`, and of the slowest */
  ctl_behind_t *behind;             /* by the slowest: whose wait is told as somebody else's */
  float *column;
  double median_ns, usual_ns, excess_ns; /* of all; means: of the usual, of the slow beyond it */
  double chances;                        /* sum over all traits in which anything takes time */
  ctl_why_t *out;
} work_t;

typedef struct {
  uint32_t trait;
  double more_ns;
} find_t;

/* ---- who is compared -------------------------------------------------------------- */

static double longer_ns (const work_t *work, const ctl_sample_t *sample)
{
  return (double) sample->duration_ns - work->median_ns;
}

/* What was held up by the same thing goes on at the same time. */
static int is_same_incident (const work_t *work, const ctl_sample_t *a, const ctl_sample_t *b)
{
  double longer = longer_ns (work, a) < longer_ns (work, b) ? longer_ns (work, a) : longer_ns (work, b);
  double apart = (double) (a->start_ns + a->duration_ns) - (double) (b->start_ns + b->duration_ns);
  return fabs (apart) < APART * longer;
}

/* Y3: from the slowest on, each that ended at another time than those before. */
static void choose_witnesses (work_t *work, const ctl_sample_t *slow, uint32_t slows, uint64_t complete)
{
  uint64_t pool = (uint64_t) ((double) complete * POOL_SHARE);
  pool = pool < POOL_LEAST ? POOL_LEAST : pool;
  pool = pool > slows ? slows : pool;
  work->witness.count = 0;
  for (uint32_t i = 0; i < pool && work->witness.count < WITNESSES_MOST; i++) {
    int alone = longer_ns (work, &slow[i]) > HALF_AS_SLOW * work->excess_ns;
    for (uint32_t k = 0; k < work->witness.count && alone; k++)
      alone = !is_same_incident (work, &slow[i], work->witness.sample[k]);
    if (alone)
      work->witness.sample[work->witness.count++] = &slow[i];
  }
}

/* The complete ones with parts, and of these the middle half. */
static int choose_usual (work_t *work, const ctl_sample_t *sample, uint32_t samples)
{
  int rc = ctl_crowd_new (&work->all, samples);
  rc = rc ? rc : ctl_crowd_new (&work->usual, samples);
  if (rc)
    return rc;
  for (uint32_t i = 0; i < samples; i++)
    if (sample[i].part && sample[i].complete)
      work->all.sample[work->all.count++] = &sample[i];
  uint32_t count = work->all.count, middle = count / 2;
  for (uint32_t i = count / 4; i < count - count / 4; i++)
    work->usual.sample[work->usual.count++] = work->all.sample[i];
  work->median_ns = count ? (double) work->all.sample[middle]->duration_ns : 0;
  work->usual_ns = ctl_crowd_duration (&work->usual);
  return 0;
}

/* So many of the slowest; 0 if they are no more than before. */
static int choose_slow (work_t *work, const ctl_sample_t *slow, uint32_t slows, uint64_t complete,
                        double share)
{
  double wanted = ceil ((double) complete * share);
  wanted = wanted < CTL_WHY_SLOW_LEAST ? CTL_WHY_SLOW_LEAST : wanted;
  uint32_t count = wanted < slows ? (uint32_t) wanted : slows, before = work->slow.count;
  for (uint32_t i = 0; i < count; i++)
    work->slow.sample[i] = &slow[i];
  work->slow.count = count;
  work->excess_ns = ctl_crowd_duration (&work->slow) - work->usual_ns;
  choose_witnesses (work, slow, slows, complete);
  return count > before;
}

/* ---- the rule --------------------------------------------------------------------- */

/* The median of a trait in all executions, and how far beyond it is no chance (Y2). */
static double fence_of (work_t *work, uint32_t trait, double *ret_median_ns)
{
  return ctl_crowd_fence (&work->all, trait, work->column, ret_median_ns);
}

/* That of `tries` at least `hits` succeed. */
static double tail_of (uint32_t tries, uint32_t hits, double chance)
{
  double sum = 0, term = pow (1 - chance, tries);
  for (uint32_t n = 0; n <= tries; n++) {
    if (n >= hits)
      sum += term;
    term *= (double) (tries - n) / (n + 1) * chance / (1 - chance);
  }
  return sum;
}

/* How often chance strikes a trait: as often as it takes of the time. It holds up anybody, but makes
 * nobody call more often. */
static double chance_of (const work_t *work, uint32_t trait)
{
  double share = work->usual_ns > 0 ? work->usual.mean[trait] / work->usual_ns : 0;
  double least = trait % CTL_TRAIT_COUNT == CTL_TRAIT_CALLS ? CHANCE_OF_CALLS : CHANCE_LEAST;
  return share < least ? least : share;
}

/* The share of a crowd that is beyond this in a trait. */
static double share_beyond (const work_t *work, const ctl_crowd_t *crowd, uint32_t trait, double ns)
{
  uint32_t beyond = 0;
  for (uint32_t i = 0; i < crowd->count; i++)
    beyond += (double) crowd->value[(size_t) i * work->width + trait] > ns;
  return (double) beyond / crowd->count;
}

static float calls_in (const work_t *work, const ctl_sample_t *sample, uint32_t key)
{
  const uint32_t *key_of = work->traits->key_of[work->traits->key[key].level];
  uint64_t calls = 0;
  for (uint32_t k = 0; k < sample->parts; k++)
    if (key_of[sample->part[k].place] == key)
      calls += sample->part[k].calls;
  return (float) calls;
}

/* Whose wait before something else is told as what it waited for; of one of the slowest. */
static const ctl_behind_t *behind_of (const work_t *work, const ctl_sample_t *sample)
{
  return &work->behind[sample - work->slowest.sample[0]];
}

/* Y4: whether hardly anybody else comes near so many calls: what some make and others do not, or two of
 * them instead of one, is how they are. */
static int are_rare (work_t *work, uint32_t key, const ctl_sample_t *const *hit, uint32_t hits)
{
  uint32_t count = work->all.count, near = 0;
  float calls[WITNESSES_MOST];
  uint32_t own = 0; /* who only waits for others' calls makes none */
  for (uint32_t i = 0; i < hits; i++)
    if (behind_of (work, hit[i])->ns <= 0)
      calls[own++] = calls_in (work, hit[i], key);
  for (uint32_t i = 0; i < count; i++)
    work->column[i] = calls_in (work, work->all.sample[i], key);
  ctl_crowd_sort (work->column, count);
  ctl_crowd_sort (calls, own);
  float halfway = (work->column[count / 2] + (own ? calls[own / 2] : 0)) / 2;
  while (near < count && work->column[count - 1 - near] >= halfway)
    near++;
  return near <= RARE_CALLS * count;
}

static int is_held (uint32_t trait)
{
  return trait % CTL_TRAIT_COUNT == CTL_TRAIT_HELD;
}

/* Y2: the witnesses that count for it. */
static uint32_t hits_of (work_t *work, uint32_t trait, const ctl_sample_t *hit[WITNESSES_MOST])
{
  double median_ns, fence_ns = fence_of (work, trait, &median_ns), chance = chance_of (work, trait);
  double least = chance + OUTGROWN * (1 - chance);
  uint32_t hits = 0;
  for (uint32_t i = 0; i < work->witness.count; i++) {
    double more_ns = (double) work->witness.value[(size_t) i * work->width + trait] - median_ns;
    if (more_ns > fence_ns && more_ns > least * longer_ns (work, work->witness.sample[i]))
      hit[hits++] = work->witness.sample[i];
  }
  return hits;
}

/* How often it counts by chance: as chance strikes it, or as it is beyond that in the usual ones. */
static double hit_chance_of (work_t *work, uint32_t trait)
{
  double median_ns, fence_ns = fence_of (work, trait, &median_ns), chance = chance_of (work, trait);
  double often = share_beyond (work, &work->usual, trait, median_ns + fence_ns);
  return chance < often ? often : chance;
}

/* Y3. */
static int is_no_chance (work_t *work, uint32_t trait, uint32_t hits)
{
  double chance = hit_chance_of (work, trait), mine = CHANCE_ALL * chance_of (work, trait) / work->chances;
  return chance < 1 && hits >= WITNESSES_LEAST && tail_of (work->witness.count, hits, chance) <= mine;
}

/* Y5: so many in the queue, and so many of the others held. */
static int is_no_chance_together (work_t *work, uint32_t held)
{
  const ctl_sample_t *hit[WITNESSES_MOST], *before[WITNESSES_MOST];
  uint32_t queue = held - CTL_TRAIT_HELD + CTL_TRAIT_QUEUE, queued = hits_of (work, queue, before),
           others = 0;
  double queue_chance = hit_chance_of (work, queue), chance = hit_chance_of (work, held);
  double mine = CHANCE_ALL * chance_of (work, queue) / work->chances;
  uint32_t hits = hits_of (work, held, hit);
  for (uint32_t i = 0; i < hits; i++) {
    int is_queued = 0;
    for (uint32_t k = 0; k < queued && !is_queued; k++)
      is_queued = before[k] == hit[i];
    others += !is_queued;
  }
  return chance < 1 && queue_chance < 1 && queued && hits >= WITNESSES_LEAST &&
         tail_of (work->witness.count, queued, queue_chance) *
                 tail_of (work->witness.count - queued, others, chance) <=
             mine;
}

static int is_named (work_t *work, uint32_t trait)
{
  int is_calls = trait % CTL_TRAIT_COUNT == CTL_TRAIT_CALLS;
  int is_time = !is_calls && trait % CTL_TRAIT_COUNT != CTL_TRAIT_QUEUE && !is_held (trait);
  double most = is_time ? MOST_WITNESSES : MOST_BESIDE;
  const ctl_sample_t *hit[WITNESSES_MOST];
  uint32_t hits = hits_of (work, trait, hit);
  if (hits < most * work->witness.count)
    return 0;
  if (is_calls && hits && !are_rare (work, trait / CTL_TRAIT_COUNT, hit, hits))
    return 0;
  return is_no_chance (work, trait, hits) || (is_held (trait) && is_no_chance_together (work, trait));
}

/* Edges before what comprises them, and one kind of time before two together; then the larger difference
 * first. */
static int compare_finds (const void *left, const void *right, void *arg)
{
  const find_t *a = left, *b = right;
  const ctl_traits_t *traits = arg;
  ctl_trait_level_t one = traits->key[a->trait / CTL_TRAIT_COUNT].level,
                    other = traits->key[b->trait / CTL_TRAIT_COUNT].level;
  if (one != other)
    return one < other ? -1 : 1;
  if (is_held (a->trait) != is_held (b->trait))
    return is_held (a->trait) ? 1 : -1;
  if (a->more_ns != b->more_ns)
    return a->more_ns > b->more_ns ? -1 : 1;
  return a->trait < b->trait ? -1 : a->trait > b->trait;
}

static int compare_more (const void *left, const void *right)
{
  const find_t *a = left, *b = right;
  if (a->more_ns != b->more_ns)
    return a->more_ns > b->more_ns ? -1 : 1;
  return a->trait < b->trait ? -1 : a->trait > b->trait;
}

/* What the chosen ones have told already of this one; all, if one has told some of it and more. Of two
 * kinds of time together, the one that tells more. */
static double told_of (const work_t *work, const find_t *chosen, uint32_t count, uint32_t trait)
{
  double told_ns[CTL_TRAIT_COUNT] = {0}, most_ns = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t kind = chosen[i].trait % CTL_TRAIT_COUNT;
    if (ctl_traits_within (work->traits, chosen[i].trait, trait))
      told_ns[kind] += chosen[i].more_ns;
    else if (ctl_traits_share (work->traits, chosen[i].trait, trait))
      return INFINITY;
    most_ns = told_ns[kind] > most_ns ? told_ns[kind] : most_ns;
  }
  return most_ns;
}

/* What `find` comprises is told by it. */
static uint32_t leave_out (const work_t *work, find_t *chosen, uint32_t count, const find_t *find)
{
  uint32_t left = 0;
  for (uint32_t i = 0; i < count; i++)
    if (!ctl_traits_within (work->traits, chosen[i].trait, find->trait))
      chosen[left++] = chosen[i];
  return left;
}

static double more_of (const work_t *work, uint32_t trait)
{
  return work->slow.mean[trait] - work->usual.mean[trait];
}

/* One that comprises a single edge is that edge; calls to several names are no number; two kinds of time are
 * looked at together where both are longer. */
static int is_tried (const work_t *work, uint32_t trait)
{
  const ctl_trait_key_t *key = &work->traits->key[trait / CTL_TRAIT_COUNT];
  if (key->level == CTL_TRAIT_SERVICE && trait % CTL_TRAIT_COUNT == CTL_TRAIT_CALLS)
    return 0;
  uint32_t self = trait - trait % CTL_TRAIT_COUNT + CTL_TRAIT_SELF,
           queue = self - CTL_TRAIT_SELF + CTL_TRAIT_QUEUE;
  double least_ns = PART_OF_HELD * work->excess_ns;
  if (is_held (trait) && (more_of (work, self) < least_ns || more_of (work, queue) < least_ns))
    return 0;
  return (key->level == CTL_TRAIT_EDGE || key->edges > 1) &&
         (work->slow.mean[trait] > 0 || work->usual.mean[trait] > 0);
}

static uint32_t search (work_t *work, find_t *finds)
{
  uint32_t found = 0, chosen = 0;
  for (uint32_t t = 0; t < work->width; t++) {
    double more_ns = more_of (work, t);
    if (!is_tried (work, t) || more_ns < WEIGHT * work->excess_ns || !is_named (work, t))
      continue;
    finds[found++] = (find_t){t, more_ns};
  }
  qsort_r (finds, found, sizeof *finds, compare_finds, work->traits);
  for (uint32_t i = 0; i < found; i++) {
    find_t find = finds[i];
    double enough = is_held (find.trait) ? ONE_ENOUGH : FINE_ENOUGH;
    if (told_of (work, finds, chosen, find.trait) >= enough * find.more_ns)
      continue;
    chosen = leave_out (work, finds, chosen, &find);
    finds[chosen++] = find;
  }
  qsort (finds, chosen, sizeof *finds, compare_more);
  return chosen;
}

/* ---- what is said ----------------------------------------------------------------- */

/* The largest difference, either way, of an edge that none of the causes is about. */
static double other_of (const work_t *work, const find_t *finds, uint32_t count)
{
  double most_ns = 0;
  for (uint32_t t = 0; t < work->width; t++) {
    if (work->traits->key[t / CTL_TRAIT_COUNT].level != CTL_TRAIT_EDGE || is_held (t))
      continue;
    int told = 0;
    for (uint32_t i = 0; i < count && !told; i++)
      told = ctl_traits_within (work->traits, t, finds[i].trait);
    double other_ns = fabs (more_of (work, t));
    most_ns = !told && other_ns > most_ns ? other_ns : most_ns;
  }
  return most_ns;
}

/* Y6: how many left that service without a known caller. */
static uint64_t unknown_in (const ctl_why_cause_t *cause, const ctl_why_orphans_t *orphans)
{
  uint64_t sum = 0;
  if (cause->kind != CTL_WHY_SELF && cause->kind != CTL_WHY_CPU && cause->kind != CTL_WHY_WAIT &&
      cause->kind != CTL_WHY_HELD)
    return 0;
  for (uint32_t i = 0; i < orphans->count; i++)
    if (strcmp (orphans->orphan[i].service, cause->service) == 0)
      sum += orphans->orphan[i].count;
  return sum;
}

/* Whether one of them may have left meanwhile. */
static int is_beside (const ctl_sample_t *sample, const char *service, const ctl_why_orphans_t *orphans)
{
  for (uint32_t i = 0; i < orphans->times; i++) {
    const ctl_why_orphan_t *one = &orphans->time[i];
    int comparable = sample->host && sample->host == one->host;
    if (strcmp (one->service, service) == 0 &&
        (!comparable ||
         (one->start_ns <= sample->start_ns + sample->duration_ns && sample->start_ns <= one->end_ns)))
      return 1;
  }
  return 0;
}

static int is_hidden (work_t *work, const find_t *find, const ctl_why_cause_t *cause,
                      const ctl_why_orphans_t *orphans, uint64_t unknown)
{
  const ctl_sample_t *hit[WITNESSES_MOST];
  uint64_t all = 0;
  uint32_t hits = hits_of (work, find->trait, hit), alone = 0;
  if (unknown < hits)
    return 0;
  for (uint32_t i = 0; i < orphans->count; i++)
    all += orphans->orphan[i].count;
  for (uint32_t i = 0; i < hits && all == orphans->times; i++)
    alone += !is_beside (hit[i], cause->service, orphans);
  return alone < WITNESSES_LEAST || 2 * alone < hits;
}

/* Y7: what of it the slowest spend before others. */
static void tell_behind (const work_t *work, uint32_t trait, ctl_why_cause_t *cause)
{
  double sum_ns = 0, most_ns = 0;
  cause->behind = "";
  for (uint32_t i = 0; i < work->slow.count; i++) {
    const ctl_behind_t *behind = &work->behind[i];
    if (behind->ns <= 0 || !ctl_traits_within (work->traits, behind->reason, trait))
      continue;
    sum_ns += behind->ns;
    if (behind->ns > most_ns) {
      most_ns = behind->ns;
      cause->behind = work->traits->key[behind->waits / CTL_TRAIT_COUNT].service;
    }
  }
  double behind_ns = sum_ns / work->slow.count, more_ns = (double) cause->more_ns;
  behind_ns = behind_ns < more_ns ? behind_ns : more_ns;
  cause->behind_ns = (uint64_t) behind_ns;
  cause->before_ns = (uint64_t) ((double) cause->before_ns * (1 - behind_ns / more_ns));
}

static void conclude (work_t *work, const find_t *finds, uint32_t found, const ctl_why_orphans_t *orphans)
{
  ctl_why_t *out = work->out;
  ctl_causes_t of = {work->traits, work->slow.sample, work->slow.count, work->usual.sample,
                     work->usual.count};
  uint32_t told = found > CTL_WHY_CAUSES_MAX ? CTL_WHY_CAUSES_MAX : found;
  for (uint32_t i = 0; i < told; i++) {
    ctl_why_cause_t cause;
    ctl_causes_tell (&of, finds[i].trait, finds[i].more_ns, &cause);
    tell_behind (work, finds[i].trait, &cause);
    uint64_t unknown = unknown_in (&cause, orphans);
    int hidden = unknown && is_hidden (work, &finds[i], &cause, orphans, unknown);
    if (hidden && i > 0)
      continue;
    out->causes[out->cause_count++] = cause;
    if (hidden) {
      out->verdict = CTL_WHY_UNKNOWN;
      out->unknown = unknown;
      break;
    }
    out->verdict = CTL_WHY_NAMED;
  }
  out->other_ns = (uint64_t) other_of (work, finds, told);
}

/* *ret_found: 0 where nothing is to be named. */
static int judge (work_t *work, find_t *finds, uint32_t *ret_found)
{
  ctl_crowd_view (&work->slow, &work->slowest, 0);
  int rc = ctl_crowd_average (&work->slow);
  rc = rc ? rc : ctl_crowd_pick (&work->witness, &work->slowest);
  if (rc)
    return rc;
  work->chances = 0;
  for (uint32_t t = 0; t < work->width; t++)
    if (is_tried (work, t))
      work->chances += chance_of (work, t);
  *ret_found = work->excess_ns > SLOWER_LEAST * work->median_ns ? search (work, finds) : 0;
  return 0;
}

static void tell_slow (work_t *work)
{
  work->out->verdict = CTL_WHY_NOTHING;
  work->out->slow = work->slow.count;
  work->out->slow_ns = (uint64_t) ctl_crowd_duration (&work->slow);
  work->out->mean_ns = (uint64_t) work->usual_ns;
}

/* Y7: what is told as somebody else's is told so before anything is compared. */
static int fill (work_t *work, const ctl_sample_t *slow, uint32_t slows, uint64_t complete)
{
  for (work->slowest.count = 0; work->slowest.count < slows; work->slowest.count++)
    work->slowest.sample[work->slowest.count] = &slow[work->slowest.count];
  int rc = ctl_crowd_fill (&work->all, work->traits);
  rc = rc ? rc : ctl_crowd_fill (&work->slowest, work->traits);
  ctl_crowd_view (&work->usual, &work->all, work->all.count / 4);
  rc = rc ? rc : ctl_crowd_average (&work->usual);
  rc = rc ? rc
          : ctl_behind (work->traits, &work->all, &work->slowest, work->usual.mean, complete, work->behind);
  return rc ? rc : ctl_crowd_average (&work->usual);
}

/* The smallest share of the slowest in which something is to be named; else the first. */
static int compare (work_t *work, const ctl_sample_t *slow, uint32_t slows, uint64_t complete,
                    const ctl_why_orphans_t *orphans)
{
  uint32_t found = 0;
  work->width = work->traits->keys * CTL_TRAIT_COUNT;
  work->column = calloc (work->all.count + 1u, sizeof *work->column);
  find_t *finds = calloc (work->width + 1u, sizeof *finds);
  int rc = work->column && finds ? fill (work, slow, slows, complete) : WEFT_E_NOMEM;
  for (size_t i = 0; i < sizeof slow_share / sizeof *slow_share && rc == 0 && !found; i++) {
    int more = choose_slow (work, slow, slows, complete, slow_share[i]);
    if (more)
      rc = judge (work, finds, &found);
    if (rc == 0 && more && (found || i == 0)) {
      tell_slow (work);
      conclude (work, finds, found, orphans);
    }
  }
  free (finds);
  return rc;
}

int ctl_why (const ctl_places_t *places, const ctl_sample_t *sample, uint32_t samples,
             const ctl_sample_t *slow, uint32_t slows, uint64_t complete, const ctl_why_orphans_t *orphans,
             ctl_why_t *ret_why)
{
  *ret_why =
      (ctl_why_t){.verdict = CTL_WHY_FEW, .of = complete > UINT32_MAX ? UINT32_MAX : (uint32_t) complete};
  if (complete < CTL_WHY_LEAST)
    return 0;
  work_t work = {.out = ret_why};
  int rc = choose_usual (&work, sample, samples);
  rc = rc ? rc : ctl_crowd_new (&work.slowest, slows);
  rc = rc ? rc : ctl_crowd_new (&work.slow, slows);
  rc = rc ? rc : ctl_crowd_new (&work.witness, slows);
  work.behind = calloc (slows + 1u, sizeof *work.behind);
  rc = rc || work.behind ? rc : WEFT_E_NOMEM;
  if (rc == 0 && work.usual.count && slows) {
    rc = ctl_traits_new (places, work.usual.sample, work.usual.count, &work.traits);
    rc = rc ? rc : compare (&work, slow, slows, complete, orphans);
  }
  ctl_crowd_clear (&work.usual);
  ctl_crowd_clear (&work.slow);
  ctl_crowd_clear (&work.witness);
  ctl_crowd_clear (&work.all);
  ctl_crowd_clear (&work.slowest);
  free (work.behind);
  free (work.column);
  ctl_traits_destroy (&work.traits);
  return rc;
}
