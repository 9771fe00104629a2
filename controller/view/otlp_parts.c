/* SPDX-License-Identifier: Apache-2.0 */
#include "otlp_parts.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/limits.h"

/* protobuf-c's structs hold `char *` for texts that it only reads. */
static char *borrowed (const char *text)
{
  return (char *) (uintptr_t) text;
}

static Otlp__Value *put (ctl_attributes_t *self, const char *key)
{
  struct {
    Otlp__KeyValue pair;
    Otlp__Value value;
  } *made = self->count < CTL_ATTRIBUTES_MAX ? ctl_pool_take (self->pool, sizeof *made) : NULL;
  if (!made) {
    self->failed = 1;
    return NULL;
  }
  otlp__key_value__init (&made->pair);
  otlp__value__init (&made->value);
  made->pair.key = borrowed (key);
  made->pair.value = &made->value;
  self->list[self->count++] = &made->pair;
  return &made->value;
}

void ctl_attributes_text (ctl_attributes_t *self, const char *key, const char *text)
{
  if (!text || !*text)
    return;
  const char *valid = ctl_pool_utf8 (self->pool, text);
  Otlp__Value *value = put (self, key);
  if (!valid)
    self->failed = 1;
  if (!valid || !value)
    return;
  value->value_case = OTLP__VALUE__VALUE_TEXT;
  value->text = borrowed (valid);
}

void ctl_attributes_part (ctl_attributes_t *self, const char *key, const char *text, size_t size)
{
  char *copy = ctl_pool_take (self->pool, size + 1);
  if (!copy) {
    self->failed = 1;
    return;
  }
  memcpy (copy, text, size);
  copy[size] = 0;
  ctl_attributes_text (self, key, copy);
}

void ctl_attributes_signed (ctl_attributes_t *self, const char *key, int64_t number)
{
  Otlp__Value *value = put (self, key);
  if (!value)
    return;
  value->value_case = OTLP__VALUE__VALUE_NUMBER;
  value->number = number;
}

void ctl_attributes_number (ctl_attributes_t *self, const char *key, uint64_t number)
{
  ctl_attributes_signed (self, key, number > INT64_MAX ? INT64_MAX : (int64_t) number);
}

void ctl_attributes_flag (ctl_attributes_t *self, const char *key, int flag)
{
  Otlp__Value *value = put (self, key);
  if (!value)
    return;
  value->value_case = OTLP__VALUE__VALUE_FLAG;
  value->flag = flag != 0;
}

Otlp__KeyValue **ctl_attributes_done (ctl_attributes_t *self)
{
  Otlp__KeyValue **copy =
      self->failed ? NULL : ctl_pool_take (self->pool, (self->count + 1) * sizeof (void *));
  if (copy)
    memcpy (copy, self->list, self->count * sizeof (void *));
  return copy;
}

static int is_known_method (const char *text, size_t size)
{
  static const char *const known[] = {"GET",   "POST",    "PUT",   "DELETE", "HEAD",
                                      "PATCH", "OPTIONS", "TRACE", "CONNECT"};
  for (size_t n = 0; n < sizeof known / sizeof *known; n++)
    if (strlen (known[n]) == size && memcmp (known[n], text, size) == 0)
      return 1;
  return 0;
}

void ctl_attributes_http (ctl_attributes_t *self, const char *name, const char *template_key)
{
  size_t size = strcspn (name, " ");
  const char *path = name + size + 1;
  if (size == 0 || size > WEFT_METHOD_MAX || name[size] != ' ' || *path != '/')
    return;
  if (is_known_method (name, size)) {
    ctl_attributes_part (self, "http.request.method", name, size);
  } else {
    ctl_attributes_text (self, "http.request.method", "_OTHER");
    ctl_attributes_part (self, "http.request.method_original", name, size);
  }
  if (strlen (name) >= WEFT_NAME_MAX) /* may have been cut */
    return;
  ctl_attributes_text (self, strchr (path, '{') ? template_key : "url.path", path);
}

void ctl_attributes_peer (ctl_attributes_t *self, const char *peer)
{
  const char *colon = strrchr (peer, ':'), *address = peer;
  char *end = NULL;
  unsigned long port = colon ? strtoul (colon + 1, &end, 10) : 0;
  if (!colon || colon == peer || !*(colon + 1) || *end || port == 0 || port > UINT16_MAX)
    return;
  size_t size = (size_t) (colon - peer);
  if (*address == '[' && address[size - 1] == ']') {
    address++;
    size -= 2;
  }
  static const char *const keys[][2] = {{"server.address", "server.port"},
                                        {"network.peer.address", "network.peer.port"}};
  for (size_t n = 0; n < sizeof keys / sizeof *keys; n++) {
    ctl_attributes_part (self, keys[n][0], address, size);
    ctl_attributes_number (self, keys[n][1], port);
  }
}
