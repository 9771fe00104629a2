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

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../common/status.h"
#include "../../../../instance/sidecar/listens.h"
#include "../../../../instance/sidecar/target.h"

static void knows_this_process (void **state)
{
  car_target_t target;
  assert_int_equal (car_target_identify (getpid (), "front desk", &target), 0);
  assert_int_equal (target.pid, getpid ());
  assert_int_equal (target.uid, geteuid ());
  assert_string_equal (target.vm, "");
  assert_string_equal (target.service, "front_desk");
  assert_true (target.readable);
  assert_false (target.zombie || target.bits32 || target.musl || target.other_mounts);
  assert_true (strstr (target.exe, "test_target") != NULL);
}

static void sees_signal_handlers (void **state)
{
  car_target_t target;
  signal (SIGQUIT, SIG_DFL);
  assert_int_equal (car_target_identify (getpid (), NULL, &target), 0);
  assert_false (target.signals_caught & 1ull << (SIGQUIT - 1));
  signal (SIGQUIT, (void (*) (int)) abort);
  assert_int_equal (car_target_identify (getpid (), NULL, &target), 0);
  assert_true (target.signals_caught & 1ull << (SIGQUIT - 1));
  signal (SIGQUIT, SIG_DFL);
}

static void reads_a_number_of_its_status (void **state)
{
  assert_int_equal (car_target_number (getpid (), "PPid:", 10), getppid ());
  signal (SIGQUIT, (void (*) (int)) abort);
  assert_true (car_target_number (getpid (), "SigCgt:", 16) & 1ull << (SIGQUIT - 1));
  signal (SIGQUIT, SIG_DFL);
  assert_int_equal (car_target_number (getpid (), "None:", 10), 0);
  assert_int_equal (car_target_number (1 << 30, "PPid:", 10), 0);
}

static void a_user_without_a_name_is_a_number (void **state)
{
  char user[64];
  assert_true (car_target_user (0, user, sizeof user));
  assert_string_equal (user, "root");
  assert_false (car_target_user (4000000001u, user, sizeof user));
  assert_string_equal (user, "4000000001");
}

static void sees_its_own_ports_alone (void **state)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  char listens[64], wanted[64];
  int fd = socket (AF_INET, SOCK_STREAM, 0);
  assert_int_equal (bind (fd, (struct sockaddr *) &address, sizeof address), 0);
  car_listens (getpid (), listens);
  assert_string_equal (listens, ""); /* bound is not listening */
  assert_int_equal (listen (fd, 1), 0);
  assert_int_equal (getsockname (fd, (struct sockaddr *) &address, &size), 0);
  snprintf (wanted, sizeof wanted, ":%u", ntohs (address.sin_port));
  car_listens (getpid (), listens);
  assert_string_equal (listens, wanted);
  close (fd);
}

static void a_zombie_is_one_and_an_absent_pid_is_none (void **state)
{
  car_target_t target;
  siginfo_t info;
  pid_t child = fork ();
  if (child == 0)
    _exit (0);
  assert_int_equal (waitid (P_PID, (id_t) child, &info, WEXITED | WNOWAIT), 0);
  assert_int_equal (car_target_identify (child, NULL, &target), 0);
  assert_true (target.zombie);
  pid_t parent = -1;
  assert_int_equal (car_target_state (child, &parent), 'Z');
  assert_int_equal (parent, getpid ());
  assert_int_equal (waitpid (child, NULL, 0), child);
  assert_int_equal (car_target_state (child, &parent), 0);
  assert_int_equal (parent, 0);
  assert_int_equal (car_target_identify (child, NULL, &target), WEFT_E_NOT_FOUND);
  assert_int_equal (car_target_identify (0, NULL, &target), WEFT_E_NOT_FOUND);
  assert_int_equal (car_target_identify (-1, NULL, &target), WEFT_E_NOT_FOUND);
}

static void an_exec_changes_the_image (void **state)
{
  int go[2], up[2];
  char byte;
  assert_int_equal (pipe (go), 0);
  assert_int_equal (pipe (up), 0);
  pid_t child = fork ();
  if (child == 0) {
    ssize_t got = read (go[0], &byte, 1);
    (void) got;
    dup2 (up[1], 1);
    execlp ("sh", "sh", "-c", "echo up; read x", (char *) NULL);
    _exit (1);
  }
  close (up[1]);
  uint64_t before = car_target_image (child);
  assert_true (before != 0);
  assert_true (car_target_image (child) == before);
  assert_int_equal (write (go[1], "x", 1), 1);
  assert_int_equal (read (up[0], &byte, 1), 1);
  assert_true (car_target_image (child) != before);
  kill (child, SIGKILL);
  assert_int_equal (waitpid (child, NULL, 0), child);
  assert_true (car_target_image (child) == 0);
  close (go[0]), close (go[1]), close (up[0]);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (knows_this_process),
      cmocka_unit_test (sees_signal_handlers),
      cmocka_unit_test (reads_a_number_of_its_status),
      cmocka_unit_test (a_user_without_a_name_is_a_number),
      cmocka_unit_test (sees_its_own_ports_alone),
      cmocka_unit_test (a_zombie_is_one_and_an_absent_pid_is_none),
      cmocka_unit_test (an_exec_changes_the_image),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
