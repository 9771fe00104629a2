/* SPDX-License-Identifier: Apache-2.0 */
/* pool: memory that is taken piece by piece and given back all at once, for what
 * lives until a message is written. One thread. */
#ifndef CTL_POOL_H
#define CTL_POOL_H

#include <stddef.h>

typedef struct ctl_pool_t ctl_pool_t;

ctl_pool_t *ctl_pool_new (void);
void ctl_pool_destroy (ctl_pool_t **self_p);
/* Aligned for every type, not cleared. NULL when out of memory. */
void *ctl_pool_take (ctl_pool_t *self, size_t size);
/* `text` if it is UTF-8, else a copy with U+FFFD for each byte that is none. NULL when out of memory. */
const char *ctl_pool_utf8 (ctl_pool_t *self, const char *text);
/* All that was taken is void; the memory is kept for what follows. */
void ctl_pool_reset (ctl_pool_t *self);

#endif
