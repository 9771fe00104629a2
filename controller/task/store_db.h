/* SPDX-License-Identifier: Apache-2.0 */
/* store_db: what the parts of the store share; nobody else includes it.
 *
 *   block   first, count, tasks   a pack (pack.h) of executions numbered first, first + 1, …;
 *                                 as schema 3 wrote it: where each ends (4 bytes each, little
 *                                 endian), then their bytes (pack_old.h)
 *   late    n, data               an execution that more came for after its block was written: it counts
 *   burst   first, …, ids, sums   ids and summaries (summary.h) of tasks first, first + 1, …
 *   name    n, text               the texts that summaries number
 *   fact    key, value            what outlives the rows that it was taken from
 *
 *  D1  numbers of tasks grow by one; each is in one burst and one block, and no block
 *      is in two bursts
 *  D2  the tail is the last burst, in memory; the fill is the last block, of tasks at
 *      the tail's end. Both are written before they are read, and with each commit;
 *      after a rollback the tail is read anew and the fill is empty
 *  D3  texts have the same numbers in `names` as in the table; what lies at or
 *      beyond `names_saved` is written with the next flush
 *  D4  a block that is written stays as it is. Summaries of tasks in `late` say so
 *  D5  every task of a burst that can be read is in `table` */
#ifndef CTL_STORE_DB_H
#define CTL_STORE_DB_H

#include <sqlite3.h>

#include "id_table.h"
#include "pack.h"
#include "store.h"

#define CTL_STORE_WHY_MAX  256
#define CTL_STORE_ROWS_MAX 4096u /* of one transaction */
#define CTL_BURST_JOIN     512u  /* a burst of fewer is gone on with: an idle store gets no row a task */
#define CTL_BURST_MAX      (CTL_BURST_JOIN + CTL_STORE_ROWS_MAX)
#define CTL_PAGE_BYTES     16384u
#define CTL_BLOCK_BYTES_MAX                                                                                  \
  (CTL_PAGE_BYTES - 64u)          /* what a row may hold to fill a page; more is a block alone */
#define CTL_BLOCK_OLD_TASKS 64u   /* of schema 3 */
#define CTL_STORE_TELL      1000u /* tasks carried over, then it is said */
#define CTL_SUMMARY_LATE    1u    /* flag: its execution is in `late` */

#define CTL_STATEMENT_MAP(XX)                                                                                \
  XX (ADD_BLOCK, "INSERT INTO block VALUES (?1, ?2, ?3)")                                                    \
  XX (BLOCK_OF, "SELECT first, count, tasks FROM block WHERE first <= ?1 ORDER BY first DESC LIMIT 1")       \
  XX (BEHIND, "SELECT first + count FROM block ORDER BY first DESC LIMIT 1")                                 \
  XX (DROP_BLOCKS, "DELETE FROM block WHERE first >= ?1 AND first < ?2")                                     \
  XX (ADD_LATE, "INSERT OR REPLACE INTO late VALUES (?1, ?2)")                                               \
  XX (GET_LATE, "SELECT data FROM late WHERE n = ?1")                                                        \
  XX (DROP_LATE, "DELETE FROM late WHERE n >= ?1 AND n < ?2")                                                \
  XX (ADD_BURST, "INSERT OR REPLACE INTO burst VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")                         \
  XX (BURSTS, "SELECT first, ids, sums FROM burst WHERE until_ns >= ?1 AND from_ns <= ?2 ORDER BY first")    \
  XX (IDS, "SELECT first, ids FROM burst ORDER BY first")                                                    \
  XX (IN_BURSTS, "SELECT sum (count) FROM burst WHERE until_ns >= ?1 AND from_ns <= ?2")                     \
  XX (BURST_OF, "SELECT first, count, from_ns, until_ns, written_ns, ids, sums FROM burst WHERE first <= "   \
                "?1 ORDER BY first DESC LIMIT 1")                                                            \
  XX (BOUNDS, "UPDATE burst SET from_ns = min (from_ns, ?2), until_ns = max (until_ns, ?2), "                \
              "written_ns = ?3 WHERE first = ?1")                                                            \
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
  uint8_t ids[CTL_BURST_MAX][WEFT_TASK_ID_SIZE];
  uint8_t sums[CTL_BURST_MAX][CTL_SUMMARY_SIZE];
} ctl_burst_t;

/* A block as it was read. */
typedef struct {
  int64_t first;
  uint32_t count; /* 0: none */
  ctl_bytes_t bytes;
} ctl_block_t;

struct ctl_store_t {
  sqlite3 *db;
  sqlite3_stmt *statement[CTL_STATEMENTS];
  uint32_t rows; /* in the open transaction */
  int begun;     /* one is open */
  ctl_names_t *names;
  uint32_t names_saved, names_committed, names_seen; /* D3 */
  ctl_names_lately_t lately;                         /* since the last commit */
  uint32_t last_instruction, saved_instruction;
  ctl_id_table_t table;           /* D5 */
  int64_t oldest;                 /* number of the first task */
  uint64_t bytes_max, age_max_ns; /* 0: no bound */
  uint64_t oldest_written_ns;     /* of the first burst; 0: look */
  uint64_t retired;
  uint64_t carried_ns;             /* when that was written which is just carried over; 0: now */
  ctl_store_progress_fn *progress; /* may be NULL */
  void *progress_arg;
  char why[CTL_STORE_WHY_MAX];
  ctl_burst_t tail;
  ctl_pack_t *fill;   /* D2 */
  int64_t fill_first; /* number of its first */
  ctl_block_t seen;   /* the one that was read last */
};

/* Remembers SQLite's words in self->why; the status of `rc`. */
int ctl_store_fail (ctl_store_t *self, int rc);
int ctl_store_status (int rc);
int ctl_store_run (ctl_store_t *self, const char *sql);
/* Resets a statement and returns its status: 0, or what ended it. */
int ctl_store_done (ctl_store_t *self, ctl_statement_t statement, int rc);

/* After opening. */
int ctl_store_load_table (ctl_store_t *self);
/* After opening and after a rollback. */
int ctl_store_load_tail (ctl_store_t *self);
int ctl_store_load_names (ctl_store_t *self);
/* D2, D3: writes what memory is ahead. */
int ctl_store_flush (ctl_store_t *self);
/* As ctl_store_put, without counting rows. */
int ctl_store_put_one (ctl_store_t *self, const ctl_execution_t *execution);
/* 1: the task is there, under that number; its summary says whether it is in `late`. 0: it is not. */
int ctl_store_number_of (ctl_store_t *self, const uint8_t *task, int64_t *ret_number, int *ret_late);
/* What was written of a task: `late` as its summary says. WEFT_E_NOT_FOUND; WEFT_E_MALFORMED,
 * WEFT_E_VERSION: it cannot be read; and what the disk says. */
int ctl_store_load (ctl_store_t *self, int64_t number, int late, ctl_execution_t **ret_execution);
/* store_block.c: into the fill; that it is written; that what was read is forgotten. */
int ctl_block_add (ctl_store_t *self, const ctl_execution_t *execution);
int ctl_block_flush (ctl_store_t *self);
void ctl_block_forget (ctl_store_t *self);

#endif
