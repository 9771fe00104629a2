/* SPDX-License-Identifier: Apache-2.0 */
/* opaque: what a subtask asks of peers that are not spoken to in HTTP/1.
 *
 * A connection of ours that was given up has calls: what is written until something is
 * read (one turn), from the first write to the last byte before the next one. They are
 * added up in a sum: one for each (subtask, peer, protocol, error), whichever connections
 * it uses. A subtask has a list of its sums, so that its end finds them without a look at
 * any connection; a connection remembers the sum that its last call went to.
 *
 *   sum    (none) ──take_sum──▶ in the list of a subtask ──tell──▶ (none)
 *   call   (none) ──ask──▶ waiting ──heard──▶ answered
 *                           │  ▲ │ ├──fail──▶ in another sum, that of its error
 *                     lapse ▼  │ │ └──▶ the end of its subtask or connection: a call that
 *                          lapsed┘      nobody waited for, without wait and error
 *
 *  O1  a sum is told once, by whoever takes it out of its list: the subtask's end, or the
 *      instruction's (then what waits is told as open). What is answered later is not told
 *  O2  a sum is touched only by who has set its lock bit, with the life it was found under;
 *      nobody waits in there, nobody calls the system but for the clock
 *  O3  a sum that comes into a list after its subtask's end is told by who put it there
 *  O4  a connection that another subtask uses before the first one's answer has come is
 *      shared: nobody can say whose bytes come. It is not followed any further, counted
 *  O5  outside of a known subtask nothing is kept. Names that are looked up never are
 *  O6  a client that gave up waiting may wait again: the call stands in the sum of timeouts,
 *      with the wait until it last gave up, and goes back if something comes after all.
 *      What is written meanwhile (a farewell) belongs to it
 *  O7  a last write before the close that nobody waited for is a call if the connection was
 *      never answered; else it is a farewell, of which only the bytes count
 *
 * Any thread; fixed memory, no allocation, no lock that blocks, errno kept. */
#ifndef PROBE_OPAQUE_H
#define PROBE_OPAQUE_H

#include "exchange.h"

#define PROBE_EPHEMERAL_FIRST                                                                                \
  32768 /* ports from here on the kernel gives to clients, unless told otherwise */

#define PROBE_SUMS_MAX                                                                                       \
  4096 /* of all subtasks that are open at once: 640 KiB, touched lazily; beyond: TABLE_FULL */

/* Before a write of `size` bytes on a given-up connection of ours. 1: it belongs to a
 * call, and probe_opaque_wrote is due if not all of it leaves. 0: nobody's (O5). */
int probe_opaque_ask (probe_connection_t *self, const void *data, size_t first_size, size_t size);
/* `result` and `error` (errno) of the call whose write was asked for. */
void probe_opaque_wrote (probe_connection_t *self, uint32_t generation, size_t size, ssize_t result,
                         int error);
/* Result and errno of a read on it. */
void probe_opaque_heard (probe_connection_t *self, uint32_t generation, ssize_t result, int error);
/* Who waits for something on it has run out of patience. */
void probe_opaque_lapse (probe_connection_t *self, uint32_t generation);
/* Bytes by which the protocol may be known; direction as of a connection. */
void probe_opaque_name (probe_connection_t *self, probe_direction_t direction, const void *data, size_t size);
/* A connection from before the attach, of which nothing is known: are these bytes, all that
 * is written after a turn, one message of a client to a server that is not spoken? Then it
 * is a client's, and the caller gives it up. Bytes in the middle of an HTTP body do not say
 * their own length, and are not written towards a port that clients are given. */
int probe_opaque_recognise (probe_connection_t *self, const void *data, size_t size);
/* weft_protocol_t, never NONE. */
uint8_t probe_opaque_protocol (const probe_connection_t *self);
/* The same of what nobody has spoken with yet. */
uint8_t probe_opaque_at (const weft_address_t *service);
/* The connection is at its end. */
void probe_opaque_closing (probe_connection_t *self);

/* One call that is over already: a lookup, a connect that failed. */
void probe_opaque_once (const probe_context_t *of, uint8_t protocol, const weft_address_t *peer,
                        weft_error_t error, uint64_t start_ns);

/* The subtask has been closed: its sums are told. `open`: the instruction ends first. */
void probe_opaque_finish (probe_handle_t context, int open);
/* All that are left (parked thread). */
void probe_opaque_flush (void);
/* Forgets all of them (forked child). */
void probe_opaque_reset (void);

#endif
