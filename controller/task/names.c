/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/limits.h"
#include "../../common/status.h"
#include "mix.h"

#define BLOCK_SIZE 65536u /* texts are small: one allocation serves hundreds */
#define ID_MORE    1u
_Static_assert(CTL_NAMES_LATELY == 64, "found by 6 bits");

typedef struct block_t {
  struct block_t *next;
  char bytes[];
} block_t;

struct ctl_names_t {
  ctl_seed_t seed;
  const char **text; /* by id */
  uint32_t count, text_capacity;
  uint32_t *slot; /* id + 1, 0: free; at most half full */
  uint32_t slot_mask;
  block_t *blocks;
  size_t block_left;
};

static char *keep (ctl_names_t *self, const char *text, size_t size)
{
  size_t need = size + 1;
  if (need > self->block_left) {
    size_t block_size = need > BLOCK_SIZE ? need : BLOCK_SIZE;
    block_t *block = malloc (sizeof *block + block_size);
    if (!block)
      return NULL;
    block->next = self->blocks;
    self->blocks = block;
    self->block_left = block_size;
  }
  /* filled from its end: block_left is all that has to be remembered */
  self->block_left -= need;
  char *at = self->blocks->bytes + self->block_left;
  memcpy (at, text, size);
  at[size] = 0;
  return at;
}

static int grow (ctl_names_t *self)
{
  uint32_t capacity = self->text_capacity ? self->text_capacity * 2 : 512;
  const char **text = realloc (self->text, capacity * sizeof *text);
  if (!text)
    return WEFT_E_NOMEM;
  self->text = text;
  uint32_t mask = capacity * 2 - 1;
  uint32_t *slot = calloc ((size_t) mask + 1, sizeof *slot);
  if (!slot)
    return WEFT_E_NOMEM;
  for (uint32_t id = 0; id < self->count; id++) {
    uint32_t at = (uint32_t) ctl_mix_bytes (&self->seed, text[id], strlen (text[id])) & mask;
    while (slot[at])
      at = (at + 1) & mask;
    slot[at] = id + 1;
  }
  free (self->slot);
  self->slot = slot;
  self->slot_mask = mask;
  self->text_capacity = capacity;
  return 0;
}

ctl_names_t *ctl_names_new (void)
{
  ctl_names_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  ctl_seed_take (&self->seed);
  uint32_t id;
  if (ctl_names_id (self, "", 0, &id) || ctl_names_id (self, "(more names)", 12, &id))
    ctl_names_destroy (&self);
  return self;
}

void ctl_names_destroy (ctl_names_t **self_p)
{
  ctl_names_t *self = *self_p;
  if (!self)
    return;
  while (self->blocks) {
    block_t *next = self->blocks->next;
    free (self->blocks);
    self->blocks = next;
  }
  free (self->text);
  free (self->slot);
  free (self);
  *self_p = NULL;
}

int ctl_names_id (ctl_names_t *self, const char *text, size_t size, uint32_t *ret_id)
{
  size = size ? strnlen (text, size) : 0;
  if (self->count == self->text_capacity) {
    int rc = grow (self);
    if (rc)
      return rc;
  }
  uint32_t at = (uint32_t) ctl_mix_bytes (&self->seed, text, size) & self->slot_mask;
  for (; self->slot[at]; at = (at + 1) & self->slot_mask) {
    const char *have = self->text[self->slot[at] - 1];
    if (strncmp (have, text, size) == 0 && have[size] == 0) {
      *ret_id = self->slot[at] - 1;
      return 0;
    }
  }
  if (self->count >= WEFT_NAMES_MAX) {
    *ret_id = ID_MORE;
    return 0;
  }
  char *kept = keep (self, text, size);
  if (!kept)
    return WEFT_E_NOMEM;
  self->text[self->count] = kept;
  *ret_id = self->count++;
  self->slot[at] = *ret_id + 1;
  return 0;
}

int ctl_names_again (ctl_names_t *self, ctl_names_lately_t *lately, const char *text, uint32_t *ret_id)
{
  if (!lately)
    return ctl_names_id (self, text, strlen (text), ret_id);
  size_t at = (uint64_t) (uintptr_t) text * 0x9e3779b97f4a7c15ull >> 58;
  if (lately->text[at] != text) {
    int rc = ctl_names_id (self, text, strlen (text), &lately->id[at]);
    lately->text[at] = rc ? NULL : text;
    if (rc)
      return rc;
  }
  *ret_id = lately->id[at];
  return 0;
}

const char *ctl_names_text (const ctl_names_t *self, uint32_t id)
{
  return self->text[id < self->count ? id : 0];
}

uint32_t ctl_names_count (const ctl_names_t *self)
{
  return self->count;
}
