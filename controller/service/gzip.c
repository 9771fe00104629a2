/* SPDX-License-Identifier: Apache-2.0 */
#include "gzip.h"

#include <limits.h>
#include <stdlib.h>
#define ZLIB_CONST
#include <zlib.h>

#include "../../common/status.h"

#define GZIP_BITS (MAX_WBITS + 16) /* the largest window, in gzip's framing */
#define LEVEL     Z_BEST_SPEED     /* spans repeat themselves: more effort gains little */
#define MEMORY    8                /* zlib's default */

struct ctl_gzip_t {
  z_stream stream;
  unsigned char *packed;
  size_t room;
};

ctl_gzip_t *ctl_gzip_new (void)
{
  ctl_gzip_t *self = calloc (1, sizeof *self);
  if (self &&
      deflateInit2 (&self->stream, LEVEL, Z_DEFLATED, GZIP_BITS, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
    free (self);
    self = NULL;
  }
  return self;
}

void ctl_gzip_destroy (ctl_gzip_t **self_p)
{
  ctl_gzip_t *self = *self_p;
  if (!self)
    return;
  deflateEnd (&self->stream);
  free (self->packed);
  free (self);
  *self_p = NULL;
}

int ctl_gzip_pack (ctl_gzip_t *self, const void *data, size_t size, const void **ret_data, size_t *ret_size)
{
  size_t most = deflateBound (&self->stream, size);
  if (most > UINT_MAX)
    return WEFT_E_NOMEM;
  if (most > self->room) {
    unsigned char *larger = realloc (self->packed, most);
    if (!larger)
      return WEFT_E_NOMEM;
    self->packed = larger;
    self->room = most;
  }
  deflateReset (&self->stream);
  self->stream.next_in = data;
  self->stream.avail_in = (uInt) size;
  self->stream.next_out = self->packed;
  self->stream.avail_out = (uInt) self->room;
  if (deflate (&self->stream, Z_FINISH) != Z_STREAM_END)
    return WEFT_E_NOMEM;
  *ret_data = self->packed;
  *ret_size = self->stream.total_out;
  return 0;
}
