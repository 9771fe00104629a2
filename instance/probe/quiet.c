/* SPDX-License-Identifier: Apache-2.0 */
#include "quiet.h"

#include <errno.h>

#include "opaque.h"
#include "patience.h"
#include "proof.h"
#include "record.h"

uint8_t probe_quiet[PROBE_FDS_MAX];

void probe_quiet_set (const probe_connection_t *self, int fd, uint8_t state)
{
  uint8_t *at = &probe_quiet[fd];
  if (__atomic_load_n (at, __ATOMIC_RELAXED) == state)
    return;
  __atomic_store_n (at, state, __ATOMIC_SEQ_CST);
  if (__atomic_load_n (&probe_fds[fd], __ATOMIC_SEQ_CST) != probe_record_entry (self))
    __atomic_store_n (at, PROBE_FD_LOOK, __ATOMIC_SEQ_CST);
}

static void begin (probe_connection_t *self, int fd)
{
  probe_counts_t counts;
  uint8_t state = PROBE_FD_QUIET;
  if (self->role == PROBE_ROLE_SERVER)
    state = PROBE_FD_SERVER;
  else if (self->role == PROBE_ROLE_CLIENT && !self->shared)
    state = self->sum ? PROBE_FD_CALLING : PROBE_FD_CLIENT; // a call made it given up, and waits
  if (!self->quiet) {
    if (probe_kernel.counts (fd, &counts) != 0)
      return;
    probe_count_bytes (self); // what we have counted ourselves
    __atomic_store_n (&self->base[PROBE_OUT], counts.written, __ATOMIC_RELAXED);
    __atomic_store_n (&self->base[PROBE_IN], counts.read, __ATOMIC_RELAXED);
    __atomic_store_n (&self->quiet, 1, __ATOMIC_RELEASE);
  }
  probe_quiet_set (self, fd, state);
}

int probe_quiet_become (probe_connection_t *self, int fd)
{
  if (self->quiet)
    return 1;
  if (!probe_record_ready (self, fd))
    return 0;
  if (self->peer.family != 1)
    begin (self, fd);
  return 1;
}

int probe_quiet_reads (probe_connection_t *self, int fd, probe_read_t *read)
{
  int saved = errno;
  int there = self->pending_size || probe_quiet_become (self, fd);
  errno = saved;
  read->opaque = 1;
  return there && (!self->quiet || self->sum || self->role == PROBE_ROLE_SERVER);
}

void probe_quiet_heard (const probe_read_t *read, ssize_t result, size_t room)
{
  probe_connection_t *self = read->record;
  int saved = errno;
  if (__atomic_load_n (&self->generation, __ATOMIC_ACQUIRE) != read->generation || room == 0)
    return;
  if (result > 0 && !self->quiet)
    probe_moved (self, (size_t) result);
  if (self->waiting && result < 0 && saved == EAGAIN)
    probe_patience_starved (self, read->generation);
  else if (self->role == PROBE_ROLE_CLIENT && self->sum)
    probe_opaque_heard (self, read->generation, result, saved);
  if (self->role == PROBE_ROLE_SERVER && result > 0)
    probe_context_foreign ();
  errno = saved;
}

static uint64_t advance (uint64_t *base, uint64_t now)
{
  uint64_t before = __atomic_exchange_n (base, now, __ATOMIC_RELAXED);
  return now > before ? now - before : 0;
}

void probe_quiet_count (probe_connection_t *self)
{
  probe_counts_t counts;
  uint32_t generation = __atomic_load_n (&self->generation, __ATOMIC_ACQUIRE);
  int fd = __atomic_load_n (&self->fd, __ATOMIC_RELAXED);
  if (!__atomic_load_n (&self->quiet, __ATOMIC_ACQUIRE) || fd < 0 || probe_kernel.counts (fd, &counts) != 0 ||
      __atomic_load_n (&self->generation, __ATOMIC_ACQUIRE) != generation)
    return;
  uint64_t bytes =
      advance (&self->base[PROBE_OUT], counts.written) + advance (&self->base[PROBE_IN], counts.read);
  if (!bytes)
    return;
  probe_count (SHM_COUNT_BYTES_TOTAL, bytes);
  probe_count_rest (probe_opaque_protocol (self), bytes);
}

void probe_connections_count (void)
{
  int saved = errno;
  for (uint32_t i = 0; i < probe_records_used (); i++) {
    probe_connection_t *self = &probe_pool[i];
    int fd = __atomic_load_n (&self->fd, __ATOMIC_RELAXED);
    if (fd >= 0 && __atomic_load_n (&probe_fds[fd], __ATOMIC_ACQUIRE) == probe_record_entry (self))
      probe_quiet_count (self);
  }
  errno = saved;
}
