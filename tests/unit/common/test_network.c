/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../../../common/network.h"
#include "../../../common/status.h"

static weft_address_t address (const char *text)
{
  weft_address_t out = {.family = 4, .ip = {[10] = 0xff, [11] = 0xff}};
  if (inet_pton (AF_INET, text, out.ip + 12) != 1) {
    out.family = 6;
    assert_int_equal (inet_pton (AF_INET6, text, out.ip), 1);
  }
  return out;
}

static weft_network_t network (const char *text)
{
  weft_network_t out;
  char why[100];
  assert_int_equal (weft_network_parse (text, &out, why, sizeof why), 0);
  return out;
}

static void test_texts (void **state)
{
  static const char *const same[] = {"10.0.0.0/8",    "192.168.7.0/24", "0.0.0.0/0", "255.255.255.255/32",
                                     "172.16.0.0/12", "fd00::/8",       "::/0",      "::1/128",
                                     "2001:db8::/33", "10.1.2.3/32"};
  char out[WEFT_NETWORK_TEXT_MAX];
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    weft_network_t one = network (same[i]);
    weft_network_format (&one, out);
    assert_string_equal (out, same[i]);
    assert_true (weft_network_sound (&one));
  }
  weft_network_t one = network ("10.1.2.3");
  weft_network_format (&one, out);
  assert_string_equal (out, "10.1.2.3/32");
}

static void test_bad_texts (void **state)
{
  static const char *const bad[] = {"",
                                    "/8",
                                    "10.0.0.0/33",
                                    "10.0.0.0/",
                                    "10.0.0.0/-1",
                                    "10.0.0.0/8x",
                                    "10.0.0/8",
                                    "10.1.0.0/8",
                                    "fd00::/129",
                                    "fd00::1/64",
                                    "host/8",
                                    "10.0.0.0/ 8",
                                    "10.0.0.0//8",
                                    "1.2.3.4.5",
                                    "10.0.0.0/+8",
                                    "fd00::/99999999999999999999"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    weft_network_t out;
    char why[100] = "";
    memset (&out, 0x5a, sizeof out);
    if (weft_network_parse (bad[i], &out, why, sizeof why) != WEFT_E_MALFORMED)
      fail_msg ("'%s' is taken", bad[i]);
    assert_true (*why && out.prefix == 0x5a);
  }
}

static void assert_holds (const char *net, const char *ip, int expected)
{
  weft_network_t one = network (net);
  weft_address_t which = address (ip);
  if (weft_networks_hold (&one, 1, &which) != expected)
    fail_msg ("%s in %s is not %d", ip, net, expected);
}

static void test_holds (void **state)
{
  assert_holds ("10.0.0.0/8", "10.255.255.255", 1);
  assert_holds ("10.0.0.0/8", "11.0.0.0", 0);
  assert_holds ("172.16.0.0/12", "172.31.255.255", 1);
  assert_holds ("172.16.0.0/12", "172.32.0.0", 0);
  assert_holds ("192.168.7.0/24", "192.168.7.9", 1);
  assert_holds ("192.168.7.0/24", "192.168.8.9", 0);
  assert_holds ("192.168.7.128/25", "192.168.7.127", 0);
  assert_holds ("192.168.7.128/25", "192.168.7.128", 1);
  assert_holds ("10.1.2.3", "10.1.2.3", 1);
  assert_holds ("10.1.2.3", "10.1.2.2", 0);
  assert_holds ("0.0.0.0/0", "8.8.8.8", 1);
  assert_holds ("fd00::/8", "fd12::1", 1);
  assert_holds ("fd00::/8", "fe00::1", 0);
  assert_holds ("2001:db8::/33", "2001:db8:7fff::", 1);
  assert_holds ("2001:db8::/33", "2001:db8:8000::", 0);
  // A v4 address is none of v6, however it is written down.
  assert_holds ("::/0", "8.8.8.8", 0);
  assert_holds ("0.0.0.0/0", "2001:db8::1", 0);
}

/* Every prefix of random networks, against a comparison bit by bit. */
static void test_every_prefix (void **state)
{
  unsigned seed = 3;
  for (int round = 0; round < 20000; round++) {
    weft_network_t net = {.prefix = (uint8_t) (rand_r (&seed) % 129)};
    weft_address_t ip = {.family = 6};
    int same = 1;
    for (unsigned bit = 0; bit < 128; bit++) {
      int a = rand_r (&seed) >> 7 & 1, b = rand_r (&seed) % 40 ? a : !a;
      if (bit < net.prefix) {
        net.ip[bit / 8] |= (uint8_t) (a << (7 - bit % 8));
        same &= a == b;
      }
      ip.ip[bit / 8] |= (uint8_t) (b << (7 - bit % 8));
    }
    assert_true (weft_network_sound (&net));
    assert_int_equal (weft_networks_hold (&net, 1, &ip), same);
  }
}

static void test_several_and_none (void **state)
{
  weft_network_t nets[] = {network ("10.0.0.0/8"), network ("fd00::/8")};
  weft_address_t ip = address ("fd00::7"), local = {.family = 1}, unknown = {0};
  assert_int_equal (weft_networks_hold (nets, 2, &ip), 1);
  assert_int_equal (weft_networks_hold (nets, 1, &ip), 0);
  assert_int_equal (weft_networks_hold (nets, 0, &ip), 0);
  assert_int_equal (weft_networks_hold (nets, 2, &local), 0);
  assert_int_equal (weft_networks_hold (nets, 2, &unknown), 0);
  nets[1].prefix = 200; // from a page that may hold anything
  assert_int_equal (weft_networks_hold (nets, 2, &ip), 0);
  assert_false (weft_network_sound (&nets[1]));
}

/* What `private` is, in both of its forms. */
static void test_private (void **state)
{
  weft_network_t nets[WEFT_NETWORKS_PRIVATE];
  for (int n = 0; n < WEFT_NETWORKS_PRIVATE; n++)
    nets[n] = network (weft_networks_private[n]);
  static const char *const in[] = {"127.9.9.9",   "10.1.2.3", "172.31.0.1", "192.168.5.5",
                                   "169.254.1.1", "::1",      "fd00::1",    "fe80::1"};
  static const char *const out[] = {"172.32.0.1", "192.169.0.1", "100.64.0.1",
                                    "8.8.8.8",    "2001:db8::1", "::2"};
  for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
    weft_address_t ip = address (in[i]);
    assert_int_equal (weft_networks_hold (nets, WEFT_NETWORKS_PRIVATE, &ip), 1);
  }
  for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
    weft_address_t ip = address (out[i]);
    assert_int_equal (weft_networks_hold (nets, WEFT_NETWORKS_PRIVATE, &ip), 0);
  }
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (test_texts),
      cmocka_unit_test (test_bad_texts),
      cmocka_unit_test (test_holds),
      cmocka_unit_test (test_every_prefix),
      cmocka_unit_test (test_several_and_none),
      cmocka_unit_test (test_private),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
