/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h must follow these */
#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../../common/clocks.h"
#include "../../../../../common/status.h"
#include "../../../../../instance/sidecar/way_in/turn.h"

#define HELD_MS 1500 /* much longer than a busy machine keeps one waiting */

/* It is the kernel that gives the turn back: its owner is killed. */
static void one_at_a_time (void **state)
{
  int ends[2];
  uint64_t taken_ns;
  assert_int_equal (pipe (ends), 0);
  pid_t child = fork ();
  if (child == 0) {
    int turn = car_turn_take (1 << 29);
    taken_ns = weft_mono_ns ();
    if (turn < 0 || write (ends[1], &taken_ns, sizeof taken_ns) != sizeof taken_ns)
      _exit (1);
    usleep (HELD_MS * 1000);
    raise (SIGKILL);
  }
  assert_int_equal (read (ends[0], &taken_ns, sizeof taken_ns), sizeof taken_ns);
  int other = car_turn_take ((1 << 29) + 1); /* of another process: at once */
  assert_true (other >= 0 && weft_mono_ns () - taken_ns < HELD_MS * WEFT_NS_PER_MS);
  int turn = car_turn_take (1 << 29);
  assert_true (turn >= 0 && weft_mono_ns () - taken_ns >= HELD_MS * WEFT_NS_PER_MS);
  close (other);
  close (turn);
  assert_int_equal (waitpid (child, NULL, 0), child);
}

/* A socket that cannot be had is not one that somebody has: said at once, and with the reason. */
static void no_socket_is_nobodys_turn (void **state)
{
  pid_t child = fork ();
  if (child == 0) {
    struct sock_filter code[] = {BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr)),
                                 BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_bind, 0, 1),
                                 BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
                                 BPF_STMT (BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      _exit (77);
    _exit (car_turn_take (1 << 29) == WEFT_E_IO && errno == EACCES ? 0 : 1);
  }
  int end;
  assert_int_equal (waitpid (child, &end, 0), child);
  assert_true (WIFEXITED (end));
  assert_int_equal (WEXITSTATUS (end), 0);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (one_at_a_time),
      cmocka_unit_test (no_socket_is_nobodys_turn),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
