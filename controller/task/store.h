/* SPDX-License-Identifier: Apache-2.0 */
/* store: executions on disk, SQLite in WAL mode: their subtasks packed, dozens of
 * them in a row, and beside them ids and summaries, thousands in a row. A row a
 * task cost five times what correlating it costs. The only module that knows
 * SQLite. One thread; readers of other processes hold nothing up.
 *
 *  S1  a task is written whole or not at all
 *  S2  the schema version stands in PRAGMA user_version; a newer one is refused
 *      before anything is written
 *  S3  an execution with a task id that is there already is merged into it
 *  S4  a store of an older schema is carried over when it is opened, whole or not
 *      at all; what can no longer be read there is left behind. Rows of schema 3
 *      stay as they are: new ones differ in their bytes alone
 *  S5  results do not depend on the order in which executions came */
#ifndef CTL_STORE_H
#define CTL_STORE_H

#include "summary.h"
#include "task.h"

#define CTL_STORE_SCHEMA 4

typedef struct ctl_store_t ctl_store_t;

/* How far an older store is carried over (S4), which may take minutes. */
typedef void (ctl_store_progress_fn) (uint64_t done, uint64_t of, void *arg);
/* Opens or makes the file (0600); `progress` may be NULL. WEFT_E_VERSION (newer schema), WEFT_E_IO,
 * WEFT_E_DENIED, WEFT_E_MALFORMED (no database), with one line in `why`. */
int ctl_store_open (const char *path, ctl_store_progress_fn *progress, void *arg, ctl_store_t **ret_self,
                    char *why, size_t why_size);
void ctl_store_destroy (ctl_store_t **self_p);

/* Rows are buffered in one transaction until commit (or 4,096 rows). A full
 * disk is WEFT_E_FULL: the transaction is rolled back, the caller keeps its
 * executions and tries again later. An execution may go when it is put, and texts of
 * its own with it; interned ones stay until the commit (pack.h). */
int ctl_store_put (ctl_store_t *self, const ctl_execution_t *execution);
int ctl_store_commit (ctl_store_t *self);

/* As ctl_correlate_each, newest first. */
int ctl_store_each (ctl_store_t *self, uint32_t instruction, uint64_t from_ns, uint64_t to_ns,
                    int (*fn) (ctl_execution_t **execution_p, void *arg), void *arg);
/* What is said of each summary: 0 it is counted, 1 its execution is wanted; else the walk ends. */
typedef int (ctl_store_summary_fn) (const ctl_summary_t *summary, void *arg);
/* Every task that began in the window, in any order: its summary, and where that is not enough the
 * execution. */
int ctl_store_skim (ctl_store_t *self, uint64_t from_ns, uint64_t to_ns, ctl_store_summary_fn *wants,
                    int (*fn) (ctl_execution_t **execution_p, void *arg), void *arg);
/* How many at most. */
uint64_t ctl_store_count (ctl_store_t *self, uint64_t from_ns, uint64_t to_ns);
/* By a prefix of the hex task id (4-32 digits). WEFT_E_NOT_FOUND;
 * WEFT_E_BUSY: several begin so, *ret_count of them. */
int ctl_store_find (ctl_store_t *self, const char *prefix, ctl_execution_t **ret_execution,
                    uint32_t *ret_count);
/* What may stay beside WEFT_STORE_TASKS_MAX: bytes of the file that are in use, and for how long since it was written (a replay brings old
 * times); 0: no bound. */
void ctl_store_retain (ctl_store_t *self, uint64_t bytes_max, uint64_t age_max_ms);
/* Drops the oldest tasks that may not stay, a part of them at a time: 1: call again soon, 0: all do.
 * now_ns: wall clock. */
int ctl_store_tidy (ctl_store_t *self, uint64_t now_ns);
/* Tasks that were dropped since it was opened. */
uint64_t ctl_store_retired (const ctl_store_t *self);
/* Highest instruction number ever stored: numbers are not reused across restarts. */
uint32_t ctl_store_last_instruction (ctl_store_t *self);
/* Text of the last SQLite error, for one log line. Never NULL. */
const char *ctl_store_why (const ctl_store_t *self);

#endif
