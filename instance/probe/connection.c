/* SPDX-License-Identifier: Apache-2.0 */
/* The table of connections and their life. What bytes mean is decided in
 * embed.c (we ask), capture.c (we are asked) and exchange.c (the answers).
 *
 * Owner state of a direction, in busy[] together with the generation, so that
 * nobody can own a connection that is not the one it looked up:
 *
 *           hold            (answers only)
 *   FREE ────────▶ WORK      FREE ──▶ CALL ──▶ WORK ──▶ FREE
 *     ▲  release    │          a server's write keeps its place in the order
 *     └─────────────┘          of answers during its system call
 *   FREE, CALL ──▶ DEAD       taken by whoever closes; for good */
#include "connection.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "../shm/writer.h"
#include "capture.h"
#include "embed.h"
#include "exchange.h"
#include "proof.h"
#include "socket_calls.h"

enum { FREE = 0, WORK = 1, CALL = 2, DEAD = 3 };

#define HOLD_YIELDS   32   /* for another thread to leave its section, which never waits */
#define CLOSE_YIELDS  1000 /* the same before a record is lost until the next activation */
#define RECHECK_CALLS 255  /* calls until an fd that was no stream socket is looked at again */
#define COUNT_EVERY   4096 /* bytes kept back from the shared counters */

/* fd table entry: 0 unknown | NO_STREAM and a countdown | index + 1 and the low
 * bits of the generation. */
#define NO_STREAM       0x80000000u
#define INDEX_BITS      13
#define INDEX_MASK      ((1u << INDEX_BITS) - 1)
#define GENERATION_MASK ((1u << (31 - INDEX_BITS)) - 1)
_Static_assert(PROBE_CONNECTIONS_MAX < INDEX_MASK, "index + 1 fits");

/* Touched lazily: what is never used costs no memory. */
static uint32_t fds[PROBE_FDS_MAX];
static probe_connection_t pool[PROBE_CONNECTIONS_MAX];
static uint32_t pool_fresh; /* records ever used */
static uint64_t pool_free;  /* index + 1 | tag << 32, the tag against ABA */
static uint32_t epoch = 1;  /* activation; a record of another one is stale */

/* What after_write has to do: count bytes; undo what a short write did not
 * take; follow the answer that left. */
typedef enum { MODE_COUNT, MODE_ASK, MODE_ANSWER } write_mode_t;

/* ---- ownership of a direction ------------------------------------------- */
static uint32_t word (uint32_t generation, uint32_t state)
{
  return generation << 2 | state;
}

static int swap (probe_connection_t *self, probe_direction_t direction, uint32_t generation, uint32_t from,
                 uint32_t to)
{
  uint32_t expected = word (generation, from);
  return __atomic_compare_exchange_n (&self->busy[direction], &expected, word (generation, to), 0,
                                      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* 1: held; 0: gone; -1: somebody else is in it. */
static int hold (probe_connection_t *self, probe_direction_t direction, uint32_t generation, uint32_t to)
{
  for (int i = 0; i < HOLD_YIELDS; i++) {
    if (PROBE_LIKELY (swap (self, direction, generation, FREE, to)))
      return 1;
    uint32_t now = __atomic_load_n (&self->busy[direction], __ATOMIC_RELAXED);
    if (now != word (generation, WORK) && now != word (generation, CALL) && now != word (generation, FREE))
      return 0;
    sched_yield ();
  }
  return -1;
}

void probe_release (probe_connection_t *self, probe_direction_t direction)
{
  uint32_t now = __atomic_load_n (&self->busy[direction], __ATOMIC_RELAXED);
  __atomic_store_n (&self->busy[direction], (now & ~3u) | FREE, __ATOMIC_RELEASE);
}

/* Takes it from a writer that is in its system call, too: that one will find
 * its place gone. */
static int take (probe_connection_t *self, probe_direction_t direction, uint32_t to, int yields)
{
  uint32_t generation = __atomic_load_n (&self->generation, __ATOMIC_RELAXED);
  for (int i = 0; i < yields; i++) {
    if (swap (self, direction, generation, FREE, to) || swap (self, direction, generation, CALL, to))
      return 1;
    if ((__atomic_load_n (&self->busy[direction], __ATOMIC_RELAXED) & 3) == DEAD)
      return 0;
    if (i)
      sched_yield ();
  }
  return 0;
}

int probe_try_hold (probe_connection_t *self, probe_direction_t direction)
{
  return take (self, direction, WORK, 1);
}

/* ---- counters ----------------------------------------------------------- */
void probe_count_bytes (probe_connection_t *self)
{
  uint32_t bytes = __atomic_exchange_n (&self->uncounted, 0, __ATOMIC_RELAXED);
  if (bytes == 0)
    return;
  probe_count (SHM_COUNT_BYTES_TOTAL, bytes);
  if (probe_state (self) == PROBE_PROVEN)
    probe_count (SHM_COUNT_BYTES_SPOKEN, bytes);
}

/* Two directions may lose each other's sum here; it is a share for people. */
static void moved (probe_connection_t *self, size_t size)
{
  uint32_t bytes = __atomic_load_n (&self->uncounted, __ATOMIC_RELAXED) + (uint32_t) (size & 0x7fffffff);
  __atomic_store_n (&self->uncounted, bytes, __ATOMIC_RELAXED);
  if (PROBE_UNLIKELY (bytes >= COUNT_EVERY))
    probe_count_bytes (self);
}

/* ---- giving up ---------------------------------------------------------- */
void probe_give_up (probe_connection_t *self, shm_counter_t why, unsigned held)
{
  probe_count_bytes (self);
  uint8_t before = __atomic_exchange_n (&self->state, PROBE_GIVEN_UP, __ATOMIC_SEQ_CST);
  if (before == PROBE_GIVEN_UP)
    return;
  probe_count (why, 1);
  // Requests may go on, unmarked: the other side must not take them for roots.
  if (self->role == PROBE_ROLE_CLIENT && self->pushed && why != SHM_COUNT_GIVEN_UP_TUNNEL &&
      (probe_active () & WEFT_ACTION_EMBED))
    probe_exchange_bare (self, WEFT_REASON_UNPROVEN);
  probe_direction_t answers = probe_answers (self);
  int mine = (held & PROBE_HOLDS (answers)) != 0;
  if (!mine && !take (self, answers, WORK, CLOSE_YIELDS))
    return;
  probe_exchange_abandon (self, WEFT_ERROR_OPEN, WEFT_REPORT_OPEN);
  if (!mine)
    probe_release (self, answers);
}

void probe_misfit (probe_connection_t *self, probe_direction_t direction, unsigned held)
{
  uint8_t candidate = PROBE_CANDIDATE;
  if (probe_state (self) == PROBE_CANDIDATE && self->tries < PROBE_CANDIDACIES_MAX) {
    self->last = (uint8_t) (direction + 1);
    __atomic_compare_exchange_n (&self->state, &candidate, PROBE_UNKNOWN, 0, __ATOMIC_ACQ_REL,
                                 __ATOMIC_RELAXED);
    return;
  }
  shm_counter_t why = SHM_COUNT_GIVEN_UP_FRAMING;
  if (probe_state (self) == PROBE_CANDIDATE || probe_http1_foreign (&self->machine[direction]) ||
      probe_http1_idle (&self->machine[direction]))
    why = SHM_COUNT_GIVEN_UP_OTHER;
  probe_give_up (self, why, held);
}

/* ---- records ------------------------------------------------------------ */
static probe_connection_t *record_new (int fd, probe_state_t state)
{
  // Read before the look at probe_actions: see probe_connections_flush.
  uint32_t now = __atomic_load_n (&epoch, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n (&probe_actions, __ATOMIC_SEQ_CST))
    return NULL;
  uint32_t index;
  uint64_t head = __atomic_load_n (&pool_free, __ATOMIC_ACQUIRE);
  do {
    index = (uint32_t) head;
    if (!index)
      break;
  } while (!__atomic_compare_exchange_n (&pool_free, &head,
                                         __atomic_load_n (&pool[index - 1].next_free, __ATOMIC_RELAXED) |
                                             ((head >> 32) + 1) << 32,
                                         0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  if (!index) {
    if (__atomic_load_n (&pool_fresh, __ATOMIC_RELAXED) >= PROBE_CONNECTIONS_MAX ||
        (index = __atomic_add_fetch (&pool_fresh, 1, __ATOMIC_RELAXED)) > PROBE_CONNECTIONS_MAX) {
      probe_count (SHM_COUNT_TABLE_FULL, 1);
      return NULL;
    }
  }
  probe_connection_t *self = &pool[index - 1];
  uint32_t generation = self->generation;
  memset ((char *) self + offsetof (probe_connection_t, turn), 0,
          offsetof (probe_connection_t, machine) - offsetof (probe_connection_t, turn));
  self->fd = fd;
  self->epoch = now;
  self->state = (uint8_t) state;
  __atomic_store_n (&self->busy[PROBE_IN], word (generation, FREE), __ATOMIC_RELEASE);
  __atomic_store_n (&self->busy[PROBE_OUT], word (generation, FREE), __ATOMIC_RELEASE);
  probe_count (SHM_COUNT_CONNECTIONS, 1);
  return self;
}

static uint32_t index_of (const probe_connection_t *self)
{
  return (uint32_t) (self - pool);
}

static uint32_t entry_of (const probe_connection_t *self)
{
  return (index_of (self) + 1) | (self->generation & GENERATION_MASK) << INDEX_BITS;
}

/* Both directions are DEAD. */
static void record_free (probe_connection_t *self)
{
  self->fd = -1;
  __atomic_store_n (&self->generation, (self->generation + 1) & (UINT32_MAX >> 2), __ATOMIC_RELEASE);
  uint64_t head = __atomic_load_n (&pool_free, __ATOMIC_RELAXED);
  do
    __atomic_store_n (&self->next_free, (uint32_t) head, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n (&pool_free, &head, (index_of (self) + 1) | ((head >> 32) + 1) << 32, 0,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

/* The caller has taken the entry out of the fd table and is alone in that. */
static void record_close (probe_connection_t *self, weft_error_t error, uint32_t flags)
{
  if (!take (self, PROBE_IN, DEAD, CLOSE_YIELDS) || !take (self, PROBE_OUT, DEAD, CLOSE_YIELDS)) {
    // Lost until the fork or the end of the process; a thread is still inside.
    probe_count (SHM_COUNT_FAULTS, 1);
    return;
  }
  probe_embed_forget (self, flags != 0);
  if (flags)
    probe_exchange_abandon (self, error, flags);
  else
    probe_exchange_end (self, error);
  probe_count_bytes (self);
  record_free (self);
}

/* C6: *ret_generation is that of the record which the entry means. */
static inline probe_connection_t *record_of (uint32_t entry, uint32_t *ret_generation)
{
  if (!entry || (entry & NO_STREAM))
    return NULL;
  probe_connection_t *self = &pool[(entry & INDEX_MASK) - 1];
  *ret_generation = __atomic_load_n (&self->generation, __ATOMIC_ACQUIRE);
  return (*ret_generation & GENERATION_MASK) == entry >> INDEX_BITS ? self : NULL;
}

static void drop (int fd)
{
  if ((unsigned) fd >= PROBE_FDS_MAX || !__atomic_load_n (&fds[fd], __ATOMIC_RELAXED))
    return;
  uint32_t generation;
  probe_connection_t *self = record_of (__atomic_exchange_n (&fds[fd], 0, __ATOMIC_ACQ_REL), &generation);
  if (self)
    record_close (self, self->error ? self->error : WEFT_ERROR_CLOSED, 0);
}

/* Another thread that saw the fd at the same moment wins. */
static probe_connection_t *publish (int fd, probe_connection_t *self)
{
  uint32_t none = 0;
  if (__atomic_compare_exchange_n (&fds[fd], &none, entry_of (self), 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return self;
  record_close (self, WEFT_ERROR_NONE, 0);
  return NULL;
}

static void describe (probe_connection_t *self, const weft_address_t *local, const weft_address_t *peer)
{
  self->local = *local;
  self->peer = *peer;
  self->is_private = (uint8_t) probe_address_private (peer);
  self->described = 1;
}

/* An fd in mid-life. What is no stream socket is remembered as such; its number
 * may have been closed and reused behind our back, and being wrong about that
 * only leaves a socket unseen: looked at again every RECHECK_CALLS calls, and
 * at once after connect, accept, close or dup. */
static probe_connection_t *first_sight (int fd)
{
  weft_address_t local, peer;
  probe_connection_t *self = NULL;
  if (probe_kernel.describe (fd, &local, &peer) == PROBE_SOCKET_STREAM)
    self = record_new (fd, peer.family == 1 ? PROBE_GIVEN_UP : PROBE_UNKNOWN);
  if (!self) {
    __atomic_store_n (&fds[fd], NO_STREAM | RECHECK_CALLS, __ATOMIC_RELAXED);
    return NULL;
  }
  describe (self, &local, &peer);
  if (peer.family == 1)
    probe_count (SHM_COUNT_GIVEN_UP_OTHER, 1);
  return publish (fd, self);
}

static __attribute__ ((noinline)) probe_connection_t *lookup_slow (int fd, uint32_t entry)
{
  if (entry & NO_STREAM) {
    if (entry != NO_STREAM) {
      __atomic_store_n (&fds[fd], entry - 1, __ATOMIC_RELAXED);
      return NULL;
    }
    uint32_t expected = entry;
    if (!__atomic_compare_exchange_n (&fds[fd], &expected, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return NULL;
  } else if (entry) {
    drop (fd); // stale: of another activation
  }
  return first_sight (fd);
}

static inline probe_connection_t *lookup (int fd, uint32_t *ret_generation)
{
  if (PROBE_UNLIKELY ((unsigned) fd >= PROBE_FDS_MAX))
    return NULL;
  uint32_t entry = __atomic_load_n (&fds[fd], __ATOMIC_ACQUIRE);
  probe_connection_t *self = record_of (entry, ret_generation);
  if (PROBE_LIKELY (self && self->epoch == __atomic_load_n (&epoch, __ATOMIC_RELAXED)))
    return self;
  int saved = errno;
  self = lookup_slow (fd, entry);
  if (self)
    *ret_generation = __atomic_load_n (&self->generation, __ATOMIC_RELAXED);
  errno = saved;
  return self;
}

/* Born ones are described at their first transfer. 0: no stream socket. */
static int ready (probe_connection_t *self, int fd)
{
  weft_address_t local, peer;
  if (PROBE_LIKELY (self->described))
    return 1;
  switch (probe_kernel.describe (fd, &local, &peer)) {
  case PROBE_SOCKET_STREAM:
    describe (self, &local, &peer);
    return 1;
  case PROBE_SOCKET_UNCONNECTED:
    return 0;
  default:
    drop (fd);
    __atomic_store_n (&fds[fd], NO_STREAM | RECHECK_CALLS, __ATOMIC_RELAXED);
    return 0;
  }
}

/* ---- birth and death ---------------------------------------------------- */
void probe_connection_born (int fd, probe_role_t role)
{
  int saved = errno;
  int client = role == PROBE_ROLE_CLIENT;
  if ((unsigned) fd >= PROBE_FDS_MAX) {
    probe_count (SHM_COUNT_TABLE_FULL, 1);
    return;
  }
  drop (fd);
  probe_connection_t *self = record_new (fd, PROBE_PROVEN);
  if (self) {
    self->role = (uint8_t) role;
    self->base[PROBE_OUT] = client; // the kernel counts the SYN that we sent
    probe_http1_init (&self->machine[PROBE_OUT], client ? PROBE_HTTP1_REQUEST : PROBE_HTTP1_RESPONSE);
    probe_http1_init (&self->machine[PROBE_IN], client ? PROBE_HTTP1_RESPONSE : PROBE_HTTP1_REQUEST);
    publish (fd, self);
  }
  errno = saved;
}

void probe_connection_refused (int fd, int error)
{
  int saved = errno;
  // It stands already, or will: the first connect told of its birth.
  if (error != EISCONN && error != EALREADY && error != EINTR)
    drop (fd);
  errno = saved;
}

void probe_connection_closing (int fd)
{
  int saved = errno;
  drop (fd);
  errno = saved;
}

static probe_connection_t *known (int fd, uint32_t *ret_generation)
{
  if ((unsigned) fd >= PROBE_FDS_MAX)
    return NULL;
  return record_of (__atomic_load_n (&fds[fd], __ATOMIC_ACQUIRE), ret_generation);
}

void probe_connection_shared (int fd)
{
  int saved = errno;
  uint32_t generation;
  probe_connection_t *self = known (fd, &generation);
  if (self)
    probe_give_up (self, SHM_COUNT_GIVEN_UP_OTHER, 0);
  errno = saved;
}

void probe_connection_shutdown (int fd, int how)
{
  int saved = errno;
  uint32_t generation;
  probe_connection_t *self = known (fd, &generation);
  if (self && self->role == PROBE_ROLE_SERVER && probe_state (self) == PROBE_PROVEN &&
      (how == SHUT_WR || how == SHUT_RDWR) && hold (self, PROBE_OUT, generation, WORK) == 1) {
    probe_exchange_end (self, WEFT_ERROR_CLOSED);
    probe_release (self, PROBE_OUT);
  }
  errno = saved;
}

/* ---- writing ------------------------------------------------------------ */
static size_t size_of (const struct iovec *iov, int count)
{
  size_t size = 0;
  for (int i = 0; i < count; i++)
    size += iov[i].iov_len;
  return size;
}

/* The bytes that we ask with, or that we do not understand yet. */
static void before_ask (probe_connection_t *self, probe_write_t *write)
{
  const struct iovec *first = write->app_iov;
  if (probe_state (self) == PROBE_UNKNOWN) {
    probe_proof_candidate (self, PROBE_OUT, first->iov_base, first->iov_len, write->app_size);
    self->last = PROBE_OUT + 1;
  }
  if (PROBE_UNLIKELY (self->pending_size))
    probe_embed_pending (self, write);
  probe_state_t state = probe_state (self);
  write->turn = ++self->turn[PROBE_OUT];
  if ((state == PROBE_PROVEN || state == PROBE_CANDIDATE) && self->role == PROBE_ROLE_CLIENT)
    probe_embed_before (self, write);
  // Added before the call, as the peer may answer before it returns.
  self->seen[PROBE_OUT] += write->app_size + (write->insert ? write->insert_size - write->cut : 0);
  __atomic_store_n (&self->calling[PROBE_OUT], 1, __ATOMIC_RELEASE);
}

static __attribute__ ((noinline)) int before_write (probe_connection_t *self, int fd, probe_write_t *write)
{
  if (!ready (self, fd))
    return 0;
  write->app_size = size_of (write->app_iov, write->app_count);
  if (write->app_size == 0)
    return 0;
  int answers = self->role == PROBE_ROLE_SERVER &&
                (probe_state (self) == PROBE_PROVEN || probe_state (self) == PROBE_CANDIDATE);
  int held = hold (self, PROBE_OUT, write->generation, answers ? CALL : WORK);
  if (held < 0) {
    probe_give_up (self, SHM_COUNT_GIVEN_UP_BUSY, 0);
    return 1; // only counted
  }
  if (held == 0)
    return 0;
  write->mode = answers ? MODE_ANSWER : MODE_ASK;
  if (!answers) {
    before_ask (self, write);
    probe_release (self, PROBE_OUT);
  }
  return 1;
}

int probe_connection_before_write (int fd, const struct iovec *iov, int iov_count, int flags,
                                   probe_write_t *ret_write)
{
  probe_connection_t *self = lookup (fd, &ret_write->generation);
  if (!self || iov_count <= 0)
    return 0;
  ret_write->insert = 0;
  ret_write->old = 0;
  ret_write->mode = MODE_COUNT;
  ret_write->index = index_of (self);
  if (PROBE_LIKELY (probe_state (self) == PROBE_GIVEN_UP) && !self->pending_size)
    return 1;
  ret_write->app_iov = iov;
  ret_write->app_count = iov_count;
  ret_write->flags = flags;
  int saved = errno;
  int tracked = before_write (self, fd, ret_write);
  errno = saved;
  return tracked;
}

static weft_error_t error_of (int error)
{
  switch (error) {
  case ECONNRESET:
  case EPIPE:
    return WEFT_ERROR_RESET;
  case ETIMEDOUT:
    return WEFT_ERROR_TIMEOUT;
  default:
    return WEFT_ERROR_NONE;
  }
}

static void after_answer (probe_connection_t *self, const probe_write_t *write, ssize_t result)
{
  if (!swap (self, PROBE_OUT, write->generation, CALL, WORK))
    return; // closed or given up meanwhile
  if (result > 0) {
    self->seen[PROBE_OUT] += (uint64_t) result;
    if (probe_state (self) == PROBE_PROVEN || probe_state (self) == PROBE_CANDIDATE)
      probe_exchange_answer (self, write->app_iov, write->app_count, (size_t) result);
  }
  probe_release (self, PROBE_OUT);
}

/* A file under the number of a socket: nothing of it left, the plain call is due. */
static ssize_t again_plain (int fd, probe_write_t *write)
{
  write->insert = 0;
  probe_connection_shared (fd);
  return probe_real.writev (fd, write->app_iov, write->app_count);
}

/* Less than everything left, or the rest of an insert did. Returns what the application may see. */
static ssize_t after_short (probe_connection_t *self, int fd, probe_write_t *write, ssize_t result)
{
  size_t text = 0, app = result > 0 ? probe_embed_share (write, (size_t) result, &text) : 0;
  ssize_t seen = result < 0 ? result : (ssize_t) app;
  int held = hold (self, PROBE_OUT, write->generation, WORK);
  if (held != 1 || self->turn[PROBE_OUT] != write->turn) {
    if (held)
      probe_give_up (self, SHM_COUNT_GIVEN_UP_BUSY, held == 1 ? PROBE_HOLDS (PROBE_OUT) : 0);
    if (held == 1)
      probe_release (self, PROBE_OUT);
    return seen;
  }
  size_t all = write->app_size + (write->insert ? write->insert_size - write->cut : 0);
  self->seen[PROBE_OUT] -= all - (size_t) (result > 0 ? result : 0);
  probe_embed_rollback (self, write, result);
  if (result > 0 && app == 0)
    seen = probe_embed_finish (self, write, fd);
  probe_release (self, PROBE_OUT);
  return seen;
}

ssize_t probe_connection_after_write (int fd, probe_write_t *write, ssize_t result)
{
  probe_connection_t *self = &pool[write->index];
  int saved = errno;
  if (PROBE_LIKELY (result > 0))
    moved (self, (size_t) result);
  if (write->mode == MODE_COUNT)
    return result;
  if (result < 0 && saved == ENOTSOCK && write->insert)
    return again_plain (fd, write);
  weft_error_t error = result < 0 ? error_of (saved) : WEFT_ERROR_NONE;
  if (error && __atomic_load_n (&self->generation, __ATOMIC_RELAXED) == write->generation)
    self->error = (uint8_t) error;
  if (write->mode == MODE_ANSWER) {
    after_answer (self, write, result);
    errno = saved;
    return result;
  }
  __atomic_store_n (&self->calling[PROBE_OUT], 0, __ATOMIC_RELEASE);
  if (PROBE_LIKELY (probe_embed_whole (write, result) && !write->old))
    return (ssize_t) write->app_size;
  errno = saved;
  return after_short (self, fd, write, result);
}

void probe_connection_sent_opaque (int fd, size_t size)
{
  int saved = errno;
  uint32_t generation;
  probe_connection_t *self = lookup (fd, &generation);
  if (self && size && ready (self, fd)) {
    moved (self, size);
    if (probe_state (self) != PROBE_GIVEN_UP && hold (self, PROBE_OUT, generation, WORK) == 1) {
      self->seen[PROBE_OUT] += size;
      probe_exchange_opaque (self, size);
      probe_release (self, PROBE_OUT);
    }
  }
  errno = saved;
}

/* ---- reading ------------------------------------------------------------ */
int probe_connection_before_read (int fd, probe_read_t *ret_read)
{
  probe_connection_t *self = lookup (fd, &ret_read->generation);
  if (!self)
    return 0;
  ret_read->index = index_of (self);
  ret_read->turn = __atomic_load_n (&self->turn[PROBE_IN], __ATOMIC_ACQUIRE);
  __atomic_store_n (&self->calling[PROBE_IN], 1, __ATOMIC_RELEASE);
  return 1;
}

static void inbound (probe_connection_t *self, const struct iovec *iov, int iov_count, size_t size)
{
  __atomic_store_n (&self->seen[PROBE_IN], self->seen[PROBE_IN] + size, __ATOMIC_RELEASE);
  if (probe_state (self) == PROBE_UNKNOWN) {
    size_t first = iov[0].iov_len < size ? iov[0].iov_len : size;
    int candidate = probe_proof_candidate (self, PROBE_IN, iov[0].iov_base, first, size);
    self->last = PROBE_IN + 1;
    if (!candidate)
      return;
    self->seen[PROBE_IN] = size;
  }
  if (self->role == PROBE_ROLE_CLIENT)
    probe_exchange_answer (self, iov, iov_count, size);
  else
    probe_capture_requests (self, iov, iov_count, size);
}

/* The stream has ended, or failed, in our direction. */
static void ended (probe_connection_t *self, weft_error_t error)
{
  if (error != WEFT_ERROR_CLOSED)
    self->error = (uint8_t) error;
  // A server's answer may still be on its way when its client has said all.
  if (self->role == PROBE_ROLE_CLIENT)
    probe_exchange_end (self, error);
}

void probe_connection_after_read (int fd, const probe_read_t *read, const struct iovec *iov, int iov_count,
                                  ssize_t result)
{
  int saved = errno;
  probe_connection_t *self = &pool[read->index];
  weft_error_t error = result < 0 ? error_of (saved) : WEFT_ERROR_CLOSED;
  __atomic_store_n (&self->calling[PROBE_IN], 0, __ATOMIC_RELEASE);
  if (result < 0 && !error)
    return;
  if (result == 0 && size_of (iov, iov_count) == 0)
    return;
  if (result > 0)
    moved (self, (size_t) result);
  if (PROBE_LIKELY (probe_state (self) == PROBE_GIVEN_UP))
    return;
  int held = hold (self, PROBE_IN, read->generation, WORK);
  if (held == 1) {
    if (!ready (self, fd))
      goto out;
    if (self->turn[PROBE_IN] != read->turn) {
      probe_give_up (self, SHM_COUNT_GIVEN_UP_BUSY, PROBE_HOLDS (PROBE_IN));
      goto out;
    }
    __atomic_store_n (&self->turn[PROBE_IN], read->turn + 1, __ATOMIC_RELEASE);
    if (result > 0)
      inbound (self, iov, iov_count, (size_t) result);
    else if (probe_state (self) == PROBE_PROVEN)
      ended (self, error);
  out:
    probe_release (self, PROBE_IN);
  } else if (held < 0) {
    probe_give_up (self, SHM_COUNT_GIVEN_UP_BUSY, 0);
  }
  errno = saved;
}

/* ---- all of them -------------------------------------------------------- */
static uint32_t pool_used (void)
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
  __atomic_fetch_add (&epoch, 1, __ATOMIC_SEQ_CST);
  for (uint32_t i = 0; i < pool_used (); i++) {
    int fd = __atomic_load_n (&pool[i].fd, __ATOMIC_RELAXED);
    uint32_t entry = entry_of (&pool[i]);
    if (fd >= 0 && __atomic_compare_exchange_n (&fds[fd], &entry, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      record_close (&pool[i], WEFT_ERROR_OPEN, WEFT_REPORT_OPEN);
  }
  errno = saved;
}

/* One thread is left, whatever the others held. */
void probe_connections_reset (void)
{
  epoch++;
  for (int fd = 0; fd < PROBE_FDS_MAX; fd++)
    if (fds[fd])
      fds[fd] = 0;
  pool_free = 0;
  for (uint32_t i = pool_used (); i-- > 0;) {
    pool[i].busy[PROBE_IN] = pool[i].busy[PROBE_OUT] = word (pool[i].generation, DEAD);
    pool[i].pending_size = 0;
    record_free (&pool[i]);
  }
  probe_embed_reset ();
}
