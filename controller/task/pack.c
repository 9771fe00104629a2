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
#include <msgpack.h>
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

typedef struct {
  const char **text;
  uint32_t count;
} texts_t;

static uint32_t place_of (texts_t *self, const char *text)
{
  uint32_t from = self->count > LOOK_BACK ? self->count - LOOK_BACK : 0;
  for (uint32_t i = self->count; i-- > from;)
    if (self->text[i] == text || strcmp (self->text[i], text) == 0)
      return i;
  self->text[self->count] = text;
  return self->count++;
}

static void pack_bytes (msgpack_packer *pk, const uint8_t *bytes, size_t size)
{
  msgpack_pack_bin (pk, size);
  msgpack_pack_bin_body (pk, bytes, size);
}

static uint64_t shift_out (int64_t ns)
{
  return ns < 0 ? (uint64_t) -ns * 2 - 1 : (uint64_t) ns * 2;
}

static void pack_clock (msgpack_packer *pk, const ctl_subtask_t *subtask)
{
  msgpack_pack_uint32 (pk, subtask->host);
  msgpack_pack_uint32 (pk, subtask->sender_host);
  msgpack_pack_uint64 (pk, shift_out (subtask->shift_ns));
  msgpack_pack_uint64 (pk, shift_out (subtask->sender_shift_ns));
}

static void pack_subtask (msgpack_packer *pk, const ctl_subtask_t *subtask, int several_hosts, texts_t *texts)
{
  int opaque = subtask->hop == CTL_HOP_OPAQUE, alone = subtask->alone || several_hosts;
  msgpack_pack_array (pk, (opaque  ? OPAQUE_FIELDS
                           : alone ? ALONE_FIELDS
                                   : SUBTASK_FIELDS) +
                              (several_hosts ? CLOCK_FIELDS : 0));
  msgpack_pack_uint64 (pk, subtask->id);
  msgpack_pack_uint64 (pk, subtask->request);
  msgpack_pack_uint64 (pk, subtask->caller);
  msgpack_pack_uint8 (pk, (uint8_t) subtask->hop);
  msgpack_pack_uint8 (pk, subtask->error);
  msgpack_pack_uint8 (pk, subtask->answered);
  msgpack_pack_uint8 (pk, subtask->inside);
  msgpack_pack_uint16 (pk, subtask->status);
  msgpack_pack_uint8 (pk, subtask->orphan);
  msgpack_pack_uint32 (pk, subtask->instruction);
  pack_bytes (pk, subtask->instance, WEFT_UUID_SIZE);
  msgpack_pack_uint32 (pk, subtask->pid);
  msgpack_pack_uint32 (pk, place_of (texts, subtask->service));
  msgpack_pack_uint32 (pk, place_of (texts, subtask->vm));
  msgpack_pack_uint32 (pk, place_of (texts, subtask->name));
  msgpack_pack_uint64 (pk, subtask->start_ns);
  msgpack_pack_uint64 (pk, subtask->end_ns - subtask->start_ns);
  if (subtask->cpu_ns == WEFT_NS_NONE)
    msgpack_pack_nil (pk);
  else
    msgpack_pack_uint64 (pk, subtask->cpu_ns);
  msgpack_pack_uint64 (pk, subtask->sent_ns);
  msgpack_pack_uint64 (pk, subtask->answered_ns - subtask->sent_ns);
  if (!opaque && alone)
    msgpack_pack_uint8 (pk, subtask->alone);
  if (opaque) {
    msgpack_pack_uint32 (pk, subtask->calls);
    msgpack_pack_uint64 (pk, subtask->bytes_out);
    msgpack_pack_uint64 (pk, subtask->bytes_in);
    msgpack_pack_uint64 (pk, subtask->wait_ns);
  }
  if (several_hosts)
    pack_clock (pk, subtask);
}

/* The subtasks are packed first, aside, because their texts stand before them. */
static int pack_both (const ctl_execution_t *self, texts_t *texts, msgpack_sbuffer *out,
                      msgpack_sbuffer *subtasks)
{
  msgpack_packer pk;
  uint32_t origin = place_of (texts, self->origin);
  msgpack_packer_init (&pk, subtasks, msgpack_sbuffer_write);
  int rc = msgpack_pack_array (&pk, self->count);
  for (uint32_t i = 0; i < self->count; i++)
    pack_subtask (&pk, &self->subtasks[i], self->hosts > 1, texts);
  msgpack_packer_init (&pk, out, msgpack_sbuffer_write);
  rc |= msgpack_pack_array (&pk, HOST_FIELDS);
  rc |= msgpack_pack_uint32 (&pk, PACK_VERSION);
  pack_bytes (&pk, self->task, WEFT_TASK_ID_SIZE);
  rc |= msgpack_pack_uint32 (&pk, self->truncated);
  rc |= msgpack_pack_uint32 (&pk, self->hosts);
  rc |= msgpack_pack_uint32 (&pk, origin);
  rc |= msgpack_pack_array (&pk, texts->count);
  for (uint32_t i = 0; i < texts->count; i++) {
    size_t size = strlen (texts->text[i]);
    rc |= msgpack_pack_str (&pk, size);
    rc |= msgpack_pack_str_body (&pk, texts->text[i], size);
  }
  rc |= msgpack_sbuffer_write (out, subtasks->data, subtasks->size);
  rc |= msgpack_pack_uint8 (&pk, self->aligned);
  rc |= msgpack_pack_uint64 (&pk, self->clock_uncertainty_ns);
  rc |= msgpack_pack_uint32 (&pk, self->hosts > 1 || !self->count ? 0 : self->subtasks[0].host);
  return rc ? WEFT_E_NOMEM : 0;
}

int ctl_execution_pack (const ctl_execution_t *self, void **ret_data, size_t *ret_size)
{
  msgpack_sbuffer out, subtasks;
  texts_t texts = {.text = malloc ((self->count * 3u + 1u) * sizeof (const char *))};
  if (!texts.text)
    return WEFT_E_NOMEM;
  msgpack_sbuffer_init (&out);
  msgpack_sbuffer_init (&subtasks);
  int rc = pack_both (self, &texts, &out, &subtasks);
  if (rc == 0) {
    *ret_size = out.size;
    *ret_data = msgpack_sbuffer_release (&out);
  }
  msgpack_sbuffer_destroy (&subtasks);
  msgpack_sbuffer_destroy (&out);
  free (texts.text);
  return rc;
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
