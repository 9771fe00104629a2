/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../../../controller/task/peers.h"

static weft_address_t v4 (uint8_t last, uint16_t port)
{
  return (weft_address_t){
      .ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = last}, .port = port, .family = 4};
}

static void assert_text (const ctl_peers_t *self, uint32_t number, const char *wanted)
{
  char text[CTL_PEER_TEXT_MAX];
  ctl_peers_text (self, number, text);
  assert_string_equal (text, wanted);
}

static void test_addresses_and_their_texts (void **state)
{
  (void) state;
  ctl_peers_t *self = ctl_peers_new ();
  weft_address_t address = v4 (5, 5432), six = {.ip = {[15] = 1}, .port = 80, .family = 6}, none = {0};
  uint32_t number = ctl_peers_address (self, &address);
  assert_text (self, number, "10.0.0.5:5432");
  assert_text (self, ctl_peers_address (self, &six), "[::1]:80");
  assert_text (self, ctl_peers_address (self, &none), "unknown peer");
  assert_text (self, 99, "unknown peer");
  assert_int_equal (ctl_peers_captures (self, number), 0);
  address.family = 6; /* the same address, seen by a dual-stack socket */
  ctl_peers_captured_at (self, &address);
  assert_int_equal (ctl_peers_captures (self, number), 1);
  ctl_peers_captured_at (self, &none);
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

static void test_bare_connections (void **state)
{
  (void) state;
  ctl_peers_t *self = ctl_peers_new ();
  weft_address_t client = v4 (1, 40000), server = v4 (2, 8080), unknown = {.family = 1};
  uint64_t connection = ctl_peers_connection (self, &client, &server);
  int wanted = 9;
  uint16_t instance = 9;
  assert_int_not_equal (connection, ctl_peers_connection (self, &server, &client)); /* it has a direction */
  assert_int_equal (ctl_peers_connection (self, &client, &unknown), 0);
  assert_int_equal (ctl_peers_find_bare (self, connection, &wanted, &instance), 0);
  ctl_peers_bare (self, connection, WEFT_REASON_UNMATCHED, 3);
  assert_int_equal (ctl_peers_find_bare (self, connection, &wanted, &instance), 1);
  assert_int_equal (wanted, 0);
  assert_int_equal (instance, 3);
  ctl_peers_bare (self, connection, WEFT_REASON_UNPROVEN, 3);
  ctl_peers_bare (self, connection, WEFT_REASON_UNMATCHED, 3); /* one reason that counts is enough */
  assert_int_equal (ctl_peers_find_bare (self, connection, &wanted, &instance), 1);
  assert_int_equal (wanted, 1);
  ctl_peers_bare (self, 0, WEFT_REASON_UNPROVEN, 3);
  assert_int_equal (ctl_peers_find_bare (self, 0, &wanted, &instance), 0);
  /* many more than fit: bounded, and the latest are there */
  for (uint32_t i = 0; i < 4 * WEFT_BARE_MAX; i++) {
    client.port = (uint16_t) i;
    client.ip[14] = (uint8_t) (i >> 16);
    connection = ctl_peers_connection (self, &client, &server);
    ctl_peers_bare (self, connection, WEFT_REASON_UNPROVEN, 4);
    assert_int_equal (ctl_peers_find_bare (self, connection, &wanted, &instance), 1);
  }
  ctl_peers_destroy (&self);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_addresses_and_their_texts),
      cmocka_unit_test (test_bare_connections),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
