/* SPDX-License-Identifier: Apache-2.0 */
/* How a store is opened: whose file it is, which schema it has, and how an older
 * one becomes this one (store.h S2, S4). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../common/status.h"
#include "store_db.h"

#define BUSY_MS        2000 /* another process reads or checkpoints */
#define SCHEMA_OF_ROWS 3    /* from which on rows stay as they are (S4) */

static const char schema_sql[] =
    "CREATE TABLE block (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, tasks BLOB NOT NULL);"
    "CREATE TABLE late (n INTEGER PRIMARY KEY, data BLOB NOT NULL);"
    "CREATE TABLE burst (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, from_ns INTEGER NOT NULL, "
    "until_ns INTEGER NOT NULL, written_ns INTEGER NOT NULL, ids BLOB NOT NULL, sums BLOB NOT NULL);"
    "CREATE TABLE name (n INTEGER PRIMARY KEY, text TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS fact (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;";

/* What an older schema had is out of the way of this one's. */
static const char *const aside_sql[SCHEMA_OF_ROWS] = {
    [1] = "DROP INDEX IF EXISTS task_start; DROP INDEX IF EXISTS task_instruction; "
          "ALTER TABLE task RENAME TO old_task",
    [2] = "DROP INDEX IF EXISTS task_id; ALTER TABLE task RENAME TO old_task; "
          "ALTER TABLE burst RENAME TO old_burst; DROP TABLE name",
};

/* Big pages, where the file is new: what is written is big, and a page costs four system calls on its way
 * through the log. The log is carried over once in 16 MiB. */
static const char settings_sql[] =
    "PRAGMA page_size = 16384; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
    "PRAGMA cache_size = -4096; PRAGMA wal_autocheckpoint = 1024;";

static int read_number (ctl_store_t *self, const char *sql, int *ret_number)
{
  sqlite3_stmt *statement;
  int rc = sqlite3_prepare_v2 (self->db, sql, -1, &statement, NULL);
  if (rc == SQLITE_OK)
    rc = sqlite3_step (statement);
  int status = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : ctl_store_fail (self, rc);
  if (status == 0)
    *ret_number = rc == SQLITE_ROW ? sqlite3_column_int (statement, 0) : 0;
  sqlite3_finalize (statement);
  return status;
}

static int prepare (ctl_store_t *self)
{
  static const char *const sql[] = {
#define XX(name, text) [CTL_STATEMENT_##name] = (text),
    CTL_STATEMENT_MAP (XX)
#undef XX
  };
  for (int i = 0; i < CTL_STATEMENTS; i++) {
    int rc = sqlite3_prepare_v3 (self->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &self->statement[i], NULL);
    if (rc != SQLITE_OK)
      return ctl_store_fail (self, rc);
  }
  return 0;
}

/* ---- from a schema before --------------------------------------------------- */

/* Every task that can be read, in the order in which they came, or of their start. */
static const char *const carry_sql[SCHEMA_OF_ROWS] = {
    [1] = "SELECT data, 0 FROM old_task ORDER BY start_ns, id",
    [2] = "SELECT data, (SELECT written_ns FROM old_burst WHERE first <= n ORDER BY first DESC LIMIT 1) "
          "FROM old_task ORDER BY n",
};

static int carry_one (ctl_store_t *self, sqlite3_stmt *statement)
{
  const void *data = sqlite3_column_blob (statement, 0);
  ctl_execution_t *execution = NULL;
  int status = 0;
  self->carried_ns = (uint64_t) sqlite3_column_int64 (statement, 1);
  if (data && ctl_execution_unpack (data, (size_t) sqlite3_column_bytes (statement, 0), &execution) == 0)
    status = ctl_store_put_one (self, execution);
  ctl_execution_destroy (&execution);
  return status;
}

static int carry_all (ctl_store_t *self, int version, uint64_t of)
{
  sqlite3_stmt *statement;
  uint64_t done = 0;
  int rc = sqlite3_prepare_v2 (self->db, carry_sql[version], -1, &statement, NULL);
  int status = rc == SQLITE_OK ? 0 : ctl_store_fail (self, rc);
  while (status == 0 && (rc = sqlite3_step (statement)) != SQLITE_DONE) {
    status = rc == SQLITE_ROW ? carry_one (self, statement) : ctl_store_fail (self, rc);
    if (self->progress && ++done % CTL_STORE_TELL == 0)
      self->progress (done, of, self->progress_arg);
  }
  sqlite3_finalize (statement);
  self->carried_ns = 0;
  return status;
}

static int carry_over (ctl_store_t *self, int version)
{
  int last = 0, of = 0;
  int status = read_number (self, "SELECT count (*) FROM old_task", &of);
  if (status == 0 && version == 1)
    status = read_number (self, "SELECT max (instruction) FROM old_task", &last);
  if ((uint32_t) last > self->last_instruction)
    self->last_instruction = (uint32_t) last;
  if (status == 0)
    status = carry_all (self, version, (uint64_t) of);
  if (status == 0)
    status = ctl_store_flush (self);
  if (status == 0)
    status = ctl_store_run (self, "DROP TABLE old_task; DROP TABLE IF EXISTS old_burst");
  return status;
}

static int load (ctl_store_t *self)
{
  int rc = prepare (self);
  if (rc == 0)
    rc = ctl_store_load_names (self);
  if (rc == 0)
    rc = ctl_store_load_tail (self);
  if (rc == 0)
    rc = ctl_store_load_table (self);
  if (rc == 0)
    self->last_instruction = ctl_store_last_instruction (self);
  return rc;
}

/* S4: one transaction; a death in it leaves the store as it was. */
static int make_schema (ctl_store_t *self, int version)
{
  char sql[64];
  int rc = ctl_store_run (self, "BEGIN IMMEDIATE");
  if (rc == 0 && version < SCHEMA_OF_ROWS) {
    if (version)
      rc = ctl_store_run (self, aside_sql[version]);
    if (rc == 0)
      rc = ctl_store_run (self, schema_sql);
  }
  if (rc == 0)
    rc = load (self);
  if (rc == 0 && version && version < SCHEMA_OF_ROWS)
    rc = carry_over (self, version);
  snprintf (sql, sizeof sql, "PRAGMA user_version = %d; COMMIT", CTL_STORE_SCHEMA);
  if (rc == 0)
    rc = ctl_store_run (self, sql);
  if (rc)
    sqlite3_exec (self->db, "ROLLBACK", NULL, NULL, NULL);
  else
    self->names_committed = self->names_saved;
  return rc;
}

/* ---- opening ------------------------------------------------------------------ */

static int find_schema (ctl_store_t *self, const char *path, int *ret_version, char *why, size_t why_size)
{
  int holds = 0;
  int rc = read_number (self, "PRAGMA user_version", ret_version);
  if (rc == 0 && *ret_version > CTL_STORE_SCHEMA) {
    snprintf (why, why_size,
              "cannot open store %s: it was written by a newer weft (schema %d, this one knows %d); "
              "use that version or choose another --store",
              path, *ret_version, CTL_STORE_SCHEMA);
    return WEFT_E_VERSION;
  }
  if (rc == 0 && *ret_version == 0)
    rc = read_number (self, "SELECT 1 FROM sqlite_master LIMIT 1", &holds);
  if (rc == 0 && (holds || *ret_version < 0)) {
    snprintf (why, why_size,
              "cannot open store %s: it is a database of another program; choose another --store", path);
    return WEFT_E_MALFORMED;
  }
  return rc;
}

/* S2: nothing is written before the version is known. */
static int set_up (ctl_store_t *self, const char *path, char *why, size_t why_size)
{
  int version = 0;
  *why = 0;
  int rc = find_schema (self, path, &version, why, why_size);
  if (rc == 0)
    rc = ctl_store_run (self, settings_sql);
  if (rc == 0 && version != CTL_STORE_SCHEMA)
    rc = make_schema (self, version);
  else if (rc == 0)
    rc = load (self);
  if (rc && !*why)
    snprintf (why, why_size, "cannot open store %s: %s%s%s; %schoose another --store", path,
              rc == WEFT_E_MALFORMED ? "it is no database (" : "", self->why,
              rc == WEFT_E_MALFORMED ? ")" : "", rc == WEFT_E_MALFORMED ? "" : "free some space or ");
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

int ctl_store_open (const char *path, ctl_store_progress_fn *progress, void *arg, ctl_store_t **ret_self,
                    char *why, size_t why_size)
{
  int rc = make_file (path, why, why_size);
  if (rc)
    return rc;
  ctl_store_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->progress = progress;
  self->progress_arg = arg;
  self->fill = ctl_pack_new ();
  if (!self->fill || ctl_id_table_init (&self->table)) {
    ctl_store_destroy (&self);
    return WEFT_E_NOMEM;
  }
  rc = sqlite3_open_v2 (path, &self->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
  if (rc != SQLITE_OK) {
    snprintf (why, why_size, "cannot open store %s: %s; choose another --store", path,
              self->db ? sqlite3_errmsg (self->db) : "out of memory");
    rc = ctl_store_status (rc);
  } else {
    sqlite3_busy_timeout (self->db, BUSY_MS);
    rc = set_up (self, path, why, why_size);
  }
  if (rc)
    ctl_store_destroy (&self);
  else
    *ret_self = self;
  return rc;
}
