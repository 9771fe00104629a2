/* SPDX-License-Identifier: Apache-2.0 */
#include "embed.h"

#include <errno.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/fault_step.h"
#include "proof.h"
#include "record.h"
#include "socket_calls.h"

_Static_assert(PROBE_TRACE_FIELD_MAX <= PROBE_EDIT_MIN &&
                   PROBE_TRACE_FIELD_MAX + PROBE_TRACESTATE_FIELD_MAX <= PROBE_INSERT_MAX,
               "both lines fit");

static unsigned waiting;

unsigned probe_embed_waiting (void)
{
  return __atomic_load_n (&waiting, __ATOMIC_RELAXED);
}

void probe_embed_reset (void)
{
  waiting = 0;
}

/* `cut`: it stands for as many bytes of the application. */
static void set_pending (probe_connection_t *self, const char *text, size_t size, int cut)
{
  if (!self->pending_size && size)
    __atomic_fetch_add (&waiting, 1, __ATOMIC_RELAXED);
  else if (self->pending_size && !size)
    __atomic_fetch_sub (&waiting, 1, __ATOMIC_RELAXED);
  memmove (self->pending, text, size);
  self->pending_size = (uint16_t) size;
  self->pending_cut = cut && size;
}

/* ---- the replaced vector ------------------------------------------------ */
static void add (probe_write_t *write, const char *data, size_t size)
{
  if (size == 0 || write->iov_count == (int) (sizeof write->room->iov / sizeof *write->room->iov))
    return; // full only where a rest precedes a longer vector: what is left out leaves later
  write->room->iov[write->iov_count].iov_base = (void *) (uintptr_t) data;
  write->room->iov[write->iov_count++].iov_len = size;
}

/* The caller's bytes up to `limit`, with the edits in their places. */
static void splice (probe_write_t *write, size_t limit)
{
  const probe_edit_t *edit = write->room->edit, *last = edit + write->edit_count;
  size_t begin = 0, at = 0; // of the part in hand; how far we are
  write->insert = 1;
  write->iov_count = 0;
  write->grown = 0;
  for (int i = 0; i < write->app_count; i++) {
    const char *data = write->app_iov[i].iov_base;
    size_t end = begin + write->app_iov[i].iov_len;
    end = end < limit ? end : limit;
    // An edit stands before a byte, so never behind the last part; the bytes that it is
    // for may go over into the next.
    for (; edit < last && edit->offset < end; edit++) {
      if (edit->offset > at)
        add (write, data + (at - begin), edit->offset - at);
      add (write, edit->text, edit->size);
      write->grown += edit->size - edit->cut;
      at = edit->offset + edit->cut;
    }
    if (at < end) {
      add (write, data + (at - begin), end - at);
      at = end;
    }
    begin += write->app_iov[i].iov_len;
  }
}

probe_share_t probe_embed_share (const probe_write_t *write, size_t result)
{
  probe_share_t share = {0, 0, 0};
  for (; write->insert && share.begun < write->edit_count; share.begun++) {
    const probe_edit_t *edit = &write->room->edit[share.begun];
    size_t before = edit->offset - share.app;
    if (result <= before)
      break;
    result -= before;
    share.app += before;
    if (result < edit->size) {
      share.app += edit->cut ? result : 0;
      share.text = result;
      share.begun++;
      return share;
    }
    result -= edit->size;
    share.app += edit->cut;
  }
  share.app += result;
  return share;
}

int probe_embed_whole (const probe_write_t *write, ssize_t result)
{
  if (!write->insert)
    return result >= 0 && (size_t) result == write->app_size;
  return result >= 0 && (size_t) result == write->app_size + write->grown && !write->room->edit[0].old;
}

/* The rest of a cut insert as the first edit, and only that. */
static void put_pending (probe_connection_t *self, probe_write_t *write)
{
  probe_edit_t *edit = &write->room->edit[0];
  size_t size = self->pending_size;
  // Digits that stand for the application's: as many as it hands in now.
  if (self->pending_cut && size > write->app_size)
    size = write->app_size;
  edit->text = write->room->texts;
  write->text_size = (uint16_t) size;
  memcpy (edit->text, self->pending, size);
  edit->old = 1;
  edit->offset = 0;
  edit->size = size;
  edit->cut = self->pending_cut ? size : 0;
  write->edit_count = 1;
}

void probe_embed_pending (probe_connection_t *self, probe_write_t *write)
{
  put_pending (self, write);
  splice (write, SIZE_MAX);
}

/* ---- what a request carries --------------------------------------------- */
static void bare (probe_connection_t *self, probe_exchange_t *exchange, weft_reason_t reason)
{
  exchange->kind = WEFT_REPORT_BARE;
  probe_exchange_bare (self, reason);
}

/* --embed-to. A configuration that was replaced meanwhile forbids. */
static int may_reach (const probe_connection_t *self, const probe_config_t *config)
{
  if (config->embed_to == WEFT_EMBED_TO_ANY || self->peer.family == 1 ||
      (config->embed_to == WEFT_EMBED_TO_PRIVATE && self->is_private))
    return 1;
  uint64_t serial = __atomic_load_n (&config->serial, __ATOMIC_ACQUIRE);
  uint32_t count = config->filter.network_count;
  int holds = weft_networks_hold (config->filter.networks,
                                  count < SHM_NETWORKS_MAX ? count : SHM_NETWORKS_MAX, &self->peer);
  __atomic_thread_fence (__ATOMIC_ACQUIRE);
  return holds && __atomic_load_n (&config->serial, __ATOMIC_RELAXED) == serial;
}

/* The next alteration of this write; there is one for every request in flight. */
static probe_edit_t *new_edit (probe_write_t *write, const probe_http1_t *head)
{
  probe_edit_t *edit = &write->room->edit[write->edit_count++];
  edit->old = 0;
  edit->cut = 0;
  edit->head = head->heads;
  edit->text = write->room->texts + write->text_size;
  return edit;
}

/* For the text of the last edit, so that each one to come has its least. */
static size_t text_room (const probe_write_t *write)
{
  size_t kept = (size_t) (PROBE_EDITS_MAX - write->edit_count) * PROBE_EDIT_MIN;
  size_t room = sizeof write->room->texts - write->text_size - kept;
  return room < PROBE_INSERT_MAX ? room : PROBE_INSERT_MAX;
}

/* NONE, or why nothing may be altered on this connection now. */
static weft_reason_t may_touch (probe_connection_t *self, const probe_config_t *config,
                                const probe_write_t *write)
{
  if (write->edit_count == PROBE_EDITS_MAX)
    return WEFT_REASON_PIPELINE;
  if (!may_reach (self, config))
    return WEFT_REASON_ADDRESS;
  if (write->app_count > PROBE_IOV_MAX)
    return WEFT_REASON_HEAD_LIMIT;
  if (self->inserts % PROBE_PROOF_EVERY == 0) {
    int holds = probe_proof_holds (self);
    if (holds == 0)
      probe_give_up (self, SHM_COUNT_GIVEN_UP_PROOF, PROBE_HOLDS (PROBE_OUT));
    if (holds != 1)
      return WEFT_REASON_UNPROVEN;
  }
  self->inserts++;
  return WEFT_REASON_NONE;
}

static void take (probe_exchange_t *exchange, const probe_trace_t *trace)
{
  exchange->kind = WEFT_REPORT_EMBED;
  memcpy (exchange->task, trace->task, WEFT_TASK_ID_SIZE);
  exchange->request = trace->request;
}

/* The application's own context goes out. Where it is one that we received, it
 * is a header passed on as it came, and its request id becomes one of ours if
 * the digits leave in this call; else it is marked (C7). */
static void carry (probe_connection_t *self, probe_write_t *write, probe_exchange_t *exchange,
                   const probe_carried_t *carried, size_t at, int forwarded)
{
  const probe_http1_t *head = &self->machine[PROBE_OUT];
  const probe_config_t *config = __atomic_load_n (&probe_config, __ATOMIC_ACQUIRE);
  int private = carried == &head->weft;
  size_t digits = carried->at + (private ? PROBE_WEFT_TASK_DIGITS : PROBE_TRACEPARENT_DIGITS);
  take (exchange, &carried->trace);
  exchange->flags |= WEFT_REPORT_ADOPTED | (private ? WEFT_REPORT_PRIVATE : 0);
  if (!forwarded)
    return;
  exchange->flags |= WEFT_REPORT_FORWARDED;
  // at - head_size: where this head begins, seen from this call; may be before it.
  if (at + digits < head->head_size || may_touch (self, config, write) != WEFT_REASON_NONE)
    return;
  exchange->flags &= ~(WEFT_REPORT_ADOPTED | WEFT_REPORT_FORWARDED);
  exchange->request = weft_ids_next (probe_ids ());
  probe_edit_t *edit = new_edit (write, head);
  probe_hex_put (edit->text, exchange->request);
  edit->offset = at + digits - head->head_size;
  edit->size = edit->cut = 16;
  write->text_size += 16;
}

/* The tracestate of the subtask, as much of it as the head has room for. One that the application
 * sends is not ours to complete. */
static size_t put_tracestate (char *out, size_t room, const probe_http1_t *head,
                              const probe_context_t *context, size_t inserted)
{
  char text[PROBE_TRACESTATE_MAX];
  size_t size = context && !head->tracestates ? probe_context_tracestate (context->handle, text) : 0;
  size_t all = head->head_size + inserted + 2;
  if (size == 0 || head->fields + 2 > PROBE_EMBED_FIELDS_MAX || all >= PROBE_EMBED_HEAD_MAX)
    return 0;
  return probe_tracestate_put (out, room < PROBE_EMBED_HEAD_MAX - all ? room : PROBE_EMBED_HEAD_MAX - all,
                               text, size);
}

static void insert (probe_connection_t *self, probe_write_t *write, probe_exchange_t *exchange,
                    const probe_context_t *context, size_t at)
{
  const probe_http1_t *head = &self->machine[PROBE_OUT];
  const probe_config_t *config = __atomic_load_n (&probe_config, __ATOMIC_ACQUIRE);
  weft_reason_t reason = WEFT_REASON_HEAD_LIMIT;
  if (head->fields <= PROBE_EMBED_FIELDS_MAX && head->head_size <= PROBE_EMBED_HEAD_MAX)
    reason = may_touch (self, config, write);
  if (reason != WEFT_REASON_NONE) {
    bare (self, exchange, reason);
    return;
  }
  probe_trace_t trace = {.request = weft_ids_next (probe_ids ())};
  if (context)
    memcpy (trace.task, context->task, WEFT_TASK_ID_SIZE);
  else
    weft_ids_task (probe_ids (), trace.task);
  take (exchange, &trace);
  probe_edit_t *edit = new_edit (write, head);
  edit->offset = at;
  if (config->carrier == WEFT_CARRIER_WEFT || head->foreign) {
    exchange->flags |= WEFT_REPORT_PRIVATE;
    edit->size = probe_weft_task_put (edit->text, &trace);
  } else {
    size_t size = probe_traceparent_put (edit->text, &trace, context ? context->flags : 0);
    edit->size = size + put_tracestate (edit->text + size, text_room (write) - size, head, context, size);
  }
  write->text_size += (uint16_t) edit->size;
}

static void choose (probe_connection_t *self, probe_write_t *write, probe_exchange_t *exchange, size_t at)
{
  const probe_http1_t *head = &self->machine[PROBE_OUT];
  const probe_config_t *config = __atomic_load_n (&probe_config, __ATOMIC_ACQUIRE);
  const probe_carried_t *carried = NULL;
  probe_context_t context;
  weft_reason_t reason = WEFT_REASON_NONE;
  if (head->weft.count)
    carried = &head->weft;
  else if (head->traceparent.count && config->carrier != WEFT_CARRIER_WEFT)
    carried = &head->traceparent;
  if (carried && (carried->count > 1 || !carried->valid)) {
    bare (self, exchange, WEFT_REASON_CONTEXT);
    return;
  }
  int forwarded = carried ? probe_context_find (carried->trace.task, carried->trace.request, &context) : 0;
  int known = forwarded == 1 || probe_context_current (&context, &reason);
  if (forwarded > 1 && known && memcmp (context.task, carried->trace.task, WEFT_TASK_ID_SIZE) != 0) {
    known = 0;
    reason = WEFT_REASON_SEVERAL_OPEN;
  }
  if (known && context.subtask == 0) {
    bare (self, exchange, WEFT_REASON_UNMATCHED);
    return;
  }
  exchange->subtask = known ? context.subtask : 0;
  if (!known) {
    exchange->flags |= WEFT_REPORT_ORPHAN;
    exchange->reason = (uint8_t) reason;
  }
  if (carried)
    carry (self, write, exchange, carried, at, forwarded);
  else
    insert (self, write, exchange, known ? &context : NULL, at);
}

/* The blank line of a head is next, at offset `at` of this call (E2). */
static void decide (probe_connection_t *self, probe_write_t *write, size_t at)
{
  const probe_http1_t *head = &self->machine[PROBE_OUT];
  uint32_t number = head->heads - 1;
  uint32_t popped = __atomic_load_n (&self->popped, __ATOMIC_ACQUIRE);
  int again = self->pushed != number; // a short write took it back
  if (__atomic_load_n (&self->last_answer, __ATOMIC_ACQUIRE)) {
    // Hijacked: both sides speak something else below an answer that has no end.
    probe_give_up (self, SHM_COUNT_GIVEN_UP_TUNNEL, PROBE_HOLDS (PROBE_OUT));
    return;
  }
  if ((int32_t) (number - popped) > 0 && probe_exchange (self, number - 1)->method == PROBE_METHOD_CONNECT) {
    // Said in advance to whom the tunnel will lead.
    probe_give_up (self, SHM_COUNT_GIVEN_UP_TUNNEL, PROBE_HOLDS (PROBE_OUT));
    return;
  }
  if (WEFT_STEP_FAILS ("queue of requests") || number - popped >= PROBE_EXCHANGES_MAX) {
    // Full; or popped already: answered before it had been sent.
    if ((int32_t) (number - popped) > 0)
      probe_exchange_bare (self, WEFT_REASON_PIPELINE);
    probe_give_up (self, SHM_COUNT_GIVEN_UP_OTHER, PROBE_HOLDS (PROBE_OUT));
    return;
  }
  probe_exchange_t *exchange = probe_exchange (self, number);
  uint8_t before = again ? exchange->kind : 0;
  probe_exchange_begin (exchange, head, self->start_ns);
  if (probe_state (self) == PROBE_PROVEN) {
    if (!again)
      probe_asked (self);
    if ((probe_active () & WEFT_ACTION_EMBED) && head->method != PROBE_METHOD_CONNECT)
      choose (self, write, exchange, at);
    if (exchange->kind != before && exchange->kind)
      probe_count (exchange->kind == WEFT_REPORT_EMBED ? SHM_COUNT_EMBEDDED : SHM_COUNT_BARE, 1);
  } else {
    if (!again)
      probe_count (SHM_COUNT_UNPROVEN, 1);
    if (probe_active () & WEFT_ACTION_EMBED)
      probe_exchange_bare (self, WEFT_REASON_UNPROVEN);
  }
  if (!again)
    __atomic_store_n (&self->pushed, number + 1, __ATOMIC_RELEASE);
}

/* ---- bytes on their way out --------------------------------------------- */
/* The end of a request is about to leave. Where its answer was there before, the peer may have
 * had that end from somebody else, a child that writes into our socket: no insertion before the
 * kernel has agreed once more (C2). */
static void early (probe_connection_t *self)
{
  uint32_t popped = __atomic_load_n (&self->popped, __ATOMIC_ACQUIRE);
  if ((int32_t) (popped - self->machine[PROBE_OUT].heads) >= 0)
    self->inserts = 0;
}

/* One stretch; *at_p is its offset in the call. Returns 0 when the connection
 * is not followed any further. */
static int outbound (probe_connection_t *self, probe_write_t *write, const char *data, size_t size,
                     size_t *at_p)
{
  probe_http1_t *machine = &self->machine[PROBE_OUT];
  for (;;) {
    if (size && probe_http1_idle (machine)) {
      // In lockstep only one request is ever under way.
      if (probe_state (self) == PROBE_CANDIDATE && machine->heads) {
        probe_misfit (self, PROBE_OUT, PROBE_HOLDS (PROBE_OUT));
        return 0;
      }
      self->start_ns = weft_boot_ns ();
    }
    size_t used;
    probe_http1_event_t event = probe_http1_feed (machine, data, size, &used);
    if (WEFT_STEP_FAILS ("framing of requests sent"))
      event = PROBE_HTTP1_FAILED;
    data += used;
    size -= used;
    *at_p += used;
    switch (event) {
    case PROBE_HTTP1_MORE:
      return 1;
    case PROBE_HTTP1_BLANK:
      // mark: part of what this head carries has left in an earlier call.
      if (!machine->mark)
        decide (self, write, *at_p);
      machine->mark = 0;
      if (probe_state (self) == PROBE_GIVEN_UP)
        return 0;
      break;
    case PROBE_HTTP1_HEAD:
      break;
    case PROBE_HTTP1_END:
      early (self);
      break;
    default:
      probe_misfit (self, PROBE_OUT, PROBE_HOLDS (PROBE_OUT));
      return 0;
    }
  }
}

static void keep (probe_write_t *write, const probe_http1_t *machine)
{
  write->skipped = 0;
  write->heads = machine->heads;
  write->fresh = (uint8_t) probe_http1_at_start (machine);
  if (!write->fresh)
    memcpy (write->room->snapshot, machine, sizeof *machine);
}

void probe_embed_before (probe_connection_t *self, probe_write_t *write)
{
  size_t at = 0;
  // In the middle of a body, which is most bytes, nothing can be decided.
  if (probe_http1_opaque (&self->machine[PROBE_OUT]) > write->app_size) {
    write->skipped = 1;
    probe_http1_skip (&self->machine[PROBE_OUT], write->app_size);
    return;
  }
  keep (write, &self->machine[PROBE_OUT]);
  for (int i = 0; i < write->app_count; i++)
    if (write->app_iov[i].iov_len &&
        !outbound (self, write, write->app_iov[i].iov_base, write->app_iov[i].iov_len, &at))
      break;
  if (write->edit_count)
    splice (write, SIZE_MAX);
}

/* ---- what the kernel did not take --------------------------------------- */
/* The machine as it was before the call, then `size` bytes of the application. */
static void feed_again (probe_connection_t *self, const probe_write_t *write, size_t size)
{
  probe_http1_t *machine = &self->machine[PROBE_OUT];
  if (write->fresh)
    probe_http1_rewind (machine, write->heads);
  else
    memcpy (machine, write->room->snapshot, sizeof *machine);
  for (int i = 0; i < write->app_count && size; i++) {
    const char *data = write->app_iov[i].iov_base;
    size_t part = write->app_iov[i].iov_len < size ? write->app_iov[i].iov_len : size;
    size -= part;
    while (write->app_iov[i].iov_len) {
      size_t used;
      probe_http1_event_t event = probe_http1_feed (machine, data, part, &used);
      data += used;
      part -= used;
      if (event == PROBE_HTTP1_BLANK)
        machine->mark = 0;
      else if (event == PROBE_HTTP1_MORE || event == PROBE_HTTP1_FAILED)
        break;
    }
  }
}

void probe_embed_rollback (probe_connection_t *self, probe_write_t *write, ssize_t result)
{
  probe_share_t share = {0, 0, 0};
  if (result > 0)
    share = probe_embed_share (write, (size_t) result);
  const probe_edit_t *edit = share.begun ? &write->room->edit[share.begun - 1] : NULL;
  if (probe_state (self) == PROBE_PROVEN || probe_state (self) == PROBE_CANDIDATE) {
    if (write->skipped)
      probe_http1_unskip (&self->machine[PROBE_OUT], write->app_size - share.app);
    else
      feed_again (self, write, share.app);
    // The blank line is still to come, and what it decides is decided.
    if (edit && !edit->old && self->machine[PROBE_OUT].heads < edit->head)
      self->machine[PROBE_OUT].mark = 1;
  }
  if (edit && write->room->edit[0].old) {
    size_t gone = edit == write->room->edit && share.text ? share.text : write->room->edit[0].size;
    set_pending (self, self->pending + gone, self->pending_size - gone, self->pending_cut);
  }
  if (edit && share.text && !edit->old)
    set_pending (self, edit->text + share.text, edit->size - share.text, edit->cut != 0);
}

static ssize_t send_spliced (probe_write_t *write, int fd)
{
  struct msghdr message;
  memset (&message, 0, sizeof message);
  message.msg_iov = write->room->iov;
  message.msg_iovlen = (size_t) write->iov_count;
  return probe_real.sendmsg (fd, &message, write->flags);
}

/* Only the insert left, nothing of the application: it has written nothing, and
 * must be told so, or wait until some of it has. A call that succeeds takes a byte
 * at least; one that fails is the application's to see, with nothing written. */
ssize_t probe_embed_finish (probe_connection_t *self, probe_write_t *write, int fd)
{
  if ((write->flags & MSG_DONTWAIT) || probe_kernel.nonblocking (fd)) {
    errno = EAGAIN;
    return -1;
  }
  // Not up to the next edit: what that was for is not decided any more.
  size_t limit = write->edit_count > 1 ? write->room->edit[1].offset : SIZE_MAX;
  for (int i = 0; i <= PROBE_INSERT_MAX; i++) {
    put_pending (self, write);
    splice (write, limit);
    ssize_t result = send_spliced (write, fd);
    if (result < 0)
      return result;
    size_t app = probe_embed_share (write, (size_t) result).app;
    keep (write, &self->machine[PROBE_OUT]);
    self->seen[PROBE_OUT] += (uint64_t) result;
    probe_embed_rollback (self, write, result);
    if (app)
      return (ssize_t) app;
  }
  errno = EAGAIN;
  return -1;
}

ssize_t probe_embed_alone (probe_write_t *write, int fd, ssize_t result)
{
  if (result <= 0)
    return result;
  probe_share_t share = probe_embed_share (write, (size_t) result);
  if (share.text) {
    const probe_edit_t *edit = &write->room->edit[share.begun - 1];
    while (share.text < edit->size && !edit->cut) {
      ssize_t sent = probe_real.send (fd, edit->text + share.text, edit->size - share.text, MSG_NOSIGNAL);
      if (sent <= 0) {
        probe_count (SHM_COUNT_FAULTS, 1);
        return share.app ? (ssize_t) share.app : -1;
      }
      share.text += (size_t) sent;
    }
  }
  if (share.app)
    return (ssize_t) share.app;
  write->edit_count = 0;
  splice (write, SIZE_MAX);
  return send_spliced (write, fd);
}

int probe_embed_flush (probe_connection_t *self, int fd, int flags)
{
  // Digits stand for bytes that the application has yet to hand in: they stay its own.
  while (self->pending_size && !self->pending_cut) {
    ssize_t sent = probe_real.send (fd, self->pending, self->pending_size, flags | MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
      return 0;
    if (sent <= 0)
      break;
    self->seen[PROBE_OUT] += (uint64_t) sent;
    set_pending (self, self->pending + sent, self->pending_size - (size_t) sent, 0);
  }
  set_pending (self, self->pending, 0, 0);
  return 1;
}

void probe_embed_forget (probe_connection_t *self, int send)
{
  if (!self->pending_size)
    return;
  if (send && !self->pending_cut)
    (void) probe_real.send (self->fd, self->pending, self->pending_size, MSG_DONTWAIT | MSG_NOSIGNAL);
  set_pending (self, self->pending, 0, 0);
}
