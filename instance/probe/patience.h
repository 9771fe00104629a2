/* SPDX-License-Identifier: Apache-2.0 */
/* patience: a client closes its socket while the answer is not there. Had it run out of
 * patience, or had it not waited? Known are two ways to wait for one socket with a limit:
 * a poll of it alone, and a read under SO_RCVTIMEO. What counts is the last wait, if
 * nothing has come since. An opaque call is told at once (opaque.h): its subtask may end
 * before the connection does. */
#ifndef PROBE_PATIENCE_H
#define PROBE_PATIENCE_H

#include "exchange.h"

/* A wait for this socket alone ran out of the time that its caller gave it. */
void probe_patience_waited (int fd);
/* A read found nothing. The caller owns no direction. */
void probe_patience_starved (probe_connection_t *self, uint32_t generation);
/* What to tell of exchanges that are open when their socket is closed. */
weft_error_t probe_patience_at_close (const probe_connection_t *self, int fd);

#endif
