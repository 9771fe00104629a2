/* SPDX-License-Identifier: Apache-2.0 */
#include "context.h"

#include <string.h>

#include "../../common/fault_step.h"
#include "state.h"

#define SUBTASKS_MAX PROBE_SUBTASKS_MAX
#define PROBES_MAX   16 /* entries looked at before the table counts as full */
#define THREAD_MAX   4  /* open subtasks remembered per thread; initial-exec TLS is scarce */

/* word = generation << 2 | state. A reader copies the entry between two looks
 * at the word; only the opener writes while it is FILLING. */
enum { FREE = 0, FILLING = 1, OPEN = 2, STATE = 3 };

/* Why an open subtask is not what its logical thread works for. For its life. */
enum { DOUBT_LOOP = 1, DOUBT_SEVERAL = 2 };

typedef struct {
  uint32_t word;
  uint32_t doubt;
  uint64_t task[2];
  uint64_t subtask, request;
  probe_handle_t previous;                /* open on the same logical thread when this one came */
  uint32_t flags, state_size;             /* what came along: traceparent's flags; bytes in states[] */
} __attribute__ ((aligned (64))) entry_t; /* one cache line */

typedef struct {
  probe_handle_t open[THREAD_MAX];
  uint32_t round;   /* of the table; another one: everything here is from before a reset */
  uint8_t overflow; /* more than THREAD_MAX were open at once: which ones is not known any more */
  uint8_t mixed;    /* work that nobody follows came while a subtask was open */
  uint8_t waited;   /* X3: void until the next open */
  uint8_t inlined;  /* X3: has closed a subtask that it had opened itself */
  uint8_t loop;     /* X3: void for good */
} thread_t;

#define STATE_WORDS (PROBE_TRACESTATE_MAX / sizeof (uint64_t))

static entry_t table[SUBTASKS_MAX];
/* tracestate of each entry, 2 MiB; pages that none needs are never touched. */
static uint64_t states[SUBTASKS_MAX][STATE_WORDS];
static uint32_t table_round;
static _Thread_local thread_t thread;
__thread uint8_t probe_context_count; /* of thread.open */
static const probe_slot_t *adapter;
uint8_t probe_context_adapted; /* 1: there is one */

static int cannot_read (probe_handle_t *ret_handle)
{
  return -1;
}
static int cannot_set (probe_handle_t handle)
{
  return -1;
}
static const probe_slot_t none = {cannot_read, cannot_set};

static uint64_t load (const uint64_t *from)
{
  return __atomic_load_n (from, __ATOMIC_RELAXED);
}
static void store (uint64_t *to, uint64_t value)
{
  __atomic_store_n (to, value, __ATOMIC_RELAXED);
}

static uint32_t place (uint64_t id)
{
  return (uint32_t) ((id * 0x9e3779b97f4a7c15ull) >> 52);
}
_Static_assert(SUBTASKS_MAX == 1 << 12, "place takes 12 bits");

static entry_t *entry_of (probe_handle_t handle)
{
  return &table[handle & (SUBTASKS_MAX - 1)];
}

/* X3 in an adapter's slot: values that are no handles, of one round of the table. */
enum { SLOT_LOOP = 1u << 30, SLOT_WAITED = 1u << 29, SLOT_INLINED = 1u << 28 };

static probe_handle_t mark_of (uint32_t kind)
{
  return kind | (uint64_t) __atomic_load_n (&table_round, __ATOMIC_ACQUIRE) << 32;
}

static int is_open (probe_handle_t handle)
{
  return (uint32_t) handle < SUBTASKS_MAX && handle &&
         __atomic_load_n (&entry_of (handle)->word, __ATOMIC_ACQUIRE) == (uint32_t) (handle >> 32);
}

/* X1. 1: *ret_context is what the handle stood for. */
static int resolve (probe_handle_t handle, probe_context_t *ret_context)
{
  if (!is_open (handle))
    return 0;
  const entry_t *entry = entry_of (handle);
  uint64_t task[2] = {load (&entry->task[0]), load (&entry->task[1])};
  uint64_t subtask = load (&entry->subtask);
  uint32_t flags = __atomic_load_n (&entry->flags, __ATOMIC_RELAXED);
  __atomic_thread_fence (__ATOMIC_ACQUIRE);
  if (!is_open (handle))
    return 0;
  memcpy (ret_context->task, task, sizeof task);
  ret_context->subtask = subtask;
  ret_context->flags = (uint8_t) flags;
  ret_context->handle = handle;
  return 1;
}

/* ---- the thread slot ---------------------------------------------------- */
static void thread_prune (void)
{
  uint32_t round = __atomic_load_n (&table_round, __ATOMIC_ACQUIRE);
  if (thread.round != round) {
    memset (&thread, 0, sizeof thread);
    probe_context_count = 0;
    thread.round = round;
  }
  unsigned kept = 0;
  for (unsigned i = 0; i < probe_context_count; i++)
    if (is_open (thread.open[i]))
      thread.open[kept++] = thread.open[i];
  probe_context_count = (uint8_t) kept;
  if (!kept)
    thread.mixed = 0;
}

static void thread_enter (probe_handle_t handle)
{
  thread_prune ();
  if (thread.inlined)
    thread.waited = 0;
  if (probe_context_count == THREAD_MAX)
    thread.overflow = 1;
  else
    thread.open[probe_context_count++] = handle;
}

/* ---- the slot of an adapter --------------------------------------------- */
static void add_doubt (probe_handle_t handle, uint32_t doubt)
{
  // Where the entry is another's by now, that one is unknown for nothing.
  if (is_open (handle))
    __atomic_fetch_or (&entry_of (handle)->doubt, doubt, __ATOMIC_RELAXED);
}

/* What a subtask that comes onto this logical thread finds there. */
static probe_handle_t slot_before (const probe_slot_t *slot, uint32_t *ret_doubt,
                                   probe_handle_t *ret_previous)
{
  probe_handle_t before = 0;
  *ret_doubt = 0;
  *ret_previous = 0;
  if (slot->get (&before) < 0)
    return 0;
  if (before == mark_of (SLOT_LOOP) || before == mark_of (SLOT_WAITED))
    *ret_doubt = DOUBT_LOOP;
  else if (is_open (before)) {
    const entry_t *entry = entry_of (before);
    *ret_previous = before;
    // Beyond two nobody keeps account.
    if (is_open (load (&entry->previous)) || __atomic_load_n (&entry->doubt, __ATOMIC_RELAXED))
      *ret_doubt = DOUBT_SEVERAL;
  }
  return before;
}

static void slot_enter (const probe_slot_t *slot, probe_handle_t before, probe_handle_t handle)
{
  if (before != mark_of (SLOT_LOOP) && slot->set (handle) < 0)
    add_doubt (before, DOUBT_SEVERAL);
}

static void slot_loop (const probe_slot_t *slot)
{
  probe_handle_t now = 0;
  if (slot->get (&now) < 0 || now == mark_of (SLOT_LOOP) || now == mark_of (SLOT_WAITED) ||
      now == mark_of (SLOT_INLINED))
    return;
  slot->set (mark_of (is_open (now) ? SLOT_LOOP : thread.inlined ? SLOT_INLINED : SLOT_WAITED));
}

void probe_context_queued (probe_handle_t handle)
{
  add_doubt (handle, DOUBT_SEVERAL);
}

/* ---- what happens on a thread ------------------------------------------- */
void probe_context_foreign (void)
{
  const probe_slot_t *slot = __atomic_load_n (&adapter, __ATOMIC_ACQUIRE);
  probe_handle_t now = 0;
  thread_prune ();
  thread.mixed = probe_context_count != 0;
  if (slot && slot->get (&now) == 0)
    add_doubt (now, DOUBT_SEVERAL);
}

void probe_context_event_loop (void)
{
  const probe_slot_t *slot = __atomic_load_n (&adapter, __ATOMIC_ACQUIRE);
  thread_prune ();
  thread.waited = 1;
  if (probe_context_count || thread.overflow)
    thread.loop = 1;
  if (slot)
    slot_loop (slot);
}

/* ---- open and close ----------------------------------------------------- */
/* The entry is being filled. */
static void fill_along (entry_t *entry, const probe_along_t *along)
{
  uint64_t *to = states[entry - table];
  size_t size = along->tracestate_size <= PROBE_TRACESTATE_MAX ? along->tracestate_size : 0;
  for (size_t at = 0; at < size; at += sizeof *to) {
    uint64_t word = 0;
    memcpy (&word, along->tracestate + at, size - at < sizeof word ? size - at : sizeof word);
    store (&to[at / sizeof word], word);
  }
  __atomic_store_n (&entry->flags, along->flags, __ATOMIC_RELAXED);
  __atomic_store_n (&entry->state_size, (uint32_t) size, __ATOMIC_RELAXED);
}

size_t probe_context_tracestate (probe_handle_t handle, char out[PROBE_TRACESTATE_MAX])
{
  if (!is_open (handle))
    return 0;
  const entry_t *entry = entry_of (handle);
  uint32_t size = __atomic_load_n (&entry->state_size, __ATOMIC_RELAXED);
  for (size_t at = 0; at < size && at < PROBE_TRACESTATE_MAX; at += sizeof (uint64_t)) {
    uint64_t word = load (&states[entry - table][at / sizeof word]);
    memcpy (out + at, &word, sizeof word);
  }
  __atomic_thread_fence (__ATOMIC_ACQUIRE);
  return is_open (handle) ? size : 0;
}

probe_handle_t probe_context_receive_with (const uint8_t task[WEFT_TASK_ID_SIZE], uint64_t subtask,
                                           uint64_t request, const probe_along_t *along)
{
  uint64_t half[2];
  memcpy (half, task, sizeof half);
  // What probe_context_find looks for stands where the request id says; the others anywhere.
  uint64_t where = request ? request : subtask ? subtask : weft_ids_next (probe_ids ());
  for (uint32_t i = WEFT_STEP_FAILS ("subtask table") ? PROBES_MAX : 0; i < PROBES_MAX; i++) {
    uint32_t index = (place (where) + i) & (SUBTASKS_MAX - 1);
    entry_t *entry = &table[index];
    uint32_t word = __atomic_load_n (&entry->word, __ATOMIC_RELAXED);
    if ((word & STATE) != FREE || !__atomic_compare_exchange_n (&entry->word, &word, word | FILLING, 0,
                                                                __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    store (&entry->task[0], half[0]);
    store (&entry->task[1], half[1]);
    store (&entry->subtask, subtask);
    store (&entry->request, request);
    fill_along (entry, along);
    const probe_slot_t *slot = __atomic_load_n (&adapter, __ATOMIC_ACQUIRE);
    probe_handle_t before = 0, previous = 0;
    uint32_t doubt = 0;
    if (slot)
      before = slot_before (slot, &doubt, &previous);
    store (&entry->previous, previous);
    __atomic_store_n (&entry->doubt, doubt, __ATOMIC_RELAXED);
    __atomic_store_n (&entry->word, word | OPEN, __ATOMIC_RELEASE);
    probe_handle_t handle = index | (uint64_t) (word | OPEN) << 32;
    if (slot)
      slot_enter (slot, before, handle);
    thread_enter (handle);
    return handle;
  }
  // This thread now works for somebody we cannot name: whoever is open on it is not the one.
  probe_context_foreign ();
  thread.overflow = 1;
  probe_count (SHM_COUNT_TABLE_FULL, 1);
  return 0;
}

probe_handle_t probe_context_receive (const uint8_t task[WEFT_TASK_ID_SIZE], uint64_t subtask,
                                      uint64_t request)
{
  static const probe_along_t nothing;
  return probe_context_receive_with (task, subtask, request, &nothing);
}

probe_handle_t probe_context_open (const uint8_t task[WEFT_TASK_ID_SIZE], uint64_t subtask)
{
  return probe_context_receive (task, subtask, 0);
}

void probe_context_close (probe_handle_t handle)
{
  uint32_t word = (uint32_t) (handle >> 32);
  for (unsigned i = 0; i < probe_context_count; i++)
    thread.inlined |= thread.open[i] == handle;
  if (handle)
    __atomic_compare_exchange_n (&entry_of (handle)->word, &word, (word & ~(uint32_t) STATE) + STATE + 1, 0,
                                 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void probe_context_reset (void)
{
  __atomic_fetch_add (&table_round, 1, __ATOMIC_ACQ_REL);
  for (uint32_t i = 0; i < SUBTASKS_MAX; i++) {
    uint32_t word = __atomic_load_n (&table[i].word, __ATOMIC_RELAXED);
    if ((word & STATE) == OPEN)
      probe_context_close (i | (uint64_t) word << 32);
  }
}

/* ---- lookups ------------------------------------------------------------ */
/* NONE, or why this open subtask is not what its logical thread works for. */
static weft_reason_t doubt_of (probe_handle_t handle)
{
  const entry_t *entry = entry_of (handle);
  uint32_t doubt = __atomic_load_n (&entry->doubt, __ATOMIC_RELAXED);
  if (doubt & DOUBT_LOOP)
    return WEFT_REASON_EVENT_LOOP;
  return doubt || is_open (load (&entry->previous)) ? WEFT_REASON_SEVERAL_OPEN : WEFT_REASON_NONE;
}

static int known (probe_handle_t handle, probe_context_t *ret_context, weft_reason_t *ret_reason)
{
  // Read before the look that says whose these words were.
  weft_reason_t doubt = is_open (handle) ? doubt_of (handle) : WEFT_REASON_NONE;
  *ret_reason = WEFT_REASON_NO_CONTEXT;
  if (!resolve (handle, ret_context))
    return 0;
  *ret_reason = doubt;
  return doubt == WEFT_REASON_NONE;
}

/* 0: *ret_reason says why it is none. */
static probe_handle_t thread_handle (weft_reason_t *ret_reason)
{
  thread_prune ();
  *ret_reason = WEFT_REASON_NO_CONTEXT;
  if (thread.loop || thread.waited)
    *ret_reason = WEFT_REASON_EVENT_LOOP;
  else if (thread.overflow || thread.mixed || probe_context_count > 1)
    *ret_reason = WEFT_REASON_SEVERAL_OPEN;
  else
    return probe_context_count == 1 ? thread.open[0] : 0;
  return 0;
}

static probe_handle_t slot_handle (const probe_slot_t *slot, weft_reason_t *ret_reason)
{
  probe_handle_t handle = 0;
  *ret_reason = WEFT_REASON_VM_CONTEXT;
  if (slot->get (&handle) < 0)
    return 0;
  *ret_reason = WEFT_REASON_EVENT_LOOP;
  if (handle == mark_of (SLOT_LOOP) || handle == mark_of (SLOT_WAITED) || handle == mark_of (SLOT_INLINED))
    return 0;
  *ret_reason = WEFT_REASON_NO_CONTEXT;
  return handle;
}

int probe_context_current (probe_context_t *ret_context, weft_reason_t *ret_reason)
{
  const probe_slot_t *slot = __atomic_load_n (&adapter, __ATOMIC_ACQUIRE);
  probe_handle_t handle = slot ? slot_handle (slot, ret_reason) : thread_handle (ret_reason);
  return handle && known (handle, ret_context, ret_reason);
}

int probe_context_is_open (probe_handle_t handle)
{
  return is_open (handle);
}

int probe_context_find (const uint8_t task[WEFT_TASK_ID_SIZE], uint64_t request, probe_context_t *ret_context)
{
  int count = 0;
  if (request == 0)
    return 0;
  for (uint32_t i = 0; i < PROBES_MAX && count < 2; i++) {
    uint32_t index = (place (request) + i) & (SUBTASKS_MAX - 1);
    uint32_t word = __atomic_load_n (&table[index].word, __ATOMIC_ACQUIRE);
    if ((word & STATE) != OPEN || load (&table[index].request) != request)
      continue;
    probe_context_t found;
    if (resolve (index | (uint64_t) word << 32, &found) &&
        memcmp (found.task, task, WEFT_TASK_ID_SIZE) == 0 && ++count == 1)
      *ret_context = found;
  }
  return count;
}

void probe_context_use (const probe_slot_t *slot)
{
  __atomic_store_n (&adapter, slot, __ATOMIC_RELEASE);
  __atomic_store_n (&probe_context_adapted, slot != NULL, __ATOMIC_RELAXED);
}

void probe_context_use_none (void)
{
  probe_context_use (&none);
}
