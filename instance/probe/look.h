/* SPDX-License-Identifier: Apache-2.0 */
/* look: at the loaded objects, when to look again, and which runtime shows itself.
 *
 * Objects that come by dlopen are patched on the thread that loads them. What the loader
 * was still busy with, or passed on past us, is looked at again some time later by
 * the parked thread; the last look takes half-relocated objects as well (got.h, G5). */
#ifndef PROBE_LOOK_H
#define PROBE_LOOK_H

#include <stdint.h>

#include "runtime/runtime.h"

typedef struct {
  int (*hooking) (void);  /* 1: slots are ours, or are just being made so */
  void (*changed) (void); /* more slots are written now; any thread */
  void (*work) (void);    /* there is something to look at; any thread */
} probe_look_owner_t;

/* Finds the originals of all calls; owner is borrowed. Once. 0, or a status. */
int probe_look_resolve (const probe_look_owner_t *owner);
/* Patches what is loaded now, in a life that begins. 0, or as probe_got_patch. */
int probe_look_begin (void);
/* The parked thread's: does what is due; when the next look is (CLOCK_MONOTONIC, 0: none). */
uint64_t probe_look_again (uint64_t now_ns);
/* Which runtime is there at the beginning of a life; zeros: none yet. */
void probe_look_at_runtime (probe_runtime_t *ret_runtime);
/* The parked thread's: one that came later is written into the head of the memory. */
void probe_look_for_runtime (void);

#endif
