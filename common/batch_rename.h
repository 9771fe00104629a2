/* SPDX-License-Identifier: Apache-2.0 */
/* batch_rename: gives a finished batch other names in place: whose it is, its
 * number, and every id in it by one keyed mapping, so that a recording can be
 * sent several times as so many different instances and tasks.
 *
 *  Y1  the mapping of 64-bit ids, of task ids and of uuids is one to one: what was
 *      equal stays equal, what differed differs; 0 and only 0 becomes 0
 *  Y2  a batch is renamed whole or, with a status, not at all
 * Thread-safe: no state but the key. */
#ifndef WEFT_BATCH_RENAME_H
#define WEFT_BATCH_RENAME_H

#include <stddef.h>
#include <stdint.h>

#include "limits.h"

typedef struct {
  uint64_t a, b;
} weft_rename_key_t;

/* The same key for the same words. */
weft_rename_key_t weft_rename_key (uint64_t seed, uint64_t purpose, uint64_t repeat);
uint64_t weft_rename_id (const weft_rename_key_t *key, uint64_t id);
/* A task id or a uuid; `out` may be `in`. */
void weft_rename_16 (const weft_rename_key_t *key, const uint8_t in[16], uint8_t out[16]);

typedef struct {
  uint8_t instance[WEFT_UUID_SIZE], start[WEFT_UUID_SIZE], boot[WEFT_UUID_SIZE];
  uint64_t number;
  const weft_rename_key_t *ids; /* NULL: they stay */
} weft_rename_t;

/* WEFT_E_UNSUPPORTED: not in the encoding of our writer, nothing was changed. */
int weft_batch_rename (void *frame, size_t size, const weft_rename_t *to);

#endif
