/* SPDX-License-Identifier: Apache-2.0 */
#include "outfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../common/status.h"

int ctl_outfile_open (const char *path, ctl_outfile_t *ret_self)
{
  ctl_outfile_t self = {.path = path};
  struct stat there;
  if (strcmp (path, "-") == 0) {
    self.out = stdout;
  } else if (stat (path, &there) == 0 && !S_ISREG (there.st_mode)) {
    self.out = fopen (path, "we");
  } else {
    if (asprintf (&self.beside, "%s.new", path) < 0)
      return WEFT_E_NOMEM;
    self.out = fopen (self.beside, "we");
  }
  if (!self.out) {
    int number = errno;
    free (self.beside);
    errno = number;
    return WEFT_E_IO;
  }
  *ret_self = self;
  return 0;
}

int ctl_outfile_close (ctl_outfile_t *self, int rc)
{
  int number = errno;
  int failed = self->out == stdout ? fflush (stdout) : fclose (self->out);
  if (rc == 0 && failed) {
    rc = WEFT_E_IO;
    number = errno;
  }
  if (rc == 0 && self->beside && rename (self->beside, self->path) < 0) {
    rc = WEFT_E_IO;
    number = errno;
  }
  if (rc < 0 && self->beside)
    unlink (self->beside);
  free (self->beside);
  *self = (ctl_outfile_t){0};
  errno = number;
  return rc;
}
