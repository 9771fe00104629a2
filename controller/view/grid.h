/* SPDX-License-Identifier: Apache-2.0 */
/* grid: columns that are as wide as their widest cell. Where the terminal is
 * narrower, they give way, and spare ones are left out. Cells are made safe (V1 of style.h) when they are added. */
#ifndef CTL_GRID_H
#define CTL_GRID_H

#include "style.h"

typedef struct {
  const char *title; /* NULL in the first column: no head line */
  uint8_t right;     /* aligned right */
  uint8_t flex;      /* 1: may be narrowed, down to CTL_GRID_NARROW; CTL_GRID_SPARE: may be left out */
} ctl_grid_column_t;

#define CTL_GRID_ENOUGH 24u /* before one is narrower than this, spare ones go */
#define CTL_GRID_NARROW 8u
#define CTL_GRID_SPARE  2u

typedef struct ctl_grid_t ctl_grid_t;

/* `columns` is borrowed. */
ctl_grid_t *ctl_grid_new (const ctl_style_t *style, const ctl_grid_column_t *columns, uint32_t count);
void ctl_grid_destroy (ctl_grid_t **self_p);
/* The next cell, row by row. Failures are remembered until _print. */
void ctl_grid_cell (ctl_grid_t *self, const char *text);
/* As printf; the result is trusted: only for what we wrote ourselves. */
void ctl_grid_own (ctl_grid_t *self, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
/* As ctl_style_number and ctl_style_ms write it. */
void ctl_grid_number (ctl_grid_t *self, uint64_t value);
void ctl_grid_ms (ctl_grid_t *self, uint64_t ns);
/* WEFT_E_NOMEM, WEFT_E_IO. */
int ctl_grid_print (ctl_grid_t *self, FILE *out);

#endif
