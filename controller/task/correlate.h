/* SPDX-License-Identifier: Apache-2.0 */
/* correlate: joins copies of task ids into executions. O(1) a report, bounded
 * memory, any order, duplicates and gaps allowed: the same set of batches gives
 * the same executions in whatever order it came.
 *
 *  R1  a request is named by (task id, request id): embed and capture of one
 *      name are one hop
 *  R2  a capture names its subtask; an embed names the subtask it left from; an opaque
 *      report is a leaf of the subtask that it names
 *  R3  the top of a tree is its ROOT capture, or a capture whose request nobody
 *      embedded (a caller outside weft with a context of its own): a task. A tree
 *      below an ORPHAN embed is an orphan. A ROOT capture whose (peer, local) is
 *      the (local, peer) of a BARE report did not come from outside: an orphan
 *      (INSIDE), or, if every BARE reason there is UNMATCHED, no task at all:
 *      discarded and counted
 *  R4  what is settled (nobody reported on it for WEFT_SETTLE_MS, or it is
 *      WEFT_TASK_AGE_MS old) is handed to the sink and forgotten once it is stored; a late
 *      report makes a new part, which the store merges by task id
 *
 * One thread, no I/O. */
#ifndef CTL_CORRELATE_H
#define CTL_CORRELATE_H

#include "../../common/batch.h"
#include "instances.h"
#include "shed.h"
#include "task.h"

typedef struct ctl_correlate_t ctl_correlate_t;

/* Borrows the registry. `open_max` bounds the tasks in memory (0: WEFT_OPEN_TASKS_MAX), `bytes_max` what
 * they and their reports take (0: WEFT_OPEN_BYTES_MAX). */
ctl_correlate_t *ctl_correlate_new_within (ctl_instances_t *instances, uint32_t open_max, uint64_t bytes_max);
ctl_correlate_t *ctl_correlate_new (ctl_instances_t *instances, uint32_t open_max);
void ctl_correlate_destroy (ctl_correlate_t **self_p);

/* Correlates every report of a batch frame. Duplicates of a batch are the
 * caller's to drop. 0, WEFT_E_VERSION, WEFT_E_MALFORMED (what came before the
 * damage is kept; *ret_reports says how many were taken), WEFT_E_NOMEM; WEFT_E_FULL before anything
 * was taken: more than WEFT_EVICTED_MAX tasks wait to be handed out, settle and call
 * again. Tells the registry the instance's anchor and boot; start, batch number and
 * report count are the caller's. */
int ctl_correlate_batch (ctl_correlate_t *self, const void *frame, size_t size, uint32_t *ret_reports);

/* Makes room for one more batch by marking the oldest tasks for the sink. WEFT_E_FULL: settle first. */
int ctl_correlate_room (ctl_correlate_t *self);
/* Whether there is room for so many batches without marking any. */
int ctl_correlate_ease (const ctl_correlate_t *self, uint32_t batches);

/* Called with each execution that matches; it may keep it by setting *execution_p NULL. */
typedef int (ctl_execution_fn) (ctl_execution_t **execution_p, void *arg);

/* Builds executions of what is in memory, without forgetting it. instruction 0:
 * all. from_ns..to_ns: wall-clock start of the execution (0, UINT64_MAX: all).
 * Stops with the callback's non-zero return. */
int ctl_correlate_each (ctl_correlate_t *self, uint32_t instruction, uint64_t from_ns, uint64_t to_ns,
                        ctl_execution_fn *fn, void *arg);
/* Those whose id lies within low..high, all of them. */
int ctl_correlate_between (ctl_correlate_t *self, const uint8_t low[WEFT_TASK_ID_SIZE],
                           const uint8_t high[WEFT_TASK_ID_SIZE], ctl_execution_fn *fn, void *arg);
/* The execution with this task id. WEFT_E_NOT_FOUND. */
int ctl_correlate_find (ctl_correlate_t *self, const uint8_t task[WEFT_TASK_ID_SIZE],
                        ctl_execution_t **ret_execution);
#define CTL_CORRELATE_HOLD 1
/* Hands every settled task to fn and forgets it; now_ns is CLOCK_MONOTONIC; `all` takes
 * also what is not settled (shutdown). If fn fails, the task is kept and this ends. If fn
 * returns CTL_CORRELATE_HOLD the task is held: out of the way until it is released. Self times and
 * critical path are not filled (ctl_execution_time in settle.h). */
int ctl_correlate_settle (ctl_correlate_t *self, uint64_t now_ns, int all, ctl_execution_fn *fn, void *arg);
/* Of all that are held: `taken`: forgets them; else they are as before they were handed out. */
void ctl_correlate_release (ctl_correlate_t *self, int taken);

/* This instance (its index) works no more, or under nothing, since its last batch. */
void ctl_correlate_idle (ctl_correlate_t *self, uint32_t instance);
/* What an overloaded controller does without (shed.h); borrowed. Nothing of what it sheds is taken. */
ctl_shed_t *ctl_correlate_shedder (ctl_correlate_t *self);

typedef struct {
  uint64_t reports, duplicates, embeds, captures, bares, opaques;
  uint64_t open_tasks;         /* in memory */
  uint64_t open_max;           /* of them */
  uint64_t bytes, bytes_max;   /* of them and what waits for them */
  uint64_t oldest_ns;          /* CLOCK_MONOTONIC: none of them began before; UINT64_MAX: there is none */
  uint64_t unanswered;         /* among them: not seen complete when ctl_correlate_waiting last looked */
  uint64_t evicted, truncated; /* written out early; subtasks beyond the cap */
  uint64_t skipped;            /* reports of unknown kind */
  uint64_t shed;               /* of tasks that an overloaded controller does without */
  uint64_t discarded;          /* roots from inside that no instruction asked for (R3) */
} ctl_correlate_stats_t;
void ctl_correlate_stats (ctl_correlate_t *self, ctl_correlate_stats_t *ret_stats);
/* Open tasks of one instruction that are not complete yet: what a window's end waits for. */
uint64_t ctl_correlate_waiting (ctl_correlate_t *self, uint32_t instruction);

#endif
