/* SPDX-License-Identifier: Apache-2.0 */
/* wrap: items in a row, a separator between them, a new line where the next one
 * would not fit. */
#ifndef CTL_WRAP_H
#define CTL_WRAP_H

#include "style.h"

typedef struct {
  FILE *out;
  const ctl_style_t *style;
  uint32_t used; /* columns of this line */
  uint32_t items;
} ctl_wrap_t;

/* Prints `text` and counts it; items follow. */
void ctl_wrap_begin (ctl_wrap_t *self, FILE *out, const ctl_style_t *style, const char *text);
/* One item; cut only if it is longer than a whole line. Must be safe text. */
void ctl_wrap_item (ctl_wrap_t *self, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
void ctl_wrap_end (ctl_wrap_t *self);

#endif
