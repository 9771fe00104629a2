/* SPDX-License-Identifier: Apache-2.0 */
/* ptrace: brings the probe into a running process that has no way in of its own:
 * one of its threads is stopped at a safe point and made to start a thread; that
 * thread loads the library. The stopped one does nothing else.
 *
 *   look (landing) ─▶ choose a thread ─▶ stop ─▶ safe point? ──no──▶ let go, next or later
 *                                                    │ yes
 *                     signal frame on its stack, mmap, stub, pthread_create
 *                                                    │
 *                     registers back, let go ─▶ talk with the new thread (helper)
 *
 *  I1  whatever instant we die at, the stopped thread goes on as before: until
 *      the first change of its registers nothing has changed, and from then on
 *      what it runs ends in its own signal frame. One thing cannot be had: a call
 *      that the kernel never makes again (epoll_wait, sigtimedwait, semop) shows
 *      its EINTR if we die in the microseconds between stopping and mending it
 *  I2  refused with a reason before anything is touched, or done
 *  I3  no lock of the runtime (GIL) is taken on the stopped thread
 *  I4  bounded: CAR_PTRACE_WAIT_MS for a safe point, CAR_TARGET_STOPPED_MS for a
 *      process that is stopped to be continued by whoever stopped it
 *  I5  a thread that does not stop in time is let go as soon as it does, with its
 *      interruption mended; after the search at the latest, by the kernel
 *  I6  a program that has been replaced (exec) since it was looked at is let go as it
 *      is: addresses of the one before are never used in it */
#ifndef CAR_PTRACE_H
#define CAR_PTRACE_H

#include <stddef.h>

#include "../target.h"

#define CAR_PTRACE_WAIT_MS     3000
#define CAR_PTRACE_OTHERS_MS   5000 /* for the thread of an injector that died */
#define CAR_PTRACE_PAUSE_US    500  /* between two looks for a safe point */
#define CAR_PTRACE_THREADS_MAX 4096 /* of one process that are looked at */
#define CAR_PTRACE_LATE_MAX    4    /* that do not stop in time; each costs CAR_THREAD_WAIT_MS */

/* Brings `library` in, or starts the one of the same build that is mapped. 0, or
 * a status with "reason; remedy" in why. *ret_stopped_us: how long a thread of
 * the process was held. While no
 * other thread of ours has children. */
int car_ptrace_load (const car_target_t *target, int pidfd, const char *library, unsigned *ret_stopped_us,
                     char *why, size_t why_size);

#endif
