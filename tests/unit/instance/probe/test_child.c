/* SPDX-License-Identifier: Apache-2.0 */
/* child: what is handed down, and to whom nothing is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../../../common/status.h"
#include "../../../../common/wire.h"
#include "../../../../instance/probe/child.h"

static void *pages (void)
{
  void *base = calloc (1, SHM_DATA_AT);
  assert_non_null (base);
  return base;
}

static void fill (void *parent)
{
  shm_control_t *control = shm_control (parent);
  control->config_seq = 6;
  control->actions = WEFT_ACTION_CAPTURE | WEFT_ACTION_ROOT;
  control->carrier = 1;
  control->rule_count = 1;
  control->rules[0].instruction = 12;
  control->lease_until_ns = 987654321;
  control->tree.key[1] = 5;
  strcpy (control->service, "orders");
  control->doorbell = 44;
  control->command = SHM_COMMAND_LEAVE;
  control->sidecar_pid = 3;
  control->instance[2] = 1;
  control->batch_last = 9;
  control->lost_reported[0] = 4;
  shm_filter (parent)->exclude_count = 3;
  strcpy (shm_filter (parent)->exclude[2], "GET /x");
}

static void what_holds_is_handed_down (void **state)
{
  void *parent = pages (), *child = pages ();
  fill (parent);
  probe_child_inherit (parent, child);
  const shm_control_t *control = shm_control (child);
  assert_int_equal (control->config_seq, 6);
  assert_int_equal (control->actions, WEFT_ACTION_CAPTURE | WEFT_ACTION_ROOT);
  assert_int_equal (control->carrier, 1);
  assert_int_equal (control->rules[0].instruction, 12);
  assert_true (control->lease_until_ns == 987654321);
  assert_int_equal (control->tree.key[1], 5);
  assert_string_equal (control->service, "orders");
  assert_string_equal (shm_filter (child)->exclude[2], "GET /x");
  /* What is the parent's own is not. */
  assert_int_equal (control->doorbell, 0);
  assert_int_equal (control->command, SHM_COMMAND_NONE);
  assert_true (control->sidecar_pid == 0 && control->batch_last == 0 && control->lost_reported[0] == 0);
  assert_int_equal (control->instance[2], 0);
  free (parent), free (child);
}

/* Its sidecar died in the middle of a configuration. */
static void half_a_configuration_is_none (void **state)
{
  void *parent = pages (), *child = pages ();
  fill (parent);
  shm_control (parent)->config_seq = 7;
  probe_child_inherit (parent, child);
  const shm_control_t *control = shm_control (child);
  assert_int_equal (control->config_seq, 0);
  assert_int_equal (control->actions, 0);
  assert_true (control->lease_until_ns == 0);
  assert_int_equal (shm_filter (child)->exclude_count, 0);
  assert_int_equal (control->tree.key[1], 5);
  free (parent), free (child);
}

static void a_tree_is_64_digits (void **state)
{
  static const char good[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
  static const char *const bad[] = {"", "00",
                                    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1g",
                                    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f0",
                                    "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"};
  shm_tree_t tree;
  memset (&tree, 0x77, sizeof tree);
  unsetenv (PROBE_TREE_ENVIRONMENT);
  assert_int_equal (probe_child_tree (&tree), 0);
  for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    setenv (PROBE_TREE_ENVIRONMENT, bad[i], 1);
    assert_int_equal (probe_child_tree (&tree), 0);
  }
  assert_int_equal (tree.name[0], 0x77);
  setenv (PROBE_TREE_ENVIRONMENT, good, 1);
  assert_int_equal (probe_child_tree (&tree), 1);
  assert_int_equal (tree.name[15], 0x0f);
  assert_int_equal (tree.key[15], 0x1f);
}

static void nobody_there (void **state)
{
  static const uint8_t start[WEFT_UUID_SIZE];
  shm_tree_t tree;
  memset (&tree, 0, sizeof tree);
  assert_int_equal (probe_child_announce (&tree, SHM_ARRIVAL_FORKED, start, 0), WEFT_E_NOT_FOUND);
  tree.name[0] = 0xfe;
  assert_int_equal (probe_child_announce (&tree, SHM_ARRIVAL_FORKED, start, 0), WEFT_E_BUSY);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (what_holds_is_handed_down),
      cmocka_unit_test (half_a_configuration_is_none),
      cmocka_unit_test (a_tree_is_64_digits),
      cmocka_unit_test (nobody_there),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
