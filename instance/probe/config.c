/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>
#include <time.h>

#include "../../common/status.h"
#include "../shm/layout.h"

#define ACTIONS_ALL  (WEFT_ACTION_ROOT | WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE | WEFT_ACTION_STACKS)
#define CONFIG_TRIES 1000
#define TRIES_A_REST 100 /* looks at a page that is being changed, between two rests */
#define REST_NS      50000

static probe_config_t configs[2];
probe_config_t *probe_config = &configs[0];
static uint64_t last_serial;

/* What the control page said last; private to the parked thread. */
typedef struct {
  uint32_t seq, actions, carrier, embed_to, rule_count;
  shm_rule_t rules[SHM_RULES_MAX];
  shm_filter_t filter;
} wanted_t;
static wanted_t wanted;

static void clamp (wanted_t *w)
{
  w->actions &= ACTIONS_ALL;
  w->carrier = w->carrier == WEFT_CARRIER_WEFT ? WEFT_CARRIER_WEFT : WEFT_CARRIER_TRACEPARENT;
  if (w->embed_to != WEFT_EMBED_TO_ANY && w->embed_to != SHM_EMBED_TO_LISTED)
    w->embed_to = WEFT_EMBED_TO_PRIVATE;
  if (w->rule_count > SHM_RULES_MAX)
    w->rule_count = SHM_RULES_MAX;
  for (uint32_t i = 0; i < w->rule_count; i++) {
    w->rules[i].match[WEFT_MATCH_MAX - 1] = 0;
    if (w->rules[i].sample_den == 0)
      w->rules[i].sample_den = 1;
    w->filter.header[i][WEFT_HEADER_MAX - 1] = 0;
  }
  for (uint32_t i = 0; i < SHM_EXCLUDES_MAX; i++)
    w->filter.exclude[i][WEFT_MATCH_MAX - 1] = 0;
  if (w->filter.network_count > SHM_NETWORKS_MAX)
    w->filter.network_count = 0;
  if (w->filter.exclude_count > SHM_EXCLUDES_MAX)
    w->filter.exclude_count = SHM_EXCLUDES_MAX;
}

int probe_config_read (const shm_control_t *control)
{
  static wanted_t fresh;
  const shm_filter_t *filter = shm_filter (probe_shm);
  for (int i = 0; i < CONFIG_TRIES; i++) {
    uint32_t seq = __atomic_load_n (&control->config_seq, __ATOMIC_ACQUIRE);
    if (seq == wanted.seq)
      return 0;
    if (!(seq & 1)) {
      fresh.seq = seq;
      fresh.actions = control->actions;
      fresh.carrier = control->carrier;
      fresh.embed_to = control->embed_to;
      fresh.rule_count = control->rule_count;
      memcpy (fresh.rules, control->rules, sizeof fresh.rules);
      memcpy (&fresh.filter, filter, sizeof fresh.filter);
      __atomic_thread_fence (__ATOMIC_ACQUIRE);
      if (__atomic_load_n (&control->config_seq, __ATOMIC_RELAXED) == seq) {
        clamp (&fresh);
        wanted = fresh;
        return 1;
      }
    }
    if (i % TRIES_A_REST == TRIES_A_REST - 1)
      nanosleep (&(struct timespec){0, REST_NS}, NULL);
  }
  return WEFT_E_BUSY;
}

/* Into the buffer that nobody uses; readers check `serial` after use. */
void probe_config_publish (uint32_t actions)
{
  probe_config_t *now = probe_config;
  probe_config_t *next = now == &configs[0] ? &configs[1] : &configs[0];
  __atomic_store_n (&next->serial, 0, __ATOMIC_RELAXED);
  __atomic_thread_fence (__ATOMIC_RELEASE);
  next->actions = actions;
  next->carrier = wanted.carrier;
  next->embed_to = wanted.embed_to;
  next->rule_count = wanted.rule_count;
  memcpy (next->rules, wanted.rules, sizeof next->rules);
  next->filter = wanted.filter;
  next->wanted.asks = 0;
  memcpy (next->wanted.name, wanted.filter.header, sizeof next->wanted.name);
  for (uint32_t i = 0; i < wanted.rule_count; i++)
    next->wanted.asks |= wanted.filter.header[i][0] ? 1u << i : 0;
  for (uint32_t i = 0; i < SHM_RULES_MAX; i++) {
    uint64_t taken = 0;
    for (uint32_t j = 0; i < next->rule_count && j < now->rule_count; j++)
      if (now->rules[j].instruction == next->rules[i].instruction)
        taken = __atomic_load_n (&now->roots_taken[j], __ATOMIC_RELAXED);
    __atomic_store_n (&next->roots_taken[i], taken, __ATOMIC_RELAXED);
  }
  __atomic_store_n (&next->serial, ++last_serial, __ATOMIC_RELEASE);
  __atomic_store_n (&probe_config, next, __ATOMIC_RELEASE);
}

uint32_t probe_config_actions (void)
{
  return wanted.actions;
}

uint32_t probe_config_seq (void)
{
  return wanted.seq;
}

void probe_config_forget (void)
{
  memset (&wanted, 0, sizeof wanted);
}

void probe_config_born (void)
{
  probe_config_forget ();
  for (int i = 0; i < 2; i++)
    memset (configs[i].roots_taken, 0, sizeof configs[i].roots_taken);
}
