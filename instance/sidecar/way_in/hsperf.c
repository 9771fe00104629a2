/* SPDX-License-Identifier: Apache-2.0 */
#include "hsperf.h"

#include <stdint.h>
#include <string.h>

#include "../../../common/status.h"

/* Prologue, then entries; both in the byte order of the JVM, the magic always
 * big endian.
 *
 *   0 magic CA FE C0 C0 | 4 order (1: little) | 5 major | 6 minor | 7 accessible
 *   8 used | 12 overflow | 16 time (8) | 24 first entry | 28 entries
 *
 *   0 length | 4 name at | 8 vector length | 12 type | 13 flags | 14 unit
 *   15 variability | 16 data at                                              */
#define PROLOGUE_SIZE 32u
#define ENTRY_SIZE    20u
#define ENTRIES_MAX   4096u
#define TYPE_BYTE     'B'

static uint32_t get_u32 (const uint8_t *at)
{
  return (uint32_t) at[0] | (uint32_t) at[1] << 8 | (uint32_t) at[2] << 16 | (uint32_t) at[3] << 24;
}

int car_hsperf_string (const void *image, size_t size, const char *name, char *out, size_t out_size)
{
  static const uint8_t magic[4] = {0xca, 0xfe, 0xc0, 0xc0};
  const uint8_t *data = image;
  if (size < PROLOGUE_SIZE || memcmp (data, magic, 4) != 0 || data[4] != 1 || data[5] != 2)
    return WEFT_E_MALFORMED;
  size_t at = get_u32 (data + 24), wanted = strlen (name);
  uint32_t entries = get_u32 (data + 28);
  for (uint32_t i = 0; i < entries && i < ENTRIES_MAX; i++) {
    if (at > size || size - at < ENTRY_SIZE)
      return WEFT_E_MALFORMED;
    const uint8_t *entry = data + at;
    uint32_t length = get_u32 (entry), name_at = get_u32 (entry + 4);
    uint32_t count = get_u32 (entry + 8), data_at = get_u32 (entry + 16);
    if (length < ENTRY_SIZE || length > size - at)
      return WEFT_E_MALFORMED;
    at += length;
    if (name_at >= length || length - name_at <= wanted || memcmp (entry + name_at, name, wanted + 1) != 0)
      continue;
    if (entry[12] != TYPE_BYTE || data_at >= length || count > length - data_at || out_size == 0)
      return WEFT_E_MALFORMED;
    size_t copy = strnlen ((const char *) entry + data_at, count);
    copy = copy < out_size ? copy : out_size - 1;
    memcpy (out, entry + data_at, copy);
    out[copy] = '\0';
    return 0;
  }
  return WEFT_E_NOT_FOUND;
}
