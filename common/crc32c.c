/* SPDX-License-Identifier: Apache-2.0 */
#include "crc32c.h"

#include <string.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>
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
#define TARGET __attribute__ ((target ("sse4.2,pclmul")))

/* The instruction takes a word a cycle but gives its result after three: three
 * runs of LANE bytes side by side keep it busy, then are joined. */
#define LANE 512u
/* x^(8 * bytes - 33) modulo the polynomial, reflected: multiplied by it and
 * reduced once more, a checksum is that of as many zero bytes behind it. */
#define BEHIND_ONE_LANE  0xdd7e3b0cu
#define BEHIND_TWO_LANES 0x170076fau

static inline uint64_t load (const uint8_t *at)
{
  uint64_t word;
  memcpy (&word, at, sizeof word);
  return word;
}

TARGET static inline uint64_t move (uint64_t crc, uint32_t behind)
{
  __m128i product =
      _mm_clmulepi64_si128 (_mm_cvtsi64_si128 ((long long) crc), _mm_cvtsi32_si128 ((int) behind), 0);
  return _mm_crc32_u64 (0, (uint64_t) _mm_cvtsi128_si64 (product));
}

TARGET static uint32_t crc32c_sse (uint32_t seed, const void *data, size_t size)
{
  const uint8_t *at = data;
  uint64_t crc = ~seed;
  for (; size >= 3 * LANE; size -= 3 * LANE, at += 3 * LANE) {
    uint64_t second = 0, third = 0;
    for (size_t n = 0; n < LANE; n += 8) {
      crc = _mm_crc32_u64 (crc, load (at + n));
      second = _mm_crc32_u64 (second, load (at + LANE + n));
      third = _mm_crc32_u64 (third, load (at + 2 * LANE + n));
    }
    crc = move (crc, BEHIND_TWO_LANES) ^ move (second, BEHIND_ONE_LANE) ^ third;
  }
  for (; size >= 8; size -= 8, at += 8)
    crc = _mm_crc32_u64 (crc, load (at));
  uint32_t rest = (uint32_t) crc;
  for (; size > 0; size--)
    rest = _mm_crc32_u8 (rest, *at++);
  return ~rest;
}
#endif

uint32_t weft_crc32c (uint32_t seed, const void *data, size_t size)
{
#if defined(__x86_64__)
  if (__builtin_cpu_supports ("sse4.2") && __builtin_cpu_supports ("pclmul"))
    return crc32c_sse (seed, data, size);
#endif
  return weft_crc32c_portable (seed, data, size);
}
