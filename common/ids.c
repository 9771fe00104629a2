/* SPDX-License-Identifier: Apache-2.0 */
#include "ids.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#include "clocks.h"
#include "status.h"

static uint64_t rotate (uint64_t x, unsigned by)
{
  return (x << by) | (x >> (64 - by));
}

/* SplitMix64: spreads a poor seed over the whole state. */
static uint64_t spread (uint64_t *state)
{
  uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

void weft_ids_seed (weft_ids_t *self)
{
  int saved = errno;
  ssize_t got = getrandom (self->s, sizeof (self->s), GRND_NONBLOCK);
  errno = saved;
  if (got != (ssize_t) sizeof (self->s)) {
    uint64_t state = weft_clock_ns (CLOCK_REALTIME) ^ rotate (weft_mono_ns (), 32) ^
                     rotate ((uint64_t) getpid (), 48) ^ (uint64_t) (uintptr_t) self;
    for (unsigned i = 0; i < 4; i++)
      self->s[i] = spread (&state);
  }
  /* The one state that xoshiro never leaves. */
  if (!(self->s[0] | self->s[1] | self->s[2] | self->s[3]))
    self->s[0] = 1;
}

static uint64_t step (weft_ids_t *self)
{
  uint64_t *s = self->s;
  uint64_t result = rotate (s[1] * 5, 7) * 9;
  uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate (s[3], 45);
  return result;
}

uint64_t weft_ids_next (weft_ids_t *self)
{
  uint64_t id = step (self);
  /* 0 twice in a row would take a state of zeros. */
  while (__builtin_expect (id == 0, 0))
    id = step (self);
  return id;
}

void weft_ids_task (weft_ids_t *self, uint8_t ret_task[WEFT_TASK_ID_SIZE])
{
  uint64_t half[2] = {weft_ids_next (self), weft_ids_next (self)};
  memcpy (ret_task, half, sizeof (half));
}

static const char digit[] = "0123456789abcdef";

void weft_hex_put (char *out, const uint8_t *bytes, size_t size)
{
  for (size_t i = 0; i < size; i++) {
    out[2 * i] = digit[bytes[i] >> 4];
    out[2 * i + 1] = digit[bytes[i] & 15];
  }
}

void weft_hex_put_u64 (char out[16], uint64_t value)
{
  for (int i = 15; i >= 0; i--) {
    out[i] = digit[value & 15];
    value >>= 4;
  }
}

/* -1: no lower-case hex digit. */
static int digit_value (char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return -1;
}

int weft_hex_get (uint8_t *ret_bytes, const char *text, size_t size)
{
  /* Looked at whole before a byte is written: untouched on failure. */
  for (size_t i = 0; i < 2 * size; i++)
    if (digit_value (text[i]) < 0)
      return WEFT_E_MALFORMED;
  for (size_t i = 0; i < size; i++)
    ret_bytes[i] = (uint8_t) (digit_value (text[2 * i]) << 4 | digit_value (text[2 * i + 1]));
  return 0;
}

int weft_hex_get_u64 (uint64_t *ret_value, const char text[16])
{
  uint64_t value = 0;
  for (size_t i = 0; i < 16; i++) {
    int d = digit_value (text[i]);
    if (d < 0)
      return WEFT_E_MALFORMED;
    value = value << 4 | (uint64_t) d;
  }
  *ret_value = value;
  return 0;
}

/* Bytes before each dash of the 8-4-4-4-12 form. */
static int dash_before (unsigned byte)
{
  return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void weft_uuid_put (char out[37], const uint8_t uuid[WEFT_UUID_SIZE])
{
  char *at = out;
  for (unsigned i = 0; i < WEFT_UUID_SIZE; i++) {
    if (dash_before (i))
      *at++ = '-';
    weft_hex_put (at, uuid + i, 1);
    at += 2;
  }
  *at = 0;
}

int weft_uuid_get (uint8_t ret_uuid[WEFT_UUID_SIZE], const char *text)
{
  uint8_t uuid[WEFT_UUID_SIZE];
  if (strnlen (text, 37) != 36)
    return WEFT_E_MALFORMED;
  for (unsigned i = 0; i < WEFT_UUID_SIZE; i++) {
    if (dash_before (i) && *text++ != '-')
      return WEFT_E_MALFORMED;
    if (weft_hex_get (uuid + i, text, 1) < 0)
      return WEFT_E_MALFORMED;
    text += 2;
  }
  memcpy (ret_uuid, uuid, sizeof (uuid));
  return 0;
}
