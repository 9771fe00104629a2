/* SPDX-License-Identifier: Apache-2.0 */
/* gzip: what goes out, packed for a network that costs more than the CPU that packing takes. The
 * only room that knows zlib. One thread. */
#ifndef CTL_GZIP_H
#define CTL_GZIP_H

#include <stddef.h>

typedef struct ctl_gzip_t ctl_gzip_t;

/* NULL: out of memory. */
ctl_gzip_t *ctl_gzip_new (void);
void ctl_gzip_destroy (ctl_gzip_t **self_p);
/* One whole gzip member (RFC 1952) of it; its bytes are borrowed until the next one. WEFT_E_NOMEM. */
int ctl_gzip_pack (ctl_gzip_t *self, const void *data, size_t size, const void **ret_data, size_t *ret_size);

#endif
