/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "../../../../common/status.h"
#include "../../../../controller/service/keyring.h"

static char base[64], dir[80], path[200], why[1200];
static int made, there;

static void count (const char *file, int is_made, void *arg)
{
  made += is_made;
  there += !is_made;
}

static int setup (void **state)
{
  strcpy (base, "/tmp/weft-keyring-XXXXXX");
  made = there = 0;
  if (!mkdtemp (base))
    return -1;
  snprintf (dir, sizeof dir, "%s/keys", base);
  return 0;
}

static int teardown (void **state)
{
  char command[128];
  snprintf (command, sizeof command, "rm -rf '%s'", base);
  return system (command);
}

static const char *at (const char *name)
{
  snprintf (path, sizeof path, "%s/%s", dir, name);
  return path;
}

static unsigned mode (const char *name)
{
  struct stat st;
  assert_int_equal (stat (at (name), &st), 0);
  return st.st_mode & 07777;
}

static void test_keys_are_made_once (void **state)
{
  weft_key_pair_t first, again;
  assert_int_equal (ctl_keyring_make (dir, count, NULL, why, sizeof why), 0);
  assert_int_equal (made, 6);
  assert_int_equal (mode ("."), 0700);
  assert_int_equal (mode ("clients"), 0700);
  assert_int_equal (mode ("controller.key"), 0600);
  assert_int_equal (mode ("client.key"), 0600);
  assert_int_equal (mode ("instance.key"), 0600);
  assert_int_equal (mode ("controller.pub"), 0644);
  assert_int_equal (mode ("instances/local.pub"), 0644);
  assert_int_equal (weft_keys_read (at ("controller.key"), 1, &first, why, sizeof why), 0);
  assert_int_equal (unlink (at ("clients/local.pub")), 0);
  assert_int_equal (ctl_keyring_make (dir, count, NULL, why, sizeof why), 0);
  assert_int_equal (made, 7); /* only what was missing */
  assert_int_equal (there, 5);
  assert_int_equal (weft_keys_read (at ("controller.key"), 1, &again, why, sizeof why), 0);
  assert_string_equal (first.secret_key, again.secret_key);
}

static void test_what_is_refused (void **state)
{
  assert_int_equal (mkdir (dir, 0700), 0);
  assert_int_equal (chmod (dir, 0777), 0);
  assert_int_equal (ctl_keyring_make (dir, count, NULL, why, sizeof why), WEFT_E_DENIED);
  assert_int_equal (chmod (dir, 0700), 0);
  assert_int_equal (ctl_keyring_make (dir, count, NULL, why, sizeof why), 0);
  static const char *const names[] = {
      "",    ".",       "..",        "a/b",  "../x", "-x",
      "a b", "clients", "instances", "a\nb", "ü",    "123456789012345678901234567890123456789012345678"};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++)
    assert_int_equal (ctl_keyring_make_for (dir, names[n], count, NULL, why, sizeof why), WEFT_E_USAGE);
  assert_int_equal (ctl_keyring_make_for (dir, "box2", count, NULL, why, sizeof why), 0);
  char other[120];
  snprintf (other, sizeof other, "%s/box2", dir);
  /* That one is for who connects: no controller's keys are made in it. */
  assert_int_equal (ctl_keyring_make (other, count, NULL, why, sizeof why), WEFT_E_DENIED);
}

static void test_who_is_admitted (void **state)
{
  ctl_keyring_t *ring = NULL;
  weft_key_pair_t client, instance, other;
  assert_int_equal (ctl_keyring_new (dir, &ring, why, sizeof why), WEFT_E_NOT_FOUND);
  assert_int_equal (ctl_keyring_make (dir, count, NULL, why, sizeof why), 0);
  assert_int_equal (ctl_keyring_new (dir, &ring, why, sizeof why), 0);
  assert_int_equal (weft_keys_read (at ("client.key"), 1, &client, why, sizeof why), 0);
  assert_int_equal (weft_keys_read (at ("instance.key"), 1, &instance, why, sizeof why), 0);
  assert_string_equal (ctl_keyring_find (ring, CTL_ROLE_CLIENT, client.public_key), "local");
  assert_string_equal (ctl_keyring_find (ring, CTL_ROLE_INSTANCE, instance.public_key), "local");
  assert_null (ctl_keyring_find (ring, CTL_ROLE_INSTANCE, client.public_key));
  assert_null (
      ctl_keyring_find (ring, CTL_ROLE_CLIENT, instance.public_key)); /* reporting is not instructing */
  assert_null (ctl_keyring_find (ring, CTL_ROLE_CLIENT, ctl_keyring_own (ring)->public_key));
  /* R2: from the next look on */
  assert_int_equal (ctl_keyring_make_for (dir, "box2", count, NULL, why, sizeof why), 0);
  assert_int_equal (weft_keys_read (at ("box2/client.key"), 1, &other, why, sizeof why), 0);
  assert_string_equal (ctl_keyring_find (ring, CTL_ROLE_CLIENT, other.public_key), "box2");
  assert_int_equal (unlink (at ("clients/box2.pub")), 0);
  assert_null (ctl_keyring_find (ring, CTL_ROLE_CLIENT, other.public_key));
  /* R3 */
  assert_int_equal (chmod (at ("clients"), 0777), 0);
  assert_null (ctl_keyring_find (ring, CTL_ROLE_CLIENT, client.public_key));
  assert_int_equal (chmod (at ("clients"), 0700), 0);
  assert_non_null (ctl_keyring_find (ring, CTL_ROLE_CLIENT, client.public_key));
  /* A file that is no key, or has no name of ours, admits nobody and harms nobody. */
  assert_int_equal (symlink ("/dev/zero", at ("clients/zero.pub")), 0);
  assert_int_equal (symlink ("local.pub", at ("clients/.hidden.pub")), 0);
  assert_int_equal (mkdir (at ("clients/x.pub"), 0700), 0);
  assert_string_equal (ctl_keyring_find (ring, CTL_ROLE_CLIENT, client.public_key), "local");
  ctl_keyring_destroy (&ring);
  ctl_keyring_destroy (&ring);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (test_keys_are_made_once, setup, teardown),
      cmocka_unit_test_setup_teardown (test_what_is_refused, setup, teardown),
      cmocka_unit_test_setup_teardown (test_who_is_admitted, setup, teardown),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
