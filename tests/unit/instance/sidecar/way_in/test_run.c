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

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../../../instance/sidecar/way_in/run.h"

static char directory[64];

static int set_up (void **state)
{
  snprintf (directory, sizeof directory, "/tmp/weft-test-run-XXXXXX");
  return mkdtemp (directory) ? 0 : -1;
}

static int tear_down (void **state)
{
  return rmdir (directory);
}

static const char *put (const void *data, size_t size, mode_t mode)
{
  static char path[96];
  snprintf (path, sizeof path, "%s/program", directory);
  int fd = open (path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  assert_int_equal (write (fd, data, size), size);
  fchmod (fd, mode);
  close (fd);
  return path;
}

static void expect (const void *data, size_t size, mode_t mode, int code, const char *reason)
{
  char why[512] = "";
  const char *path = put (data, size, mode);
  assert_int_equal (car_run_check (path, why, sizeof why), code);
  assert_non_null (strstr (why, reason));
  unlink (path);
}

typedef struct {
  Elf64_Ehdr head;
  Elf64_Phdr segment;
  char loader[64];
} program_t;

static program_t make_program (const char *loader)
{
  program_t program;
  memset (&program, 0, sizeof program);
  memcpy (program.head.e_ident, ELFMAG, SELFMAG);
  program.head.e_ident[EI_CLASS] = ELFCLASS64;
  program.head.e_machine = EM_X86_64;
  program.head.e_phoff = sizeof program.head;
  program.head.e_phentsize = sizeof program.segment;
  program.head.e_phnum = 1;
  program.segment.p_type = loader ? PT_INTERP : PT_LOAD;
  program.segment.p_offset = offsetof (program_t, loader);
  program.segment.p_filesz = loader ? strlen (loader) + 1 : 0;
  snprintf (program.loader, sizeof program.loader, "%s", loader ? loader : "");
  return program;
}

static void programs_that_can_carry_a_probe (void **state)
{
  char why[512] = "";
  program_t program = make_program ("/lib64/ld-linux-x86-64.so.2");
  expect (&program, sizeof program, 0755, 0, "");
  expect ("#!/bin/sh\n", 10, 0755, 0, "");
  assert_int_equal (car_run_check ("/proc/self/exe", why, sizeof why), 0);
}

static void programs_that_cannot (void **state)
{
  program_t program = make_program (NULL);
  expect (&program, sizeof program, 0755, CAR_RUN_CANNOT, "statically linked");
  program = make_program ("/lib/ld-musl-x86_64.so.1");
  expect (&program, sizeof program, 0755, CAR_RUN_CANNOT, "ld-musl");
  program = make_program ("/lib64/ld-linux-x86-64.so.2");
  program.head.e_ident[EI_CLASS] = ELFCLASS32;
  expect (&program, sizeof program, 0755, CAR_RUN_CANNOT, "32-bit");
  program.head.e_ident[EI_CLASS] = ELFCLASS64;
  program.head.e_machine = EM_AARCH64;
  expect (&program, sizeof program, 0755, CAR_RUN_CANNOT, "x86-64");
  expect ("hello", 5, 0755, CAR_RUN_CANNOT, "#!");
  expect ("", 0, 0755, CAR_RUN_CANNOT, "#!");
  program = make_program ("/lib64/ld-linux-x86-64.so.2");
  program.segment.p_offset = 1 << 20; /* past the end */
  expect (&program, sizeof program, 0755, CAR_RUN_CANNOT, "x86-64");
}

static void rights_are_not_gained_under_a_probe (void **state)
{
  program_t program = make_program ("/lib64/ld-linux-x86-64.so.2");
  char why[512] = "";
  if (geteuid () != 0) { /* its own owner's program gains nothing */
    expect (&program, sizeof program, 04755, 0, "");
    return;
  }
  const char *path = put (&program, sizeof program, 0755);
  assert_int_equal (chown (path, 12345, 0), 0);
  assert_int_equal (chmod (path, 04755), 0);
  assert_int_equal (car_run_check (path, why, sizeof why), CAR_RUN_CANNOT);
  assert_non_null (strstr (why, "set-user-id"));
  unlink (path);
}

static void commands_are_found_as_by_a_shell (void **state)
{
  char out[256], search[256];
  assert_int_equal (car_run_find ("sh", "/nowhere:/bin:/usr/bin", out, sizeof out), 0);
  assert_string_equal (out, "/bin/sh");
  assert_int_equal (car_run_find ("no-such-command", "/bin:/usr/bin", out, sizeof out), CAR_RUN_NOT_FOUND);
  assert_int_equal (car_run_find ("", "/bin", out, sizeof out), CAR_RUN_NOT_FOUND);
  assert_int_equal (car_run_find ("/no/such", "/bin", out, sizeof out), CAR_RUN_NOT_FOUND);
  assert_int_equal (car_run_find ("/tmp", "/bin", out, sizeof out), CAR_RUN_NOT_FOUND);
  const char *path = put ("x", 1, 0600);
  snprintf (search, sizeof search, "/nowhere:%s", directory);
  assert_int_equal (car_run_find ("program", search, out, sizeof out), CAR_RUN_CANNOT);
  assert_int_equal (car_run_find (path, search, out, sizeof out), CAR_RUN_CANNOT);
  unlink (path);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (programs_that_can_carry_a_probe),
      cmocka_unit_test (programs_that_cannot),
      cmocka_unit_test (rights_are_not_gained_under_a_probe),
      cmocka_unit_test (commands_are_found_as_by_a_shell),
  };
  return cmocka_run_group_tests (tests, set_up, tear_down);
}
