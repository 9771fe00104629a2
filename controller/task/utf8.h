/* SPDX-License-Identifier: Apache-2.0 */
/* utf8: texts from other processes are bytes; who prints or encodes them asks here. */
#ifndef CTL_UTF8_H
#define CTL_UTF8_H

#include <jansson.h>
#include <stddef.h>

/* Bytes (1-4) of the valid UTF-8 sequence that `text` begins with; 0: it is none. Reads no
 * further than the terminator. */
size_t ctl_utf8_sequence (const char *text);
/* A JSON string whatever `text` holds: bytes that are no UTF-8 become U+FFFD. NULL when out of memory. */
json_t *ctl_utf8_json (const char *text);

#endif
