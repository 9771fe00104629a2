/* SPDX-License-Identifier: Apache-2.0 */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../common/ids.h"
#include "../../common/status.h"

#define ROWS_PER_TRANSACTION 4096u
#define BUSY_MS              2000 /* another process reads or checkpoints */
#define PREFIX_MIN           4u
#define WHY_MAX              256

/* duration_ns etc. stand beside the packed data only so that people can query them with sqlite3(1). */
static const char schema_sql[] = "CREATE TABLE task (id BLOB PRIMARY KEY, instruction INTEGER NOT NULL, "
                                 "kind INTEGER NOT NULL, name TEXT NOT NULL, start_ns INTEGER NOT NULL, "
                                 "duration_ns INTEGER NOT NULL, complete INTEGER NOT NULL, "
                                 "errors INTEGER NOT NULL, data BLOB NOT NULL) WITHOUT ROWID;"
                                 "CREATE INDEX task_start ON task (start_ns);"
                                 "CREATE INDEX task_instruction ON task (instruction, start_ns);";

static const char *const statement_sql[] = {
#define PUT 0
    "INSERT OR REPLACE INTO task VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
#define GET 1
    "SELECT data FROM task WHERE id = ?1",
#define EACH 2
    "SELECT data FROM task WHERE start_ns BETWEEN ?1 AND ?2 ORDER BY start_ns DESC, id",
#define EACH_OF 3
    "SELECT data FROM task WHERE start_ns BETWEEN ?1 AND ?2 AND instruction = ?3 ORDER BY start_ns DESC, id",
#define FIND 4
    "SELECT data FROM task WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
#define LAST 5
    "SELECT max (instruction) FROM task",
};
#define STATEMENTS (sizeof statement_sql / sizeof *statement_sql)

struct ctl_store_t {
  sqlite3 *db;
  sqlite3_stmt *statement[STATEMENTS];
  uint32_t rows; /* in the open transaction; 0: none is open */
  char why[WHY_MAX];
};

static int status_of (int rc)
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

/* Remembers SQLite's own words. It knows ENOSPC as a full disk; a file size limit and a quota are
 * the same to us, and of its log it keeps no error number but the kernel's last. */
static int fail (ctl_store_t *self, int rc)
{
  int status = status_of (rc);
  int error = errno;
  if (status == WEFT_E_IO && (error == ENOSPC || error == EFBIG || error == EDQUOT))
    status = WEFT_E_FULL;
  snprintf (self->why, sizeof self->why, "%s",
            status == WEFT_E_FULL ? "disk full" : sqlite3_errmsg (self->db));
  return status;
}

static int run (ctl_store_t *self, const char *sql)
{
  int rc = sqlite3_exec (self->db, sql, NULL, NULL, NULL);
  return rc == SQLITE_OK ? 0 : fail (self, rc);
}

/* ---- opening ------------------------------------------------------------------ */

static int read_version (ctl_store_t *self, int *ret_version)
{
  sqlite3_stmt *statement;
  int rc = sqlite3_prepare_v2 (self->db, "PRAGMA user_version", -1, &statement, NULL);
  if (rc == SQLITE_OK)
    rc = sqlite3_step (statement);
  if (rc == SQLITE_ROW)
    *ret_version = sqlite3_column_int (statement, 0);
  int status = rc == SQLITE_ROW ? 0 : fail (self, rc);
  sqlite3_finalize (statement);
  return status;
}

static int holds_tables (ctl_store_t *self, int *ret_holds)
{
  sqlite3_stmt *statement;
  int rc = sqlite3_prepare_v2 (self->db, "SELECT 1 FROM sqlite_master LIMIT 1", -1, &statement, NULL);
  if (rc == SQLITE_OK)
    rc = sqlite3_step (statement);
  int status = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : fail (self, rc);
  *ret_holds = rc == SQLITE_ROW;
  sqlite3_finalize (statement);
  return status;
}

/* S2: nothing is written before the version is known. */
static int prepare (ctl_store_t *self, const char *path, char *why, size_t why_size)
{
  int version = 0, holds = 0;
  int rc = read_version (self, &version);
  if (rc == 0 && version > CTL_STORE_SCHEMA) {
    snprintf (why, why_size,
              "cannot open store %s: it was written by a newer weft (schema %d, this one knows %d); "
              "use that version or choose another --store",
              path, version, CTL_STORE_SCHEMA);
    return WEFT_E_VERSION;
  }
  if (rc == 0 && version == 0)
    rc = holds_tables (self, &holds);
  if (rc == 0 && holds) {
    snprintf (why, why_size,
              "cannot open store %s: it is a database of another program; choose another --store", path);
    return WEFT_E_MALFORMED;
  }
  if (rc == 0)
    rc = run (self, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
  if (rc == 0 && version == 0) {
    char sql[sizeof schema_sql + 96];
    snprintf (sql, sizeof sql, "BEGIN IMMEDIATE; %s PRAGMA user_version = %d; COMMIT;", schema_sql,
              CTL_STORE_SCHEMA);
    rc = run (self, sql);
  }
  for (size_t i = 0; i < STATEMENTS && rc == 0; i++) {
    int sqlite_rc = sqlite3_prepare_v3 (self->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                        &self->statement[i], NULL);
    rc = sqlite_rc == SQLITE_OK ? 0 : fail (self, sqlite_rc);
  }
  if (rc == WEFT_E_MALFORMED)
    snprintf (why, why_size, "cannot open store %s: it is no database (%s); choose another --store", path,
              self->why);
  else if (rc)
    snprintf (why, why_size, "cannot open store %s: %s; free some space or choose another --store", path,
              self->why);
  return rc;
}

/* SQLite would make the file with the umask's mode; task names are nobody else's business. */
static int make_file (const char *path, char *why, size_t why_size)
{
  int fd = open (path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
  if (fd < 0) {
    int error = errno;
    snprintf (why, why_size, "cannot open store %s: %s; choose another --store", path, strerror (error));
    return error == EACCES || error == EPERM || error == EROFS ? WEFT_E_DENIED
           : error == ENOSPC                                   ? WEFT_E_FULL
                                                               : WEFT_E_IO;
  }
  struct stat st;
  int regular = fstat (fd, &st) == 0 && S_ISREG (st.st_mode);
  close (fd);
  if (regular)
    return 0;
  snprintf (why, why_size, "cannot open store %s: it is no regular file; choose another --store", path);
  return WEFT_E_IO;
}

int ctl_store_open (const char *path, ctl_store_t **ret_self, char *why, size_t why_size)
{
  int rc = make_file (path, why, why_size);
  if (rc)
    return rc;
  ctl_store_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  rc = sqlite3_open_v2 (path, &self->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
  if (rc != SQLITE_OK) {
    snprintf (why, why_size, "cannot open store %s: %s; choose another --store", path,
              self->db ? sqlite3_errmsg (self->db) : "out of memory");
    rc = status_of (rc);
  } else {
    sqlite3_busy_timeout (self->db, BUSY_MS);
    rc = prepare (self, path, why, why_size);
  }
  if (rc)
    ctl_store_destroy (&self);
  else
    *ret_self = self;
  return rc;
}

void ctl_store_destroy (ctl_store_t **self_p)
{
  ctl_store_t *self = *self_p;
  if (!self)
    return;
  if (self->rows)
    ctl_store_commit (self);
  for (size_t i = 0; i < STATEMENTS; i++)
    sqlite3_finalize (self->statement[i]);
  sqlite3_close (self->db);
  free (self);
  *self_p = NULL;
}

/* ---- writing ------------------------------------------------------------------- */

static int unpack_column (sqlite3_stmt *statement, ctl_execution_t **ret_execution)
{
  const void *data = sqlite3_column_blob (statement, 0);
  int size = sqlite3_column_bytes (statement, 0);
  return data ? ctl_execution_unpack (data, (size_t) size, ret_execution) : WEFT_E_MALFORMED;
}

/* NULL: no such row. */
static int get (ctl_store_t *self, const uint8_t task[WEFT_TASK_ID_SIZE], ctl_execution_t **ret_execution)
{
  sqlite3_stmt *statement = self->statement[GET];
  sqlite3_bind_blob (statement, 1, task, WEFT_TASK_ID_SIZE, SQLITE_STATIC);
  int rc = sqlite3_step (statement), status = 0;
  *ret_execution = NULL;
  if (rc == SQLITE_ROW)
    status = unpack_column (statement, ret_execution);
  else if (rc != SQLITE_DONE)
    status = fail (self, rc);
  sqlite3_reset (statement);
  return status;
}

static int64_t errors_of (const ctl_execution_t *execution)
{
  int64_t errors = 0;
  for (uint32_t i = 0; i < execution->count; i++)
    errors += execution->subtasks[i].error != WEFT_ERROR_NONE || execution->subtasks[i].status >= 500;
  return errors;
}

static int write_row (ctl_store_t *self, const ctl_execution_t *execution)
{
  void *data;
  size_t size;
  int status = ctl_execution_pack (execution, &data, &size);
  if (status)
    return status;
  sqlite3_stmt *statement = self->statement[PUT];
  sqlite3_bind_blob (statement, 1, execution->task, WEFT_TASK_ID_SIZE, SQLITE_STATIC);
  sqlite3_bind_int64 (statement, 2, execution->instruction);
  sqlite3_bind_int (statement, 3, (int) execution->kind);
  sqlite3_bind_text (statement, 4, execution->name, -1, SQLITE_STATIC);
  sqlite3_bind_int64 (statement, 5, (int64_t) execution->start_ns);
  sqlite3_bind_int64 (statement, 6, (int64_t) execution->duration_ns);
  sqlite3_bind_int (statement, 7, execution->complete);
  sqlite3_bind_int64 (statement, 8, errors_of (execution));
  sqlite3_bind_blob (statement, 9, data, (int) size, SQLITE_STATIC);
  int rc = sqlite3_step (statement);
  if (rc != SQLITE_DONE)
    status = fail (self, rc);
  sqlite3_reset (statement);
  sqlite3_clear_bindings (statement);
  free (data);
  return status;
}

/* S3. A row that cannot be read any more is replaced: what is new is sound. */
static int write_merged (ctl_store_t *self, const ctl_execution_t *execution, ctl_execution_t *stored)
{
  ctl_execution_t *copy = NULL;
  void *data;
  size_t size;
  int rc = ctl_execution_pack (execution, &data, &size);
  if (rc)
    return rc;
  rc = ctl_execution_unpack (data, size, &copy);
  free (data);
  if (rc == 0)
    rc = ctl_execution_merge (stored, copy);
  ctl_execution_destroy (&copy);
  return rc ? rc : write_row (self, stored);
}

static int put (ctl_store_t *self, const ctl_execution_t *execution)
{
  ctl_execution_t *stored;
  int rc = get (self, execution->task, &stored);
  if (rc == WEFT_E_MALFORMED || rc == WEFT_E_VERSION)
    rc = 0;
  if (rc == 0)
    rc = stored ? write_merged (self, execution, stored) : write_row (self, execution);
  ctl_execution_destroy (&stored);
  return rc;
}

/* After some errors SQLite has rolled back by itself; a second ROLLBACK is harmless. */
static void roll_back (ctl_store_t *self)
{
  sqlite3_exec (self->db, "ROLLBACK", NULL, NULL, NULL);
  self->rows = 0;
}

int ctl_store_put (ctl_store_t *self, const ctl_execution_t *execution)
{
  int rc = 0;
  if (self->rows == 0)
    rc = run (self, "BEGIN IMMEDIATE");
  if (rc)
    return rc;
  rc = put (self, execution);
  if (rc) {
    roll_back (self);
    return rc;
  }
  return ++self->rows < ROWS_PER_TRANSACTION ? 0 : ctl_store_commit (self);
}

int ctl_store_commit (ctl_store_t *self)
{
  if (self->rows == 0)
    return 0;
  int rc = run (self, "COMMIT");
  if (rc)
    roll_back (self);
  self->rows = 0;
  return rc;
}

/* ---- reading -------------------------------------------------------------------- */

static int64_t bound (uint64_t ns)
{
  return ns > INT64_MAX ? INT64_MAX : (int64_t) ns;
}

/* A row that is damaged is passed over: one bad page must not hide all others. */
int ctl_store_each (ctl_store_t *self, uint32_t instruction, uint64_t from_ns, uint64_t to_ns,
                    int (*fn) (ctl_execution_t **execution_p, void *arg), void *arg)
{
  sqlite3_stmt *statement = self->statement[instruction ? EACH_OF : EACH];
  int rc, status = 0;
  sqlite3_bind_int64 (statement, 1, bound (from_ns));
  sqlite3_bind_int64 (statement, 2, bound (to_ns));
  if (instruction)
    sqlite3_bind_int64 (statement, 3, instruction);
  while (status == 0 && (rc = sqlite3_step (statement)) != SQLITE_DONE) {
    ctl_execution_t *execution = NULL;
    if (rc != SQLITE_ROW)
      status = fail (self, rc);
    else if (unpack_column (statement, &execution) == 0)
      status = fn (&execution, arg);
    ctl_execution_destroy (&execution);
  }
  sqlite3_reset (statement);
  return status;
}

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

int ctl_store_find (ctl_store_t *self, const char *prefix, ctl_execution_t **ret_execution,
                    uint32_t *ret_count)
{
  uint8_t low[WEFT_TASK_ID_SIZE], high[WEFT_TASK_ID_SIZE];
  int rc, status = range_of (prefix, low, high);
  if (status)
    return status;
  sqlite3_stmt *statement = self->statement[FIND];
  ctl_execution_t *execution = NULL;
  uint32_t count = 0;
  sqlite3_bind_blob (statement, 1, low, sizeof low, SQLITE_STATIC);
  sqlite3_bind_blob (statement, 2, high, sizeof high, SQLITE_STATIC);
  while (status == 0 && (rc = sqlite3_step (statement)) != SQLITE_DONE) {
    if (rc != SQLITE_ROW)
      status = fail (self, rc);
    else if (count++ == 0)
      status = unpack_column (statement, &execution);
  }
  sqlite3_reset (statement);
  sqlite3_clear_bindings (statement);
  if (status == 0 && count != 1)
    status = count ? WEFT_E_BUSY : WEFT_E_NOT_FOUND;
  if (status) {
    ctl_execution_destroy (&execution);
    if (status == WEFT_E_BUSY && count > 1)
      *ret_count = count;
    return status;
  }
  *ret_count = 1;
  *ret_execution = execution;
  return 0;
}

uint32_t ctl_store_last_instruction (ctl_store_t *self)
{
  sqlite3_stmt *statement = self->statement[LAST];
  uint32_t last = sqlite3_step (statement) == SQLITE_ROW ? (uint32_t) sqlite3_column_int64 (statement, 0) : 0;
  sqlite3_reset (statement);
  return last;
}

const char *ctl_store_why (const ctl_store_t *self)
{
  return self->why;
}
