/* SPDX-License-Identifier: Apache-2.0 */
/* How a report is taken: its task is found in an open-addressed table of (tag,
 * task number) pairs, its 64-byte entry (of an opaque one, two) is put before the task's list. Both the
 * slot and the task are almost always cache misses at a million open tasks, so
 * reports are taken in groups: decode and hash all, touch all slots, touch all
 * tasks, then insert. Nothing is allocated per report: tasks and entries live in
 * two address ranges reserved once and backed by the kernel as they are used.
 *
 * When a task settles: a wheel of SLOTS lists, by the time it is due. A task that
 * was reported on since it was put there is put back when its slot comes up, so a
 * report never moves anything.
 *
 *          report              slot due, quiet            fn took it
 *   (none) ──────▶ in a slot ─────────────────▶ handed out ──────────▶ (none)
 *                   ▲    │ evict (too many)         ▲   │ fn failed
 *                   │    └──────────▶ evicted ──────┘   │
 *                   └───────────────────────────────────┘ */
#include "correlate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../common/clocks.h"
#include "../../common/status.h"
#include "assemble.h"
#include "mix.h"
#include "reserve.h"

#define GROUP            64u /* reports taken together: enough to hide a miss, few enough for the L1 */
#define SLOTS            64u
#define TICK_MS          64u
#define SETTLE_TICKS     (WEFT_SETTLE_MS / TICK_MS + 1u)
#define TABLE_MIN        4096u
#define NAME_CACHE       4096u /* names of one batch, by their place in the frame */
#define TASK_ENTRIES_MAX (4u * WEFT_SUBTASKS_PER_TASK_MAX)
#define BURST            65536u /* 4 MiB of entries: less is kept for the next ones */
#define NIL              UINT32_MAX

_Static_assert(SLOTS > SETTLE_TICKS + 1u, "a task is due within one turn of the wheel");

#define TASK_USED     0x01u
#define TASK_EVICTED  0x02u
#define TASK_LOOKED   0x04u /* COMPLETE and instruction hold; no report since */
#define TASK_COMPLETE 0x08u
#define TASK_COUNTS   0x10u /* neither orphan nor discarded */

typedef struct {
  uint8_t id[WEFT_TASK_ID_SIZE];
  uint32_t first; /* entry */
  uint32_t count;
  uint32_t next;    /* in its slot, in `evicted`, or in the free list */
  uint32_t touched; /* tick */
  uint32_t truncated;
  uint32_t instruction;
  uint32_t hash; /* of the id: what the table is sorted by */
  uint32_t born; /* tick */
  uint8_t flags;
  uint8_t reserved[15];
} task_t;
_Static_assert(sizeof (task_t) == 64, "a task is one cache line");

typedef struct {
  uint32_t tag;  /* the task's hash */
  uint32_t task; /* number + 1, 0: free */
} slot_t;

typedef struct {
  uint64_t batch;
  uint32_t place, name;
} cached_name_t;

struct ctl_correlate_t {
  ctl_instances_t *instances;
  ctl_names_t *names;
  ctl_peers_t *peers;
  ctl_shed_t *shed;
  ctl_seed_t seed;
  uint32_t open_max;

  slot_t *table;
  uint32_t mask;

  task_t *task;
  uint32_t task_max, tasks_made, tasks_free, tasks_open;
  ctl_entry_t *entry;
  uint32_t entry_max, entries_made, entries_free, entries_used;

  uint64_t began_ns; /* CLOCK_MONOTONIC at tick 0 */
  uint32_t slot[SLOTS];
  uint32_t done; /* the last tick whose slot was emptied */
  uint32_t evicted, evicted_last, evicted_count;

  uint64_t batches;
  cached_name_t name_cache[NAME_CACHE];
  ctl_boot_t boot[WEFT_BOOTS_MAX];
  uint32_t boots;
  uint16_t boot_of[WEFT_INSTANCES_MAX];
  const ctl_entry_t **gather; /* TASK_ENTRIES_MAX */
  ctl_correlate_stats_t stats;
};

/* ---- memory -------------------------------------------------------------- */

/* Nothing is open: begin anew, and the memory of a burst goes back to the kernel. */
static void give_back (ctl_correlate_t *self)
{
  if (self->entries_made > BURST) {
    madvise (self->task, (size_t) self->task_max * sizeof *self->task, MADV_DONTNEED);
    madvise (self->entry, (size_t) self->entry_max * sizeof *self->entry, MADV_DONTNEED);
  }
  self->tasks_made = self->entries_made = 0;
  self->tasks_free = self->entries_free = NIL;
}

ctl_correlate_t *ctl_correlate_new (ctl_instances_t *instances, uint32_t open_max)
{
  ctl_correlate_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  self->instances = instances;
  self->names = ctl_instances_names (instances);
  self->open_max = open_max ? open_max : WEFT_OPEN_TASKS_MAX;
  /* one batch may begin as many tasks as it has reports, after the last check of the bound */
  self->task_max = self->open_max + WEFT_EVICTED_MAX + WEFT_FRAME_MAX;
  self->entry_max = WEFT_OPEN_REPORTS_MAX + CTL_ENTRY_LINES_MAX * WEFT_FRAME_MAX;
  self->began_ns = weft_mono_ns ();
  ctl_seed_take (&self->seed);
  self->peers = ctl_peers_new ();
  self->shed = ctl_shed_new ();
  self->table = calloc (TABLE_MIN, sizeof *self->table);
  self->mask = TABLE_MIN - 1;
  self->task = ctl_reserve ((size_t) self->task_max * sizeof *self->task);
  self->entry = ctl_reserve ((size_t) self->entry_max * sizeof *self->entry);
  self->gather = malloc (TASK_ENTRIES_MAX * sizeof (const ctl_entry_t *));
  self->tasks_free = self->entries_free = self->evicted = self->evicted_last = NIL;
  for (uint32_t i = 0; i < SLOTS; i++)
    self->slot[i] = NIL;
  if (!self->peers || !self->shed || !self->table || !self->task || !self->entry || !self->gather)
    ctl_correlate_destroy (&self);
  return self;
}

void ctl_correlate_destroy (ctl_correlate_t **self_p)
{
  ctl_correlate_t *self = *self_p;
  if (!self)
    return;
  if (self->task)
    munmap (self->task, (size_t) self->task_max * sizeof *self->task);
  if (self->entry)
    munmap (self->entry, (size_t) self->entry_max * sizeof *self->entry);
  free (self->gather);
  free (self->table);
  ctl_peers_destroy (&self->peers);
  ctl_shed_destroy (&self->shed);
  free (self);
  *self_p = NULL;
}

/* ---- the wheel ------------------------------------------------------------ */

static uint32_t tick_of (const ctl_correlate_t *self, uint64_t now_ns)
{
  return now_ns <= self->began_ns ? 0 : (uint32_t) ((now_ns - self->began_ns) / (TICK_MS * WEFT_NS_PER_MS));
}

static uint32_t due_tick (const ctl_correlate_t *self, const task_t *task)
{
  uint32_t due = task->touched + SETTLE_TICKS;
  return due > self->done ? due : self->done + 1;
}

static void put_in_slot (ctl_correlate_t *self, uint32_t number)
{
  uint32_t at = due_tick (self, &self->task[number]) % SLOTS;
  self->task[number].next = self->slot[at];
  self->slot[at] = number;
}

/* Takes the task that was quiet longest out of the wheel. */
static void evict_one (ctl_correlate_t *self)
{
  for (uint32_t i = 1; i <= SLOTS;) {
    uint32_t at = (self->done + i) % SLOTS, number = self->slot[at];
    if (number == NIL) {
      i++;
      continue;
    }
    self->slot[at] = self->task[number].next;
    if (due_tick (self, &self->task[number]) % SLOTS != at) {
      put_in_slot (self, number); /* was reported on since */
      continue;
    }
    self->task[number].flags |= TASK_EVICTED;
    self->task[number].next = NIL;
    if (self->evicted == NIL)
      self->evicted = number;
    else
      self->task[self->evicted_last].next = number;
    self->evicted_last = number;
    self->evicted_count++;
    self->stats.evicted++;
    return;
  }
}

/* ---- the table ------------------------------------------------------------ */

static uint32_t find (const ctl_correlate_t *self, const uint8_t id[WEFT_TASK_ID_SIZE], uint32_t hash,
                      uint32_t *ret_at)
{
  uint32_t at = hash & self->mask;
  for (; self->table[at].task; at = (at + 1) & self->mask)
    if (self->table[at].tag == hash) {
      uint32_t number = self->table[at].task - 1;
      if (memcmp (self->task[number].id, id, WEFT_TASK_ID_SIZE) == 0) {
        *ret_at = at;
        return number;
      }
    }
  *ret_at = at;
  return NIL;
}

static int grow (ctl_correlate_t *self)
{
  uint32_t mask = self->mask * 2 + 1;
  slot_t *table = calloc ((size_t) mask + 1, sizeof *table);
  if (!table)
    return WEFT_E_NOMEM;
  for (uint32_t i = 0; i <= self->mask; i++)
    if (self->table[i].task) {
      uint32_t at = self->table[i].tag & mask;
      while (table[at].task)
        at = (at + 1) & mask;
      table[at] = self->table[i];
    }
  free (self->table);
  self->table = table;
  self->mask = mask;
  return 0;
}

/* Closes the gap: what follows moves up unless it stands before its own place. */
static void remove_at (ctl_correlate_t *self, uint32_t gap)
{
  for (uint32_t at = (gap + 1) & self->mask; self->table[at].task; at = (at + 1) & self->mask)
    if (((at - self->table[at].tag) & self->mask) >= ((at - gap) & self->mask)) {
      self->table[gap] = self->table[at];
      gap = at;
    }
  self->table[gap].task = 0;
}

static int find_or_make (ctl_correlate_t *self, const uint8_t id[WEFT_TASK_ID_SIZE], uint32_t hash,
                         uint32_t now, uint32_t *ret_number)
{
  uint32_t at, number = find (self, id, hash, &at);
  if (number != NIL) {
    *ret_number = number;
    return 0;
  }
  if (self->tasks_open >= self->mask / 2) {
    int rc = grow (self);
    if (rc)
      return rc;
    find (self, id, hash, &at);
  }
  number = self->tasks_free;
  if (number != NIL)
    self->tasks_free = self->task[number].next;
  else if (self->tasks_made < self->task_max)
    number = self->tasks_made++;
  else
    return WEFT_E_FULL;
  task_t *task = &self->task[number];
  *task = (task_t){.first = NIL, .touched = now, .born = now, .hash = hash, .flags = TASK_USED};
  memcpy (task->id, id, WEFT_TASK_ID_SIZE);
  self->table[at] = (slot_t){hash, number + 1};
  self->tasks_open++;
  put_in_slot (self, number);
  *ret_number = number;
  return 0;
}

static void forget (ctl_correlate_t *self, uint32_t number)
{
  task_t *task = &self->task[number];
  uint32_t at;
  if (find (self, task->id, task->hash, &at) != NIL)
    remove_at (self, at);
  for (uint32_t i = task->first; i != NIL;) {
    uint32_t next = self->entry[i].next;
    self->entry[i].next = self->entries_free;
    self->entries_free = i;
    i = next;
  }
  self->entries_used -= task->count;
  task->flags = 0;
  task->next = self->tasks_free;
  self->tasks_free = number;
  self->tasks_open--;
}

/* ---- taking a batch -------------------------------------------------------- */

static int name_id (ctl_correlate_t *self, const uint8_t *frame, const weft_report_t *report,
                    uint32_t *ret_id)
{
  if (!report->name_size) {
    *ret_id = 0;
    return 0;
  }
  uint32_t place = (uint32_t) ((const uint8_t *) report->name - frame);
  cached_name_t *cached = &self->name_cache[(place / 2) % NAME_CACHE];
  if (cached->batch != self->batches || cached->place != place) {
    int rc = ctl_names_id (self->names, report->name, report->name_size, &cached->name);
    if (rc)
      return rc;
    cached->batch = self->batches;
    cached->place = place;
  }
  *ret_id = cached->name;
  return 0;
}

static int begin_batch (ctl_correlate_t *self, const weft_batch_head_t *head, uint16_t *ret_instance)
{
  ctl_instance_t *instance;
  int rc = ctl_instances_touch (self->instances, head->instance, &instance);
  if (rc)
    return rc;
  instance->anchor = head->anchor;
  memcpy (instance->boot, head->boot, WEFT_UUID_SIZE);
  self->boot_of[instance->index] =
      ctl_boot_of (self->boot, &self->boots, head, self->boot_of[instance->index]);
  ctl_peers_told (self->peers, (uint16_t) instance->index,
                  ctl_boot_wall (self->boot, self->boot_of, instance->index, head->to_ns));
  self->batches++;
  *ret_instance = (uint16_t) instance->index;
  return 0;
}

static int take_bare (ctl_correlate_t *self, const weft_report_t *report, uint16_t instance)
{
  uint64_t connection = ctl_peers_connection (self->peers, &report->local, &report->peer);
  uint16_t known;
  int wanted;
  self->stats.bares++;
  uint64_t wall_ns = ctl_boot_wall (self->boot, self->boot_of, instance, report->start_ns);
  /* A port used again by somebody else: which of the two is named must not depend on who came first. */
  if (ctl_peers_find_bare (self->peers, connection, wall_ns, &wanted, &known) && known != instance &&
      memcmp (ctl_instances_at (self->instances, known)->uuid,
              ctl_instances_at (self->instances, instance)->uuid, WEFT_UUID_SIZE) < 0)
    instance = known;
  ctl_peers_bare (self->peers, connection, report->reason, instance, wall_ns);
  return 0;
}

/* A line for an entry, NIL: there is none. */
static uint32_t new_entry (ctl_correlate_t *self)
{
  uint32_t at = self->entries_free;
  if (at != NIL)
    self->entries_free = self->entry[at].next;
  else if (self->entries_made < self->entry_max)
    at = self->entries_made++;
  return at;
}

static void count_kind (ctl_correlate_t *self, uint8_t kind)
{
  self->stats.captures += kind == WEFT_REPORT_CAPTURE;
  self->stats.embeds += kind == WEFT_REPORT_EMBED;
  self->stats.opaques += kind == WEFT_REPORT_OPAQUE;
}

static int insert (ctl_correlate_t *self, const uint8_t *frame, const weft_report_t *report, uint32_t hash,
                   uint16_t instance, uint32_t now)
{
  uint32_t name, number;
  int rc = name_id (self, frame, report, &name);
  if (rc == 0)
    rc = find_or_make (self, report->task, hash, now, &number);
  if (rc)
    return rc;
  task_t *task = &self->task[number];
  task->touched = now;
  task->flags &= (uint8_t) ~TASK_LOOKED;
  ctl_entry_t line[CTL_ENTRY_LINES_MAX];
  uint32_t lines = ctl_entry_fill (self->peers, report, name, instance, line);
  if (task->count + lines > TASK_ENTRIES_MAX) {
    task->truncated++;
    self->stats.truncated++;
    return 0;
  }
  count_kind (self, report->kind);
  for (uint32_t i = 0; i < lines; i++) {
    uint32_t at = new_entry (self);
    if (at == NIL)
      return WEFT_E_FULL;
    self->entry[at] = line[i];
    self->entry[at].next = task->first;
    task->first = at;
    task->count++;
    self->entries_used++;
  }
  return 0;
}

/* Takes reports whose hashes are known: by now their slots and tasks are on their way into the cache. */
static int take_group (ctl_correlate_t *self, const uint8_t *frame, const weft_report_t *report,
                       const uint32_t *hash, uint32_t count, uint16_t instance, uint32_t now, uint32_t *taken)
{
  for (uint32_t i = 0; i < count; i++) {
    const slot_t *slot = &self->table[hash[i] & self->mask];
    if (slot->task)
      __builtin_prefetch (&self->task[slot->task - 1], 1);
  }
  int shedding = ctl_shed_active (self->shed);
  for (uint32_t i = 0; i < count; i++) {
    int rc = 0;
    if (shedding && report[i].kind != WEFT_REPORT_BARE &&
        ctl_shed_holds (self->shed, report[i].task,
                        find (self, report[i].task, hash[i], &(uint32_t){0}) != NIL))
      continue;
    if (report[i].kind == WEFT_REPORT_BARE)
      rc = take_bare (self, &report[i], instance);
    else if (report[i].kind <= WEFT_REPORT_OPAQUE)
      rc = insert (self, frame, &report[i], hash[i], instance, now);
    else
      self->stats.skipped++;
    if (rc)
      return rc;
    self->stats.reports++;
    ++*taken;
  }
  return 0;
}

/* The ranges can hold a whole batch then. */
int ctl_correlate_room (ctl_correlate_t *self)
{
  while (self->tasks_open - self->evicted_count > self->open_max)
    evict_one (self);
  if (self->entries_used > WEFT_OPEN_REPORTS_MAX / 8 * 7)
    for (uint32_t i = 0; i < WEFT_BATCH_REPORTS_MAX && self->tasks_open > self->evicted_count; i++)
      evict_one (self);
  return self->evicted_count > WEFT_EVICTED_MAX || self->entries_used > WEFT_OPEN_REPORTS_MAX ? WEFT_E_FULL
                                                                                              : 0;
}

int ctl_correlate_ease (const ctl_correlate_t *self, uint32_t batches)
{
  uint64_t more = (uint64_t) batches * WEFT_BATCH_REPORTS_MAX, tasks = self->tasks_open - self->evicted_count;
  return self->evicted_count <= WEFT_EVICTED_MAX && tasks + more <= self->open_max &&
         self->entries_used + more <= WEFT_OPEN_REPORTS_MAX / 8 * 7;
}

int ctl_correlate_batch (ctl_correlate_t *self, const void *frame, size_t size, uint32_t *ret_reports)
{
  weft_batch_reader_t reader;
  weft_report_t report[GROUP];
  uint32_t hash[GROUP], taken = 0;
  uint16_t instance;
  if (size > WEFT_FRAME_MAX)
    return WEFT_E_MALFORMED;
  int rc = ctl_correlate_room (self);
  if (rc == 0)
    rc = weft_batch_reader_begin (&reader, frame, size);
  if (rc == 0)
    rc = begin_batch (self, &reader.head, &instance);
  if (rc)
    return rc;
  uint64_t now_ns = weft_mono_ns ();
  uint32_t now = tick_of (self, now_ns);
  int more = 1;
  ctl_shed_tick (self->shed, now_ns);
  while (more == 1 && rc == 0) {
    uint32_t count = 0;
    while (count < GROUP && (more = weft_batch_reader_next (&reader, &report[count])) == 1) {
      hash[count] = (uint32_t) (ctl_mix_16 (&self->seed, report[count].task) >> 32);
      __builtin_prefetch (&self->table[hash[count] & self->mask], 1);
      count++;
    }
    rc = take_group (self, frame, report, hash, count, instance, now, &taken);
  }
  self->stats.skipped += reader.skipped;
  *ret_reports = taken;
  return rc ? rc : more;
}

void ctl_correlate_idle (ctl_correlate_t *self, uint32_t instance)
{
  ctl_peers_idle (self->peers, (uint16_t) instance);
}

ctl_shed_t *ctl_correlate_shedder (ctl_correlate_t *self)
{
  return self->shed;
}

/* ---- asking ----------------------------------------------------------------- */

static int assemble (ctl_correlate_t *self, const task_t *task, ctl_execution_t **ret_execution,
                     uint64_t *ret_duplicates)
{
  ctl_assemble_t with = {self->instances, self->peers, self->boot, self->boot_of};
  uint32_t count = 0;
  for (uint32_t i = task->first; i != NIL; i = self->entry[i].next)
    self->gather[count++] = &self->entry[i];
  return ctl_assemble (&with, task->id, self->gather, count, task->truncated, ret_execution, ret_duplicates);
}

static int visit (ctl_correlate_t *self, const task_t *task, uint32_t instruction, uint64_t from_ns,
                  uint64_t to_ns, ctl_execution_fn *fn, void *arg)
{
  ctl_execution_t *execution;
  int rc = assemble (self, task, &execution, NULL);
  if (rc || !execution)
    return rc;
  if ((!instruction || execution->instruction == instruction) && execution->start_ns >= from_ns &&
      execution->start_ns <= to_ns)
    rc = fn (&execution, arg);
  ctl_execution_destroy (&execution);
  return rc;
}

int ctl_correlate_each (ctl_correlate_t *self, uint32_t instruction, uint64_t from_ns, uint64_t to_ns,
                        ctl_execution_fn *fn, void *arg)
{
  int rc = 0;
  for (uint32_t i = 0; i < self->tasks_made && rc == 0; i++)
    if (self->task[i].flags & TASK_USED)
      rc = visit (self, &self->task[i], instruction, from_ns, to_ns, fn, arg);
  return rc;
}

int ctl_correlate_find (ctl_correlate_t *self, const uint8_t task[WEFT_TASK_ID_SIZE],
                        ctl_execution_t **ret_execution)
{
  uint32_t at, number = find (self, task, (uint32_t) (ctl_mix_16 (&self->seed, task) >> 32), &at);
  ctl_execution_t *execution = NULL;
  int rc = number == NIL ? 0 : assemble (self, &self->task[number], &execution, NULL);
  if (rc)
    return rc;
  if (!execution)
    return WEFT_E_NOT_FOUND;
  *ret_execution = execution;
  return 0;
}

static void look (ctl_correlate_t *self, task_t *task)
{
  ctl_execution_t *execution;
  if (task->flags & TASK_LOOKED || assemble (self, task, &execution, NULL))
    return;
  task->flags = (uint8_t) ((task->flags & ~(TASK_COMPLETE | TASK_COUNTS)) | TASK_LOOKED);
  task->instruction = 0;
  if (!execution)
    return;
  task->instruction = execution->instruction;
  if (execution->kind == CTL_KIND_TASK)
    task->flags |= TASK_COUNTS;
  if (execution->complete)
    task->flags |= TASK_COMPLETE;
  ctl_execution_destroy (&execution);
}

uint64_t ctl_correlate_waiting (ctl_correlate_t *self, uint32_t instruction)
{
  uint64_t waiting = 0;
  for (uint32_t i = 0; i < self->tasks_made; i++) {
    task_t *task = &self->task[i];
    if (!(task->flags & TASK_USED))
      continue;
    look (self, task);
    if (task->instruction == instruction && (task->flags & (TASK_COUNTS | TASK_COMPLETE)) == TASK_COUNTS)
      waiting++;
  }
  return waiting;
}

void ctl_correlate_stats (const ctl_correlate_t *self, ctl_correlate_stats_t *ret_stats)
{
  *ret_stats = self->stats;
  ret_stats->open_tasks = self->tasks_open;
  ret_stats->open_max = self->open_max;
  ret_stats->shed = ctl_shed_count (self->shed);
  ret_stats->unanswered = 0;
  uint32_t oldest = UINT32_MAX;
  for (uint32_t i = 0; i < self->tasks_made; i++) {
    const task_t *task = &self->task[i];
    if (!(task->flags & TASK_USED))
      continue;
    ret_stats->unanswered += (task->flags & (TASK_LOOKED | TASK_COMPLETE)) != (TASK_LOOKED | TASK_COMPLETE);
    oldest = task->born < oldest ? task->born : oldest;
  }
  ret_stats->oldest_ns =
      oldest == UINT32_MAX ? UINT64_MAX : self->began_ns + (uint64_t) oldest * TICK_MS * WEFT_NS_PER_MS;
}

/* ---- settling ---------------------------------------------------------------- */

/* If fn fails, the task is as before; the caller puts it back where it was. */
static int hand_out (ctl_correlate_t *self, uint32_t number, ctl_execution_fn *fn, void *arg)
{
  ctl_execution_t *execution;
  uint64_t duplicates = 0;
  int rc = assemble (self, &self->task[number], &execution, &duplicates);
  if (rc)
    return rc;
  if (execution) {
    uint32_t cut = execution->truncated - self->task[number].truncated;
    rc = fn (&execution, arg);
    ctl_execution_destroy (&execution);
    if (rc)
      return rc;
    self->stats.truncated += cut;
  } else {
    self->stats.discarded++;
  }
  self->stats.duplicates += duplicates;
  forget (self, number);
  return 0;
}

static int settle_evicted (ctl_correlate_t *self, ctl_execution_fn *fn, void *arg)
{
  while (self->evicted != NIL) {
    uint32_t number = self->evicted, next = self->task[number].next;
    int rc = hand_out (self, number, fn, arg);
    if (rc)
      return rc;
    self->evicted = next;
    self->evicted_count--;
  }
  return 0;
}

/* Empties one list; what is not due yet goes to its own slot. On failure the rest stays. */
static int settle_slot (ctl_correlate_t *self, uint32_t at, uint32_t now, int all, ctl_execution_fn *fn,
                        void *arg)
{
  uint32_t list = self->slot[at];
  self->slot[at] = NIL;
  while (list != NIL) {
    uint32_t number = list;
    list = self->task[number].next;
    int rc = 0;
    if (all || self->task[number].touched + SETTLE_TICKS <= now)
      rc = hand_out (self, number, fn, arg);
    else
      put_in_slot (self, number);
    if (rc == 0)
      continue;
    self->task[number].next = list;
    uint32_t last = number;
    while (self->task[last].next != NIL)
      last = self->task[last].next;
    self->task[last].next = self->slot[at];
    self->slot[at] = number;
    return rc;
  }
  return 0;
}

int ctl_correlate_settle (ctl_correlate_t *self, uint64_t now_ns, int all, ctl_execution_fn *fn, void *arg)
{
  uint32_t now = tick_of (self, now_ns);
  int rc = settle_evicted (self, fn, arg);
  if (all)
    for (uint32_t i = 0; i < SLOTS && rc == 0; i++)
      rc = settle_slot (self, i, now, 1, fn, arg);
  else
    for (uint32_t turn = 0; self->done < now && rc == 0; turn++) {
      if (turn == SLOTS) {
        self->done = now; /* every list was seen once: nothing older is left */
        break;
      }
      rc = settle_slot (self, (self->done + 1) % SLOTS, now, 0, fn, arg);
      if (rc == 0)
        self->done++;
    }
  if (self->tasks_open == 0 && self->tasks_made)
    give_back (self);
  return rc;
}
