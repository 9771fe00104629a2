/* SPDX-License-Identifier: Apache-2.0 */
/* remote: bytes of another process's memory. Whole or not at all: what is not
 * mapped there is an error, never a short result. */
#ifndef CAR_REMOTE_H
#define CAR_REMOTE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* 0; WEFT_E_DENIED; WEFT_E_GONE; WEFT_E_IO: not mapped. */
int car_remote_read (pid_t pid, uint64_t address, void *out, size_t size);
/* The same as a car_elf_read_t: `pid` points to a pid_t. */
int car_remote_read_elf (void *pid, uint64_t address, void *out, size_t size);
/* Only where the process itself could write. The same statuses. */
int car_remote_write (pid_t pid, uint64_t address, const void *data, size_t size);
/* Also into what is read-only there: for a tracer of the process. */
int car_remote_force (pid_t pid, uint64_t address, const void *data, size_t size);
/* A terminated text of at most size - 1 bytes, cut, with control characters replaced. */
int car_remote_text (pid_t pid, uint64_t address, char *out, size_t size);

#endif
