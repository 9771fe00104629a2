/* SPDX-License-Identifier: Apache-2.0 */
/* guess: which protocol a stream speaks that is not HTTP/1, from the first bytes of
 * either side and from the ports. For people: nothing is decided by it, and a wrong
 * guess gives a wrong word. Pure functions, no state. */
#ifndef PROBE_GUESS_H
#define PROBE_GUESS_H

#include <stddef.h>
#include <stdint.h>

#include "../../common/protocols.h"

#define PROBE_GUESS_MAX 64 /* bytes that are looked at */

/* The first bytes that a client wrote / that a server sent unasked. NONE: they say nothing. */
weft_protocol_t probe_guess_client (const void *data, size_t size);
weft_protocol_t probe_guess_server (const void *data, size_t size);
/* By the port that the server listens on. NONE: it says nothing. */
weft_protocol_t probe_guess_port (uint16_t port);
/* Bytes in the middle of a stream: one whole message of a request, in a protocol whose
 * messages say their own length. Far less likely by accident than a first byte. */
weft_protocol_t probe_guess_message (const void *data, size_t size);

#endif
