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
#include <unistd.h>

#include "../../../../../common/status.h"
#include "../../../../../instance/sidecar/way_in/library.h"

#define SIZE 200 /* of a file */

/* A file whose program headers begin at `at`: one that loads it whole. */
static int read_file_with (uint64_t at, char *why, size_t why_size)
{
  uint8_t bytes[SIZE] = {0};
  Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
                     .e_machine = EM_X86_64,
                     .e_phentsize = sizeof (Elf64_Phdr),
                     .e_phnum = 1,
                     .e_phoff = at};
  Elf64_Phdr segment = {.p_type = PT_LOAD, .p_filesz = SIZE, .p_memsz = SIZE};
  memcpy (bytes, &head, sizeof head);
  if (at <= SIZE - sizeof segment)
    memcpy (bytes + at, &segment, sizeof segment);
  char path[] = "/tmp/weft-test-XXXXXX";
  int fd = mkstemp (path);
  assert_true (fd >= 0);
  assert_int_equal (write (fd, bytes, SIZE), SIZE);
  close (fd);
  car_library_t library;
  int status = car_library_read (path, &library, why, why_size);
  unlink (path);
  return status;
}

/* Read only within the file: what is behind it shows under a sanitizer. */
static void headers_behind_the_end_are_none (void **state)
{
  const uint64_t places[] = {64, SIZE - 56, SIZE - 55, SIZE - 1, SIZE, SIZE + 1, 3000, 4096};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    char why[400] = "";
    assert_int_equal (read_file_with (places[i], why, sizeof why), WEFT_E_MALFORMED);
    assert_non_null (strstr (why, "is not usable"));
    assert_non_null (strstr (why, "; ")); /* reason; remedy */
  }
}

static void a_library_that_is_no_probe_is_refused (void **state)
{
  car_library_t library;
  char why[400] = "";
  assert_true (car_library_read ("/proc/self/exe", &library, why, sizeof why) < 0);
  assert_non_null (strstr (why, "/proc/self/exe is not usable"));
  assert_int_equal (car_library_read ("/nowhere/at/all", &library, why, sizeof why), WEFT_E_IO);
  assert_non_null (strstr (why, "No such file"));
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (headers_behind_the_end_are_none),
      cmocka_unit_test (a_library_that_is_no_probe_is_refused),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
