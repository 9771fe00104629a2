/* SPDX-License-Identifier: Apache-2.0 */
/* What a waterfall leaves out, of trees of every form: counted here by hand, or for random ones by walking
 * the tree without the code under test. */
#include "golden.h"

#include "../../../../common/clocks.h"
#include "../../../../common/ids.h"
#include "../../../../controller/view/fold.h"
#include "../../../../controller/view/waterfall.h"

typedef struct {
  ctl_execution_t *execution;
  char (*name)[24];
  ctl_fold_t *fold;
} tree_t;

static tree_t tree_of (uint32_t room)
{
  tree_t tree = {golden_new (1), calloc (room, sizeof *tree.name), calloc (room, sizeof *tree.fold)};
  free (tree.execution->subtasks);
  tree.execution->subtasks = calloc (room, sizeof *tree.execution->subtasks);
  return tree;
}

static void tree_free (tree_t *tree)
{
  ctl_execution_destroy (&tree->execution);
  free (tree->name);
  free (tree->fold);
}

/* Subtask number `id`, called by `caller` (0: the root). */
static ctl_subtask_t *put (tree_t *tree, uint64_t id, uint64_t caller, uint32_t name, double from_ms,
                           double to_ms)
{
  snprintf (tree->name[id - 1], sizeof *tree->name, "GET /%u", name);
  return golden_add (tree->execution, id, caller, caller ? CTL_HOP_PROVEN : CTL_HOP_ROOT, "s", "jvm",
                     tree->name[id - 1], from_ms, to_ms);
}

static void fold (tree_t *tree, int all)
{
  assert_int_equal (ctl_execution_settle (tree->execution), 0);
  assert_int_equal (ctl_fold (tree->execution, all, tree->fold), 0);
}

typedef struct {
  uint32_t seen, lines, folded;
} sums_t;

static sums_t sums_of (const tree_t *tree)
{
  sums_t sums = {0};
  for (uint32_t i = 0; i < tree->execution->count; i++) {
    sums.seen += !tree->fold[i].hidden;
    sums.lines += tree->fold[i].line != CTL_FOLD_NONE;
    sums.folded += tree->fold[i].count;
    assert_true (!tree->fold[i].line || tree->fold[i].hidden);
  }
  return sums;
}

static uint32_t line_at (const tree_t *tree, ctl_fold_kind_t kind)
{
  uint32_t found = CTL_NO_PARENT;
  for (uint32_t i = 0; i < tree->execution->count; i++)
    if (tree->fold[i].line == kind) {
      assert_int_equal (found, CTL_NO_PARENT);
      found = i;
    }
  assert_int_not_equal (found, CTL_NO_PARENT);
  return found;
}

static void test_ten_thousand_deep (void **state)
{
  (void) state;
  tree_t tree = tree_of (10000);
  for (uint32_t i = 1; i <= 10000; i++)
    put (&tree, i, i - 1, i, i * 0.5, 20000 - i * 0.5);
  fold (&tree, 0);
  sums_t sums = sums_of (&tree);
  assert_int_equal (sums.seen, CTL_FOLD_DEPTH + 1);
  assert_int_equal (sums.lines, 1);
  uint32_t line = line_at (&tree, CTL_FOLD_DEEP);
  assert_int_equal (tree.fold[line].count, 10000 - CTL_FOLD_DEPTH - 1);
  assert_true (tree.fold[line].critical);
  fold (&tree, 1);
  assert_int_equal (sums_of (&tree).seen, 10000);
  tree_free (&tree);
}

/* The longest and the failed one stand, whatever their place. */
static void test_ten_thousand_wide (void **state)
{
  (void) state;
  tree_t tree = tree_of (10001);
  put (&tree, 1, 0, 0, 0, 20000);
  for (uint32_t i = 2; i <= 10001; i++)
    put (&tree, i, 1, i, i, i + 0.5 + (i == 5000 ? 9000 : 0))->status = i == 7777 ? 503 : 200;
  fold (&tree, 0);
  sums_t sums = sums_of (&tree);
  assert_int_equal (sums.seen, 1 + CTL_FOLD_SIBLINGS);
  uint32_t line = line_at (&tree, CTL_FOLD_WIDE);
  assert_int_equal (tree.fold[line].count, 10000 - CTL_FOLD_SIBLINGS);
  assert_int_equal (tree.fold[line].failed, 0);
  assert_false (tree.fold[4999].hidden);
  assert_false (tree.fold[7776].hidden);
  for (uint32_t i = 1; i <= 10000;
       i++) /* more failed ones than have a place, and the longest is none of them */
    tree.execution->subtasks[i].status = tree.execution->subtasks[i].id == 5000 ? 200 : 500;
  fold (&tree, 0);
  assert_false (tree.fold[4999].hidden);
  assert_int_equal (sums_of (&tree).seen, 1 + CTL_FOLD_SIBLINGS);
  tree_free (&tree);
}

static void test_ten_thousand_alike (void **state)
{
  (void) state;
  tree_t tree = tree_of (10001);
  put (&tree, 1, 0, 0, 0, 20001);
  for (uint32_t i = 2; i <= 10001; i++)
    put (&tree, i, 1, 7, 2.0 * i, 2.0 * i + 1)->status = i % 1000 == 0 ? 500 : 200;
  fold (&tree, 0);
  assert_int_equal (sums_of (&tree).seen, 3);
  uint32_t line = line_at (&tree, CTL_FOLD_LIKE);
  assert_int_equal (line, 3);
  assert_int_equal (tree.fold[line].count, 9998);
  assert_int_equal (tree.fold[line].failed, 10);
  assert_int_equal (tree.fold[line].ns, 9998 * GOLDEN_MS);
  assert_int_equal (tree.fold[10000].into, line);
  assert_int_equal (tree.fold[2].into, CTL_NO_PARENT);
  tree_free (&tree);
}

/* F1 and the bound, of random trees: every subtask is seen, or in the one line of its topmost hidden ancestor,
 * or (like) below one that is alike and folded. */
static void test_random_trees (void **state)
{
  (void) state;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    weft_ids_t random = {.s = {seed, 2, 3, 4}};
    uint32_t count = 1 + (uint32_t) (weft_ids_next (&random) >> 33) % 3000;
    uint32_t names = 1 + (uint32_t) (weft_ids_next (&random) >> 33) % 200;
    uint32_t back = 1 + (uint32_t) (weft_ids_next (&random) >> 33) % 60;
    tree_t tree = tree_of (count);
    put (&tree, 1, 0, 0, 0, 1000);
    for (uint32_t i = 2; i <= count; i++) {
      uint32_t reach = back < i - 1 ? back : i - 1, way = (uint32_t) (weft_ids_next (&random) >> 33);
      uint32_t caller = i - 1 - (reach ? way % reach : 0);
      double from = (double) i / count * 900,
             to = from + (double) ((weft_ids_next (&random) >> 33) % 1000) / 10;
      put (&tree, i, caller, (uint32_t) (weft_ids_next (&random) >> 33) % names, from, to);
    }
    fold (&tree, 0);
    sums_t sums = sums_of (&tree);
    uint32_t accounted = 0;
    for (uint32_t i = 0; i < count; i++) {
      uint32_t top = CTL_NO_PARENT; /* the topmost hidden one on the way up */
      for (uint32_t k = i; k != CTL_NO_PARENT; k = tree.execution->subtasks[k].parent)
        if (tree.fold[k].hidden)
          top = k;
      if (top == CTL_NO_PARENT) {
        accounted++;
        continue;
      }
      uint32_t line = tree.fold[top].into;
      if (line == CTL_NO_PARENT || tree.fold[line].line == CTL_FOLD_NONE)
        fail_msg ("seed %llu: subtask %u is in no line", (unsigned long long) seed, i);
      accounted += tree.fold[line].line == CTL_FOLD_LIKE && top != i ? 0 : 1;
    }
    assert_int_equal (accounted, sums.seen + sums.folded);
    assert_true (sums.seen + sums.lines <= CTL_FOLD_LINES + CTL_FOLD_SIBLINGS * (CTL_FOLD_FIRST + 1) + 2);
    tree_free (&tree);
  }
}

/* Text of both forms, and that the time for it does not grow with the square. */
static void test_texts (void **state)
{
  (void) state;
  tree_t tree = tree_of (10100);
  put (&tree, 1, 0, 0, 0, 1000);
  for (uint32_t i = 2; i <= 5001; i++)
    put (&tree, i, 1, i, i * 0.1, i * 0.1 + (i < 5 ? 1 : 0.05));
  for (uint32_t i = 5002; i <= 10001; i++)
    put (&tree, i, i == 5002 ? 3 : i - 1, i, 0.3 + (i - 5001) * 0.00001, 1.2 - (i - 5001) * 0.00001);
  assert_int_equal (ctl_execution_settle (tree.execution), 0);
  golden_t golden;
  uint64_t start_ns = weft_clock_ns (CLOCK_PROCESS_CPUTIME_ID);
  assert_int_equal (ctl_waterfall (golden_begin (&golden), &golden_wide, tree.execution, 0), 0);
  uint64_t took_ns = weft_clock_ns (CLOCK_PROCESS_CPUTIME_ID) - start_ns;
  golden_end (&golden, "show-large.txt");
  assert_int_equal (ctl_waterfall (golden_begin (&golden), &golden_ascii, tree.execution, 0), 0);
  golden_end (&golden, "show-large-ascii.txt");
  printf ("10,001 subtasks folded and drawn in %.1f ms\n", (double) took_ns / 1e6);
  assert_true (took_ns < 500 * GOLDEN_MS);
  tree_free (&tree);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_ten_thousand_deep),
      cmocka_unit_test (test_ten_thousand_wide),
      cmocka_unit_test (test_ten_thousand_alike),
      cmocka_unit_test (test_random_trees),
      cmocka_unit_test (test_texts),
  };
  setenv ("TZ", "UTC", 1);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
