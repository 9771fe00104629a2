/* SPDX-License-Identifier: Apache-2.0 */
/* pack_v1: executions as version 1 wrote them (controller/task/pack_old.h), for the tests of what reads
 * stores of before; and executions of any content to write. Header only. */
#ifndef TEST_PACK_V1_H
#define TEST_PACK_V1_H

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "../../../../common/ids.h"
#include "../../../../controller/task/pack.h"
#include "../../../../controller/task/pack_old.h"

static inline void v1_text (msgpack_packer *pack, const char *text)
{
  msgpack_pack_str (pack, strlen (text));
  msgpack_pack_str_body (pack, text, strlen (text));
}

static inline void v1_bin (msgpack_packer *pack, const uint8_t bytes[16])
{
  msgpack_pack_bin (pack, 16);
  msgpack_pack_bin_body (pack, bytes, 16);
}

static inline void v1_numbers (msgpack_packer *pack, const uint64_t *numbers, unsigned count)
{
  for (unsigned i = 0; i < count; i++)
    msgpack_pack_uint64 (pack, numbers[i]);
}

static inline uint64_t v1_shift (int64_t ns)
{
  return ns < 0 ? (uint64_t) -ns * 2 - 1 : (uint64_t) ns * 2;
}

/* Its texts stand in the list at `text`, `text` + 1, `text` + 2; `behind` fields that nobody knows follow. */
static inline void v1_subtask (msgpack_packer *pack, const ctl_subtask_t *one, int several, uint32_t text,
                               uint32_t behind)
{
  int opaque = one->hop == CTL_HOP_OPAQUE, alone = one->alone || several || behind;
  msgpack_pack_array (pack, (opaque ? 24 : alone ? 21 : 20) + (several || behind ? 4 : 0) + behind);
  v1_numbers (pack,
              (const uint64_t[]){one->id, one->request, one->caller, one->hop, one->error, one->answered,
                                 one->inside, one->status, one->orphan, one->instruction},
              10);
  v1_bin (pack, one->instance);
  v1_numbers (
      pack,
      (const uint64_t[]){one->pid, text, text + 1, text + 2, one->start_ns, one->end_ns - one->start_ns}, 6);
  if (one->cpu_ns == WEFT_NS_NONE)
    msgpack_pack_nil (pack);
  else
    msgpack_pack_uint64 (pack, one->cpu_ns);
  v1_numbers (pack, (const uint64_t[]){one->sent_ns, one->answered_ns - one->sent_ns}, 2);
  if (opaque)
    v1_numbers (pack, (const uint64_t[]){one->calls, one->bytes_out, one->bytes_in, one->wait_ns}, 4);
  else if (alone)
    msgpack_pack_uint64 (pack, one->alone);
  if (several || behind)
    v1_numbers (pack,
                (const uint64_t[]){one->host, one->sender_host, v1_shift (one->shift_ns),
                                   v1_shift (one->sender_shift_ns)},
                4);
  for (uint32_t i = 0; i < behind; i++) {
    msgpack_pack_array (pack, 1);
    v1_text (pack, "later");
  }
}

/* malloc'd. `behind`: fields that a later version appended, to each subtask and to the head. */
static inline void *v1_pack (const ctl_execution_t *self, uint32_t behind, size_t *ret_size)
{
  msgpack_sbuffer buffer;
  msgpack_packer pack;
  msgpack_sbuffer_init (&buffer);
  msgpack_packer_init (&pack, &buffer, msgpack_sbuffer_write);
  msgpack_pack_array (&pack, 10 + behind);
  v1_numbers (&pack, (const uint64_t[]){1}, 1);
  v1_bin (&pack, self->task);
  v1_numbers (&pack, (const uint64_t[]){self->truncated, self->hosts, 0}, 3);
  msgpack_pack_array (&pack, 1 + 3 * (size_t) self->count);
  v1_text (&pack, self->origin);
  for (uint32_t i = 0; i < self->count; i++) {
    v1_text (&pack, self->subtasks[i].service);
    v1_text (&pack, self->subtasks[i].vm);
    v1_text (&pack, self->subtasks[i].name);
  }
  msgpack_pack_array (&pack, self->count);
  for (uint32_t i = 0; i < self->count; i++)
    v1_subtask (&pack, &self->subtasks[i], self->hosts > 1, 1 + 3 * i, behind);
  v1_numbers (&pack,
              (const uint64_t[]){self->aligned, self->clock_uncertainty_ns,
                                 self->hosts > 1 ? 0 : self->subtasks[0].host},
              3);
  for (uint32_t i = 0; i < behind; i++)
    msgpack_pack_nil (&pack);
  *ret_size = buffer.size;
  void *data = msgpack_sbuffer_release (&buffer);
  msgpack_sbuffer_destroy (&buffer);
  return data;
}

/* ---- executions of any content ---------------------------------------------------------- */

/* Nothing, little, much, or all there is. */
static inline uint64_t any_number (weft_ids_t *random, uint64_t most)
{
  uint64_t drawn = weft_ids_next (random), kind = drawn >> 32 & 7;
  uint64_t value = kind < 2 ? 0 : kind < 4 ? drawn & 0xff : kind < 6 ? drawn & 0xffffff : drawn;
  return kind == 7 && drawn & 1 ? most : most == UINT64_MAX ? value : value % (most + 1);
}

static inline int any_bit (weft_ids_t *random)
{
  return (int) (weft_ids_next (random) >> 40 & 1);
}

static const char *const any_text[] = {"",          "orders",          "jvm", "GET /orders/{id}",
                                       "POST /pay", "10.0.0.1:80",     "tcp", "node",
                                       "front",     "\xc3\xa4 /{name}"};

static inline const char *any_of (weft_ids_t *random)
{
  return any_text[weft_ids_next (random) % (sizeof any_text / sizeof *any_text)];
}

/* Of `count` subtasks that call each other any way, settled. Its texts are not its own. */
static inline ctl_execution_t *any_execution (weft_ids_t *random, uint32_t count)
{
  ctl_execution_t *self = calloc (1, sizeof *self);
  if (!self || !(self->subtasks = calloc (count, sizeof *self->subtasks)))
    abort ();
  weft_ids_task (random, self->task);
  self->name = "";
  self->hosts = (uint32_t) (any_bit (random) ? 1 : weft_ids_next (random) % 4);
  self->truncated = (uint32_t) any_number (random, UINT32_MAX);
  self->aligned = (uint8_t) any_bit (random);
  self->clock_uncertainty_ns = any_number (random, INT64_MAX);
  self->origin = any_of (random);
  uint32_t host = (uint32_t) any_number (random, UINT32_MAX);
  uint64_t id = weft_ids_next (random), step = weft_ids_next (random) | 1; /* all apart */
  for (; self->count < count; self->count++) {
    ctl_subtask_t *one = &self->subtasks[self->count];
    uint64_t around = self->count && any_bit (random) ? self->subtasks[0].start_ns : weft_ids_next (random);
    *one = (ctl_subtask_t){.id = id + step * self->count,
                           .request = any_number (random, UINT64_MAX),
                           .caller = id + step * (weft_ids_next (random) % (count + 2u)),
                           .hop = (ctl_hop_t) (weft_ids_next (random) % CTL_HOP_COUNT),
                           .error = (uint8_t) any_number (random, UINT8_MAX),
                           .answered = (uint8_t) any_bit (random),
                           .inside = (uint8_t) any_bit (random),
                           .status = any_bit (random) ? 200 : (uint16_t) any_number (random, UINT16_MAX),
                           .orphan = (uint8_t) any_number (random, UINT8_MAX),
                           .instruction = (uint32_t) any_number (random, UINT32_MAX),
                           .pid = (uint32_t) any_number (random, UINT32_MAX),
                           .service = any_of (random),
                           .vm = any_of (random),
                           .name = any_of (random),
                           .start_ns = around + any_number (random, UINT64_MAX),
                           .cpu_ns = any_bit (random) ? WEFT_NS_NONE : any_number (random, UINT64_MAX),
                           .host = host,
                           .sender_host = host};
    one->end_ns = one->start_ns + any_number (random, UINT64_MAX);
    if (any_bit (random)) {
      one->sent_ns = one->start_ns - any_number (random, UINT64_MAX);
      one->answered_ns = one->end_ns + any_number (random, UINT64_MAX);
    }
    if (any_bit (random))
      one->request = one->id;
    if (weft_ids_next (random) % 8 == 0)
      one->caller = 0;
    if (one->hop == CTL_HOP_OPAQUE) {
      one->calls = (uint32_t) any_number (random, UINT32_MAX);
      one->bytes_out = any_number (random, UINT64_MAX);
      one->bytes_in = any_number (random, UINT64_MAX);
      one->wait_ns = any_number (random, UINT64_MAX);
    } else {
      one->alone = (uint8_t) any_bit (random);
    }
    if (self->hosts > 1) {
      one->host = (uint32_t) any_number (random, UINT32_MAX);
      one->sender_host = (uint32_t) any_number (random, UINT32_MAX);
      one->shift_ns = (int64_t) any_number (random, CTL_PACK_SHIFT_MAX / 2) * (any_bit (random) ? 1 : -1);
      one->sender_shift_ns = (int64_t) any_number (random, CTL_PACK_SHIFT_MAX / 2);
    }
    memset (one->instance, (int) (weft_ids_next (random) % 5), sizeof one->instance);
  }
  if (ctl_execution_settle (self))
    abort ();
  return self;
}

/* Every field of the two, of what is derived as well. */
static inline void any_same (const ctl_execution_t *a, const ctl_execution_t *b)
{
  assert_memory_equal (a->task, b->task, sizeof a->task);
  assert_true (a->kind == b->kind && a->complete == b->complete && a->reason == b->reason);
  assert_true (a->instruction == b->instruction && a->hosts == b->hosts && a->aligned == b->aligned);
  assert_true (a->clock_uncertainty_ns == b->clock_uncertainty_ns && a->start_ns == b->start_ns);
  assert_true (a->duration_ns == b->duration_ns && a->truncated == b->truncated && a->count == b->count);
  assert_memory_equal (a->hops, b->hops, sizeof a->hops);
  assert_string_equal (a->name, b->name);
  assert_string_equal (a->origin, b->origin);
  for (uint32_t i = 0; i < a->count; i++) {
    ctl_subtask_t one = a->subtasks[i], other = b->subtasks[i];
    assert_string_equal (one.service, other.service);
    assert_string_equal (one.vm, other.vm);
    assert_string_equal (one.name, other.name);
    one.service = other.service = one.vm = other.vm = one.name = other.name = "";
    assert_true (one.id == other.id && one.request == other.request && one.caller == other.caller);
    assert_true (one.parent == other.parent && one.first_child == other.first_child);
    assert_true (one.next_sibling == other.next_sibling && one.depth == other.depth && one.hop == other.hop);
    assert_true (one.error == other.error && one.on_critical_path == other.on_critical_path);
    assert_true (one.answered == other.answered && one.inside == other.inside && one.status == other.status);
    assert_true (one.orphan == other.orphan && one.alone == other.alone);
    assert_true (one.instruction == other.instruction && one.pid == other.pid);
    assert_memory_equal (one.instance, other.instance, sizeof one.instance);
    assert_true (one.start_ns == other.start_ns && one.end_ns == other.end_ns);
    assert_true (one.self_ns == other.self_ns && one.cpu_ns == other.cpu_ns);
    assert_true (one.sent_ns == other.sent_ns && one.answered_ns == other.answered_ns);
    assert_true (one.wait_ns == other.wait_ns && one.calls == other.calls);
    assert_true (one.bytes_out == other.bytes_out && one.bytes_in == other.bytes_in);
    assert_true (one.host == other.host && one.sender_host == other.sender_host);
    assert_true (one.shift_ns == other.shift_ns && one.sender_shift_ns == other.sender_shift_ns);
  }
}

#endif
