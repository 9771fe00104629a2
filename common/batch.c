/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include "batch_layout.h"
#include "cursor.h"
#include "wire.h"

/* ---- writing ----------------------------------------------------------- */
#define SLOTS (2u * WEFT_BATCH_STRINGS_MAX) /* at most half full: probes stay short */
_Static_assert((SLOTS & (SLOTS - 1)) == 0, "slots are masked");

struct weft_batch_writer_t {
  uint8_t *buffer; /* NULL: no batch begun */
  uint8_t *at, *end;
  uint32_t reports, entries, strings;
  uint16_t slot[SLOTS]; /* index of a string + 1, 0: free */
  struct {
    uint32_t at; /* of its text, in the buffer */
    uint32_t size;
    uint32_t hash;
  } string[WEFT_BATCH_STRINGS_MAX];
};

static uint8_t *put_u64 (uint8_t *at, uint64_t v)
{
  at[0] = 0xcf;
  weft_store_u64 (at + 1, v);
  return at + 9;
}

static uint8_t *put_bin16 (uint8_t *at, const uint8_t *bytes)
{
  at[0] = 0xc4;
  at[1] = 16;
  memcpy (at + 2, bytes, 16);
  return at + 18;
}

weft_batch_writer_t *weft_batch_writer_new (void)
{
  return calloc (1, sizeof (weft_batch_writer_t));
}

void weft_batch_writer_destroy (weft_batch_writer_t **self_p)
{
  free (*self_p);
  *self_p = NULL;
}

static void patch (uint8_t *buffer, const weft_batch_head_t *head, uint32_t reports, uint32_t entries)
{
  weft_store_u64 (buffer + HEAD_TO_NS, head->to_ns);
  weft_store_u32 (buffer + HEAD_COUNT, reports);
  for (unsigned i = 0; i < WEFT_LOSS_WIRE_COUNT; i++)
    put_u64 (buffer + HEAD_LOSSES + 9 * i, head->losses[i]);
  weft_store_u32 (buffer + HEAD_ENTRY, entries);
}

int weft_batch_writer_begin (weft_batch_writer_t *self, void *buffer, size_t size,
                             const weft_batch_head_t *head)
{
  uint8_t *at = buffer;
  if (size < HEAD_SIZE + STRING_HEAD + WEFT_NAME_MAX + REPORT_SIZE + OPAQUE_SIZE)
    return WEFT_E_RANGE;
  if (size > WEFT_BATCH_MAX)
    size = WEFT_BATCH_MAX;
  at[0] = 0x90 | HEAD_FIELDS;
  at[1] = WEFT_WIRE_MAJOR;
  at[2] = WEFT_WIRE_MINOR;
  at[3] = WEFT_UP_BATCH;
  at = put_bin16 (at + 4, head->instance);
  at = put_bin16 (at, head->start);
  at = put_bin16 (at, head->boot);
  at = put_u64 (at, head->number);
  *at++ = 0x92;
  at = put_u64 (at, head->anchor.boot_ns);
  at = put_u64 (at, head->anchor.real_ns);
  at = put_u64 (at, head->from_ns);
  *at = 0xcf; /* of to_ns; the values after this and the next tags are patched */
  at = buffer;
  at[HEAD_COUNT - 1] = 0xce;
  at[HEAD_LOSSES - 1] = 0x90 | WEFT_LOSS_WIRE_COUNT;
  at[HEAD_ENTRY - 1] = 0xdd;
  patch (buffer, head, 0, 0);

  memset (self->slot, 0, sizeof (self->slot));
  self->buffer = buffer;
  self->at = self->buffer + HEAD_SIZE;
  self->end = self->buffer + size;
  self->reports = self->entries = self->strings = 0;
  return 0;
}

/* Eight bytes a turn; spread enough for a table that is at most half full. */
static uint32_t hash_name (const char *name, size_t size)
{
  uint64_t hash = size * 0x9e3779b97f4a7c15ull;
  uint64_t word;
  for (; size >= 8; size -= 8, name += 8) {
    memcpy (&word, name, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  }
  word = 0;
  memcpy (&word, name, size);
  hash = (hash ^ word) * 0xff51afd7ed558ccdull;
  return (uint32_t) (hash ^ hash >> 32);
}

/* The slot that holds the name, or the free one where it belongs. */
static uint16_t *find_slot (weft_batch_writer_t *self, const char *name, size_t size, uint32_t hash)
{
  for (uint32_t i = hash;; i++) {
    uint16_t *slot = &self->slot[i & (SLOTS - 1)];
    if (*slot == 0)
      return slot;
    uint32_t n = *slot - 1u;
    if (self->string[n].hash == hash && self->string[n].size == size &&
        memcmp (self->buffer + self->string[n].at, name, size) == 0)
      return slot;
  }
}

static void put_string (weft_batch_writer_t *self, uint16_t *slot, const char *name, size_t size,
                        uint32_t hash)
{
  uint8_t *at = self->at;
  at[0] = 0x92;
  at[1] = ENTRY_STRING;
  at[2] = 0xd9;
  at[3] = (uint8_t) size;
  memcpy (at + STRING_HEAD, name, size);
  self->string[self->strings].at = (uint32_t) (at + STRING_HEAD - self->buffer);
  self->string[self->strings].size = (uint32_t) size;
  self->string[self->strings].hash = hash;
  *slot = (uint16_t) ++self->strings;
  self->at = at + STRING_HEAD + size;
  self->entries++;
}

static uint8_t *put_address (uint8_t *at, const weft_address_t *address)
{
  at[0] = 0xc4;
  if (address->family == 0) {
    at[1] = 0;
    return at + 2;
  }
  at[1] = ADDRESS_SIZE;
  at[2] = address->family;
  weft_store_u16 (at + 3, address->port);
  memcpy (at + 5, address->ip, 16);
  return at + 2 + ADDRESS_SIZE;
}

static uint8_t *put_report (uint8_t *at, const weft_report_t *report, uint32_t flags, uint16_t name)
{
  at[0] = 0xdc;
  at[1] = 0;
  at[2] = report->kind == WEFT_REPORT_OPAQUE ? OPAQUE_FIELDS : REPORT_FIELDS;
  at[AT_KIND] = report->kind;
  at[AT_FLAGS - 1] = 0xce;
  weft_store_u32 (at + AT_FLAGS, flags);
  at[AT_REASON] = report->reason;
  at[AT_ERROR] = report->error;
  at[AT_STATUS - 1] = 0xcd;
  weft_store_u16 (at + AT_STATUS, report->status);
  at[AT_INSTRUCTION - 1] = 0xce;
  weft_store_u32 (at + AT_INSTRUCTION, report->instruction);
  at[AT_TID - 1] = 0xce;
  weft_store_u32 (at + AT_TID, report->tid);
  put_bin16 (at + AT_TASK - 2, report->task);
  put_u64 (at + AT_REQUEST - 1, report->request);
  put_u64 (at + AT_SUBTASK - 1, report->subtask);
  put_u64 (at + AT_START - 1, report->start_ns);
  put_u64 (at + AT_END - 1, report->end_ns);
  at += AT_CPU;
  if (report->cpu_ns == WEFT_NS_NONE)
    *at++ = 0xc0;
  else
    at = put_u64 (at, report->cpu_ns);
  at = put_address (at, &report->local);
  at = put_address (at, &report->peer);
  at[0] = 0xcd;
  weft_store_u16 (at + 1, name);
  at += 3;
  if (report->kind != WEFT_REPORT_OPAQUE)
    return at;
  at = put_u64 (at, report->opaque.calls);
  at = put_u64 (at, report->opaque.bytes_out);
  at = put_u64 (at, report->opaque.bytes_in);
  return put_u64 (at, report->opaque.wait_ns);
}

int weft_batch_writer_add (weft_batch_writer_t *self, const weft_report_t *report)
{
  size_t size = report->name_size;
  uint32_t flags = report->flags;

  if (!self->buffer)
    return WEFT_E_STATE;
  if (report->kind < WEFT_REPORT_CAPTURE || report->kind > WEFT_REPORT_OPAQUE || report->error > 127 ||
      report->reason > 127)
    return WEFT_E_RANGE;
  if (size > WEFT_NAME_MAX) { /* templating may have lengthened it */
    size = WEFT_NAME_MAX;
    flags |= WEFT_REPORT_CUT;
  }
  if (self->reports == WEFT_BATCH_REPORTS_MAX)
    return WEFT_E_FULL;
  const char *name = size > 0 ? report->name : "";
  uint32_t hash = hash_name (name, size);
  uint16_t *slot = find_slot (self, name, size, hash);
  size_t need =
      REPORT_SIZE + (report->kind == WEFT_REPORT_OPAQUE ? OPAQUE_SIZE : 0) + (*slot ? 0 : STRING_HEAD + size);
  if ((size_t) (self->end - self->at) < need || (!*slot && self->strings == WEFT_BATCH_STRINGS_MAX))
    return WEFT_E_FULL;
  if (!*slot)
    put_string (self, slot, name, size, hash);
  self->at = put_report (self->at, report, flags, (uint16_t) (*slot - 1));
  self->entries++;
  self->reports++;
  return 0;
}

uint32_t weft_batch_writer_count (const weft_batch_writer_t *self)
{
  return self->reports;
}

int weft_batch_writer_finish (weft_batch_writer_t *self, const weft_batch_head_t *head, size_t *ret_size)
{
  if (!self->buffer)
    return WEFT_E_STATE;
  patch (self->buffer, head, self->reports, self->entries);
  *ret_size = (size_t) (self->at - self->buffer);
  self->buffer = NULL;
  return 0;
}

/* ---- reading ----------------------------------------------------------- */
#define FETCH_AHEAD 1024u /* bytes, some reports: taking them is longer than a miss */

static int take_bin16 (weft_cursor_t *c, uint8_t *ret_bytes)
{
  const uint8_t *data;
  uint32_t size;
  if (weft_cursor_bin (c, &data, &size) < 0 || size != 16)
    return WEFT_E_MALFORMED;
  memcpy (ret_bytes, data, 16);
  return 0;
}

/* Steps over the fields of a newer minor version, counted. */
static int skip_surplus (weft_cursor_t *c, uint32_t count, uint32_t *skipped)
{
  for (; count > 0; count--) {
    if (weft_cursor_skip (c) < 0)
      return WEFT_E_MALFORMED;
    (*skipped)++;
  }
  return 0;
}

static int take_anchor (weft_cursor_t *c, weft_anchor_t *ret_anchor, uint32_t *skipped)
{
  uint32_t count;
  if (weft_cursor_array (c, &count) < 0 || count < 2 ||
      weft_cursor_uint (c, UINT64_MAX, &ret_anchor->boot_ns) < 0 ||
      weft_cursor_uint (c, UINT64_MAX, &ret_anchor->real_ns) < 0)
    return WEFT_E_MALFORMED;
  return skip_surplus (c, count - 2, skipped);
}

static int take_losses (weft_cursor_t *c, uint64_t ret_losses[WEFT_LOSS_WIRE_COUNT])
{
  uint32_t count;
  if (weft_cursor_array (c, &count) < 0)
    return WEFT_E_MALFORMED;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t value;
    if (weft_cursor_uint (c, UINT64_MAX, &value) < 0)
      return WEFT_E_MALFORMED;
    /* A cause that this version has no name for is a loss nevertheless. */
    uint64_t *sum = &ret_losses[i < WEFT_LOSS_WIRE_COUNT ? i : WEFT_LOSS_VERSION];
    if (__builtin_add_overflow (*sum, value, sum))
      *sum = UINT64_MAX;
  }
  return 0;
}

/* The fields between the version and the entries. */
static int take_head (weft_cursor_t *c, weft_batch_head_t *head, uint32_t *skipped)
{
  uint64_t kind, reports;
  if (weft_cursor_uint (c, UINT64_MAX, &kind) < 0 || kind != WEFT_UP_BATCH ||
      take_bin16 (c, head->instance) < 0 || take_bin16 (c, head->start) < 0 ||
      take_bin16 (c, head->boot) < 0 || weft_cursor_uint (c, UINT64_MAX, &head->number) < 0 ||
      take_anchor (c, &head->anchor, skipped) < 0 || weft_cursor_uint (c, UINT64_MAX, &head->from_ns) < 0 ||
      weft_cursor_uint (c, UINT64_MAX, &head->to_ns) < 0 || weft_cursor_uint (c, UINT32_MAX, &reports) < 0 ||
      take_losses (c, head->losses) < 0)
    return WEFT_E_MALFORMED;
  if (head->number == 0) /* B2 */
    return WEFT_E_MALFORMED;
  head->reports = (uint32_t) reports;
  return 0;
}

int weft_batch_reader_begin (weft_batch_reader_t *self, const void *frame, size_t size)
{
  weft_cursor_t c = {frame, (const uint8_t *) frame + size};
  weft_batch_head_t head;
  uint32_t fields, entries, skipped = 0;
  uint64_t major, minor;

  if (size > WEFT_FRAME_MAX || weft_cursor_array (&c, &fields) < 0 || fields < 3 ||
      weft_cursor_uint (&c, UINT16_MAX, &major) < 0 || weft_cursor_uint (&c, UINT16_MAX, &minor) < 0)
    return WEFT_E_MALFORMED;
  if (major > WEFT_WIRE_MAJOR)
    return WEFT_E_VERSION;
  memset (&head, 0, sizeof (head));
  head.major = (uint16_t) major;
  head.minor = (uint16_t) minor;
  if (major != WEFT_WIRE_MAJOR || fields < HEAD_FIELDS || take_head (&c, &head, &skipped) < 0 ||
      weft_cursor_array (&c, &entries) < 0)
    return WEFT_E_MALFORMED;
  self->head = head;
  self->at = c.at;
  self->end = c.end;
  self->entries_left = entries;
  self->strings = 0;
  self->skipped = skipped;
  self->surplus = fields - HEAD_FIELDS;
  return 0;
}

/* Numbers above those that this version knows: an index into a table of texts
 * must not leave it. An error of unknown kind stays an error. */
static void check_numbers (weft_report_t *report, uint32_t *skipped)
{
#define XX(number, name, text) +1
  enum { ERRORS = 0 WEFT_ERROR_MAP (XX), REASONS = 0 WEFT_REASON_MAP (XX) };
#undef XX
  if (__builtin_expect (report->error >= ERRORS, 0)) {
    report->error = WEFT_ERROR_CLOSED;
    (*skipped)++;
  }
  if (__builtin_expect (report->reason >= REASONS, 0)) {
    report->reason = WEFT_REASON_NONE;
    (*skipped)++;
  }
}

static void load_address (const uint8_t *at, weft_address_t *ret_address)
{
  ret_address->family = at[0];
  ret_address->port = weft_load_u16 (at + 1);
  memcpy (ret_address->ip, at + 3, 16);
  ret_address->reserved = 0;
  if (__builtin_expect (at[0] != 4 && at[0] != 6 && at[0] != 1, 0))
    memset (ret_address, 0, sizeof (*ret_address));
}

static int take_address (weft_cursor_t *c, weft_address_t *ret_address)
{
  const uint8_t *data;
  uint32_t size = 0;
  if (c->at < c->end && *c->at == 0xc0)
    c->at++;
  else if (weft_cursor_bin (c, &data, &size) < 0 || (size != 0 && size != ADDRESS_SIZE))
    return WEFT_E_MALFORMED;
  if (size == 0)
    memset (ret_address, 0, sizeof (*ret_address));
  else
    load_address (data, ret_address);
  return 0;
}

static int name_report (const weft_batch_reader_t *self, uint32_t index, weft_report_t *report)
{
  if (index >= self->strings) /* B3 */
    return WEFT_E_MALFORMED;
  report->name = self->string[index].text;
  report->name_size = (uint16_t) self->string[index].size;
  return 0;
}

static uint64_t load_raw (const uint8_t *at)
{
  uint64_t v;
  memcpy (&v, at, 8);
  return v;
}

/* True if the bytes at `at` (REPORT_SIZE of them are readable) are a report as
 * our writer packs it, up to the CPU time. All tags in one comparison: three
 * words with the variable bytes masked out, then single bytes. */
static int is_common_form (const uint8_t *at)
{
  /* dc 00 10 kind ce …  |  . reason<80 error<80 cd . . ce .  |  . . . ce … */
  uint64_t diff = (load_raw (at) ^ 0x000000ce000000dcull) & 0x000000ff0000ffffull;
  diff |= (load_raw (at + 8) ^ 0x00ce0000cd000000ull) & 0x00ff0000ff808000ull;
  diff |= (load_raw (at + 16) ^ 0x00000000ce000000ull) & 0x00000000ff000000ull;
  diff |= (uint64_t) ((at[AT_TASK - 2] ^ 0xc4) | (at[AT_TASK - 1] ^ 16));
  diff |= (uint64_t) ((at[AT_REQUEST - 1] ^ 0xcf) | (at[AT_SUBTASK - 1] ^ 0xcf));
  diff |= (uint64_t) ((at[AT_START - 1] ^ 0xcf) | (at[AT_END - 1] ^ 0xcf));
  diff |= at[AT_KIND - 1] ^ (at[AT_KIND] == WEFT_REPORT_OPAQUE ? OPAQUE_FIELDS : REPORT_FIELDS);
  return diff == 0 && at[AT_KIND] >= WEFT_REPORT_CAPTURE && at[AT_KIND] <= WEFT_REPORT_OPAQUE;
}

/* What lies behind an address as our writer packs it; NULL: it is in another form. */
static const uint8_t *read_address (const uint8_t *at, weft_address_t *ret_address)
{
  if (at[0] != 0xc4 || (at[1] != ADDRESS_SIZE && at[1] != 0))
    return NULL;
  if (at[1] == 0)
    memset (ret_address, 0, sizeof (*ret_address));
  else
    load_address (at + 2, ret_address);
  return at + 2 + at[1];
}

/* Likewise, what an opaque report has at its end. */
static const uint8_t *read_common_opaque (const uint8_t *at, const uint8_t *end, weft_report_t *report)
{
  if ((size_t) (end - at) < OPAQUE_SIZE ||
      ((at[0] ^ 0xcf) | (at[9] ^ 0xcf) | (at[18] ^ 0xcf) | (at[27] ^ 0xcf)))
    return NULL;
  uint64_t calls = weft_load_u64 (at + 1);
  report->opaque.calls = (uint32_t) calls;
  report->opaque.reserved = 0;
  report->opaque.bytes_out = weft_load_u64 (at + 10);
  report->opaque.bytes_in = weft_load_u64 (at + 19);
  report->opaque.wait_ns = weft_load_u64 (at + 28);
  return calls > UINT32_MAX ? NULL : at + OPAQUE_SIZE;
}

/* The processor fetches ahead by itself, but not beyond a page: frames of a journal are on many. Nothing
 * is read, wherever that is. */
static inline void fetch_ahead (const uint8_t *at)
{
  uintptr_t ahead = (uintptr_t) at + FETCH_AHEAD;
  __builtin_prefetch ((const void *) ahead);
  __builtin_prefetch ((const void *) (ahead + REPORT_SIZE / 2));
}

/* 1: taken; 0: not in the common form, nothing taken; WEFT_E_MALFORMED. */
static int read_common (weft_batch_reader_t *self, weft_report_t *report)
{
  const uint8_t *at = self->at;
  if ((size_t) (self->end - at) < REPORT_SIZE || !is_common_form (at))
    return 0;
  fetch_ahead (at);
  int no_cpu = at[AT_CPU] == 0xc0;
  if (!no_cpu && at[AT_CPU] != 0xcf)
    return 0;
  const uint8_t *tail = read_address (at + AT_CPU + (no_cpu ? 1 : 9), &report->local);
  if (!tail || !(tail = read_address (tail, &report->peer)) || *tail != 0xcd)
    return 0;
  const uint8_t *behind = tail + 3;
  if (at[AT_KIND] == WEFT_REPORT_OPAQUE && !(behind = read_common_opaque (behind, self->end, report)))
    return 0;
  if (name_report (self, weft_load_u16 (tail + 1), report) < 0)
    return WEFT_E_MALFORMED;
  report->kind = at[AT_KIND];
  report->error = at[AT_ERROR];
  report->reason = at[AT_REASON];
  report->protocol = 0;
  report->status = weft_load_u16 (at + AT_STATUS);
  report->flags = weft_load_u32 (at + AT_FLAGS);
  report->instruction = weft_load_u32 (at + AT_INSTRUCTION);
  report->tid = weft_load_u32 (at + AT_TID);
  memcpy (report->task, at + AT_TASK, WEFT_TASK_ID_SIZE);
  report->request = weft_load_u64 (at + AT_REQUEST);
  report->subtask = weft_load_u64 (at + AT_SUBTASK);
  report->start_ns = weft_load_u64 (at + AT_START);
  report->end_ns = weft_load_u64 (at + AT_END);
  report->cpu_ns = no_cpu ? WEFT_NS_NONE : weft_load_u64 (at + AT_CPU + 1);
  check_numbers (report, &self->skipped);
  self->at = behind;
  return 1;
}

static int read_string (weft_batch_reader_t *self, weft_cursor_t *c, uint32_t fields)
{
  const uint8_t *text;
  uint32_t size;
  if (fields < 2 || weft_cursor_text (c, &text, &size) < 0 || size > UINT16_MAX ||
      self->strings == WEFT_BATCH_STRINGS_MAX || skip_surplus (c, fields - 2, &self->skipped) < 0)
    return WEFT_E_MALFORMED;
  self->string[self->strings].text = (const char *) text;
  self->string[self->strings].size = size;
  self->strings++;
  return 0;
}

/* What stands behind the fields that all kinds have. */
static int read_opaque (weft_batch_reader_t *self, weft_cursor_t *c, uint32_t fields, weft_report_t *report)
{
  uint64_t calls;
  memset (&report->opaque, 0, sizeof report->opaque);
  if (fields < OPAQUE_FIELDS || weft_cursor_uint (c, UINT32_MAX, &calls) < 0 ||
      weft_cursor_uint (c, UINT64_MAX, &report->opaque.bytes_out) < 0 ||
      weft_cursor_uint (c, UINT64_MAX, &report->opaque.bytes_in) < 0 ||
      weft_cursor_uint (c, UINT64_MAX, &report->opaque.wait_ns) < 0)
    return WEFT_E_MALFORMED;
  report->opaque.calls = (uint32_t) calls;
  return skip_surplus (c, fields - OPAQUE_FIELDS, &self->skipped);
}

/* The fields after the kind, in any legal encoding. */
static int read_fields (weft_batch_reader_t *self, weft_cursor_t *c, uint32_t fields, weft_report_t *report)
{
  uint64_t flags, reason, error, status, instruction, tid, name;
  if (fields < REPORT_FIELDS || weft_cursor_uint (c, UINT32_MAX, &flags) < 0 ||
      weft_cursor_uint (c, UINT8_MAX, &reason) < 0 || weft_cursor_uint (c, UINT8_MAX, &error) < 0 ||
      weft_cursor_uint (c, UINT16_MAX, &status) < 0 || weft_cursor_uint (c, UINT32_MAX, &instruction) < 0 ||
      weft_cursor_uint (c, UINT32_MAX, &tid) < 0 || take_bin16 (c, report->task) < 0 ||
      weft_cursor_uint (c, UINT64_MAX, &report->request) < 0 ||
      weft_cursor_uint (c, UINT64_MAX, &report->subtask) < 0 ||
      weft_cursor_uint (c, UINT64_MAX, &report->start_ns) < 0 ||
      weft_cursor_uint (c, UINT64_MAX, &report->end_ns) < 0)
    return WEFT_E_MALFORMED;
  report->cpu_ns = WEFT_NS_NONE;
  if (c->at < c->end && *c->at == 0xc0)
    c->at++;
  else if (weft_cursor_uint (c, UINT64_MAX, &report->cpu_ns) < 0)
    return WEFT_E_MALFORMED;
  if (take_address (c, &report->local) < 0 || take_address (c, &report->peer) < 0 ||
      weft_cursor_uint (c, UINT32_MAX, &name) < 0 || name_report (self, (uint32_t) name, report) < 0)
    return WEFT_E_MALFORMED;
  report->flags = (uint32_t) flags;
  report->reason = (uint8_t) reason;
  report->error = (uint8_t) error;
  report->status = (uint16_t) status;
  report->instruction = (uint32_t) instruction;
  report->tid = (uint32_t) tid;
  report->protocol = 0;
  check_numbers (report, &self->skipped);
  return report->kind == WEFT_REPORT_OPAQUE ? read_opaque (self, c, fields, report)
                                            : skip_surplus (c, fields - REPORT_FIELDS, &self->skipped);
}

/* 1: a report; 0: a string, or a kind from a newer minor version, skipped. */
static int read_entry (weft_batch_reader_t *self, weft_report_t *report)
{
  weft_cursor_t c = {self->at, self->end};
  uint32_t fields;
  uint64_t kind;
  int result = 0;

  if (weft_cursor_array (&c, &fields) < 0 || fields < 1 || weft_cursor_uint (&c, UINT64_MAX, &kind) < 0)
    return WEFT_E_MALFORMED;
  if (kind == ENTRY_STRING)
    result = read_string (self, &c, fields);
  else if (kind <= WEFT_REPORT_OPAQUE) {
    report->kind = (uint8_t) kind;
    result = read_fields (self, &c, fields, report) < 0 ? WEFT_E_MALFORMED : 1;
  } else {
    c.at = self->at;
    result = weft_cursor_skip (&c);
    self->skipped++;
  }
  if (result >= 0)
    self->at = c.at;
  return result;
}

/* After the last entry: head fields of a newer minor version, then nothing. */
static int read_end (weft_batch_reader_t *self)
{
  weft_cursor_t c = {self->at, self->end};
  if (skip_surplus (&c, self->surplus, &self->skipped) < 0 || c.at != c.end)
    return WEFT_E_MALFORMED;
  self->at = c.at;
  self->surplus = 0;
  return 0;
}

int weft_batch_reader_next (weft_batch_reader_t *self, weft_report_t *ret_report)
{
  weft_report_t report;
  while (self->entries_left > 0) {
    int result = read_common (self, ret_report);
    if (result == 0)
      result = read_entry (self, &report);
    else if (result > 0) {
      self->entries_left--;
      return 1;
    }
    if (result < 0)
      return result;
    self->entries_left--;
    if (result > 0) {
      *ret_report = report;
      return 1;
    }
  }
  return read_end (self);
}
