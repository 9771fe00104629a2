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

#include <unistd.h>

#include "../../../../../instance/probe/socket_calls.h"
#include "../../../../../instance/sidecar/way_in/boundary.h"

/* A sanitizer stands in front of read and not of __read: there they are not one function, as in libc. */
#ifdef __SANITIZE_ADDRESS__
#define INTERCEPTED 1
#else
#define INTERCEPTED 0
#endif

/* The sidecar knows the names by a list of its own: it is the probe's. */
static void the_names_are_the_probes (void **state)
{
  uint32_t count;
  assert_int_equal (probe_calls_resolve (), 0);
  const probe_call_t *table = probe_calls_table (&count);
  for (uint32_t i = 0; i < count; i++)
    if (!car_boundary_has (table[i].name))
      fail_msg ("%s is hooked and not told of", table[i].name);
  for (size_t i = 0; car_boundary_names[i]; i++) {
    int found = strcmp (car_boundary_names[i], "dlopen") == 0;
    probe_call_t call;
    if (probe_call_find (car_boundary_names[i], &call) < 0)
      continue; /* this libc does not have it */
    for (uint32_t n = 0; n < count; n++)
      found |= strcmp (table[n].name, car_boundary_names[i]) == 0;
    if (!found && !(INTERCEPTED && strncmp (car_boundary_names[i], "__", 2) == 0))
      fail_msg ("%s is told of and not hooked", car_boundary_names[i]);
  }
}

static void sees_this_process (void **state)
{
  static car_boundary_t boundary;
  assert_int_equal (car_boundary_read (getpid (), &boundary), 0);
  assert_true (boundary.slots >= 1 && boundary.objects >= 1); /* this program calls close and read */
  unsigned sum = 0;
  for (unsigned i = 0; i < boundary.objects; i++)
    sum += boundary.object[i].slots;
  assert_int_equal (sum, boundary.slots);
  assert_false (boundary.uring);
  assert_int_equal (boundary.foreign, 0);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (the_names_are_the_probes),
      cmocka_unit_test (sees_this_process),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
