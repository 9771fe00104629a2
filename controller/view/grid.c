/* SPDX-License-Identifier: Apache-2.0 */
#include "grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"

#define GAP      2u
#define CELL_MAX 768u /* bytes; wider than any terminal that we format for */
#define LEFT_OUT UINT32_MAX

struct ctl_grid_t {
  const ctl_style_t *style;
  const ctl_grid_column_t *columns;
  uint32_t count;
  char **cell;
  uint32_t cells, capacity;
  int rc;
};

ctl_grid_t *ctl_grid_new (const ctl_style_t *style, const ctl_grid_column_t *columns, uint32_t count)
{
  ctl_grid_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  self->style = style;
  self->columns = columns;
  self->count = count;
  return self;
}

void ctl_grid_destroy (ctl_grid_t **self_p)
{
  ctl_grid_t *self = *self_p;
  if (!self)
    return;
  for (uint32_t i = 0; i < self->cells; i++)
    free (self->cell[i]);
  free (self->cell);
  free (self);
  *self_p = NULL;
}

static void add (ctl_grid_t *self, const char *text)
{
  if (self->rc)
    return;
  if (self->cells == self->capacity) {
    uint32_t capacity = self->capacity ? self->capacity * 2 : 64;
    char **grown = realloc (self->cell, capacity * sizeof *grown);
    if (!grown) {
      self->rc = WEFT_E_NOMEM;
      return;
    }
    self->cell = grown;
    self->capacity = capacity;
  }
  self->cell[self->cells] = strdup (text);
  if (!self->cell[self->cells])
    self->rc = WEFT_E_NOMEM;
  else
    self->cells++;
}

void ctl_grid_cell (ctl_grid_t *self, const char *text)
{
  char safe[CELL_MAX];
  ctl_style_safe (safe, sizeof safe, text, self->style->utf8);
  add (self, safe);
}

void ctl_grid_own (ctl_grid_t *self, const char *format, ...)
{
  char text[CELL_MAX];
  va_list args;
  va_start (args, format);
  vsnprintf (text, sizeof text, format, args);
  va_end (args);
  add (self, text);
}

void ctl_grid_number (ctl_grid_t *self, uint64_t value)
{
  char number[CELL_MAX];
  ctl_style_number (number, sizeof number, value);
  add (self, number);
}

void ctl_grid_ms (ctl_grid_t *self, uint64_t ns)
{
  char ms[CELL_MAX];
  ctl_style_ms (ms, sizeof ms, ns);
  add (self, ms);
}

static uint32_t widest (const ctl_grid_t *self, uint32_t column)
{
  uint32_t width = self->columns[0].title ? ctl_style_width (self->columns[column].title) : 0;
  for (uint32_t i = column; i < self->cells; i += self->count) {
    uint32_t one = ctl_style_width (self->cell[i]);
    width = one > width ? one : width;
  }
  return width;
}

/* Takes from the widest flexible column, one by one, until the line fits or none is wider than `least`. */
static uint32_t take_from_flexible (const ctl_grid_t *self, uint32_t *width, uint32_t sum, uint32_t least)
{
  for (; sum > self->style->columns; sum--) {
    uint32_t victim = self->count;
    for (uint32_t i = 0; i < self->count; i++)
      if (self->columns[i].flex == 1 && width[i] > least &&
          (victim == self->count || width[i] > width[victim]))
        victim = i;
    if (victim == self->count)
      return sum;
    width[victim]--;
  }
  return sum;
}

/* Long names give first, then spare columns go, the last first, then names become short. */
static void narrow (const ctl_grid_t *self, uint32_t *width)
{
  uint32_t sum = GAP * (self->count - 1);
  for (uint32_t i = 0; i < self->count; i++)
    sum += width[i];
  sum = take_from_flexible (self, width, sum, CTL_GRID_ENOUGH);
  for (uint32_t i = self->count; i-- > 0 && sum > self->style->columns;)
    if (self->columns[i].flex == CTL_GRID_SPARE) {
      sum -= width[i] + GAP;
      width[i] = LEFT_OUT;
    }
  take_from_flexible (self, width, sum, CTL_GRID_NARROW);
}

/* No blanks at the end of a line: what is empty there is left out. */
static void print_row (const ctl_grid_t *self, FILE *out, const uint32_t *width, const char *const *text)
{
  uint32_t count = self->count;
  while (count && (!*text[count - 1] || width[count - 1] == LEFT_OUT))
    count--;
  for (uint32_t i = 0; i < count; i++) {
    if (width[i] == LEFT_OUT)
      continue;
    uint32_t wide = ctl_style_width (text[i]);
    int last = i + 1 == count;
    if (last && !self->columns[i].right && wide < width[i])
      fputs (text[i], out);
    else
      ctl_style_cell (out, self->style, text[i], width[i], self->columns[i].right);
    if (!last)
      fprintf (out, "%*s", (int) GAP, "");
  }
  fputc ('\n', out);
}

int ctl_grid_print (ctl_grid_t *self, FILE *out)
{
  if (self->rc)
    return self->rc;
  uint32_t *width = calloc (self->count, sizeof *width);
  const char **row = calloc (self->count, sizeof *row);
  if (!width || !row) {
    free (width);
    free (row);
    return WEFT_E_NOMEM;
  }
  for (uint32_t i = 0; i < self->count; i++)
    width[i] = widest (self, i);
  narrow (self, width);
  if (self->columns[0].title) {
    for (uint32_t i = 0; i < self->count; i++)
      row[i] = self->columns[i].title;
    ctl_style_colour (out, self->style, CTL_COLOUR_DIM);
    print_row (self, out, width, row);
    ctl_style_colour (out, self->style, CTL_COLOUR_NONE);
  }
  for (uint32_t i = 0; i + self->count <= self->cells; i += self->count) {
    for (uint32_t k = 0; k < self->count; k++)
      row[k] = self->cell[i + k];
    print_row (self, out, width, row);
  }
  free (row);
  free (width);
  return ferror (out) ? WEFT_E_IO : 0;
}
