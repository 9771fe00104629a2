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

#include "../../../common/keys.h"
#include "../../../common/status.h"

#define PUBLIC "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"
#define SECRET "0123456789.-:+=^!/*?&<>()[]{}@%$#OPQRSTU"

static char base[64], path[128], why[800];

static int setup (void **state)
{
  strcpy (base, "/tmp/weft-keys-XXXXXX");
  unsetenv ("WEFT_KEYS");
  return mkdtemp (base) ? 0 : -1;
}

static int teardown (void **state)
{
  char command[128];
  snprintf (command, sizeof command, "rm -rf '%s'", base);
  return system (command);
}

static const char *put (const char *name, const char *text, size_t size, unsigned mode)
{
  snprintf (path, sizeof path, "%s/%s", base, name);
  unlink (path);
  FILE *file = fopen (path, "w");
  assert_non_null (file);
  assert_int_equal (fwrite (text, 1, size, file), size);
  fclose (file);
  assert_int_equal (chmod (path, mode), 0);
  return path;
}

static int read_text (const char *text, int secret, weft_key_pair_t *ret_pair)
{
  *why = 0;
  int rc = weft_keys_read (put ("k", text, strlen (text), 0600), secret, ret_pair, why, sizeof why);
  assert_true ((rc == 0) == (*why == 0));
  return rc;
}

static void test_good_files (void **state)
{
  weft_key_pair_t pair;
  assert_int_equal (read_text ("public " PUBLIC "\nsecret " SECRET "\n", 1, &pair), 0);
  assert_string_equal (pair.public_key, PUBLIC);
  assert_string_equal (pair.secret_key, SECRET);
  assert_int_equal (
      read_text ("# for people\r\n\n# " PUBLIC "\nsecret " SECRET "\r\npublic " PUBLIC " ", 1, &pair), 0);
  assert_string_equal (pair.secret_key, SECRET);
  assert_int_equal (read_text ("public " PUBLIC "\n", 0, &pair), 0);
  assert_string_equal (pair.secret_key, "");
}

static void test_bad_files (void **state)
{
  static const char *const texts[] = {"",
                                      "\n",
                                      "public",
                                      "public ",
                                      "public " PUBLIC "x",
                                      "public abc\n",
                                      "public  " PUBLIC,
                                      "Public " PUBLIC,
                                      "public " PUBLIC "\npublic " PUBLIC,
                                      "public " PUBLIC "\nsecret " PUBLIC "\nsecret " SECRET,
                                      "public " PUBLIC "\nmore",
                                      "public abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM'",
                                      "public abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM\xff"};
  weft_key_pair_t pair = {"untouched", ""};
  for (size_t n = 0; n < sizeof texts / sizeof *texts; n++)
    assert_int_equal (read_text (texts[n], 0, &pair), WEFT_E_MALFORMED);
  assert_int_equal (read_text ("public " PUBLIC "\n", 1, &pair), WEFT_E_MALFORMED); /* no secret in it */
  assert_int_equal (read_text ("secret " SECRET "\n", 1, &pair), WEFT_E_MALFORMED);
  assert_string_equal (pair.public_key, "untouched");
  static const char hole[] = "public abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM\0\n";
  assert_int_equal (weft_keys_read (put ("k", hole, sizeof hole - 1, 0600), 0, &pair, why, sizeof why),
                    WEFT_E_MALFORMED);
  char *large = malloc (100000);
  int begin = snprintf (large, 100000, "public %s", PUBLIC);
  memset (large + begin, '\n', (size_t) (100000 - begin));
  assert_int_equal (weft_keys_read (put ("k", large, 100000, 0600), 0, &pair, why, sizeof why),
                    WEFT_E_MALFORMED);
  free (large);
}

/* K1 */
static void test_whose_file (void **state)
{
  weft_key_pair_t pair;
  static const char text[] = "public " PUBLIC "\nsecret " SECRET "\n";
  static const unsigned open[] = {0640, 0604, 0660, 0644};
  for (size_t n = 0; n < sizeof open / sizeof *open; n++)
    assert_int_equal (weft_keys_read (put ("k", text, sizeof text - 1, open[n]), 1, &pair, why, sizeof why),
                      WEFT_E_DENIED);
  assert_int_equal (weft_keys_read (put ("k", text, sizeof text - 1, 0644), 0, &pair, why, sizeof why), 0);
  assert_int_equal (weft_keys_read (put ("k", text, sizeof text - 1, 0666), 0, &pair, why, sizeof why),
                    WEFT_E_DENIED);
  assert_int_equal (weft_keys_read ("/nowhere/k", 1, &pair, why, sizeof why), WEFT_E_NOT_FOUND);
  assert_non_null (strstr (why, "weft keys"));
  assert_int_equal (weft_keys_read (base, 0, &pair, why, sizeof why), WEFT_E_DENIED);
  assert_int_equal (weft_keys_read ("/dev/null", 0, &pair, why, sizeof why), WEFT_E_DENIED);
  if (geteuid () == 0) {
    put ("k", text, sizeof text - 1, 0600);
    assert_int_equal (chown (path, 65534, 65534), 0);
    assert_int_equal (weft_keys_read (path, 1, &pair, why, sizeof why), WEFT_E_DENIED);
  }
}

static int for_address (const char *address, const char *dir, int plain, weft_keys_t *ret_keys)
{
  *ret_keys = (weft_keys_t){.plain_tcp = plain};
  *why = 0;
  return weft_keys_for (address, dir, "client", ret_keys, why, sizeof why);
}

/* K2 */
static void test_addresses (void **state)
{
  static const char *const near[] = {"tcp://127.0.0.1:1", "tcp://127.8.9.1:1", "tcp://[::1]:1",
                                     "tcp://localhost:1"};
  static const char *const far[] = {"tcp://10.0.0.1:1", "tcp://0.0.0.0:1",
                                    "tcp://[::2]:1",    "tcp://127.example.org:1",
                                    "tcp://box2:1",     "tcp://127.0.0.1.example.org:1"};
  weft_keys_t keys;
  for (size_t n = 0; n < sizeof near / sizeof *near; n++) {
    assert_int_equal (for_address (near[n], "", 0, &keys), 0);
    assert_int_equal (keys.loaded, 0);
  }
  for (size_t n = 0; n < sizeof far / sizeof *far; n++) {
    assert_int_equal (for_address (far[n], "", 0, &keys), WEFT_E_DENIED);
    assert_non_null (strstr (why, "--keys"));
    assert_int_equal (for_address (far[n], "", 1, &keys), 0);
    /* Named keys that cannot be read never fall back to none. */
    assert_int_equal (for_address (far[n], "/nowhere", 1, &keys), WEFT_E_NOT_FOUND);
  }
  assert_int_equal (for_address (near[0], "/nowhere", 0, &keys), WEFT_E_NOT_FOUND);
  put ("controller.pub", "public " PUBLIC, 47, 0644);
  assert_int_equal (for_address (far[0], base, 0, &keys), WEFT_E_NOT_FOUND);
  put ("client.key", "public " PUBLIC "\nsecret " SECRET, 95, 0600);
  assert_int_equal (for_address (far[0], base, 0, &keys), 0);
  assert_int_equal (keys.loaded, 1);
  assert_string_equal (keys.controller, PUBLIC);
  assert_string_equal (keys.own.secret_key, SECRET);
  weft_keys_clear (&keys);
  assert_int_equal (keys.own.secret_key[0], 0);
}

/* K3 */
static void test_ipc_directories (void **state)
{
  weft_keys_t keys;
  char address[100];
  snprintf (address, sizeof address, "ipc://%s", base);
  assert_int_equal (for_address (address, "/nowhere", 0, &keys), 0); /* no keys are needed there */
  assert_int_equal (chmod (base, 0770), 0);
  assert_int_equal (for_address (address, "", 0, &keys), WEFT_E_DENIED);
  assert_int_equal (chmod (base, 0700), 0);
  if (geteuid () == 0) {
    assert_int_equal (chown (base, 65534, 65534), 0);
    assert_int_equal (for_address (address, "", 0, &keys), WEFT_E_DENIED);
    assert_non_null (strstr (why, "65534"));
    assert_int_equal (chown (base, 0, 0), 0);
  }
  char link[120];
  snprintf (link, sizeof link, "%s/link", base);
  assert_int_equal (symlink (base, link), 0);
  snprintf (address, sizeof address, "ipc://%s/link", base);
  assert_int_equal (for_address (address, "", 0, &keys), WEFT_E_DENIED);
}

static void test_directory_of_keys (void **state)
{
  char out[WEFT_KEYS_DIR_MAX], here[512], large[WEFT_KEYS_DIR_MAX];
  assert_int_equal (weft_keys_directory (NULL, out), 0);
  assert_string_equal (out, "");
  assert_int_equal (weft_keys_directory ("/a/b", out), 0);
  assert_string_equal (out, "/a/b");
  setenv ("WEFT_KEYS", "/env", 1);
  assert_int_equal (weft_keys_directory (NULL, out), 0);
  assert_string_equal (out, "/env");
  assert_int_equal (weft_keys_directory ("relative", out), 0);
  assert_non_null (getcwd (here, sizeof here));
  assert_memory_equal (out, here, strlen (here));
  assert_string_equal (out + strlen (here), "/relative");
  unsetenv ("WEFT_KEYS");
  memset (large, 'x', sizeof large - 1);
  large[0] = '/';
  large[sizeof large - 1] = 0;
  assert_int_equal (weft_keys_directory (large, out), WEFT_E_RANGE);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (test_good_files, setup, teardown),
      cmocka_unit_test_setup_teardown (test_bad_files, setup, teardown),
      cmocka_unit_test_setup_teardown (test_whose_file, setup, teardown),
      cmocka_unit_test_setup_teardown (test_addresses, setup, teardown),
      cmocka_unit_test_setup_teardown (test_ipc_directories, setup, teardown),
      cmocka_unit_test_setup_teardown (test_directory_of_keys, setup, teardown),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
