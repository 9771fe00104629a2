/* SPDX-License-Identifier: Apache-2.0 */
/* thread: one thread of another process, held still with ptrace for as short as
 * possible.
 *
 *   car_thread_seize ─▶ car_thread_stop ─▶ (set, step, run) ─▶ car_thread_release
 *
 *  T1  if this thread of ours ends, or the process dies, the kernel lets the other one go. Seized so that a stop at
 *      a call is no plain SIGTRAP: that one the kernel would then deliver, and kill
 *  T2  a signal that comes while we hold it is handed on; a stop of the whole
 *      process (SIGSTOP) is not ended by us
 *  T3  every wait is bounded by CAR_THREAD_WAIT_MS
 *
 * SIGCHLD is to be blocked: it tells that the thread has stopped. */
#ifndef CAR_THREAD_H
#define CAR_THREAD_H

#include <sys/types.h>
#include <sys/user.h>

#include "signal_frame.h"

#define CAR_THREAD_WAIT_MS 500 /* for a thread to stop; longer in a call that cannot be interrupted */

typedef struct {
  pid_t tid;
  int held; /* stopped now */
} car_thread_t;

/* 0; WEFT_E_DENIED: no right to, or somebody else traces it; WEFT_E_GONE; WEFT_E_IO. */
int car_thread_seize (car_thread_t *self, pid_t tid);
/* Holds it where it would take a signal: there the kernel looks at the result of
 * an interrupted call. From where a call ended it gets there at once.
 * 0; WEFT_E_STATE: the whole process is stopped (not with `even_stopped`);
 * WEFT_E_TIMEOUT; WEFT_E_GONE. On failure the thread is let go; one that did not stop in time
 * can be let go only when it does: see car_thread_late. */
int car_thread_stop (car_thread_t *self, int even_stopped);
/* Lets it run; car_thread_stop holds it again. */
int car_thread_run (car_thread_t *self);
/* Runs the system call before which it was placed up to its end. 0 or as car_thread_stop. */
int car_thread_step_call (car_thread_t *self);
/* Lets it go for good, with the registers that it has now. Also where it is not held. */
void car_thread_release (car_thread_t *self);
/* 1: one that had not stopped in time has stopped since, and is held. While no other is held. */
int car_thread_late (car_thread_t *ret_self);

int car_thread_regs (const car_thread_t *self, struct user_regs_struct *ret_regs);
int car_thread_set_regs (const car_thread_t *self, const struct user_regs_struct *regs);
/* Registers, vector state and mask; the buffer behind xstate is the caller's, CAR_XSTATE_MAX bytes. */
int car_thread_save (const car_thread_t *self, car_context_t *ret_context, uint8_t *xstate);
/* Vector state, then mask, then registers: at each step a thread that goes on
 * alone would still find its way (B1). */
int car_thread_restore (const car_thread_t *self, const car_context_t *context);
int car_thread_set_mask (const car_thread_t *self, uint64_t mask);
/* Signals that wait for it or for its process and are not in `mask`. */
uint64_t car_thread_deliverable (const car_thread_t *self, uint64_t mask);

#endif
