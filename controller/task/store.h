/* SPDX-License-Identifier: Apache-2.0 */
/* store: executions on disk, SQLite in WAL mode, one row a task with its
 * subtasks packed. The only module that knows SQLite. One thread.
 *
 *  S1  a row is written whole or not at all
 *  S2  the schema version stands in PRAGMA user_version; a newer one is refused
 *      before anything is written
 *  S3  an execution with a task id that is there already is merged into it */
#ifndef CTL_STORE_H
#define CTL_STORE_H

#include "task.h"

#define CTL_STORE_SCHEMA 1

typedef struct ctl_store_t ctl_store_t;

/* Opens or makes the file (0600). WEFT_E_VERSION (newer schema), WEFT_E_IO,
 * WEFT_E_DENIED, WEFT_E_MALFORMED (no database), with one line in `why`. */
int ctl_store_open (const char *path, ctl_store_t **ret_self, char *why, size_t why_size);
void ctl_store_destroy (ctl_store_t **self_p);

/* Rows are buffered in one transaction until commit (or 4,096 rows). A full
 * disk is WEFT_E_FULL: the transaction is rolled back, the caller keeps its
 * executions and tries again later. */
int ctl_store_put (ctl_store_t *self, const ctl_execution_t *execution);
int ctl_store_commit (ctl_store_t *self);

/* As ctl_correlate_each, newest first. */
int ctl_store_each (ctl_store_t *self, uint32_t instruction, uint64_t from_ns, uint64_t to_ns,
                    int (*fn) (ctl_execution_t **execution_p, void *arg), void *arg);
/* By a prefix of the hex task id (4-32 digits). WEFT_E_NOT_FOUND;
 * WEFT_E_BUSY: several begin so, *ret_count of them. */
int ctl_store_find (ctl_store_t *self, const char *prefix, ctl_execution_t **ret_execution,
                    uint32_t *ret_count);
/* Highest instruction number ever stored: numbers are not reused across restarts. */
uint32_t ctl_store_last_instruction (ctl_store_t *self);
/* Text of the last SQLite error, for one log line. Never NULL. */
const char *ctl_store_why (const ctl_store_t *self);

#endif
