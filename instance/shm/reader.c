/* SPDX-License-Identifier: Apache-2.0 */
/* reader: the sidecar's side. What the probe wrote is copied out before it is
 * looked at: it may be rewritten under us at any moment.
 *
 *  S1  only the sidecar writes control page, tails and spool
 *  S2  nothing is indexed with a value that was not checked after it was copied
 *  S3  a tail never passes the head that was read for it, and always moves on:
 *      a ring cannot make the reader loop */
#include "reader.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/crc32c.h"
#include "../../common/fault.h"
#include "../../common/status.h"
#include "find.h"

#define WRITTEN_MAX (1ull << 48) /* no ring holds so many in the life of a machine */

struct shm_reader_t {
  void *base;
  int mapped; /* ours to unmap */
  unsigned ring;
  uint64_t corrupt, broken;
  uint64_t broken_before;   /* what those who came before told of */
  uint64_t tail[SHM_RINGS]; /* ours (S1): the word in the memory is for the probe to read, and follows */
  uint64_t last_tail;       /* of `ring` before the last event */
  uint32_t config_seq;
  unsigned slots; /* of the spool, that may ever have been used: a look at one costs a page */
  union {
    shm_event_t event;
    uint8_t bytes[SHM_EVENT_MAX];
  } copy;
};

/* ---- taking over ----------------------------------------------------------------- */
static uint64_t spool_number (void *base, unsigned slot)
{
  return __atomic_load_n (&shm_spool (base, slot)->number, __ATOMIC_ACQUIRE);
}

/* L6: the batch is sealed, so this holds, whoever got how far. */
static void apply_pending (shm_control_t *control, void *base)
{
  for (unsigned n = 0; n < SHM_RINGS; n++)
    __atomic_store_n (&shm_ring (base, n)->tail, control->pending_tail[n], __ATOMIC_RELEASE);
  memcpy (control->lost_reported, control->pending_told, sizeof control->lost_reported);
  control->broken_reported = control->pending_broken;
  __atomic_store_n (&control->batch_last, control->pending_number, __ATOMIC_RELEASE);
}

static int is_spooled (shm_reader_t *self, uint64_t number)
{
  for (unsigned slot = 0; slot < self->slots; slot++)
    if (spool_number (self->base, slot) == number)
      return 1;
  return 0;
}

static void take_over (shm_reader_t *self)
{
  shm_control_t *control = shm_control (self->base);
  uint64_t pending = __atomic_load_n (&control->pending_number, __ATOMIC_ACQUIRE);
  /* Without either no batch was ever sealed. */
  self->slots = pending || control->batch_last ? SHM_SPOOL_SLOTS : 0;
  if (pending > control->batch_last && is_spooled (self, pending))
    apply_pending (control, self->base);
  for (unsigned n = 0; n < SHM_RINGS; n++)
    self->tail[n] = __atomic_load_n (&shm_ring (self->base, n)->tail, __ATOMIC_RELAXED);
  self->broken_before = control->broken_reported;
  self->config_seq = __atomic_load_n (&shm_control (self->base)->config_seq, __ATOMIC_RELAXED);
}

int shm_reader_over (void *base, shm_reader_t **ret_self)
{
  shm_reader_t *self = calloc (1, sizeof *self);
  if (!self)
    return WEFT_E_NOMEM;
  self->base = base;
  take_over (self);
  *ret_self = self;
  return 0;
}

static int open_over (void *base, shm_reader_t **ret_self)
{
  shm_reader_t *self;
  int status = shm_reader_over (base, &self);
  if (status != 0) {
    munmap (base, SHM_SIZE);
    return status;
  }
  self->mapped = 1;
  *ret_self = self;
  return 0;
}

int shm_reader_open (pid_t pid, shm_reader_t **ret_self)
{
  void *base = NULL;
  int status = shm_find (pid, &base);
  return status == 0 ? open_over (base, ret_self) : status;
}

int shm_reader_of_fd (int fd, pid_t pid, uid_t uid, shm_reader_t **ret_self)
{
  void *base = NULL;
  int status = shm_find_passed (fd, pid, uid, &base);
  return status == 0 ? open_over (base, ret_self) : status;
}

void shm_reader_look_away (shm_reader_t *self)
{
  if (self->mapped) /* shared memory: the pages stay with their file */
    madvise (self->base, SHM_SIZE, MADV_DONTNEED);
}

void shm_reader_destroy (shm_reader_t **self_p)
{
  shm_reader_t *self = *self_p;
  if (!self)
    return;
  if (self->mapped)
    munmap (self->base, SHM_SIZE);
  free (self);
  *self_p = NULL;
}

void *shm_reader_base (shm_reader_t *self)
{
  return self->base;
}

/* ---- events -------------------------------------------------------------------- */
/* A record with a kind: what it says of itself must fit together. */
static int plausible (const shm_event_t *event)
{
  uint32_t whole = (SHM_EVENT_NAME_AT + (uint32_t) event->name_size + 7u) & ~7u;
  if (event->kind == WEFT_REPORT_OPAQUE)
    return event->size == SHM_EVENT_OPAQUE && event->name_size == 0;
  return event->kind >= WEFT_REPORT_CAPTURE && event->kind <= WEFT_REPORT_BARE &&
         event->name_size <= WEFT_NAME_MAX && whole == event->size;
}

static void fill_report (const shm_event_t *event, const char *name, weft_report_t *ret_report)
{
  memset (ret_report, 0, sizeof *ret_report);
  ret_report->kind = event->kind;
  ret_report->error = event->error;
  ret_report->reason = event->reason;
  ret_report->status = event->status;
  ret_report->name_size = event->name_size;
  ret_report->flags = event->flags;
  ret_report->instruction = event->instruction;
  ret_report->tid = event->tid;
  memcpy (ret_report->task, event->task, sizeof ret_report->task);
  ret_report->request = event->request;
  ret_report->subtask = event->subtask;
  ret_report->start_ns = event->start_ns;
  ret_report->end_ns = event->end_ns;
  ret_report->cpu_ns = event->cpu_ns;
  ret_report->local = event->local;
  ret_report->peer = event->peer;
  ret_report->name = name;
}

static void fill_opaque (const shm_event_t *event, const void *data, weft_report_t *ret_report)
{
  memcpy (&ret_report->opaque, data, sizeof ret_report->opaque);
  ret_report->opaque.reserved = 0;
  ret_report->protocol = event->protocol < WEFT_PROTOCOL_COUNT ? event->protocol : WEFT_PROTOCOL_NONE;
  ret_report->name = weft_protocol_text (ret_report->protocol);
  ret_report->name_size = (uint16_t) strlen (ret_report->name);
}

/* 1: taken; 0: empty; -1: malformed. */
static int take (shm_reader_t *self, unsigned n, uint64_t head)
{
  const uint8_t *data = shm_ring_data (self->base, n);
  uint64_t tail = self->tail[n];
  while (head != tail) {
    if (head - tail > SHM_RING_SIZE || (head | tail) % 8)
      return -1;
    uint32_t at = (uint32_t) tail & (SHM_RING_SIZE - 1);
    uint32_t room = SHM_RING_SIZE - at;
    uint64_t left = head - tail;
    /* The first 8 bytes hold size and kind, of padding and event alike. */
    memcpy (&self->copy, data + at, 8);
    uint32_t size = self->copy.event.size;
    if (size < 8 || size % 8 || size > room || size > left)
      return -1;
    if (self->copy.event.kind == 0) {
      if (size != room)
        return -1;
      tail += size;
      self->tail[n] = tail;
      continue;
    }
    if (size < SHM_EVENT_NAME_AT || size > SHM_EVENT_MAX)
      return -1;
    memcpy (&self->copy, data + at, size);
    self->copy.event.size = size; /* the one that was checked */
    if (!plausible (&self->copy.event))
      return -1;
    self->last_tail = tail;
    self->tail[n] = tail + size;
    return 1;
  }
  return 0;
}

int shm_reader_next (shm_reader_t *self, weft_report_t *ret_report)
{
  for (unsigned i = 0; i < SHM_RINGS; i++, self->ring = (self->ring + 1) % SHM_RINGS) {
    /* Read once: what the probe adds meanwhile is for the next call (S3). */
    uint64_t head = __atomic_load_n (&shm_ring (self->base, self->ring)->head, __ATOMIC_ACQUIRE);
    int got = take (self, self->ring, head);
    if (got > 0) {
      fill_report (&self->copy.event, (const char *) self->copy.bytes + SHM_EVENT_NAME_AT, ret_report);
      if (ret_report->kind == WEFT_REPORT_OPAQUE)
        fill_opaque (&self->copy.event, self->copy.bytes + SHM_EVENT_NAME_AT, ret_report);
      return 1;
    }
    if (got < 0) {
      self->corrupt++;
      self->tail[self->ring] = head;
    }
  }
  return 0;
}

void shm_reader_unread (shm_reader_t *self)
{
  self->tail[self->ring] = self->last_tail;
}

void shm_reader_consume (shm_reader_t *self)
{
  for (unsigned n = 0; n < SHM_RINGS; n++)
    __atomic_store_n (&shm_ring (self->base, n)->tail, self->tail[n], __ATOMIC_RELEASE);
}

uint64_t shm_reader_corrupt (const shm_reader_t *self)
{
  return self->corrupt;
}

/* Owners are tids as the VM sees them; in a container these are not ours. 1 also in doubt. */
static int thread_lives (pid_t pid, uint32_t tid, int same_namespace)
{
  char path[NAME_MAX + 64];
  if (same_namespace) {
    snprintf (path, sizeof path, "/proc/%d/task/%u", (int) pid, tid);
    return access (path, F_OK) == 0 || errno != ENOENT;
  }
  snprintf (path, sizeof path, "/proc/%d/task", (int) pid);
  DIR *directory = opendir (path);
  if (!directory)
    return errno != ENOENT;
  int lives = 0;
  struct dirent *entry;
  while (!lives && (entry = readdir (directory))) {
    snprintf (path, sizeof path, "/proc/%d/task/%s/status", (int) pid, entry->d_name);
    lives = entry->d_name[0] != '.' && shm_find_inner (path, "NSpid:") == tid;
  }
  closedir (directory);
  return lives;
}

unsigned shm_reader_break_locks (shm_reader_t *self, pid_t pid)
{
  unsigned freed = 0;
  int same_namespace = ((const shm_head_t *) self->base)->pid == (uint32_t) pid;
  for (unsigned n = 0; n < SHM_RINGS; n++) {
    uint32_t *word = &shm_ring (self->base, n)->owner;
    uint32_t owner = __atomic_load_n (word, __ATOMIC_ACQUIRE);
    if (!owner || thread_lives (pid, owner, same_namespace))
      continue;
    /* Only if it is still the same dead one. */
    if (__atomic_compare_exchange_n (word, &owner, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      freed++;
  }
  self->broken += freed;
  return freed;
}

uint64_t shm_reader_broken (const shm_reader_t *self)
{
  return self->broken;
}

uint64_t shm_reader_broken_ever (const shm_reader_t *self)
{
  return self->broken_before + self->broken;
}

uint64_t shm_reader_written (const shm_reader_t *self)
{
  uint64_t sum = 0;
  for (unsigned n = 0; n < SHM_RINGS; n++) {
    uint64_t written = __atomic_load_n (&shm_ring (self->base, n)->written, __ATOMIC_RELAXED);
    sum += written < WRITTEN_MAX ? written : 0;
  }
  return sum;
}

void shm_reader_status (shm_reader_t *self, shm_status_t *ret_status)
{
  const shm_status_t *shared = shm_status (self->base);
  shm_status_t copy;
  memset (&copy, 0, sizeof copy);
  copy.state = __atomic_load_n (&shared->state, __ATOMIC_ACQUIRE);
  copy.config_seen = __atomic_load_n (&shared->config_seen, __ATOMIC_ACQUIRE);
  copy.actions = __atomic_load_n (&shared->actions, __ATOMIC_RELAXED) & 0x0fu;
  copy.slots_written = __atomic_load_n (&shared->slots_written, __ATOMIC_RELAXED);
  copy.slots_restored = __atomic_load_n (&shared->slots_restored, __ATOMIC_RELAXED);
  copy.slots_foreign = __atomic_load_n (&shared->slots_foreign, __ATOMIC_RELAXED);
  copy.objects = __atomic_load_n (&shared->objects, __ATOMIC_RELAXED);
  copy.heartbeat_ns = __atomic_load_n (&shared->heartbeat_ns, __ATOMIC_RELAXED);
  for (int i = 0; i < WEFT_LOSS_WIRE_COUNT; i++)
    copy.lost[i] = __atomic_load_n (&shared->lost[i], __ATOMIC_RELAXED);
  for (int i = 0; i < SHM_COUNTERS; i++)
    copy.counter[i] = __atomic_load_n (&shared->counter[i], __ATOMIC_RELAXED);
  if (copy.state > SHM_STATE_LEFT)
    copy.state = SHM_STATE_NONE;
  /* A heartbeat from the future says nothing. */
  if (copy.heartbeat_ns > weft_mono_ns ())
    copy.heartbeat_ns = 0;
  *ret_status = copy;
}

void shm_reader_rest (shm_reader_t *self, uint64_t ret_bytes[WEFT_PROTOCOL_COUNT])
{
  const shm_rest_t *shared = shm_rest (self->base);
  for (int i = 0; i < WEFT_PROTOCOL_COUNT; i++)
    ret_bytes[i] = __atomic_load_n (&shared->bytes[i], __ATOMIC_RELAXED);
}

/* ---- control page ----------------------------------------------------------------- */
static void ring_bell (shm_control_t *control)
{
  __atomic_fetch_add (&control->doorbell, 1, __ATOMIC_SEQ_CST);
  syscall (SYS_futex, &control->doorbell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void shm_wake (shm_reader_t *self)
{
  ring_bell (shm_control (self->base));
}

void shm_configure_with (shm_reader_t *self, uint32_t actions, uint32_t carrier, uint32_t embed_to,
                         const shm_rule_t *rules, uint32_t rule_count, const shm_filter_t *filter)
{
  shm_control_t *control = shm_control (self->base);
  uint32_t even = self->config_seq & ~1u;
  if (rule_count > SHM_RULES_MAX)
    rule_count = SHM_RULES_MAX;
  __atomic_store_n (&control->config_seq, even + 1, __ATOMIC_RELAXED);
  __atomic_thread_fence (__ATOMIC_RELEASE);
  control->actions = actions;
  control->carrier = carrier;
  control->embed_to = embed_to;
  control->rule_count = rule_count;
  memset (control->rules, 0, sizeof control->rules);
  if (rule_count)
    memcpy (control->rules, rules, rule_count * sizeof *rules);
  memcpy (shm_filter (self->base), filter, sizeof *filter);
  __atomic_store_n (&control->sidecar_pid, (uint64_t) getpid (), __ATOMIC_RELAXED);
  self->config_seq = even + 2;
  __atomic_store_n (&control->config_seq, self->config_seq, __ATOMIC_RELEASE);
  shm_command (self, SHM_COMMAND_CONFIGURE);
}

void shm_renew_lease (shm_reader_t *self, uint64_t until_mono_ns)
{
  shm_control_t *control = shm_control (self->base);
  uint64_t before = __atomic_exchange_n (&control->lease_until_ns, until_mono_ns, __ATOMIC_SEQ_CST);
  /* While a lease runs the probe looks by itself when it ends; one that ran out, or is cut short, it must hear of. */
  if (before <= weft_mono_ns () + WEFT_NS_PER_MS || until_mono_ns < before)
    ring_bell (control);
}

void shm_command (shm_reader_t *self, shm_command_t command)
{
  shm_control_t *control = shm_control (self->base);
  __atomic_store_n (&control->command, command, __ATOMIC_RELEASE);
  ring_bell (control);
}

uint32_t shm_config_seq (const shm_reader_t *self)
{
  return self->config_seq;
}

/* ---- spool ---------------------------------------------------------------------------
 * The probe could scribble here; checksum and size are checked at every use. */
static uint8_t *spool_data (void *base, unsigned slot)
{
  return (uint8_t *) shm_spool (base, slot) + sizeof (shm_spool_t);
}

void *shm_spool_reserve (shm_reader_t *self, unsigned *ret_slot)
{
  for (unsigned slot = 0; slot < SHM_SPOOL_SLOTS; slot++)
    if (slot >= self->slots || spool_number (self->base, slot) == 0) {
      *ret_slot = slot;
      self->slots = slot < self->slots ? self->slots : slot + 1;
      return spool_data (self->base, slot);
    }
  return NULL;
}

void shm_spool_seal (shm_reader_t *self, unsigned slot, uint64_t number, size_t size,
                     const uint64_t told[WEFT_LOSS_WIRE_COUNT])
{
  shm_control_t *control = shm_control (self->base);
  if (slot >= SHM_SPOOL_SLOTS || size > WEFT_BATCH_MAX)
    return;
  shm_spool_t *head = shm_spool (self->base, slot);
  head->checksum = weft_crc32c (0, spool_data (self->base, slot), size);
  head->size = (uint32_t) size;
  head->pushed_ns = weft_mono_ns ();
  /* Void while it changes: none of this may hold for a number of before. */
  __atomic_store_n (&control->pending_number, 0, __ATOMIC_RELEASE);
  __atomic_thread_fence (__ATOMIC_SEQ_CST);
  memcpy (control->pending_tail, self->tail, sizeof control->pending_tail);
  memcpy (control->pending_told, told, sizeof control->pending_told);
  control->pending_broken = shm_reader_broken_ever (self);
  __atomic_store_n (&control->pending_number, number, __ATOMIC_RELEASE);
  __atomic_store_n (&head->number, number, __ATOMIC_RELEASE);
  WEFT_FAULT_POINT ("batch-seal");
  apply_pending (control, self->base);
}

unsigned shm_spool_release (shm_reader_t *self, uint64_t number)
{
  unsigned freed = 0;
  for (unsigned slot = 0; slot < self->slots; slot++) {
    uint64_t mine = spool_number (self->base, slot);
    if (mine == 0 || mine > number)
      continue;
    __atomic_store_n (&shm_spool (self->base, slot)->number, 0, __ATOMIC_RELEASE);
    freed++;
  }
  return freed;
}

/* 1: whole. A torn one is freed. */
static int spool_whole (shm_reader_t *self, unsigned slot, size_t *ret_size)
{
  shm_spool_t *head = shm_spool (self->base, slot);
  uint32_t size = __atomic_load_n (&head->size, __ATOMIC_RELAXED);
  if (size && size <= WEFT_BATCH_MAX &&
      weft_crc32c (0, spool_data (self->base, slot), size) == head->checksum) {
    *ret_size = size;
    return 1;
  }
  __atomic_store_n (&head->number, 0, __ATOMIC_RELEASE);
  self->corrupt++;
  return 0;
}

const void *shm_spool_next (shm_reader_t *self, uint64_t after, uint64_t *ret_number, size_t *ret_size)
{
  for (;;) {
    unsigned best = SHM_SPOOL_SLOTS;
    uint64_t lowest = UINT64_MAX;
    for (unsigned slot = 0; slot < self->slots; slot++) {
      uint64_t number = spool_number (self->base, slot);
      if (number > after && (best == SHM_SPOOL_SLOTS || number < lowest)) {
        lowest = number;
        best = slot;
      }
    }
    if (best == SHM_SPOOL_SLOTS)
      return NULL;
    size_t size;
    if (!spool_whole (self, best, &size))
      continue;
    *ret_number = lowest;
    *ret_size = size;
    return spool_data (self->base, best);
  }
}

uint64_t shm_spool_last (shm_reader_t *self)
{
  uint64_t last = 0;
  for (unsigned slot = 0; slot < self->slots; slot++) {
    uint64_t number = spool_number (self->base, slot);
    last = number > last ? number : last;
  }
  return last;
}

unsigned shm_spool_used (shm_reader_t *self)
{
  unsigned used = 0;
  for (unsigned slot = 0; slot < self->slots; slot++)
    used += spool_number (self->base, slot) != 0;
  return used;
}
