/* SPDX-License-Identifier: Apache-2.0 */
/* fault_step: internal steps of the probe that can be told to fail, for the fault
 * tests: a table is full, the kernel gives no answer, a lock is held. In a build
 * without WEFT_FAULTS (every build that is shipped) no step ever does.
 *
 * libc free. One thread: the tests that use it have no other. */
#ifndef WEFT_FAULT_STEP_H
#define WEFT_FAULT_STEP_H

#ifdef WEFT_FAULTS
#define WEFT_STEP_FAILS(name) weft_fault_step (name)
#else
#define WEFT_STEP_FAILS(name) 0
#endif

/* 1: this passage fails. */
int weft_fault_step (const char *name);
/* From here on the n-th passage fails (0: none does); `all`: and every later one of
 * the same name. */
void weft_fault_steps_begin (unsigned long n, int all);
/* Name of the step that failed, NULL if none has been reached. */
const char *weft_fault_steps_failed (void);

#endif
