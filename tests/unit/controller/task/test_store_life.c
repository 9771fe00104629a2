/* SPDX-License-Identifier: Apache-2.0 */
/* The store's days: what goes when it is old or full, who reads while it is written, and a writer that is
 * killed in the middle. */
#include "stored.h"

#include <signal.h>
#include <sys/wait.h>

#include "../../../../common/clocks.h"

#define HOUR_NS (3600000ull * WEFT_NS_PER_MS)

/* `n` tasks more, all others in nothing but their id. */
static void put_many (stored_t *self, uint32_t n, uint64_t start_ns)
{
  static uint64_t next = 1;
  ctl_execution_t *execution = self->execution[0];
  uint64_t by_ns = start_ns - execution->start_ns;
  for (uint32_t i = 0; i < execution->count; i++) {
    execution->subtasks[i].start_ns += by_ns;
    execution->subtasks[i].end_ns += by_ns;
  }
  execution->start_ns = start_ns;
  for (uint32_t i = 0; i < n; i++, next++) {
    memcpy (execution->task, &next, sizeof next);
    assert_int_equal (ctl_store_put (self->store, execution), 0);
  }
  assert_int_equal (ctl_store_commit (self->store), 0);
}

static void tidy_all (stored_t *self, uint64_t now_ns)
{
  int rc;
  while ((rc = ctl_store_tidy (self->store, now_ns)) == 1)
    ;
  assert_int_equal (rc, 0);
}

/* Every burst that nobody has made older yet. */
static void make_older (stored_t *self, uint64_t written_ns)
{
  char sql[128];
  ctl_store_destroy (&self->store);
  snprintf (sql, sizeof sql, "UPDATE burst SET written_ns = %llu WHERE written_ns > %llu",
            (unsigned long long) written_ns, (unsigned long long) (1100 * HOUR_NS));
  stored_sql (self->path, sql);
  assert_int_equal (stored_open (self), 0);
}

static void test_what_is_old_goes (void **state)
{
  stored_t *self = *state;
  uint64_t now_ns = 1000 * HOUR_NS; /* long ago */
  assert_int_equal (stored_open (self), 0);
  tidy_all (self, now_ns);        /* of an empty one, nothing */
  put_many (self, 1000, HOUR_NS); /* when it was is not asked */
  make_older (self, now_ns - 5 * HOUR_NS);
  put_many (self, 1000, HOUR_NS);
  make_older (self, now_ns - 2 * HOUR_NS);
  put_many (self, 1000, HOUR_NS);
  make_older (self, now_ns);
  ctl_store_retain (self->store, 0, 3 * 3600000);
  tidy_all (self, now_ns);
  assert_int_equal (stored_number (self), 2000);
  assert_int_equal (ctl_store_retired (self->store), 1000);
  tidy_all (self, now_ns + 100 * HOUR_NS);
  assert_int_equal (stored_number (self), 0);
  assert_int_equal (ctl_store_retired (self->store), 3000);
  put_many (self, 10, HOUR_NS); /* it goes on */
  tidy_all (self, weft_clock_ns (CLOCK_REALTIME));
  assert_int_equal (stored_number (self), 10);
  ctl_store_destroy (&self->store);
  assert_int_equal (stored_open (self), 0);
  assert_int_equal (stored_number (self), 10);
}

static void test_a_full_store_makes_room (void **state)
{
  stored_t *self = *state;
  assert_int_equal (stored_open (self), 0);
  ctl_store_retain (self->store, 2 << 20, 0);
  for (uint32_t n = 0; n < 10; n++) {
    put_many (self, 1000, (1000 + n) * HOUR_NS);
    tidy_all (self, 2000 * HOUR_NS);
  }
  uint32_t left = stored_number (self);
  assert_true (left >= 500 && left < 9000);
  assert_int_equal (left + ctl_store_retired (self->store), 10000);
  uint32_t newest = 0;
  assert_int_equal (ctl_store_each (self->store, 0, 1009 * HOUR_NS, UINT64_MAX, stored_count_one, &newest),
                    0);
  assert_true (newest > 0); /* the oldest went */
}

/* In another process, as people read: it holds one moment for as long as it likes. */
static pid_t read_for_long (const stored_t *self, int *ret_told)
{
  int told[2];
  assert_int_equal (pipe (told), 0);
  pid_t child = fork ();
  if (child == 0) {
    sqlite3 *db;
    sqlite3_stmt *statement;
    if (sqlite3_open (self->path, &db) || sqlite3_exec (db, "BEGIN", NULL, NULL, NULL) ||
        sqlite3_prepare_v2 (db, "SELECT sum (count) FROM block", -1, &statement, NULL) ||
        sqlite3_step (statement) != SQLITE_ROW)
      _exit (1);
    int64_t before = sqlite3_column_int64 (statement, 0);
    sqlite3_reset (statement);
    if (write (told[1], "r", 1) != 1)
      _exit (2);
    raise (SIGSTOP); /* until the writer is done */
    _exit (sqlite3_step (statement) == SQLITE_ROW && sqlite3_column_int64 (statement, 0) == before ? 0 : 3);
  }
  close (told[1]);
  *ret_told = told[0];
  return child;
}

static void test_a_reader_holds_nothing_up (void **state)
{
  stored_t *self = *state;
  int told, status;
  char byte;
  assert_int_equal (stored_open (self), 0);
  stored_put_all (self);
  pid_t reader = read_for_long (self, &told);
  assert_int_equal (read (told, &byte, 1), 1);
  assert_int_equal (waitpid (reader, &status, WUNTRACED), reader);
  uint64_t begun_ns = weft_mono_ns ();
  for (uint32_t n = 0; n < 5; n++)
    put_many (self, 2000, (1000 + n) * HOUR_NS);
  assert_true (weft_mono_ns () - begun_ns < 60000 * WEFT_NS_PER_MS);
  kill (reader, SIGCONT);
  assert_int_equal (waitpid (reader, &status, 0), reader);
  assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 0);
  close (told);
  assert_true (stored_number (self) >= 10000);
}

/* Killed wherever it is: what was committed is there, each task whole and counted once. */
static void test_a_killed_writer (void **state)
{
  stored_t *self = *state;
  uint32_t last = 0;
  for (uint32_t round = 0; round < 8; round++) {
    int told[2], status;
    uint32_t committed = 0, more;
    assert_int_equal (pipe (told), 0);
    pid_t writer = fork ();
    if (writer == 0) {
      if (stored_open (self))
        _exit (1);
      for (uint32_t n = 0;; n++) {
        ctl_execution_t *execution = self->execution[0];
        uint64_t id[2] = {round + 1, n};
        memcpy (execution->task, id, sizeof id);
        if (ctl_store_put (self->store, execution))
          _exit (1);
        more = n + 1;
        if (n % 50 == 49 && (ctl_store_commit (self->store) || write (told[1], &more, sizeof more) < 0))
          _exit (1);
      }
    }
    close (told[1]);
    for (uint32_t n = 0; n < 3 + round * 3 && read (told[0], &more, sizeof more) == sizeof more; n++)
      committed = more;
    kill (writer, SIGKILL);
    assert_int_equal (waitpid (writer, &status, 0), writer);
    assert_true (WIFSIGNALED (status));
    while (read (told[0], &more, sizeof more) == sizeof more)
      committed = more;
    close (told[0]);
    assert_int_equal (stored_open (self), 0);
    uint32_t now = stored_number (self);
    assert_true (now >= last + committed && (now - last) % 50 == 0);
    assert_int_equal (ctl_store_count (self->store, 0, UINT64_MAX), now);
    last = now;
    ctl_store_destroy (&self->store);
  }
}

int main (void)
{
#define TEST(name) cmocka_unit_test_setup_teardown (name, stored_setup, stored_teardown)
  const struct CMUnitTest tests[] = {
      TEST (test_what_is_old_goes),
      TEST (test_a_full_store_makes_room),
      TEST (test_a_reader_holds_nothing_up),
      TEST (test_a_killed_writer),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
