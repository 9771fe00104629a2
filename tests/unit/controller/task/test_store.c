/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../../common/status.h"
#include "../../../../controller/task/store.h"
#include "../../../../controller/task/text.h"
#include "forest.h"

#define TREES 40u

typedef struct {
  char dir[64], path[96];
  forest_t forest;
  ctl_instances_t *instances;
  ctl_execution_t *execution[TREES];
  uint32_t count;
  ctl_store_t *store;
  char why[256];
} bench_t;

static int keep (ctl_execution_t **execution_p, void *arg)
{
  bench_t *bench = arg;
  bench->execution[bench->count++] = *execution_p;
  *execution_p = NULL;
  return 0;
}

static int open_store (bench_t *bench)
{
  return ctl_store_open (bench->path, NULL, NULL, &bench->store, bench->why, sizeof bench->why);
}

static int setup (void **state)
{
  bench_t *bench = calloc (1, sizeof *bench);
  snprintf (bench->dir, sizeof bench->dir, "/tmp/weft-store-XXXXXX");
  assert_non_null (mkdtemp (bench->dir));
  snprintf (bench->path, sizeof bench->path, "%s/store", bench->dir);
  bench->instances = ctl_instances_new ();
  forest_hello (bench->instances);
  forest_new (&bench->forest, 77, TREES);
  ctl_correlate_t *correlate = ctl_correlate_new (bench->instances, 0);
  forest_send (&bench->forest, correlate, 100);
  assert_int_equal (ctl_correlate_settle (correlate, 0, 1, keep, bench), 0);
  ctl_correlate_destroy (&correlate);
  assert_int_equal (open_store (bench), 0);
  *state = bench;
  return 0;
}

static int teardown (void **state)
{
  bench_t *bench = *state;
  char path[160];
  static const char *const end[] = {"", "-wal", "-shm"};
  ctl_store_destroy (&bench->store);
  for (int i = 0; i < 3; i++) {
    snprintf (path, sizeof path, "%s%s", bench->path, end[i]);
    unlink (path);
  }
  rmdir (bench->dir);
  for (uint32_t i = 0; i < bench->count; i++)
    ctl_execution_destroy (&bench->execution[i]);
  forest_destroy (&bench->forest);
  ctl_instances_destroy (&bench->instances);
  free (bench);
  return 0;
}

typedef struct {
  uint32_t count;
  uint64_t last_ns;
} seen_t;

static int see (ctl_execution_t **execution_p, void *arg)
{
  seen_t *seen = arg;
  assert_true ((*execution_p)->start_ns <= seen->last_ns); /* newest first */
  seen->last_ns = (*execution_p)->start_ns;
  seen->count++;
  return 0;
}

static uint32_t count_in (bench_t *bench, uint32_t instruction, uint64_t from_ns, uint64_t to_ns)
{
  seen_t seen = {.last_ns = UINT64_MAX};
  assert_int_equal (ctl_store_each (bench->store, instruction, from_ns, to_ns, see, &seen), 0);
  return seen.count;
}

static void put_all (bench_t *bench)
{
  for (uint32_t i = 0; i < bench->count; i++)
    assert_int_equal (ctl_store_put (bench->store, bench->execution[i]), 0);
  assert_int_equal (ctl_store_commit (bench->store), 0);
}

static void test_what_was_put_is_there_after_a_restart (void **state)
{
  bench_t *bench = *state;
  put_all (bench);
  ctl_store_destroy (&bench->store);
  struct stat st;
  assert_int_equal (stat (bench->path, &st), 0);
  assert_int_equal (st.st_mode & 0777, 0600);
  assert_int_equal (open_store (bench), 0);
  assert_int_equal (count_in (bench, 0, 0, UINT64_MAX), TREES);
  assert_int_equal (count_in (bench, 7, 0, UINT64_MAX), TREES);
  assert_int_equal (count_in (bench, 8, 0, UINT64_MAX), 0);
  uint64_t start_ns = bench->execution[3]->start_ns;
  assert_int_equal (count_in (bench, 7, start_ns, start_ns), 1);
  assert_int_equal (ctl_store_last_instruction (bench->store), 7);

  char hex[33] = "";
  ctl_execution_t *found = NULL;
  uint32_t count = 0;
  weft_hex_put (hex, bench->execution[3]->task, 16);
  assert_int_equal (ctl_store_find (bench->store, hex, &found, &count), 0);
  assert_int_equal (found->count, bench->execution[3]->count);
  assert_int_equal (found->complete, 1);
  ctl_execution_destroy (&found);
  hex[10] = 0;
  assert_int_equal (ctl_store_find (bench->store, hex, &found, &count), 0);
  ctl_execution_destroy (&found);
  assert_int_equal (ctl_store_find (bench->store, "00000000", &found, &count), WEFT_E_NOT_FOUND);
  assert_int_equal (ctl_store_find (bench->store, "abc", &found, &count), WEFT_E_RANGE);
  assert_int_equal (ctl_store_find (bench->store, "' OR 1=1", &found, &count), WEFT_E_MALFORMED);
}

static void test_several_with_one_prefix (void **state)
{
  bench_t *bench = *state;
  ctl_execution_t *found = NULL;
  uint32_t count = 0;
  for (uint32_t i = 0; i < 3; i++)
    memcpy (bench->execution[i]->task, "\xab\xcd\xef\x01", 4);
  put_all (bench);
  assert_int_equal (ctl_store_find (bench->store, "abcd", &found, &count), WEFT_E_BUSY);
  assert_int_equal (count, 3);
  assert_null (found);
}

/* S3: what settled twice is one row, with the subtasks of both. */
static void test_a_late_part_is_merged (void **state)
{
  bench_t *bench = *state;
  ctl_execution_t *whole = bench->execution[0], *found = NULL;
  uint32_t count = 0, all = whole->count;
  char hex[33] = "";
  while (all < 3)
    whole = bench->execution[++count], all = whole->count;
  whole->count = 2; /* the first two in tree order, then all */
  assert_int_equal (ctl_store_put (bench->store, whole), 0);
  assert_int_equal (ctl_store_commit (bench->store), 0);
  whole->count = all;
  assert_int_equal (ctl_store_put (bench->store, whole), 0);
  assert_int_equal (ctl_store_commit (bench->store), 0);
  weft_hex_put (hex, whole->task, 16);
  assert_int_equal (ctl_store_find (bench->store, hex, &found, &count), 0);
  assert_int_equal (found->count, all);
  assert_int_equal (found->complete, 1);
  ctl_execution_destroy (&found);
  assert_int_equal (count_in (bench, 0, 0, UINT64_MAX), 1);
}

static void run_sql (const char *path, const char *sql)
{
  sqlite3 *db;
  assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
  assert_int_equal (sqlite3_exec (db, sql, NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close (db);
}

static void test_a_newer_schema_is_refused (void **state)
{
  bench_t *bench = *state;
  put_all (bench);
  ctl_store_destroy (&bench->store);
  run_sql (bench->path, "PRAGMA user_version = 7");
  assert_int_equal (open_store (bench), WEFT_E_VERSION);
  char wanted[256];
  snprintf (wanted, sizeof wanted,
            "cannot open store %s: it was written by a newer weft (schema 7, this one knows 4); "
            "use that version or choose another --store",
            bench->path);
  assert_string_equal (bench->why, wanted);
  assert_null (bench->store);
  run_sql (bench->path, "PRAGMA user_version = 4"); /* nothing was written: S2 */
  assert_int_equal (open_store (bench), 0);
  assert_int_equal (count_in (bench, 0, 0, UINT64_MAX), TREES);
}

static void write_file (const char *path, const char *text)
{
  FILE *file = fopen (path, "we");
  assert_non_null (file);
  fputs (text, file);
  fclose (file);
}

static void test_what_is_no_store_is_refused (void **state)
{
  bench_t *bench = *state;
  ctl_store_t *store = NULL;
  char path[128];
  ctl_store_destroy (&bench->store);
  unlink (bench->path);
  write_file (bench->path, "this is no database, and long enough to be taken for the head of one: "
                           "................................................................");
  assert_int_equal (open_store (bench), WEFT_E_MALFORMED);
  assert_non_null (strstr (bench->why, "it is no database"));
  unlink (bench->path);
  run_sql (bench->path, "CREATE TABLE other (x)");
  assert_int_equal (open_store (bench), WEFT_E_MALFORMED);
  assert_non_null (strstr (bench->why, "another program"));
  snprintf (path, sizeof path, "%s/none/store", bench->dir);
  assert_int_equal (ctl_store_open (path, NULL, NULL, &store, bench->why, sizeof bench->why), WEFT_E_IO);
  assert_non_null (strstr (bench->why, "No such file or directory"));
  assert_int_equal (ctl_store_open (bench->dir, NULL, NULL, &store, bench->why, sizeof bench->why),
                    WEFT_E_IO);
  assert_null (store);
}

/* A disk that is full at every possible place, made by a file size limit: the put
 * or the commit says so, what was committed before stays, and with room it goes on. */
static void test_a_full_disk_loses_nothing_committed (void **state)
{
  bench_t *bench = *state;
  struct rlimit before, limit;
  uint32_t failures = 0, committed = 0;
  getrlimit (RLIMIT_FSIZE, &before);
  signal (SIGXFSZ, SIG_IGN);
  assert_int_equal (ctl_store_put (bench->store, bench->execution[0]), 0);
  assert_int_equal (ctl_store_commit (bench->store), 0);
  committed = 1;
  for (rlim_t room = 4096; room < 400000; room += 8192) {
    limit = before;
    limit.rlim_cur = room;
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &limit), 0);
    int rc = 0;
    for (uint32_t i = 1; i < bench->count && rc == 0; i++)
      rc = ctl_store_put (bench->store, bench->execution[i]);
    if (rc == 0)
      rc = ctl_store_commit (bench->store);
    assert_int_equal (setrlimit (RLIMIT_FSIZE, &before), 0);
    if (rc == 0) {
      committed = bench->count;
      break;
    }
    failures++;
    assert_int_equal (rc, WEFT_E_FULL);
    assert_string_equal (ctl_store_why (bench->store), "disk full");
    assert_int_equal (count_in (bench, 0, 0, UINT64_MAX), 1);
  }
  assert_true (failures > 0);
  assert_int_equal (committed, TREES);
  ctl_store_destroy (&bench->store);
  assert_int_equal (open_store (bench), 0);
  assert_int_equal (count_in (bench, 0, 0, UINT64_MAX), TREES);
}

/* What was damaged on disk hides no other task, and is replaced when it comes again. */
static void test_a_damaged_task_hides_no_other (void **state)
{
  bench_t *bench = *state;
  put_all (bench);
  ctl_store_destroy (&bench->store);
  /* one byte, what follows in the first task: behind the head and where each ends */
  run_sql (bench->path, "UPDATE block SET tasks = substr (tasks, 1, 4 + 4 * count) || x'7f' || "
                        "substr (tasks, 6 + 4 * count) WHERE first = 1");
  assert_int_equal (open_store (bench), 0);
  assert_int_equal (count_in (bench, 0, 0, UINT64_MAX), TREES - 1);
  put_all (bench);
  assert_int_equal (count_in (bench, 0, 0, UINT64_MAX), TREES);
  ctl_store_destroy (&bench->store);
  assert_int_equal (open_store (bench), 0);
  assert_int_equal (count_in (bench, 0, 0, UINT64_MAX), TREES);
}

/* Two blocks, one of which is lost: every task of the other stays, and the lost ones can come again. */
static void test_a_lost_block_hides_no_other (void **state)
{
  bench_t *bench = *state;
  for (uint32_t i = 0; i < bench->count; i++) {
    assert_int_equal (ctl_store_put (bench->store, bench->execution[i]), 0);
    if (i == 24)
      assert_int_equal (ctl_store_commit (bench->store), 0);
  }
  assert_int_equal (ctl_store_commit (bench->store), 0);
  ctl_store_destroy (&bench->store);
  run_sql (bench->path, "UPDATE block SET tasks = x'00' WHERE first = 1");
  assert_int_equal (open_store (bench), 0);
  assert_int_equal (count_in (bench, 0, 0, UINT64_MAX), TREES - 25);
  put_all (bench);
  assert_int_equal (count_in (bench, 0, 0, UINT64_MAX), TREES);
}

/* A late part comes before its task's block is written, after it, after the burst's end, and after a restart. */
static void test_late_parts_at_any_time (void **state)
{
  bench_t *bench = *state;
  ctl_execution_t *whole = bench->execution[0], copy;
  char hex[33] = "";
  for (uint32_t i = 0; whole->count < 6; i++)
    whole = bench->execution[i];
  uint32_t all = whole->count;
  weft_hex_put (hex, whole->task, 16);
  for (uint32_t part = 1; part <= 5; part++) {
    ctl_execution_t *found = NULL;
    uint32_t count = 0;
    whole->count = part == 5 ? all : part;
    assert_int_equal (ctl_store_put (bench->store, whole), 0);
    if (part == 2)
      assert_int_equal (ctl_store_commit (bench->store), 0);
    for (uint64_t n = 0; part == 3 && n < 6000; n++) { /* more than a burst */
      copy = *bench->execution[bench->count - 1];
      memcpy (copy.task, &n, sizeof n);
      assert_int_equal (ctl_store_put (bench->store, &copy), 0);
    }
    if (part == 4) {
      ctl_store_destroy (&bench->store);
      assert_int_equal (open_store (bench), 0);
    }
    assert_int_equal (ctl_store_find (bench->store, hex, &found, &count), 0);
    assert_int_equal (found->count, whole->count);
    ctl_execution_destroy (&found);
  }
  whole->count = all;
  assert_int_equal (ctl_store_commit (bench->store), 0);
  assert_int_equal (ctl_store_count (bench->store, 0, UINT64_MAX), 6001);
}

/* More than a block of them, each found by its id, in the order of their start, before and after a restart. */
static void test_every_task_of_many_is_found (void **state)
{
  bench_t *bench = *state;
  ctl_execution_t copy = *bench->execution[0];
  uint64_t id[2] = {0, 0x55};
  for (uint64_t n = 0; n < 5000; n++) {
    id[0] = n * 0x9e3779b97f4a7c15u;
    memcpy (copy.task, id, sizeof id);
    assert_int_equal (ctl_store_put (bench->store, &copy), 0);
  }
  for (int again = 0; again < 2; again++) {
    for (uint64_t n = 0; n < 5000; n += 7) {
      char hex[33] = "";
      ctl_execution_t *found = NULL;
      uint32_t count = 0;
      id[0] = n * 0x9e3779b97f4a7c15u;
      weft_hex_put (hex, (const uint8_t *) id, 16);
      assert_int_equal (ctl_store_find (bench->store, hex, &found, &count), 0);
      assert_memory_equal (found->task, id, 16);
      ctl_execution_destroy (&found);
    }
    assert_int_equal (count_in (bench, 0, 0, UINT64_MAX), 5000);
    ctl_store_destroy (&bench->store);
    assert_int_equal (open_store (bench), 0);
  }
}

static int wants_none (const ctl_summary_t *summary, void *arg)
{
  assert_string_equal (summary->name, ((const char **) arg)[summary->task[0]]);
  assert_string_equal (summary->service, ((const char **) arg)[summary->task[0]]);
  return 0;
}

/* Interned texts may stand elsewhere after the commit, texts of an execution's own after the put; what
 * comes to stand where they stood is not taken for them. */
static void test_texts_are_known_by_place_no_longer_than_they_stay (void **state)
{
  bench_t *bench = *state;
  static const char *names[] = {"", "first", "second", "third", "fourth", "fifth", "sixth"};
  ctl_text_t own = {0};
  char at[16];
  for (uint8_t n = 1; n <= 6; n++) {
    ctl_subtask_t subtask = {.id = n, .service = at, .vm = at, .name = at, .start_ns = n, .end_ns = n};
    ctl_execution_t execution = {
        .task = {n}, .hosts = 1, .origin = "", .subtasks = &subtask, .count = 1, .text = n > 3 ? &own : NULL};
    snprintf (at, sizeof at, "%s", names[n]);
    assert_int_equal (ctl_execution_settle (&execution), 0);
    assert_int_equal (ctl_store_put (bench->store, &execution), 0);
    if (n == 2) /* more of one that is there: what was packed is taken back */
      assert_int_equal (ctl_store_put (bench->store, &execution), 0);
    if (n <= 3)
      assert_int_equal (ctl_store_commit (bench->store), 0);
  }
  for (int again = 0; again < 2; again++) {
    for (uint8_t n = 1; n <= 6; n++) {
      char hex[33] = "";
      ctl_execution_t *found = NULL;
      uint32_t count = 0;
      const uint8_t task[16] = {n};
      weft_hex_put (hex, task, 16);
      assert_int_equal (ctl_store_find (bench->store, hex, &found, &count), 0);
      assert_string_equal (found->subtasks[0].service, names[n]);
      assert_string_equal (found->subtasks[0].vm, names[n]);
      assert_string_equal (found->name, names[n]);
      ctl_execution_destroy (&found);
    }
    assert_int_equal (ctl_store_skim (bench->store, 0, UINT64_MAX, wants_none, NULL, names), 0);
    ctl_store_destroy (&bench->store);
    assert_int_equal (open_store (bench), 0);
  }
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST (test_what_was_put_is_there_after_a_restart),
      TEST (test_several_with_one_prefix),
      TEST (test_a_late_part_is_merged),
      TEST (test_a_newer_schema_is_refused),
      TEST (test_what_is_no_store_is_refused),
      TEST (test_a_full_disk_loses_nothing_committed),
      TEST (test_a_damaged_task_hides_no_other),
      TEST (test_a_lost_block_hides_no_other),
      TEST (test_late_parts_at_any_time),
      TEST (test_every_task_of_many_is_found),
      TEST (test_texts_are_known_by_place_no_longer_than_they_stay),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
