/* SPDX-License-Identifier: Apache-2.0 */
/* processes: who is there: the one walk over /proc. Some may have ended when they are
 * told of, others have come and are not told of. */
#ifndef CAR_PROCESSES_H
#define CAR_PROCESSES_H

#include <sys/types.h>

typedef void car_process_t (void *arg, pid_t pid);

/* Calls `each` for every process of our pid namespace but this one. */
void car_processes_each (car_process_t *each, void *arg);

#endif
