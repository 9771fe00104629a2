/* SPDX-License-Identifier: Apache-2.0 */
#include "wrap.h"

#include <stdarg.h>

#define ITEM_MAX 768
#define INDENT   2u

void ctl_wrap_begin (ctl_wrap_t *self, FILE *out, const ctl_style_t *style, const char *text)
{
  uint32_t width = ctl_style_width (text);
  *self = (ctl_wrap_t){.out = out, .style = style};
  self->used = width > style->columns ? style->columns : width;
  ctl_style_cell (out, style, text, self->used, 0);
}

void ctl_wrap_item (ctl_wrap_t *self, const char *format, ...)
{
  char text[ITEM_MAX];
  const char *gap = self->items == 0 ? "" : self->style->utf8 ? " · " : " | ";
  va_list args;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  uint32_t width = ctl_style_width (text), need = width + ctl_style_width (gap);
  if (self->used > INDENT && self->used + need > self->style->columns) {
    fprintf (self->out, "\n%*s", (int) INDENT, "");
    self->used = INDENT;
    need = width;
    gap = "";
  }
  fputs (gap, self->out);
  if (self->used + need > self->style->columns) {
    need = self->style->columns - self->used;
    width = need;
  }
  ctl_style_cell (self->out, self->style, text, width, 0);
  self->used += need;
  self->items++;
}

void ctl_wrap_end (ctl_wrap_t *self)
{
  fputc ('\n', self->out);
}
