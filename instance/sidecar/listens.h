/* SPDX-License-Identifier: Apache-2.0 */
/* listens: the TCP ports that a process listens on. The kernel is asked for
 * listening sockets alone where that is possible (its own network namespace):
 * the tables in /proc hold every connection of the host, and take long to read. */
#ifndef CAR_LISTENS_H
#define CAR_LISTENS_H

#include <sys/types.h>

#define CAR_LISTENS_MAX 64 /* bytes of ":8080 :8081" */

/* ":8080 :8081", ascending, the first eight; "": none, or not to be seen. */
void car_listens (pid_t pid, char out[CAR_LISTENS_MAX]);

#endif
