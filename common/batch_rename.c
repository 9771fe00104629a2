/* SPDX-License-Identifier: Apache-2.0 */
#include "batch_rename.h"

#include <string.h>

#include "batch_layout.h"
#include "cursor.h"
#include "status.h"
#include "wire.h"

#define AT_INSTANCE 6u /* bytes after their tags, in the head */
#define AT_START_ID 24u
#define AT_BOOT     42u
#define AT_NUMBER   59u

/* ---- mapping ----------------------------------------------------------- */

/* SplitMix64's finalizer: one to one, every bit depends on every other. */
static uint64_t mix (uint64_t x)
{
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

weft_rename_key_t weft_rename_key (uint64_t seed, uint64_t purpose, uint64_t repeat)
{
  uint64_t word = mix (seed + 0x9e3779b97f4a7c15ull) ^ mix (purpose + 0xd1b54a32d192ed03ull);
  word = mix (word ^ (repeat * 0x9e3779b97f4a7c15ull + 1));
  return (weft_rename_key_t){word, mix (word + 0x9e3779b97f4a7c15ull)};
}

static uint64_t permute (const weft_rename_key_t *key, uint64_t x)
{
  return mix (mix (x ^ key->a) + key->b);
}

/* What would become 0 goes round once more: the mapping of the rest stays one to one. */
uint64_t weft_rename_id (const weft_rename_key_t *key, uint64_t id)
{
  if (id == 0)
    return 0;
  uint64_t to = permute (key, id);
  while (__builtin_expect (to == 0, 0))
    to = permute (key, to);
  return to;
}

static void permute_16 (const weft_rename_key_t *key, uint64_t half[2])
{
  half[0] ^= permute (key, half[1]);
  half[1] ^= permute (key, half[0] + key->b);
  half[0] ^= permute (key, half[1] + key->a);
}

void weft_rename_16 (const weft_rename_key_t *key, const uint8_t in[16], uint8_t out[16])
{
  uint64_t half[2];
  memcpy (half, in, sizeof half);
  if ((half[0] | half[1]) != 0) {
    do
      permute_16 (key, half);
    while (__builtin_expect ((half[0] | half[1]) == 0, 0));
  }
  memcpy (out, half, sizeof half);
}

/* ---- walking ------------------------------------------------------------ */

static int is_head (const uint8_t *at, size_t size)
{
  return size >= HEAD_SIZE && at[0] == (0x90 | HEAD_FIELDS) && at[1] == WEFT_WIRE_MAJOR && at[2] < 0x80 &&
         at[3] == WEFT_UP_BATCH && at[AT_INSTANCE - 2] == 0xc4 && at[AT_INSTANCE - 1] == 16 &&
         at[AT_START_ID - 2] == 0xc4 && at[AT_START_ID - 1] == 16 && at[AT_BOOT - 2] == 0xc4 &&
         at[AT_BOOT - 1] == 16 && at[AT_NUMBER - 1] == 0xcf && at[HEAD_COUNT - 1] == 0xce &&
         at[HEAD_LOSSES - 1] == (0x90 | WEFT_LOSS_WIRE_COUNT) && at[HEAD_ENTRY - 1] == 0xdd;
}

/* Behind a report in the common form; NULL: it is in none. */
static uint8_t *report_end (uint8_t *at, const uint8_t *end)
{
  if ((size_t) (end - at) < REPORT_SIZE - 2 * ADDRESS_SIZE - 8 || at[0] != 0xdc || at[1] != 0 ||
      at[2] != (at[AT_KIND] == WEFT_REPORT_OPAQUE ? OPAQUE_FIELDS : REPORT_FIELDS) ||
      at[AT_TASK - 2] != 0xc4 || at[AT_TASK - 1] != 16 || at[AT_REQUEST - 1] != 0xcf ||
      at[AT_SUBTASK - 1] != 0xcf || at[AT_START - 1] != 0xcf || at[AT_END - 1] != 0xcf)
    return NULL;
  weft_cursor_t c = {at + AT_CPU, end};
  for (uint32_t n = 12; n < at[2]; n++) /* cpu, local, peer, name; of an opaque one four more */
    if (weft_cursor_skip (&c) < 0)
      return NULL;
  return at + (c.at - at);
}

/* Behind the entry; *ret_report: it is a report. NULL: it cannot be renamed. */
static uint8_t *entry_end (uint8_t *at, const uint8_t *end, int *ret_report)
{
  weft_cursor_t c = {at, end};
  uint32_t fields;
  uint64_t kind;
  *ret_report = 0;
  if (weft_cursor_array (&c, &fields) < 0 || fields < 1 || weft_cursor_uint (&c, UINT64_MAX, &kind) < 0)
    return NULL;
  if (kind >= WEFT_REPORT_CAPTURE && kind <= WEFT_REPORT_OPAQUE) {
    *ret_report = 1;
    return report_end (at, end);
  }
  c.at = at;
  return weft_cursor_skip (&c) < 0 ? NULL : at + (c.at - at);
}

static void store_u64 (uint8_t *at, uint64_t value)
{
  value = __builtin_bswap64 (value);
  memcpy (at, &value, sizeof value);
}

static void rename_report (uint8_t *at, const weft_rename_key_t *ids)
{
  weft_rename_16 (ids, at + AT_TASK, at + AT_TASK);
  store_u64 (at + AT_REQUEST, weft_rename_id (ids, weft_load_u64 (at + AT_REQUEST)));
  store_u64 (at + AT_SUBTASK, weft_rename_id (ids, weft_load_u64 (at + AT_SUBTASK)));
}

/* Twice over the entries, the first time only looking (Y2). */
static int walk (uint8_t *frame, size_t size, const weft_rename_key_t *ids)
{
  uint8_t *at = frame + HEAD_SIZE, *end = frame + size;
  for (uint32_t left = weft_load_u32 (frame + HEAD_ENTRY); left; left--) {
    int is_report;
    uint8_t *next = entry_end (at, end, &is_report);
    if (!next)
      return WEFT_E_UNSUPPORTED;
    if (is_report && ids)
      rename_report (at, ids);
    at = next;
  }
  return 0;
}

int weft_batch_rename (void *frame, size_t size, const weft_rename_t *to)
{
  uint8_t *at = frame;
  if (!is_head (at, size))
    return WEFT_E_UNSUPPORTED;
  if (to->ids) {
    int rc = walk (at, size, NULL);
    if (rc < 0)
      return rc;
    walk (at, size, to->ids);
  }
  memcpy (at + AT_INSTANCE, to->instance, WEFT_UUID_SIZE);
  memcpy (at + AT_START_ID, to->start, WEFT_UUID_SIZE);
  memcpy (at + AT_BOOT, to->boot, WEFT_UUID_SIZE);
  store_u64 (at + AT_NUMBER, to->number);
  return 0;
}
