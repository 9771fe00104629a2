/* SPDX-License-Identifier: Apache-2.0 */
/* Life and bytes of a connection. What bytes mean is decided in embed.c (we
 * ask), capture.c (we are asked) and exchange.c (the answers). */
#include "connection.h"

#include <errno.h>
#include <string.h>

#include "capture.h"
#include "embed.h"
#include "exchange.h"
#include "opaque.h"
#include "patience.h"
#include "proof.h"
#include "quiet.h"
#include "reach.h"
#include "record.h"
#include "socket_calls.h"

#define HOLD_TRIES 100 /* each of them yields, before the rest of an insert is given up for lost */

/* What after_write has to do. Ask and answer: undo what a short write did not take, follow
 * the answer that left; the same in the middle of a body, by its lessee. The rest are not
 * followed: count bytes; the same of an opaque call; the kernel counts them (quiet.h); see
 * whether the peer has been reached. */
typedef enum {
  MODE_ASK,
  MODE_ANSWER,
  MODE_ASK_BODY,
  MODE_ANSWER_BODY,
  MODE_COUNT,
  MODE_CALL,
  MODE_OPAQUE,
  MODE_REACH
} write_mode_t;

/* ---- giving up ---------------------------------------------------------- */
void probe_give_up (probe_connection_t *self, shm_counter_t why, unsigned held)
{
  probe_count_bytes (self);
  if (why == SHM_COUNT_GIVEN_UP_TUNNEL)
    self->likely = WEFT_PROTOCOL_TUNNEL;
  else if (why != SHM_COUNT_GIVEN_UP_OTHER || self->machine[PROBE_OUT].heads || self->machine[PROBE_IN].heads)
    self->likely = WEFT_PROTOCOL_HTTP;
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
  if (!mine && !probe_take (self, answers, PROBE_WORK, PROBE_CLOSE_YIELDS))
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

/* ---- birth and death ---------------------------------------------------- */
void probe_connection_born (int fd, probe_role_t role)
{
  int saved = errno;
  int client = role == PROBE_ROLE_CLIENT;
  if ((unsigned) fd >= PROBE_FDS_MAX) {
    probe_count (SHM_COUNT_TABLE_FULL, 1);
    return;
  }
  probe_record_drop (fd);
  probe_connection_t *self = probe_record_new (fd, PROBE_PROVEN);
  if (self) {
    self->role = (uint8_t) role;
    self->base[PROBE_OUT] = client; // the kernel counts the SYN that we sent
    probe_http1_init (&self->machine[PROBE_OUT], client ? PROBE_HTTP1_REQUEST : PROBE_HTTP1_RESPONSE);
    probe_http1_init (&self->machine[PROBE_IN], client ? PROBE_HTTP1_RESPONSE : PROBE_HTTP1_REQUEST);
    probe_record_publish (fd, self);
  }
  errno = saved;
}

void probe_connection_refused (int fd, int error)
{
  int saved = errno;
  // It stands already, or will: the first connect told of its birth.
  if (error != EISCONN && error != EALREADY && error != EINTR)
    probe_record_drop (fd);
  errno = saved;
}

void probe_connection_closing (int fd)
{
  int saved = errno;
  probe_record_drop (fd);
  errno = saved;
}

void probe_connection_shared (int fd)
{
  int saved = errno;
  uint32_t generation = 0;
  probe_connection_t *self = probe_record_known (fd, &generation);
  if (self)
    probe_give_up (self, SHM_COUNT_GIVEN_UP_OTHER, 0);
  // The next byte may come by the other name.
  if (self && self->pending_size && probe_hold (self, PROBE_OUT, generation, PROBE_WORK) == 1) {
    (void) probe_embed_flush (self, fd, MSG_DONTWAIT);
    probe_release (self, PROBE_OUT);
  }
  errno = saved;
}

void probe_connection_shutdown (int fd, int how)
{
  int saved = errno;
  uint32_t generation = 0;
  probe_connection_t *self = probe_record_known (fd, &generation);
  if (self && self->role == PROBE_ROLE_SERVER && probe_state (self) == PROBE_PROVEN &&
      (how == SHUT_WR || how == SHUT_RDWR) && probe_hold (self, PROBE_OUT, generation, PROBE_WORK) == 1) {
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

/* The write that showed what the connection is not, before it leaves: the first of its
 * calls, unless a request of it has been taken for one already. */
static void first_call (probe_connection_t *self, probe_write_t *write, uint32_t pushed)
{
  const struct iovec *first = write->app_iov;
  if (!self->protocol)
    probe_opaque_name (self, PROBE_OUT, first->iov_base, first->iov_len);
  if (self->role == PROBE_ROLE_CLIENT && !write->insert && self->pushed == pushed)
    write->opaque = (uint8_t) probe_opaque_ask (self, first->iov_base, first->iov_len, write->app_size);
}

/* The bytes that we ask with, or that we do not understand yet. */
static void before_ask (probe_connection_t *self, probe_write_t *write)
{
  const struct iovec *first = write->app_iov;
  uint32_t pushed = self->pushed;
  if (probe_state (self) == PROBE_UNKNOWN) {
    int turn = self->last != PROBE_OUT + 1;
    if (!probe_proof_candidate (self, PROBE_OUT, first->iov_base, first->iov_len, write->app_size) && turn &&
        write->app_count == 1 && probe_opaque_recognise (self, first->iov_base, first->iov_len))
      probe_give_up (self, SHM_COUNT_GIVEN_UP_OTHER, PROBE_HOLDS (PROBE_OUT));
    self->last = PROBE_OUT + 1;
  }
  if (PROBE_UNLIKELY (self->pending_size))
    probe_embed_pending (self, write);
  probe_state_t state = probe_state (self);
  write->turn = ++self->turn[PROBE_OUT];
  if ((state == PROBE_PROVEN || state == PROBE_CANDIDATE) && self->role == PROBE_ROLE_CLIENT)
    probe_embed_before (self, write);
  if (PROBE_UNLIKELY (probe_state (self) == PROBE_GIVEN_UP))
    first_call (self, write, pushed);
  // Added before the call, as the peer may answer before it returns.
  self->seen[PROBE_OUT] += write->app_size + (write->insert ? write->grown : 0);
  __atomic_store_n (&self->calling[PROBE_OUT], 1, __ATOMIC_RELEASE);
}

/* Where the rest of an insert depends on it: whoever holds the direction never waits in
 * it, except for the same. */
static int hold_patiently (probe_connection_t *self, uint32_t generation)
{
  int held = -1;
  for (int i = 0; i < HOLD_TRIES && held < 0; i++)
    held = probe_hold (self, PROBE_OUT, generation, PROBE_WORK);
  return held;
}

/* 1: not connected yet, and somebody wants to know when it will not be. */
static int is_reaching (const probe_connection_t *self, uint32_t generation)
{
  return __atomic_load_n (&self->reach_ns, __ATOMIC_RELAXED) &&
         __atomic_load_n (&self->generation, __ATOMIC_ACQUIRE) == generation;
}

/* 1: the write may be altered. */
static int wants_room (const probe_connection_t *self)
{
  probe_state_t state = probe_state (self);
  if (self->pending_size)
    return 1;
  if (state == PROBE_UNKNOWN) // a unix socket is never taken up in mid-life
    return !__atomic_load_n (&self->described, __ATOMIC_ACQUIRE) || self->peer.family != 1;
  return state != PROBE_GIVEN_UP && self->role != PROBE_ROLE_SERVER;
}

/* What before_body did not take. */
static probe_write_how_t before_other (probe_connection_t *self, int fd, probe_write_t *write)
{
  if (!probe_record_ready (self, fd)) {
    write->mode = MODE_REACH;
    return is_reaching (self, write->generation) ? PROBE_WRITE_TRACKED : PROBE_WRITE_PLAIN;
  }
  write->app_size = size_of (write->app_iov, write->app_count);
  if (write->app_size == 0)
    return PROBE_WRITE_PLAIN;
  if (!write->room && wants_room (self))
    return PROBE_WRITE_ROOM;
  int answers = self->role == PROBE_ROLE_SERVER &&
                (probe_state (self) == PROBE_PROVEN || probe_state (self) == PROBE_CANDIDATE);
  int held = probe_hold (self, PROBE_OUT, write->generation, answers ? PROBE_CALL : PROBE_WORK);
  if (held < 0 && self->pending_size)
    held = hold_patiently (self, write->generation);
  if (held < 0) {
    probe_give_up (self, SHM_COUNT_GIVEN_UP_BUSY, 0);
    return PROBE_WRITE_TRACKED; // only counted
  }
  if (held == 0)
    return PROBE_WRITE_PLAIN;
  if (!write->room && !answers && wants_room (self)) { // since we looked
    probe_release (self, PROBE_OUT);
    return PROBE_WRITE_ROOM;
  }
  write->mode = answers ? MODE_ANSWER : MODE_ASK;
  if (!answers) {
    before_ask (self, write);
    probe_settle (self, PROBE_OUT);
  }
  return PROBE_WRITE_TRACKED;
}

static __attribute__ ((noinline)) probe_write_how_t before_write (int fd, probe_write_t *write)
{
  int saved = errno;
  probe_write_how_t how = before_other (write->record, fd, write);
  errno = saved;
  return how;
}

static __attribute__ ((noinline)) probe_write_how_t before_given_up (probe_connection_t *self, int fd,
                                                                     probe_write_t *write)
{
  int saved = errno;
  const struct iovec *first = write->app_iov;
  if (!probe_quiet_become (self, fd)) {
    errno = saved;
    return PROBE_WRITE_PLAIN;
  }
  size_t size = size_of (first, write->app_count);
  if (size && self->role == PROBE_ROLE_CLIENT && (self->sum || probe_context_near ()))
    write->opaque = (uint8_t) probe_opaque_ask (self, first->iov_base, first->iov_len, size);
  errno = saved;
  write->mode = self->quiet ? MODE_OPAQUE : write->opaque ? MODE_CALL : MODE_COUNT;
  return write->opaque || !self->quiet ? PROBE_WRITE_TRACKED : PROBE_WRITE_PLAIN;
}

/* Bytes that end nothing, in the middle of a body, by the lessee of the direction:
 * nothing to read in them, no order to keep. 0: they are not that. */
static inline int before_body (probe_connection_t *self, probe_write_t *write)
{
  probe_http1_t *machine = &self->machine[PROBE_OUT];
  size_t size = write->app_iov[0].iov_len;
  if (PROBE_UNLIKELY (write->app_count != 1))
    size = size_of (write->app_iov, write->app_count);
  if (size == 0 || probe_state (self) != PROBE_PROVEN || probe_phase_opaque (machine) <= size)
    return 0;
  write->app_size = size;
  write->mode = MODE_ASK_BODY;
  write->skipped = 1;
  write->turn = ++self->turn[PROBE_OUT];
  machine->left -= size;
  self->seen[PROBE_OUT] += size;
  __atomic_store_n (&self->calling[PROBE_OUT], 1, __ATOMIC_RELEASE);
  return 1;
}

/* Nothing here or in the inline functions below calls anything, save for the rare
 * and as the last thing: a body's bytes pay for no saved register and no errno. */
probe_write_how_t probe_connection_before_write (int fd, const struct iovec *iov, int iov_count, int flags,
                                                 probe_write_t *write)
{
  probe_connection_t *self = probe_lookup (fd, &write->generation);
  if (!self || iov_count <= 0)
    return PROBE_WRITE_PLAIN;
  write->insert = 0;
  write->skipped = write->opaque = 0;
  write->edit_count = 0;
  write->text_size = 0;
  write->mode = MODE_COUNT;
  write->record = self;
  write->app_iov = iov;
  write->app_count = iov_count;
  if (PROBE_UNLIKELY (probe_state (self) == PROBE_GIVEN_UP) && !self->pending_size) {
    // A unix socket, and no subtask near: only counted.
    if (self->peer.family == 1 && !self->sum && !probe_context_near ())
      return PROBE_WRITE_TRACKED;
    return before_given_up (self, fd, write);
  }
  // A head, usually: said at once. What else may be altered, wants_room finds.
  if (!write->room && self->role == PROBE_ROLE_CLIENT && !probe_phase_opaque (&self->machine[PROBE_OUT]))
    return PROBE_WRITE_ROOM;
  write->flags = flags;
  uint32_t generation = write->generation;
  // The lease is the place in the order of answers: whoever else writes takes it first.
  if (self->role == PROBE_ROLE_SERVER && probe_lease_mine (self, PROBE_OUT, generation)) {
    write->mode = MODE_ANSWER_BODY;
    write->turn = __atomic_load_n (&self->turn[PROBE_OUT], __ATOMIC_RELAXED);
    return PROBE_WRITE_TRACKED;
  }
  if (PROBE_LIKELY (probe_lease_enter (self, PROBE_OUT, generation))) {
    int body = before_body (self, write);
    probe_lease_leave (self, PROBE_OUT, generation);
    if (PROBE_LIKELY (body))
      return PROBE_WRITE_TRACKED;
  }
  return before_write (fd, write);
}

static void after_answer (probe_connection_t *self, const probe_write_t *write, ssize_t result)
{
  if (!probe_swap (self, PROBE_OUT, write->generation, PROBE_CALL, PROBE_WORK))
    return; // closed or given up meanwhile
  if (result > 0) {
    self->seen[PROBE_OUT] += (uint64_t) result;
    if (probe_state (self) == PROBE_PROVEN || probe_state (self) == PROBE_CANDIDATE)
      probe_exchange_answer (self, write->app_iov, write->app_count, (size_t) result);
  }
  probe_settle (self, PROBE_OUT);
}

/* 0: the lease is over, or the body is. */
static inline int after_answer_body (probe_connection_t *self, const probe_write_t *write, size_t size)
{
  if (PROBE_UNLIKELY (!probe_lease_enter (self, PROBE_OUT, write->generation)))
    return 0;
  probe_http1_t *machine = &self->machine[PROBE_OUT];
  int body = self->turn[PROBE_OUT] == write->turn && probe_phase_opaque (machine) > size;
  if (PROBE_LIKELY (body)) {
    machine->left -= size;
    self->seen[PROBE_OUT] += size;
    __atomic_store_n (&self->turn[PROBE_OUT], write->turn + 1, __ATOMIC_RELAXED);
  }
  probe_lease_leave (self, PROBE_OUT, write->generation);
  return body;
}

/* The body ends in this call; or another write came in between, and nobody can say
 * in which order the bytes stand. */
static void after_answer_leased (probe_connection_t *self, const probe_write_t *write, size_t size)
{
  int held = probe_hold (self, PROBE_OUT, write->generation, PROBE_WORK);
  if (held == 0)
    return; // closed meanwhile
  if (held < 0 || self->shy[PROBE_OUT] || self->turn[PROBE_OUT] != write->turn) {
    probe_give_up (self, SHM_COUNT_GIVEN_UP_BUSY, held == 1 ? PROBE_HOLDS (PROBE_OUT) : 0);
  } else {
    __atomic_store_n (&self->turn[PROBE_OUT], write->turn + 1, __ATOMIC_RELAXED);
    self->seen[PROBE_OUT] += size;
    if (probe_state (self) == PROBE_PROVEN)
      probe_exchange_answer (self, write->app_iov, write->app_count, size);
  }
  if (held == 1)
    probe_settle (self, PROBE_OUT);
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
  size_t app = result > 0 ? probe_embed_share (write, (size_t) result).app : 0;
  ssize_t seen = result < 0 ? result : (ssize_t) app;
  int held = hold_patiently (self, write->generation);
  if (held != 1 || self->turn[PROBE_OUT] != write->turn) {
    if (held == 0 || (held < 0 && !self->pending_size))
      seen = probe_embed_alone (write, fd, result);
    if (held)
      probe_give_up (self, SHM_COUNT_GIVEN_UP_BUSY, held == 1 ? PROBE_HOLDS (PROBE_OUT) : 0);
    if (held == 1)
      probe_release (self, PROBE_OUT);
    return seen;
  }
  size_t all = write->app_size + (write->insert ? write->grown : 0);
  self->seen[PROBE_OUT] -= all - (size_t) (result > 0 ? result : 0);
  probe_embed_rollback (self, write, result);
  if (result > 0 && app == 0)
    seen = probe_embed_finish (self, write, fd);
  probe_release (self, PROBE_OUT);
  return seen;
}

static __attribute__ ((noinline)) ssize_t after_write (int fd, probe_write_t *write, ssize_t result)
{
  probe_connection_t *self = write->record;
  int saved = errno;
  int current = __atomic_load_n (&self->generation, __ATOMIC_ACQUIRE) == write->generation;
  if (write->opaque)
    probe_opaque_wrote (self, write->generation, size_of (write->app_iov, write->app_count), result, saved);
  if (write->mode == MODE_REACH && result < 0)
    probe_reach_told (fd, saved);
  if (write->mode >= MODE_COUNT) {
    errno = saved;
    return result;
  }
  if (result < 0 && saved == ENOTSOCK && write->insert)
    return again_plain (fd, write);
  weft_error_t error = result < 0 ? probe_error_of (saved) : WEFT_ERROR_NONE;
  if (error && current)
    self->error = (uint8_t) error;
  if (write->mode == MODE_ANSWER)
    after_answer (self, write, result);
  if (write->mode == MODE_ANSWER_BODY && result > 0)
    after_answer_leased (self, write, (size_t) result);
  if (write->mode == MODE_ANSWER || write->mode == MODE_ANSWER_BODY) {
    errno = saved;
    return result;
  }
  __atomic_store_n (&self->calling[PROBE_OUT], 0, __ATOMIC_RELEASE);
  if (PROBE_LIKELY (probe_embed_whole (write, result)))
    return (ssize_t) write->app_size;
  errno = saved;
  return after_short (self, fd, write, result);
}

ssize_t probe_connection_after_write (int fd, probe_write_t *write, ssize_t result)
{
  probe_connection_t *self = write->record;
  if (PROBE_LIKELY (result > 0 && write->mode != MODE_OPAQUE)) {
    probe_moved (self, (size_t) result);
    if (write->mode == MODE_COUNT)
      return result;
    if (write->mode == MODE_ANSWER_BODY && after_answer_body (self, write, (size_t) result))
      return result;
    if (write->mode == MODE_ASK_BODY && (size_t) result == write->app_size) {
      __atomic_store_n (&self->calling[PROBE_OUT], 0, __ATOMIC_RELEASE);
      return result;
    }
  }
  return after_write (fd, write, result);
}

int probe_connection_finish (int fd)
{
  int saved = errno, done = 1;
  uint32_t generation = 0;
  probe_connection_t *self = probe_record_known (fd, &generation);
  if (self && self->pending_size && hold_patiently (self, generation) == 1) {
    done = probe_embed_flush (self, fd, 0);
    probe_release (self, PROBE_OUT);
  }
  if (done)
    errno = saved;
  return done;
}

void probe_connection_sent_opaque (int fd, size_t size)
{
  int saved = errno;
  uint32_t generation = 0;
  probe_connection_t *self = probe_lookup (fd, &generation);
  if (self && size && probe_record_ready (self, fd)) {
    if (!self->quiet)
      probe_moved (self, size);
    if (probe_state (self) != PROBE_GIVEN_UP && probe_hold (self, PROBE_OUT, generation, PROBE_WORK) == 1) {
      self->seen[PROBE_OUT] += size;
      probe_exchange_opaque (self, size);
      probe_settle (self, PROBE_OUT);
    }
  }
  errno = saved;
}

/* ---- reading ------------------------------------------------------------ */
int probe_connection_before_read (int fd, probe_read_t *ret_read)
{
  probe_connection_t *self = probe_lookup (fd, &ret_read->generation);
  if (!self)
    return 0;
  ret_read->record = self;
  ret_read->opaque = 0;
  if (PROBE_UNLIKELY (probe_state (self) == PROBE_GIVEN_UP))
    return probe_quiet_reads (self, fd, ret_read);
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
  if (probe_state (self) != PROBE_GIVEN_UP)
    return;
  if (!self->protocol)
    probe_opaque_name (self, PROBE_IN, iov[0].iov_base, iov[0].iov_len < size ? iov[0].iov_len : size);
  if (self->role == PROBE_ROLE_CLIENT && !self->sum)
    self->early = size;
  if (self->role == PROBE_ROLE_SERVER)
    probe_context_foreign ();
}

/* As before_body: the lessee of the direction, in the middle of a body. */
static inline int inbound_body (probe_connection_t *self, const probe_read_t *read, size_t size)
{
  probe_http1_t *machine = &self->machine[PROBE_IN];
  if (probe_state (self) != PROBE_PROVEN || self->turn[PROBE_IN] != read->turn ||
      probe_phase_opaque (machine) <= size)
    return 0;
  machine->left -= size;
  __atomic_store_n (&self->seen[PROBE_IN], self->seen[PROBE_IN] + size, __ATOMIC_RELEASE);
  __atomic_store_n (&self->turn[PROBE_IN], read->turn + 1, __ATOMIC_RELEASE);
  return 1;
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

static __attribute__ ((noinline)) void after_read (int fd, const probe_read_t *read, const struct iovec *iov,
                                                   int iov_count, ssize_t result)
{
  probe_connection_t *self = read->record;
  int saved = errno;
  weft_error_t error = result < 0 ? probe_error_of (saved) : WEFT_ERROR_CLOSED;
  if (result < 0 && is_reaching (self, read->generation))
    probe_reach_told (fd, saved);
  if (result < 0 && !error) {
    if (saved == EAGAIN)
      probe_patience_starved (self, read->generation);
    errno = saved;
    return;
  }
  if (result == 0 && size_of (iov, iov_count) == 0)
    return;
  if (PROBE_UNLIKELY (probe_state (self) == PROBE_GIVEN_UP)) { // while we were in the call
    if (self->role == PROBE_ROLE_CLIENT && self->sum)
      probe_opaque_heard (self, read->generation, result, saved);
    if (self->role == PROBE_ROLE_SERVER && result > 0)
      probe_context_foreign ();
    errno = saved;
    return;
  }
  if (__atomic_load_n (&self->generation, __ATOMIC_ACQUIRE) != read->generation ||
      !probe_record_ready (self, fd)) {
    errno = saved;
    return;
  }
  int held = probe_hold (self, PROBE_IN, read->generation, PROBE_WORK);
  if (held < 0 || (held && self->turn[PROBE_IN] != read->turn)) {
    probe_give_up (self, SHM_COUNT_GIVEN_UP_BUSY, held == 1 ? PROBE_HOLDS (PROBE_IN) : 0);
  } else if (held) {
    __atomic_store_n (&self->turn[PROBE_IN], read->turn + 1, __ATOMIC_RELEASE);
    if (result > 0)
      inbound (self, iov, iov_count, (size_t) result);
    else if (probe_state (self) == PROBE_PROVEN)
      ended (self, error);
  }
  if (held == 1)
    probe_settle (self, PROBE_IN);
  errno = saved;
}

void probe_connection_after_read (int fd, const probe_read_t *read, const struct iovec *iov, int iov_count,
                                  ssize_t result)
{
  probe_connection_t *self = read->record;
  if (PROBE_UNLIKELY (read->opaque)) {
    probe_quiet_heard (read, result, size_of (iov, iov_count));
    return;
  }
  __atomic_store_n (&self->calling[PROBE_IN], 0, __ATOMIC_RELEASE);
  if (PROBE_LIKELY (result > 0)) {
    probe_moved (self, (size_t) result);
    if (PROBE_LIKELY (probe_lease_enter (self, PROBE_IN, read->generation))) {
      int body = inbound_body (self, read, (size_t) result);
      probe_lease_leave (self, PROBE_IN, read->generation);
      if (PROBE_LIKELY (body))
        return;
    }
  }
  after_read (fd, read, iov, iov_count, result);
}
