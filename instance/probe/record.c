/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "embed.h"
#include "opaque.h"
#include "patience.h"
#include "proof.h"
#include "quiet.h"
#include "reach.h"

#define HOLD_YIELDS   32  /* for another thread to leave its section, which never waits */
#define RECHECK_CALLS 255 /* calls until an fd that was no stream socket is looked at again */

uint32_t probe_fds[PROBE_FDS_MAX];
probe_connection_t probe_pool[PROBE_CONNECTIONS_MAX];
uint32_t probe_epoch = 1;
__thread uint8_t probe_me;
static int leases;          /* 1: the barrier that ends them is there */
static uint32_t pool_fresh; /* records ever used */
static uint64_t pool_free;  /* index + 1 | tag << 32, the tag against ABA */

/* ---- leases ------------------------------------------------------------- */
static int membarrier (int command)
{
  return (int) syscall (SYS_membarrier, command, 0, 0);
}

/* A seccomp filter may kill who asks for what it does not know. Read and not
 * asked for: prctl(2) is a system call that it may not know either. */
static int filtered (void)
{
  static const char field[] = "\nSeccomp:";
  char text[4096];
  int fd = open ("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t size = fd >= 0 ? read (fd, text, sizeof text - 1) : -1;
  if (fd >= 0)
    close (fd);
  if (size <= 0)
    return 1;
  text[size] = 0;
  const char *at = strstr (text, field);
  return !at || strtol (at + sizeof field - 1, NULL, 10) != 0;
}

void probe_leases_begin (void)
{
  leases = !filtered () && membarrier (MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void probe_lease (probe_connection_t *self, probe_direction_t direction)
{
  uint32_t generation = self->generation;
  if (WEFT_STEP_FAILS ("leasing") || !leases || self->shy[direction] || self->pending_size ||
      probe_state (self) != PROBE_PROVEN) {
    probe_release (self, direction);
    return;
  }
  __atomic_store_n (&self->lessee[direction], (uintptr_t) &probe_me, __ATOMIC_RELAXED);
  probe_lease_leave (self, direction, generation);
  __atomic_store_n (&self->busy[direction], probe_word (generation, PROBE_LEASED), __ATOMIC_RELEASE);
}

/* 1: no lease any more, held as `to`; 0: changed meanwhile, or its thread is in it. */
static int take_lease (probe_connection_t *self, probe_direction_t direction, uint32_t generation,
                       uint32_t to)
{
  if (!probe_swap (self, direction, generation, PROBE_LEASED, PROBE_WORK))
    return 0;
  int out = __atomic_load_n (&self->lessee[direction], __ATOMIC_RELAXED) == (uintptr_t) &probe_me;
  if (!out) {
    self->shy[direction] = 1;
    out = !WEFT_STEP_FAILS ("membarrier") && membarrier (MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0 &&
          __atomic_load_n (&self->section[direction], __ATOMIC_ACQUIRE) == generation << 1;
  }
  __atomic_store_n (&self->busy[direction], probe_word (generation, out ? to : PROBE_LEASED),
                    __ATOMIC_RELEASE);
  return out;
}

/* ---- ownership of a direction ------------------------------------------- */
/* 1: held; 0: gone; -1: somebody else is in it. */
int probe_hold_slow (probe_connection_t *self, probe_direction_t direction, uint32_t generation, uint32_t to)
{
  for (int i = 0; i < HOLD_YIELDS; i++) {
    if (PROBE_LIKELY (probe_swap (self, direction, generation, PROBE_FREE, to)))
      return 1;
    uint32_t now = __atomic_load_n (&self->busy[direction], __ATOMIC_RELAXED);
    if (now >> PROBE_OWNER_BITS != generation || (now & PROBE_OWNER_MASK) == PROBE_DEAD)
      return 0;
    if (now == probe_word (generation, PROBE_LEASED) && take_lease (self, direction, generation, to))
      return 1;
    sched_yield ();
  }
  return -1;
}

/* Takes it from a writer that is in its system call, too: that one will find
 * its place gone. */
int probe_take (probe_connection_t *self, probe_direction_t direction, uint32_t to, int yields)
{
  uint32_t generation = __atomic_load_n (&self->generation, __ATOMIC_RELAXED);
  for (int i = WEFT_STEP_FAILS ("take") ? yields : 0; i < yields; i++) {
    if (probe_swap (self, direction, generation, PROBE_FREE, to) ||
        probe_swap (self, direction, generation, PROBE_CALL, to))
      return 1;
    uint32_t now = __atomic_load_n (&self->busy[direction], __ATOMIC_RELAXED);
    if ((now & PROBE_OWNER_MASK) == PROBE_DEAD)
      return 0;
    if (now == probe_word (generation, PROBE_LEASED) && take_lease (self, direction, generation, to))
      return 1;
    if (i)
      sched_yield ();
  }
  return 0;
}

int probe_try_hold (probe_connection_t *self, probe_direction_t direction)
{
  return probe_take (self, direction, PROBE_WORK, 1);
}

/* ---- counters ----------------------------------------------------------- */
void probe_count_bytes (probe_connection_t *self)
{
  uint32_t requests = __atomic_exchange_n (&self->requests, 0, __ATOMIC_RELAXED);
  if (requests)
    probe_count (self->role == PROBE_ROLE_SERVER ? SHM_COUNT_REQUESTS_IN : SHM_COUNT_REQUESTS_OUT, requests);
  uint32_t bytes = __atomic_exchange_n (&self->uncounted, 0, __ATOMIC_RELAXED);
  if (bytes == 0)
    return;
  probe_count (SHM_COUNT_BYTES_TOTAL, bytes);
  if (probe_state (self) == PROBE_PROVEN)
    probe_count (SHM_COUNT_BYTES_SPOKEN, bytes);
  else
    probe_count_rest (
        probe_state (self) == PROBE_CANDIDATE ? WEFT_PROTOCOL_HTTP : probe_opaque_protocol (self), bytes);
}

/* ---- records ------------------------------------------------------------ */
probe_connection_t *probe_record_new (int fd, probe_state_t state)
{
  // Read before the look at probe_actions: see probe_connections_flush.
  uint32_t now = __atomic_load_n (&probe_epoch, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n (&probe_actions, __ATOMIC_SEQ_CST))
    return NULL;
  uint32_t index;
  uint64_t head = __atomic_load_n (&pool_free, __ATOMIC_ACQUIRE);
  do {
    index = (uint32_t) head;
    if (!index)
      break;
  } while (!__atomic_compare_exchange_n (
      &pool_free, &head,
      __atomic_load_n (&probe_pool[index - 1].next_free, __ATOMIC_RELAXED) | ((head >> 32) + 1) << 32, 0,
      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  if (WEFT_STEP_FAILS ("pool")) {
    probe_count (SHM_COUNT_TABLE_FULL, 1);
    return NULL;
  }
  if (!index) {
    if (__atomic_load_n (&pool_fresh, __ATOMIC_RELAXED) >= PROBE_CONNECTIONS_MAX ||
        (index = __atomic_add_fetch (&pool_fresh, 1, __ATOMIC_RELAXED)) > PROBE_CONNECTIONS_MAX) {
      probe_count (SHM_COUNT_TABLE_FULL, 1);
      return NULL;
    }
  }
  probe_connection_t *self = &probe_pool[index - 1];
  uint32_t generation = self->generation;
  memset ((char *) self + offsetof (probe_connection_t, turn), 0,
          offsetof (probe_connection_t, machine) - offsetof (probe_connection_t, turn));
  memset (&self->quiet, 0, sizeof *self - offsetof (probe_connection_t, quiet));
  self->fd = fd;
  self->epoch = now;
  self->state = (uint8_t) state;
  __atomic_store_n (&self->busy[PROBE_IN], probe_word (generation, PROBE_FREE), __ATOMIC_RELEASE);
  __atomic_store_n (&self->busy[PROBE_OUT], probe_word (generation, PROBE_FREE), __ATOMIC_RELEASE);
  probe_count (SHM_COUNT_CONNECTIONS, 1);
  return self;
}

/* Both directions are PROBE_DEAD. */
static void record_free (probe_connection_t *self)
{
  self->fd = -1;
  __atomic_store_n (&self->generation, (self->generation + 1) & (UINT32_MAX >> PROBE_OWNER_BITS),
                    __ATOMIC_RELEASE);
  uint64_t head = __atomic_load_n (&pool_free, __ATOMIC_RELAXED);
  do
    __atomic_store_n (&self->next_free, (uint32_t) head, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n (&pool_free, &head,
                                       (probe_record_index (self) + 1) | ((head >> 32) + 1) << 32, 0,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

/* The caller has taken the entry out of the fd table and is alone in that. */
static void record_close (probe_connection_t *self, weft_error_t error, uint32_t flags)
{
  if (!probe_take (self, PROBE_IN, PROBE_DEAD, PROBE_CLOSE_YIELDS) ||
      !probe_take (self, PROBE_OUT, PROBE_DEAD, PROBE_CLOSE_YIELDS)) {
    // Lost until the fork or the end of the process; a thread is still inside.
    probe_count (SHM_COUNT_FAULTS, 1);
    return;
  }
  probe_embed_forget (self, flags != 0);
  if (flags) {
    probe_exchange_abandon (self, error, flags);
  } else {
    probe_reach_closing (self);
    probe_opaque_closing (self);
    probe_exchange_end (self, error);
    probe_exchange_bare_end (self);
  }
  probe_count_bytes (self);
  probe_quiet_count (self);
  record_free (self);
}

/* The fd means nothing any more (Q2). Returns what stood there. */
static uint32_t take_entry (int fd)
{
  uint32_t entry = __atomic_exchange_n (&probe_fds[fd], 0, __ATOMIC_SEQ_CST);
  if (__atomic_load_n (&probe_quiet[fd], __ATOMIC_SEQ_CST))
    __atomic_store_n (&probe_quiet[fd], PROBE_FD_LOOK, __ATOMIC_SEQ_CST);
  return entry;
}

void probe_record_drop (int fd)
{
  if ((unsigned) fd >= PROBE_FDS_MAX || !__atomic_load_n (&probe_fds[fd], __ATOMIC_RELAXED))
    return;
  uint32_t generation;
  probe_connection_t *self = probe_record_of (take_entry (fd), &generation);
  if (self)
    record_close (self, probe_patience_at_close (self, fd), 0);
}

/* Another thread that saw the fd at the same moment wins. */
probe_connection_t *probe_record_publish (int fd, probe_connection_t *self)
{
  uint32_t none = 0;
  if (!WEFT_STEP_FAILS ("publish") &&
      __atomic_compare_exchange_n (&probe_fds[fd], &none, probe_record_entry (self), 0, __ATOMIC_ACQ_REL,
                                   __ATOMIC_RELAXED))
    return self;
  record_close (self, WEFT_ERROR_NONE, 0);
  return NULL;
}

static probe_socket_t kernel_describe (int fd, weft_address_t *ret_local, weft_address_t *ret_peer)
{
  return WEFT_STEP_FAILS ("describe") ? PROBE_SOCKET_NONE : probe_kernel.describe (fd, ret_local, ret_peer);
}

static void describe (probe_connection_t *self, const weft_address_t *local, const weft_address_t *peer)
{
  self->local = *local;
  self->peer = *peer;
  self->is_private = (uint8_t) probe_address_private (peer);
  __atomic_store_n (&self->described, 1, __ATOMIC_RELEASE);
}

/* An fd in mid-life. What is no stream socket is remembered as such; its number
 * may have been closed and reused behind our back, and being wrong about that
 * only leaves a socket unseen: looked at again every RECHECK_CALLS calls, and
 * at once after connect, accept, close or dup. */
static probe_connection_t *first_sight (int fd)
{
  weft_address_t local, peer;
  probe_connection_t *self = NULL;
  if (kernel_describe (fd, &local, &peer) == PROBE_SOCKET_STREAM)
    self = probe_record_new (fd, peer.family == 1 ? PROBE_GIVEN_UP : PROBE_UNKNOWN);
  if (!self) {
    __atomic_store_n (&probe_fds[fd], PROBE_NO_STREAM | RECHECK_CALLS, __ATOMIC_RELAXED);
    return NULL;
  }
  describe (self, &local, &peer);
  if (peer.family == 1)
    probe_count (SHM_COUNT_GIVEN_UP_OTHER, 1);
  return probe_record_publish (fd, self);
}

static probe_connection_t *look_again (int fd, uint32_t entry)
{
  if (entry & PROBE_NO_STREAM) {
    uint32_t expected = entry;
    if (!__atomic_compare_exchange_n (&probe_fds[fd], &expected, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return NULL;
  } else if (entry) {
    probe_record_drop (fd); // stale: of another activation
  }
  return first_sight (fd);
}

__attribute__ ((noinline)) probe_connection_t *probe_lookup_slow (int fd, uint32_t entry,
                                                                  uint32_t *ret_generation)
{
  if (entry > PROBE_NO_STREAM) {
    __atomic_store_n (&probe_fds[fd], entry - 1, __ATOMIC_RELAXED);
    return NULL;
  }
  int saved = errno;
  probe_connection_t *self = look_again (fd, entry);
  if (self)
    *ret_generation = __atomic_load_n (&self->generation, __ATOMIC_RELAXED);
  errno = saved;
  return self;
}

/* Born ones are described at their first transfer. 0: no stream socket. */
int probe_record_ready (probe_connection_t *self, int fd)
{
  weft_address_t local, peer;
  if (PROBE_LIKELY (__atomic_load_n (&self->described, __ATOMIC_ACQUIRE)))
    return 1;
  switch (kernel_describe (fd, &local, &peer)) {
  case PROBE_SOCKET_STREAM:
    describe (self, &local, &peer);
    return 1;
  case PROBE_SOCKET_UNCONNECTED:
    return 0;
  default:
    probe_record_drop (fd);
    __atomic_store_n (&probe_fds[fd], PROBE_NO_STREAM | RECHECK_CALLS, __ATOMIC_RELAXED);
    return 0;
  }
}

probe_connection_t *probe_record_known (int fd, uint32_t *ret_generation)
{
  if ((unsigned) fd >= PROBE_FDS_MAX)
    return NULL;
  return probe_record_of (__atomic_load_n (&probe_fds[fd], __ATOMIC_ACQUIRE), ret_generation);
}

/* ---- all of them -------------------------------------------------------- */
uint32_t probe_records_used (void)
{
  uint32_t used = __atomic_load_n (&pool_fresh, __ATOMIC_ACQUIRE);
  return used < PROBE_CONNECTIONS_MAX ? used : PROBE_CONNECTIONS_MAX;
}

unsigned probe_connections_pending (void)
{
  return probe_embed_waiting ();
}

/* A hook that is still on its way from before either reads the old epoch, and
 * what it makes is stale, or finds probe_actions 0 and makes nothing. */
void probe_connections_flush (void)
{
  int saved = errno;
  __atomic_fetch_add (&probe_epoch, 1, __ATOMIC_SEQ_CST);
  for (uint32_t i = 0; i < probe_records_used (); i++) {
    int fd = __atomic_load_n (&probe_pool[i].fd, __ATOMIC_RELAXED);
    uint32_t entry = probe_record_entry (&probe_pool[i]);
    if (fd < 0 ||
        !__atomic_compare_exchange_n (&probe_fds[fd], &entry, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
      continue;
    __atomic_store_n (&probe_quiet[fd], PROBE_FD_LOOK, __ATOMIC_SEQ_CST);
    record_close (&probe_pool[i], WEFT_ERROR_OPEN, WEFT_REPORT_OPEN);
  }
  probe_opaque_flush ();
  errno = saved;
}

/* One thread is left, whatever the others held. */
void probe_connections_reset (void)
{
  probe_epoch++;
  for (int fd = 0; fd < PROBE_FDS_MAX; fd++)
    if (probe_fds[fd])
      probe_fds[fd] = probe_quiet[fd] = 0;
  pool_free = 0;
  for (uint32_t i = probe_records_used (); i-- > 0;) {
    probe_pool[i].busy[PROBE_IN] = probe_pool[i].busy[PROBE_OUT] =
        probe_word (probe_pool[i].generation, PROBE_DEAD);
    probe_pool[i].pending_size = 0;
    record_free (&probe_pool[i]);
  }
  probe_embed_reset ();
  probe_opaque_reset ();
}
