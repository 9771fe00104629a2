/* SPDX-License-Identifier: Apache-2.0 */
/* got: points the GOT slots of loaded objects at our hooks, and back.
 *
 *  G1  a slot is written only if it holds the resolved original, or the lazy
 *      stub of its own object; anything else is somebody else's: left, counted
 *  G2  every slot written stands in one bounded table with its resolved original
 *  G3  a slot is given back only if it still holds our hook, and only while its
 *      object is loaded (looked up under the loader's lock)
 *  G4  a page has the protection afterwards that it had before
 *  G5  an object that the loader still relocates is not touched: it is deferred
 *  G6  our own object, libc, ld.so and the vdso are never written; of libjvm
 *      only the calls marked `everywhere` (its own I/O runs in VM state)
 *
 * Patch and restore take one lock that the fork handlers know; no allocation;
 * errno and dlerror untouched. */
#ifndef PROBE_GOT_H
#define PROBE_GOT_H

#include <stdint.h>

#include "socket_calls.h"

#define PROBE_GOT_SLOTS_MAX   4096  /* some 20 a process, some 10 an object; beyond: counted, left alone */
#define PROBE_GOT_OBJECTS_MAX 2048  /* objects remembered as done; beyond: looked at again each time */
#define PROBE_GOT_RANGES_MAX  16384 /* private file mappings of one process; beyond: left alone */

typedef struct {
  uint32_t written;  /* slots that we wrote, less those whose object is gone */
  uint32_t restored; /* since start */
  uint32_t foreign;  /* held something that is neither the original nor ours */
  uint32_t objects;  /* looked at */
  uint32_t deferred; /* objects left for the next pass (G5) */
  uint32_t failed;   /* slots that could not be written */
  uint64_t adds;     /* the loader's count of objects ever loaded */
} probe_got_counts_t;

/* A new life: counts from zero, patch may write. */
void probe_got_begin (void);
/* Writes every slot of a name in `calls` (borrowed during the call). Objects
 * done before are skipped. last: take also what looks half relocated: some
 * objects never get read-only slots. 0, WEFT_E_IO (no /proc: nothing written),
 * WEFT_E_BUSY (the lock was not to be had in time), WEFT_E_STATE (restored
 * meanwhile: a dlopen that lasted over the end of a life writes nothing). */
int probe_got_patch (const probe_call_t *calls, uint32_t count, int last);
/* Gives every slot back; nothing is written after it until the next begin. 0, or
 * as probe_got_patch. */
int probe_got_restore (void);
void probe_got_counts (probe_got_counts_t *ret_counts);
/* Around fork: no scan is in the middle when the process is copied. */
void probe_got_before_fork (void);
void probe_got_after_fork (int in_child);

#endif
