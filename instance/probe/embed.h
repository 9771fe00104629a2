/* SPDX-License-Identifier: Apache-2.0 */
/* embed: the client side of a connection. Decides at the blank line of each
 * request head what the request is to carry, inserts it, and keeps the account
 * of what the kernel took of it (C1, C3, C4, C7). */
#ifndef PROBE_EMBED_H
#define PROBE_EMBED_H

#include "exchange.h"

#define PROBE_EMBED_FIELDS_MAX 64   /* servers refuse at 100 fields */
#define PROBE_EMBED_HEAD_MAX   6144 /* bytes; servers refuse at 8 KiB */

/* The caller owns the outbound direction. The write's app_* fields are set;
 * these bytes are about to leave. */
void probe_embed_before (probe_connection_t *self, probe_write_t *write);
/* Puts the rest of a cut insert before the caller's bytes (C4), in any state. */
void probe_embed_pending (probe_connection_t *self, probe_write_t *write);
/* What a result means: bytes of the application that left; edits of which something
 * did; and of the last of these how much, if not all (0: all). */
typedef struct {
  size_t app, text;
  unsigned begun;
} probe_share_t;
probe_share_t probe_embed_share (const probe_write_t *write, size_t result);
/* 1: everything left, nothing to undo and nothing to keep. */
int probe_embed_whole (const probe_write_t *write, ssize_t result);
/* The kernel took less than everything, or nothing (negative). The caller owns
 * the outbound direction and no later write has begun. */
void probe_embed_rollback (probe_connection_t *self, probe_write_t *write, ssize_t result);
/* Sends the rest of a cut insert, if the caller may be made to wait. Returns
 * what the application is to see where nothing of its own has left. */
ssize_t probe_embed_finish (probe_connection_t *self, probe_write_t *write, int fd);
/* A write of which not all left, on a connection that is gone or held by another
 * thread for too long: nobody can keep the rest of its insert, so it leaves now (C4).
 * Returns what the application is to see. */
ssize_t probe_embed_alone (probe_write_t *write, int fd, ssize_t result);
/* Sends the rest of a cut insert on its own, as mode and `flags` have it. 0: not
 * now, errno says why. 1: none is left, or none can be sent any more. The caller
 * owns the outbound direction. */
int probe_embed_flush (probe_connection_t *self, int fd, int flags);
/* Inserts whose rest waits. */
unsigned probe_embed_waiting (void);
/* The connection is going away: its rest with it. `send`: try to get it out. */
void probe_embed_forget (probe_connection_t *self, int send);
/* Forked child: none waits here. */
void probe_embed_reset (void);

#endif
