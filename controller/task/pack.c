/* SPDX-License-Identifier: Apache-2.0 */
/* pack: an execution as bytes (ctl_execution_pack, _unpack in task.h): a row of
 * the store, a frame of the control socket. Only what cannot be derived is kept;
 * unpacking settles again, so damaged bytes cannot make a damaged tree.
 *
 *   execution = [ version, task, truncated, hosts, origin, text, subtasks
 *                 , aligned, uncertainty, host or 0: of several ]
 *   text      = [ str … ]                    origin, service, vm, name are places in it
 *   subtasks  = [ subtask … ]
 *   subtask   = [ id, request, caller, hop, error, answered, inside, status, orphan, instruction,
 *                 instance, pid, service, vm, name, start, end - start, cpu or nil, sent, answered - sent
 *                 (of an opaque leaf alone) , calls, bytes out, bytes in, wait
 *                 (of others, where it is not 0 or what follows is there) , alone
 *                 (of several hosts) , host, sender's host, shift, sender's shift ]
 *   shift     = twice the amount, one less where it is negative
 *
 * Later versions append; a reader skips what it does not know. A change that it
 * could not skip raises `version`. */
#include <stdlib.h>
#include <string.h>

#include "../../common/cursor.h"
#include "../../common/limits.h"
#include "../../common/status.h"
#include "task.h"
#include "text.h"

#define PACK_VERSION   1u
#define HEAD_FIELDS    7u
#define SUBTASK_FIELDS 20u
#define ALONE_FIELDS   21u
#define OPAQUE_FIELDS  24u
#define CLOCK_FIELDS   4u  /* behind those of either */
#define HOST_FIELDS    10u /* of a head that says whose clock it is */
#define SHIFT_MAX      (1ull << 62)
#define LOOK_BACK      64u /* texts searched for an equal one: a task has few, and hostile ones may not cost n^2 */
#define TEXT_MAX       (WEFT_SUBTASKS_PER_TASK_MAX * 3u + 1u)

/* ---- packing --------------------------------------------------------------- */

#define HEAD_BYTES (1u + 5u + 18u + 5u + 5u + 5u + 5u) /* up to the texts */
#define TAIL_BYTES (5u + 1u + 9u + 5u)                 /* the length of the subtasks, and what follows them */
#define SUBTASK_BYTES                                                                                        \
  (3u + 3u * 9u + 5u * 1u + 3u + 5u + 18u + 4u * 5u + 5u * 9u + 2u + 5u + 3u * 9u + 2u * 5u + 2u * 9u)
#define TEXT_BYTES 5u /* beside its own */

/* A legal encoding of any size is read; the shortest is written. Room was made before. */
static uint8_t *put_uint (uint8_t *at, uint64_t value)
{
  if (value < 0x80) {
    *at++ = (uint8_t) value;
  } else if (value <= UINT8_MAX) {
    *at++ = 0xcc;
    *at++ = (uint8_t) value;
  } else if (value <= UINT16_MAX) {
    *at++ = 0xcd;
    weft_store_u16 (at, (uint16_t) value);
    at += 2;
  } else if (value <= UINT32_MAX) {
    *at++ = 0xce;
    weft_store_u32 (at, (uint32_t) value);
    at += 4;
  } else {
    *at++ = 0xcf;
    weft_store_u64 (at, value);
    at += 8;
  }
  return at;
}

static uint8_t *put_array (uint8_t *at, uint32_t count)
{
  if (count < 16) {
    *at++ = (uint8_t) (0x90 | count);
  } else if (count <= UINT16_MAX) {
    *at++ = 0xdc;
    weft_store_u16 (at, (uint16_t) count);
    at += 2;
  } else {
    *at++ = 0xdd;
    weft_store_u32 (at, count);
    at += 4;
  }
  return at;
}

static uint8_t *put_bin16 (uint8_t *at, const uint8_t bytes[16])
{
  *at++ = 0xc4;
  *at++ = 16;
  memcpy (at, bytes, 16);
  return at + 16;
}

static uint8_t *put_text (uint8_t *at, const char *text, size_t size)
{
  if (size < 32) {
    *at++ = (uint8_t) (0xa0 | size);
  } else {
    *at++ = 0xdb;
    weft_store_u32 (at, (uint32_t) size);
    at += 4;
  }
  memcpy (at, text, size);
  return at + size;
}

/* The texts of one execution, each once. */
typedef struct {
  const char **text;
  uint32_t *place; /* of service, vm, name of each subtask */
  uint32_t count;
  size_t bytes; /* of all texts together */
} texts_t;

/* Most are interned: the same text is the same pointer. */
static uint32_t place_of (texts_t *self, const char *text)
{
  uint32_t from = self->count > LOOK_BACK ? self->count - LOOK_BACK : 0;
  for (uint32_t i = self->count; i-- > from;)
    if (self->text[i] == text)
      return i;
  for (uint32_t i = self->count; i-- > from;)
    if (self->text[i][0] == text[0] && strcmp (self->text[i], text) == 0)
      return i;
  self->bytes += TEXT_BYTES + strlen (text);
  self->text[self->count] = text;
  return self->count++;
}

static int texts_new (const ctl_execution_t *execution, texts_t *ret_texts)
{
  size_t most = (size_t) execution->count * 3u;
  texts_t texts = {.text = malloc ((most + 1) * sizeof *texts.text + most * sizeof *texts.place)};
  if (!texts.text)
    return WEFT_E_NOMEM;
  texts.place = (uint32_t *) (void *) (texts.text + most + 1);
  place_of (&texts, execution->origin);
  for (uint32_t i = 0; i < execution->count; i++) {
    texts.place[3 * i] = place_of (&texts, execution->subtasks[i].service);
    texts.place[3 * i + 1] = place_of (&texts, execution->subtasks[i].vm);
    texts.place[3 * i + 2] = place_of (&texts, execution->subtasks[i].name);
  }
  *ret_texts = texts;
  return 0;
}

static uint64_t shift_out (int64_t ns)
{
  return ns < 0 ? (uint64_t) -ns * 2 - 1 : (uint64_t) ns * 2;
}

static uint8_t *put_clock (uint8_t *at, const ctl_subtask_t *subtask)
{
  at = put_uint (at, subtask->host);
  at = put_uint (at, subtask->sender_host);
  at = put_uint (at, shift_out (subtask->shift_ns));
  return put_uint (at, shift_out (subtask->sender_shift_ns));
}

static uint8_t *put_subtask (uint8_t *at, const ctl_subtask_t *subtask, int several_hosts,
                             const uint32_t *place)
{
  int opaque = subtask->hop == CTL_HOP_OPAQUE, alone = subtask->alone || several_hosts;
  at = put_array (at, (opaque  ? OPAQUE_FIELDS
                       : alone ? ALONE_FIELDS
                               : SUBTASK_FIELDS) +
                          (several_hosts ? CLOCK_FIELDS : 0));
  at = put_uint (at, subtask->id);
  at = put_uint (at, subtask->request);
  at = put_uint (at, subtask->caller);
  at = put_uint (at, (uint64_t) subtask->hop);
  at = put_uint (at, subtask->error);
  at = put_uint (at, subtask->answered);
  at = put_uint (at, subtask->inside);
  at = put_uint (at, subtask->status);
  at = put_uint (at, subtask->orphan);
  at = put_uint (at, subtask->instruction);
  at = put_bin16 (at, subtask->instance);
  at = put_uint (at, subtask->pid);
  for (int i = 0; i < 3; i++)
    at = put_uint (at, place[i]);
  at = put_uint (at, subtask->start_ns);
  at = put_uint (at, subtask->end_ns - subtask->start_ns);
  if (subtask->cpu_ns == WEFT_NS_NONE)
    *at++ = 0xc0;
  else
    at = put_uint (at, subtask->cpu_ns);
  at = put_uint (at, subtask->sent_ns);
  at = put_uint (at, subtask->answered_ns - subtask->sent_ns);
  if (!opaque && alone)
    at = put_uint (at, subtask->alone);
  if (opaque) {
    at = put_uint (at, subtask->calls);
    at = put_uint (at, subtask->bytes_out);
    at = put_uint (at, subtask->bytes_in);
    at = put_uint (at, subtask->wait_ns);
  }
  return several_hosts ? put_clock (at, subtask) : at;
}

static uint8_t *put_execution (uint8_t *at, const ctl_execution_t *self, const texts_t *texts)
{
  at = put_array (at, HOST_FIELDS);
  at = put_uint (at, PACK_VERSION);
  at = put_bin16 (at, self->task);
  at = put_uint (at, self->truncated);
  at = put_uint (at, self->hosts);
  at = put_uint (at, 0); /* origin: the first text */
  at = put_array (at, texts->count);
  for (uint32_t i = 0; i < texts->count; i++)
    at = put_text (at, texts->text[i], strlen (texts->text[i]));
  at = put_array (at, self->count);
  for (uint32_t i = 0; i < self->count; i++)
    at = put_subtask (at, &self->subtasks[i], self->hosts > 1, texts->place + 3 * (size_t) i);
  at = put_uint (at, self->aligned);
  at = put_uint (at, self->clock_uncertainty_ns);
  return put_uint (at, self->hosts > 1 || !self->count ? 0 : self->subtasks[0].host);
}

static int make_room (ctl_bytes_t *to, size_t size)
{
  if (to->data && to->capacity - to->size >= size)
    return 0;
  size_t capacity = to->capacity * 2 > to->size + size ? to->capacity * 2 : to->size + size;
  uint8_t *data = realloc (to->data, capacity);
  if (!data)
    return WEFT_E_NOMEM;
  to->data = data;
  to->capacity = capacity;
  return 0;
}

int ctl_execution_append (const ctl_execution_t *self, ctl_bytes_t *to)
{
  texts_t texts = {0};
  int rc = texts_new (self, &texts);
  if (rc == 0)
    rc = make_room (to, HEAD_BYTES + texts.bytes + TAIL_BYTES + (size_t) self->count * SUBTASK_BYTES);
  if (rc == 0)
    to->size = (size_t) (put_execution (to->data + to->size, self, &texts) - to->data);
  free (texts.text);
  return rc;
}

int ctl_execution_pack (const ctl_execution_t *self, void **ret_data, size_t *ret_size)
{
  ctl_bytes_t bytes = {0};
  int rc = ctl_execution_append (self, &bytes);
  if (rc) {
    free (bytes.data);
    return rc;
  }
  *ret_data = bytes.data;
  *ret_size = bytes.size;
  return 0;
}

/* ---- unpacking -------------------------------------------------------------- */

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

int ctl_execution_unpack (const void *data, size_t size, ctl_execution_t **ret_self)
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
  *ret_self = out;
  return 0;
}
