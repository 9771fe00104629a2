/* SPDX-License-Identifier: Apache-2.0 */
#include "exchange.h"

#include <errno.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/fault_step.h"
#include "../shm/writer.h"
#include "opaque.h"
#include "proof.h"

weft_error_t probe_error_of (int error)
{
  switch (error) {
  case ECONNREFUSED:
    return WEFT_ERROR_REFUSED;
  case ECONNRESET:
  case EPIPE:
    return WEFT_ERROR_RESET;
  case ETIMEDOUT:
    return WEFT_ERROR_TIMEOUT;
  default:
    return WEFT_ERROR_NONE;
  }
}

/* In blocks up to the end of both: the string instructions that stand for a copy of so
 * few bytes cost more to start. */
static inline void copy_name (char to[WEFT_NAME_MAX], const char from[WEFT_NAME_MAX], size_t size)
{
  enum { BLOCK = 16 };
  _Static_assert(WEFT_NAME_MAX % BLOCK == 0, "no block goes beyond");
  for (size_t at = 0; at < size; at += BLOCK)
    memcpy (to + at, from + at, BLOCK);
}

void probe_exchange_begin (probe_exchange_t *self, const probe_http1_t *head, uint64_t start_ns)
{
  memset (self, 0, offsetof (probe_exchange_t, name));
  self->method = head->method;
  self->name_size = head->name_size;
  copy_name (self->name, head->name, head->name_size);
  self->flags = head->cut ? WEFT_REPORT_CUT : 0;
  self->tid = probe_tid ();
  self->start_ns = start_ns;
  self->cpu_ns = WEFT_NS_NONE;
}

static void tell (const probe_connection_t *connection, const probe_exchange_t *self, weft_error_t error,
                  uint32_t flags, uint64_t end_ns)
{
  // Field by field: what other kinds have stays unset, and no loop clears it.
  weft_report_t report;
  report.kind = self->kind;
  report.error = (uint8_t) error;
  report.reason = self->reason;
  report.protocol = 0;
  report.status = self->status;
  report.name_size = self->name_size;
  report.flags = self->flags | flags;
  report.instruction = self->instruction;
  report.tid = self->tid;
  report.request = self->request;
  report.subtask = self->subtask;
  report.start_ns = self->start_ns;
  report.end_ns = end_ns;
  report.cpu_ns = WEFT_NS_NONE;
  report.local = connection->local;
  report.peer = connection->peer;
  report.name = self->name;
  memcpy (report.task, self->task, sizeof report.task);
  // The CPU clock is the thread's: another thread's end says nothing about it.
  if (self->cpu_ns != WEFT_NS_NONE && self->tid == probe_tid ())
    report.cpu_ns = weft_clock_ns (CLOCK_THREAD_CPUTIME_ID) - self->cpu_ns;
  shm_write (probe_shm, self->tid, &report);
}

/* E3. One clock_gettime for all that a call completes: *now_p, 0 at first. */
static void pop (probe_connection_t *connection, weft_error_t error, uint32_t flags, uint64_t *now_p)
{
  probe_exchange_t *self = probe_exchange (connection, connection->popped);
  if (self->kind == WEFT_REPORT_EMBED || self->kind == WEFT_REPORT_CAPTURE) {
    if (*now_p == 0)
      *now_p = weft_boot_ns ();
    tell (connection, self, error, flags, *now_p);
  }
  probe_context_close (self->context);
  if (self->context)
    probe_opaque_finish (self->context, (flags & WEFT_REPORT_OPEN) != 0);
  __atomic_store_n (&connection->popped, connection->popped + 1, __ATOMIC_RELEASE);
}

void probe_exchange_abandon (probe_connection_t *self, weft_error_t error, uint32_t flags)
{
  uint64_t now = 0;
  uint32_t end = __atomic_load_n (&self->pushed, __ATOMIC_ACQUIRE);
  // E2: what stands behind the last head that left was never sent.
  uint32_t sent = self->role == PROBE_ROLE_CLIENT ? self->machine[PROBE_OUT].heads : end;
  while (self->popped != end) {
    if ((int32_t) (sent - self->popped) <= 0)
      probe_exchange (self, self->popped)->kind = 0;
    pop (self, error, flags, &now);
  }
}

void probe_exchange_end (probe_connection_t *self, weft_error_t error)
{
  uint64_t now = 0;
  uint32_t pushed = __atomic_load_n (&self->pushed, __ATOMIC_ACQUIRE);
  if (error == WEFT_ERROR_CLOSED && self->popped != pushed &&
      probe_http1_eof (&self->machine[probe_answers (self)]) == PROBE_HTTP1_END)
    pop (self, WEFT_ERROR_NONE, 0, &now);
  probe_exchange_abandon (self, error, 0);
}

/* One answer is complete, `rest` bytes of this call follow it. */
static void answered (probe_connection_t *self, size_t rest)
{
  if (probe_state (self) != PROBE_CANDIDATE)
    return;
  probe_direction_t direction = probe_answers (self);
  int lockstep = rest == 0 && self->popped == __atomic_load_n (&self->pushed, __ATOMIC_ACQUIRE) &&
                 probe_http1_idle (&self->machine[direction ^ 1]);
  if (!lockstep || !probe_proof_complete (self))
    probe_misfit (self, direction, PROBE_HOLDS (direction));
}

/* Returns 0 when the rest of the call is not to be looked at. */
static int answer_event (probe_connection_t *self, probe_http1_event_t event, size_t rest, uint64_t *now_p)
{
  probe_direction_t direction = probe_answers (self);
  probe_http1_t *machine = &self->machine[direction];
  switch (event) {
  case PROBE_HTTP1_HEAD:
    if (machine->status >= 200)
      probe_exchange (self, self->popped)->status = machine->status;
    if (self->role == PROBE_ROLE_CLIENT && probe_http1_opaque (machine) == UINT64_MAX)
      __atomic_store_n (&self->last_answer, 1, __ATOMIC_RELEASE);
    return 1;
  case PROBE_HTTP1_END:
    pop (self, WEFT_ERROR_NONE, 0, now_p);
    answered (self, rest);
    return probe_state (self) == PROBE_PROVEN;
  case PROBE_HTTP1_TUNNEL:
    probe_exchange (self, self->popped)->status = machine->status;
    pop (self, WEFT_ERROR_NONE, 0, now_p);
    probe_give_up (self, SHM_COUNT_GIVEN_UP_TUNNEL, PROBE_HOLDS (direction));
    return 0;
  default:
    probe_misfit (self, direction, PROBE_HOLDS (direction));
    return 0;
  }
}

/* One stretch of bytes. Returns 0 when the rest of the call is not to be looked at. */
static int answer (probe_connection_t *self, const char *data, size_t size, size_t behind, uint64_t *now_p)
{
  probe_direction_t direction = probe_answers (self);
  probe_http1_t *machine = &self->machine[direction];
  for (;;) {
    if (size && probe_http1_idle (machine)) {
      // Nobody asked: this is not the protocol that we know.
      if (self->popped == __atomic_load_n (&self->pushed, __ATOMIC_ACQUIRE)) {
        probe_misfit (self, direction, PROBE_HOLDS (direction));
        return 0;
      }
      machine->answer_to = probe_exchange (self, self->popped)->method;
    }
    size_t used;
    probe_http1_event_t event = probe_http1_feed (machine, data, size, &used);
    if (WEFT_STEP_FAILS ("framing of answers"))
      event = PROBE_HTTP1_FAILED;
    data += used;
    size -= used;
    if (event == PROBE_HTTP1_MORE)
      return 1;
    if (!answer_event (self, event, size + behind, now_p))
      return 0;
    if (event == PROBE_HTTP1_END && size == 0)
      return 1;
  }
}

void probe_exchange_answer (probe_connection_t *self, const struct iovec *iov, int iov_count, size_t size)
{
  uint64_t now = 0;
  for (int i = 0; i < iov_count && size; i++) {
    size_t part = iov[i].iov_len < size ? iov[i].iov_len : size;
    size -= part;
    if (part && !answer (self, iov[i].iov_base, part, size, &now))
      return;
  }
}

void probe_exchange_opaque (probe_connection_t *self, size_t size)
{
  uint64_t now = 0;
  probe_state_t state = probe_state (self);
  if (state == PROBE_UNKNOWN) {
    self->last = PROBE_OUT + 1;
    return;
  }
  probe_http1_event_t event = probe_http1_skip (&self->machine[PROBE_OUT], size);
  if (state != PROBE_PROVEN || event == PROBE_HTTP1_FAILED || self->pending_size)
    probe_misfit (self, PROBE_OUT, PROBE_HOLDS (PROBE_OUT));
  else if (event == PROBE_HTTP1_END && self->role == PROBE_ROLE_SERVER)
    pop (self, WEFT_ERROR_NONE, 0, &now);
}

static void tell_bare (probe_connection_t *self, weft_reason_t reason)
{
  const probe_http1_t *head = &self->machine[PROBE_OUT];
  uint64_t now = weft_boot_ns ();
  weft_report_t report = {
      .kind = WEFT_REPORT_BARE,
      .reason = (uint8_t) reason,
      .name_size = head->name_size,
      .flags = head->cut ? WEFT_REPORT_CUT : 0,
      .tid = probe_tid (),
      .start_ns = now,
      .end_ns = now,
      .cpu_ns = WEFT_NS_NONE,
      .local = self->local,
      .peer = self->peer,
      .name = head->name,
  };
  shm_write (probe_shm, report.tid, &report);
}

void probe_exchange_bare (probe_connection_t *self, weft_reason_t reason)
{
  uint8_t class = reason == WEFT_REASON_UNMATCHED ? 1 : 2;
  uint64_t serial = __atomic_load_n (&probe_config, __ATOMIC_ACQUIRE)->serial;
  if (self->bare_serial != serial) {
    self->bare_serial = serial;
    self->bare_said = 0;
  }
  if (self->bare_said & class)
    return;
  self->bare_said |= class;
  tell_bare (self, reason);
}

void probe_exchange_bare_end (probe_connection_t *self)
{
  if (self->bare_said)
    tell_bare (self, WEFT_REASON_NONE);
  self->bare_said = 0;
}
