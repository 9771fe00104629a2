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

#include "../../../common/endpoint.h"
#include "../../../common/status.h"

static void addresses (void **state)
{
  static const struct {
    const char *base;
    weft_endpoint_t which;
    const char *want;
  } row[] = {
      {"ipc:///run/user/1000/weft", WEFT_ENDPOINT_CONTROL, "ipc:///run/user/1000/weft/control"},
      {"ipc:///run/weft/", WEFT_ENDPOINT_INSTRUCTIONS, "ipc:///run/weft/instructions"},
      {"ipc:///run/weft", WEFT_ENDPOINT_REPORTS, "ipc:///run/weft/reports"},
      {"tcp://10.0.0.7:7300", WEFT_ENDPOINT_CONTROL, "tcp://10.0.0.7:7300"},
      {"tcp://*:7300", WEFT_ENDPOINT_INSTRUCTIONS, "tcp://*:7301"},
      {"tcp://[::1]:7300", WEFT_ENDPOINT_REPORTS, "tcp://[::1]:7302"},
      {"tcp://host:65533", WEFT_ENDPOINT_REPORTS, "tcp://host:65535"},
  };
  for (size_t i = 0; i < sizeof (row) / sizeof (row[0]); i++) {
    char out[WEFT_ENDPOINT_MAX], why[128] = "";
    assert_int_equal (weft_endpoint (row[i].base, row[i].which, out, why, sizeof (why)), 0);
    assert_string_equal (out, row[i].want);
  }
}

static void refusals (void **state)
{
  static const struct {
    const char *base;
    int status;
    const char *why;
  } row[] = {
      {"", WEFT_E_MALFORMED, "'' is neither ipc://DIRECTORY nor tcp://HOST:PORT"},
      {"http://a:1", WEFT_E_MALFORMED, "'http://a:1' is neither ipc://DIRECTORY nor tcp://HOST:PORT"},
      {"ipc://weft", WEFT_E_MALFORMED, "'ipc://weft' is no absolute directory"},
      {"ipc://@weft", WEFT_E_MALFORMED, "'ipc://@weft' is no absolute directory"},
      {"ipc://", WEFT_E_MALFORMED, "'ipc://' is no absolute directory"},
      {"tcp://host", WEFT_E_MALFORMED, "'tcp://host' is no tcp://HOST:PORT"},
      {"tcp://:1", WEFT_E_MALFORMED, "'tcp://:1' is no tcp://HOST:PORT"},
      {"tcp://::1:7300", WEFT_E_MALFORMED, "'tcp://::1:7300' is no tcp://HOST:PORT"},
      {"tcp://host:1/x", WEFT_E_MALFORMED, "'tcp://host:1/x' is no tcp://HOST:PORT"},
      {"tcp://host:", WEFT_E_RANGE, "port in 'tcp://host:' is not in 1-65533 (the next two are used too)"},
      {"tcp://host:0", WEFT_E_RANGE, "port in 'tcp://host:0' is not in 1-65533 (the next two are used too)"},
      {"tcp://host:65534", WEFT_E_RANGE,
       "port in 'tcp://host:65534' is not in 1-65533 (the next two are used too)"},
      {"tcp://host:4294967297", WEFT_E_RANGE,
       "port in 'tcp://host:4294967297' is not in 1-65533 (the next two are used too)"},
  };
  for (size_t i = 0; i < sizeof (row) / sizeof (row[0]); i++) {
    char out[WEFT_ENDPOINT_MAX] = "untouched", why[128] = "";
    int status = weft_endpoint (row[i].base, WEFT_ENDPOINT_CONTROL, out, why, sizeof (why));
    if (status != row[i].status)
      fail_msg ("'%s' gives %d", row[i].base, status);
    assert_string_equal (why, row[i].why);
    assert_string_equal (out, "untouched");
  }
}

/* sockaddr_un holds 107 bytes; "/instructions" is 13 of them. */
static void ipc_paths_have_a_bound (void **state)
{
  char base[300], out[WEFT_ENDPOINT_MAX], why[160] = "";
  memset (base, 'a', sizeof (base));
  memcpy (base, "ipc:///", 7);
  base[6 + 94] = 0;
  assert_int_equal (weft_endpoint (base, WEFT_ENDPOINT_INSTRUCTIONS, out, why, sizeof (why)), 0);
  assert_int_equal (strlen (out), 6 + 107);
  base[6 + 94] = 'a';
  base[6 + 95] = 0;
  assert_int_equal (weft_endpoint (base, WEFT_ENDPOINT_CONTROL, out, why, sizeof (why)), WEFT_E_RANGE);
  assert_string_equal (why,
                       "directory of 95 bytes is too long for a socket (94 at most); set WEFT_CONTROLLER "
                       "to a shorter one");
  base[6 + 95] = 'a';
  base[299] = 0;
  assert_int_equal (weft_endpoint (base, WEFT_ENDPOINT_CONTROL, out, why, sizeof (why)), WEFT_E_RANGE);
}

static void default_follows_the_environment (void **state)
{
  char out[WEFT_ENDPOINT_MAX] = "untouched";
  assert_int_equal (setenv ("WEFT_CONTROLLER", "tcp://127.0.0.1:7300", 1), 0);
  assert_int_equal (setenv ("XDG_RUNTIME_DIR", "/run/here", 1), 0);
  assert_int_equal (weft_endpoint_default (out), 0);
  assert_string_equal (out, "tcp://127.0.0.1:7300");
  assert_int_equal (setenv ("WEFT_CONTROLLER", "", 1), 0);
  assert_int_equal (weft_endpoint_default (out), 0);
  assert_string_equal (out, "ipc:///run/here/weft");
  unsetenv ("XDG_RUNTIME_DIR");
  assert_int_equal (weft_endpoint_default (out), 0);
  assert_true (strncmp (out, "ipc:///run/user/", 16) == 0 || strncmp (out, "ipc:///tmp/weft-", 16) == 0);
  assert_int_equal (setenv ("WEFT_CONTROLLER", "nonsense", 1), 0);
  memcpy (out, "untouched", 10);
  assert_int_equal (weft_endpoint_default (out), WEFT_E_MALFORMED);
  assert_string_equal (out, "untouched");
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (addresses),
      cmocka_unit_test (refusals),
      cmocka_unit_test (ipc_paths_have_a_bound),
      cmocka_unit_test (default_follows_the_environment),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
