/* SPDX-License-Identifier: Apache-2.0 */
/* What executions are put together in is used again for the next one, and so is an execution that nobody
 * kept: what is kept is not touched by that, and outlives all it came from but the texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../../../controller/task/pack.h"
#include "forest.h"

enum { TREES = 200 };

typedef struct {
  ctl_execution_t *execution;
  void *packed; /* as it was when it was handed out */
  size_t size;
} kept_t;

typedef struct {
  kept_t kept[2 * TREES];
  uint32_t count, seen;
} all_t;

static void keep (all_t *self, ctl_execution_t *execution)
{
  kept_t *kept = &self->kept[self->count++];
  kept->execution = execution;
  assert_int_equal (ctl_execution_pack (execution, &kept->packed, &kept->size), 0);
}

static int keep_some (ctl_execution_t **execution_p, void *arg)
{
  all_t *self = arg;
  if (self->seen++ % 3 == 0) {
    keep (self, *execution_p);
    *execution_p = NULL;
  }
  return 0;
}

static void check (kept_t *kept)
{
  void *packed;
  size_t size;
  assert_int_equal (ctl_execution_pack (kept->execution, &packed, &size), 0);
  assert_int_equal (size, kept->size);
  assert_memory_equal (packed, kept->packed, size);
  ctl_execution_destroy (&kept->execution);
  free (kept->packed);
  free (packed);
}

static void what_is_kept_stays (void **state)
{
  (void) state;
  static all_t self;
  forest_t forest;
  ctl_execution_t *found;
  ctl_instances_t *instances = ctl_instances_new ();
  ctl_correlate_t *correlate = ctl_correlate_new (instances, 0);
  forest_hello (instances);
  forest_new_of (&forest, 300, TREES, FOREST_NODES);
  forest_shuffle (&forest);
  forest_send (&forest, correlate, 50);
  for (uint32_t i = 0; i < TREES; i++) {
    assert_int_equal (ctl_correlate_find (correlate, forest.tree[i].task, &found), 0);
    if (i % 2)
      keep (&self, found);
    else
      ctl_execution_destroy (&found);
  }
  assert_int_equal (ctl_correlate_settle (correlate, 0, 1, keep_some, &self), 0);
  assert_int_equal (self.seen, TREES);
  ctl_correlate_destroy (&correlate);
  for (uint32_t i = 0; i < self.count; i++)
    check (&self.kept[i]);
  ctl_instances_destroy (&instances);
  forest_destroy (&forest);
}

int main (void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test (what_is_kept_stays)};
  return cmocka_run_group_tests (tests, NULL, NULL);
}
