/* SPDX-License-Identifier: Apache-2.0 */
/* style: how a terminal wants its text, and the pieces of text all views share.
 *
 *  V1  nothing that came from elsewhere (names, services, addresses) reaches the
 *      output with a control character or an escape sequence in it: each such
 *      byte, and each byte that is no valid UTF-8, is printed as \xNN
 *  V2  every line fits `columns`, if columns is 60 or more */
#ifndef CTL_STYLE_H
#define CTL_STYLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CTL_STYLE_COLUMNS     80 /* where neither COLUMNS nor a terminal says otherwise */
#define CTL_STYLE_COLUMNS_MAX 400

typedef struct {
  uint32_t columns;
  uint8_t utf8;   /* box drawing and bars, else ASCII */
  uint8_t colour; /* ANSI colours */
} ctl_style_t;

/* What fd (a terminal or not), COLUMNS, LC_ALL/LC_CTYPE/LANG, NO_COLOR and TERM say. */
void ctl_style_detect (int fd, ctl_style_t *ret_style);

/* All of these write a terminated text, cut to `size`, and return its length in bytes. */
size_t ctl_style_number (char *out, size_t size, uint64_t number); /* 1,204 */
size_t ctl_style_ms (char *out, size_t size, uint64_t ns);         /* 0.412, 4.1, 231 (three digits or so) */
size_t ctl_style_percent (char *out, size_t size, double share);   /* 30 %, 0.4 %, 100 % only if it is all */
size_t ctl_style_date (char *out, size_t size, uint64_t wall_ns);  /* 2026-11-29 14:02:11.482, local time */
size_t ctl_style_safe (char *out, size_t size, const char *text, uint8_t utf8); /* V1 */
/* "HotSpot" for "jvm", "CPython", "Node.js", "Ruby", "PHP"; the text itself otherwise. */
const char *ctl_style_vm (const char *vm);

/* Columns that `text` (valid UTF-8, no control characters) takes on a terminal. */
uint32_t ctl_style_width (const char *text);
/* Prints safe `text` into exactly `width` columns: padded, or cut with an ellipsis. right: aligned right. */
void ctl_style_cell (FILE *out, const ctl_style_t *style, const char *text, uint32_t width, int right);

typedef enum {
  CTL_COLOUR_NONE,
  CTL_COLOUR_BOLD,
  CTL_COLOUR_DIM,
  CTL_COLOUR_RED,
  CTL_COLOUR_YELLOW
} ctl_colour_t;
/* Starts a colour, or ends it (NONE); nothing if the style has none. */
void ctl_style_colour (FILE *out, const ctl_style_t *style, ctl_colour_t colour);

#endif
