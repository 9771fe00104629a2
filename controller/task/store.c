/* SPDX-License-Identifier: Apache-2.0 */
/* How the store is written, and what goes when it is full or old. */
#include "store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/limits.h"
#include "../../common/status.h"
#include "store_db.h"

int ctl_store_status (int rc)
{
  switch (rc & 0xff) {
  case SQLITE_OK:
  case SQLITE_ROW:
  case SQLITE_DONE:
    return 0;
  case SQLITE_NOMEM:
    return WEFT_E_NOMEM;
  case SQLITE_FULL:
    return WEFT_E_FULL;
  case SQLITE_PERM:
  case SQLITE_READONLY:
  case SQLITE_AUTH:
    return WEFT_E_DENIED;
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return WEFT_E_BUSY;
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
    return WEFT_E_MALFORMED;
  default:
    return WEFT_E_IO;
  }
}

/* SQLite knows ENOSPC as a full disk; a file size limit and a quota are the same to us, and of its
 * log it keeps no error number but the kernel's last. */
int ctl_store_fail (ctl_store_t *self, int rc)
{
  int status = ctl_store_status (rc);
  int error = errno;
  if (status == WEFT_E_IO && (error == ENOSPC || error == EFBIG || error == EDQUOT))
    status = WEFT_E_FULL;
  snprintf (self->why, sizeof self->why, "%s",
            status == WEFT_E_FULL ? "disk full" : sqlite3_errmsg (self->db));
  return status;
}

int ctl_store_run (ctl_store_t *self, const char *sql)
{
  int rc = sqlite3_exec (self->db, sql, NULL, NULL, NULL);
  return rc == SQLITE_OK ? 0 : ctl_store_fail (self, rc);
}

int ctl_store_done (ctl_store_t *self, ctl_statement_t statement, int rc)
{
  int status = rc == SQLITE_DONE || rc == SQLITE_ROW ? 0 : ctl_store_fail (self, rc);
  sqlite3_reset (self->statement[statement]);
  return status;
}

void ctl_store_destroy (ctl_store_t **self_p)
{
  ctl_store_t *self = *self_p;
  if (!self)
    return;
  if (self->begun)
    ctl_store_commit (self);
  for (size_t i = 0; i < CTL_STATEMENTS; i++)
    sqlite3_finalize (self->statement[i]);
  sqlite3_close (self->db);
  ctl_names_destroy (&self->names);
  ctl_id_table_clear (&self->table);
  ctl_pack_destroy (&self->fill);
  free (self->seen.bytes.data);
  free (self);
  *self_p = NULL;
}

const char *ctl_store_why (const ctl_store_t *self)
{
  return self->why;
}

/* ---- the tail -------------------------------------------------------------------- */

/* D3: a table with a gap would shift every number behind it; then it is no table of ours. */
int ctl_store_load_names (ctl_store_t *self)
{
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_NAMES];
  int rc, status = 0;
  ctl_names_destroy (&self->names);
  self->names = ctl_names_new ();
  self->names_saved = 2; /* what every pool begins with */
  if (!self->names)
    return WEFT_E_NOMEM;
  while (status == 0 && (rc = sqlite3_step (statement)) != SQLITE_DONE) {
    uint32_t id = 0;
    const char *text = rc == SQLITE_ROW ? (const char *) sqlite3_column_text (statement, 1) : NULL;
    status = rc != SQLITE_ROW ? ctl_store_fail (self, rc)
             : text           ? ctl_names_id (self->names, text, strlen (text), &id)
                              : WEFT_E_MALFORMED;
    if (status == 0 && (id != self->names_saved || sqlite3_column_int64 (statement, 0) != id))
      status = WEFT_E_MALFORMED;
    self->names_saved++;
  }
  if (status == WEFT_E_MALFORMED && !self->why[0])
    snprintf (self->why, sizeof self->why, "its table of names is damaged");
  sqlite3_reset (statement);
  self->names_seen = self->names_committed = self->names_saved;
  return status;
}

static void empty_tail (ctl_burst_t *tail, int64_t first)
{
  tail->first = first;
  tail->count = 0;
  tail->from_ns = UINT64_MAX;
  tail->until_ns = tail->written_ns = 0;
  tail->dirty = 0;
}

/* A burst that was damaged does not give its numbers away again. */
static int begin_behind_blocks (ctl_store_t *self)
{
  ctl_burst_t *tail = &self->tail;
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_BEHIND];
  int rc = sqlite3_step (statement);
  int64_t behind = rc == SQLITE_ROW ? sqlite3_column_int64 (statement, 0) : 0;
  if (behind > tail->first + tail->count)
    empty_tail (tail, behind);
  return ctl_store_done (self, CTL_STATEMENT_BEHIND, rc);
}

/* The burst in a row of BURST_OF, if it is one to go on with. */
static int take_tail (ctl_burst_t *tail, sqlite3_stmt *statement)
{
  uint32_t count = (uint32_t) sqlite3_column_int64 (statement, 1);
  const void *ids = sqlite3_column_blob (statement, 5), *sums = sqlite3_column_blob (statement, 6);
  if (!count || count >= CTL_BURST_JOIN || !ids || !sums ||
      sqlite3_column_bytes (statement, 5) != (int) (count * WEFT_TASK_ID_SIZE) ||
      sqlite3_column_bytes (statement, 6) != (int) (count * CTL_SUMMARY_SIZE))
    return 0;
  tail->count = count;
  tail->from_ns = (uint64_t) sqlite3_column_int64 (statement, 2);
  tail->until_ns = (uint64_t) sqlite3_column_int64 (statement, 3);
  tail->written_ns = (uint64_t) sqlite3_column_int64 (statement, 4);
  memcpy (tail->ids, ids, count * WEFT_TASK_ID_SIZE);
  memcpy (tail->sums, sums, count * CTL_SUMMARY_SIZE);
  return 1;
}

int ctl_store_load_tail (ctl_store_t *self)
{
  ctl_burst_t *tail = &self->tail;
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_BURST_OF];
  sqlite3_bind_int64 (statement, 1, INT64_MAX);
  int rc = sqlite3_step (statement);
  ctl_pack_empty (self->fill);
  ctl_block_forget (self);
  empty_tail (tail, rc == SQLITE_ROW ? sqlite3_column_int64 (statement, 0) : 1);
  if (rc == SQLITE_ROW && !take_tail (tail, statement))
    tail->first += (uint32_t) sqlite3_column_int64 (statement, 1);
  int status = ctl_store_done (self, CTL_STATEMENT_BURST_OF, rc);
  return status ? status : begin_behind_blocks (self);
}

int ctl_store_load_table (ctl_store_t *self)
{
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_IDS];
  int64_t end = self->tail.first + self->tail.count;
  int rc, status = 0;
  self->oldest = end;
  while (status == 0 && (rc = sqlite3_step (statement)) != SQLITE_DONE) {
    if (rc != SQLITE_ROW) {
      status = ctl_store_fail (self, rc);
      break;
    }
    int64_t first = sqlite3_column_int64 (statement, 0);
    const uint8_t *ids = sqlite3_column_blob (statement, 1);
    uint32_t count = ids ? (uint32_t) sqlite3_column_bytes (statement, 1) / WEFT_TASK_ID_SIZE : 0;
    self->oldest = first < self->oldest ? first : self->oldest;
    for (uint32_t i = 0; i < count && status == 0; i++)
      status =
          ctl_id_table_add (&self->table, ids + (size_t) i * WEFT_TASK_ID_SIZE, first + i, self->oldest, end);
  }
  sqlite3_reset (statement);
  return status;
}

static int flush_names (ctl_store_t *self)
{
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_ADD_NAME];
  int status = 0;
  for (; self->names_saved < self->names_seen && status == 0; self->names_saved++) {
    sqlite3_bind_int64 (statement, 1, self->names_saved);
    sqlite3_bind_text (statement, 2, ctl_names_text (self->names, self->names_saved), -1, SQLITE_STATIC);
    status = ctl_store_done (self, CTL_STATEMENT_ADD_NAME, sqlite3_step (statement));
  }
  return status;
}

static int flush_instruction (ctl_store_t *self)
{
  if (self->last_instruction <= self->saved_instruction)
    return 0;
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_SET_FACT];
  sqlite3_bind_text (statement, 1, "instruction", -1, SQLITE_STATIC);
  sqlite3_bind_int64 (statement, 2, self->last_instruction);
  int status = ctl_store_done (self, CTL_STATEMENT_SET_FACT, sqlite3_step (statement));
  if (status == 0)
    self->saved_instruction = self->last_instruction;
  return status;
}

int ctl_store_flush (ctl_store_t *self)
{
  ctl_burst_t *tail = &self->tail;
  if (!tail->dirty)
    return 0;
  int status = ctl_block_flush (self);
  if (status == 0)
    status = flush_names (self);
  if (status == 0)
    status = flush_instruction (self);
  if (status)
    return status;
  tail->written_ns = self->carried_ns ? self->carried_ns : weft_clock_ns (CLOCK_REALTIME);
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_ADD_BURST];
  sqlite3_bind_int64 (statement, 1, tail->first);
  sqlite3_bind_int64 (statement, 2, tail->count);
  sqlite3_bind_int64 (statement, 3, (int64_t) tail->from_ns);
  sqlite3_bind_int64 (statement, 4, (int64_t) tail->until_ns);
  sqlite3_bind_int64 (statement, 5, (int64_t) tail->written_ns);
  sqlite3_bind_blob (statement, 6, tail->ids, (int) (tail->count * WEFT_TASK_ID_SIZE), SQLITE_STATIC);
  sqlite3_bind_blob (statement, 7, tail->sums, (int) (tail->count * CTL_SUMMARY_SIZE), SQLITE_STATIC);
  status = ctl_store_done (self, CTL_STATEMENT_ADD_BURST, sqlite3_step (statement));
  if (status == 0)
    tail->dirty = 0;
  return status;
}

/* The next one begins where this one ends. */
static int next_burst (ctl_store_t *self)
{
  int status = ctl_store_flush (self);
  if (status == 0)
    empty_tail (&self->tail, self->tail.first + self->tail.count);
  return status;
}

/* ---- writing ------------------------------------------------------------------- */

static int summarise (ctl_store_t *self, const ctl_execution_t *execution, uint8_t out[CTL_SUMMARY_SIZE])
{
  ctl_summary_t summary;
  ctl_summary_of (execution, &summary);
  int rc = ctl_summary_put (&summary, self->names, execution->text ? NULL : &self->lately, out);
  uint32_t most = ctl_names_count (self->names);
  self->names_seen = most > self->names_seen ? most : self->names_seen;
  if (summary.instruction > self->last_instruction)
    self->last_instruction = summary.instruction;
  return rc;
}

static void widen (ctl_burst_t *tail, const ctl_execution_t *execution)
{
  tail->from_ns = execution->start_ns < tail->from_ns ? execution->start_ns : tail->from_ns;
  tail->until_ns = execution->start_ns > tail->until_ns ? execution->start_ns : tail->until_ns;
  tail->dirty = 1;
}

/* The burst of a number before the tail: its first and how many ids and summaries it has. BURST_OF is on its
 * row, for the caller to reset. WEFT_E_NOT_FOUND. */
static int burst_of (ctl_store_t *self, int64_t number, int64_t *ret_first)
{
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_BURST_OF];
  sqlite3_bind_int64 (statement, 1, number);
  int rc = sqlite3_step (statement);
  if (rc != SQLITE_ROW)
    return rc == SQLITE_DONE ? WEFT_E_NOT_FOUND : ctl_store_fail (self, rc);
  int64_t place = number - sqlite3_column_int64 (statement, 0);
  *ret_first = sqlite3_column_int64 (statement, 0);
  return place < sqlite3_column_bytes (statement, 5) / (int64_t) WEFT_TASK_ID_SIZE &&
                 place < sqlite3_column_bytes (statement, 6) / (int64_t) CTL_SUMMARY_SIZE
             ? 0
             : WEFT_E_NOT_FOUND;
}

/* 1: that is the number of `task`, and *ret_late what its summary says. 0: it is not. */
static int is_number_of (ctl_store_t *self, const uint8_t *task, int64_t number, int *ret_late)
{
  const ctl_burst_t *tail = &self->tail;
  int64_t first = 0;
  if (number < self->oldest)
    return 0;
  if (number >= tail->first) {
    *ret_late = (tail->sums[number - tail->first][CTL_SUMMARY_FLAGS] & CTL_SUMMARY_LATE) != 0;
    return memcmp (tail->ids[number - tail->first], task, WEFT_TASK_ID_SIZE) == 0;
  }
  int rc = burst_of (self, number, &first);
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_BURST_OF];
  if (rc == 0) {
    const uint8_t *ids = sqlite3_column_blob (statement, 5), *sums = sqlite3_column_blob (statement, 6);
    if (ids && sums) {
      rc = memcmp (ids + (number - first) * WEFT_TASK_ID_SIZE, task, WEFT_TASK_ID_SIZE) == 0;
      *ret_late = (sums[(number - first) * CTL_SUMMARY_SIZE + CTL_SUMMARY_FLAGS] & CTL_SUMMARY_LATE) != 0;
    }
  }
  sqlite3_reset (statement);
  return rc == WEFT_E_NOT_FOUND || rc == WEFT_E_MALFORMED ? 0 : rc;
}

int ctl_store_number_of (ctl_store_t *self, const uint8_t *task, int64_t *ret_number, int *ret_late)
{
  ctl_id_search_t search = ctl_id_table_search (&self->table, task);
  int64_t end = self->tail.first + self->tail.count;
  int rc = 0;
  while (rc == 0 && ctl_id_table_next (&self->table, &search, end, ret_number))
    rc = is_number_of (self, task, *ret_number, ret_late);
  return rc;
}

/* The summary of a task whose burst is written. */
static int rewrite_summary (ctl_store_t *self, int64_t number, const uint8_t sum[CTL_SUMMARY_SIZE],
                            uint64_t start_ns)
{
  int64_t first = 0;
  int status = burst_of (self, number, &first);
  sqlite3_reset (self->statement[CTL_STATEMENT_BURST_OF]);
  if (status)
    return status;
  sqlite3_blob *blob = NULL;
  int rc = sqlite3_blob_open (self->db, "main", "burst", "sums", first, 1, &blob);
  if (rc == SQLITE_OK)
    rc = sqlite3_blob_write (blob, sum, CTL_SUMMARY_SIZE, (int) ((number - first) * CTL_SUMMARY_SIZE));
  if (rc != SQLITE_OK)
    status = ctl_store_fail (self, rc);
  sqlite3_blob_close (blob);
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_BOUNDS];
  sqlite3_bind_int64 (statement, 1, first);
  sqlite3_bind_int64 (statement, 2, (int64_t) start_ns);
  sqlite3_bind_int64 (statement, 3, (int64_t) weft_clock_ns (CLOCK_REALTIME));
  return status ? status : ctl_store_done (self, CTL_STATEMENT_BOUNDS, sqlite3_step (statement));
}

static int replace_summary (ctl_store_t *self, int64_t number, const ctl_execution_t *execution)
{
  uint8_t sum[CTL_SUMMARY_SIZE];
  ctl_burst_t *tail = &self->tail;
  int status = summarise (self, execution, sum);
  sum[CTL_SUMMARY_FLAGS] |= CTL_SUMMARY_LATE;
  if (status == 0 && number >= tail->first) {
    memcpy (tail->sums[number - tail->first], sum, sizeof sum);
    widen (tail, execution);
    return 0;
  }
  if (status == 0)
    status = flush_names (self);
  return status ? status : rewrite_summary (self, number, sum, execution->start_ns);
}

static int write_late (ctl_store_t *self, int64_t number, const ctl_execution_t *execution)
{
  void *data;
  size_t size;
  int rc = ctl_execution_pack (execution, &data, &size);
  if (rc)
    return rc;
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_ADD_LATE];
  sqlite3_bind_int64 (statement, 1, number);
  sqlite3_bind_blob64 (statement, 2, data, size, SQLITE_STATIC);
  rc = ctl_store_done (self, CTL_STATEMENT_ADD_LATE, sqlite3_step (statement));
  sqlite3_clear_bindings (statement);
  free (data);
  return rc ? rc : replace_summary (self, number, execution);
}

static int copy_of (const ctl_execution_t *execution, ctl_execution_t **ret_copy)
{
  void *data;
  size_t size;
  int rc = ctl_execution_pack (execution, &data, &size);
  if (rc)
    return rc;
  rc = ctl_execution_unpack (data, size, ret_copy);
  free (data);
  return rc;
}

/* S3. What cannot be read any more is replaced: what is new is sound. */
static int merge (ctl_store_t *self, const ctl_execution_t *execution, int64_t number, int late)
{
  ctl_execution_t *stored = NULL, *copy = NULL;
  int rc = ctl_store_load (self, number, late, &stored);
  if (rc == WEFT_E_NOT_FOUND || rc == WEFT_E_MALFORMED || rc == WEFT_E_VERSION)
    rc = 0;
  if (rc == 0 && stored)
    rc = copy_of (execution, &copy);
  if (rc == 0 && stored)
    rc = ctl_execution_merge (stored, copy);
  if (rc == 0)
    rc = write_late (self, number, stored ? stored : execution);
  ctl_execution_destroy (&copy);
  ctl_execution_destroy (&stored);
  return rc;
}

/* It is in the fill already. */
static int append (ctl_store_t *self, const ctl_execution_t *execution)
{
  ctl_burst_t *tail = &self->tail;
  int64_t number = tail->first + tail->count;
  int rc = summarise (self, execution, tail->sums[tail->count]);
  if (rc == 0)
    rc = ctl_id_table_add (&self->table, execution->task, number, self->oldest, number + 1);
  if (rc)
    return rc;
  memcpy (tail->ids[tail->count++], execution->task, WEFT_TASK_ID_SIZE);
  widen (tail, execution);
  return 0;
}

/* Whether the task is there is asked when it is packed: by then its place in the table has come. Nearly none
 * is, and what was packed is taken back then. */
int ctl_store_put_one (ctl_store_t *self, const ctl_execution_t *execution)
{
  int64_t number = 0;
  int late = 0;
  ctl_id_table_prefetch (&self->table, execution->task);
  int rc = self->tail.count == CTL_BURST_MAX ? next_burst (self) : 0;
  if (rc == 0)
    rc = ctl_block_add (self, execution);
  if (rc)
    return rc;
  rc = ctl_store_number_of (self, execution->task, &number, &late);
  if (rc == 0)
    return append (self, execution);
  ctl_pack_take_back (self->fill);
  return rc < 0 ? rc : merge (self, execution, number, late);
}

/* After some errors SQLite has rolled back by itself; a second ROLLBACK is harmless. Memory is as
 * ahead as it was: what it knows is read anew. */
static void roll_back (ctl_store_t *self)
{
  char why[CTL_STORE_WHY_MAX];
  memcpy (why, self->why, sizeof why);
  sqlite3_exec (self->db, "ROLLBACK", NULL, NULL, NULL);
  self->rows = 0;
  self->begun = 0;
  self->lately = (ctl_names_lately_t){0};
  self->saved_instruction = 0;
  self->names_saved = self->names_committed;
  if (ctl_store_load_tail (self))
    self->tail.count = CTL_BURST_MAX; /* the next put goes behind it */
  memcpy (self->why, why, sizeof why);
}

int ctl_store_put (ctl_store_t *self, const ctl_execution_t *execution)
{
  int rc = 0;
  if (!self->begun)
    rc = ctl_store_run (self, "BEGIN IMMEDIATE");
  if (rc)
    return rc;
  if (!self->begun && self->tail.count >= CTL_BURST_JOIN)
    rc = next_burst (self);
  self->begun = 1;
  if (rc == 0)
    rc = ctl_store_put_one (self, execution);
  if (rc) {
    roll_back (self);
    return rc;
  }
  return ++self->rows < CTL_STORE_ROWS_MAX ? 0 : ctl_store_commit (self);
}

int ctl_store_commit (ctl_store_t *self)
{
  if (!self->begun)
    return 0;
  int rc = ctl_store_flush (self);
  if (rc == 0)
    rc = ctl_store_run (self, "COMMIT");
  if (rc) {
    roll_back (self);
    return rc;
  }
  self->rows = 0;
  self->begun = 0;
  self->lately = (ctl_names_lately_t){0};
  self->names_committed = self->names_saved;
  return 0;
}

/* ---- what goes -------------------------------------------------------------------- */

void ctl_store_retain (ctl_store_t *self, uint64_t bytes_max, uint64_t age_max_ms)
{
  self->bytes_max = bytes_max;
  self->age_max_ns = age_max_ms * WEFT_NS_PER_MS;
}

uint64_t ctl_store_retired (const ctl_store_t *self)
{
  return self->retired;
}

static int is_full (ctl_store_t *self)
{
  if (self->tail.first + self->tail.count - self->oldest > WEFT_STORE_TASKS_MAX)
    return 1;
  if (!self->bytes_max)
    return 0;
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_BYTES];
  int rc = sqlite3_step (statement);
  uint64_t bytes = rc == SQLITE_ROW ? (uint64_t) sqlite3_column_int64 (statement, 0) : 0;
  sqlite3_reset (statement);
  return bytes > self->bytes_max;
}

static int drop (ctl_store_t *self, ctl_statement_t what, int64_t first, int64_t end)
{
  sqlite3_stmt *statement = self->statement[what];
  sqlite3_bind_int64 (statement, 1, first);
  if (what != CTL_STATEMENT_DROP_BURST)
    sqlite3_bind_int64 (statement, 2, end);
  return ctl_store_done (self, what, sqlite3_step (statement));
}

/* The first burst and the tasks in it. */
static int drop_burst (ctl_store_t *self, int64_t first, int64_t count)
{
  int rc = ctl_store_run (self, "BEGIN IMMEDIATE");
  if (rc)
    return rc;
  rc = drop (self, CTL_STATEMENT_DROP_BLOCKS, first, first + count);
  if (rc == 0)
    rc = drop (self, CTL_STATEMENT_DROP_LATE, first, first + count);
  if (rc == 0)
    rc = drop (self, CTL_STATEMENT_DROP_BURST, first, 0);
  if (rc == 0)
    rc = ctl_store_run (self, "COMMIT");
  ctl_block_forget (self);
  if (rc) {
    roll_back (self);
    return rc;
  }
  self->retired += (uint64_t) count;
  self->oldest = first + count;
  return 0;
}

int ctl_store_tidy (ctl_store_t *self, uint64_t now_ns)
{
  int is_old =
      self->age_max_ns && now_ns > self->age_max_ns && self->oldest_written_ns < now_ns - self->age_max_ns;
  if (self->begun || (!is_old && !is_full (self)))
    return 0;
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_OLDEST];
  int rc = sqlite3_step (statement);
  int64_t first = rc == SQLITE_ROW ? sqlite3_column_int64 (statement, 0) : 0;
  int64_t count = rc == SQLITE_ROW ? sqlite3_column_int64 (statement, 1) : 0;
  uint64_t written_ns = rc == SQLITE_ROW ? (uint64_t) sqlite3_column_int64 (statement, 2) : UINT64_MAX;
  int status = ctl_store_done (self, CTL_STATEMENT_OLDEST, rc);
  self->oldest_written_ns = written_ns == UINT64_MAX ? 0 : written_ns;
  is_old = self->age_max_ns && now_ns > self->age_max_ns && written_ns < now_ns - self->age_max_ns;
  if (status || rc != SQLITE_ROW || (!is_old && !is_full (self)))
    return status;
  if (first == self->tail.first) /* the only one: the next one begins behind it */
    empty_tail (&self->tail, self->tail.first + self->tail.count);
  status = drop_burst (self, first, count);
  self->oldest_written_ns = 0;
  return status ? status : 1;
}
