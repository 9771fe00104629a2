/* SPDX-License-Identifier: Apache-2.0 */
/* reserve: an address range that the kernel backs as it is used. Header only. */
#ifndef CTL_RESERVE_H
#define CTL_RESERVE_H

#include <stddef.h>
#include <sys/mman.h>

/* Zeros; NULL: no such range is free. munmap gives it back. */
static inline void *ctl_reserve (size_t size)
{
  void *at = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return NULL;
  madvise (at, size, MADV_HUGEPAGE); /* a wish: fewer TLB misses */
  return at;
}

#endif
