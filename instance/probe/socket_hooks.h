/* SPDX-License-Identifier: Apache-2.0 */
/* socket_hooks: what stands between the hooks (socket_calls.c) and the connections:
 * probe_active_<name> does for one call what an active hook does, in socket_transfer.c
 * where bytes move, in socket_life.c where sockets come and go or are waited for.
 *
 * `probe_inside` is set while the probe's own code runs, not during the system call:
 * a signal handler that interrupts us there gets the plain call. */
#ifndef PROBE_SOCKET_HOOKS_H
#define PROBE_SOCKET_HOOKS_H

#include <errno.h>

#include "connection.h"
#include "socket_calls.h"
#include "state.h"

#pragma GCC visibility push(hidden)
extern __thread uint32_t probe_inside;

#define XX(type, name, params, args) type probe_active_##name params;
PROBE_CALL_MAP (XX)
#undef XX
#pragma GCC visibility pop

static inline void probe_enter (void)
{
  probe_inside = 1;
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
}
static inline void probe_leave (void)
{
  __atomic_signal_fence (__ATOMIC_SEQ_CST);
  probe_inside = 0;
}

/* The fd has a second name, or its stream passes where nobody looks. */
static inline void probe_two_names (int fd)
{
  int saved = errno;
  if (probe_inside)
    return;
  probe_enter ();
  probe_connection_shared (fd);
  probe_leave ();
  errno = saved;
}

#endif
