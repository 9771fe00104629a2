/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"

#include <string.h>

#include "../../common/clocks.h"
#include "../../common/fault_step.h"
#include "../../common/pattern.h"
#include "record.h"

/* The same answer for one task in every VM and for every rule with this rate. */
static int sampled (const uint8_t task[WEFT_TASK_ID_SIZE], const shm_rule_t *rule)
{
  uint64_t half[2];
  memcpy (half, task, sizeof half);
  uint64_t hash = (half[0] ^ half[1]) * 0x9e3779b97f4a7c15ull;
  hash ^= hash >> 32;
  return rule->sample_den <= 1 || hash % rule->sample_den < rule->sample_num;
}

static int take_root (probe_config_t *config, uint32_t i)
{
  uint64_t max = config->rules[i].max_roots;
  if (!max)
    return 1;
  uint64_t taken = __atomic_load_n (&config->roots_taken[i], __ATOMIC_RELAXED);
  do {
    if (taken >= max)
      return 0;
  } while (!__atomic_compare_exchange_n (&config->roots_taken[i], &taken, taken + 1, 0, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED));
  return 1;
}

static int excluded (const shm_filter_t *filter, uint32_t rule, const probe_exchange_t *exchange)
{
  for (uint32_t i = 0; i < filter->exclude_count && i < SHM_EXCLUDES_MAX; i++)
    if ((filter->exclude_rules[i] >> rule & 1) &&
        weft_pattern_holds (filter->exclude[i], exchange->name, exchange->name_size))
      return 1;
  return 0;
}

/* Number of the first instruction whose rule the request passes, 0: none. A
 * configuration that was replaced meanwhile gives none. */
static uint32_t instruction_of (const probe_http1_t *head, const probe_exchange_t *exchange,
                                const uint8_t task[WEFT_TASK_ID_SIZE], int root)
{
  probe_config_t *config = __atomic_load_n (&probe_config, __ATOMIC_ACQUIRE);
  uint64_t serial = __atomic_load_n (&config->serial, __ATOMIC_ACQUIRE);
  uint32_t count = config->rule_count < SHM_RULES_MAX ? config->rule_count : SHM_RULES_MAX;
  uint32_t found = 0, kept_out = 0;
  // Bits of fields are about the rules under which they were looked for.
  uint32_t has = head->wanted_serial == (uint32_t) serial ? head->headers : 0;
  has |= ~config->wanted.asks;
  for (uint32_t i = 0; i < count && !found; i++) {
    const shm_rule_t *rule = &config->rules[i];
    if (!(has >> i & 1) || !weft_pattern_holds (rule->match, exchange->name, exchange->name_size))
      continue;
    if (excluded (&config->filter, i, exchange))
      kept_out = 1;
    else if (sampled (task, rule) && (!root || take_root (config, i)))
      found = rule->instruction;
  }
  if (root && kept_out && !found)
    probe_count (SHM_COUNT_EXCLUDED, 1);
  __atomic_thread_fence (__ATOMIC_ACQUIRE);
  return !WEFT_STEP_FAILS ("configuration") && __atomic_load_n (&config->serial, __ATOMIC_RELAXED) == serial
             ? found
             : 0;
}

static const probe_carried_t *carried_by (const probe_http1_t *head)
{
  if (head->weft.count == 1 && head->weft.valid)
    return &head->weft;
  // Two of them: nobody knows which is meant, the task starts anew (W3C 3.2.1).
  return head->traceparent.count == 1 && head->traceparent.valid ? &head->traceparent : NULL;
}

/* A tracestate belongs to the traceparent beside it, and to nothing else. */
static probe_along_t along_of (const probe_http1_t *head, const probe_carried_t *carried)
{
  probe_along_t along = {0};
  if (carried != &head->traceparent)
    return along;
  along.flags = carried->flags;
  if (head->tracestates && head->tracestate) {
    along.tracestate = head->tracestate->text;
    along.tracestate_size = probe_tracestate_size (head->tracestate);
  }
  return along;
}

static void with_context (const probe_http1_t *head, probe_exchange_t *exchange,
                          const probe_carried_t *carried)
{
  uint32_t actions = probe_active ();
  memcpy (exchange->task, carried->trace.task, WEFT_TASK_ID_SIZE);
  exchange->request = carried->trace.request;
  exchange->subtask = weft_ids_next (probe_ids ());
  exchange->flags |= carried == &head->weft ? WEFT_REPORT_PRIVATE : 0;
  if (actions & WEFT_ACTION_ROOT)
    exchange->instruction = instruction_of (head, exchange, exchange->task, 0);
  if (actions & WEFT_ACTION_CAPTURE)
    exchange->kind = WEFT_REPORT_CAPTURE;
}

static void without_context (const probe_http1_t *head, probe_exchange_t *exchange)
{
  uint8_t task[WEFT_TASK_ID_SIZE];
  if (probe_active () & WEFT_ACTION_ROOT) {
    weft_ids_task (probe_ids (), task);
    exchange->instruction = instruction_of (head, exchange, task, 1);
  }
  if (!exchange->instruction) {
    probe_count (SHM_COUNT_UNMATCHED, 1);
    return;
  }
  memcpy (exchange->task, task, sizeof task);
  exchange->subtask = weft_ids_next (probe_ids ());
  exchange->flags |= WEFT_REPORT_ROOT;
  exchange->kind = WEFT_REPORT_CAPTURE;
  probe_count (SHM_COUNT_ROOTS, 1);
}

/* The head is complete: the subtask begins. Returns 0 when the connection is
 * not followed any further. */
static int begin (probe_connection_t *self, uint64_t *now_p)
{
  const probe_http1_t *head = &self->machine[PROBE_IN];
  uint32_t popped = __atomic_load_n (&self->popped, __ATOMIC_ACQUIRE);
  if (WEFT_STEP_FAILS ("queue of answers") || self->pushed - popped >= PROBE_EXCHANGES_MAX) {
    probe_give_up (self, SHM_COUNT_GIVEN_UP_OTHER, PROBE_HOLDS (PROBE_IN));
    return 0;
  }
  if (*now_p == 0)
    *now_p = weft_boot_ns ();
  probe_exchange_t *exchange = probe_exchange (self, self->pushed);
  probe_exchange_begin (exchange, head, *now_p);
  if (probe_state (self) == PROBE_PROVEN) {
    const probe_carried_t *carried = carried_by (head);
    probe_asked (self);
    if (carried)
      with_context (head, exchange, carried);
    else
      without_context (head, exchange);
    probe_along_t along = along_of (head, carried);
    exchange->context =
        probe_context_receive_with (exchange->task, exchange->subtask, exchange->request, &along);
    if (self->pushed != popped)
      probe_context_queued (exchange->context);
    if (exchange->kind) {
      probe_count (SHM_COUNT_CAPTURED, 1);
      exchange->cpu_ns = weft_clock_ns (CLOCK_THREAD_CPUTIME_ID);
    }
  } else {
    probe_count (SHM_COUNT_UNPROVEN, 1);
    probe_context_foreign ();
  }
  __atomic_store_n (&self->pushed, self->pushed + 1, __ATOMIC_SEQ_CST);
  // Given up by the writer while we were at it: it may not have seen this one (E3).
  if (__atomic_load_n (&self->state, __ATOMIC_SEQ_CST) == PROBE_GIVEN_UP) {
    if (probe_try_hold (self, PROBE_OUT)) {
      probe_exchange_abandon (self, WEFT_ERROR_OPEN, WEFT_REPORT_OPEN);
      probe_release (self, PROBE_OUT);
    }
    return 0;
  }
  return 1;
}

/* One stretch of bytes. Returns 0 when the rest of the call is not to be looked at. */
static int requests (probe_connection_t *self, const char *data, size_t size, uint64_t *now_p)
{
  probe_http1_t *machine = &self->machine[PROBE_IN];
  for (;;) {
    // In lockstep only one request is ever under way.
    if (size && probe_http1_idle (machine) && machine->heads && probe_state (self) == PROBE_CANDIDATE)
      break;
    size_t used;
    probe_http1_event_t event = probe_http1_feed (machine, data, size, &used);
    if (WEFT_STEP_FAILS ("framing of requests read"))
      event = PROBE_HTTP1_FAILED;
    data += used;
    size -= used;
    if (event == PROBE_HTTP1_MORE || (event == PROBE_HTTP1_END && size == 0))
      return 1;
    if (event == PROBE_HTTP1_HEAD && !begin (self, now_p))
      return 0;
    if (event == PROBE_HTTP1_FAILED)
      break;
  }
  probe_misfit (self, PROBE_IN, PROBE_HOLDS (PROBE_IN));
  return 0;
}

/* The names that rules ask for now. What was seen under earlier ones says nothing about them. */
static void look_for (probe_http1_t *machine)
{
  const probe_config_t *config = __atomic_load_n (&probe_config, __ATOMIC_ACQUIRE);
  uint32_t serial = (uint32_t) __atomic_load_n (&config->serial, __ATOMIC_ACQUIRE);
  if (machine->wanted_serial != serial)
    machine->headers = 0;
  machine->wanted_serial = serial;
  machine->wanted = config->wanted.asks ? &config->wanted : NULL;
}

void probe_capture_requests (probe_connection_t *self, const struct iovec *iov, int iov_count, size_t size)
{
  uint64_t now = 0;
  self->machine[PROBE_IN].tracestate = &self->tracestate;
  look_for (&self->machine[PROBE_IN]);
  for (int i = 0; i < iov_count && size; i++) {
    size_t part = iov[i].iov_len < size ? iov[i].iov_len : size;
    size -= part;
    if (part && !requests (self, iov[i].iov_base, part, &now))
      return;
  }
}
