/* SPDX-License-Identifier: Apache-2.0 */
#include "pack.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/limits.h"
#include "../../common/status.h"
#include "varint.h"

#define HEAD_BYTES    4u
#define HEAD_ROOM     (HEAD_BYTES + CTL_PACK_MOST * 4u) /* before the first execution; the head ends there */
#define ID_BYTES      8u
#define FLAG_BYTES    2u
#define TOP_BYTES     (1u + WEFT_TASK_ID_SIZE + ID_BYTES + 6u * CTL_VARINT_MOST)
#define SUBTASK_BYTES (FLAG_BYTES + 3u * ID_BYTES + 8u * CTL_VARINT_MOST + 1u + 11u * CTL_VARINT_MOST)

struct ctl_pack_t {
  ctl_bytes_t bytes; /* HEAD_ROOM, then the executions */
  ctl_dictionary_t *dictionary;
  uint32_t count;
  uint32_t end[CTL_PACK_MOST]; /* counted from the first execution */
};

ctl_pack_t *ctl_pack_new (void)
{
  ctl_pack_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  self->dictionary = ctl_dictionary_new ();
  if (!self->dictionary || ctl_bytes_reserve (&self->bytes, HEAD_ROOM))
    ctl_pack_destroy (&self);
  else
    ctl_pack_empty (self);
  return self;
}

void ctl_pack_destroy (ctl_pack_t **self_p)
{
  ctl_pack_t *self = *self_p;
  if (!self)
    return;
  free (self->bytes.data);
  ctl_dictionary_destroy (&self->dictionary);
  free (self);
  *self_p = NULL;
}

void ctl_pack_empty (ctl_pack_t *self)
{
  ctl_dictionary_empty (self->dictionary);
  self->count = 0;
  self->bytes.size = HEAD_ROOM;
}

uint32_t ctl_pack_count (const ctl_pack_t *self)
{
  return self->count;
}

size_t ctl_pack_size (const ctl_pack_t *self)
{
  return HEAD_BYTES + (size_t) self->count * 4 + self->bytes.size - HEAD_ROOM +
         ctl_dictionary_size (self->dictionary);
}

/* ---- an execution; room was made before -------------------------------------------- */

static uint8_t *put_fixed (uint8_t *at, uint64_t value)
{
  ctl_fixed_put (at, value);
  return at + ID_BYTES;
}

/* Of what is nearly always small: a branch that is guessed right is cheaper than counting bits. */
static uint8_t *put_place (uint8_t *at, uint32_t place)
{
  if (place > 127)
    return ctl_varint_put (at, place);
  *at = (uint8_t) (place << 1 | 1);
  return at + 1;
}

static uint8_t *put_signed (uint8_t *at, uint64_t difference)
{
  return ctl_varint_put (at, ctl_zigzag (difference));
}

static uint8_t *put_rare (uint8_t *at, const ctl_subtask_t *subtask)
{
  *at++ =
      (uint8_t) ((subtask->error ? CTL_PACK_RARE_ERROR : 0) | (subtask->orphan ? CTL_PACK_RARE_ORPHAN : 0) |
                 (subtask->instruction ? CTL_PACK_RARE_INSTRUCTION : 0) |
                 (subtask->alone ? CTL_PACK_RARE_ALONE : 0) | (subtask->inside ? CTL_PACK_RARE_INSIDE : 0));
  if (subtask->error)
    at = ctl_varint_put (at, subtask->error);
  if (subtask->orphan)
    at = ctl_varint_put (at, subtask->orphan);
  if (subtask->instruction)
    at = ctl_varint_put (at, subtask->instruction);
  return at;
}

static uint8_t *put_opaque (uint8_t *at, const ctl_subtask_t *subtask)
{
  at = ctl_varint_put (at, subtask->calls);
  at = ctl_varint_put (at, subtask->bytes_out);
  at = ctl_varint_put (at, subtask->bytes_in);
  return ctl_varint_put (at, subtask->wait_ns);
}

static uint8_t *put_clock (uint8_t *at, const ctl_subtask_t *subtask)
{
  at = ctl_varint_put (at, subtask->host);
  at = ctl_varint_put (at, subtask->sender_host);
  at = put_signed (at, (uint64_t) subtask->shift_ns);
  return put_signed (at, (uint64_t) subtask->sender_shift_ns);
}

/* The subtask before this one that it was called by, NULL: none. */
static const ctl_subtask_t *near_caller (const ctl_execution_t *execution, const ctl_subtask_t *subtask)
{
  uint32_t parent = subtask->parent;
  if (!subtask->caller || parent >= (uint32_t) (subtask - execution->subtasks))
    return NULL;
  return execution->subtasks[parent].id == subtask->caller ? &execution->subtasks[parent] : NULL;
}

static unsigned flags_of (const ctl_subtask_t *subtask, int near)
{
  int sides = (subtask->sent_ns | subtask->answered_ns) != 0;
  int rare = (subtask->error | subtask->orphan | subtask->alone | subtask->inside) || subtask->instruction;
  return (unsigned) subtask->hop | (subtask->answered ? CTL_PACK_FLAG_ANSWERED : 0) |
         (!subtask->request                 ? 0
          : subtask->request == subtask->id ? CTL_PACK_FLAG_LEAF
                                            : CTL_PACK_FLAG_REQUEST) |
         (near              ? CTL_PACK_FLAG_NEAR
          : subtask->caller ? CTL_PACK_FLAG_CALLER
                            : 0) |
         (sides ? CTL_PACK_FLAG_SIDES : 0) | (subtask->cpu_ns != WEFT_NS_NONE ? CTL_PACK_FLAG_CPU : 0) |
         (subtask->status == 200 ? CTL_PACK_FLAG_OK
          : subtask->status      ? CTL_PACK_FLAG_STATUS
                                 : 0) |
         (rare ? CTL_PACK_FLAG_RARE : 0);
}

static uint8_t *put_subtask (ctl_dictionary_t *dictionary, uint8_t *at, const ctl_execution_t *execution,
                             const ctl_subtask_t *subtask)
{
  const ctl_subtask_t *caller = near_caller (execution, subtask);
  unsigned flags = flags_of (subtask, caller != NULL);
  *at++ = (uint8_t) flags;
  *at++ = (uint8_t) (flags >> 8);
  at = put_fixed (at, subtask->id);
  if (flags & CTL_PACK_FLAG_REQUEST)
    at = put_fixed (at, subtask->request);
  if (flags & CTL_PACK_FLAG_NEAR)
    at = put_place (at, (uint32_t) (subtask - caller));
  if (flags & CTL_PACK_FLAG_CALLER)
    at = put_fixed (at, subtask->caller);
  at = put_place (at, ctl_dictionary_resource (dictionary, subtask));
  at = put_place (at, ctl_dictionary_text (dictionary, subtask->name));
  at = put_signed (at, subtask->start_ns - (caller ? caller : execution->subtasks)->start_ns);
  at = ctl_varint_put (at, subtask->end_ns - subtask->start_ns);
  if (flags & CTL_PACK_FLAG_SIDES) {
    at = put_signed (at, subtask->start_ns - subtask->sent_ns);
    at = put_signed (at, subtask->answered_ns - subtask->end_ns);
  }
  if (flags & CTL_PACK_FLAG_CPU)
    at = ctl_varint_put (at, subtask->cpu_ns);
  if (flags & CTL_PACK_FLAG_STATUS)
    at = ctl_varint_put (at, subtask->status);
  if (flags & CTL_PACK_FLAG_RARE)
    at = put_rare (at, subtask);
  if (subtask->hop == CTL_HOP_OPAQUE)
    at = put_opaque (at, subtask);
  return execution->hosts > 1 ? put_clock (at, subtask) : at;
}

static uint8_t *put_head (ctl_dictionary_t *dictionary, uint8_t *at, const ctl_execution_t *execution)
{
  const ctl_subtask_t *first = execution->count ? execution->subtasks : NULL;
  uint32_t host = execution->hosts > 1 || !first ? 0 : first->host;
  *at++ = (uint8_t) ((execution->truncated ? CTL_PACK_HEAD_TRUNCATED : 0) |
                     (execution->hosts != 1 ? CTL_PACK_HEAD_HOSTS : 0) |
                     (execution->origin[0] ? CTL_PACK_HEAD_ORIGIN : 0) |
                     (execution->clock_uncertainty_ns ? CTL_PACK_HEAD_UNCERTAINTY : 0) |
                     (host ? CTL_PACK_HEAD_HOST : 0) | (execution->aligned ? CTL_PACK_HEAD_ALIGNED : 0));
  memcpy (at, execution->task, WEFT_TASK_ID_SIZE);
  at = put_fixed (at + WEFT_TASK_ID_SIZE, first ? first->start_ns : 0);
  at = ctl_varint_put (at, execution->count);
  if (execution->truncated)
    at = ctl_varint_put (at, execution->truncated);
  if (execution->hosts != 1)
    at = ctl_varint_put (at, execution->hosts);
  if (execution->origin[0])
    at = ctl_varint_put (at, ctl_dictionary_text (dictionary, execution->origin));
  if (execution->clock_uncertainty_ns)
    at = ctl_varint_put (at, execution->clock_uncertainty_ns);
  return host ? ctl_varint_put (at, host) : at;
}

int ctl_pack_add (ctl_pack_t *self, const ctl_execution_t *execution)
{
  ctl_dictionary_t *dictionary = self->dictionary;
  if (self->count == CTL_PACK_MOST)
    return WEFT_E_FULL;
  int rc = ctl_bytes_reserve (&self->bytes, TOP_BYTES + (size_t) execution->count * SUBTASK_BYTES);
  if (rc)
    return rc;
  if (execution->text) /* they may stand where those of another one stood */
    ctl_dictionary_forget (dictionary);
  uint8_t *at = put_head (dictionary, self->bytes.data + self->bytes.size, execution);
  for (uint32_t i = 0; i < execution->count; i++)
    at = put_subtask (dictionary, at, execution, &execution->subtasks[i]);
  if (execution->text)
    ctl_dictionary_forget (dictionary);
  rc = ctl_dictionary_failed (dictionary);
  if (rc)
    return rc;
  self->bytes.size = (size_t) (at - self->bytes.data);
  self->end[self->count++] = (uint32_t) (self->bytes.size - HEAD_ROOM);
  return 0;
}

void ctl_pack_take_back (ctl_pack_t *self)
{
  if (self->count == 0)
    return;
  if (--self->count == 0) /* nor are its texts kept, which nobody counts */
    ctl_pack_empty (self);
  else
    self->bytes.size = HEAD_ROOM + self->end[self->count - 1];
}

/* ---- the whole ----------------------------------------------------------------------- */

/* Behind the executions, where the next one would go: nothing is moved but the dictionary. */
int ctl_pack_finish (ctl_pack_t *self, const void **ret_data, size_t *ret_size)
{
  size_t skip = (CTL_PACK_MOST - self->count) * 4, size = ctl_pack_size (self);
  int rc = ctl_bytes_reserve (&self->bytes, ctl_dictionary_size (self->dictionary));
  if (rc)
    return rc;
  uint8_t *head = self->bytes.data + skip;
  head[0] = 0x97;
  head[1] = 2;
  head[2] = (uint8_t) self->count;
  head[3] = 0xff;
  for (uint32_t i = 0; i < self->count; i++) {
    uint32_t end = htole32 (self->end[i]);
    memcpy (head + HEAD_BYTES + i * sizeof end, &end, sizeof end);
  }
  ctl_dictionary_put (self->dictionary, self->bytes.data + self->bytes.size);
  *ret_data = head;
  *ret_size = size;
  return 0;
}

int ctl_execution_pack (const ctl_execution_t *self, void **ret_data, size_t *ret_size)
{
  const void *data = NULL;
  void *copy = NULL;
  size_t size = 0;
  ctl_pack_t *pack = ctl_pack_new ();
  int rc = pack ? ctl_pack_add (pack, self) : WEFT_E_NOMEM;
  if (rc == 0)
    rc = ctl_pack_finish (pack, &data, &size);
  if (rc == 0 && !(copy = malloc (size)))
    rc = WEFT_E_NOMEM;
  if (rc == 0) {
    memcpy (copy, data, size);
    *ret_data = copy;
    *ret_size = size;
  }
  ctl_pack_destroy (&pack);
  return rc;
}
