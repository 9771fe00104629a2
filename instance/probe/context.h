/* SPDX-License-Identifier: Apache-2.0 */
/* context: which subtask the current thread works for, or why that is unknown.
 *
 * Open subtasks stand in one fixed table; what a slot holds is a handle
 * (index and generation), so a slot that outlived its subtask is unknown by
 * itself. Wrong is worse than unknown:
 *
 *  X1  a handle is valid only between open and close of its subtask
 *  X2  the thread slot is known only while exactly one subtask that was opened
 *      on this thread is still open
 *  X3  after a wait for several sockets, and after an accept: whoever does either
 *      (probe_context_event_loop) may be one who hands work on. The slot is void
 *      until the next subtask is opened on this thread, and then also unless this
 *      thread has closed one of its own: a loop that only hands work on never
 *      does; on a thread that waited so while a subtask was open it is void for
 *      good
 *  X4  where an adapter owns the slot (virtual threads), the thread slot is
 *      never consulted; X2 and X3 hold for the logical thread
 *
 * Any thread; no allocation, no lock, errno untouched. */
#ifndef PROBE_CONTEXT_H
#define PROBE_CONTEXT_H

#include <stdint.h>

#include "../../common/report.h"
#include "tracestate.h"

/* 0 is none. index | generation << 32, generation never 0. */
typedef uint64_t probe_handle_t;
#define PROBE_SUBTASKS_MAX 4096 /* open at once in one VM: 256 KiB; beyond it requests are unknown, counted */

typedef struct {
  uint8_t task[WEFT_TASK_ID_SIZE];
  uint64_t subtask;
  uint8_t flags;         /* of the traceparent that it came with, 0: none */
  probe_handle_t handle; /* which open subtask this is a copy of */
} probe_context_t;

/* What came along with the ids. */
typedef struct {
  uint8_t flags;
  const char *tracestate; /* borrowed */
  size_t tracestate_size; /* at most PROBE_TRACESTATE_MAX */
} probe_along_t;

/* Enters a subtask that the calling thread has just received. subtask 0: a
 * request that no instruction asked for (no match, sampled out, no root rule):
 * known, and nothing is to be embedded for it. 0: table full. */
probe_handle_t probe_context_open (const uint8_t task[WEFT_TASK_ID_SIZE], uint64_t subtask);
/* The same for a subtask that came with request id `request` (0: none). */
probe_handle_t probe_context_receive (const uint8_t task[WEFT_TASK_ID_SIZE], uint64_t subtask,
                                      uint64_t request);
probe_handle_t probe_context_receive_with (const uint8_t task[WEFT_TASK_ID_SIZE], uint64_t subtask,
                                           uint64_t request, const probe_along_t *along);
/* The tracestate that an open subtask came with; its size, 0: none, or not open any more. */
size_t probe_context_tracestate (probe_handle_t handle, char out[PROBE_TRACESTATE_MAX]);
/* It waits behind another request of its connection: any thread may be the one
 * that takes it up, so what the threads' slots say of it is void for its life. */
void probe_context_queued (probe_handle_t handle);
/* 1: a subtask that was received under (task, request) is open, on whatever
 * thread: what carries these ids forwards its header. 2: several are (a retry, a
 * mirror), and it cannot be said which of them forwards. 0: none. */
int probe_context_find (const uint8_t task[WEFT_TASK_ID_SIZE], uint64_t request,
                        probe_context_t *ret_context);
/* Any thread may close; idempotent. */
void probe_context_close (probe_handle_t handle);
/* 1: known, *ret_context set (its subtask is 0 where nothing is to be
 * embedded); 0: unknown, *ret_reason says why. */
int probe_context_current (probe_context_t *ret_context, weft_reason_t *ret_reason);
/* 1: it has not been closed yet. */
int probe_context_is_open (probe_handle_t handle);
/* 0: certainly nothing is open on the calling thread, and nothing that comes to it would
 * be foreign to anything. Two loads: what a quiet connection costs (quiet.h). */
#pragma GCC visibility push(hidden)
extern __thread uint8_t probe_context_count;
extern uint8_t probe_context_adapted;
#pragma GCC visibility pop
static inline int probe_context_near (void)
{
  return probe_context_count | probe_context_adapted;
}
/* The calling thread has received work that nobody follows: until what is open
 * on it has been closed, the slot cannot say which of them it works for. */
void probe_context_foreign (void);
/* The calling thread returned from a wait for several sockets. */
void probe_context_event_loop (void);
/* Forgets every open subtask (deactivation, forked child). */
void probe_context_reset (void);
/* Adapter of a runtime that knows better than the thread. get returns the
 * handle that belongs to the logical thread and whether it could be read;
 * both run inside a socket call of the VM. NULL restores the thread slot. */
typedef struct {
  int (*get) (probe_handle_t *ret_handle); /* 0, or negative: cannot be read */
  int (*set) (probe_handle_t handle);
} probe_slot_t;
void probe_context_use (const probe_slot_t *slot);
/* Makes the context unknown everywhere (a runtime that needs an adapter it does not have). */
void probe_context_use_none (void);

#endif
