/* SPDX-License-Identifier: Apache-2.0 */
/* probe: its life inside the VM.
 *
 *            start                       LEAVE
 *   DORMANT ───────▶ STARTING ─▶ RUNNING ─────▶ LEAVING ─▶ DORMANT
 *                     ▲              └─fork─▶ UNBORN ──first call that talks──▶ STARTING
 *                   start                        └──the parent has left meanwhile──▶ CHILD
 *                   CHILD ◀── a forked child of STARTING or LEAVING: inert
 *
 * A child is UNBORN until it reads a socket, opens a connection or waits for one: most
 * children exec, and owe us nothing. At its birth it makes a memory of its own, takes over
 * what holds in its parent's, is active, and says so to the sidecar of its tree: all
 * in that first call. Below `weft run` a started program begins as UNBORN, too.
 *
 *  P1  dormant means nothing of ours runs, is open, mapped or written in a slot
 *      (but the code, and private memory that a late hook may scribble on)
 *  P2  idle (no action, or the lease is over): one thread parked without timeout
 *  P3  probe_actions is 0 before anything that a hook uses goes away
 *  P4  LEFT is the last word written to the shared memory
 *  P5  a forked child never writes into the memory of its parent
 *  P6  an unborn one has hooks that pass everything on, and nothing else: no thread, no fd */
#ifndef PROBE_PROBE_H
#define PROBE_PROBE_H

/* Begins a life. 0 also when one is going on; otherwise nothing is left behind.
 * Not from a hook. */
__attribute__ ((visibility ("default"))) int probe_start (void);

#endif
