/* SPDX-License-Identifier: Apache-2.0 */
/* unpack: one execution out of a pack (pack.h). Nobody vouches for its bytes. */
#include <stdlib.h>
#include <string.h>

#include "../../common/limits.h"
#include "../../common/status.h"
#include "pack.h"
#include "pack_old.h"
#include "text.h"
#include "varint.h"

#define HEAD_BYTES     4u
#define SUBTASK_LEAST  14u /* flags, id, resource, name, start, duration */
#define TEXT_LEAST     1u
#define RESOURCE_LEAST (WEFT_UUID_SIZE + 3u)
#define PLACES         3u /* of a subtask: service, vm, name */

typedef struct {
  const uint8_t *at;
  uint32_t size;
  const char *copy; /* in the execution's own text; NULL: not asked for */
} text_t;

typedef struct {
  const uint8_t *instance;
  uint32_t pid, service, vm;
} resource_t;

/* Reads one field after another; the first that is wrong makes all later ones 0. */
typedef struct {
  weft_cursor_t at;
  int rc;
  text_t *text;
  resource_t *resource;
  uint32_t texts, resources, origin;
  uint32_t *place; /* PLACES of each subtask */
  size_t bytes;    /* of the texts that are asked for, each with its end */
} unpack_t;

static uint64_t number (unpack_t *self, uint64_t max)
{
  uint64_t value = 0;
  if (!self->rc)
    self->rc = ctl_varint_get (&self->at, &value);
  if (!self->rc && value > max)
    self->rc = WEFT_E_MALFORMED;
  return self->rc ? 0 : value;
}

static uint32_t number_32 (unpack_t *self)
{
  return (uint32_t) number (self, UINT32_MAX);
}

static uint64_t difference (unpack_t *self)
{
  return ctl_zagzig (number (self, UINT64_MAX));
}

static const uint8_t *raw (unpack_t *self, size_t size)
{
  static const uint8_t nothing[WEFT_UUID_SIZE];
  const uint8_t *data = nothing;
  if (!self->rc)
    self->rc = weft_cursor_bytes (&self->at, size, &data);
  return self->rc ? nothing : data;
}

static uint64_t fixed (unpack_t *self)
{
  return ctl_fixed_get (raw (self, 8));
}

/* Of things that take at least so many bytes each. */
static uint32_t count_of (unpack_t *self, size_t least)
{
  return (uint32_t) number (self, weft_cursor_left (&self->at) / least);
}

static uint32_t flags (unpack_t *self, unsigned bytes, uint32_t known)
{
  const uint8_t *data = raw (self, bytes);
  uint32_t value = data[0] | (bytes > 1 ? (uint32_t) data[1] << 8 : 0);
  if (value & ~known)
    self->rc = WEFT_E_MALFORMED;
  return self->rc ? 0 : value;
}

/* ---- the dictionary ---------------------------------------------------------------- */

static void read_texts (unpack_t *self)
{
  self->texts = count_of (self, TEXT_LEAST);
  self->text = malloc ((self->texts + 1) * sizeof *self->text);
  if (!self->text)
    self->rc = WEFT_E_NOMEM;
  for (uint32_t i = 0; i < self->texts && !self->rc; i++) {
    text_t text = {.size = count_of (self, 1)};
    self->rc = self->rc ? self->rc : weft_cursor_bytes (&self->at, text.size, &text.at);
    self->text[i] = text;
  }
}

static uint32_t text_place (unpack_t *self)
{
  uint32_t place = number_32 (self);
  if (!self->rc && place >= self->texts)
    self->rc = WEFT_E_MALFORMED;
  return self->rc ? 0 : place;
}

static void read_resources (unpack_t *self)
{
  self->resources = count_of (self, RESOURCE_LEAST);
  self->resource = malloc ((self->resources + 1) * sizeof *self->resource);
  if (!self->resource)
    self->rc = WEFT_E_NOMEM;
  for (uint32_t i = 0; i < self->resources && !self->rc; i++) {
    resource_t *resource = &self->resource[i];
    resource->instance = raw (self, WEFT_UUID_SIZE);
    resource->pid = number_32 (self);
    resource->service = text_place (self);
    resource->vm = text_place (self);
  }
}

/* P3. */
static void must_end (unpack_t *self)
{
  if (!self->rc && self->at.at != self->at.end)
    self->rc = WEFT_E_MALFORMED;
}

/* Texts are copied when it is known which. */
static uint32_t ask_for (unpack_t *self, uint32_t place)
{
  static const char asked[] = "";
  if (self->rc || self->text[place].copy)
    return place;
  self->text[place].copy = asked;
  self->bytes += (size_t) self->text[place].size + 1;
  return place;
}

static void copy_texts (unpack_t *self, ctl_execution_t *out)
{
  if (self->rc)
    return;
  out->text = malloc (sizeof *out->text + self->bytes);
  if (!out->text) {
    self->rc = WEFT_E_NOMEM;
    return;
  }
  out->text->next = NULL;
  char *at = out->text->bytes;
  for (uint32_t i = 0; i < self->texts; i++) {
    text_t *text = &self->text[i];
    if (!text->copy)
      continue;
    memcpy (at, text->at, text->size);
    at[text->size] = 0;
    text->copy = at;
    at += text->size + 1;
  }
  for (uint32_t i = 0; i < out->count; i++) {
    const uint32_t *place = self->place + (size_t) i * PLACES;
    out->subtasks[i].service = self->text[place[0]].copy;
    out->subtasks[i].vm = self->text[place[1]].copy;
    out->subtasks[i].name = self->text[place[2]].copy;
  }
  if (self->origin < self->texts)
    out->origin = self->text[self->origin].copy;
}

/* ---- the execution ------------------------------------------------------------------- */

static void read_resource (unpack_t *self, ctl_subtask_t *out, uint32_t place[PLACES])
{
  uint32_t n = number_32 (self);
  if (!self->rc && n >= self->resources)
    self->rc = WEFT_E_MALFORMED;
  if (self->rc)
    return;
  const resource_t *resource = &self->resource[n];
  memcpy (out->instance, resource->instance, WEFT_UUID_SIZE);
  out->pid = resource->pid;
  place[0] = ask_for (self, resource->service);
  place[1] = ask_for (self, resource->vm);
}

static void read_rare (unpack_t *self, ctl_subtask_t *out)
{
  uint32_t rare = flags (self, 1, CTL_PACK_RARE_KNOWN);
  if (rare & CTL_PACK_RARE_ERROR)
    out->error = (uint8_t) number (self, UINT8_MAX);
  if (rare & CTL_PACK_RARE_ORPHAN)
    out->orphan = (uint8_t) number (self, UINT8_MAX);
  if (rare & CTL_PACK_RARE_INSTRUCTION)
    out->instruction = number_32 (self);
  out->alone = (rare & CTL_PACK_RARE_ALONE) != 0;
  out->inside = (rare & CTL_PACK_RARE_INSIDE) != 0;
}

static void read_opaque (unpack_t *self, ctl_subtask_t *out)
{
  out->calls = number_32 (self);
  out->bytes_out = number (self, UINT64_MAX);
  out->bytes_in = number (self, UINT64_MAX);
  out->wait_ns = number (self, UINT64_MAX);
}

static void read_clock (unpack_t *self, ctl_subtask_t *out)
{
  out->host = number_32 (self);
  out->sender_host = number_32 (self);
  out->shift_ns = (int64_t) ctl_zagzig (number (self, CTL_PACK_SHIFT_MAX));
  out->sender_shift_ns = (int64_t) ctl_zagzig (number (self, CTL_PACK_SHIFT_MAX));
}

/* Its caller, of which those before it are known; and what its start is told from. */
static uint64_t read_caller (unpack_t *self, const ctl_execution_t *execution, uint32_t has,
                             ctl_subtask_t *out, uint64_t first_ns)
{
  if (has & CTL_PACK_FLAG_NEAR) {
    uint64_t before = number (self, execution->count);
    if (before == 0)
      self->rc = WEFT_E_MALFORMED;
    if (self->rc)
      return first_ns;
    out->caller = execution->subtasks[execution->count - before].id;
    return execution->subtasks[execution->count - before].start_ns;
  }
  if (has & CTL_PACK_FLAG_CALLER)
    out->caller = fixed (self);
  return first_ns;
}

static void read_times (unpack_t *self, uint32_t has, uint64_t from_ns, ctl_subtask_t *out)
{
  out->start_ns = from_ns + difference (self);
  out->end_ns = out->start_ns + number (self, UINT64_MAX);
  if (has & CTL_PACK_FLAG_SIDES) {
    out->sent_ns = out->start_ns - difference (self);
    out->answered_ns = out->end_ns + difference (self);
  }
  out->cpu_ns = has & CTL_PACK_FLAG_CPU ? number (self, UINT64_MAX) : WEFT_NS_NONE;
}

/* The one behind those that `execution` has. */
static void read_subtask (unpack_t *self, const ctl_execution_t *execution, uint64_t first_ns)
{
  ctl_subtask_t *out = &execution->subtasks[execution->count];
  uint32_t *place = self->place + (size_t) execution->count * PLACES;
  uint32_t has = flags (self, 2, CTL_PACK_FLAG_KNOWN);
  memset (out, 0, sizeof *out);
  out->hop = (ctl_hop_t) (has & CTL_PACK_FLAG_HOP);
  if (out->hop >= CTL_HOP_COUNT)
    self->rc = WEFT_E_MALFORMED;
  out->answered = (has & CTL_PACK_FLAG_ANSWERED) != 0;
  out->id = fixed (self);
  out->request = has & CTL_PACK_FLAG_REQUEST ? fixed (self) : has & CTL_PACK_FLAG_LEAF ? out->id : 0;
  uint64_t from_ns = read_caller (self, execution, has, out, first_ns);
  read_resource (self, out, place);
  place[2] = ask_for (self, text_place (self));
  read_times (self, has, from_ns, out);
  out->status = has & CTL_PACK_FLAG_OK       ? 200
                : has & CTL_PACK_FLAG_STATUS ? (uint16_t) number (self, UINT16_MAX)
                                             : 0;
  if (has & CTL_PACK_FLAG_RARE)
    read_rare (self, out);
  if (out->hop == CTL_HOP_OPAQUE)
    read_opaque (self, out);
  if (execution->hosts > 1)
    read_clock (self, out);
}

/* Returns the count of subtasks that follow, 0: it is damaged; *ret_host: of all of them, 0: each says its own,
 * or none. */
static uint32_t read_head (unpack_t *self, ctl_execution_t *out, uint64_t *ret_first_ns, uint32_t *ret_host)
{
  uint32_t has = flags (self, 1, CTL_PACK_HEAD_KNOWN);
  memcpy (out->task, raw (self, WEFT_TASK_ID_SIZE), WEFT_TASK_ID_SIZE);
  *ret_first_ns = fixed (self);
  uint32_t count = count_of (self, SUBTASK_LEAST);
  if (count == 0 || count > WEFT_SUBTASKS_PER_TASK_MAX)
    self->rc = self->rc ? self->rc : WEFT_E_MALFORMED;
  out->truncated = has & CTL_PACK_HEAD_TRUNCATED ? number_32 (self) : 0;
  out->hosts = has & CTL_PACK_HEAD_HOSTS ? number_32 (self) : 1;
  self->origin = UINT32_MAX;
  if (has & CTL_PACK_HEAD_ORIGIN)
    self->origin = ask_for (self, text_place (self));
  out->clock_uncertainty_ns = has & CTL_PACK_HEAD_UNCERTAINTY ? number (self, INT64_MAX) : 0;
  *ret_host = has & CTL_PACK_HEAD_HOST ? number_32 (self) : 0;
  out->aligned = (has & CTL_PACK_HEAD_ALIGNED) != 0;
  return self->rc ? 0 : count;
}

static void read_execution (unpack_t *self, ctl_execution_t *out)
{
  uint64_t first_ns;
  uint32_t host;
  uint32_t count = read_head (self, out, &first_ns, &host);
  if (count == 0)
    return;
  out->subtasks = malloc (count * sizeof *out->subtasks);
  self->place = calloc ((size_t) count * PLACES, sizeof *self->place);
  if (!out->subtasks || !self->place) {
    self->rc = WEFT_E_NOMEM;
    return;
  }
  for (; out->count < count && !self->rc; out->count++)
    read_subtask (self, out, first_ns);
  must_end (self);
  for (uint32_t i = 0; host && i < out->count; i++)
    out->subtasks[i].host = out->subtasks[i].sender_host = host;
}

/* ---- the pack -------------------------------------------------------------------------- */

uint32_t ctl_pack_count_of (const void *data, size_t size)
{
  const uint8_t *head = data;
  if (size < HEAD_BYTES || head[0] != 0x97 || head[1] != 2 || head[3] != 0xff)
    return 0;
  return head[2] <= CTL_PACK_MOST && size - HEAD_BYTES >= head[2] * 4u ? head[2] : 0;
}

static size_t end_of (const uint8_t *data, uint32_t place)
{
  uint32_t end;
  memcpy (&end, data + HEAD_BYTES + place * sizeof end, sizeof end);
  return le32toh (end);
}

static void read_pack (unpack_t *self, const uint8_t *data, size_t size, uint32_t place, ctl_execution_t *out)
{
  uint32_t count = ctl_pack_count_of (data, size);
  if (place >= count) {
    self->rc = WEFT_E_MALFORMED;
    return;
  }
  const uint8_t *first = data + HEAD_BYTES + count * 4u;
  size_t from = place ? end_of (data, place - 1) : 0, to = end_of (data, place);
  size_t last = end_of (data, count - 1);
  if (from > to || to > last || last > (size_t) (data + size - first)) {
    self->rc = WEFT_E_MALFORMED;
    return;
  }
  self->at = (weft_cursor_t){first + last, data + size};
  read_texts (self);
  if (!self->rc)
    read_resources (self);
  must_end (self);
  self->at = (weft_cursor_t){first + from, first + to};
  if (!self->rc)
    read_execution (self, out);
  copy_texts (self, out);
}

int ctl_pack_read (const void *data, size_t size, uint32_t place, ctl_execution_t **ret_execution)
{
  unpack_t unpack = {0};
  ctl_execution_t *out = calloc (1, sizeof *out);
  if (!out)
    return WEFT_E_NOMEM;
  out->name = out->origin = "";
  read_pack (&unpack, data, size, place, out);
  free (unpack.text);
  free (unpack.resource);
  free (unpack.place);
  if (!unpack.rc)
    unpack.rc = ctl_execution_settle (out);
  if (unpack.rc) {
    ctl_execution_destroy (&out);
    return unpack.rc;
  }
  *ret_execution = out;
  return 0;
}

int ctl_execution_unpack (const void *data, size_t size, ctl_execution_t **ret_self)
{
  const uint8_t *head = data;
  if (size < 2 || head[0] != 0x97 || head[1] != 2)
    return ctl_pack_old_read (data, size, ret_self);
  return ctl_pack_count_of (data, size) == 1 ? ctl_pack_read (data, size, 0, ret_self) : WEFT_E_MALFORMED;
}
