/* SPDX-License-Identifier: Apache-2.0 */
#include "crc32c.h"

#include <string.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* The sixteen remainders of one half byte: small enough to be built by hand of
 * the compiler, and fast enough for processors that lack the instruction. */
#define R1(x) (((x) >> 1) ^ (((x) &1u) ? POLYNOMIAL : 0u))
#define R4(x) R1 (R1 (R1 (R1 (x))))
static const uint32_t remainder_of[16] = {R4 (0u),  R4 (1u),  R4 (2u),  R4 (3u), R4 (4u),  R4 (5u),
                                          R4 (6u),  R4 (7u),  R4 (8u),  R4 (9u), R4 (10u), R4 (11u),
                                          R4 (12u), R4 (13u), R4 (14u), R4 (15u)};

uint32_t weft_crc32c_portable (uint32_t seed, const void *data, size_t size)
{
  const uint8_t *at = data;
  uint32_t crc = ~seed;
  for (; size > 0; size--) {
    crc ^= *at++;
    crc = (crc >> 4) ^ remainder_of[crc & 15];
    crc = (crc >> 4) ^ remainder_of[crc & 15];
  }
  return ~crc;
}

#if defined(__x86_64__)
__attribute__ ((target ("sse4.2"))) static uint32_t crc32c_sse (uint32_t seed, const void *data, size_t size)
{
  const uint8_t *at = data;
  uint64_t crc = ~seed;
  for (; size >= 8; size -= 8, at += 8) {
    uint64_t word;
    memcpy (&word, at, 8);
    crc = _mm_crc32_u64 (crc, word);
  }
  uint32_t rest = (uint32_t) crc;
  for (; size > 0; size--)
    rest = _mm_crc32_u8 (rest, *at++);
  return ~rest;
}
#endif

uint32_t weft_crc32c (uint32_t seed, const void *data, size_t size)
{
#if defined(__x86_64__)
  if (__builtin_cpu_supports ("sse4.2"))
    return crc32c_sse (seed, data, size);
#endif
  return weft_crc32c_portable (seed, data, size);
}
