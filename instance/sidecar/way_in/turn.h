/* SPDX-License-Identifier: Apache-2.0 */
/* turn: one at a time. Two that join the same process at the same moment would
 * both bring a probe in; the name of a socket, which the kernel gives back
 * whatever its owner dies of, says who is at it. */
#ifndef CAR_TURN_H
#define CAR_TURN_H

#include <sys/types.h>

/* Longer than joining takes, but where it waits for a process that is stopped to be continued. */
#define CAR_TURN_WAIT_MS 8000

/* Waits for its turn. A descriptor to be closed when done; WEFT_E_BUSY: not within
 * CAR_TURN_WAIT_MS; WEFT_E_IO with errno: there is no such socket to be had. */
int car_turn_take (pid_t pid);

#endif
