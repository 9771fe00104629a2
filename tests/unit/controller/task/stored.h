/* SPDX-License-Identifier: Apache-2.0 */
/* stored: a forest's executions, and a place for a store of them. Header only; for the tests of the store. */
#ifndef TEST_STORED_H
#define TEST_STORED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <unistd.h>

#include "../../../../common/status.h"
#include "../../../../controller/task/store.h"
#include "forest.h"

#define STORED_TREES 40u

typedef struct {
  char dir[64], path[96], why[256];
  forest_t forest;
  ctl_instances_t *instances;
  ctl_execution_t *execution[STORED_TREES];
  uint32_t count;
  ctl_store_t *store;
} stored_t;

static inline int stored_keep (ctl_execution_t **execution_p, void *arg)
{
  stored_t *self = arg;
  self->execution[self->count++] = *execution_p;
  *execution_p = NULL;
  return 0;
}

static inline int stored_open (stored_t *self)
{
  return ctl_store_open (self->path, NULL, NULL, &self->store, self->why, sizeof self->why);
}

static inline int stored_setup (void **state)
{
  stored_t *self = calloc (1, sizeof *self);
  snprintf (self->dir, sizeof self->dir, "/tmp/weft-store-XXXXXX");
  assert_non_null (mkdtemp (self->dir));
  snprintf (self->path, sizeof self->path, "%s/store", self->dir);
  self->instances = ctl_instances_new ();
  forest_hello (self->instances);
  forest_new (&self->forest, 78, STORED_TREES);
  ctl_correlate_t *correlate = ctl_correlate_new (self->instances, 0);
  forest_send (&self->forest, correlate, 100);
  assert_int_equal (ctl_correlate_settle (correlate, 0, 1, stored_keep, self), 0);
  ctl_correlate_destroy (&correlate);
  *state = self;
  return 0;
}

static inline void stored_unlink (const stored_t *self)
{
  static const char *const end[] = {"", "-wal", "-shm"};
  char path[160];
  for (int i = 0; i < 3; i++) {
    snprintf (path, sizeof path, "%s%s", self->path, end[i]);
    unlink (path);
  }
}

static inline int stored_teardown (void **state)
{
  stored_t *self = *state;
  ctl_store_destroy (&self->store);
  stored_unlink (self);
  rmdir (self->dir);
  for (uint32_t i = 0; i < self->count; i++)
    ctl_execution_destroy (&self->execution[i]);
  forest_destroy (&self->forest);
  ctl_instances_destroy (&self->instances);
  free (self);
  return 0;
}

static inline void stored_put_all (stored_t *self)
{
  for (uint32_t i = 0; i < self->count; i++)
    assert_int_equal (ctl_store_put (self->store, self->execution[i]), 0);
  assert_int_equal (ctl_store_commit (self->store), 0);
}

static inline int stored_count_one (ctl_execution_t **execution_p, void *arg)
{
  ++*(uint32_t *) arg;
  return 0;
}

static inline uint32_t stored_number (stored_t *self)
{
  uint32_t count = 0;
  assert_int_equal (ctl_store_each (self->store, 0, 0, UINT64_MAX, stored_count_one, &count), 0);
  return count;
}

static inline void stored_sql (const char *path, const char *sql)
{
  sqlite3 *db;
  assert_int_equal (sqlite3_open (path, &db), SQLITE_OK);
  assert_int_equal (sqlite3_exec (db, sql, NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close (db);
}

#endif
