/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp: would the filters of a process let through what joining it, and the probe
 * in it, ask of the kernel? Found out by running them here; nothing is tried there.
 *
 *  Q1  a call that is not surely allowed is refused; only those that we can do
 *      without may fail with an error
 *  Q2  threads with different numbers of filters: refused, what one may another may not */
#ifndef CAR_SECCOMP_H
#define CAR_SECCOMP_H

#include <stddef.h>
#include <sys/types.h>

#include "bpf.h"

#define CAR_SECCOMP_FILTERS_MAX 64   /* of one thread */
#define CAR_SECCOMP_CODE_MAX    4096 /* instructions of one, BPF_MAXINSNS */

/* 0: no thread has a filter, or all have the same number and we may read them (CAP_SYS_ADMIN);
 * WEFT_E_UNSUPPORTED with "reason; remedy" in why. Nothing is sent. */
int car_seccomp_check (pid_t pid, char *why, size_t why_size);
/* Of a thread that this one holds. NULL: all allow it; else what is not allowed, by name, or what went wrong. */
const char *car_seccomp_refuses (pid_t tid);
/* The same of one filter. */
const char *car_seccomp_judge (const struct sock_filter *code, unsigned count);

#endif
