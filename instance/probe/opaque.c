/* SPDX-License-Identifier: Apache-2.0 */
#include "opaque.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../shm/writer.h"
#include "guess.h"
#include "proof.h"
#include "quiet.h"
#include "record.h"

#define LOCK_YIELDS 32   /* for another thread to leave a sum, where nothing waits */
#define TELL_YIELDS 1000 /* the same, before a sum is given up for lost */
#define LOOK_MAX    64   /* sums of one subtask looked at: as many peers */
#define LOCKED      1u

/* word = life << 1 | locked. The life grows when the sum is told. */
typedef struct {
  uint32_t word;
  uint32_t next;          /* index + 1: in its subtask's list, or of free ones */
  probe_handle_t context; /* of.handle, for a look without the lock; 0: free */
  probe_context_t of;
  weft_address_t peer;
  uint8_t protocol, error;
  uint32_t waiting;  /* calls without an answer */
  uint64_t since_ns; /* their starts, added up */
  uint64_t start_ns, end_ns;
  weft_opaque_t all;
} __attribute__ ((aligned (64))) sum_t;

static sum_t pool[PROBE_SUMS_MAX];
static uint32_t fresh;                     /* sums ever used */
static uint64_t free_list;                 /* index + 1 | tag << 32, the tag against ABA */
static uint32_t lists[PROBE_SUBTASKS_MAX]; /* by place in the table of subtasks: index + 1 */

/* ---- one sum -------------------------------------------------------------- */
static int lock (sum_t *sum, uint32_t life, int yields)
{
  for (int i = 0; i < yields; i++) {
    uint32_t expected = life << 1;
    if (PROBE_LIKELY (__atomic_compare_exchange_n (&sum->word, &expected, expected | LOCKED, 0,
                                                   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
      return 1;
    if (expected >> 1 != (life & (UINT32_MAX >> 1)))
      return 0;
    sched_yield ();
  }
  return 0;
}

static void unlock (sum_t *sum)
{
  __atomic_store_n (&sum->word, __atomic_load_n (&sum->word, __ATOMIC_RELAXED) & ~LOCKED, __ATOMIC_RELEASE);
}

static uint32_t life_of (const sum_t *sum)
{
  return __atomic_load_n (&sum->word, __ATOMIC_ACQUIRE) >> 1;
}

static sum_t *new_sum (void)
{
  uint64_t head = __atomic_load_n (&free_list, __ATOMIC_ACQUIRE);
  while ((uint32_t) head) {
    sum_t *sum = &pool[(uint32_t) head - 1];
    uint64_t next = __atomic_load_n (&sum->next, __ATOMIC_RELAXED) | ((head >> 32) + 1) << 32;
    if (__atomic_compare_exchange_n (&free_list, &head, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return sum;
  }
  if (__atomic_load_n (&fresh, __ATOMIC_RELAXED) < PROBE_SUMS_MAX) {
    uint32_t index = __atomic_fetch_add (&fresh, 1, __ATOMIC_RELAXED);
    if (index < PROBE_SUMS_MAX)
      return &pool[index];
  }
  probe_count (SHM_COUNT_TABLE_FULL, 1);
  return NULL;
}

/* The caller has locked it and taken it out of its list. */
static void free_sum (sum_t *sum)
{
  __atomic_store_n (&sum->context, 0, __ATOMIC_RELAXED);
  __atomic_store_n (&sum->word, (__atomic_load_n (&sum->word, __ATOMIC_RELAXED) | LOCKED) + 1,
                    __ATOMIC_RELEASE);
  uint64_t head = __atomic_load_n (&free_list, __ATOMIC_RELAXED);
  do
    __atomic_store_n (&sum->next, (uint32_t) head, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n (&free_list, &head,
                                       ((uint32_t) (sum - pool) + 1) | ((head >> 32) + 1) << 32, 0,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

/* ---- reports -------------------------------------------------------------- */
static void report (const sum_t *sum, uint32_t flags)
{
  weft_report_t told = {
      .kind = WEFT_REPORT_OPAQUE,
      .error = sum->error,
      .protocol = sum->protocol,
      .flags = flags,
      .tid = probe_tid (),
      .request = weft_ids_next (probe_ids ()),
      .subtask = sum->of.subtask,
      .start_ns = sum->start_ns,
      .end_ns = sum->end_ns,
      .cpu_ns = WEFT_NS_NONE,
      .peer = sum->peer,
      .name = "",
      .opaque = sum->all,
  };
  memcpy (told.task, sum->of.task, sizeof told.task);
  shm_write (probe_shm, told.tid, &told);
}

/* O1. Locked; what is told of it. */
static void tell (sum_t *sum, int open)
{
  uint32_t flags = 0;
  if (open && sum->waiting) {
    sum->end_ns = weft_boot_ns ();
    sum->all.wait_ns += sum->waiting * sum->end_ns - sum->since_ns;
    flags = WEFT_REPORT_OPEN;
  }
  sum->all.calls += sum->waiting;
  if (sum->all.calls == 0 && sum->all.bytes_out)
    sum->all.calls = 1; // a farewell, to a peer that was asked nothing else
  if (sum->all.calls)
    report (sum, flags);
}

static uint32_t *list_of (probe_handle_t context)
{
  return &lists[(uint32_t) context & (PROBE_SUBTASKS_MAX - 1)];
}

static void put_into (uint32_t *list, sum_t *sum)
{
  uint32_t head = __atomic_load_n (list, __ATOMIC_RELAXED);
  do
    __atomic_store_n (&sum->next, head, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n (list, &head, (uint32_t) (sum - pool) + 1, 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED));
}

/* Who comes late (O3) may find the sums of the subtask that has the place by now: they go
 * back. `context` 0: all are told. */
static void tell_list (uint32_t *list, probe_handle_t context, int open)
{
  uint32_t at = __atomic_exchange_n (list, 0, __ATOMIC_ACQ_REL);
  while (at) {
    sum_t *sum = &pool[at - 1];
    probe_handle_t of = __atomic_load_n (&sum->context, __ATOMIC_RELAXED);
    at = __atomic_load_n (&sum->next, __ATOMIC_RELAXED);
    if (context && of != context && probe_context_is_open (of)) {
      put_into (list, sum);
      if (PROBE_UNLIKELY (!probe_context_is_open (of)))
        probe_opaque_finish (of, 0);
    } else if (lock (sum, life_of (sum), TELL_YIELDS)) {
      tell (sum, open);
      free_sum (sum);
    } else {
      probe_count (SHM_COUNT_FAULTS, 1); // lost until the fork or the end of the process
    }
  }
}

void probe_opaque_finish (probe_handle_t context, int open)
{
  uint32_t *list = list_of (context);
  if (PROBE_UNLIKELY (__atomic_load_n (list, __ATOMIC_SEQ_CST)))
    tell_list (list, context, open);
}

void probe_opaque_flush (void)
{
  for (uint32_t i = 0; i < PROBE_SUBTASKS_MAX; i++)
    if (lists[i])
      tell_list (&lists[i], 0, 1);
}

/* One thread is left, whatever the others held. */
void probe_opaque_reset (void)
{
  memset (lists, 0, sizeof lists);
  for (uint32_t i = 0; i < fresh && i < PROBE_SUMS_MAX; i++) {
    pool[i].word = (pool[i].word | LOCKED) + 1;
    pool[i].context = 0;
  }
  free_list = 0;
  fresh = 0;
}

/* ---- the sum of a call ---------------------------------------------------- */
/* What a sum is of. */
typedef struct {
  const probe_context_t *of;
  const weft_address_t *peer;
  uint8_t protocol, error;
} sum_key_t;

/* Locked, or NULL. */
static sum_t *find_sum (const sum_key_t *key)
{
  probe_handle_t context = key->of->handle;
  uint32_t at = __atomic_load_n (list_of (context), __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; at && i < LOOK_MAX; i++) {
    sum_t *sum = &pool[at - 1];
    uint32_t life = life_of (sum);
    at = __atomic_load_n (&sum->next, __ATOMIC_RELAXED);
    if (__atomic_load_n (&sum->context, __ATOMIC_RELAXED) != context || !lock (sum, life, LOCK_YIELDS))
      continue;
    if (sum->context == context && sum->protocol == key->protocol && sum->error == key->error &&
        memcmp (&sum->peer, key->peer, sizeof sum->peer) == 0)
      return sum;
    unlock (sum);
  }
  return NULL;
}

/* Locked, or NULL. It is in its list already: who ends the subtask waits for the lock. */
static sum_t *take_sum (const sum_key_t *key)
{
  sum_t *sum = find_sum (key);
  if (sum)
    return sum;
  sum = new_sum ();
  if (!sum || !lock (sum, life_of (sum), LOCK_YIELDS))
    return NULL;
  sum->of = *key->of;
  sum->peer = *key->peer;
  sum->protocol = key->protocol;
  sum->error = key->error;
  sum->waiting = 0;
  sum->since_ns = sum->start_ns = sum->end_ns = 0;
  memset (&sum->all, 0, sizeof sum->all);
  __atomic_store_n (&sum->context, key->of->handle, __ATOMIC_RELAXED);
  put_into (list_of (key->of->handle), sum);
  return sum;
}

static void leave_sum (sum_t *sum, probe_handle_t context)
{
  unlock (sum);
  if (PROBE_UNLIKELY (!probe_context_is_open (context)))
    probe_opaque_finish (context, 0); // O3
}

/* A call that is over. 0: there is no room for it. */
static int add_call (const sum_key_t *key, uint64_t start_ns, uint64_t now, uint64_t bytes_out)
{
  sum_t *sum = take_sum (key);
  if (!sum)
    return 0;
  if (!sum->start_ns || start_ns < sum->start_ns)
    sum->start_ns = start_ns;
  sum->end_ns = now;
  sum->all.calls++;
  sum->all.wait_ns += now - start_ns;
  sum->all.bytes_out += bytes_out;
  leave_sum (sum, key->of->handle);
  return 1;
}

void probe_opaque_once (const probe_context_t *of, uint8_t protocol, const weft_address_t *peer,
                        weft_error_t error, uint64_t start_ns)
{
  sum_key_t key = {of, peer, protocol, (uint8_t) error};
  if (of->subtask)
    add_call (&key, start_ns, weft_boot_ns (), 0);
}

/* The one of the connection's last call, locked. NULL: there is none any more. */
static sum_t *last_sum (const probe_connection_t *self)
{
  uint32_t at = __atomic_load_n (&self->sum, __ATOMIC_ACQUIRE);
  if (!at)
    return NULL;
  sum_t *sum = &pool[at - 1];
  return lock (sum, self->sum_life, LOCK_YIELDS) ? sum : NULL;
}

/* Unlocks the sum of the connection's last call: the one that it lapsed into (O6). */
static sum_t *lapsed_sum (const probe_connection_t *self, sum_t *sum)
{
  probe_context_t of = sum->of;
  sum_key_t key = {&of, &self->peer, sum->protocol, WEFT_ERROR_TIMEOUT};
  unlock (sum);
  return find_sum (&key);
}

/* The call that waits is not one of the sum's any more. */
static void forget_call (probe_connection_t *self, sum_t *sum)
{
  if (!sum->waiting)
    return;
  sum->waiting--;
  sum->since_ns -= self->call_ns;
}

static void set_fd (const probe_connection_t *self, uint8_t state)
{
  int fd = self->fd;
  if (self->quiet && (unsigned) fd < PROBE_FDS_MAX)
    probe_quiet_set (self, fd, state);
}

static void detach (probe_connection_t *self)
{
  __atomic_store_n (&self->sum, 0, __ATOMIC_RELEASE);
  self->waiting = 0;
  self->lapsed_ns = 0;
  set_fd (self, self->shared ? PROBE_FD_QUIET : PROBE_FD_CLIENT);
}

/* O4. `sum` is locked: the call that waits is not to be told as one. */
static void share (probe_connection_t *self, sum_t *sum)
{
  if (sum && self->waiting && !self->lapsed_ns)
    forget_call (self, sum);
  if (sum)
    unlock (sum);
  self->shared = 1;
  probe_count (SHM_COUNT_SHARED, 1);
  detach (self);
}

/* ---- calls ---------------------------------------------------------------- */
static void begin_call (probe_connection_t *self, sum_t *sum)
{
  uint64_t now = weft_boot_ns ();
  self->waiting = 1;
  self->call_ns = now;
  self->call_bytes = 0;
  sum->waiting++;
  sum->since_ns += now;
  sum->end_ns = now;
  if (!sum->start_ns)
    sum->start_ns = now;
  sum->all.bytes_in += self->early; // what the peer sent unasked
  self->early = 0;
}

int probe_opaque_ask (probe_connection_t *self, const void *data, size_t first_size, size_t size)
{
  probe_context_t of;
  weft_reason_t reason;
  if (self->shared || !__atomic_load_n (&self->described, __ATOMIC_ACQUIRE))
    return 0;
  int known = probe_context_near () && probe_context_current (&of, &reason) && of.subtask;
  sum_t *sum = last_sum (self);
  // Also where its subtask has ended meanwhile: the answer may still come, and is not ours.
  if (self->waiting && (!sum || !known || sum->context != of.handle)) {
    share (self, sum);
    return 0;
  }
  if (sum && (!known || sum->context != of.handle)) {
    unlock (sum);
    sum = NULL;
  }
  if (!known) {
    detach (self);
    return 0;
  }
  if (!sum) {
    if (!self->protocol)
      probe_opaque_name (self, PROBE_OUT, data, first_size);
    sum_key_t key = {&of, &self->peer, probe_opaque_protocol (self), WEFT_ERROR_NONE};
    sum = take_sum (&key);
    if (!sum)
      return 0;
    self->sum_life = life_of (sum);
    __atomic_store_n (&self->sum, (uint32_t) (sum - pool) + 1, __ATOMIC_RELEASE);
  }
  if (!self->waiting)
    begin_call (self, sum);
  if (PROBE_UNLIKELY (self->lapsed_ns) && !(sum = lapsed_sum (self, sum)))
    return 0;
  // Added before the call, as the peer may answer before it returns.
  sum->all.bytes_out += size;
  self->call_bytes += size;
  set_fd (self, PROBE_FD_CALLING);
  leave_sum (sum, of.handle);
  return 1;
}

/* The call that waits has failed: it goes to a sum of its own. Unlocks. */
static void fail (probe_connection_t *self, sum_t *sum, weft_error_t error, uint64_t now)
{
  probe_context_t of = sum->of;
  sum_key_t key = {&of, &self->peer, sum->protocol, (uint8_t) error};
  forget_call (self, sum);
  self->waiting = self->lapsed_ns != 0;
  sum->all.bytes_out -= self->call_bytes;
  unlock (sum);
  if (!add_call (&key, self->call_ns, now, self->call_bytes)) {
    self->waiting = 0;
    self->lapsed_ns = 0;
  }
}

void probe_opaque_wrote (probe_connection_t *self, uint32_t generation, size_t size, ssize_t result,
                         int error)
{
  size_t left = result > 0 ? (size_t) result : 0;
  if (left == size || __atomic_load_n (&self->generation, __ATOMIC_ACQUIRE) != generation)
    return;
  sum_t *sum = last_sum (self);
  if (sum && self->lapsed_ns)
    sum = lapsed_sum (self, sum);
  if (!sum)
    return;
  sum->all.bytes_out -= size - left;
  self->call_bytes -= size - left;
  weft_error_t failed = result < 0 ? probe_error_of (error) : WEFT_ERROR_NONE;
  if (failed && self->waiting && !self->lapsed_ns)
    fail (self, sum, failed, weft_boot_ns ());
  else
    unlock (sum);
}

void probe_opaque_lapse (probe_connection_t *self, uint32_t generation)
{
  uint64_t now = weft_boot_ns ();
  sum_t *sum = self->waiting && __atomic_load_n (&self->generation, __ATOMIC_ACQUIRE) == generation
                   ? last_sum (self)
                   : NULL;
  if (!sum)
    return;
  if (!self->waiting) { // heard meanwhile
    unlock (sum);
    return;
  }
  uint64_t before = self->lapsed_ns;
  self->lapsed_ns = now;
  if (!before) {
    fail (self, sum, WEFT_ERROR_TIMEOUT, now);
    return;
  }
  sum = lapsed_sum (self, sum);
  if (!sum)
    return;
  sum->all.wait_ns += now - before;
  sum->end_ns = now;
  unlock (sum);
}

/* O6. `sum` is locked; returns it, or NULL where the call is told already. */
static sum_t *take_back (probe_connection_t *self, sum_t *sum)
{
  uint64_t lapsed_ns = self->lapsed_ns;
  self->waiting = 0; // nobody else takes it back
  self->lapsed_ns = 0;
  sum_t *other = lapsed_sum (self, sum);
  if (other) {
    other->all.calls--;
    other->all.wait_ns -= lapsed_ns - self->call_ns;
    other->all.bytes_out -= self->call_bytes;
    unlock (other);
  }
  sum = last_sum (self);
  if (!sum || !other)
    return sum;
  self->waiting = 1;
  sum->waiting++;
  sum->since_ns += self->call_ns;
  sum->all.bytes_out += self->call_bytes;
  return sum;
}

void probe_opaque_heard (probe_connection_t *self, uint32_t generation, ssize_t result, int error)
{
  weft_error_t failed = result == 0  ? WEFT_ERROR_CLOSED
                        : result < 0 ? probe_error_of (error)
                                     : WEFT_ERROR_NONE;
  if (__atomic_load_n (&self->generation, __ATOMIC_ACQUIRE) != generation || (result < 0 && !failed))
    return;
  sum_t *sum = last_sum (self);
  if (sum && PROBE_UNLIKELY (self->lapsed_ns))
    sum = take_back (self, sum);
  if (!sum) {
    detach (self);
    return;
  }
  uint64_t now = weft_boot_ns ();
  if (failed) {
    if (self->waiting)
      fail (self, sum, failed, now);
    else
      unlock (sum);
    return;
  }
  if (self->waiting) {
    self->waiting = 0;
    forget_call (self, sum);
    sum->all.calls++;
    sum->all.wait_ns += now - self->call_ns;
  }
  self->answered = 1;
  sum->all.bytes_in += (uint64_t) result;
  sum->end_ns = now;
  unlock (sum);
}

void probe_opaque_closing (probe_connection_t *self)
{
  sum_t *sum = self->waiting && !self->lapsed_ns ? last_sum (self) : NULL;
  if (!sum)
    return;
  forget_call (self, sum);
  sum->all.calls += !self->answered; // else it was a farewell
  unlock (sum);
}

/* ---- names ---------------------------------------------------------------- */
void probe_opaque_name (probe_connection_t *self, probe_direction_t direction, const void *data, size_t size)
{
  int asks = (direction == PROBE_OUT) == (self->role != PROBE_ROLE_SERVER);
  weft_protocol_t found = asks ? probe_guess_client (data, size) : probe_guess_server (data, size);
  if (found)
    self->protocol = (uint8_t) found;
}

int probe_opaque_recognise (probe_connection_t *self, const void *data, size_t size)
{
  if (self->peer.family == 1 || self->peer.port >= PROBE_EPHEMERAL_FIRST ||
      self->local.port < PROBE_EPHEMERAL_FIRST)
    return 0;
  weft_protocol_t found = probe_guess_message (data, size);
  if (!found)
    return 0;
  self->protocol = (uint8_t) found;
  self->role = PROBE_ROLE_CLIENT;
  return 1;
}

uint8_t probe_opaque_at (const weft_address_t *service)
{
  if (service->family == 1)
    return WEFT_PROTOCOL_UNIX;
  weft_protocol_t found = probe_guess_port (service->port);
  return (uint8_t) (found ? found : WEFT_PROTOCOL_TCP);
}

uint8_t probe_opaque_protocol (const probe_connection_t *self)
{
  if (self->protocol)
    return self->protocol;
  if (self->likely)
    return self->likely;
  const weft_address_t *service = self->role == PROBE_ROLE_SERVER ? &self->local : &self->peer;
  return self->peer.family == 1 ? WEFT_PROTOCOL_UNIX : probe_opaque_at (service);
}
