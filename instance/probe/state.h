/* SPDX-License-Identifier: Apache-2.0 */
/* state: the few words that every part of the probe looks at. Owned and
 * written by probe.c (its parked thread); read from any thread. */
#ifndef PROBE_STATE_H
#define PROBE_STATE_H

#include <stdint.h>

#include "../../common/ids.h"
#include "../../common/wire.h"
#include "../shm/layout.h"
#include "field_name.h"

#define PROBE_LIKELY(x)   __builtin_expect (!!(x), 1)
#define PROBE_UNLIKELY(x) __builtin_expect (!!(x), 0)

/* WEFT_ACTION_* in force. 0: every hook is one load, one branch, the call.
 * Relaxed loads suffice: nothing is published through it. */
extern uint32_t probe_actions __attribute__ ((visibility ("hidden")));

/* In probe_actions: a process that is no instance yet and becomes one at a call that
 * shows that it talks (probe.h). No part but the hooks and probe.c ever sees it. */
#define PROBE_UNBORN 0x40000000u

/* One configuration. Two buffers exist; the parked thread fills the one not in
 * use, then swaps the pointer (release). A reader that holds the old one for
 * longer than two changes could see a torn rule: rules are re-checked against
 * `serial` after use, a mismatch means "do nothing". */
typedef struct {
  uint64_t serial;
  uint32_t actions, carrier, embed_to, rule_count;
  shm_rule_t rules[SHM_RULES_MAX];
  shm_filter_t filter;
  probe_wanted_t wanted;               /* the field names that rules ask for */
  uint64_t roots_taken[SHM_RULES_MAX]; /* atomic; carried over for the same instruction */
} probe_config_t;
extern probe_config_t *probe_config __attribute__ ((visibility ("hidden")));

/* Base of the shared memory; never NULL once a hook can be active: before the
 * first and after the last instruction it is private memory nobody reads. */
extern void *probe_shm __attribute__ ((visibility ("hidden")));

static inline uint32_t probe_active (void)
{
  return __atomic_load_n (&probe_actions, __ATOMIC_RELAXED);
}
static inline void probe_count (shm_counter_t counter, uint64_t n)
{
  __atomic_fetch_add (&shm_status (probe_shm)->counter[counter], n, __ATOMIC_RELAXED);
}

/* Bytes that are not understood. */
static inline void probe_count_rest (unsigned protocol, uint64_t bytes)
{
  __atomic_fetch_add (&shm_rest (probe_shm)->bytes[protocol], bytes, __ATOMIC_RELAXED);
}

/* Kernel tid of the caller, cached per thread (reset in a forked child). */
uint32_t probe_tid (void);
/* The calling thread's generator, seeded on first use. */
weft_ids_t *probe_ids (void);

#endif
