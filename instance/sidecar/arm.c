/* SPDX-License-Identifier: Apache-2.0 */
#include "arm.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"

/* What one probe is told. */
typedef struct {
  uint32_t actions, carrier, embed_to, lease_ms, rule_count;
  int to_private; /* some instruction embeds to all private addresses */
  shm_rule_t rules[SHM_RULES_MAX];
  shm_filter_t filter;
} plan_t;

struct car_arm_t {
  car_live_t *live;   /* NULL: none */
  car_live_t **shelf; /* where the others of the tree find it; NULL: there are none */
  uint8_t controller[WEFT_UUID_SIZE];
  int has_state, heard;
  uint64_t epoch, seq;
  uint8_t boot[WEFT_UUID_SIZE];
  int has_offset;
  int64_t offset;    /* of a controller of another boot: ours - its clock, at most */
  uint64_t hello_ns; /* first HELLO not answered yet, 0: none */
  uint64_t proof_ns; /* moment at which the controller was surely alive */
  uint64_t lease_until_ns;
  plan_t told;
  int told_any, forced;
  int pending, due; /* a configuration is under way; an ACK is owed */
  int postponed;    /* A2: something is to be armed as soon as there is a lease */
  uint64_t pending_since_ns;
};

car_arm_t *car_arm_new (const uint8_t boot[WEFT_UUID_SIZE], car_live_t **shelf)
{
  car_arm_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  memcpy (self->boot, boot, sizeof self->boot);
  self->shelf = shelf;
  return self;
}

/* 1: these are the ones that it has. */
static int take_live (car_arm_t *self, weft_bus_message_t *message)
{
  if (self->has_state && self->epoch == message->epoch && self->live &&
      memcmp (self->controller, message->controller, WEFT_UUID_SIZE) == 0)
    return 1;
  car_live_t *live = car_live_of (self->shelf, message);
  if (!live)
    return 0;
  car_live_drop (&self->live);
  self->live = live;
  return 1;
}

void car_arm_inherit (car_arm_t *self, const car_arm_t *parent)
{
  car_live_drop (&self->live);
  *self = *parent;
  if (self->live)
    car_live_share (self->live);
  self->hello_ns = 0;
  if (self->has_state)
    car_arm_forget_probe (self);
}

void car_arm_destroy (car_arm_t **self_p)
{
  if (!self_p || !*self_p)
    return;
  car_live_drop (&(*self_p)->live);
  free (*self_p);
  *self_p = NULL;
}

void car_arm_said_hello (car_arm_t *self, uint64_t mono_ns)
{
  if (self->hello_ns == 0)
    self->hello_ns = mono_ns;
}

void car_arm_take_state (car_arm_t *self, weft_bus_message_t *message, int alone, uint64_t mono_ns)
{
  if (!take_live (self, message))
    return; /* the next heartbeat shows that we are behind */
  if (memcmp (self->controller, message->controller, WEFT_UUID_SIZE) != 0) {
    memcpy (self->controller, message->controller, WEFT_UUID_SIZE);
    self->heard = 0;
    self->has_offset = 0;
  }
  self->epoch = message->epoch;
  self->has_state = 1;
  self->due = 1;
  if (alone && self->hello_ns) {
    if (self->hello_ns > self->proof_ns && self->hello_ns <= mono_ns)
      self->proof_ns = self->hello_ns;
    /* It left after the question: taken for the same moment, ages err to the old side. */
    self->offset = (int64_t) (self->hello_ns - message->sent_ns);
    self->has_offset = 1;
    self->hello_ns = 0;
  }
}

/* How long the heartbeat was under way, at most. 0: not known (A4). */
static int age_of (const car_arm_t *self, const weft_bus_message_t *heartbeat, uint64_t mono_ns,
                   uint64_t *ret_age_ns)
{
  static const uint8_t unknown[WEFT_UUID_SIZE];
  /* From the future: a time namespace of its own. */
  if (memcmp (self->boot, heartbeat->boot, WEFT_UUID_SIZE) == 0 &&
      memcmp (self->boot, unknown, WEFT_UUID_SIZE) != 0 && heartbeat->sent_ns <= mono_ns) {
    *ret_age_ns = mono_ns - heartbeat->sent_ns;
    return 1;
  }
  if (!self->has_offset)
    return 0;
  int64_t age = (int64_t) (mono_ns - heartbeat->sent_ns) - self->offset;
  *ret_age_ns = age > 0 ? (uint64_t) age : 0;
  return age >= 0 && (uint64_t) age <= WEFT_HEARTBEAT_MS * WEFT_NS_PER_MS;
}

int car_arm_take_heartbeat (car_arm_t *self, const weft_bus_message_t *heartbeat, uint64_t mono_ns)
{
  if (memcmp (self->controller, heartbeat->controller, WEFT_UUID_SIZE) != 0) {
    /* Another one took over: nothing that was known is valid. */
    self->has_state = 0;
    self->epoch = 0;
    self->hello_ns = 0;
    self->has_offset = 0;
    memcpy (self->controller, heartbeat->controller, WEFT_UUID_SIZE);
    self->heard = 0;
  }
  int gap = self->heard && heartbeat->seq != self->seq + 1;
  self->heard = 1;
  self->seq = heartbeat->seq;
  uint64_t age = 0;
  if (!self->has_state || heartbeat->epoch != self->epoch || !age_of (self, heartbeat, mono_ns, &age))
    return 1;
  if (age < mono_ns && mono_ns - age > self->proof_ns)
    self->proof_ns = mono_ns - age;
  return gap;
}

static void add_exclude (shm_filter_t *filter, const char *pattern, uint32_t rule)
{
  uint32_t n = 0;
  while (n < filter->exclude_count && strncmp (filter->exclude[n], pattern, WEFT_MATCH_MAX) != 0)
    n++;
  if (n == SHM_EXCLUDES_MAX)
    return;
  if (n == filter->exclude_count) {
    filter->exclude_count++;
    memcpy (filter->exclude[n], pattern, strnlen (pattern, WEFT_MATCH_MAX - 1));
  }
  filter->exclude_rules[n] |= (uint16_t) (1u << rule);
}

static void add_networks (plan_t *plan, const weft_instruction_t *instruction)
{
  shm_filter_t *filter = &plan->filter;
  if (instruction->embed_to > WEFT_EMBED_TO_PRIVATE)
    plan->embed_to = WEFT_EMBED_TO_ANY;
  plan->to_private |= instruction->network_count == 0;
  for (uint32_t i = 0; i < instruction->network_count && i < WEFT_NETWORKS_MAX; i++)
    if (filter->network_count < SHM_NETWORKS_MAX)
      filter->networks[filter->network_count++] = instruction->networks[i];
}

static void add_rule (plan_t *plan, const weft_instruction_t *instruction)
{
  if (plan->rule_count == SHM_RULES_MAX)
    return;
  for (uint32_t i = 0; i < instruction->exclude_count && i < WEFT_EXCLUDES_MAX; i++)
    add_exclude (&plan->filter, instruction->excludes[i], plan->rule_count);
  memcpy (plan->filter.header[plan->rule_count], instruction->header,
          strnlen (instruction->header, WEFT_HEADER_MAX - 1));
  shm_rule_t *rule = &plan->rules[plan->rule_count++];
  rule->instruction = instruction->number;
  rule->sample_num = instruction->sample_den ? instruction->sample_num : 1;
  rule->sample_den = instruction->sample_den ? instruction->sample_den : 1;
  rule->max_roots = instruction->max_roots;
  memcpy (rule->match, instruction->match, strnlen (instruction->match, sizeof rule->match - 1));
}

/* An instruction for a process is one for what it has forked, too. */
static int selects (const weft_instruction_t *instruction, const weft_subject_t *subject)
{
  for (; subject; subject = subject->parent)
    for (uint32_t i = 0; i < instruction->selector_count && i < WEFT_SELECTORS_MAX; i++)
      if (weft_selector_holds (instruction->selectors[i], subject))
        return 1;
  return 0;
}

/* The union of what is asked of this instance; the shortest lease wins. */
static void make_plan (const car_arm_t *self, const weft_subject_t *subject, plan_t *plan)
{
  memset (plan, 0, sizeof *plan); /* rules are compared whole, behind the end of `match` too */
  plan->lease_ms = WEFT_LEASE_MS;
  for (uint32_t i = 0; self->has_state && self->live && i < self->live->count; i++) {
    const weft_instruction_t *instruction = &self->live->instructions[i];
    uint32_t actions = instruction->actions & CAR_ARM_ACTIONS;
    if (actions == 0 || !selects (instruction, subject))
      continue;
    uint32_t lease_ms = instruction->lease_ms ? instruction->lease_ms : WEFT_LEASE_MS;
    if (lease_ms < WEFT_LEASE_MIN_MS)
      lease_ms = WEFT_LEASE_MIN_MS;
    if (plan->actions == 0 || lease_ms < plan->lease_ms)
      plan->lease_ms = lease_ms <= WEFT_LEASE_MAX_MS ? lease_ms : WEFT_LEASE_MAX_MS;
    plan->actions |= actions;
    if (instruction->carrier > plan->carrier)
      plan->carrier = WEFT_CARRIER_WEFT;
    if (actions & WEFT_ACTION_EMBED)
      add_networks (plan, instruction);
    if (actions & WEFT_ACTION_ROOT)
      add_rule (plan, instruction);
  }
  if (plan->embed_to != WEFT_EMBED_TO_ANY && plan->filter.network_count && !plan->to_private)
    plan->embed_to = SHM_EMBED_TO_LISTED;
}

static int same_plan (const plan_t *a, const plan_t *b)
{
  return a->actions == b->actions && a->carrier == b->carrier && a->embed_to == b->embed_to &&
         a->lease_ms == b->lease_ms && a->rule_count == b->rule_count &&
         memcmp (a->rules, b->rules, a->rule_count * sizeof a->rules[0]) == 0 &&
         memcmp (&a->filter, &b->filter, sizeof a->filter) == 0;
}

static void tell (car_arm_t *self, shm_reader_t *reader, const plan_t *plan, uint64_t mono_ns)
{
  self->told = *plan;
  self->told_any = 1;
  self->forced = 0;
  self->pending = 1;
  self->due = 1;
  self->pending_since_ns = mono_ns;
  shm_configure_with (reader, plan->actions, plan->carrier, plan->embed_to, plan->rules, plan->rule_count,
                      &plan->filter);
}

void car_arm_apply (car_arm_t *self, shm_reader_t *reader, const weft_subject_t *subject, uint64_t mono_ns)
{
  plan_t plan;
  make_plan (self, subject, &plan);
  if (!self->has_state && self->told_any)
    return; /* nothing known of a new controller yet: the lease runs out if it stays so */
  uint64_t until = self->proof_ns ? self->proof_ns + plan.lease_ms * WEFT_NS_PER_MS : 0;
  int lapsed = self->lease_until_ns <= mono_ns;
  self->postponed = plan.actions && until <= mono_ns;
  if (self->postponed)
    return;
  if (plan.actions && until != self->lease_until_ns) {
    self->lease_until_ns = until;
    shm_renew_lease (reader, until);
  }
  /* The probe went idle by itself when its lease ended and sleeps: wake it. */
  int asleep = plan.actions && lapsed;
  if (!self->told_any || self->forced || asleep || !same_plan (&plan, &self->told))
    tell (self, reader, &plan, mono_ns);
}

int car_arm_settled (car_arm_t *self, shm_reader_t *reader, uint64_t mono_ns)
{
  shm_status_t status;
  shm_reader_status (reader, &status);
  if (self->pending) {
    if (status.config_seen != shm_config_seq (reader)) {
      if (mono_ns - self->pending_since_ns > CAR_ARM_PATIENCE_MS * WEFT_NS_PER_MS) {
        plan_t again = self->told;
        tell (self, reader, &again, mono_ns);
      }
      return 0;
    }
    self->pending = 0;
  } else if (self->told.actions && status.actions == 0 && self->lease_until_ns > mono_ns)
    self->forced = 1; /* its lease ended in the very moment it was renewed */
  if (!self->due || !self->has_state || !self->told_any || self->forced || self->postponed)
    return 0;
  self->due = 0;
  return 1;
}

void car_arm_forget_probe (car_arm_t *self)
{
  self->told_any = 0;
  self->pending = 0;
  self->lease_until_ns = 0;
  self->due = 1;
}

int car_arm_pending (const car_arm_t *self)
{
  return self->pending || self->forced;
}

int car_arm_in_force (const car_arm_t *self)
{
  return self->has_state && self->told_any && !self->pending && !self->forced && !self->postponed &&
         !self->due;
}

uint64_t car_arm_epoch (const car_arm_t *self)
{
  return self->epoch;
}

int car_arm_has_state (const car_arm_t *self)
{
  return self->has_state;
}
