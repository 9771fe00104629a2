/* SPDX-License-Identifier: Apache-2.0 */
/* ids: task, subtask and request ids, and their hexadecimal form.
 *
 * The generator is xoshiro256** (Blackman, Vigna 2018) seeded by getrandom(2):
 * 2.6 ns an id where a uuid costs 2.4 us. libc only: the probe links it.
 * A generator is owned by one thread; it must be reseeded in a forked child. */
#ifndef WEFT_IDS_H
#define WEFT_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "limits.h"

typedef struct {
  uint64_t s[4];
} weft_ids_t;

/* Seeds from getrandom; falls back to clock, pid and address when the kernel
 * has none yet. Never fails, never blocks. Async-signal-safe. */
void weft_ids_seed (weft_ids_t *self);
/* A 64-bit id, never 0. */
uint64_t weft_ids_next (weft_ids_t *self);
/* A 128-bit task id, never all zero. */
void weft_ids_task (weft_ids_t *self, uint8_t ret_task[WEFT_TASK_ID_SIZE]);

/* Lower-case hex without terminator: writes 2 * size bytes. */
void weft_hex_put (char *out, const uint8_t *bytes, size_t size);
/* The 16 digits of a 64-bit id, most significant first, no terminator. */
void weft_hex_put_u64 (char out[16], uint64_t value);
/* Reads 2 * size lower-case digits (upper case is refused: W3C Trace Context
 * level 1, 3.2). 0 or WEFT_E_MALFORMED. */
int weft_hex_get (uint8_t *ret_bytes, const char *text, size_t size);
int weft_hex_get_u64 (uint64_t *ret_value, const char text[16]);

/* "0192f3c4-…", 36 characters and a terminator. */
void weft_uuid_put (char out[37], const uint8_t uuid[WEFT_UUID_SIZE]);
int weft_uuid_get (uint8_t ret_uuid[WEFT_UUID_SIZE], const char *text);

#endif
