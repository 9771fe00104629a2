/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../common/clocks.h"
#include "../../../../controller/task/peers.h"

static weft_address_t v4 (uint8_t last, uint16_t port)
{
  return (weft_address_t){
      .ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = last}, .port = port, .family = 4};
}

static int set_up (void **state)
{
  *state = ctl_names_new ();
  return *state ? 0 : -1;
}

static int tear_down (void **state)
{
  ctl_names_t *names = *state;
  ctl_names_destroy (&names);
  return 0;
}

/* Asked for twice it is the same text. */
static void assert_text (ctl_peers_t *self, uint32_t number, const char *wanted)
{
  const char *text = ctl_peers_text (self, number);
  assert_string_equal (text, wanted);
  assert_ptr_equal (ctl_peers_text (self, number), text);
}

static void test_addresses_and_their_texts (void **state)
{
  ctl_peers_t *self = ctl_peers_new (*state);
  weft_address_t address = v4 (5, 5432), six = {.ip = {[15] = 1}, .port = 80, .family = 6}, none = {0};
  uint32_t number = ctl_peers_address (self, &address);
  assert_text (self, number, "10.0.0.5:5432");
  assert_text (self, ctl_peers_address (self, &six), "[::1]:80");
  assert_text (self, ctl_peers_address (self, &none), "unknown peer");
  assert_text (self, 99, "unknown peer");
  assert_int_equal (ctl_peers_captures (self, number), 0);
  address.family = 6; /* the same address, seen by a dual-stack socket */
  assert_int_not_equal (ctl_peers_captured (self, &six, &address), 0);
  assert_int_equal (ctl_peers_captures (self, number), 1);
  assert_int_equal (ctl_peers_captured (self, &address, &none), 0);
  assert_int_equal (ctl_peers_captures (self, 0), 0);
  for (uint32_t i = 0; i < WEFT_ADDRESSES_MAX + 5; i++) {
    six.ip[0] = (uint8_t) (i >> 16);
    six.port = (uint16_t) i;
    ctl_peers_address (self, &six);
  }
  six.ip[1] = 77;
  assert_int_equal (ctl_peers_address (self, &six), 0); /* beyond the bound: not told apart */
  assert_int_equal (ctl_peers_address (self, &address), number);
  ctl_peers_destroy (&self);
}

/* Both ends say the same of a connection, and what is told in one is what is told one by one. */
static void test_both_ends_name_one_connection (void **state)
{
  ctl_peers_t *self = ctl_peers_new (*state);
  weft_address_t client = v4 (1, 40000), server = v4 (2, 8080), other = v4 (2, 8081), none = {0};
  uint64_t connection = 99, sent = 99;
  uint32_t number = ctl_peers_sent_to (self, &client, &server, &sent);
  assert_int_equal (number, ctl_peers_address (self, &server));
  assert_int_equal (sent, ctl_peers_connection (self, &client, &server));
  assert_int_equal (ctl_peers_captures (self, number), 0); /* asked for is not answered */
  server.family = 6;
  assert_int_equal (ctl_peers_captured (self, &client, &server), sent);
  assert_int_equal (ctl_peers_captures (self, number), 1);
  assert_int_not_equal (ctl_peers_captured (self, &client, &other), sent);
  assert_int_not_equal (ctl_peers_captured (self, &server, &client), sent);
  /* one end is not known */
  assert_int_equal (ctl_peers_sent_to (self, &none, &server, &connection), number);
  assert_int_equal (connection, 0);
  assert_int_equal (ctl_peers_sent_to (self, &client, &none, &connection), 0);
  assert_int_equal (connection, 0);
  assert_int_equal (ctl_peers_captured (self, &none, &other), 0);
  assert_int_equal (ctl_peers_captures (self, ctl_peers_address (self, &other)), 1);
  ctl_peers_destroy (&self);
}

#define T (5000 * WEFT_NS_PER_S)
#define S WEFT_NS_PER_S

static void test_bare_connections (void **state)
{
  ctl_peers_t *self = ctl_peers_new (*state);
  weft_address_t client = v4 (1, 40000), server = v4 (2, 8080), unknown = {.family = 1};
  uint64_t connection = ctl_peers_connection (self, &client, &server);
  int wanted = 9;
  uint16_t instance = 9;
  assert_int_not_equal (connection, ctl_peers_connection (self, &server, &client)); /* it has a direction */
  assert_int_equal (ctl_peers_connection (self, &client, &unknown), 0);
  assert_int_equal (ctl_peers_find_bare (self, connection, T, &wanted, &instance), 0);
  ctl_peers_bare (self, connection, WEFT_REASON_UNMATCHED, 3, T);
  assert_int_equal (ctl_peers_find_bare (self, connection, T, &wanted, &instance), 1);
  assert_int_equal (wanted, 0);
  assert_int_equal (instance, 3);
  ctl_peers_bare (self, connection, WEFT_REASON_UNPROVEN, 3, T);
  ctl_peers_bare (self, connection, WEFT_REASON_UNMATCHED, 3, T); /* one reason that counts is enough */
  assert_int_equal (ctl_peers_find_bare (self, connection, T, &wanted, &instance), 1);
  assert_int_equal (wanted, 1);
  ctl_peers_bare (self, 0, WEFT_REASON_UNPROVEN, 3, T);
  assert_int_equal (ctl_peers_find_bare (self, 0, T, &wanted, &instance), 0);
  /* many more than fit: bounded, and the latest are there */
  for (uint32_t i = 0; i < 4 * WEFT_BARE_MAX; i++) {
    client.port = (uint16_t) i;
    client.ip[14] = (uint8_t) (i >> 16);
    connection = ctl_peers_connection (self, &client, &server);
    ctl_peers_bare (self, connection, WEFT_REASON_UNPROVEN, 4, T);
    assert_int_equal (ctl_peers_find_bare (self, connection, T, &wanted, &instance), 1);
  }
  ctl_peers_destroy (&self);
}

static int is_bare (const ctl_peers_t *self, uint64_t connection, uint64_t wall_ns)
{
  int wanted;
  uint16_t instance;
  return ctl_peers_find_bare (self, connection, wall_ns, &wanted, &instance);
}

/* The client's port is used again by somebody who is not under weft, and then again by an instance. */
static void test_a_port_that_is_used_again (void **state)
{
  const struct {
    uint8_t reason;
    uint64_t wall_ns;
  } said[4] = {{WEFT_REASON_UNPROVEN, T},
               {WEFT_REASON_NONE, T + 10 * S},
               {WEFT_REASON_UNPROVEN, T + 100 * S},
               {WEFT_REASON_NONE, T + 110 * S}};
  static const uint8_t orders[][4] = {{0, 1, 2, 3}, {1, 0, 3, 2}, {3, 2, 1, 0}, {2, 3, 0, 1}, {0, 1, 3, 2}};
  weft_address_t client = v4 (1, 40000), server = v4 (2, 8080);
  for (size_t n = 0; n < sizeof orders / sizeof *orders; n++) {
    ctl_peers_t *self = ctl_peers_new (*state);
    uint64_t connection = ctl_peers_connection (self, &client, &server);
    for (int k = 0; k < 4; k++)
      ctl_peers_bare (self, connection, said[orders[n][k]].reason, 3, said[orders[n][k]].wall_ns);
    assert_int_equal (is_bare (self, connection, T - 5 * S), 0);
    assert_int_equal (is_bare (self, connection, T), 1);
    assert_int_equal (is_bare (self, connection, T + 9 * S), 1);
    assert_int_equal (is_bare (self, connection, T + 50 * S), 0);
    assert_int_equal (is_bare (self, connection, T + 105 * S), 1);
    assert_int_equal (is_bare (self, connection, T + 120 * S), 0);
    ctl_peers_destroy (&self);
  }
}

/* An idle instance does not see its connections close. */
static void test_an_idle_instance_says_it_anew (void **state)
{
  weft_address_t client = v4 (1, 40000), server = v4 (2, 8080);
  ctl_peers_t *self = ctl_peers_new (*state);
  uint64_t connection = ctl_peers_connection (self, &client, &server);
  ctl_peers_bare (self, connection, WEFT_REASON_UNPROVEN, 3, T);
  ctl_peers_told (self, 3, T + 10 * S);
  assert_int_equal (is_bare (self, connection, T + 50 * S), 1);
  ctl_peers_idle (self, 3);
  assert_int_equal (is_bare (self, connection, T + 10 * S), 1);
  assert_int_equal (is_bare (self, connection, T + 50 * S), 0);
  ctl_peers_bare (self, connection, WEFT_REASON_UNPROVEN, 3,
                  T + 60 * S); /* the same connection, under the next instruction */
  assert_int_equal (is_bare (self, connection, T + 70 * S), 1);
  assert_int_equal (is_bare (self, connection, T + 50 * S), 0);
  ctl_peers_destroy (&self);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown (test_addresses_and_their_texts, set_up, tear_down),
      cmocka_unit_test_setup_teardown (test_both_ends_name_one_connection, set_up, tear_down),
      cmocka_unit_test_setup_teardown (test_bare_connections, set_up, tear_down),
      cmocka_unit_test_setup_teardown (test_a_port_that_is_used_again, set_up, tear_down),
      cmocka_unit_test_setup_teardown (test_an_idle_instance_says_it_anew, set_up, tear_down),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
