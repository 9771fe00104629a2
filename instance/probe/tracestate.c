/* SPDX-License-Identifier: Apache-2.0 */
#include "tracestate.h"

#include <string.h>

/* BEFORE ─▶ KEY ─▶ VALUE ─▶ BEFORE at each comma; AFTER: a tab stands behind a value. */
enum { BEFORE, KEY, VALUE, AFTER };

void probe_tracestate_begin (probe_tracestate_t *self)
{
  memset (self, 0, offsetof (probe_tracestate_t, text));
}

/* Where the member in hand begins: behind a comma, if it is not the first. */
static size_t place (const probe_tracestate_t *self)
{
  return self->size ? self->size + 1u : 0;
}

/* T3: the whole members that are large go; `stored` bytes of the one in hand move up. */
static void shed_large (probe_tracestate_t *self, size_t stored)
{
  size_t from = place (self), kept = 0;
  for (size_t at = 0, size = 0; at < self->size; at += size + 1) {
    const char *comma = memchr (self->text + at, ',', self->size - at);
    size = comma ? (size_t) (comma - self->text) - at : self->size - at;
    if (size > PROBE_TRACESTATE_LARGE)
      continue;
    if (kept)
      self->text[kept++] = ',';
    memmove (self->text + kept, self->text + at, size);
    kept += size;
  }
  self->size = (uint16_t) kept;
  self->over = 1;
  if (stored)
    memmove (self->text + place (self), self->text + from, stored);
}

/* One byte of the member in hand. */
static void add (probe_tracestate_t *self, char c)
{
  size_t stored = self->length++;
  if (self->skipped)
    return;
  if (place (self) + stored >= PROBE_TRACESTATE_MAX && !self->over)
    shed_large (self, stored);
  if (place (self) + stored >= PROBE_TRACESTATE_MAX)
    self->skipped = 1;
  else
    self->text[place (self) + stored] = c;
}

/* The member in hand is whole. */
static void keep (probe_tracestate_t *self)
{
  if (self->phase == KEY || (self->phase >= VALUE && self->length == self->key + 1u)) {
    self->bad = 1;
  } else if (self->phase != BEFORE) {
    int large = self->length > PROBE_TRACESTATE_LARGE;
    self->bad |= self->members++ == PROBE_TRACESTATE_MEMBERS;
    self->full |= self->skipped && !large;
    if (!self->full && !self->skipped && !(self->over && large)) {
      size_t at = place (self);
      if (at)
        self->text[at - 1] = ',';
      self->size = (uint16_t) (at + self->length);
    }
  }
  self->phase = BEFORE;
  self->skipped = 0;
  self->length = self->key = self->blanks = 0;
}

static int is_lower (char c)
{
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static int is_key (char c)
{
  return is_lower (c) || c == '_' || c == '-' || c == '*' || c == '/' || c == '@';
}

static void key (probe_tracestate_t *self, char c)
{
  if (c == '=') {
    self->key = self->length;
    self->phase = VALUE;
  } else {
    self->bad |= !is_key (c) || self->length == PROBE_TRACESTATE_KEY;
  }
  if (!self->bad)
    add (self, c);
}

/* Blanks belong to the value once something follows them. */
static void value (probe_tracestate_t *self, char c)
{
  if (c == ' ') {
    self->blanks += self->blanks <= PROBE_TRACESTATE_VALUE;
    return;
  }
  if (c == '\t') {
    self->phase = AFTER;
    return;
  }
  size_t size = (size_t) self->length - self->key - 1 + self->blanks;
  self->bad |= c < ' ' || c > '~' || c == '=' || size >= PROBE_TRACESTATE_VALUE;
  if (self->bad)
    return;
  for (; self->blanks; self->blanks--)
    add (self, ' ');
  add (self, c);
}

void probe_tracestate_feed (probe_tracestate_t *self, const char *data, size_t size)
{
  for (size_t i = 0; i < size && !self->bad; i++) {
    char c = data[i];
    int blank = c == ' ' || c == '\t';
    if (c == ',')
      keep (self);
    else if (self->phase == VALUE)
      value (self, c);
    else if (self->phase == KEY)
      key (self, c);
    else if (!blank && (self->phase == AFTER || !is_lower (c)))
      self->bad = 1;
    else if (!blank) {
      self->phase = KEY;
      key (self, c);
    }
  }
}

void probe_tracestate_end (probe_tracestate_t *self)
{
  if (!self->bad)
    keep (self);
}

size_t probe_tracestate_size (const probe_tracestate_t *self)
{
  return self->bad ? 0 : self->size;
}

size_t probe_tracestate_put (char *out, size_t room, const char *text, size_t size)
{
  static const char name[] = "tracestate: ";
  const size_t around = sizeof name - 1 + 2;
  while (size && size + around > room)
    for (size--; size && text[size] != ',';)
      size--;
  if (size == 0)
    return 0;
  memcpy (out, name, sizeof name - 1);
  memcpy (out + sizeof name - 1, text, size);
  out[sizeof name - 1 + size] = '\r';
  out[sizeof name + size] = '\n';
  return size + around;
}
