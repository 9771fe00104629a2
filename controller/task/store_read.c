/* SPDX-License-Identifier: Apache-2.0 */
/* How the store is read: counted by its bursts, which are compact; a task by its
 * number or its id. */
#include <stdlib.h>
#include <string.h>

#include "../../common/ids.h"
#include "../../common/status.h"
#include "store_db.h"

#define PREFIX_MIN 4u

static int64_t bound (uint64_t ns)
{
  return ns > INT64_MAX ? INT64_MAX : (int64_t) ns;
}

int ctl_store_unpack (sqlite3_stmt *statement, ctl_execution_t **ret_execution)
{
  const void *data = sqlite3_column_blob (statement, 0);
  int size = sqlite3_column_bytes (statement, 0);
  return data ? ctl_execution_unpack (data, (size_t) size, ret_execution) : WEFT_E_MALFORMED;
}

/* *ret_execution NULL: it is gone, or damaged: one bad page must not hide all others. */
static int load (ctl_store_t *self, int64_t number, ctl_execution_t **ret_execution)
{
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_GET];
  ctl_execution_t *execution = NULL;
  sqlite3_bind_int64 (statement, 1, number);
  int rc = sqlite3_step (statement), status = 0;
  if (rc == SQLITE_ROW)
    status = ctl_store_unpack (statement, &execution);
  *ret_execution = execution;
  sqlite3_reset (statement);
  return status == WEFT_E_NOMEM ? status : 0;
}

/* What a walk over the summaries does with each; what is not 0 ends it. */
typedef int (entry_fn) (const uint8_t *entry, int64_t number, void *arg);

/* Entries of bursts that overlap the window; a burst that is damaged is passed over. */
static int walk (ctl_store_t *self, uint64_t from_ns, uint64_t to_ns, entry_fn *fn, void *arg)
{
  int rc, status = ctl_store_flush (self);
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_BURSTS];
  sqlite3_bind_int64 (statement, 1, bound (from_ns));
  sqlite3_bind_int64 (statement, 2, bound (to_ns));
  while (status == 0 && (rc = sqlite3_step (statement)) != SQLITE_DONE) {
    if (rc != SQLITE_ROW) {
      status = ctl_store_fail (self, rc);
      break;
    }
    int64_t first = sqlite3_column_int64 (statement, 0);
    const uint8_t *sums = sqlite3_column_blob (statement, 1);
    uint32_t count = (uint32_t) sqlite3_column_bytes (statement, 1) / CTL_SUMMARY_SIZE;
    for (uint32_t i = 0; i < count && status == 0; i++)
      status = fn (sums + (size_t) i * CTL_SUMMARY_SIZE, first + i, arg);
  }
  sqlite3_reset (statement);
  return status;
}

/* ---- counted ------------------------------------------------------------------ */

typedef struct {
  ctl_store_t *self;
  uint64_t from_ns, to_ns;
  ctl_store_summary_fn *wants;
  int (*fn) (ctl_execution_t **execution_p, void *arg);
  void *arg;
} skim_t;

static int skim_one (const uint8_t *entry, int64_t number, void *arg)
{
  const skim_t *skim = arg;
  ctl_summary_t summary;
  ctl_summary_get (entry, skim->self->names, &summary);
  if (summary.start_ns < skim->from_ns || summary.start_ns > skim->to_ns)
    return 0;
  int rc = skim->wants (&summary, skim->arg);
  if (rc <= 0)
    return rc;
  ctl_execution_t *execution = NULL;
  rc = load (skim->self, number, &execution);
  if (rc == 0 && execution)
    rc = skim->fn (&execution, skim->arg);
  ctl_execution_destroy (&execution);
  return rc;
}

int ctl_store_skim (ctl_store_t *self, uint64_t from_ns, uint64_t to_ns, ctl_store_summary_fn *wants,
                    int (*fn) (ctl_execution_t **execution_p, void *arg), void *arg)
{
  skim_t skim = {self, from_ns, to_ns, wants, fn, arg};
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
  uint8_t task[WEFT_TASK_ID_SIZE];
} pick_t;

typedef struct {
  ctl_store_t *self;
  uint32_t instruction;
  uint64_t from_ns, to_ns;
  pick_t *pick;
  size_t count, capacity;
} picks_t;

static int pick_one (const uint8_t *entry, int64_t number, void *arg)
{
  picks_t *picks = arg;
  ctl_summary_t summary;
  ctl_summary_get (entry, picks->self->names, &summary);
  if ((picks->instruction && summary.instruction != picks->instruction) ||
      summary.start_ns < picks->from_ns || summary.start_ns > picks->to_ns)
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
  *pick = (pick_t){.start_ns = summary.start_ns, .number = number};
  memcpy (pick->task, summary.task, sizeof pick->task);
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
  picks_t picks = {.self = self, .instruction = instruction, .from_ns = from_ns, .to_ns = to_ns};
  int status = walk (self, from_ns, to_ns, pick_one, &picks);
  if (picks.count)
    qsort (picks.pick, picks.count, sizeof *picks.pick, compare_picks);
  for (size_t i = 0; i < picks.count && status == 0; i++) {
    ctl_execution_t *execution = NULL;
    status = load (self, picks.pick[i].number, &execution);
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

static int count_in (ctl_store_t *self, const uint8_t *low, const uint8_t *high, uint32_t *ret_count)
{
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_COUNT];
  sqlite3_bind_blob (statement, 1, low, WEFT_TASK_ID_SIZE, SQLITE_STATIC);
  sqlite3_bind_blob (statement, 2, high, WEFT_TASK_ID_SIZE, SQLITE_STATIC);
  int rc = sqlite3_step (statement);
  if (rc == SQLITE_ROW)
    *ret_count = (uint32_t) sqlite3_column_int64 (statement, 0);
  return ctl_store_done (self, CTL_STATEMENT_COUNT, rc);
}

int ctl_store_find (ctl_store_t *self, const char *prefix, ctl_execution_t **ret_execution,
                    uint32_t *ret_count)
{
  uint8_t low[WEFT_TASK_ID_SIZE], high[WEFT_TASK_ID_SIZE];
  uint32_t count = 0;
  int status = range_of (prefix, low, high);
  if (status == 0)
    status = count_in (self, low, high, &count);
  if (status == 0 && count > 1)
    *ret_count = count;
  if (status || count != 1)
    return status ? status : count ? WEFT_E_BUSY : WEFT_E_NOT_FOUND;
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_FIND];
  sqlite3_bind_blob (statement, 1, low, sizeof low, SQLITE_STATIC);
  sqlite3_bind_blob (statement, 2, high, sizeof high, SQLITE_STATIC);
  int rc = sqlite3_step (statement);
  status = rc == SQLITE_ROW    ? ctl_store_unpack (statement, ret_execution)
           : rc == SQLITE_DONE ? WEFT_E_NOT_FOUND
                               : ctl_store_fail (self, rc);
  sqlite3_reset (statement);
  sqlite3_clear_bindings (statement);
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
