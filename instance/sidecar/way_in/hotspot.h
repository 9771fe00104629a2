/* SPDX-License-Identifier: Apache-2.0 */
/* hotspot: the attach protocol of the HotSpot JVM, spoken without a JDK.
 *
 *   socket /tmp/.java_pid<nspid> there? ──no──▶ .attach_pid file, SIGQUIT, poll
 *          │ yes                                     │
 *          ▼                                         ▼
 *   connect, peer is the target? ──▶ "1\0load\0<path>\0true\0\0" ──▶ "return code: 0"
 *
 *  H1  SIGQUIT is sent only to a process that catches it and says that it takes
 *      attachers; anything else would print a thread dump or kill it
 *  H2  the .attach_pid file is gone when the function returns
 *  H3  every wait is bounded by CAR_HOTSPOT_WAIT_MS
 *  H4  nothing is sent to one that is stopped: it would take the signal when it goes on,
 *      find no .attach_pid file any more, and print a thread dump */
#ifndef CAR_HOTSPOT_H
#define CAR_HOTSPOT_H

#include <stddef.h>

#include "../target.h"

#define CAR_HOTSPOT_WAIT_MS     5000
#define CAR_HOTSPOT_REQUEST_MAX 1024  /* bytes; JDK 17 closes silently past it */
#define CAR_HOTSPOT_ANSWER_MAX  65536 /* bytes that are read of an answer */

/* 0: it takes attachers as far as one can see; WEFT_E_UNSUPPORTED with "reason;
 * remedy" in why. */
int car_hotspot_check (const car_target_t *target, char *why, size_t why_size);
/* First character of its sun.rt.jvmCapabilities: '1' where attachers are taken; 0
 * when there is no such data (-XX:-UsePerfData). */
char car_hotspot_capability (const car_target_t *target);
/* Whether a flag stands in the command line or in a variable that a JVM reads. */
int car_hotspot_has_flag (pid_t pid, const char *flag);
/* Loads `library` (absolute path) as an agent. 0, or a status with "reason;
 * remedy" in why. pidfd: of the target, so that no successor of it is signalled.
 * Changes the effective ids of the whole process for a while: one thread. */
int car_hotspot_load (const car_target_t *target, int pidfd, const char *library, char *why, size_t why_size);

/* What an answer means: 0, or a status and why. Exposed for tests. */
int car_hotspot_answer (const char *answer, char *why, size_t why_size);

#endif
