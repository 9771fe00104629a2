/* SPDX-License-Identifier: Apache-2.0 */
/* network: an IP network, "10.0.0.0/8" or "fd00::/8", and whether an address
 * lies in it. libc only, no allocation: the probe links it. Any thread. */
#ifndef WEFT_NETWORK_H
#define WEFT_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include "limits.h"
#include "report.h"

/*  0 ip       16 bytes in network order; v4 as ::ffff:a.b.c.d, zero behind the prefix
 * 16 prefix   bits of ip that count, 0-128; of v4 96 more than written
 * 17          17 bytes, also on the wire */
typedef struct {
  uint8_t ip[16];
  uint8_t prefix;
} weft_network_t;
_Static_assert(sizeof (weft_network_t) == 17, "no padding");

#define WEFT_NETWORK_TEXT_MAX 50 /* bytes of one as text, with its end */

/* "ADDRESS/PREFIX" or "ADDRESS" alone. 0, or WEFT_E_MALFORMED with a reason in `why`: also where
 * bits behind the prefix are set, which is mostly a slip. */
int weft_network_parse (const char *text, weft_network_t *ret_network, char *why, size_t why_size);
void weft_network_format (const weft_network_t *network, char out[WEFT_NETWORK_TEXT_MAX]);
/* 1: prefix in range, nothing set behind it. For what came from elsewhere. */
int weft_network_sound (const weft_network_t *network);
/* 1: the address is an IP address and lies in one of them. Async-signal-safe. */
int weft_networks_hold (const weft_network_t *networks, uint32_t count, const weft_address_t *address);

/* What `private` means: loopback, RFC 1918, RFC 4193, link-local. */
#define WEFT_NETWORKS_PRIVATE 8
extern const char *const weft_networks_private[WEFT_NETWORKS_PRIVATE];

#endif
