/* SPDX-License-Identifier: Apache-2.0 */
/* peers: what the reports tell about addresses: where instances capture, and
 * which connections carry requests of ours without an id. Bounded. One thread. */
#ifndef CTL_PEERS_H
#define CTL_PEERS_H

#include "../../common/report.h"
#include "names.h"

typedef struct ctl_peers_t ctl_peers_t;

/* Borrows the pool that texts of addresses live in. */
ctl_peers_t *ctl_peers_new (ctl_names_t *names);
void ctl_peers_destroy (ctl_peers_t **self_p);

/* ---- server addresses --------------------------------------------------- */
/* The number of a server's address, made at its first use; 0: not known, or
 * beyond WEFT_ADDRESSES_MAX. */
uint32_t ctl_peers_address (ctl_peers_t *self, const weft_address_t *address);
/* An instance received a request at `local`, its own address; returns the connection (below). */
uint64_t ctl_peers_captured (ctl_peers_t *self, const weft_address_t *peer, const weft_address_t *local);
/* Number of the server's address and the connection in one. */
uint32_t ctl_peers_sent_to (ctl_peers_t *self, const weft_address_t *local, const weft_address_t *peer,
                            uint64_t *ret_connection);
int ctl_peers_captures (const ctl_peers_t *self, uint32_t number);
/* "10.0.0.5:5432", "[::1]:80", "unknown peer"; borrowed from the pool. NULL: out of memory. */
const char *ctl_peers_text (ctl_peers_t *self, uint32_t number);

/* ---- bare connections --------------------------------------------------- */
/* Names a connection by both ends, as the sender sees it; never 0 unless one
 * end is not known (unix, none): such a connection cannot be found again. */
uint64_t ctl_peers_connection (const ctl_peers_t *self, const weft_address_t *sender,
                               const weft_address_t *receiver);
/* Times are wall-clock. Reason NONE: it ended then. In whatever order they come. */
void ctl_peers_bare (ctl_peers_t *self, uint64_t connection, uint8_t reason, uint16_t instance,
                     uint64_t wall_ns);
/* A batch of this instance reaches up to then. */
void ctl_peers_told (ctl_peers_t *self, uint16_t instance, uint64_t wall_ns);
/* It is idle since its last batch: what it says of connections later it says anew. */
void ctl_peers_idle (ctl_peers_t *self, uint16_t instance);
/* 1: found: the connection was bare then, give or take WEFT_BARE_SLACK_MS. *ret_wanted 1 if one of its
 * reasons is other than UNMATCHED. */
int ctl_peers_find_bare (const ctl_peers_t *self, uint64_t connection, uint64_t wall_ns, int *ret_wanted,
                         uint16_t *ret_instance);

#endif
