/* SPDX-License-Identifier: Apache-2.0 */
/* cursor: a walk over msgpack bytes that nobody vouches for. Header only; the
 * part that batch.c and wire.c share.
 *
 * Every function takes one element and moves past it, or returns
 * WEFT_E_MALFORMED and leaves its results alone (the cursor may have moved).
 * No byte at or after `end` is read; all legal encodings of a value are taken. */
#ifndef WEFT_CURSOR_H
#define WEFT_CURSOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "status.h"

typedef struct {
  const uint8_t *at, *end;
} weft_cursor_t;

static inline uint16_t weft_load_u16 (const uint8_t *at)
{
  uint16_t v;
  memcpy (&v, at, 2);
  return __builtin_bswap16 (v);
}
static inline uint32_t weft_load_u32 (const uint8_t *at)
{
  uint32_t v;
  memcpy (&v, at, 4);
  return __builtin_bswap32 (v);
}
static inline uint64_t weft_load_u64 (const uint8_t *at)
{
  uint64_t v;
  memcpy (&v, at, 8);
  return __builtin_bswap64 (v);
}
static inline void weft_store_u16 (uint8_t *at, uint16_t v)
{
  v = __builtin_bswap16 (v);
  memcpy (at, &v, 2);
}
static inline void weft_store_u32 (uint8_t *at, uint32_t v)
{
  v = __builtin_bswap32 (v);
  memcpy (at, &v, 4);
}
static inline void weft_store_u64 (uint8_t *at, uint64_t v)
{
  v = __builtin_bswap64 (v);
  memcpy (at, &v, 8);
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "loads and stores swap to msgpack's big endian");

static inline size_t weft_cursor_left (const weft_cursor_t *c)
{
  return (size_t) (c->end - c->at);
}

/* A big-endian number of 1, 2, 4 or 8 bytes. */
static inline int weft_cursor_raw (weft_cursor_t *c, unsigned size, uint64_t *ret_value)
{
  if (weft_cursor_left (c) < size)
    return WEFT_E_MALFORMED;
  *ret_value = size == 1   ? c->at[0]
               : size == 2 ? weft_load_u16 (c->at)
               : size == 4 ? weft_load_u32 (c->at)
                           : weft_load_u64 (c->at);
  c->at += size;
  return 0;
}

/* Any integer that is not negative. */
static inline int weft_cursor_uint (weft_cursor_t *c, uint64_t max, uint64_t *ret_value)
{
  uint64_t value;
  if (c->at == c->end)
    return WEFT_E_MALFORMED;
  uint8_t tag = *c->at++;
  if (tag < 0x80)
    value = tag;
  else if (tag >= 0xcc && tag <= 0xd3) { /* unsigned, then signed, each 1, 2, 4, 8 bytes */
    unsigned size = 1u << (tag & 3);
    if (weft_cursor_raw (c, size, &value) < 0)
      return WEFT_E_MALFORMED;
    if (tag >= 0xd0 && value >> (8 * size - 1))
      return WEFT_E_MALFORMED;
  } else
    return WEFT_E_MALFORMED;
  if (value > max)
    return WEFT_E_MALFORMED;
  *ret_value = value;
  return 0;
}

/* Takes the header only; its elements follow. */
static inline int weft_cursor_array (weft_cursor_t *c, uint32_t *ret_count)
{
  uint64_t count;
  if (c->at == c->end)
    return WEFT_E_MALFORMED;
  uint8_t tag = *c->at++;
  if ((tag & 0xf0) == 0x90)
    count = tag & 15;
  else if (tag == 0xdc || tag == 0xdd) {
    if (weft_cursor_raw (c, tag == 0xdc ? 2 : 4, &count) < 0)
      return WEFT_E_MALFORMED;
  } else
    return WEFT_E_MALFORMED;
  *ret_count = (uint32_t) count;
  return 0;
}

static inline int weft_cursor_bytes (weft_cursor_t *c, uint64_t size, const uint8_t **ret_data)
{
  if (weft_cursor_left (c) < size)
    return WEFT_E_MALFORMED;
  *ret_data = c->at;
  c->at += size;
  return 0;
}

/* Binary; borrowed from the frame. */
static inline int weft_cursor_bin (weft_cursor_t *c, const uint8_t **ret_data, uint32_t *ret_size)
{
  uint64_t size;
  if (c->at == c->end)
    return WEFT_E_MALFORMED;
  uint8_t tag = *c->at++;
  if (tag < 0xc4 || tag > 0xc6)
    return WEFT_E_MALFORMED;
  if (weft_cursor_raw (c, 1u << (tag - 0xc4), &size) < 0 || weft_cursor_bytes (c, size, ret_data) < 0)
    return WEFT_E_MALFORMED;
  *ret_size = (uint32_t) size;
  return 0;
}

/* Text; borrowed from the frame, not terminated. */
static inline int weft_cursor_text (weft_cursor_t *c, const uint8_t **ret_data, uint32_t *ret_size)
{
  uint64_t size;
  if (c->at == c->end)
    return WEFT_E_MALFORMED;
  uint8_t tag = *c->at++;
  if ((tag & 0xe0) == 0xa0)
    size = tag & 31;
  else if (tag >= 0xd9 && tag <= 0xdb) {
    if (weft_cursor_raw (c, 1u << (tag - 0xd9), &size) < 0)
      return WEFT_E_MALFORMED;
  } else
    return WEFT_E_MALFORMED;
  if (weft_cursor_bytes (c, size, ret_data) < 0)
    return WEFT_E_MALFORMED;
  *ret_size = (uint32_t) size;
  return 0;
}

/* Takes `tag`'s own bytes; *ret_inside is the number of elements that follow in it. */
static inline int weft_cursor_shell (weft_cursor_t *c, uint8_t tag, uint64_t *ret_inside)
{
  /* For 0xc0..0xdf: bytes of the size field (low nibble) and of fixed payload (high). */
  enum { BAD = 0xff };
  static const uint8_t size_field[32] = {0, BAD, 0, 0, 1, 2, 4, 1, 2, 4, 0, 0, 0, 0, 0, 0,
                                         0, 0,   0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 2, 4, 2, 4};
  static const uint8_t payload[32] = {0, 0, 0, 0, 0, 0, 0, 1, 1,  1, 4, 8, 1, 2, 4, 8,
                                      1, 2, 4, 8, 2, 3, 5, 9, 17, 0, 0, 0, 0, 0, 0, 0};
  uint64_t size = 0;
  const uint8_t *data;

  *ret_inside = 0;
  if (tag < 0x80 || tag >= 0xe0)
    return 0;
  if (tag < 0xa0) {
    *ret_inside = (uint64_t) (tag & 15) << (tag < 0x90); /* a map has two a pair */
    return 0;
  }
  if (tag < 0xc0)
    return weft_cursor_bytes (c, tag & 31, &data);
  if (size_field[tag - 0xc0] == BAD)
    return WEFT_E_MALFORMED;
  if (size_field[tag - 0xc0] && weft_cursor_raw (c, size_field[tag - 0xc0], &size) < 0)
    return WEFT_E_MALFORMED;
  if (tag >= 0xdc) {
    *ret_inside = size << (tag >= 0xde);
    return 0;
  }
  return weft_cursor_bytes (c, size + payload[tag - 0xc0], &data);
}

/* Any one element, whole. Counts instead of nesting: no depth can hurt, and
 * every turn takes at least a byte. */
static inline int weft_cursor_skip (weft_cursor_t *c)
{
  for (uint64_t left = 1; left > 0; left--) {
    uint64_t inside;
    if (c->at == c->end)
      return WEFT_E_MALFORMED;
    uint8_t tag = *c->at++;
    if (weft_cursor_shell (c, tag, &inside) < 0)
      return WEFT_E_MALFORMED;
    left += inside;
  }
  return 0;
}

#endif
