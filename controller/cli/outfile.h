/* SPDX-License-Identifier: Apache-2.0 */
/* outfile: a file that is there whole or not at all: written beside its place, then renamed.
 * What is no regular file (a pipe, a terminal) is written as it is; "-" is stdout. */
#ifndef CTL_OUTFILE_H
#define CTL_OUTFILE_H

#include <stdio.h>

typedef struct {
  const char *path;
  char *beside; /* NULL: written as it is */
  FILE *out;
} ctl_outfile_t;

/* Borrows the path. A status with errno. */
int ctl_outfile_open (const char *path, ctl_outfile_t *ret_self);
/* Puts it into its place if `rc` is 0, else removes what was written. `rc`, or WEFT_E_IO with errno. */
int ctl_outfile_close (ctl_outfile_t *self, int rc);

#endif
