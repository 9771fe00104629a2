/* SPDX-License-Identifier: Apache-2.0 */
/* rights: what speaks against making a thread of this process load the probe:
 * its build, a debugger, a filter, the rules of this host. Nothing is touched. */
#ifndef CAR_RIGHTS_H
#define CAR_RIGHTS_H

#include <stddef.h>

#include "../target.h"

#define CAR_RIGHTS_OURS_MS 1000 /* for another weft that is just joining the same process */

#define CAR_RIGHTS_NOT_DUMPABLE                                                                              \
  "it is not dumpable (set-user-id, capabilities, PR_SET_DUMPABLE); run weft as root with CAP_SYS_PTRACE"

/* 0: nothing as far as one can see; else a status with "reason; remedy" in why. */
int car_rights_check (const car_target_t *target, char *why, size_t why_size);

/* 1: this process may trace others' (CAP_SYS_PTRACE). */
int car_rights_capable (void);
/* kernel.yama.ptrace_scope of this host; 0 also where there is none. */
int car_rights_yama (void);
/* The rule alone (tests): 0, or a status and why. */
int car_rights_judge (const car_target_t *target, int yama, int capable, char *why, size_t why_size);

#endif
