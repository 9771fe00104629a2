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

#define BUSY_MS 2000 /* another process reads or checkpoints */

/* The columns beside `data` stand there only so that people can query them with sqlite3(1). */
static const char schema_sql[] =
    "CREATE TABLE task (n INTEGER PRIMARY KEY, id BLOB NOT NULL, instruction INTEGER NOT NULL, "
    "kind INTEGER NOT NULL, name TEXT NOT NULL, start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, "
    "complete INTEGER NOT NULL, errors INTEGER NOT NULL, data BLOB NOT NULL);"
    "CREATE UNIQUE INDEX task_id ON task (id);"
    "CREATE TABLE burst (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, from_ns INTEGER NOT NULL, "
    "until_ns INTEGER NOT NULL, written_ns INTEGER NOT NULL, sums BLOB NOT NULL);"
    "CREATE TABLE name (n INTEGER PRIMARY KEY, text TEXT NOT NULL);"
    "CREATE TABLE fact (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;";

/* Pages are kept in memory: ids come in any order, so that each write goes to another page of their
 * index. The log is carried over once in 16 MiB. */
static const char settings_sql[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
                                   "PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 4096;";

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

int ctl_store_prepare (ctl_store_t *self)
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

/* ---- from the schema before ------------------------------------------------- */

/* Every task that can be read, by its start: as they would have come. */
static int carry_over (ctl_store_t *self)
{
  sqlite3_stmt *statement;
  int rc =
      sqlite3_prepare_v2 (self->db, "SELECT data FROM task_1 ORDER BY start_ns, id", -1, &statement, NULL);
  int status = rc == SQLITE_OK ? 0 : ctl_store_fail (self, rc);
  while (status == 0 && (rc = sqlite3_step (statement)) != SQLITE_DONE) {
    ctl_execution_t *execution = NULL;
    if (rc != SQLITE_ROW)
      status = ctl_store_fail (self, rc);
    else if (ctl_store_unpack (statement, &execution) == 0)
      status = ctl_store_put_one (self, execution);
    ctl_execution_destroy (&execution);
  }
  sqlite3_finalize (statement);
  return status;
}

int ctl_store_migrate (ctl_store_t *self)
{
  int last = 0;
  int rc = read_number (self, "SELECT max (instruction) FROM task_1", &last);
  if (rc == 0)
    rc = carry_over (self);
  if ((uint32_t) last > self->last_instruction)
    self->last_instruction = (uint32_t) last;
  if (rc == 0)
    rc = ctl_store_flush (self);
  return rc ? rc : ctl_store_run (self, "DROP TABLE task_1");
}

/* S4: one transaction; a death in it leaves the store as it was. */
static int make_schema (ctl_store_t *self, int version)
{
  char sql[64];
  int rc = ctl_store_run (self, "BEGIN IMMEDIATE");
  if (rc == 0 && version == 1)
    rc = ctl_store_run (self, "DROP INDEX IF EXISTS task_start; DROP INDEX IF EXISTS task_instruction; "
                              "ALTER TABLE task RENAME TO task_1");
  if (rc == 0)
    rc = ctl_store_run (self, schema_sql);
  if (rc == 0)
    rc = ctl_store_prepare (self);
  if (rc == 0)
    rc = ctl_store_load_tail (self);
  if (rc == 0)
    rc = ctl_store_load_names (self);
  if (rc == 0 && version == 1)
    rc = ctl_store_migrate (self);
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
  else if (rc == 0) {
    rc = ctl_store_prepare (self);
    if (rc == 0)
      rc = ctl_store_load_names (self);
    if (rc == 0)
      rc = ctl_store_load_tail (self);
    self->last_instruction = rc == 0 ? ctl_store_last_instruction (self) : 0;
  }
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
