/* SPDX-License-Identifier: Apache-2.0 */
/* bpf: what a seccomp filter says to a system call, found out by running the filter
 * here. It is somebody else's program and may be anything: what the kernel would not
 * have taken ends as refused.
 *
 *  F1  no jump leads back and each step moves on: it ends
 *  F2  nothing outside of the call's data and of the 16 words of scratch memory is read */
#ifndef CAR_BPF_H
#define CAR_BPF_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

/* What the filter returns: an action (SECCOMP_RET_ACTION_FULL) and its data. */
uint32_t car_bpf_run (const struct sock_filter *code, unsigned count, const struct seccomp_data *call);

#endif
