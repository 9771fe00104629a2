/* SPDX-License-Identifier: Apache-2.0 */
/* identify: `weft-instance identify [PID…]`: what could be joined, one JSON
 * object a line, for the list that `weft profile` prints. */
#ifndef CAR_IDENTIFY_H
#define CAR_IDENTIFY_H

#include <stdio.h>
#include <sys/types.h>

/* Prints what `pid` is. WEFT_E_NOT_FOUND: no such process, nothing printed. */
int car_identify (FILE *out, pid_t pid, const char *service);
/* The same for every process VM of this host that can be seen. */
void car_identify_all (FILE *out);

#endif
