/* SPDX-License-Identifier: Apache-2.0 */
#include "pack_old.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/cursor.h"
#include "../../common/limits.h"
#include "../../common/status.h"
#include "text.h"

#define PACK_VERSION   1u
#define HEAD_FIELDS    7u
#define SUBTASK_FIELDS 20u
#define ALONE_FIELDS   21u
#define OPAQUE_FIELDS  24u
#define CLOCK_FIELDS   4u  /* behind those of either */
#define HOST_FIELDS    10u /* of a head that says whose clock it is */
#define SHIFT_MAX      (1ull << 62)
#define TEXT_MAX       (WEFT_SUBTASKS_PER_TASK_MAX * 3u + 1u)

/* Reads one field after another; the first that is wrong makes all later ones 0. */
typedef struct {
  weft_cursor_t at;
  int rc;
  uint32_t texts;
  const char **text;
} unpack_t;

static uint64_t number (unpack_t *self, uint64_t max)
{
  uint64_t value = 0;
  if (!self->rc)
    self->rc = weft_cursor_uint (&self->at, max, &value);
  return value;
}

static uint64_t number_or_nil (unpack_t *self)
{
  if (!self->rc && self->at.at < self->at.end && *self->at.at == 0xc0) {
    self->at.at++;
    return WEFT_NS_NONE;
  }
  return number (self, UINT64_MAX);
}

static uint32_t array (unpack_t *self, uint32_t least, uint32_t most)
{
  uint32_t count = 0;
  if (!self->rc)
    self->rc = weft_cursor_array (&self->at, &count);
  if (!self->rc && (count < least || count > most))
    self->rc = WEFT_E_MALFORMED;
  return self->rc ? 0 : count;
}

static void bytes16 (unpack_t *self, uint8_t out[16])
{
  const uint8_t *data = NULL;
  uint32_t size = 0;
  if (!self->rc)
    self->rc = weft_cursor_bin (&self->at, &data, &size);
  if (!self->rc && size != 16)
    self->rc = WEFT_E_MALFORMED;
  if (!self->rc)
    memcpy (out, data, 16);
}

static const char *text (unpack_t *self)
{
  uint64_t place = number (self, UINT32_MAX);
  if (!self->rc && place >= self->texts)
    self->rc = WEFT_E_MALFORMED;
  return self->rc ? "" : self->text[place];
}

static void skip (unpack_t *self, uint32_t count)
{
  while (count-- && !self->rc)
    self->rc = weft_cursor_skip (&self->at);
}

/* Copies all texts into one block; each is terminated there. */
static void unpack_texts (unpack_t *self, ctl_execution_t *out)
{
  self->texts = array (self, 1, TEXT_MAX);
  if (self->rc)
    return;
  out->text = malloc (sizeof *out->text + weft_cursor_left (&self->at) + self->texts);
  self->text = malloc (self->texts * sizeof *self->text);
  if (!out->text || !self->text) {
    self->rc = WEFT_E_NOMEM;
    return;
  }
  out->text->next = NULL;
  char *at = out->text->bytes;
  for (uint32_t i = 0; i < self->texts && !self->rc; i++) {
    const uint8_t *data;
    uint32_t size;
    self->rc = weft_cursor_text (&self->at, &data, &size);
    if (self->rc)
      break;
    memcpy (at, data, size);
    at[size] = 0;
    self->text[i] = at;
    at += size + 1;
  }
}

static int64_t shift (unpack_t *self)
{
  uint64_t value = number (self, SHIFT_MAX);
  return value & 1 ? -(int64_t) (value / 2) - 1 : (int64_t) (value / 2);
}

static void unpack_clock (unpack_t *self, ctl_subtask_t *out)
{
  out->host = (uint32_t) number (self, UINT32_MAX);
  out->sender_host = (uint32_t) number (self, UINT32_MAX);
  out->shift_ns = shift (self);
  out->sender_shift_ns = shift (self);
}

static void unpack_subtask (unpack_t *self, ctl_subtask_t *out)
{
  uint32_t fields = array (self, SUBTASK_FIELDS, UINT32_MAX);
  memset (out, 0, sizeof *out);
  out->id = number (self, UINT64_MAX);
  out->request = number (self, UINT64_MAX);
  out->caller = number (self, UINT64_MAX);
  out->hop = (ctl_hop_t) number (self, CTL_HOP_COUNT - 1);
  out->error = (uint8_t) number (self, UINT8_MAX);
  out->answered = (uint8_t) number (self, 1);
  out->inside = (uint8_t) number (self, 1);
  out->status = (uint16_t) number (self, UINT16_MAX);
  out->orphan = (uint8_t) number (self, UINT8_MAX);
  out->instruction = (uint32_t) number (self, UINT32_MAX);
  bytes16 (self, out->instance);
  out->pid = (uint32_t) number (self, UINT32_MAX);
  out->service = text (self);
  out->vm = text (self);
  out->name = text (self);
  out->start_ns = number (self, INT64_MAX);
  out->end_ns = out->start_ns + number (self, INT64_MAX);
  out->cpu_ns = number_or_nil (self);
  out->sent_ns = number (self, INT64_MAX);
  out->answered_ns = out->sent_ns + number (self, INT64_MAX);
  uint32_t known = SUBTASK_FIELDS;
  if (out->hop == CTL_HOP_OPAQUE && fields >= OPAQUE_FIELDS) {
    known = OPAQUE_FIELDS;
    out->calls = (uint32_t) number (self, UINT32_MAX);
    out->bytes_out = number (self, UINT64_MAX);
    out->bytes_in = number (self, UINT64_MAX);
    out->wait_ns = number (self, INT64_MAX);
  } else if (out->hop != CTL_HOP_OPAQUE && fields >= ALONE_FIELDS) {
    known = ALONE_FIELDS;
    out->alone = (uint8_t) number (self, 1);
  }
  if (fields >= known + CLOCK_FIELDS) {
    known += CLOCK_FIELDS;
    unpack_clock (self, out);
  }
  if (!self->rc)
    skip (self, fields - known);
}

/* What was written before hosts were told has none. */
static void unpack_hosts (unpack_t *self, uint32_t fields, ctl_execution_t *out)
{
  if (fields < HOST_FIELDS) {
    skip (self, fields - HEAD_FIELDS);
    return;
  }
  out->aligned = (uint8_t) number (self, 1);
  out->clock_uncertainty_ns = number (self, INT64_MAX);
  uint32_t host = (uint32_t) number (self, UINT32_MAX);
  for (uint32_t i = 0; host && i < out->count; i++)
    out->subtasks[i].host = out->subtasks[i].sender_host = host;
  skip (self, fields - HOST_FIELDS);
}

static void unpack_execution (unpack_t *self, ctl_execution_t *out)
{
  uint32_t fields = array (self, HEAD_FIELDS, UINT32_MAX);
  if (number (self, UINT32_MAX) > PACK_VERSION && !self->rc)
    self->rc = WEFT_E_VERSION;
  bytes16 (self, out->task);
  out->truncated = (uint32_t) number (self, UINT32_MAX);
  out->hosts = (uint32_t) number (self, UINT32_MAX);
  uint32_t origin = (uint32_t) number (self, TEXT_MAX);
  unpack_texts (self, out);
  if (!self->rc && origin >= self->texts)
    self->rc = WEFT_E_MALFORMED;
  uint32_t count = array (self, 1, WEFT_SUBTASKS_PER_TASK_MAX);
  if (self->rc)
    return;
  out->origin = self->text[origin];
  out->subtasks = malloc (count * sizeof *out->subtasks);
  if (!out->subtasks) {
    self->rc = WEFT_E_NOMEM;
    return;
  }
  for (; out->count < count && !self->rc; out->count++)
    unpack_subtask (self, &out->subtasks[out->count]);
  if (!self->rc)
    unpack_hosts (self, fields, out);
  if (!self->rc && self->at.at != self->at.end)
    self->rc = WEFT_E_MALFORMED;
}

int ctl_pack_old_read (const void *data, size_t size, ctl_execution_t **ret_execution)
{
  unpack_t unpack = {.at = {data, (const uint8_t *) data + size}};
  ctl_execution_t *out = calloc (1, sizeof *out);
  if (!out)
    return WEFT_E_NOMEM;
  out->name = out->origin = "";
  unpack_execution (&unpack, out);
  free (unpack.text);
  if (!unpack.rc)
    unpack.rc = ctl_execution_settle (out);
  if (unpack.rc) {
    ctl_execution_destroy (&out);
    return unpack.rc;
  }
  *ret_execution = out;
  return 0;
}
