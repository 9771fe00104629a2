/* SPDX-License-Identifier: Apache-2.0 */
/* dlopen: sees that objects loaded later are patched too.
 *
 * dlopen looks at its return address: whose RUNPATH and namespace count. For a
 * name without '/' the hook therefore leaves the stack as it found it and jumps
 * to the original; who watches is told beforehand and looks again shortly
 * after. A path hardly depends on the caller: the hook calls the original and
 * the watcher looks at once; if that fails the call is passed on after all. */
#ifndef PROBE_DLOPEN_H
#define PROBE_DLOPEN_H

#include "socket_calls.h"

typedef struct {
  void (*opened) (void); /* after a call that we made: look now */
  void (*opens) (void);  /* before a call that we pass on: look again soon */
} probe_dlopen_watch_t;

/* Fills the row of the slot table. `watch` is borrowed for good. 0 or WEFT_E_NOT_FOUND. */
int probe_dlopen_resolve (const probe_dlopen_watch_t *watch, probe_call_t *ret_call);

#endif
