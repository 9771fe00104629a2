/* SPDX-License-Identifier: Apache-2.0 */
#include "instructions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/pattern.h"
#include "../../common/selector.h"
#include "../../common/status.h"

/* What is not sent: since which epoch an instruction holds, and until when. */
typedef struct {
  uint64_t epoch;
  uint64_t until_ns;
} term_t;

struct ctl_instructions_t {
  uint64_t epoch;
  uint32_t last_number;
  uint32_t live_count;
  weft_instruction_t live[WEFT_INSTRUCTIONS_MAX];
  term_t live_term[WEFT_INSTRUCTIONS_MAX];
  uint32_t stopped_count; /* ever; the ring holds the last ones */
  weft_instruction_t stopped[WEFT_STOPPED_MAX];
  uint64_t stopped_epoch[WEFT_STOPPED_MAX];
};

ctl_instructions_t *ctl_instructions_new (uint64_t epoch, uint32_t last_number)
{
  ctl_instructions_t *self = calloc (1, sizeof *self);
  if (self) {
    self->epoch = epoch;
    self->last_number = last_number;
  }
  return self;
}

void ctl_instructions_destroy (ctl_instructions_t **self_p)
{
  free (*self_p);
  *self_p = NULL;
}

void ctl_instructions_skip (ctl_instructions_t *self, uint32_t number)
{
  if (number > self->last_number)
    self->last_number = number;
}

static int check_excludes (const weft_instruction_t *wanted, char *why, size_t why_size)
{
  for (uint32_t n = 0; n < wanted->exclude_count; n++) {
    char reason[200] = "";
    int rc = weft_pattern_check (wanted->excludes[n], reason, sizeof reason);
    if (rc < 0) {
      snprintf (why, why_size, "bad exclusion '%.64s': %s", wanted->excludes[n], reason);
      return rc;
    }
  }
  return 0;
}

static int check_text (const weft_instruction_t *wanted, char *why, size_t why_size)
{
  if (wanted->selector_count == 0 || wanted->selector_count > WEFT_SELECTORS_MAX) {
    snprintf (why, why_size, "an instruction takes 1 to %d selectors; it has %u", WEFT_SELECTORS_MAX,
              wanted->selector_count);
    return WEFT_E_RANGE;
  }
  for (uint32_t n = 0; n < wanted->selector_count; n++) {
    char reason[200] = "";
    int rc = weft_selector_check (wanted->selectors[n], reason, sizeof reason);
    if (rc < 0) {
      snprintf (why, why_size, "bad selector '%.64s': %s", wanted->selectors[n], reason);
      return rc;
    }
  }
  char reason[200] = "";
  int rc = weft_pattern_check (wanted->match, reason, sizeof reason);
  if (rc < 0)
    snprintf (why, why_size, "bad pattern '%.64s': %s", wanted->match, reason);
  return rc < 0 ? rc : check_excludes (wanted, why, why_size);
}

static int check (const weft_instruction_t *wanted, char *why, size_t why_size)
{
  const uint32_t known = WEFT_ACTION_ROOT | WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE;
  if (wanted->actions == 0 || (wanted->actions & ~known)) {
    snprintf (why, why_size, "actions must be some of root, embed, capture");
    return WEFT_E_RANGE;
  }
  if (wanted->sample_num == 0 || wanted->sample_den == 0 || wanted->sample_num > wanted->sample_den) {
    snprintf (why, why_size, "bad sample %u/%u: it must lie above 0 and at most at 1/1", wanted->sample_num,
              wanted->sample_den);
    return WEFT_E_RANGE;
  }
  if (wanted->lease_ms < WEFT_LEASE_MIN_MS || wanted->lease_ms > WEFT_LEASE_MAX_MS) {
    snprintf (why, why_size, "bad lease of %u ms: it must lie between %d s and %d s", wanted->lease_ms,
              WEFT_LEASE_MIN_MS / 1000, WEFT_LEASE_MAX_MS / 1000);
    return WEFT_E_RANGE;
  }
  if (wanted->carrier > WEFT_CARRIER_WEFT || wanted->embed_to > WEFT_EMBED_TO_ANY) {
    snprintf (why, why_size, "unknown carrier or embed-to");
    return WEFT_E_RANGE;
  }
  return check_text (wanted, why, why_size);
}

int ctl_instructions_add (ctl_instructions_t *self, const weft_instruction_t *wanted, uint64_t until_ns,
                          uint32_t *ret_number, char *why, size_t why_size)
{
  int rc = check (wanted, why, why_size);
  if (rc < 0)
    return rc;
  if (self->live_count == WEFT_INSTRUCTIONS_MAX) {
    snprintf (why, why_size, "%d instructions are live already; end one with `weft stop ID`",
              WEFT_INSTRUCTIONS_MAX);
    return WEFT_E_FULL;
  }
  weft_instruction_t *added = &self->live[self->live_count];
  *added = *wanted;
  added->number = ++self->last_number;
  self->live_term[self->live_count] = (term_t){.epoch = ++self->epoch, .until_ns = until_ns};
  self->live_count++;
  *ret_number = added->number;
  return 0;
}

static int live_index (const ctl_instructions_t *self, uint32_t number)
{
  for (uint32_t n = 0; n < self->live_count; n++)
    if (self->live[n].number == number)
      return (int) n;
  return -1;
}

int ctl_instructions_stop (ctl_instructions_t *self, uint32_t number)
{
  int at = live_index (self, number);
  if (at < 0)
    return WEFT_E_NOT_FOUND;
  uint32_t slot = self->stopped_count++ % WEFT_STOPPED_MAX;
  self->stopped[slot] = self->live[at];
  self->stopped_epoch[slot] = ++self->epoch;
  size_t behind = self->live_count - (uint32_t) at - 1;
  memmove (&self->live[at], &self->live[at + 1], behind * sizeof *self->live);
  memmove (&self->live_term[at], &self->live_term[at + 1], behind * sizeof *self->live_term);
  self->live_count--;
  return 0;
}

uint32_t ctl_instructions_expire (ctl_instructions_t *self, uint64_t now_ns)
{
  uint32_t expired = 0;
  for (uint32_t n = 0; n < self->live_count;) {
    uint64_t until_ns = self->live_term[n].until_ns;
    if (until_ns && until_ns <= now_ns && ctl_instructions_stop (self, self->live[n].number) == 0)
      expired++;
    else
      n++;
  }
  return expired;
}

uint64_t ctl_instructions_next_ns (const ctl_instructions_t *self)
{
  uint64_t next_ns = 0;
  for (uint32_t n = 0; n < self->live_count; n++) {
    uint64_t until_ns = self->live_term[n].until_ns;
    if (until_ns && (!next_ns || until_ns < next_ns))
      next_ns = until_ns;
  }
  return next_ns;
}

uint64_t ctl_instructions_epoch (const ctl_instructions_t *self)
{
  return self->epoch;
}

const weft_instruction_t *ctl_instructions_live (const ctl_instructions_t *self, uint32_t *ret_count)
{
  *ret_count = self->live_count;
  return self->live;
}

/* Index into the ring of stopped ones, or -1. */
static int stopped_index (const ctl_instructions_t *self, uint32_t number)
{
  uint32_t kept = self->stopped_count < WEFT_STOPPED_MAX ? self->stopped_count : WEFT_STOPPED_MAX;
  for (uint32_t n = 0; n < kept; n++)
    if (self->stopped[n].number == number)
      return (int) n;
  return -1;
}

const weft_instruction_t *ctl_instructions_find (const ctl_instructions_t *self, uint32_t number,
                                                 int *ret_live)
{
  int at = live_index (self, number);
  if (at >= 0) {
    *ret_live = 1;
    return &self->live[at];
  }
  at = stopped_index (self, number);
  if (at < 0)
    return NULL;
  *ret_live = 0;
  return &self->stopped[at];
}

int ctl_instruction_matches (const weft_instruction_t *instruction, const char *name, size_t name_size)
{
  for (uint32_t n = 0; n < instruction->exclude_count; n++)
    if (weft_pattern_holds (instruction->excludes[n], name, name_size))
      return 0;
  return instruction->header[0] == 0 && weft_pattern_holds (instruction->match, name, name_size);
}

int ctl_instruction_selects (const weft_instruction_t *instruction, const ctl_instance_t *instance)
{
  weft_subject_t subject = {.service = instance->service,
                            .vm = instance->vm,
                            .host = instance->host,
                            .instance = instance->uuid,
                            .pid = instance->pid};
  for (uint32_t n = 0; n < instruction->selector_count; n++)
    if (weft_selector_holds (instruction->selectors[n], &subject))
      return 1;
  return 0;
}

ctl_standing_t ctl_instructions_standing (const ctl_instructions_t *self, uint32_t number,
                                          const ctl_instance_t *instance)
{
  int live = 0;
  const weft_instruction_t *instruction = ctl_instructions_find (self, number, &live);
  int has_left = instance->presence == CTL_INSTANCE_LEFT;
  if (!instruction || (live && has_left) || !ctl_instruction_selects (instruction, instance))
    return CTL_STANDING_NONE;
  if (has_left)
    return CTL_STANDING_ACKED;
  uint64_t since = live ? self->live_term[live_index (self, number)].epoch
                        : self->stopped_epoch[stopped_index (self, number)];
  return instance->epoch >= since ? CTL_STANDING_ACKED : CTL_STANDING_SILENT;
}
