/* SPDX-License-Identifier: Apache-2.0 */
#include "traceparent.h"

#include <endian.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "../../common/status.h"

/* Sixteen digits at once, as many are on the path of every request. *bad_p is not 0
 * once one of them was none: upper case is none (W3C Trace Context 3.2). */
#ifdef __SSE2__
static inline uint64_t hex16 (const char *text, uint64_t *bad_p)
{
  __m128i x = _mm_loadu_si128 ((const __m128i *) (const void *) text);
  __m128i letter = _mm_cmpgt_epi8 (x, _mm_set1_epi8 ('a' - 1));
  __m128i value = _mm_sub_epi8 (_mm_sub_epi8 (x, _mm_set1_epi8 ('0')),
                                _mm_and_si128 (letter, _mm_set1_epi8 ('a' - 10 - '0')));
  // A letter is 10 or more by itself, a figure may be 9 at most.
  __m128i most = _mm_or_si128 (_mm_set1_epi8 (9), _mm_and_si128 (letter, _mm_set1_epi8 (6)));
  __m128i bad = _mm_or_si128 (_mm_cmpgt_epi8 (value, most), _mm_cmpgt_epi8 (_mm_setzero_si128 (), value));
  *bad_p |= (unsigned) _mm_movemask_epi8 (bad);
  // The first of each two digits is the upper half of their byte.
  value = _mm_and_si128 (_mm_or_si128 (_mm_slli_epi16 (value, 4), _mm_srli_epi16 (value, 8)),
                         _mm_set1_epi16 (0xff));
  return be64toh ((uint64_t) _mm_cvtsi128_si64 (_mm_packus_epi16 (value, value)));
}

void probe_hex_put (char out[16], uint64_t value)
{
  const __m128i half = _mm_set1_epi8 (0x0f);
  __m128i x = _mm_cvtsi64_si128 ((int64_t) htobe64 (value));
  x = _mm_unpacklo_epi8 (_mm_and_si128 (_mm_srli_epi16 (x, 4), half), _mm_and_si128 (x, half));
  __m128i letter = _mm_and_si128 (_mm_cmpgt_epi8 (x, _mm_set1_epi8 (9)), _mm_set1_epi8 ('a' - 10 - '0'));
  x = _mm_add_epi8 (_mm_add_epi8 (x, _mm_set1_epi8 ('0')), letter);
  _mm_storeu_si128 ((__m128i *) (void *) out, x);
}
#else
#define EACH(byte) ((byte) *0x0101010101010101ull)

static inline uint32_t hex8 (const char *text, uint64_t *bad_p)
{
  uint64_t x;
  memcpy (&x, text, sizeof x);
  x = be64toh (x);
  uint64_t letter = x >> 6 & EACH (1u);
  uint64_t value = (x & EACH (0x0fu)) + letter * 9;
  // Not what a digit of this value looks like, 16 or more, or a letter below 10 or a figure above 9.
  *bad_p |= (x ^ (value + EACH (0x30u) + letter * 0x27)) | (value & EACH (0x10u)) |
            (((value + EACH (6u)) ^ letter << 4) & EACH (0x10u));
  value = (value | value >> 4) & 0x00ff00ff00ff00ffull;
  value = (value | value >> 8) & 0x0000ffff0000ffffull;
  return (uint32_t) (value | value >> 16);
}

static inline uint64_t hex16 (const char *text, uint64_t *bad_p)
{
  uint64_t high = hex8 (text, bad_p);
  return high << 32 | hex8 (text + 8, bad_p);
}

static void put_hex8 (char out[8], uint32_t value)
{
  uint64_t x = value;
  x = (x | x << 16) & 0x0000ffff0000ffffull;
  x = (x | x << 8) & 0x00ff00ff00ff00ffull;
  x = (x | x << 4) & EACH (0x0fu);
  uint64_t letter = (x + EACH (6u)) >> 4 & EACH (1u);
  x = htobe64 (x + EACH (0x30u) + letter * 0x27);
  memcpy (out, &x, sizeof x);
}

void probe_hex_put (char out[16], uint64_t value)
{
  put_hex8 (out, (uint32_t) (value >> 32));
  put_hex8 (out + 8, (uint32_t) value);
}
#endif

static unsigned hex2 (const char *text, uint64_t *bad_p)
{
  unsigned value = 0;
  for (int i = 0; i < 2; i++) {
    unsigned char c = (unsigned char) text[i];
    unsigned figure = c - '0', letter = c - 'a';
    *bad_p |= figure > 9 && letter > 5;
    value = value << 4 | (figure <= 9 ? figure : (letter + 10) & 15);
  }
  return value;
}

/* The ids go from registers straight to where they stay: a copy by wider loads would
 * wait for the stores. Negative: one of them is none. */
static int put_trace (uint64_t high, uint64_t low, uint64_t request, uint64_t bad, probe_trace_t *ret_trace)
{
  if (bad || (high | low) == 0 || request == 0)
    return WEFT_E_MALFORMED;
  high = htobe64 (high);
  low = htobe64 (low);
  memcpy (ret_trace->task, &high, sizeof high);
  memcpy (ret_trace->task + sizeof high, &low, sizeof low);
  ret_trace->request = request;
  return 0;
}

int probe_traceparent_parse (const char *text, size_t size, probe_trace_t *ret_trace)
{
  uint64_t bad = 0;
  if (size < PROBE_TRACEPARENT_SIZE || text[2] != '-' || text[35] != '-' || text[52] != '-')
    return WEFT_E_MALFORMED;
  unsigned version = hex2 (text, &bad);
  uint64_t high = hex16 (text + 3, &bad), low = hex16 (text + 19, &bad);
  uint64_t request = hex16 (text + PROBE_TRACEPARENT_DIGITS, &bad);
  hex2 (text + 53, &bad); // the flags
  // A later version may say more, but only behind another dash.
  if (version == 0xff ||
      (size > PROBE_TRACEPARENT_SIZE && (version == 0 || text[PROBE_TRACEPARENT_SIZE] != '-')))
    return WEFT_E_MALFORMED;
  return put_trace (high, low, request, bad, ret_trace);
}

uint8_t probe_traceparent_flags (const char *text)
{
  uint64_t bad = 0;
  return (uint8_t) hex2 (text + 53, &bad);
}

int probe_weft_task_parse (const char *text, size_t size, probe_trace_t *ret_trace)
{
  uint64_t bad = 0;
  if (size != PROBE_WEFT_TASK_SIZE || text[32] != '-')
    return WEFT_E_MALFORMED;
  uint64_t high = hex16 (text, &bad), low = hex16 (text + 16, &bad);
  return put_trace (high, low, hex16 (text + PROBE_WEFT_TASK_DIGITS, &bad), bad, ret_trace);
}

static void put_ids (char *out, const probe_trace_t *trace)
{
  uint64_t half[2];
  memcpy (half, trace->task, sizeof half);
  probe_hex_put (out, be64toh (half[0]));
  probe_hex_put (out + 16, be64toh (half[1]));
  out[32] = '-';
  probe_hex_put (out + 33, trace->request);
}

static char *put (char *out, const char *text, size_t size)
{
  memcpy (out, text, size);
  return out + size;
}

size_t probe_traceparent_put (char out[PROBE_TRACE_FIELD_MAX], const probe_trace_t *trace, uint8_t flags)
{
  char *at = put (out, "traceparent: 00-", 16);
  put_ids (at, trace);
  at = put (at + 49, flags & PROBE_FLAG_RANDOM ? "-03\r\n" : "-01\r\n", 5);
  return (size_t) (at - out);
}

size_t probe_weft_task_put (char out[PROBE_TRACE_FIELD_MAX], const probe_trace_t *trace)
{
  char *at = put (out, "weft-task: ", 11);
  put_ids (at, trace);
  at = put (at + 49, "\r\n", 2);
  return (size_t) (at - out);
}
