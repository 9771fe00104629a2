/* SPDX-License-Identifier: Apache-2.0 */
/* place: where a controller lives on this host: the directory of its sockets,
 * its state directory, and the locks that keep a second controller out.
 *
 * ZeroMQ's ipc bind unlinks whatever socket it finds, a live one included; so a
 * directory is claimed by a lock before anything is bound in it.
 *
 *  P1  a directory of sockets is ours alone: owner us, no bit for group or others
 *  P2  who holds the lock file of a directory is the one controller there
 * One thread. */
#ifndef CTL_PLACE_H
#define CTL_PLACE_H

#include <stddef.h>

/* Checks an address for listening: ipc://DIR, or tcp; `beyond`: also tcp beyond loopback, because
 * there are keys or it was asked for. 0, WEFT_E_MALFORMED, WEFT_E_RANGE, WEFT_E_DENIED, with a
 * reason and a next step. */
int ctl_place_check (const char *address, int beyond, char *why, size_t why_size);
/* The DIR of ipc://DIR, borrowed from the address; NULL for tcp. */
const char *ctl_place_ipc_dir (const char *address);

#define CTL_PLACE_PARENTS 1u /* make all of the path, not its last component only */
#define CTL_PLACE_PRIVATE 2u /* insist on P1 */
/* Makes `dir` (0700) if need be, checks that it is ours, and takes the lock `dir`/lock with our
 * pid in it. The lock goes with the fd. WEFT_E_BUSY: somebody has it, *ret_pid (0: unknown).
 * WEFT_E_DENIED, WEFT_E_IO with `why`. */
int ctl_place_claim (const char *dir, unsigned how, int *ret_lock_fd, long *ret_pid, char *why,
                     size_t why_size);
/* Removes the sockets of an ipc directory; only for the holder of its lock. */
void ctl_place_sweep (const char *dir);

/* $XDG_STATE_HOME/weft, else ~/.local/state/weft. WEFT_E_NOT_FOUND without HOME, WEFT_E_RANGE. */
int ctl_place_state_dir (char *out, size_t size);

#endif
