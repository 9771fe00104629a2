/* SPDX-License-Identifier: Apache-2.0 */
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

size_t ctl_utf8_sequence (const char *text)
{
  unsigned char first = (unsigned char) text[0], second = 0;
  size_t size = first < 0x80   ? 1
                : first < 0xc2 ? 0
                : first < 0xe0 ? 2
                : first < 0xf0 ? 3
                : first < 0xf5 ? 4
                               : 0;
  for (size_t i = 1; i < size; i++)
    if (((unsigned char) text[i] & 0xc0) != 0x80)
      return 0;
  if (size > 1)
    second = (unsigned char) text[1];
  /* overlong forms, surrogates, beyond U+10FFFF */
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
    return 0;
  return size;
}

json_t *ctl_utf8_json (const char *text)
{
  json_t *plain = json_string (text);
  if (plain)
    return plain;
  size_t size = strlen (text), at = 0;
  char *fixed = malloc (size * 3 + 1);
  if (!fixed)
    return NULL;
  while (*text) {
    size_t taken = ctl_utf8_sequence (text);
    memcpy (fixed + at, taken ? text : "\xef\xbf\xbd", taken ? taken : 3);
    at += taken ? taken : 3;
    text += taken ? taken : 1;
  }
  fixed[at] = 0;
  json_t *json = json_string (fixed);
  free (fixed);
  return json;
}
