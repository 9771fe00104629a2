/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: the executions themselves, dozens in a row of the table (store_db.h). */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"
#include "store_db.h"

void ctl_block_forget (ctl_store_t *self)
{
  self->seen.count = 0;
}

int ctl_block_flush (ctl_store_t *self)
{
  ctl_block_t *fill = &self->fill;
  if (!fill->count)
    return 0;
  size_t head = fill->count * sizeof (uint32_t), skip = CTL_BLOCK_TASKS * sizeof (uint32_t) - head;
  for (uint32_t i = 0; i < fill->count; i++) {
    uint32_t end = htole32 (fill->end[i]);
    memcpy (fill->bytes.data + skip + i * sizeof end, &end, sizeof end);
  }
  sqlite3_stmt *statement = self->statement[CTL_STATEMENT_ADD_BLOCK];
  sqlite3_bind_int64 (statement, 1, fill->first);
  sqlite3_bind_int64 (statement, 2, fill->count);
  sqlite3_bind_blob64 (statement, 3, fill->bytes.data + skip, fill->bytes.size - skip, SQLITE_STATIC);
  int rc = ctl_store_done (self, CTL_STATEMENT_ADD_BLOCK, sqlite3_step (statement));
  sqlite3_clear_bindings (statement);
  if (rc == 0)
    fill->count = 0;
  return rc;
}

/* The task behind the tail's last. */
int ctl_block_add (ctl_store_t *self, const ctl_execution_t *execution)
{
  ctl_block_t *fill = &self->fill;
  int rc = 0;
  if (fill->count == CTL_BLOCK_TASKS || (fill->count && fill->bytes.size >= CTL_BLOCK_BYTES_MAX))
    rc = ctl_block_flush (self);
  if (rc)
    return rc;
  if (fill->count == 0) {
    size_t head = CTL_BLOCK_TASKS * sizeof (uint32_t);
    if (fill->bytes.capacity < head) {
      free (fill->bytes.data);
      fill->bytes =
          (ctl_bytes_t){.data = malloc (2 * CTL_BLOCK_BYTES_MAX), .capacity = 2 * CTL_BLOCK_BYTES_MAX};
      if (!fill->bytes.data) {
        fill->bytes.capacity = 0;
        return WEFT_E_NOMEM;
      }
    }
    fill->bytes.size = head;
    fill->first = self->tail.first + self->tail.count;
  }
  rc = ctl_execution_append (execution, &fill->bytes);
  if (rc == 0)
    fill->end[fill->count++] = (uint32_t) (fill->bytes.size - CTL_BLOCK_TASKS * sizeof (uint32_t));
  return rc;
}

/* ---- reading ----------------------------------------------------------------- */

static int keep (ctl_block_t *seen, sqlite3_stmt *statement)
{
  uint32_t count = (uint32_t) sqlite3_column_int64 (statement, 1);
  const uint8_t *data = sqlite3_column_blob (statement, 2);
  size_t size = (size_t) sqlite3_column_bytes (statement, 2), head = count * sizeof (uint32_t);
  if (!data || !count || count > CTL_BLOCK_TASKS || size < head)
    return WEFT_E_MALFORMED;
  if (seen->bytes.capacity < size) {
    free (seen->bytes.data);
    seen->bytes = (ctl_bytes_t){.data = malloc (size), .capacity = size};
  }
  if (!seen->bytes.data) {
    seen->bytes.capacity = 0;
    return WEFT_E_NOMEM;
  }
  seen->bytes.size = size - head;
  memcpy (seen->bytes.data, data + head, size - head);
  for (uint32_t i = 0; i < count; i++) {
    memcpy (&seen->end[i], data + i * sizeof (uint32_t), sizeof (uint32_t));
    seen->end[i] = le32toh (seen->end[i]);
  }
  seen->first = sqlite3_column_int64 (statement, 0);
  seen->count = count;
  return 0;
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

static int from_block (ctl_store_t *self, int64_t number, ctl_execution_t **ret_execution)
{
  int rc = read_block (self, number);
  if (rc)
    return rc;
  const ctl_block_t *seen = &self->seen;
  uint32_t place = (uint32_t) (number - seen->first);
  uint32_t from = place ? seen->end[place - 1] : 0, to = seen->end[place];
  return from > to || to > seen->bytes.size
             ? WEFT_E_MALFORMED
             : ctl_execution_unpack (seen->bytes.data + from, to - from, ret_execution);
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
