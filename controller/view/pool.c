/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

#include "../task/utf8.h"

#define CHUNK_SIZE ((size_t) 256 << 10)
#define ALIGNMENT  16u

typedef struct chunk_t {
  struct chunk_t *next;
  size_t size, used;
  _Alignas(ALIGNMENT) unsigned char bytes[];
} chunk_t;

struct ctl_pool_t {
  chunk_t *first, *current; /* what is behind `current` is free */
};

ctl_pool_t *ctl_pool_new (void)
{
  return calloc (1, sizeof (ctl_pool_t));
}

void ctl_pool_destroy (ctl_pool_t **self_p)
{
  ctl_pool_t *self = *self_p;
  if (!self)
    return;
  while (self->first) {
    chunk_t *next = self->first->next;
    free (self->first);
    self->first = next;
  }
  free (self);
  *self_p = NULL;
}

/* The next chunk with so much room: the one that was there before, or a new one in front of it. */
static chunk_t *next_chunk (ctl_pool_t *self, size_t size)
{
  chunk_t **link = self->current ? &self->current->next : &self->first;
  if (*link && (*link)->size >= size)
    return *link;
  size_t room = size > CHUNK_SIZE ? size : CHUNK_SIZE;
  chunk_t *made = malloc (sizeof *made + room);
  if (!made)
    return NULL;
  made->size = room;
  made->next = *link;
  *link = made;
  return made;
}

void *ctl_pool_take (ctl_pool_t *self, size_t size)
{
  size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (!self->current || self->current->size - self->current->used < size) {
    chunk_t *chunk = next_chunk (self, size);
    if (!chunk)
      return NULL;
    chunk->used = 0;
    self->current = chunk;
  }
  void *taken = self->current->bytes + self->current->used;
  self->current->used += size;
  return taken;
}

const char *ctl_pool_utf8 (ctl_pool_t *self, const char *text)
{
  size_t good = 0, taken;
  while (text[good] && (taken = ctl_utf8_sequence (text + good)) > 0)
    good += taken;
  if (!text[good])
    return text;
  char *fixed = ctl_pool_take (self, good + 3 * strlen (text + good) + 1), *at = fixed;
  if (!fixed)
    return NULL;
  memcpy (at, text, good);
  at += good;
  for (text += good; *text; text += taken ? taken : 1) {
    taken = ctl_utf8_sequence (text);
    memcpy (at, taken ? text : "\xef\xbf\xbd", taken ? taken : 3);
    at += taken ? taken : 3;
  }
  *at = 0;
  return fixed;
}

void ctl_pool_reset (ctl_pool_t *self)
{
  self->current = NULL;
}
