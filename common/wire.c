/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cursor.h"
#include "ids.h"
#include "status.h"

/* ---- fields -------------------------------------------------------------
 * Each message is a map; its keys stand in one table that packs and unpacks. */
typedef enum { TYPE_U32, TYPE_U64, TYPE_I64, TYPE_ID, TYPE_TEXT, TYPE_COUNTS } field_type_t;

typedef struct {
  const char *key;
  field_type_t type;
  unsigned kinds; /* bit per message kind that carries it */
  int required;
  size_t offset, size;
} field_t;

#define BIT(kind)        (1u << (kind))
#define SIZE_OF(T, name) sizeof (((T *) 0)->name)

/* Texts that decide something are refused when they do not fit; texts for
 * people are cut. */
#define REQUIRED 1
#define EXACT    2

static void pack_text (msgpack_packer *pk, const char *text, size_t max)
{
  size_t size = strnlen (text, max);
  msgpack_pack_str (pk, size);
  msgpack_pack_str_body (pk, text, size);
}

static void pack_key (msgpack_packer *pk, const char *key)
{
  pack_text (pk, key, 64);
}

static void pack_id (msgpack_packer *pk, const uint8_t id[WEFT_UUID_SIZE])
{
  msgpack_pack_bin (pk, WEFT_UUID_SIZE);
  msgpack_pack_bin_body (pk, id, WEFT_UUID_SIZE);
}

/* As many as the array holds, without the zeros at its end. */
static void pack_counts (msgpack_packer *pk, const char *at, size_t size)
{
  uint64_t value;
  size_t count = size / sizeof value;
  for (; count > 0; count--) {
    memcpy (&value, at + (count - 1) * sizeof value, sizeof value);
    if (value)
      break;
  }
  msgpack_pack_array (pk, count);
  for (size_t i = 0; i < count; i++) {
    memcpy (&value, at + i * sizeof value, sizeof value);
    msgpack_pack_uint64 (pk, value);
  }
}

static void pack_field (msgpack_packer *pk, const field_t *field, const void *base)
{
  const char *at = (const char *) base + field->offset;
  uint32_t u32;
  uint64_t u64;
  int64_t i64;

  pack_key (pk, field->key);
  switch (field->type) {
  case TYPE_U32:
    memcpy (&u32, at, sizeof (u32));
    msgpack_pack_uint32 (pk, u32);
    break;
  case TYPE_U64:
    memcpy (&u64, at, sizeof (u64));
    msgpack_pack_uint64 (pk, u64);
    break;
  case TYPE_I64:
    memcpy (&i64, at, sizeof (i64));
    msgpack_pack_int64 (pk, i64);
    break;
  case TYPE_ID:
    pack_id (pk, (const uint8_t *) at);
    break;
  case TYPE_TEXT:
    pack_text (pk, at, field->size - 1);
    break;
  case TYPE_COUNTS:
    pack_counts (pk, at, field->size);
    break;
  }
}

static size_t count_fields (const field_t *table, size_t count, unsigned kind)
{
  size_t n = 0;
  for (size_t i = 0; i < count; i++)
    n += (table[i].kinds & BIT (kind)) != 0;
  return n;
}

static void pack_fields (msgpack_packer *pk, const field_t *table, size_t count, unsigned kind,
                         const void *base)
{
  for (size_t i = 0; i < count; i++)
    if (table[i].kinds & BIT (kind))
      pack_field (pk, &table[i], base);
}

/* Text into a terminated array of `room` bytes, the rest zeroed. */
static int unpack_text (const msgpack_object *value, char *out, size_t room, int exact)
{
  if (value->type != MSGPACK_OBJECT_STR)
    return WEFT_E_MALFORMED;
  size_t size = value->via.str.size;
  if (exact && (size >= room || memchr (value->via.str.ptr, 0, size)))
    return WEFT_E_MALFORMED;
  if (size >= room)
    size = room - 1;
  memset (out, 0, room);
  memcpy (out, value->via.str.ptr, size);
  return 0;
}

static int unpack_id (const msgpack_object *value, uint8_t *out)
{
  if (value->type != MSGPACK_OBJECT_BIN || value->via.bin.size != WEFT_UUID_SIZE)
    return WEFT_E_MALFORMED;
  memcpy (out, value->via.bin.ptr, WEFT_UUID_SIZE);
  return 0;
}

static int unpack_u64 (const msgpack_object *value, uint64_t max, uint64_t *ret_value)
{
  if (value->type != MSGPACK_OBJECT_POSITIVE_INTEGER || value->via.u64 > max)
    return WEFT_E_MALFORMED;
  *ret_value = value->via.u64;
  return 0;
}

/* What is beyond the array is of a newer minor version, and goes to its first place. */
static int unpack_counts (const msgpack_object *value, char *at, size_t size)
{
  uint64_t count, sum;
  if (value->type != MSGPACK_OBJECT_ARRAY)
    return WEFT_E_MALFORMED;
  memset (at, 0, size);
  for (size_t i = 0; i < value->via.array.size; i++) {
    char *to = at + (i < size / sizeof sum ? i * sizeof sum : 0);
    if (unpack_u64 (&value->via.array.ptr[i], UINT64_MAX, &count) < 0)
      return WEFT_E_MALFORMED;
    memcpy (&sum, to, sizeof sum);
    if (__builtin_add_overflow (sum, count, &sum))
      sum = UINT64_MAX;
    memcpy (to, &sum, sizeof sum);
  }
  return 0;
}

static int unpack_field (const field_t *field, const msgpack_object *value, void *base)
{
  char *at = (char *) base + field->offset;
  uint64_t u64;
  uint32_t u32;

  switch (field->type) {
  case TYPE_U32:
    if (unpack_u64 (value, UINT32_MAX, &u64) < 0)
      return WEFT_E_MALFORMED;
    u32 = (uint32_t) u64;
    memcpy (at, &u32, sizeof (u32));
    return 0;
  case TYPE_U64:
    if (unpack_u64 (value, UINT64_MAX, &u64) < 0)
      return WEFT_E_MALFORMED;
    memcpy (at, &u64, sizeof (u64));
    return 0;
  case TYPE_I64:
    if (unpack_u64 (value, INT64_MAX, &u64) < 0)
      return WEFT_E_MALFORMED;
    memcpy (at, &u64, sizeof (u64));
    return 0;
  case TYPE_ID:
    return unpack_id (value, (uint8_t *) at);
  case TYPE_TEXT:
    return unpack_text (value, at, field->size, field->required & EXACT);
  case TYPE_COUNTS:
    return unpack_counts (value, at, field->size);
  }
  return WEFT_E_MALFORMED;
}

static int is_key (const msgpack_object *key, const char *text)
{
  return key->type == MSGPACK_OBJECT_STR && key->via.str.size == strlen (text) &&
         memcmp (key->via.str.ptr, text, key->via.str.size) == 0;
}

/* The value under `key`, NULL: not there. */
static const msgpack_object *find (const msgpack_object *map, const char *key)
{
  for (uint32_t i = 0; i < map->via.map.size; i++)
    if (is_key (&map->via.map.ptr[i].key, key))
      return &map->via.map.ptr[i].val;
  return NULL;
}

/* Keys that the table does not name are a newer minor version's: left alone. */
static int unpack_fields (const field_t *table, size_t count, unsigned kind, const msgpack_object *map,
                          void *base)
{
  for (size_t i = 0; i < count; i++) {
    if (!(table[i].kinds & BIT (kind)))
      continue;
    const msgpack_object *value = find (map, table[i].key);
    if (!value && (table[i].required & REQUIRED))
      return WEFT_E_MALFORMED;
    if (value && unpack_field (&table[i], value, base) < 0)
      return WEFT_E_MALFORMED;
  }
  return 0;
}

/* ---- frames ------------------------------------------------------------- */
/* Walks the whole frame before msgpack-c sees it: counts that the bytes do not
 * bear out would make it allocate for them. */
static int unpack_frame (const void *data, size_t size, msgpack_unpacked *ret_unpacked)
{
  weft_cursor_t c = {data, (const uint8_t *) data + size};
  if (size > WEFT_FRAME_MAX)
    return WEFT_E_RANGE;
  if (weft_cursor_skip (&c) < 0 || c.at != c.end)
    return WEFT_E_MALFORMED;
  msgpack_unpacked_init (ret_unpacked);
  switch (msgpack_unpack_next (ret_unpacked, data, size, NULL)) {
  case MSGPACK_UNPACK_SUCCESS:
    return 0;
  case MSGPACK_UNPACK_NOMEM_ERROR: /* also what it says of too deep a nesting */
  default:
    msgpack_unpacked_destroy (ret_unpacked);
    return WEFT_E_MALFORMED;
  }
}

/* A growing frame that remembers if it could not grow. */
typedef struct {
  msgpack_sbuffer buffer;
  int failed;
} frame_t;

static int frame_write (void *data, const char *bytes, size_t size)
{
  frame_t *frame = data;
  if (!frame->failed && msgpack_sbuffer_write (&frame->buffer, bytes, size) < 0)
    frame->failed = 1;
  return frame->failed ? -1 : 0;
}

static void frame_begin (frame_t *frame, msgpack_packer *pk)
{
  msgpack_sbuffer_init (&frame->buffer);
  frame->failed = 0;
  msgpack_packer_init (pk, frame, frame_write);
}

static int frame_end (frame_t *frame, void **ret_data, size_t *ret_size)
{
  if (frame->failed || frame->buffer.size > WEFT_FRAME_MAX) {
    msgpack_sbuffer_destroy (&frame->buffer);
    return frame->failed ? WEFT_E_NOMEM : WEFT_E_RANGE;
  }
  *ret_size = frame->buffer.size;
  *ret_data = msgpack_sbuffer_release (&frame->buffer);
  return 0;
}

static int check_version (const msgpack_object *major)
{
  if (major->type != MSGPACK_OBJECT_POSITIVE_INTEGER || major->via.u64 == 0)
    return WEFT_E_MALFORMED;
  return major->via.u64 > WEFT_WIRE_MAJOR ? WEFT_E_VERSION : 0;
}

/* ---- instructions -------------------------------------------------------- */
#define FIELD(T, name, type, kinds, required)                                                                \
  {                                                                                                          \
#name, type, kinds, required, offsetof(T, name), SIZE_OF(T, name)                                        \
  }
#define COUNT(table) (sizeof (table) / sizeof ((table)[0]))

static const field_t instruction_field[] = {
    FIELD (weft_instruction_t, number, TYPE_U32, BIT (0), REQUIRED),
    FIELD (weft_instruction_t, actions, TYPE_U32, BIT (0), REQUIRED),
    FIELD (weft_instruction_t, match, TYPE_TEXT, BIT (0), EXACT),
    FIELD (weft_instruction_t, max_roots, TYPE_U64, BIT (0), 0),
    FIELD (weft_instruction_t, carrier, TYPE_U32, BIT (0), 0),
    FIELD (weft_instruction_t, embed_to, TYPE_U32, BIT (0), 0),
    FIELD (weft_instruction_t, lease_ms, TYPE_U32, BIT (0), REQUIRED),
    FIELD (weft_instruction_t, header, TYPE_TEXT, BIT (0), EXACT),
};

static void pack_instruction (msgpack_packer *pk, const weft_instruction_t *instruction)
{
  msgpack_pack_map (pk, COUNT (instruction_field) + 4);
  pack_fields (pk, instruction_field, COUNT (instruction_field), 0, instruction);
  pack_key (pk, "selectors");
  msgpack_pack_array (pk, instruction->selector_count);
  for (uint32_t i = 0; i < instruction->selector_count; i++)
    pack_text (pk, instruction->selectors[i], WEFT_SELECTOR_MAX - 1);
  pack_key (pk, "sample");
  msgpack_pack_array (pk, 2);
  msgpack_pack_uint32 (pk, instruction->sample_num);
  msgpack_pack_uint32 (pk, instruction->sample_den);
  pack_key (pk, "networks");
  msgpack_pack_array (pk, instruction->network_count);
  for (uint32_t i = 0; i < instruction->network_count; i++) {
    msgpack_pack_bin (pk, sizeof (weft_network_t));
    msgpack_pack_bin_body (pk, &instruction->networks[i], sizeof (weft_network_t));
  }
  pack_key (pk, "excludes");
  msgpack_pack_array (pk, instruction->exclude_count);
  for (uint32_t i = 0; i < instruction->exclude_count; i++)
    pack_text (pk, instruction->excludes[i], WEFT_MATCH_MAX - 1);
}

static int unpack_selectors (const msgpack_object *value, weft_instruction_t *instruction)
{
  if (!value || value->type != MSGPACK_OBJECT_ARRAY || value->via.array.size > WEFT_SELECTORS_MAX)
    return WEFT_E_MALFORMED;
  instruction->selector_count = value->via.array.size;
  for (uint32_t i = 0; i < value->via.array.size; i++)
    if (unpack_text (&value->via.array.ptr[i], instruction->selectors[i], WEFT_SELECTOR_MAX, EXACT) < 0)
      return WEFT_E_MALFORMED;
  return 0;
}

/* Absent: every root. */
static int unpack_sample (const msgpack_object *value, weft_instruction_t *instruction)
{
  uint64_t num = 1, den = 1;
  if (value && (value->type != MSGPACK_OBJECT_ARRAY || value->via.array.size < 2 ||
                unpack_u64 (&value->via.array.ptr[0], UINT32_MAX, &num) < 0 ||
                unpack_u64 (&value->via.array.ptr[1], UINT32_MAX, &den) < 0))
    return WEFT_E_MALFORMED;
  if (den == 0 || num > den)
    return WEFT_E_MALFORMED;
  instruction->sample_num = (uint32_t) num;
  instruction->sample_den = (uint32_t) den;
  return 0;
}

/* Absent, from an older controller: none. */
static int unpack_networks (const msgpack_object *value, weft_instruction_t *instruction)
{
  if (!value)
    return 0;
  if (value->type != MSGPACK_OBJECT_ARRAY || value->via.array.size > WEFT_NETWORKS_MAX)
    return WEFT_E_MALFORMED;
  instruction->network_count = value->via.array.size;
  for (uint32_t i = 0; i < value->via.array.size; i++) {
    const msgpack_object *one = &value->via.array.ptr[i];
    if (one->type != MSGPACK_OBJECT_BIN || one->via.bin.size != sizeof (weft_network_t))
      return WEFT_E_MALFORMED;
    memcpy (&instruction->networks[i], one->via.bin.ptr, sizeof (weft_network_t));
    if (!weft_network_sound (&instruction->networks[i]))
      return WEFT_E_MALFORMED;
  }
  return 0;
}

static int unpack_excludes (const msgpack_object *value, weft_instruction_t *instruction)
{
  if (!value)
    return 0;
  if (value->type != MSGPACK_OBJECT_ARRAY || value->via.array.size > WEFT_EXCLUDES_MAX)
    return WEFT_E_MALFORMED;
  instruction->exclude_count = value->via.array.size;
  for (uint32_t i = 0; i < value->via.array.size; i++)
    if (unpack_text (&value->via.array.ptr[i], instruction->excludes[i], WEFT_MATCH_MAX, EXACT) < 0)
      return WEFT_E_MALFORMED;
  return 0;
}

static int unpack_instruction (const msgpack_object *map, weft_instruction_t *instruction)
{
  if (map->type != MSGPACK_OBJECT_MAP)
    return WEFT_E_MALFORMED;
  if (unpack_fields (instruction_field, COUNT (instruction_field), 0, map, instruction) < 0 ||
      unpack_selectors (find (map, "selectors"), instruction) < 0 ||
      unpack_sample (find (map, "sample"), instruction) < 0 ||
      unpack_networks (find (map, "networks"), instruction) < 0 ||
      unpack_excludes (find (map, "excludes"), instruction) < 0 || instruction->number == 0)
    return WEFT_E_MALFORMED;
  return 0;
}

/* ---- instruction bus ------------------------------------------------------ */
#define BUS_ALL                                                                                              \
  (BIT (WEFT_BUS_HEARTBEAT) | BIT (WEFT_BUS_STATE) | BIT (WEFT_BUS_BATCH_ACK) | BIT (WEFT_BUS_LEAVE))
static const field_t bus_field[] = {
    FIELD (weft_bus_message_t, controller, TYPE_ID, BUS_ALL, REQUIRED),
    FIELD (weft_bus_message_t, epoch, TYPE_U64, BIT (WEFT_BUS_HEARTBEAT) | BIT (WEFT_BUS_STATE), REQUIRED),
    FIELD (weft_bus_message_t, seq, TYPE_U64, BIT (WEFT_BUS_HEARTBEAT), REQUIRED),
    FIELD (weft_bus_message_t, boot, TYPE_ID, BIT (WEFT_BUS_HEARTBEAT) | BIT (WEFT_BUS_STATE), REQUIRED),
    FIELD (weft_bus_message_t, sent_ns, TYPE_U64, BIT (WEFT_BUS_HEARTBEAT) | BIT (WEFT_BUS_STATE), REQUIRED),
    FIELD (weft_bus_message_t, number, TYPE_U64, BIT (WEFT_BUS_BATCH_ACK), REQUIRED),
    FIELD (weft_bus_message_t, start, TYPE_ID, BIT (WEFT_BUS_BATCH_ACK), REQUIRED),
};

int weft_bus_pack (const weft_bus_message_t *message, void **ret_data, size_t *ret_size)
{
  frame_t frame;
  msgpack_packer pk;
  unsigned kind = message->kind;

  if (kind < WEFT_BUS_HEARTBEAT || kind > WEFT_BUS_LEAVE)
    return WEFT_E_RANGE;
  if (kind == WEFT_BUS_STATE && message->instruction_count > WEFT_INSTRUCTIONS_MAX)
    return WEFT_E_RANGE;
  for (uint32_t i = 0; kind == WEFT_BUS_STATE && i < message->instruction_count; i++)
    if (message->instructions[i].selector_count > WEFT_SELECTORS_MAX ||
        message->instructions[i].network_count > WEFT_NETWORKS_MAX ||
        message->instructions[i].exclude_count > WEFT_EXCLUDES_MAX)
      return WEFT_E_RANGE;
  frame_begin (&frame, &pk);
  msgpack_pack_map (&pk, 2 + count_fields (bus_field, COUNT (bus_field), kind) + (kind == WEFT_BUS_STATE));
  pack_key (&pk, "v");
  msgpack_pack_array (&pk, 2);
  msgpack_pack_uint32 (&pk, WEFT_WIRE_MAJOR);
  msgpack_pack_uint32 (&pk, WEFT_WIRE_MINOR);
  pack_key (&pk, "kind");
  msgpack_pack_uint32 (&pk, kind);
  pack_fields (&pk, bus_field, COUNT (bus_field), kind, message);
  if (kind == WEFT_BUS_STATE) {
    pack_key (&pk, "instructions");
    msgpack_pack_array (&pk, message->instruction_count);
    for (uint32_t i = 0; i < message->instruction_count; i++)
      pack_instruction (&pk, &message->instructions[i]);
  }
  return frame_end (&frame, ret_data, ret_size);
}

static int unpack_instructions (const msgpack_object *value, weft_bus_message_t *message)
{
  if (!value || value->type != MSGPACK_OBJECT_ARRAY || value->via.array.size > WEFT_INSTRUCTIONS_MAX)
    return WEFT_E_MALFORMED;
  uint32_t count = value->via.array.size;
  if (count == 0)
    return 0;
  message->instructions = calloc (count, sizeof (*message->instructions));
  if (!message->instructions)
    return WEFT_E_NOMEM;
  message->instruction_count = count;
  for (uint32_t i = 0; i < count; i++)
    if (unpack_instruction (&value->via.array.ptr[i], &message->instructions[i]) < 0)
      return WEFT_E_MALFORMED;
  return 0;
}

static int unpack_bus_map (const msgpack_object *map, weft_bus_message_t *message)
{
  if (map->type != MSGPACK_OBJECT_MAP)
    return WEFT_E_MALFORMED;
  const msgpack_object *version = find (map, "v");
  const msgpack_object *kind = find (map, "kind");
  if (!version || version->type != MSGPACK_OBJECT_ARRAY || version->via.array.size < 2)
    return WEFT_E_MALFORMED;
  int status = check_version (&version->via.array.ptr[0]);
  if (status < 0)
    return status;
  if (!kind || kind->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
    return WEFT_E_MALFORMED;
  if (kind->via.u64 < WEFT_BUS_HEARTBEAT || kind->via.u64 > WEFT_BUS_LEAVE)
    return WEFT_E_UNSUPPORTED;
  message->kind = (weft_bus_kind_t) kind->via.u64;
  if (unpack_fields (bus_field, COUNT (bus_field), message->kind, map, message) < 0)
    return WEFT_E_MALFORMED;
  return message->kind == WEFT_BUS_STATE ? unpack_instructions (find (map, "instructions"), message) : 0;
}

int weft_bus_unpack (const void *data, size_t size, weft_bus_message_t *ret_message)
{
  msgpack_unpacked unpacked;
  weft_bus_message_t message;
  int status = unpack_frame (data, size, &unpacked);
  if (status < 0)
    return status;
  memset (&message, 0, sizeof (message));
  status = unpack_bus_map (&unpacked.data, &message);
  msgpack_unpacked_destroy (&unpacked);
  if (status < 0)
    weft_bus_clear (&message);
  else
    *ret_message = message;
  return status;
}

void weft_bus_clear (weft_bus_message_t *message)
{
  free (message->instructions);
  message->instructions = NULL;
  message->instruction_count = 0;
}

void weft_topic_instance (char out[WEFT_TOPIC_MAX], const uint8_t uuid[WEFT_UUID_SIZE])
{
  char text[37];
  weft_uuid_put (text, uuid);
  snprintf (out, WEFT_TOPIC_MAX, "instance/%s", text);
}

void weft_topic_service (char out[WEFT_TOPIC_MAX], const char *service)
{
  snprintf (out, WEFT_TOPIC_MAX, "service/%.*s", WEFT_SERVICE_MAX - 1, service);
}

/* ---- report bus ----------------------------------------------------------- */
#define HELLO BIT (WEFT_UP_HELLO)
#define ACK   BIT (WEFT_UP_ACK)
#define BYE   BIT (WEFT_UP_BYE)
static const field_t up_field[] = {
    FIELD (weft_up_message_t, instance, TYPE_ID, HELLO | ACK | BYE, REQUIRED),
    FIELD (weft_up_message_t, start, TYPE_ID, HELLO | ACK | BYE, REQUIRED),
    FIELD (weft_up_message_t, epoch, TYPE_U64, HELLO | ACK, REQUIRED),
    FIELD (weft_up_message_t, active, TYPE_U32, ACK, REQUIRED),
    FIELD (weft_up_message_t, boot, TYPE_ID, HELLO, REQUIRED),
    FIELD (weft_up_message_t, pid, TYPE_I64, HELLO, REQUIRED),
    FIELD (weft_up_message_t, vm, TYPE_TEXT, HELLO, REQUIRED),
    FIELD (weft_up_message_t, version, TYPE_TEXT, HELLO, 0),
    FIELD (weft_up_message_t, service, TYPE_TEXT, HELLO, REQUIRED),
    FIELD (weft_up_message_t, host, TYPE_TEXT, HELLO, 0),
    FIELD (weft_up_message_t, listens, TYPE_TEXT, HELLO, 0),
    FIELD (weft_up_message_t, replayed, TYPE_U32, HELLO, 0),
    FIELD (weft_up_message_t, bytes_total, TYPE_U64, ACK | BYE, 0),
    FIELD (weft_up_message_t, bytes_spoken, TYPE_U64, ACK | BYE, 0),
    FIELD (weft_up_message_t, connections_given_up, TYPE_U64, ACK | BYE, 0),
    FIELD (weft_up_message_t, requests_bare, TYPE_U64, ACK | BYE, 0),
    FIELD (weft_up_message_t, requests_excluded, TYPE_U64, ACK | BYE, 0),
    FIELD (weft_up_message_t, events_written, TYPE_U64, ACK | BYE, 0),
    FIELD (weft_up_message_t, requests_in, TYPE_U64, ACK | BYE, 0),
    FIELD (weft_up_message_t, requests_unmatched, TYPE_U64, ACK | BYE, 0),
    FIELD (weft_up_message_t, rest, TYPE_COUNTS, ACK | BYE, 0),
    FIELD (weft_up_message_t, slots_written, TYPE_U32, BYE, 0),
    FIELD (weft_up_message_t, slots_restored, TYPE_U32, BYE, 0),
    FIELD (weft_up_message_t, slots_foreign, TYPE_U32, BYE, 0),
    FIELD (weft_up_message_t, threads_left, TYPE_U32, BYE, 0),
    FIELD (weft_up_message_t, reason, TYPE_TEXT, BYE, 0),
};

int weft_up_kind (const void *data, size_t size, weft_up_kind_t *ret_kind)
{
  weft_cursor_t c = {data, (const uint8_t *) data + size};
  uint32_t fields;
  uint64_t major, minor, kind;

  if (weft_cursor_array (&c, &fields) < 0 || fields < 3 || weft_cursor_uint (&c, UINT16_MAX, &major) < 0 ||
      major == 0 || weft_cursor_uint (&c, UINT16_MAX, &minor) < 0)
    return WEFT_E_MALFORMED;
  if (major > WEFT_WIRE_MAJOR)
    return WEFT_E_VERSION;
  if (weft_cursor_uint (&c, UINT64_MAX, &kind) < 0)
    return WEFT_E_MALFORMED;
  if (kind < WEFT_UP_HELLO || kind > WEFT_UP_BATCH)
    return WEFT_E_UNSUPPORTED;
  *ret_kind = (weft_up_kind_t) kind;
  return 0;
}

int weft_up_pack (const weft_up_message_t *message, void **ret_data, size_t *ret_size)
{
  frame_t frame;
  msgpack_packer pk;
  unsigned kind = message->kind;

  if (kind < WEFT_UP_HELLO || kind > WEFT_UP_BYE || message->pid < 0)
    return WEFT_E_RANGE;
  frame_begin (&frame, &pk);
  msgpack_pack_array (&pk, 4);
  msgpack_pack_uint32 (&pk, WEFT_WIRE_MAJOR);
  msgpack_pack_uint32 (&pk, WEFT_WIRE_MINOR);
  msgpack_pack_uint32 (&pk, kind);
  msgpack_pack_map (&pk, count_fields (up_field, COUNT (up_field), kind));
  pack_fields (&pk, up_field, COUNT (up_field), kind, message);
  return frame_end (&frame, ret_data, ret_size);
}

int weft_up_unpack (const void *data, size_t size, weft_up_message_t *ret_message)
{
  msgpack_unpacked unpacked;
  weft_up_message_t message;
  memset (&message, 0, sizeof (message));
  int status = weft_up_kind (data, size, &message.kind);
  if (status < 0)
    return status;
  if (message.kind == WEFT_UP_BATCH) /* batch.h reads it */
    return WEFT_E_UNSUPPORTED;
  status = unpack_frame (data, size, &unpacked);
  if (status < 0)
    return status;
  const msgpack_object_array *array = &unpacked.data.via.array;
  if (array->size < 4 || array->ptr[3].type != MSGPACK_OBJECT_MAP)
    status = WEFT_E_MALFORMED;
  else
    status = unpack_fields (up_field, COUNT (up_field), message.kind, &array->ptr[3], &message);
  msgpack_unpacked_destroy (&unpacked);
  if (status == 0)
    *ret_message = message;
  return status;
}
