/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>
#include <zmq.h>

#include "../../../../common/status.h"
#include "../../../../controller/service/guard.h"

static char base[64], dir[80], path[200], why[1200];
static int made;

static void count (const char *file, int is_made, void *arg)
{
  made += is_made;
}

static int setup (void **state)
{
  strcpy (base, "/tmp/weft-guard-XXXXXX");
  made = 0;
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

static void test_ipc_goes_by_uid (void **state)
{
  static const struct {
    const char *address;
    ctl_guard_verdict_t verdict;
    const char *who;
  } cases[] = {
      {"localhost:1000:1000:4242", CTL_GUARD_ADMITTED, "uid 1000 pid 4242"},
      {"localhost:0:0:1", CTL_GUARD_ADMITTED, "uid 0 pid 1"},
      {"localhost:1000:5:0", CTL_GUARD_ADMITTED, "uid 1000 pid 0"},
      {"localhost:1001:1000:1000", CTL_GUARD_FOREIGN, ""},
      {"localhost:65534:0:0", CTL_GUARD_FOREIGN, ""},
      {"localhost:4294967295:0:0", CTL_GUARD_FOREIGN, ""},
      {"a:1000:1001:0:1", CTL_GUARD_FOREIGN, ""},
      {"", CTL_GUARD_UNCLEAR, ""},
      {"localhost", CTL_GUARD_UNCLEAR, ""},
      {"1000:1000:4242", CTL_GUARD_UNCLEAR, ""},
      {":::", CTL_GUARD_UNCLEAR, ""},
      {"localhost:1000:1000:", CTL_GUARD_UNCLEAR, ""},
      {"localhost:1000:-1:4242", CTL_GUARD_UNCLEAR, ""},
      {"localhost:99999999999:1000:4242", CTL_GUARD_UNCLEAR, ""},
      {"localhost:1000:1000:4242 ", CTL_GUARD_UNCLEAR, ""},
  };
  ctl_guard_policy_t policy = {.ipc = 1, .owner = 1000, .open = 1};
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    char who[WEFT_WHO_MAX] = "before";
    ctl_guard_request_t request = {.mechanism = "NULL", .address = cases[n].address};
    assert_int_equal (ctl_guard_judge (&policy, &request, who), cases[n].verdict);
    assert_string_equal (who, cases[n].who);
  }
  char who[WEFT_WHO_MAX];
  ctl_guard_request_t request = {.mechanism = "PLAIN", .address = "localhost:1000:1000:4242"};
  assert_int_equal (ctl_guard_judge (&policy, &request, who), CTL_GUARD_UNCLEAR);
  request.mechanism = "NULL";
  policy.open = WEFT_CONNECTIONS_MAX + 1;
  assert_int_equal (ctl_guard_judge (&policy, &request, who), CTL_GUARD_FULL);
}

static void test_tcp_goes_by_key (void **state)
{
  ctl_keyring_t *ring = NULL;
  weft_key_pair_t client, instance;
  uint8_t key[32];
  char who[WEFT_WHO_MAX];
  assert_int_equal (ctl_keyring_make (dir, count, NULL, why, sizeof why), 0);
  assert_int_equal (ctl_keyring_new (dir, &ring, why, sizeof why), 0);
  assert_int_equal (weft_keys_read (at ("client.key"), 1, &client, why, sizeof why), 0);
  assert_int_equal (weft_keys_read (at ("instance.key"), 1, &instance, why, sizeof why), 0);
  ctl_guard_policy_t policy = {.keyring = ring, .owner = 1000};
  ctl_guard_request_t request = {
      .mechanism = "CURVE", .address = "10.0.0.2", .credential = key, .credential_size = sizeof key};
  assert_non_null (zmq_z85_decode (key, client.public_key));
  for (int socket = WEFT_ENDPOINT_CONTROL; socket <= WEFT_ENDPOINT_REPORTS; socket++) {
    request.socket = (weft_endpoint_t) socket;
    assert_int_equal (ctl_guard_judge (&policy, &request, who),
                      socket == WEFT_ENDPOINT_CONTROL ? CTL_GUARD_ADMITTED : CTL_GUARD_UNLISTED);
  }
  assert_non_null (zmq_z85_decode (key, instance.public_key));
  for (int socket = WEFT_ENDPOINT_CONTROL; socket <= WEFT_ENDPOINT_REPORTS; socket++) {
    request.socket = (weft_endpoint_t) socket;
    assert_int_equal (ctl_guard_judge (&policy, &request, who),
                      socket == WEFT_ENDPOINT_CONTROL ? CTL_GUARD_UNLISTED : CTL_GUARD_ADMITTED);
  }
  assert_string_equal (who, "key local");
  request.credential_size = 31;
  assert_int_equal (ctl_guard_judge (&policy, &request, who), CTL_GUARD_UNCLEAR);
  request.credential_size = 32;
  request.mechanism = "NULL"; /* no way round the keys */
  request.address = "localhost:0:0:1";
  assert_int_equal (ctl_guard_judge (&policy, &request, who), CTL_GUARD_UNCLEAR);
  key[0] ^= 1;
  request.mechanism = "CURVE";
  assert_int_equal (ctl_guard_judge (&policy, &request, who), CTL_GUARD_UNLISTED);
  ctl_keyring_destroy (&ring);
  ctl_guard_policy_t plain = {.owner = 1000};
  request.mechanism = "NULL";
  request.address = "127.0.0.1";
  assert_int_equal (ctl_guard_judge (&plain, &request, who), CTL_GUARD_ADMITTED);
  assert_string_equal (who, "tcp 127.0.0.1");
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (test_ipc_goes_by_uid, setup, teardown),
      cmocka_unit_test_setup_teardown (test_tcp_goes_by_key, setup, teardown),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
