/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../common/status.h"
#include "../../../../controller/service/place.h"

static char base[64];

static int setup (void **state)
{
  strcpy (base, "/tmp/weft-place-XXXXXX");
  return mkdtemp (base) ? 0 : -1;
}

static int teardown (void **state)
{
  char command[128];
  snprintf (command, sizeof command, "rm -rf '%s'", base);
  return system (command);
}

static const char *below (const char *name)
{
  static char path[128];
  snprintf (path, sizeof path, "%s/%s", base, name);
  return path;
}

static int claim (const char *dir, unsigned how, int *ret_fd, long *ret_pid)
{
  char why[600] = "";
  int rc = ctl_place_claim (dir, how, ret_fd, ret_pid, why, sizeof why);
  assert_true ((rc == 0) == (why[0] == 0));
  return rc;
}

static void test_addresses (void **state)
{
  char why[300];
  assert_int_equal (ctl_place_check ("ipc:///tmp/x", 0, why, sizeof why), 0);
  assert_int_equal (ctl_place_check ("tcp://127.0.0.1:7000", 0, why, sizeof why), 0);
  assert_int_equal (ctl_place_check ("tcp://127.9.9.9:7000", 0, why, sizeof why), 0);
  assert_int_equal (ctl_place_check ("tcp://[::1]:7000", 0, why, sizeof why), 0);
  assert_int_equal (ctl_place_check ("tcp://0.0.0.0:7000", 0, why, sizeof why), WEFT_E_DENIED);
  assert_int_equal (ctl_place_check ("tcp://10.0.0.1:7000", 0, why, sizeof why), WEFT_E_DENIED);
  assert_int_equal (ctl_place_check ("tcp://127.0.0.1.example.org:7000", 0, why, sizeof why), WEFT_E_DENIED);
  assert_int_equal (ctl_place_check ("tcp://0.0.0.0:7000", 1, why, sizeof why), 0);
  assert_true (ctl_place_check ("orders", 0, why, sizeof why) < 0);
  assert_string_equal (ctl_place_ipc_dir ("ipc:///tmp/x"), "/tmp/x");
  assert_null (ctl_place_ipc_dir ("tcp://127.0.0.1:1"));
}

static void test_one_controller_a_directory (void **state)
{
  int first = -1, second = -1;
  long pid = 0;
  struct stat st;
  assert_int_equal (claim (below ("ctl"), CTL_PLACE_PRIVATE, &first, &pid), 0);
  assert_int_equal (stat (below ("ctl"), &st), 0);
  assert_int_equal (st.st_mode & 07777, 0700);
  assert_int_equal (claim (below ("ctl"), CTL_PLACE_PRIVATE, &second, &pid), WEFT_E_BUSY);
  assert_int_equal (pid, getpid ());
  assert_int_equal (second, -1);
  close (first);
  assert_int_equal (claim (below ("ctl"), CTL_PLACE_PRIVATE, &second, &pid), 0);
  close (second);
}

/* The lock of a controller that was killed is free. */
static void test_a_dead_holder_holds_nothing (void **state)
{
  int fd = -1;
  long pid = 0;
  pid_t child = fork ();
  if (child == 0) {
    char why[600];
    _exit (ctl_place_claim (below ("ctl"), 0, &fd, &pid, why, sizeof why) == 0 ? 0 : 1);
  }
  int status;
  waitpid (child, &status, 0);
  assert_int_equal (status, 0);
  assert_int_equal (claim (below ("ctl"), 0, &fd, &pid), 0);
  close (fd);
}

static void test_directories_that_are_not_ours_alone (void **state)
{
  int fd = -1;
  long pid = 0;
  assert_int_equal (mkdir (below ("open"), 0755), 0);
  chmod (below ("open"), 0755);
  assert_int_equal (claim (below ("open"), CTL_PLACE_PRIVATE, &fd, &pid), WEFT_E_DENIED);
  assert_int_equal (claim (below ("open"), 0, &fd, &pid), 0);
  close (fd);
  assert_int_equal (symlink ("open", below ("link")), 0);
  assert_int_equal (claim (below ("link"), 0, &fd, &pid), WEFT_E_DENIED);
  close (open (below ("file"), O_CREAT | O_WRONLY, 0600));
  assert_int_equal (claim (below ("file"), 0, &fd, &pid), WEFT_E_DENIED);
}

static void test_parents (void **state)
{
  int fd = -1;
  long pid = 0;
  assert_int_equal (claim (below ("a/b/c"), 0, &fd, &pid), WEFT_E_IO);
  assert_int_equal (claim (below ("a/b/c"), CTL_PLACE_PARENTS, &fd, &pid), 0);
  close (fd);
}

/* Only what is ours is swept. */
static void test_sweep (void **state)
{
  close (open (below ("control"), O_CREAT | O_WRONLY, 0600));
  close (open (below ("other"), O_CREAT | O_WRONLY, 0600));
  ctl_place_sweep (base);
  assert_int_equal (access (below ("control"), F_OK), -1);
  assert_int_equal (access (below ("other"), F_OK), 0);
}

static void test_state_dir (void **state)
{
  char out[64];
  setenv ("XDG_STATE_HOME", "/s", 1);
  assert_int_equal (ctl_place_state_dir (out, sizeof out), 0);
  assert_string_equal (out, "/s/weft");
  setenv ("XDG_STATE_HOME", "relative", 1); /* the specification says: ignore it */
  setenv ("HOME", "/h", 1);
  assert_int_equal (ctl_place_state_dir (out, sizeof out), 0);
  assert_string_equal (out, "/h/.local/state/weft");
  assert_int_equal (ctl_place_state_dir (out, 5), WEFT_E_RANGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, setup, teardown)
int main (void)
{
  const struct CMUnitTest tests[] = {
      TEST (test_addresses),
      TEST (test_one_controller_a_directory),
      TEST (test_a_dead_holder_holds_nothing),
      TEST (test_directories_that_are_not_ours_alone),
      TEST (test_parents),
      TEST (test_sweep),
      TEST (test_state_dir),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
