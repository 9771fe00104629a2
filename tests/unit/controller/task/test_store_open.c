/* SPDX-License-Identifier: Apache-2.0 */
/* A store of a schema before is carried over; a file that was cut off or damaged is opened with what is
 * whole, or refused in one line. */
#include "stored.h"

#include <string.h>

#include "pack_v1.h"

/* As schema 1 wrote it. */
static const char schema_1[] =
    "CREATE TABLE task (id BLOB PRIMARY KEY, instruction INTEGER NOT NULL, kind INTEGER NOT NULL, "
    "name TEXT NOT NULL, start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, complete INTEGER NOT NULL, "
    "errors INTEGER NOT NULL, data BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE INDEX task_start ON task (start_ns); CREATE INDEX task_instruction ON task (instruction, "
    "start_ns);"
    "PRAGMA user_version = 1;";

/* As schema 2 did; what summaries held is not read. */
static const char schema_2[] =
    "CREATE TABLE task (n INTEGER PRIMARY KEY, id BLOB NOT NULL, instruction INTEGER NOT NULL, "
    "kind INTEGER NOT NULL, name TEXT NOT NULL, start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, "
    "complete INTEGER NOT NULL, errors INTEGER NOT NULL, data BLOB NOT NULL);"
    "CREATE UNIQUE INDEX task_id ON task (id);"
    "CREATE TABLE burst (first INTEGER PRIMARY KEY, count INTEGER NOT NULL, from_ns INTEGER NOT NULL, "
    "until_ns INTEGER NOT NULL, written_ns INTEGER NOT NULL, sums BLOB NOT NULL);"
    "CREATE TABLE name (n INTEGER PRIMARY KEY, text TEXT NOT NULL);"
    "CREATE TABLE fact (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO burst VALUES (1, 40, 0, 1, 12345, x'00');"
    "INSERT INTO name VALUES (2, 'x');"
    "INSERT INTO fact VALUES ('instruction', 41);"
    "PRAGMA user_version = 2;";

static void write_schema (stored_t *self, const char *schema, const char *insert_sql)
{
  sqlite3 *db;
  sqlite3_stmt *insert;
  assert_int_equal (sqlite3_open (self->path, &db), SQLITE_OK);
  assert_int_equal (sqlite3_exec (db, schema, NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal (sqlite3_prepare_v2 (db, insert_sql, -1, &insert, NULL), SQLITE_OK);
  for (uint32_t i = 0; i < self->count; i++) {
    size_t size;
    void *data = v1_pack (self->execution[i], 0, &size);
    sqlite3_bind_blob (insert, 1, self->execution[i]->task, 16, SQLITE_STATIC);
    sqlite3_bind_int64 (insert, 2, (int64_t) self->execution[i]->start_ns);
    sqlite3_bind_blob (insert, 3, data, i == 3 ? 5 : (int) size, SQLITE_STATIC); /* one is damaged */
    assert_int_equal (sqlite3_step (insert), SQLITE_DONE);
    sqlite3_reset (insert);
    free (data);
  }
  sqlite3_finalize (insert);
  sqlite3_close (db);
}

/* What schema 3 had in the place of what is there: one block, and of task 5 more that came late. */
static void write_schema_3 (stored_t *self)
{
  sqlite3 *db;
  sqlite3_stmt *update;
  uint8_t *block = NULL;
  uint32_t ends[STORED_TREES] = {0};
  size_t used = 0;
  assert_int_equal (stored_open (self), 0);
  stored_put_all (self);
  assert_int_equal (ctl_store_put (self->store, self->execution[5]), 0);
  ctl_store_destroy (&self->store);
  for (uint32_t i = 0; i < self->count; i++) {
    size_t size;
    void *data = v1_pack (self->execution[i], 0, &size);
    block = realloc (block, used + size);
    assert_non_null (block);
    memcpy (block + used, data, size);
    used += size;
    ends[i] = htole32 ((uint32_t) used);
    free (data);
  }
  uint8_t *tasks = malloc (sizeof ends + used);
  if (!block || !tasks)
    abort ();
  memcpy (tasks, ends, sizeof ends);
  memcpy (tasks + sizeof ends, block, used);
  assert_int_equal (sqlite3_open (self->path, &db), SQLITE_OK);
  assert_int_equal (
      sqlite3_exec (db, "DELETE FROM block WHERE first > 1; PRAGMA user_version = 3", NULL, NULL, NULL),
      SQLITE_OK);
  assert_int_equal (sqlite3_prepare_v2 (db, "UPDATE block SET count = ?1, tasks = ?2", -1, &update, NULL),
                    SQLITE_OK);
  sqlite3_bind_int64 (update, 1, STORED_TREES);
  sqlite3_bind_blob64 (update, 2, tasks, sizeof ends + used, SQLITE_STATIC);
  assert_int_equal (sqlite3_step (update), SQLITE_DONE);
  sqlite3_finalize (update);
  size_t from = le32toh (ends[4]), to = le32toh (ends[5]);
  assert_int_equal (sqlite3_prepare_v2 (db, "UPDATE late SET data = ?1", -1, &update, NULL), SQLITE_OK);
  sqlite3_bind_blob64 (update, 1, block + from, to - from, SQLITE_STATIC);
  assert_int_equal (sqlite3_step (update), SQLITE_DONE);
  assert_int_equal (sqlite3_changes (db), 1);
  sqlite3_finalize (update);
  sqlite3_close (db);
  free (tasks);
  free (block);
}

/* The blob of block 1 as digits, to be freed. */
static char *first_block (const stored_t *self)
{
  sqlite3 *db;
  sqlite3_stmt *select;
  assert_int_equal (sqlite3_open (self->path, &db), SQLITE_OK);
  assert_int_equal (
      sqlite3_prepare_v2 (
          db, "SELECT hex (tasks) || (SELECT hex (data) FROM late WHERE n = 6) FROM block WHERE first = 1",
          -1, &select, NULL),
      SQLITE_OK);
  assert_int_equal (sqlite3_step (select), SQLITE_ROW);
  char *digits = strdup ((const char *) sqlite3_column_text (select, 0));
  sqlite3_finalize (select);
  sqlite3_close (db);
  return digits;
}

/* Rows stay as they are and are read; new ones, late ones and merged ones stand beside them. */
static void test_schema_3_is_gone_on_with (void **state)
{
  stored_t *self = *state;
  write_schema_3 (self);
  char *before = first_block (self);
  for (int again = 0; again < 2; again++) {
    assert_int_equal (stored_open (self), 0);
    for (uint32_t i = 0; i < self->count; i++) {
      char hex[33] = "";
      ctl_execution_t *found = NULL, *packed = NULL;
      uint32_t count = 0;
      size_t size;
      void *data = v1_pack (self->execution[i], 0, &size);
      weft_hex_put (hex, self->execution[i]->task, 16);
      assert_int_equal (ctl_store_find (self->store, hex, &found, &count), 0);
      assert_int_equal (ctl_execution_unpack (data, size, &packed), 0);
      any_same (packed, found);
      ctl_execution_destroy (&found);
      ctl_execution_destroy (&packed);
      free (data);
    }
    assert_int_equal (stored_number (self), STORED_TREES);
    ctl_store_destroy (&self->store);
  }
  char *after = first_block (self);
  assert_string_equal (before, after);
  assert_int_equal (stored_open (self), 0);
  ctl_execution_t *one = self->execution[0];
  assert_int_equal (ctl_store_put (self->store, one), 0); /* once more: a late row of now */
  memset (one->task, 0x77, sizeof one->task);
  assert_int_equal (ctl_store_put (self->store, one), 0); /* a new block */
  assert_int_equal (ctl_store_commit (self->store), 0);
  assert_int_equal (stored_number (self), STORED_TREES + 1);
  ctl_store_destroy (&self->store);
  assert_int_equal (stored_open (self), 0);
  assert_int_equal (stored_number (self), STORED_TREES + 1);
  free (before);
  free (after);
}

static void carried_over (stored_t *self)
{
  assert_int_equal (stored_open (self), 0);
  assert_int_equal (stored_number (self), STORED_TREES - 1); /* S4: what cannot be read is left behind */
  assert_int_equal (ctl_store_last_instruction (self->store), 41);
  for (uint32_t i = 0; i < self->count; i++) {
    char hex[33] = "";
    ctl_execution_t *found = NULL;
    uint32_t count = 0;
    weft_hex_put (hex, self->execution[i]->task, 16);
    assert_int_equal (ctl_store_find (self->store, hex, &found, &count), i == 3 ? WEFT_E_NOT_FOUND : 0);
    if (found)
      assert_int_equal (found->count, self->execution[i]->count);
    ctl_execution_destroy (&found);
  }
  ctl_store_destroy (&self->store);
  assert_int_equal (stored_open (self), 0); /* once */
  assert_int_equal (stored_number (self), STORED_TREES - 1);
  stored_put_all (self);
  assert_int_equal (stored_number (self), STORED_TREES);
  assert_int_equal (ctl_store_last_instruction (self->store), 41);
}

static void test_schema_1_is_carried_over (void **state)
{
  stored_t *self = *state;
  write_schema (self, schema_1, "INSERT INTO task VALUES (?1, 7, 0, 'x', ?2, 5, 1, 0, ?3)");
  stored_sql (self->path, "UPDATE task SET instruction = 41 WHERE id = (SELECT id FROM task LIMIT 1)");
  carried_over (self);
}

static void test_schema_2_is_carried_over (void **state)
{
  stored_t *self = *state;
  write_schema (self, schema_2, "INSERT INTO task VALUES (NULL, ?1, 7, 0, 'x', ?2, 5, 1, 0, ?3)");
  assert_int_equal (stored_open (self), 0);
  ctl_store_retain (self->store, 0, 1000);
  assert_int_equal (ctl_store_tidy (self->store, 12345 + 999 * WEFT_NS_PER_MS), 0);
  assert_int_equal (stored_number (self), STORED_TREES - 1); /* when it was written came along */
  ctl_store_destroy (&self->store);
  carried_over (self);
}

static void count_calls (uint64_t done, uint64_t of, void *arg)
{
  uint64_t *calls = arg;
  assert_true (of == 2500 && done == ++*calls * 1000);
}

static void test_a_long_carrying_over_says_how_far_it_is (void **state)
{
  stored_t *self = *state;
  uint64_t calls = 0;
  write_schema (self, schema_2, "INSERT INTO task VALUES (NULL, ?1, 7, 0, 'x', ?2, 5, 1, 0, ?3)");
  stored_sql (self->path,
              "DELETE FROM task WHERE n > 1; WITH RECURSIVE i (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM "
              "i WHERE n < 2500) INSERT INTO task SELECT i.n, randomblob (16), 7, 0, 'x', 1, 5, 1, 0, "
              "data FROM i, task WHERE task.n = 1");
  assert_int_equal (
      ctl_store_open (self->path, count_calls, &calls, &self->store, self->why, sizeof self->why), 0);
  assert_true (calls == 2);
  assert_int_equal (stored_number (self), 1); /* all are the same task */
}

static void read_file (const char *from, uint8_t **ret_data, size_t *ret_size)
{
  FILE *file = fopen (from, "re");
  assert_non_null (file);
  fseek (file, 0, SEEK_END);
  *ret_size = (size_t) ftell (file);
  rewind (file);
  *ret_data = malloc (*ret_size + 1);
  assert_int_equal (fread (*ret_data, 1, *ret_size, file), *ret_size);
  fclose (file);
}

static void write_back (const char *path, const uint8_t *data, size_t size)
{
  FILE *file = fopen (path, "we");
  assert_non_null (file);
  assert_int_equal (fwrite (data, 1, size, file), size);
  fclose (file);
}

/* Whatever is left of it: no crash, no more than there was, one line or an answer. */
static void use (stored_t *self, uint32_t *opened)
{
  uint32_t count = 0;
  self->why[0] = 0;
  int rc = stored_open (self);
  if (rc) {
    assert_true (rc < 0 && self->why[0] && !strchr (self->why, '\n'));
    return;
  }
  ++*opened;
  rc = ctl_store_each (self->store, 0, 0, UINT64_MAX, stored_count_one, &count);
  assert_true (rc <= 0 && count <= STORED_TREES);
  rc = ctl_store_put (self->store, self->execution[0]);
  assert_true (rc <= 0);
  assert_true (ctl_store_commit (self->store) <= 0);
  ctl_store_destroy (&self->store);
}

static void test_torn_and_damaged_files (void **state)
{
  stored_t *self = *state;
  uint8_t *data;
  size_t size;
  uint32_t opened = 0, cuts = 0;
  const char *given = getenv ("WEFT_SEED");
  uint64_t seed = given ? strtoull (given, NULL, 10) : weft_mono_ns ();
  printf ("WEFT_SEED=%llu\n", (unsigned long long) seed);
  weft_ids_t random = {{seed, seed + 1, seed + 2, 7}};
  assert_int_equal (stored_open (self), 0);
  stored_put_all (self);
  ctl_store_destroy (&self->store); /* the log is carried over */
  read_file (self->path, &data, &size);
  assert_true (size > 0);
  if (size == 0) /* for who does not know that it ends here */
    return;
  for (size_t cut = 0; cut < size; cut += 1 + weft_ids_next (&random) % 3000, cuts++) {
    stored_unlink (self);
    write_back (self->path, data, cut);
    use (self, &opened);
  }
  for (uint32_t n = 0; n < 150; n++) {
    uint8_t *harmed = malloc (size + 1);
    memcpy (harmed, data, size);
    for (uint32_t k = 0; k < 1 + n % 20; k++)
      harmed[weft_ids_next (&random) % size] ^= (uint8_t) (1u << weft_ids_next (&random) % 8);
    stored_unlink (self);
    write_back (self->path, harmed, size);
    use (self, &opened);
    free (harmed);
  }
  free (data);
  assert_true (cuts > 20 && opened > 0);
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, stored_setup, stored_teardown)
  const struct CMUnitTest tests[] = {
      TEST (test_schema_1_is_carried_over), TEST (test_schema_2_is_carried_over),
      TEST (test_schema_3_is_gone_on_with), TEST (test_a_long_carrying_over_says_how_far_it_is),
      TEST (test_torn_and_damaged_files),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
