/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: the executions themselves, dozens in a row of the table (store_db.h). */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"
#include "pack_old.h"
#include "store_db.h"

void ctl_block_forget (ctl_store_t *self)
{
  self->seen.count = 0;
}

int ctl_block_flush (ctl_store_t *self)
{
  uint32_t count = ctl_pack_count (self->fill);
  const void *data;
  size_t size;
  if (!count)
    return 0;
  int rc = ctl_pack_finish (self->fill, &data, &size);
  if (rc)
    return rc;
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_ADD_BLOCK];
  sqlite3_bind_int64 (statement, 1, self->fill_first);
  sqlite3_bind_int64 (statement, 2, count);
  sqlite3_bind_blob64 (statement, 3, data, size, SQLITE_STATIC);
  rc = ctl_store_done (self, CTL_STATEMENT_ADD_BLOCK, sqlite3_step (statement));
  sqlite3_clear_bindings (statement);
  if (rc == 0)
    ctl_pack_empty (self->fill);
  return rc;
}

/* The task behind the tail's last. */
int ctl_block_add (ctl_store_t *self, const ctl_execution_t *execution)
{
  int rc = ctl_pack_add (self->fill, execution);
  int is_full = rc == WEFT_E_FULL;
  if (rc == 0 && ctl_pack_size (self->fill) > CTL_BLOCK_BYTES_MAX && ctl_pack_count (self->fill) > 1) {
    ctl_pack_take_back (self->fill);
    is_full = 1;
  }
  if (is_full) {
    rc = ctl_block_flush (self);
    if (rc == 0)
      rc = ctl_pack_add (self->fill, execution);
  }
  if (rc == 0 && ctl_pack_count (self->fill) == 1)
    self->fill_first = self->tail.first + self->tail.count;
  return rc;
}

/* ---- reading ----------------------------------------------------------------- */

/* Whether a block of so many can be what a row holds. */
static int is_sound (const ctl_block_t *self)
{
  uint32_t packed = ctl_pack_count_of (self->bytes.data, self->bytes.size);
  return packed ? packed == self->count
                : self->count <= CTL_BLOCK_OLD_TASKS && self->bytes.size >= self->count * sizeof (uint32_t);
}

static int keep (ctl_block_t *seen, sqlite3_stmt *statement)
{
  const uint8_t *data = sqlite3_column_blob (statement, 2);
  size_t size = (size_t) sqlite3_column_bytes (statement, 2);
  if (!data)
    return WEFT_E_MALFORMED;
  if (seen->bytes.capacity < size) {
    free (seen->bytes.data);
    seen->bytes = (ctl_bytes_t){.data = malloc (size), .capacity = size};
  }
  if (!seen->bytes.data) {
    seen->bytes.capacity = 0;
    return WEFT_E_NOMEM;
  }
  seen->bytes.size = size;
  memcpy (seen->bytes.data, data, size);
  seen->first = sqlite3_column_int64 (statement, 0);
  seen->count = (uint32_t) sqlite3_column_int64 (statement, 1);
  if (is_sound (seen))
    return 0;
  seen->count = 0;
  return WEFT_E_MALFORMED;
}

static int holds (const ctl_block_t *self, int64_t number)
{
  return self->count && number >= self->first && number - self->first < self->count;
}

/* Into `seen`. WEFT_E_NOT_FOUND, WEFT_E_MALFORMED: what is left of it. */
static int read_block (ctl_store_t *self, int64_t number)
{
  if (holds (&self->seen, number))
    return 0;
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_BLOCK_OF];
  self->seen.count = 0;
  sqlite3_bind_int64 (statement, 1, number);
  int rc = sqlite3_step (statement);
  int status = rc == SQLITE_ROW    ? keep (&self->seen, statement)
               : rc == SQLITE_DONE ? WEFT_E_NOT_FOUND
                                   : ctl_store_fail (self, rc);
  sqlite3_reset (statement);
  return status || holds (&self->seen, number) ? status : WEFT_E_NOT_FOUND;
}

static size_t old_end (const ctl_block_t *self, uint32_t place)
{
  uint32_t end;
  memcpy (&end, self->bytes.data + place * sizeof end, sizeof end);
  return le32toh (end);
}

/* Of a row that schema 3 wrote. */
static int from_old (const ctl_block_t *self, uint32_t place, ctl_execution_t **ret_execution)
{
  size_t head = self->count * sizeof (uint32_t);
  size_t from = place ? old_end (self, place - 1) : 0, to = old_end (self, place);
  return from > to || to > self->bytes.size - head
             ? WEFT_E_MALFORMED
             : ctl_pack_old_read (self->bytes.data + head + from, to - from, ret_execution);
}

static int from_block (ctl_store_t *self, int64_t number, ctl_execution_t **ret_execution)
{
  int rc = read_block (self, number);
  if (rc)
    return rc;
  const ctl_block_t *seen = &self->seen;
  uint32_t place = (uint32_t) (number - seen->first);
  return ctl_pack_count_of (seen->bytes.data, seen->bytes.size)
             ? ctl_pack_read (seen->bytes.data, seen->bytes.size, place, ret_execution)
             : from_old (seen, place, ret_execution);
}

static int from_late (ctl_store_t *self, int64_t number, ctl_execution_t **ret_execution)
{
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_GET_LATE];
  sqlite3_bind_int64 (statement, 1, number);
  int rc = sqlite3_step (statement);
  const void *data = rc == SQLITE_ROW ? sqlite3_column_blob (statement, 0) : NULL;
  int size = rc == SQLITE_ROW ? sqlite3_column_bytes (statement, 0) : 0;
  int status = data                ? ctl_execution_unpack (data, (size_t) size, ret_execution)
               : rc == SQLITE_DONE ? WEFT_E_NOT_FOUND
               : rc == SQLITE_ROW  ? WEFT_E_MALFORMED
                                   : ctl_store_fail (self, rc);
  sqlite3_reset (statement);
  return status;
}

int ctl_store_load (ctl_store_t *self, int64_t number, int late, ctl_execution_t **ret_execution)
{
  int rc = ctl_block_flush (self);
  if (rc)
    return rc;
  return late ? from_late (self, number, ret_execution) : from_block (self, number, ret_execution);
}
