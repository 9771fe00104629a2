/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../common/fault.h"

static void an_order_means_one_passage (void **state)
{
  assert_int_equal (weft_fault_means ("push:3", "push", 3), 1);
  assert_int_equal (weft_fault_means ("push:3", "push", 2), 0);
  assert_int_equal (weft_fault_means ("push:3", "pus", 3), 0);
  assert_int_equal (weft_fault_means ("push", "push", 1), 0);
  assert_int_equal (weft_fault_means ("push:", "push", 0), 0);
  assert_int_equal (weft_fault_means ("push:0", "push", 0), 0);
  assert_int_equal (weft_fault_means ("push:1x", "push", 1), 0);
  assert_int_equal (weft_fault_means (NULL, "push", 1), 0);
}

/* The signal that ended a child that passed `mine` n times. */
static int end_of_child (const char *order, const char *mine, int n)
{
  pid_t pid = fork ();
  if (pid == 0) {
    setenv ("WEFT_FAULT", order, 1);
    for (int i = 0; i < n; i++) {
      weft_fault_pass ("other");
      weft_fault_pass (mine);
    }
    _exit (0);
  }
  int status = 0;
  assert_int_equal (waitpid (pid, &status, 0), pid);
  return WIFSIGNALED (status) ? WTERMSIG (status) : 0;
}

static void the_process_dies_at_it (void **state)
{
  assert_int_equal (end_of_child ("ack:3", "ack", 2), 0);
  assert_int_equal (end_of_child ("ack:3", "ack", 3), SIGKILL);
  assert_int_equal (end_of_child ("journal-append:1", "journal-appended", 1), 0);
}

int main (void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test (an_order_means_one_passage),
                                     cmocka_unit_test (the_process_dies_at_it)};
  return cmocka_run_group_tests (tests, NULL, NULL);
}
