/* SPDX-License-Identifier: Apache-2.0 */
/* store_db: what the parts of the store share; nobody else includes it.
 *
 *   task    n, id, …, data    one row a task, in the order of their coming; data as in pack.c
 *   burst   first, …, sums    the summaries (summary.h) of tasks first, first + 1, …
 *   name    n, text           the texts that summaries number
 *   fact    key, value        what outlives the rows that it was taken from
 *
 *  D1  numbers of tasks grow by one; each is in one burst
 *  D2  the tail is the last burst, in memory. It is written before it is read, and
 *      with each commit; after a rollback it is read anew
 *  D3  texts have the same numbers in `names` as in the table; what lies at or
 *      beyond `names_saved` is written with the next flush */
#ifndef CTL_STORE_DB_H
#define CTL_STORE_DB_H

#include <sqlite3.h>

#include "store.h"

#define CTL_STORE_WHY_MAX  256
#define CTL_STORE_ROWS_MAX 4096u /* of one transaction */
#define CTL_BURST_JOIN     512u  /* a burst of fewer is gone on with: an idle store gets no row a task */
#define CTL_BURST_MAX      (CTL_BURST_JOIN + CTL_STORE_ROWS_MAX)

#define CTL_STATEMENT_MAP(XX)                                                                                \
  XX (ADD, "INSERT OR IGNORE INTO task VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")                    \
  XX (REPLACE, "INSERT OR REPLACE INTO task VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")               \
  XX (GET, "SELECT data FROM task WHERE n = ?1")                                                             \
  XX (GET_BY_ID, "SELECT data, n FROM task WHERE id = ?1")                                                   \
  XX (FIND, "SELECT data FROM task WHERE id BETWEEN ?1 AND ?2 ORDER BY id")                                  \
  XX (COUNT, "SELECT count (*) FROM task WHERE id BETWEEN ?1 AND ?2")                                        \
  XX (LAST, "SELECT max (n) FROM task")                                                                      \
  XX (DROP, "DELETE FROM task WHERE n >= ?1 AND n < ?2")                                                     \
  XX (ADD_BURST, "INSERT OR REPLACE INTO burst VALUES (?1, ?2, ?3, ?4, ?5, ?6)")                             \
  XX (BURSTS, "SELECT first, sums FROM burst WHERE until_ns >= ?1 AND from_ns <= ?2 ORDER BY first")         \
  XX (IN_BURSTS, "SELECT sum (count) FROM burst WHERE until_ns >= ?1 AND from_ns <= ?2")                     \
  XX (BURST_OF, "SELECT first, count, from_ns, until_ns, written_ns, sums FROM burst WHERE first <= ?1 "     \
                "ORDER BY first DESC LIMIT 1")                                                               \
  XX (BOUNDS, "UPDATE burst SET from_ns = min (from_ns, ?2), until_ns = max (until_ns, ?3), "                \
              "written_ns = ?4 WHERE first = ?1")                                                            \
  XX (OLDEST, "SELECT first, count, written_ns FROM burst ORDER BY first LIMIT 1")                           \
  XX (DROP_BURST, "DELETE FROM burst WHERE first = ?1")                                                      \
  XX (ADD_NAME, "INSERT OR REPLACE INTO name VALUES (?1, ?2)")                                               \
  XX (NAMES, "SELECT n, text FROM name ORDER BY n")                                                          \
  XX (SET_FACT, "INSERT OR REPLACE INTO fact VALUES (?1, ?2)")                                               \
  XX (GET_FACT, "SELECT value FROM fact WHERE key = ?1")                                                     \
  XX (BYTES, "SELECT ((SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM "             \
             "pragma_freelist_count)) * (SELECT page_size FROM pragma_page_size)")
typedef enum {
#define XX(name, sql) CTL_STATEMENT_##name,
  CTL_STATEMENT_MAP (XX)
#undef XX
      CTL_STATEMENTS
} ctl_statement_t;

/* The last burst (D2). */
typedef struct {
  int64_t first;
  uint32_t count;
  uint64_t from_ns, until_ns; /* the first and the last start of its tasks */
  uint64_t written_ns;        /* when the last of them was written */
  int dirty;
  uint8_t sums[CTL_BURST_MAX][CTL_SUMMARY_SIZE];
} ctl_burst_t;

struct ctl_store_t {
  sqlite3 *db;
  sqlite3_stmt *statement[CTL_STATEMENTS];
  uint32_t rows; /* in the open transaction */
  int begun;     /* one is open */
  ctl_names_t *names;
  uint32_t names_saved, names_committed, names_seen; /* D3 */
  uint32_t last_instruction, saved_instruction;
  uint64_t bytes_max, age_max_ns; /* 0: no bound */
  uint64_t oldest_written_ns;     /* of the first burst; 0: look */
  uint64_t retired;
  char why[CTL_STORE_WHY_MAX];
  ctl_burst_t tail;
};

/* Remembers SQLite's words in self->why; the status of `rc`. */
int ctl_store_fail (ctl_store_t *self, int rc);
int ctl_store_status (int rc);
int ctl_store_run (ctl_store_t *self, const char *sql);
/* Resets a statement and returns its status: 0, or what ended it. */
int ctl_store_done (ctl_store_t *self, ctl_statement_t statement, int rc);

int ctl_store_prepare (ctl_store_t *self);
/* After opening and after a rollback. */
int ctl_store_load_tail (ctl_store_t *self);
int ctl_store_load_names (ctl_store_t *self);
/* D2, D3: writes what memory is ahead. */
int ctl_store_flush (ctl_store_t *self);
/* As ctl_store_put, without counting rows. */
int ctl_store_put_one (ctl_store_t *self, const ctl_execution_t *execution);
/* Schema 1 becomes this one, in the transaction that is open. */
int ctl_store_migrate (ctl_store_t *self);
int ctl_store_unpack (sqlite3_stmt *statement, ctl_execution_t **ret_execution);

#endif
