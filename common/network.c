/* SPDX-License-Identifier: Apache-2.0 */
#include "network.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "status.h"

#define V4_BITS 96u /* of ::ffff:0:0/96 */

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

const char *const weft_networks_private[WEFT_NETWORKS_PRIVATE] = {
    "127.0.0.0/8",    "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
    "169.254.0.0/16", "::1/128",    "fc00::/7",      "fe80::/10"};

static int is_v4 (const weft_network_t *network)
{
  return memcmp (network->ip, mapped, sizeof mapped) == 0 && network->prefix >= V4_BITS;
}

/* The first `prefix` bits are the same. */
static int same_bits (const uint8_t *a, const uint8_t *b, unsigned prefix)
{
  unsigned bytes = prefix / 8, rest = prefix % 8;
  if (memcmp (a, b, bytes) != 0)
    return 0;
  return rest == 0 || ((a[bytes] ^ b[bytes]) & (0xff00 >> rest) & 0xff) == 0;
}

int weft_network_sound (const weft_network_t *network)
{
  if (network->prefix > 128)
    return 0;
  for (unsigned bit = network->prefix; bit < 128; bit++)
    if (network->ip[bit / 8] & (0x80 >> bit % 8))
      return 0;
  return 1;
}

static int fail (char *why, size_t why_size, const char *reason)
{
  if (why_size > 0)
    snprintf (why, why_size, "%s", reason);
  return WEFT_E_MALFORMED;
}

int weft_network_parse (const char *text, weft_network_t *ret_network, char *why, size_t why_size)
{
  char address[WEFT_NETWORK_TEXT_MAX];
  weft_network_t network = {{0}, 128};
  size_t size = strcspn (text, "/");
  if (size == 0 || size >= sizeof address)
    return fail (why, why_size, "no address (write 10.0.0.0/8 or fd00::/8)");
  memcpy (address, text, size);
  address[size] = 0;
  int v4 = inet_pton (AF_INET, address, network.ip + sizeof mapped) == 1;
  if (v4)
    memcpy (network.ip, mapped, sizeof mapped);
  else if (inet_pton (AF_INET6, address, network.ip) != 1)
    return fail (why, why_size, "no address (write 10.0.0.0/8 or fd00::/8)");
  if (text[size] == '/') {
    char *end;
    const char *digits = text + size + 1;
    unsigned long prefix = *digits >= '0' && *digits <= '9' ? strtoul (digits, &end, 10) : 129;
    if (prefix > (v4 ? 32u : 128u) || *end)
      return fail (why, why_size,
                   v4 ? "the prefix lies between /0 and /32" : "the prefix lies between /0 and /128");
    network.prefix = (uint8_t) (v4 ? V4_BITS + prefix : prefix);
  }
  if (!weft_network_sound (&network))
    return fail (why, why_size, "bits are set behind the prefix");
  *ret_network = network;
  return 0;
}

void weft_network_format (const weft_network_t *network, char out[WEFT_NETWORK_TEXT_MAX])
{
  char address[INET6_ADDRSTRLEN] = "";
  int v4 = is_v4 (network);
  inet_ntop (v4 ? AF_INET : AF_INET6, v4 ? network->ip + sizeof mapped : network->ip, address,
             sizeof address);
  snprintf (out, WEFT_NETWORK_TEXT_MAX, "%s/%u", address, network->prefix - (v4 ? V4_BITS : 0u));
}

int weft_networks_hold (const weft_network_t *networks, uint32_t count, const weft_address_t *address)
{
  if (address->family != 4 && address->family != 6)
    return 0;
  for (uint32_t i = 0; i < count; i++) {
    /* ::/0 is every v6 address; those of v4 are only written as if they were. */
    int v4 = is_v4 (&networks[i]);
    if (v4 == (address->family == 4) && networks[i].prefix <= 128 &&
        same_bits (networks[i].ip, address->ip, networks[i].prefix))
      return 1;
  }
  return 0;
}
