/* SPDX-License-Identifier: Apache-2.0 */
/* How the store is read: counted by its bursts, which are compact; a task by its
 * number or its id. */
#include <stdlib.h>
#include <string.h>

#include "../../common/cursor.h"
#include "../../common/ids.h"
#include "../../common/status.h"
#include "store_db.h"

#define PREFIX_MIN 4u

static int64_t bound (uint64_t ns)
{
  return ns > INT64_MAX ? INT64_MAX : (int64_t) ns;
}

/* *ret_execution NULL: it is gone, or damaged: one bad page must not hide all others. */
static int load (ctl_store_t *self, int64_t number, int late, ctl_execution_t **ret_execution)
{
  *ret_execution = NULL;
  return ctl_store_load (self, number, late, ret_execution) == WEFT_E_NOMEM ? WEFT_E_NOMEM : 0;
}

/* One of a walk over the summaries. */
typedef struct {
  ctl_summary_t summary;
  int64_t number;
  int late;
} entry_t;
/* What is not 0 ends the walk. */
typedef int (entry_fn) (const entry_t *entry, void *arg);

/* Those of one burst that are in the window. */
static int walk_burst (const ctl_store_t *self, sqlite3_stmt *statement, uint64_t from_ns, uint64_t to_ns,
                       entry_fn *fn, void *arg)
{
  entry_t entry = {.number = sqlite3_column_int64 (statement, 0)};
  const uint8_t *ids = sqlite3_column_blob (statement, 1), *sums = sqlite3_column_blob (statement, 2);
  uint32_t count = (uint32_t) sqlite3_column_bytes (statement, 1) / WEFT_TASK_ID_SIZE;
  uint32_t summed = (uint32_t) sqlite3_column_bytes (statement, 2) / CTL_SUMMARY_SIZE;
  int status = 0;
  if (!ids || !sums)
    return 0;
  for (uint32_t i = 0; i < count && i < summed && status == 0; i++, entry.number++) {
    ctl_summary_get (ids + (size_t) i * WEFT_TASK_ID_SIZE, sums + (size_t) i * CTL_SUMMARY_SIZE, self->names,
                     &entry.summary);
    entry.late = (sums[(size_t) i * CTL_SUMMARY_SIZE + CTL_SUMMARY_FLAGS] & CTL_SUMMARY_LATE) != 0;
    if (entry.summary.start_ns >= from_ns && entry.summary.start_ns <= to_ns)
      status = fn (&entry, arg);
  }
  return status;
}

/* A burst that is damaged is passed over. */
static int walk (ctl_store_t *self, uint64_t from_ns, uint64_t to_ns, entry_fn *fn, void *arg)
{
  int rc, status = ctl_store_flush (self);
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_BURSTS];
  sqlite3_bind_int64 (statement, 1, bound (from_ns));
  sqlite3_bind_int64 (statement, 2, bound (to_ns));
  while (status == 0 && (rc = sqlite3_step (statement)) != SQLITE_DONE)
    status =
        rc == SQLITE_ROW ? walk_burst (self, statement, from_ns, to_ns, fn, arg) : ctl_store_fail (self, rc);
  sqlite3_reset (statement);
  return status;
}

/* ---- counted ------------------------------------------------------------------ */

typedef struct {
  ctl_store_t *self;
  ctl_store_summary_fn *wants;
  int (*fn) (ctl_execution_t **execution_p, void *arg);
  void *arg;
} skim_t;

static int skim_one (const entry_t *entry, void *arg)
{
  const skim_t *skim = arg;
  int rc = skim->wants (&entry->summary, skim->arg);
  if (rc <= 0)
    return rc;
  ctl_execution_t *execution;
  rc = load (skim->self, entry->number, entry->late, &execution);
  if (rc == 0 && execution)
    rc = skim->fn (&execution, skim->arg);
  ctl_execution_destroy (&execution);
  return rc;
}

int ctl_store_skim (ctl_store_t *self, uint64_t from_ns, uint64_t to_ns, ctl_store_summary_fn *wants,
                    int (*fn) (ctl_execution_t **execution_p, void *arg), void *arg)
{
  skim_t skim = {self, wants, fn, arg};
  return walk (self, from_ns, to_ns, skim_one, &skim);
}

uint64_t ctl_store_count (ctl_store_t *self, uint64_t from_ns, uint64_t to_ns)
{
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_IN_BURSTS];
  sqlite3_bind_int64 (statement, 1, bound (from_ns));
  sqlite3_bind_int64 (statement, 2, bound (to_ns));
  uint64_t count =
      sqlite3_step (statement) == SQLITE_ROW ? (uint64_t) sqlite3_column_int64 (statement, 0) : 0;
  sqlite3_reset (statement);
  return count + (self->tail.dirty ? self->tail.count : 0);
}

/* ---- each ----------------------------------------------------------------------- */

typedef struct {
  uint64_t start_ns;
  int64_t number;
  int late;
  uint8_t task[WEFT_TASK_ID_SIZE];
} pick_t;

typedef struct {
  uint32_t instruction;
  pick_t *pick;
  size_t count, capacity;
} picks_t;

static int pick_one (const entry_t *entry, void *arg)
{
  picks_t *picks = arg;
  if (picks->instruction && entry->summary.instruction != picks->instruction)
    return 0;
  if (picks->count == picks->capacity) {
    size_t capacity = picks->capacity ? picks->capacity * 2 : 256;
    pick_t *grown = realloc (picks->pick, capacity * sizeof *grown);
    if (!grown)
      return WEFT_E_NOMEM;
    picks->pick = grown;
    picks->capacity = capacity;
  }
  pick_t *pick = &picks->pick[picks->count++];
  *pick = (pick_t){.start_ns = entry->summary.start_ns, .number = entry->number, .late = entry->late};
  memcpy (pick->task, entry->summary.task, sizeof pick->task);
  return 0;
}

/* Newest first, of one moment by id. */
static int compare_picks (const void *left, const void *right)
{
  const pick_t *a = left, *b = right;
  if (a->start_ns != b->start_ns)
    return a->start_ns > b->start_ns ? -1 : 1;
  return memcmp (a->task, b->task, sizeof a->task);
}

int ctl_store_each (ctl_store_t *self, uint32_t instruction, uint64_t from_ns, uint64_t to_ns,
                    int (*fn) (ctl_execution_t **execution_p, void *arg), void *arg)
{
  picks_t picks = {.instruction = instruction};
  int status = walk (self, from_ns, to_ns, pick_one, &picks);
  if (picks.count)
    qsort (picks.pick, picks.count, sizeof *picks.pick, compare_picks);
  for (size_t i = 0; i < picks.count && status == 0; i++) {
    ctl_execution_t *execution;
    status = load (self, picks.pick[i].number, picks.pick[i].late, &execution);
    if (status == 0 && execution)
      status = fn (&execution, arg);
    ctl_execution_destroy (&execution);
  }
  free (picks.pick);
  return status;
}

/* ---- by id ---------------------------------------------------------------------- */

/* The lowest and the highest task id that begin with `prefix`. */
static int range_of (const char *prefix, uint8_t low[WEFT_TASK_ID_SIZE], uint8_t high[WEFT_TASK_ID_SIZE])
{
  char digits[2 * WEFT_TASK_ID_SIZE];
  size_t size = strlen (prefix);
  if (size < PREFIX_MIN || size > sizeof digits)
    return WEFT_E_RANGE;
  memset (digits, '0', sizeof digits);
  for (size_t i = 0; i < size; i++)
    digits[i] = prefix[i];
  int rc = weft_hex_get (low, digits, WEFT_TASK_ID_SIZE);
  memset (digits + size, 'f', sizeof digits - size);
  return rc ? rc : weft_hex_get (high, digits, WEFT_TASK_ID_SIZE);
}

typedef struct {
  uint32_t count;
  uint8_t task[WEFT_TASK_ID_SIZE]; /* the last */
} found_t;

/* The ids of a burst between two, whose first 8 bytes are compared first: they are many. */
static void find_in (sqlite3_stmt *statement, const uint8_t *low, const uint8_t *high, found_t *found)
{
  const uint8_t *ids = sqlite3_column_blob (statement, 1);
  uint32_t count = ids ? (uint32_t) sqlite3_column_bytes (statement, 1) / WEFT_TASK_ID_SIZE : 0;
  uint64_t least = weft_load_u64 (low), span = weft_load_u64 (high) - least;
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t *id = ids + (size_t) i * WEFT_TASK_ID_SIZE;
    if (weft_load_u64 (id) - least <= span && memcmp (id, low, WEFT_TASK_ID_SIZE) >= 0 &&
        memcmp (id, high, WEFT_TASK_ID_SIZE) <= 0) {
      found->count++;
      memcpy (found->task, id, WEFT_TASK_ID_SIZE);
    }
  }
}

static int find_all (ctl_store_t *self, const uint8_t *low, const uint8_t *high, found_t *found)
{
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_IDS];
  int rc, status = ctl_store_flush (self);
  while (status == 0 && (rc = sqlite3_step (statement)) != SQLITE_DONE) {
    if (rc == SQLITE_ROW)
      find_in (statement, low, high, found);
    else
      status = ctl_store_fail (self, rc);
  }
  sqlite3_reset (statement);
  return status;
}

/* Of a whole id there is one at most, and memory knows where. */
static int find_whole (ctl_store_t *self, const uint8_t *task, ctl_execution_t **ret_execution)
{
  int64_t number = 0;
  int late = 0;
  int status = ctl_store_number_of (self, task, &number, &late);
  if (status <= 0)
    return status < 0 ? status : WEFT_E_NOT_FOUND;
  return ctl_store_load (self, number, late, ret_execution);
}

static int find_prefix (ctl_store_t *self, const uint8_t *low, const uint8_t *high,
                        ctl_execution_t **ret_execution, uint32_t *ret_count)
{
  found_t found = {0};
  int status = find_all (self, low, high, &found);
  if (status == 0 && found.count > 1)
    *ret_count = found.count;
  if (status || found.count != 1)
    return status ? status : found.count ? WEFT_E_BUSY : WEFT_E_NOT_FOUND;
  return find_whole (self, found.task, ret_execution);
}

int ctl_store_find (ctl_store_t *self, const char *prefix, ctl_execution_t **ret_execution,
                    uint32_t *ret_count)
{
  uint8_t low[WEFT_TASK_ID_SIZE], high[WEFT_TASK_ID_SIZE];
  int status = range_of (prefix, low, high);
  if (status == 0)
    status = memcmp (low, high, sizeof low) == 0 ? find_whole (self, low, ret_execution)
                                                 : find_prefix (self, low, high, ret_execution, ret_count);
  if (status == 0)
    *ret_count = 1;
  return status;
}

uint32_t ctl_store_last_instruction (ctl_store_t *self)
{
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_GET_FACT];
  sqlite3_bind_text (statement, 1, "instruction", -1, SQLITE_STATIC);
  uint32_t last = sqlite3_step (statement) == SQLITE_ROW ? (uint32_t) sqlite3_column_int64 (statement, 0) : 0;
  sqlite3_reset (statement);
  return last > self->last_instruction ? last : self->last_instruction;
}
