/* SPDX-License-Identifier: Apache-2.0 */
#include "hop_clock.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/limits.h"
#include "../../common/status.h"

#define PAIRS     512u
#define BUCKETS   16u
#define BUCKET_NS (4000ull * WEFT_NS_PER_MS) /* the window is a minute: longer, and a drift is none */
#define HOSTS_MAX 64u                        /* of one execution; of more it stays raw */
#define DRIFT_MAX 500e-6                     /* what a kernel slews at most */
#define NONE      INT64_MAX

/* The lowest of one direction, and when. */
typedef struct {
  int64_t ns; /* NONE: nothing yet */
  int64_t at_ns;
} low_t;

typedef struct {
  int64_t number;          /* of the bucket, by time */
  low_t bound[2], near[2]; /* UP: of the offset, DOWN: of what it is less than nothing */
} bucket_t;
enum { UP, DOWN };

/* Offsets are those of `high`'s clock against `low`'s. */
typedef struct {
  uint32_t low, high; /* host tags, 0: free */
  bucket_t bucket[BUCKETS];
} pair_t;

struct ctl_hop_clock_t {
  pair_t pair[PAIRS];
};

/* What the offset of two hosts may be, and where it is likely to be. */
typedef struct {
  double most, least, near_most, near_least;
} range_t;
#define UNBOUNDED 1e30 /* ns; sums of it still compare */
#define ANYWHERE  ((range_t){UNBOUNDED, -UNBOUNDED, UNBOUNDED, -UNBOUNDED})

typedef struct {
  double least, most;
} drift_t;

ctl_hop_clock_t *ctl_hop_clock_new (void)
{
  return calloc (1, sizeof (ctl_hop_clock_t));
}

void ctl_hop_clock_destroy (ctl_hop_clock_t **self_p)
{
  free (*self_p);
  *self_p = NULL;
}

/* ---- hops --------------------------------------------------------------------- */

typedef struct {
  uint32_t from, to;                      /* hosts */
  int64_t bound_ns[2], near_ns[2], at_ns; /* of the offset of to's clock; NONE: nothing says it */
} hop_t;

/* 1: it says something. A caller that gave up, and a callee that is still at work, say nothing of the way back. */
static int hop_of (const ctl_subtask_t *subtask, hop_t *ret_hop)
{
  if (subtask->hop != CTL_HOP_PROVEN || !subtask->sent_ns || !subtask->sender_host ||
      subtask->sender_host == subtask->host)
    return 0;
  int regular = subtask->answered && subtask->error == WEFT_ERROR_NONE;
  *ret_hop = (hop_t){.from = subtask->sender_host,
                     .to = subtask->host,
                     .bound_ns[UP] = (int64_t) (subtask->start_ns - subtask->sent_ns),
                     .bound_ns[DOWN] = regular ? (int64_t) (subtask->answered_ns - subtask->start_ns) : NONE,
                     .near_ns[UP] = NONE,
                     .near_ns[DOWN] = regular ? (int64_t) (subtask->answered_ns - subtask->end_ns) : NONE,
                     .at_ns = (int64_t) subtask->sent_ns};
  return 1;
}

/* Said of the other host's clock: what bounds the one bounds the other from the other side. */
static hop_t turned (const hop_t *hop)
{
  return (hop_t){.from = hop->to,
                 .to = hop->from,
                 .bound_ns = {hop->bound_ns[DOWN], hop->bound_ns[UP]},
                 .near_ns = {hop->near_ns[DOWN], hop->near_ns[UP]},
                 .at_ns = hop->at_ns};
}

/* ---- learning ------------------------------------------------------------------- */

static uint32_t place_of (uint32_t low, uint32_t high)
{
  uint64_t mixed = ((uint64_t) low << 32 | high) * 0x9e3779b97f4a7c15ull;
  return (uint32_t) (mixed >> 40) % PAIRS;
}

static bucket_t empty_bucket (int64_t number)
{
  const low_t none = {.ns = NONE};
  return (bucket_t){.number = number, .bound = {none, none}, .near = {none, none}};
}

/* Four places are looked at; the pair that was heard of least lately gives way. */
static pair_t *pair_for (ctl_hop_clock_t *self, const hop_t *hop)
{
  pair_t *oldest = NULL;
  int64_t oldest_number = INT64_MAX;
  for (uint32_t i = 0; i < 4; i++) {
    pair_t *pair = &self->pair[(place_of (hop->from, hop->to) + i) % PAIRS];
    if (pair->low == hop->from && pair->high == hop->to)
      return pair;
    int64_t number = INT64_MIN;
    for (uint32_t k = 0; pair->low && k < BUCKETS; k++)
      number = pair->bucket[k].number > number ? pair->bucket[k].number : number;
    if (number < oldest_number) {
      oldest_number = number;
      oldest = pair;
    }
  }
  *oldest = (pair_t){.low = hop->from, .high = hop->to};
  for (uint32_t k = 0; k < BUCKETS; k++)
    oldest->bucket[k] = empty_bucket (-1);
  return oldest;
}

static const pair_t *find_pair (const ctl_hop_clock_t *self, uint32_t low, uint32_t high)
{
  for (uint32_t i = 0; self && i < 4; i++) {
    const pair_t *pair = &self->pair[(place_of (low, high) + i) % PAIRS];
    if (pair->low == low && pair->high == high)
      return pair;
  }
  return NULL;
}

static void lower (low_t *low, int64_t ns, int64_t at_ns)
{
  if (ns < low->ns)
    *low = (low_t){ns, at_ns};
}

static void learn_hop (ctl_hop_clock_t *self, const hop_t *told)
{
  hop_t hop = told->from < told->to ? *told : turned (told);
  pair_t *pair = pair_for (self, &hop);
  int64_t number = hop.at_ns / (int64_t) BUCKET_NS;
  bucket_t *bucket = &pair->bucket[(uint64_t) number % BUCKETS];
  if (number < bucket->number)
    return; /* of a time before the window */
  if (number > bucket->number)
    *bucket = empty_bucket (number);
  for (int way = UP; way <= DOWN; way++) {
    lower (&bucket->bound[way], hop.bound_ns[way], hop.at_ns);
    lower (&bucket->near[way], hop.near_ns[way], hop.at_ns);
  }
}

void ctl_hop_clock_learn (ctl_hop_clock_t *self, const ctl_execution_t *execution)
{
  hop_t hop;
  for (uint32_t i = 0; i < execution->count; i++)
    if (hop_of (&execution->subtasks[i], &hop))
      learn_hop (self, &hop);
}

/* ---- what is known of a pair ------------------------------------------------------ */

/* The drifts that leave every bound true: of one that is later than another, the rise between them. */
static drift_t drift_of (const pair_t *pair)
{
  drift_t drift = {-DRIFT_MAX, DRIFT_MAX};
  for (uint32_t i = 0; i < BUCKETS; i++)
    for (uint32_t k = 0; k < BUCKETS; k++) {
      const low_t *up = &pair->bucket[i].bound[UP], *down = &pair->bucket[k].bound[DOWN];
      if (up->ns == NONE || down->ns == NONE || up->at_ns == down->at_ns)
        continue;
      double slope = ((double) up->ns + (double) down->ns) / (double) (up->at_ns - down->at_ns);
      if (up->at_ns > down->at_ns && slope < drift.most)
        drift.most = slope;
      if (up->at_ns < down->at_ns && slope > drift.least)
        drift.least = slope;
    }
  if (drift.least > drift.most) /* no drift explains them: a clock was set */
    drift = (drift_t){-DRIFT_MAX, DRIFT_MAX};
  return drift;
}

/* `sign` 1: an upper bound of the offset, -1: of what it is less than nothing; carried to at_ns. */
static void take_low (const low_t *low, drift_t drift, int sign, int64_t at_ns, double *most)
{
  double a = sign * drift.least * (double) (at_ns - low->at_ns);
  double b = sign * drift.most * (double) (at_ns - low->at_ns);
  double carried = (double) low->ns + (a > b ? a : b);
  if (low->ns != NONE && carried < *most)
    *most = carried;
}

/* Narrows `range`, the offset at at_ns, by the bounds of the window. */
static void narrow (const pair_t *pair, int64_t at_ns, range_t *range)
{
  drift_t drift = drift_of (pair);
  double down = -range->least, near_down = -range->near_least;
  for (uint32_t i = 0; i < BUCKETS; i++) {
    const bucket_t *bucket = &pair->bucket[i];
    take_low (&bucket->bound[UP], drift, 1, at_ns, &range->most);
    take_low (&bucket->near[UP], drift, 1, at_ns, &range->near_most);
    take_low (&bucket->bound[DOWN], drift, -1, at_ns, &down);
    take_low (&bucket->near[DOWN], drift, -1, at_ns, &near_down);
  }
  range->least = -down;
  range->near_least = -near_down;
}

/* ---- aligning --------------------------------------------------------------------- */

/* up[i][j]: the offset of host j's clock against host i's is no more; near[i][j]: likely no more. */
typedef struct {
  uint32_t tag[HOSTS_MAX];
  uint32_t count;
  double up[HOSTS_MAX][HOSTS_MAX], near[HOSTS_MAX][HOSTS_MAX];
  double most[HOSTS_MAX], least[HOSTS_MAX]; /* against the top's host, before any is chosen */
  double offset[HOSTS_MAX];
} hosts_t;

static uint32_t host_index (hosts_t *hosts, uint32_t tag)
{
  uint32_t i = 0;
  while (i < hosts->count && hosts->tag[i] != tag)
    i++;
  if (i == hosts->count && i < HOSTS_MAX)
    hosts->tag[hosts->count++] = tag;
  return i;
}

static int is_better_top (const ctl_subtask_t *a, const ctl_subtask_t *b)
{
  int rank_a = a->orphan ? 2 : a->hop == CTL_HOP_ROOT ? 0 : 1;
  int rank_b = b->orphan ? 2 : b->hop == CTL_HOP_ROOT ? 0 : 1;
  if (rank_a != rank_b)
    return rank_a < rank_b;
  return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->id < b->id;
}

/* The host of the top stands first. */
static int list_hosts (const ctl_execution_t *execution, hosts_t *hosts)
{
  const ctl_subtask_t *top = NULL;
  for (uint32_t i = 0; i < execution->count; i++) {
    const ctl_subtask_t *one = &execution->subtasks[i];
    int may = one->hop == CTL_HOP_ROOT || one->hop == CTL_HOP_CAPTURE_ONLY;
    if (may && (!top || is_better_top (one, top)))
      top = one;
  }
  host_index (hosts, top ? top->host : execution->count ? execution->subtasks[0].host : 0);
  for (uint32_t i = 0; i < execution->count; i++) {
    const ctl_subtask_t *one = &execution->subtasks[i];
    if (host_index (hosts, one->host) == HOSTS_MAX ||
        (one->sender_host && host_index (hosts, one->sender_host) == HOSTS_MAX))
      return 0;
  }
  return hosts->count > 1;
}

static double as_bound (int64_t ns)
{
  return ns == NONE ? UNBOUNDED : (double) ns;
}

static double least_of (double a, double b)
{
  return a < b ? a : b;
}

static double greatest_of (double a, double b)
{
  return a > b ? a : b;
}

/* The offset of the higher tag's clock against the lower's, by the hops of the execution itself. 0: none
 * says anything. */
static int own_range (const ctl_execution_t *execution, uint32_t low, uint32_t high, range_t *ret_range,
                      int64_t *ret_at_ns)
{
  range_t range = ANYWHERE;
  int found = 0;
  for (uint32_t i = 0; i < execution->count; i++) {
    hop_t hop;
    if (!hop_of (&execution->subtasks[i], &hop))
      continue;
    hop = hop.from < hop.to ? hop : turned (&hop);
    if (hop.from != low || hop.to != high)
      continue;
    range.most = least_of (range.most, as_bound (hop.bound_ns[UP]));
    range.near_most = least_of (range.near_most, as_bound (hop.near_ns[UP]));
    range.least = greatest_of (range.least, -as_bound (hop.bound_ns[DOWN]));
    range.near_least = greatest_of (range.near_least, -as_bound (hop.near_ns[DOWN]));
    if (!found)
      *ret_at_ns = hop.at_ns;
    found = 1;
  }
  *ret_range = range;
  return found;
}

/* What the hops of the execution, and the window, say of each two hosts that have hops between them. */
static void take_bounds (const ctl_hop_clock_t *self, const ctl_execution_t *execution, hosts_t *hosts)
{
  for (uint32_t i = 0; i < hosts->count; i++)
    for (uint32_t j = 0; j < hosts->count; j++)
      hosts->up[i][j] = hosts->near[i][j] = i == j ? 0 : UNBOUNDED;
  for (uint32_t i = 0; i < hosts->count; i++)
    for (uint32_t j = 0; j < hosts->count; j++) {
      range_t range;
      int64_t at_ns = 0;
      if (hosts->tag[i] >= hosts->tag[j] ||
          !own_range (execution, hosts->tag[i], hosts->tag[j], &range, &at_ns))
        continue;
      const pair_t *pair = find_pair (self, hosts->tag[i], hosts->tag[j]);
      if (pair)
        narrow (pair, at_ns, &range);
      hosts->up[i][j] = range.most;
      hosts->up[j][i] = -range.least;
      hosts->near[i][j] = range.near_most;
      hosts->near[j][i] = -range.near_least;
    }
}

/* Bounds add up along every way. 0: they contradict each other. */
static int close_bounds (hosts_t *hosts)
{
  for (uint32_t k = 0; k < hosts->count; k++)
    for (uint32_t i = 0; i < hosts->count; i++)
      for (uint32_t j = 0; j < hosts->count; j++)
        hosts->up[i][j] = least_of (hosts->up[i][j], hosts->up[i][k] + hosts->up[k][j]);
  for (uint32_t i = 0; i < hosts->count; i++)
    if (hosts->up[i][i] < 0)
      return 0;
  return 1;
}

/* The bounds of all others follow from an offset that is chosen: none of them can be broken then. */
static void choose (hosts_t *hosts, uint32_t host, double offset)
{
  hosts->offset[host] = offset;
  for (uint32_t i = 0; i < hosts->count; i++)
    for (uint32_t j = 0; j < hosts->count; j++) {
      double there = hosts->up[i][0] + offset + hosts->up[host][j];
      double back = hosts->up[i][host] - offset + hosts->up[0][j];
      hosts->up[i][j] = least_of (hosts->up[i][j], least_of (there, back));
    }
}

/* H3: within the bounds, near where hosts that have been chosen put it. */
static double likely (const hosts_t *hosts, uint32_t host)
{
  double most = hosts->up[0][host], least = -hosts->up[host][0], up = most, down = least;
  for (uint32_t i = 0; i < host; i++) {
    up = least_of (up, hosts->offset[i] + hosts->near[i][host]);
    down = greatest_of (down, hosts->offset[i] - hosts->near[host][i]);
  }
  return (greatest_of (least, up) + least_of (most, down)) / 2;
}

/* 1: every host's offset against the top's is known. */
static int place_all (const ctl_hop_clock_t *self, const ctl_execution_t *execution, hosts_t *hosts)
{
  take_bounds (self, execution, hosts);
  if (!close_bounds (hosts)) { /* a clock was set within the window */
    take_bounds (NULL, execution, hosts);
    if (!close_bounds (hosts))
      return 0;
  }
  for (uint32_t i = 0; i < hosts->count; i++) {
    hosts->most[i] = hosts->up[0][i];
    hosts->least[i] = -hosts->up[i][0];
    if (hosts->most[i] >= UNBOUNDED / 2 || hosts->least[i] <= -UNBOUNDED / 2)
      return 0; /* one direction alone bounds nothing */
  }
  hosts->offset[0] = 0;
  for (uint32_t i = 1; i < hosts->count; i++)
    choose (hosts, i, likely (hosts, i));
  return 1;
}

static uint64_t moved (uint64_t ns, int64_t by_ns)
{
  return by_ns < 0 && ns < (uint64_t) -by_ns ? 0 : ns + (uint64_t) by_ns;
}

/* H1, H2. */
static void shift (ctl_subtask_t *subtask, int64_t own_ns, int64_t sender_ns)
{
  subtask->start_ns = moved (subtask->start_ns, own_ns);
  subtask->end_ns = moved (subtask->end_ns, own_ns);
  if (!subtask->sent_ns)
    return;
  subtask->sent_ns = moved (subtask->sent_ns, sender_ns);
  subtask->answered_ns = moved (subtask->answered_ns, sender_ns);
}

int ctl_hop_clock_align (const ctl_hop_clock_t *self, ctl_execution_t *execution)
{
  hosts_t *hosts = malloc (sizeof *hosts); /* of few hosts, little of it is touched */
  if (!hosts)
    return WEFT_E_NOMEM;
  hosts->count = 0;
  execution->aligned = 0;
  execution->clock_uncertainty_ns = 0;
  if (list_hosts (execution, hosts) && place_all (self, execution, hosts)) {
    double most = 0;
    for (uint32_t i = 0; i < execution->count; i++) {
      ctl_subtask_t *one = &execution->subtasks[i];
      one->shift_ns = -(int64_t) hosts->offset[host_index (hosts, one->host)];
      one->sender_shift_ns =
          one->sender_host ? -(int64_t) hosts->offset[host_index (hosts, one->sender_host)] : 0;
      shift (one, one->shift_ns, one->sender_shift_ns);
    }
    for (uint32_t i = 0; i < hosts->count; i++)
      most = greatest_of (
          most, greatest_of (hosts->most[i] - hosts->offset[i], hosts->offset[i] - hosts->least[i]));
    execution->aligned = 1;
    execution->clock_uncertainty_ns = (uint64_t) most + 1; /* rounded up */
  }
  free (hosts);
  return 0;
}

void ctl_hop_clock_restore (ctl_execution_t *execution)
{
  for (uint32_t i = 0; i < execution->count && execution->aligned; i++) {
    ctl_subtask_t *one = &execution->subtasks[i];
    shift (one, -one->shift_ns, -one->sender_shift_ns);
    one->shift_ns = one->sender_shift_ns = 0;
  }
  execution->aligned = 0;
  execution->clock_uncertainty_ns = 0;
}
