/* SPDX-License-Identifier: Apache-2.0 */
#include "questions.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/ids.h"
#include "../../common/status.h"

/* Task ids that were handed on; open addressing, at most half full. */
typedef struct {
  uint8_t (*ids)[WEFT_TASK_ID_SIZE]; /* all zero: free; no task id is */
  uint32_t size, count;
} seen_t;

typedef struct {
  const ctl_places_t *places;
  ctl_store_summary_fn *wants; /* of ctl_questions_skim */
  ctl_execution_fn *fn;
  void *arg;
  seen_t seen;
} ask_t;

static uint8_t *seen_place (const seen_t *self, const uint8_t *task)
{
  static const uint8_t none[WEFT_TASK_ID_SIZE];
  uint64_t at;
  memcpy (&at, task, sizeof at);
  at *= 0x9e3779b97f4a7c15ull; /* ids of foreign tracers may differ in few bits only */
  for (uint32_t n = (uint32_t) (at >> 32);; n++) {
    uint8_t *place = self->ids[n & (self->size - 1)];
    if (memcmp (place, task, WEFT_TASK_ID_SIZE) == 0 || memcmp (place, none, sizeof none) == 0)
      return place;
  }
}

static int seen_has (const seen_t *self, const uint8_t *task)
{
  return self->size && memcmp (seen_place (self, task), task, WEFT_TASK_ID_SIZE) == 0;
}

static int seen_add (seen_t *self, const uint8_t *task)
{
  if (2 * (self->count + 1) > self->size) {
    seen_t larger = {.size = self->size ? self->size * 2 : 256, .count = self->count};
    larger.ids = calloc (larger.size, sizeof *larger.ids);
    if (!larger.ids)
      return WEFT_E_NOMEM;
    static const uint8_t none[WEFT_TASK_ID_SIZE];
    for (uint32_t n = 0; n < self->size; n++)
      if (memcmp (self->ids[n], none, sizeof none) != 0)
        memcpy (seen_place (&larger, self->ids[n]), self->ids[n], WEFT_TASK_ID_SIZE);
    free (self->ids);
    *self = larger;
  }
  memcpy (seen_place (self, task), task, WEFT_TASK_ID_SIZE);
  self->count++;
  return 0;
}

/* Merges the other part into *execution_p, which stays whole if there is none. */
static int join (ctl_execution_t *execution, ctl_execution_t *other)
{
  int rc = ctl_execution_merge (execution, other);
  ctl_execution_destroy (&other);
  return rc;
}

static int from_memory (ctl_execution_t **execution_p, void *arg)
{
  ask_t *self = arg;
  int rc = seen_add (&self->seen, (*execution_p)->task);
  if (rc == 0 && self->places->store) {
    char hex[2 * WEFT_TASK_ID_SIZE + 1] = "";
    ctl_execution_t *stored = NULL;
    uint32_t count = 0;
    weft_hex_put (hex, (*execution_p)->task, WEFT_TASK_ID_SIZE);
    if (ctl_store_find (self->places->store, hex, &stored, &count) == 0)
      rc = join (*execution_p, stored);
  }
  return rc < 0 ? rc : self->fn (execution_p, self->arg);
}

/* Stored: what memory adds to it did not lie in the scope by itself. */
static int from_store (ctl_execution_t **execution_p, void *arg)
{
  ask_t *self = arg;
  if (seen_has (&self->seen, (*execution_p)->task))
    return 0;
  ctl_execution_t *open = NULL;
  int rc = seen_add (&self->seen, (*execution_p)->task);
  if (rc == 0 && ctl_correlate_find (self->places->correlate, (*execution_p)->task, &open) == 0)
    rc = join (*execution_p, open);
  return rc < 0 ? rc : self->fn (execution_p, self->arg);
}

/* One that is open, too, is told of whole. */
static int wants_stored (const ctl_summary_t *summary, void *arg)
{
  ask_t *self = arg;
  ctl_execution_t *open = NULL;
  if (seen_has (&self->seen, summary->task))
    return 0;
  int rc = ctl_correlate_find (self->places->correlate, summary->task, &open);
  ctl_execution_destroy (&open);
  return rc == 0 ? 1 : rc == WEFT_E_NOT_FOUND ? self->wants (summary, self->arg) : rc;
}

int ctl_questions_skim (const ctl_places_t *places, uint64_t from_ns, uint64_t to_ns,
                        ctl_store_summary_fn *wants, ctl_execution_fn *fn, void *arg)
{
  ask_t ask = {.places = places, .wants = wants, .fn = fn, .arg = arg};
  int rc = ctl_correlate_each (places->correlate, 0, from_ns, to_ns, from_memory, &ask);
  if (rc == 0 && places->store)
    rc = ctl_store_skim (places->store, from_ns, to_ns, wants_stored, from_store, &ask);
  free (ask.seen.ids);
  return rc;
}

int ctl_questions_each (const ctl_places_t *places, uint32_t instruction, uint64_t from_ns, uint64_t to_ns,
                        ctl_execution_fn *fn, void *arg)
{
  ask_t ask = {.places = places, .fn = fn, .arg = arg};
  if (places->in_store)
    *places->in_store = 0;
  int rc = ctl_correlate_each (places->correlate, instruction, from_ns, to_ns, from_memory, &ask);
  if (places->in_store)
    *places->in_store = 1;
  if (rc == 0 && places->store)
    rc = ctl_store_each (places->store, instruction, from_ns, to_ns, from_store, &ask);
  free (ask.seen.ids);
  return rc;
}

typedef struct {
  const char *prefix;
  size_t size;
  ctl_execution_t *found;
  uint32_t count;
} search_t;

static int compare (ctl_execution_t **execution_p, void *arg)
{
  search_t *self = arg;
  char hex[2 * WEFT_TASK_ID_SIZE];
  weft_hex_put (hex, (*execution_p)->task, WEFT_TASK_ID_SIZE);
  if (memcmp (hex, self->prefix, self->size) != 0)
    return 0;
  self->count++;
  if (!self->found) {
    self->found = *execution_p;
    *execution_p = NULL;
  }
  return 0;
}

static int prefix_check (const char *prefix)
{
  size_t size = strlen (prefix);
  if (size < 4 || size > 2 * WEFT_TASK_ID_SIZE || strspn (prefix, "0123456789abcdef") != size)
    return WEFT_E_MALFORMED;
  return 0;
}

/* In memory all that begin so are looked at. The store has an index. */
static int search_all (const ctl_places_t *places, search_t *search, ctl_execution_t **ret_stored,
                       uint32_t *ret_stored_count)
{
  uint8_t low[WEFT_TASK_ID_SIZE], high[WEFT_TASK_ID_SIZE];
  char digits[2 * WEFT_TASK_ID_SIZE];
  memset (digits, '0', sizeof digits);
  memcpy (digits, search->prefix, search->size);
  weft_hex_get (low, digits, WEFT_TASK_ID_SIZE);
  memset (digits + search->size, 'f', sizeof digits - search->size);
  weft_hex_get (high, digits, WEFT_TASK_ID_SIZE);
  int rc = ctl_correlate_between (places->correlate, low, high, compare, search);
  if (rc < 0 || !places->store)
    return rc;
  rc = ctl_store_find (places->store, search->prefix, ret_stored, ret_stored_count);
  if (rc == 0)
    *ret_stored_count = 1;
  return rc == WEFT_E_NOT_FOUND || rc == WEFT_E_BUSY ? 0 : rc;
}

int ctl_questions_find (const ctl_places_t *places, const char *prefix, ctl_execution_t **ret_execution,
                        uint32_t *ret_count)
{
  int rc = prefix_check (prefix);
  if (rc < 0)
    return rc;
  search_t search = {.prefix = prefix, .size = strlen (prefix)};
  ctl_execution_t *stored = NULL;
  uint32_t stored_count = 0;
  rc = search_all (places, &search, &stored, &stored_count);
  int same = search.found && stored && memcmp (search.found->task, stored->task, WEFT_TASK_ID_SIZE) == 0;
  uint32_t all = search.count + stored_count - (same ? 1 : 0);
  if (rc == 0 && all != 1)
    rc = all ? WEFT_E_BUSY : WEFT_E_NOT_FOUND;
  if (rc == 0 && same) {
    rc = ctl_execution_merge (search.found, stored);
  } else if (rc == 0 && stored) {
    search.found = stored;
    stored = NULL;
  }
  if (rc == 0) {
    *ret_execution = search.found;
    search.found = NULL;
  } else if (rc == WEFT_E_BUSY) {
    *ret_count = all;
  }
  ctl_execution_destroy (&search.found);
  ctl_execution_destroy (&stored);
  return rc;
}
