/* SPDX-License-Identifier: Apache-2.0 */
#include "causes.h"

#define MOSTLY 0.7

/* Sums of one group at the places of one key. */
typedef struct {
  double calls, failed, apart, self_ns, cpu_ns, queue_ns, network_ns, whole_ns;
  int cpu_known;
} sums_t;

/* Time of a place with all that is below it, on the critical path. */
static void fill_whole (const ctl_places_t *places, const ctl_sample_t *sample, double *whole)
{
  for (uint32_t k = 0; k < sample->parts; k++)
    whole[sample->part[k].place] =
        (double) (sample->part[k].critical_self_ns + sample->part[k].critical_network_ns);
  for (uint32_t k = sample->parts; k-- > 0;) {
    uint32_t parent = places->place[sample->part[k].place].parent;
    if (parent != CTL_NO_PLACE)
      whole[parent] += whole[sample->part[k].place];
  }
}

static sums_t sums_of (const ctl_traits_t *traits, const ctl_sample_t *const *sample, uint32_t count,
                       uint32_t key)
{
  const uint32_t *key_of = traits->key_of[traits->key[key].level];
  sums_t sums = {.cpu_known = 1};
  double *whole = traits->scratch;
  for (uint32_t i = 0; i < count; i++) {
    fill_whole (traits->places, sample[i], whole);
    for (uint32_t k = 0; k < sample[i]->parts; k++) {
      const ctl_part_t *part = &sample[i]->part[k];
      if (key_of[part->place] != key)
        continue;
      sums.calls += part->calls;
      sums.failed += part->failed;
      sums.apart += part->apart;
      sums.self_ns += (double) part->critical_self_ns;
      sums.cpu_ns += (double) (part->cpu_ns < part->self_ns ? part->cpu_ns : part->self_ns);
      sums.queue_ns += (double) part->critical_queue_ns;
      sums.network_ns += (double) (part->critical_network_ns - part->critical_queue_ns);
      sums.whole_ns += whole[part->place];
      sums.cpu_known &= part->no_cpu == 0;
    }
  }
  return sums;
}

static double each (double sum, double calls)
{
  return calls > 0 ? sum / calls : 0;
}

/* What it takes longer in itself. */
static ctl_why_kind_t own_kind_of (const sums_t *slow, const sums_t *usual)
{
  double longer_ns = each (slow->self_ns, slow->calls) - each (usual->self_ns, usual->calls);
  double cpu_ns = each (slow->cpu_ns, slow->calls) - each (usual->cpu_ns, usual->calls);
  if (!slow->cpu_known || !usual->cpu_known || longer_ns <= 0)
    return CTL_WHY_SELF;
  return cpu_ns >= MOSTLY * longer_ns         ? CTL_WHY_CPU
         : cpu_ns <= (1 - MOSTLY) * longer_ns ? CTL_WHY_WAIT
                                              : CTL_WHY_SELF;
}

/* Of two groups, means in one execution. */
static ctl_why_kind_t kind_of (const ctl_trait_key_t *key, uint32_t kind, const sums_t *slow,
                               const sums_t *usual, double extra_calls, double failed)
{
  switch (kind) {
  case CTL_TRAIT_CALLS:
    return failed >= extra_calls / 2 ? CTL_WHY_RETRY : CTL_WHY_CALLS;
  case CTL_TRAIT_QUEUE:
    return CTL_WHY_QUEUE;
  case CTL_TRAIT_NETWORK:
    return CTL_WHY_NETWORK;
  case CTL_TRAIT_HELD:
    return CTL_WHY_HELD;
  default:
    return key->hop == CTL_HOP_OPAQUE || key->hop == CTL_HOP_EMBED_ONLY ? CTL_WHY_OPAQUE
                                                                        : own_kind_of (slow, usual);
  }
}

static double time_of (const sums_t *sums, uint32_t kind)
{
  const double time_ns[CTL_TRAIT_COUNT] = {[CTL_TRAIT_CALLS] = sums->whole_ns,
                                           [CTL_TRAIT_SELF] = sums->self_ns,
                                           [CTL_TRAIT_QUEUE] = sums->queue_ns,
                                           [CTL_TRAIT_NETWORK] = sums->network_ns,
                                           [CTL_TRAIT_HELD] = sums->self_ns + sums->queue_ns};
  return time_ns[kind];
}

/* Of what is longer, what lies before it is taken up. */
static double before_of (uint32_t kind, double more_ns, const sums_t *slow, const sums_t *usual)
{
  double queue_ns = each (slow->queue_ns, slow->calls) - each (usual->queue_ns, usual->calls);
  double both_ns = each (time_of (slow, kind), slow->calls) - each (time_of (usual, kind), usual->calls);
  double share = both_ns > 0 ? queue_ns / both_ns : 0;
  share = share < 0 ? 0 : share > 1 ? 1 : share;
  return kind == CTL_TRAIT_HELD || kind == CTL_TRAIT_QUEUE ? share * more_ns : 0;
}

void ctl_causes_tell (const ctl_causes_t *self, uint32_t trait, double more_ns, ctl_why_cause_t *ret_cause)
{
  const ctl_trait_key_t *key = &self->traits->key[trait / CTL_TRAIT_COUNT];
  uint32_t kind = trait % CTL_TRAIT_COUNT;
  sums_t slow = sums_of (self->traits, self->slow, self->slow_count, trait / CTL_TRAIT_COUNT);
  sums_t usual = sums_of (self->traits, self->usual, self->usual_count, trait / CTL_TRAIT_COUNT);
  double calls = each (slow.calls, self->slow_count), usual_calls = each (usual.calls, self->usual_count);
  double failed = each (slow.failed, self->slow_count);
  *ret_cause = (ctl_why_cause_t){.kind = kind_of (key, kind, &slow, &usual, calls - usual_calls, failed),
                                 .own = own_kind_of (&slow, &usual),
                                 .from_service = key->from_service,
                                 .from_name = key->from_name,
                                 .service = key->service,
                                 .vm = key->vm,
                                 .name = key->name,
                                 .hop = key->hop,
                                 .more_ns = (uint64_t) more_ns,
                                 .before_ns = (uint64_t) before_of (kind, more_ns, &slow, &usual),
                                 .each_ns = (uint64_t) each (time_of (&slow, kind), slow.calls),
                                 .usual_ns = (uint64_t) each (time_of (&usual, kind), usual.calls),
                                 .calls = calls,
                                 .usual_calls = usual_calls,
                                 .failed = failed,
                                 .apart = each (slow.apart, self->slow_count)};
}
