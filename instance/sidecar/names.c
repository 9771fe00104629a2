/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/limits.h"

#define PLACEHOLDER "{id}"
#define PROBES      8 /* slots looked at before an old entry is replaced */

typedef struct {
  uint32_t hash;
  uint8_t used, raw_size, size, reserved;
  char raw[WEFT_NAME_MAX];
  char text[WEFT_NAME_MAX];
} entry_t;
_Static_assert(WEFT_NAME_MAX <= UINT8_MAX, "sizes of names fit a byte");

struct car_names_t {
  entry_t entry[CAR_NAMES_CACHE];
};

car_names_t *car_names_new (void)
{
  return calloc (1, sizeof (car_names_t));
}

void car_names_destroy (car_names_t **self_p)
{
  if (!self_p)
    return;
  free (*self_p);
  *self_p = NULL;
}

static uint32_t hash_of (const char *text, size_t size)
{
  uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
  for (size_t i = 0; i < size; i++)
    hash = (hash ^ (uint8_t) text[i]) * 0x100000001b3ull;
  return (uint32_t) (hash ^ (hash >> 32));
}

static int is_digit (char c)
{
  return c >= '0' && c <= '9';
}

static int is_hex (char c)
{
  return is_digit (c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static int is_uuid (const char *text, size_t size)
{
  if (size != 36)
    return 0;
  for (size_t i = 0; i < size; i++) {
    int dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !is_hex (text[i]))
      return 0;
  }
  return 1;
}

static int is_id (const char *text, size_t size)
{
  size_t digits = 0, hex = 0;
  for (size_t i = 0; i < size; i++) {
    digits += (size_t) is_digit (text[i]);
    hex += (size_t) is_hex (text[i]);
  }
  if (size == 0)
    return 0;
  return digits == size || digits >= CAR_NAMES_DIGITS_MIN || (hex == size && size >= CAR_NAMES_HEX_MIN) ||
         is_uuid (text, size);
}

static size_t put (char *out, size_t at, const char *text, size_t size)
{
  for (size_t i = 0; i < size && at < WEFT_NAME_MAX; i++)
    out[at++] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?'; /* names are printed on terminals */
  return at;
}

/* The method is left alone: segments begin at the first '/'. */
static size_t make_template (char *out, const char *name, size_t size)
{
  const char *end = name + size;
  const char *slash = memchr (name, '/', size);
  if (!slash)
    return put (out, 0, name, size);
  size_t at = put (out, 0, name, (size_t) (slash - name));
  while (slash < end) {
    const char *segment = slash + 1;
    const char *next = memchr (segment, '/', (size_t) (end - segment));
    if (!next)
      next = end;
    size_t length = (size_t) (next - segment);
    at = put (out, at, "/", 1);
    if (is_id (segment, length))
      at = put (out, at, PLACEHOLDER, sizeof PLACEHOLDER - 1);
    else
      at = put (out, at, segment, length);
    slash = next;
  }
  return at;
}

const char *car_names_template (car_names_t *self, const char *name, size_t size, size_t *ret_size)
{
  if (size > WEFT_NAME_MAX)
    size = WEFT_NAME_MAX;
  uint32_t hash = hash_of (name, size);
  entry_t *entry = NULL;
  for (unsigned i = 0; i < PROBES && !entry; i++) {
    entry_t *at = &self->entry[(hash + i) % CAR_NAMES_CACHE];
    if (at->used && at->hash == hash && at->raw_size == size && memcmp (at->raw, name, size) == 0) {
      *ret_size = at->size;
      return at->text;
    }
    if (!at->used)
      entry = at;
  }
  if (!entry)
    entry = &self->entry[(hash + hash / CAR_NAMES_CACHE % PROBES) % CAR_NAMES_CACHE];
  entry->used = 1;
  entry->hash = hash;
  entry->raw_size = (uint8_t) size;
  memcpy (entry->raw, name, size);
  entry->size = (uint8_t) make_template (entry->text, name, size);
  *ret_size = entry->size;
  return entry->text;
}
