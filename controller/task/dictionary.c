/* SPDX-License-Identifier: Apache-2.0 */
#include "dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"
#include "varint.h"

#define RESOURCE_BYTES (WEFT_UUID_SIZE + 3u * CTL_VARINT_MOST)
#define TEXT_BITS      9u /* a block of tasks has a few dozen texts */
#define RESOURCE_BITS  7u
#define TEXTS          (1u << TEXT_BITS)
#define RESOURCES      (1u << RESOURCE_BITS)
#define PROBES         8u /* beyond, one of them gives way (Y3) */

/* Known by where it is. A slot of another turn is free. */
typedef struct {
  const char *text;
  uint32_t turn, place;
} text_slot_t;

typedef struct {
  uint64_t instance[WEFT_UUID_SIZE / 8];
  const char *service, *vm;
  uint32_t pid, turn, place;
} resource_slot_t;

/* Known by what it says. A slot of a turn of before the dictionary was emptied is free. */
typedef struct {
  uint32_t hash, turn, place, size;
  size_t at; /* its bytes in `texts` */
} said_text_t;

typedef struct {
  uint64_t instance[WEFT_UUID_SIZE / 8];
  uint32_t pid, service, vm;
  uint32_t turn, place;
} said_resource_t;

struct ctl_dictionary_t {
  ctl_bytes_t texts, resources; /* as ctl_dictionary_put gives them */
  uint32_t text_count, resource_count;
  uint32_t begun, turn;
  int rc;
  text_slot_t text[TEXTS];
  resource_slot_t resource[RESOURCES];
  said_text_t said_text[TEXTS];
  said_resource_t said_resource[RESOURCES];
};

int ctl_bytes_reserve (ctl_bytes_t *self, size_t size)
{
  if (self->capacity - self->size >= size)
    return 0;
  size_t capacity = self->capacity * 2 > self->size + size ? self->capacity * 2 : self->size + size;
  uint8_t *data = realloc (self->data, capacity);
  if (!data)
    return WEFT_E_NOMEM;
  self->data = data;
  self->capacity = capacity;
  return 0;
}

ctl_dictionary_t *ctl_dictionary_new (void)
{
  ctl_dictionary_t *self = calloc (1, sizeof *self);
  if (self)
    ctl_dictionary_empty (self);
  return self;
}

void ctl_dictionary_destroy (ctl_dictionary_t **self_p)
{
  ctl_dictionary_t *self = *self_p;
  if (!self)
    return;
  free (self->texts.data);
  free (self->resources.data);
  free (self);
  *self_p = NULL;
}

void ctl_dictionary_forget (ctl_dictionary_t *self)
{
  if (++self->turn)
    return;
  memset (self->text, 0, sizeof self->text);
  memset (self->resource, 0, sizeof self->resource);
  memset (self->said_text, 0, sizeof self->said_text);
  memset (self->said_resource, 0, sizeof self->said_resource);
  self->begun = self->turn = 1;
}

void ctl_dictionary_empty (ctl_dictionary_t *self)
{
  ctl_dictionary_forget (self);
  self->begun = self->turn;
  self->text_count = self->resource_count = 0;
  self->texts.size = self->resources.size = 0;
}

int ctl_dictionary_failed (ctl_dictionary_t *self)
{
  int rc = self->rc;
  self->rc = 0;
  return rc;
}

static uint32_t mixed (uint64_t value, unsigned bits)
{
  return (uint32_t) (value * 0x9e3779b97f4a7c15ull >> (64 - bits));
}

/* ---- texts ---------------------------------------------------------------------------- */

static uint32_t add_text (ctl_dictionary_t *self, const char *text, size_t size, size_t *ret_at)
{
  if (ctl_bytes_reserve (&self->texts, CTL_VARINT_MOST + size)) {
    self->rc = WEFT_E_NOMEM;
    return 0;
  }
  uint8_t *at = ctl_varint_put (self->texts.data + self->texts.size, size);
  memcpy (at, text, size);
  *ret_at = (size_t) (at - self->texts.data);
  self->texts.size = *ret_at + size;
  return self->text_count++;
}

/* FNV-1a: texts are short, and who makes two of them meet makes a pack a little longer. */
static uint32_t hash_of (const char *text, size_t size)
{
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < size; i++)
    hash = (hash ^ (uint8_t) text[i]) * 16777619u;
  return hash;
}

static uint32_t by_what_it_says (ctl_dictionary_t *self, const char *text)
{
  size_t size = strlen (text);
  uint32_t hash = hash_of (text, size), home = mixed (hash, TEXT_BITS), at = home;
  for (uint32_t n = 0; n < PROBES && self->said_text[at].turn >= self->begun; n++) {
    const said_text_t *slot = &self->said_text[at];
    if (slot->hash == hash && slot->size == size && memcmp (self->texts.data + slot->at, text, size) == 0)
      return slot->place;
    at = (at + 1) & (TEXTS - 1);
  }
  said_text_t slot = {.hash = hash, .turn = self->turn, .size = (uint32_t) size};
  slot.place = add_text (self, text, size, &slot.at);
  if (!self->rc)
    self->said_text[self->said_text[at].turn >= self->begun ? home : at] = slot;
  return slot.place;
}

uint32_t ctl_dictionary_text (ctl_dictionary_t *self, const char *text)
{
  uint32_t home = mixed ((uintptr_t) text, TEXT_BITS), at = home;
  for (uint32_t n = 0; n < PROBES && self->text[at].turn == self->turn; n++) {
    if (self->text[at].text == text)
      return self->text[at].place;
    at = (at + 1) & (TEXTS - 1);
  }
  text_slot_t slot = {text, self->turn, by_what_it_says (self, text)};
  if (!self->rc)
    self->text[self->text[at].turn == self->turn ? home : at] = slot;
  return slot.place;
}

/* ---- resources ----------------------------------------------------------------------------- */

static uint32_t add_resource (ctl_dictionary_t *self, const said_resource_t *resource)
{
  if (ctl_bytes_reserve (&self->resources, RESOURCE_BYTES)) {
    self->rc = WEFT_E_NOMEM;
    return 0;
  }
  uint8_t *at = self->resources.data + self->resources.size;
  memcpy (at, resource->instance, WEFT_UUID_SIZE);
  at = ctl_varint_put (at + WEFT_UUID_SIZE, resource->pid);
  at = ctl_varint_put (at, resource->service);
  at = ctl_varint_put (at, resource->vm);
  self->resources.size = (size_t) (at - self->resources.data);
  return self->resource_count++;
}

static uint32_t by_what_they_say (ctl_dictionary_t *self, const ctl_subtask_t *subtask)
{
  said_resource_t key = {.pid = subtask->pid,
                         .service = ctl_dictionary_text (self, subtask->service),
                         .vm = ctl_dictionary_text (self, subtask->vm),
                         .turn = self->turn};
  memcpy (key.instance, subtask->instance, WEFT_UUID_SIZE);
  uint32_t home = mixed (key.instance[0] ^ key.instance[1] ^ key.service, RESOURCE_BITS), at = home;
  for (uint32_t n = 0; n < PROBES && self->said_resource[at].turn >= self->begun; n++) {
    const said_resource_t *slot = &self->said_resource[at];
    if (slot->instance[0] == key.instance[0] && slot->instance[1] == key.instance[1] &&
        slot->pid == key.pid && slot->service == key.service && slot->vm == key.vm)
      return slot->place;
    at = (at + 1) & (RESOURCES - 1);
  }
  key.place = add_resource (self, &key);
  if (!self->rc)
    self->said_resource[self->said_resource[at].turn >= self->begun ? home : at] = key;
  return key.place;
}

uint32_t ctl_dictionary_resource (ctl_dictionary_t *self, const ctl_subtask_t *subtask)
{
  uint64_t instance[WEFT_UUID_SIZE / 8];
  memcpy (instance, subtask->instance, WEFT_UUID_SIZE);
  uint32_t home = mixed (instance[0] ^ instance[1] ^ (uintptr_t) subtask->service, RESOURCE_BITS), at = home;
  for (uint32_t n = 0; n < PROBES && self->resource[at].turn == self->turn; n++) {
    const resource_slot_t *slot = &self->resource[at];
    if (slot->instance[0] == instance[0] && slot->instance[1] == instance[1] &&
        slot->service == subtask->service && slot->vm == subtask->vm && slot->pid == subtask->pid)
      return slot->place;
    at = (at + 1) & (RESOURCES - 1);
  }
  resource_slot_t slot = {
      {instance[0], instance[1]}, subtask->service, subtask->vm, subtask->pid, self->turn, 0};
  slot.place = by_what_they_say (self, subtask);
  if (!self->rc)
    self->resource[self->resource[at].turn == self->turn ? home : at] = slot;
  return slot.place;
}

/* ---- its bytes -------------------------------------------------------------------------- */

size_t ctl_dictionary_size (const ctl_dictionary_t *self)
{
  return ctl_varint_size (self->text_count) + self->texts.size + ctl_varint_size (self->resource_count) +
         self->resources.size;
}

static uint8_t *put (uint8_t *at, uint32_t count, const ctl_bytes_t *bytes)
{
  uint8_t number[CTL_VARINT_MOST];
  size_t size = (size_t) (ctl_varint_put (number, count) - number);
  memcpy (at, number, size);
  if (bytes->size)
    memcpy (at + size, bytes->data, bytes->size);
  return at + size + bytes->size;
}

void ctl_dictionary_put (const ctl_dictionary_t *self, uint8_t *at)
{
  put (put (at, self->text_count, &self->texts), self->resource_count, &self->resources);
}
