/* SPDX-License-Identifier: Apache-2.0 */
/* hotspot: knows HotSpot by libjvm.so and gives it the right context slot.
 *
 * Up to JDK 20 a Java thread is a thread: the thread slot. From 21 on a virtual
 * thread moves between carriers: the slot is JVMTI's thread-local storage,
 * which follows it. Where that cannot be had, the context is unknown: on a
 * carrier the thread slot would hold another request's id.
 *
 * JVMTI is touched only inside a hook on a thread that the VM knows; the
 * environment is made there at first use and kept. */
#ifndef PROBE_HOTSPOT_H
#define PROBE_HOTSPOT_H

#include <stddef.h>

/* 0 with the version text ("17.0.15+6"), or WEFT_E_NOT_FOUND: no libjvm loaded. Sets the slot. */
int probe_hotspot_detect (char *ret_version, size_t size);
/* On a thread of the VM, after detect: makes the slot ready before the first
 * request needs it. Does nothing where none is wanted. */
void probe_hotspot_prepare (void);

#endif
