/* SPDX-License-Identifier: Apache-2.0 */
/* find: the memory of a probe, looked for in a process or handed over by it, and
 * checked before it is mapped: name, seals, size, magic, version, owner and pid. */
#ifndef SHM_FIND_H
#define SHM_FIND_H

#include <stdint.h>
#include <sys/types.h>

/* Among /proc/PID/fd; SHM_SIZE bytes, to be unmapped. WEFT_E_NOT_FOUND: none there (yet);
 * WEFT_E_VERSION, WEFT_E_MALFORMED, WEFT_E_DENIED, WEFT_E_GONE. Never opens anything but
 * a memfd of the right name. */
int shm_find (pid_t pid, void **ret_base);
/* A descriptor that a process passed, whose pid and effective user the kernel has told: it
 * may have ended since. The same statuses; fd stays the caller's. */
int shm_find_passed (int fd, pid_t pid, uid_t uid, void **ret_base);
/* The last number of the line that begins with `name` in a status file: the id in the
 * innermost namespace, as the process itself sees it. 0: not there. */
uint32_t shm_find_inner (const char *path, const char *name);

#endif
