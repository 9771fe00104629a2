/* SPDX-License-Identifier: Apache-2.0 */
/* rate: how often one client may ask. A bucket for each, filled with
 * WEFT_REQUESTS_RATE a second, holding WEFT_REQUESTS_BURST. A fixed table: the
 * client that was quiet longest gives way to a new one. Reads no clock. One thread. */
#ifndef CTL_RATE_H
#define CTL_RATE_H

#include <stddef.h>
#include <stdint.h>

typedef struct ctl_rate_t ctl_rate_t;

/* NULL when out of memory. */
ctl_rate_t *ctl_rate_new (void);
void ctl_rate_destroy (ctl_rate_t **self_p);
/* 1 if the client of that identity may ask now (and has), 0 if it asks too often. */
int ctl_rate_take (ctl_rate_t *self, const void *identity, size_t size, uint64_t now_ns);

#endif
