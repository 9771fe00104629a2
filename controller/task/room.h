/* SPDX-License-Identifier: Apache-2.0 */
/* room: memory that is used again by each of many calls that need about as much. Zeroed: none yet.
 * Header only. */
#ifndef CTL_ROOM_H
#define CTL_ROOM_H

#include <stdlib.h>
#include <string.h>

#define CTL_ROOM_KEPT (256u * 1024) /* bytes: what a usual task needs many times over */

typedef struct {
  void *at;
  size_t size;
} ctl_room_t;

/* At least so many bytes, as malloc would give them; what they held before is lost. NULL: out of memory. */
static inline void *ctl_room (ctl_room_t *self, size_t size)
{
  if (self->size < size || !self->at) {
    size_t more = 1 + (size < CTL_ROOM_KEPT / 2 ? size / 2 : 0); /* the next one often needs a little more */
    free (self->at);
    self->at = malloc (size + more);
    self->size = self->at ? size + more : 0;
  }
  return self->at;
}

/* Of few bytes whose number the compiler is not to know: for one that it knows gcc makes `rep stos`, which
 * takes longer to start than a few stores take. */
static inline void ctl_clear (void *at, size_t size)
{
  __asm__("" : "+r"(size));
  memset (at, 0, size);
}

static inline void ctl_room_end (ctl_room_t *self)
{
  free (self->at);
  *self = (ctl_room_t){0};
}

/* After its use: what was unusual goes back. */
static inline void ctl_room_rest (ctl_room_t *self)
{
  if (self->size > CTL_ROOM_KEPT)
    ctl_room_end (self);
}

#endif
