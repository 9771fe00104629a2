/* SPDX-License-Identifier: Apache-2.0 */
/* safe_point: may a thread that was just stopped be made to start another
 * thread? That takes malloc and the locks of libc: it may hold none of them.
 *
 *  Y1  it is on its own stack, with room below: not on a signal stack, not on
 *      that of a coroutine
 *  Y2  in a system call: only one that is known to be made with no lock held,
 *      and not out of the loader; one that waits on a futex does so outside of
 *      what libc, the loader and malloc own
 *  Y3  running: in mapped code that is neither libc nor the loader nor malloc
 *  Y4  no signal handler on its stack has interrupted one of these
 *
 * Decisions only, no system call: what was read of the thread is handed in. */
#ifndef CAR_SAFE_POINT_H
#define CAR_SAFE_POINT_H

#include <sys/user.h>

#include "maps.h"

#define CAR_SAFE_STACK_SCAN 65536 /* bytes above the stack pointer searched for handlers (Y4) */
#define CAR_SAFE_STACK_ROOM 32768 /* bytes below it: the signal frame and what pthread_create needs */
#define CAR_SAFE_STACK_TOP  1024  /* bytes searched for return addresses into an allocator */

#define CAR_SAFE_MAP(XX)                                                                                     \
  XX (YES, "safe")                                                                                           \
  XX (STACK, "on a stack that is not its own")                                                               \
  XX (CALL, "in a system call that may hold a lock")                                                         \
  XX (LOCK, "waiting for a lock of libc")                                                                    \
  XX (CODE, "inside libc or an allocator")                                                                   \
  XX (HANDLER, "in a signal handler")                                                                        \
  XX (SIGNAL, "about to take a signal")                                                                      \
  XX (STUCK, "in a system call that nothing interrupts")
typedef enum {
#define XX(name, text) CAR_SAFE_##name,
  CAR_SAFE_MAP (XX)
#undef XX
} car_safe_t;

/* What is known of a stopped thread. */
typedef struct {
  struct user_regs_struct regs;
  uint64_t deliverable; /* signals that wait and are not blocked */
  const uint8_t *stack; /* bytes from rsp upward */
  size_t stack_size;
  uint8_t before_rip[7]; /* the instructions before rip; zeros if unreadable */
} car_stopped_t;

/* restorer: where handlers of libc return to, 0: unknown. */
car_safe_t car_safe_point (const car_maps_t *maps, const car_stopped_t *thread, uint64_t restorer);
const char *car_safe_text (car_safe_t verdict);

/* Is a thread that waits in system call `number` worth a stop (Y2)? One call that is
 * interrupted the kernel makes again itself; another shows -EINTR until we, some
 * microseconds later, have mended that: only where there is no thread of the other kind. */
typedef enum { CAR_CALL_OTHER, CAR_CALL_WAITS, CAR_CALL_SHOWS } car_safe_call_t;
car_safe_call_t car_safe_call (long number);

/* How an interrupted system call goes on.
 *   kernel    registers to give back while the thread is still stopped: the
 *             kernel restarts the call, but for -EINTR, which it would show
 *   alone     registers with which the thread restarts it by itself: a timeout
 *             that was half over begins anew */
void car_safe_resume (const car_stopped_t *thread, struct user_regs_struct *ret_kernel,
                      struct user_regs_struct *ret_alone);

#endif
