/* SPDX-License-Identifier: Apache-2.0 */
/* varint: a number in 1 to 9 bytes, 7 bits a byte, as packs hold it. Header only.
 *
 *   first byte   xxxxxxx1  1 byte
 *                xxxxxx10  2 bytes, and so on: as many as zeros stand below the lowest 1, and one
 *                10000000  8 bytes
 *                00000000  9: the number is the 8 behind it
 *
 * The rest of the first byte and those behind it are the number, little endian. As long as LEB128, but the
 * length is known at once: no loop, and no branch for each byte to guess wrong. Every length of a number is
 * read, the shortest is written. */
#ifndef CTL_VARINT_H
#define CTL_VARINT_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../common/cursor.h"

#define CTL_VARINT_MOST 9u

static inline void ctl_fixed_put (uint8_t *at, uint64_t value)
{
  value = htole64 (value);
  memcpy (at, &value, sizeof value);
}

static inline uint64_t ctl_fixed_get (const uint8_t *at)
{
  uint64_t value;
  memcpy (&value, at, sizeof value);
  return le64toh (value);
}

/* Bytes of a number below 2^56 beside the first: its highest bit by 7, without a division. */
static inline unsigned ctl_varint_more (uint64_t value)
{
  return (63u - (unsigned) __builtin_clzll (value | 1)) * 37u >> 8;
}

/* Behind it. Writes up to CTL_VARINT_MOST bytes, of which the last may mean nothing. */
static inline uint8_t *ctl_varint_put (uint8_t *at, uint64_t value)
{
  if (value >> 56) {
    *at = 0;
    ctl_fixed_put (at + 1, value);
    return at + CTL_VARINT_MOST;
  }
  unsigned more = ctl_varint_more (value);
  ctl_fixed_put (at, (value << 1 | 1) << more);
  return at + more + 1;
}

/* As many as ctl_varint_put moves on. */
static inline unsigned ctl_varint_size (uint64_t value)
{
  return value >> 56 ? CTL_VARINT_MOST : ctl_varint_more (value) + 1;
}

/* WEFT_E_MALFORMED: it does not end before the cursor does. */
static inline int ctl_varint_get (weft_cursor_t *cursor, uint64_t *ret_value)
{
  size_t left = weft_cursor_left (cursor);
  uint8_t bytes[8] = {0};
  if (left == 0)
    return WEFT_E_MALFORMED;
  unsigned more = *cursor->at ? (unsigned) __builtin_ctz (*cursor->at) : 8;
  if (left <= more)
    return WEFT_E_MALFORMED;
  if (more == 8) {
    *ret_value = ctl_fixed_get (cursor->at + 1);
  } else {
    const uint8_t *from = cursor->at;
    if (left < sizeof bytes)
      from = memcpy (bytes, cursor->at, left);
    *ret_value = (ctl_fixed_get (from) << (56 - 8 * more)) >> (57 - 7 * more);
  }
  cursor->at += more + 1;
  return 0;
}

/* Small numbers on either side of 0 become small ones. Modulo 2^64: any difference comes back. */
static inline uint64_t ctl_zigzag (uint64_t difference)
{
  return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t ctl_zagzig (uint64_t value)
{
  return value >> 1 ^ (0 - (value & 1));
}

#endif
