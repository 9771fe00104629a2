/* SPDX-License-Identifier: Apache-2.0 */
/* writer: the probe's side of the rings. libc only; never blocks, allocates
 * or changes errno; safe from any thread of the owner process. Not for signal
 * handlers. */
#ifndef SHM_WRITER_H
#define SHM_WRITER_H

#include "layout.h"

/* Makes the memory: memfd, size, seals, mapping (at `fixed` if not NULL, with
 * MAP_FIXED over a range that the caller owns), head with a fresh start id.
 * 0 or WEFT_E_IO; *ret_fd is close-on-exec and above 2. */
int shm_create (void *fixed, const char *vm, const char *vm_version, uint64_t probe_base, void **ret_base,
                int *ret_fd);
/* Replaces the mapping by untouched private memory, in one step: a late writer
 * scribbles where nobody reads. The range stays reserved for the next shm_create. */
int shm_retire (void *base);

/* Writes one event: 1 written, 0 dropped and counted in status->lost. `name`
 * longer than WEFT_NAME_MAX is cut and flagged. tid is the caller's. */
int shm_write (void *base, uint32_t tid, const weft_report_t *report);
/* Waits until no ring is borrowed, at most timeout_us (microseconds). 0, or
 * WEFT_E_TIMEOUT when a writer stays in the middle of a write. */
int shm_quiesce (void *base, unsigned timeout_us);

static inline void shm_count (void *base, shm_counter_t counter, uint64_t n)
{
  __atomic_fetch_add (&shm_status (base)->counter[counter], n, __ATOMIC_RELAXED);
}

#endif
