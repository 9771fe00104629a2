/* SPDX-License-Identifier: Apache-2.0 */
#include "patience.h"

#include <errno.h>
#include <sys/time.h>

#include "../../common/clocks.h"
#include "opaque.h"
#include "proof.h"
#include "record.h"

#define WAIT_MIN_NS 1000000 /* a read that finds nothing sooner did not wait: a tick of the kernel */

/* Notes up to where a client that waits for an answer has come. */
static void unanswered (probe_connection_t *self, uint32_t generation, uint64_t *mark)
{
  if (self->role != PROBE_ROLE_CLIENT ||
      __atomic_load_n (&self->popped, __ATOMIC_RELAXED) ==
          __atomic_load_n (&self->pushed, __ATOMIC_RELAXED) ||
      probe_hold (self, PROBE_IN, generation, PROBE_WORK) != 1)
    return;
  *mark = self->seen[PROBE_IN] + 1;
  probe_settle (self, PROBE_IN);
}

/* 1: a read waits, but only so long. */
static int is_limited (int fd)
{
  struct timeval limit = {0};
  socklen_t size = sizeof limit;
  if (getsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &size) != 0)
    return 0;
  return (limit.tv_sec || limit.tv_usec) && !probe_kernel.nonblocking (fd);
}

void probe_patience_waited (int fd)
{
  int saved = errno;
  uint32_t generation = 0;
  probe_connection_t *self = probe_record_known (fd, &generation);
  if (self && self->waiting)
    probe_opaque_lapse (self, generation);
  else if (self)
    unanswered (self, generation, &self->waited);
  errno = saved;
}

void probe_patience_starved (probe_connection_t *self, uint32_t generation)
{
  if (!self->waiting)
    unanswered (self, generation, &self->starved);
  else if (weft_boot_ns () - self->call_ns >= WAIT_MIN_NS && is_limited (self->fd))
    probe_opaque_lapse (self, generation);
}

weft_error_t probe_patience_at_close (const probe_connection_t *self, int fd)
{
  if (self->error || self->role != PROBE_ROLE_CLIENT)
    return self->error ? self->error : WEFT_ERROR_CLOSED;
  uint64_t here = __atomic_load_n (&self->seen[PROBE_IN], __ATOMIC_ACQUIRE) + 1;
  if (self->waited == here || (self->starved == here && is_limited (fd)))
    return WEFT_ERROR_TIMEOUT;
  return WEFT_ERROR_CLOSED;
}
