/* SPDX-License-Identifier: Apache-2.0 */
/* How a report is taken: its task is looked up by id, its line (of some reports,
 * two) is put before the task's list. Slot and task are almost always cache misses
 * at a million open tasks, so that reports are taken in three stages, each some
 * reports behind the one before:
 *
 *   decode, hash, fetch the slot │ read the slot, fetch the task │ insert
 *
 * One report of each stage in turn: work and waiting overlap all the time, and the
 * misses come as evenly as the memory can take them. */
#include "correlate.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/clocks.h"
#include "../../common/status.h"
#include "assemble.h"
#include "open_tasks.h"
#include "wheel.h"

#define AHEAD            16u   /* reports between two stages: their work takes longer than a miss */
#define COMING           64u   /* reports on their way, more than two such distances: a power of two */
#define NAME_CACHE       4096u /* names of one batch, by their place in the frame */
#define TASK_ENTRIES_MAX (4u * WEFT_SUBTASKS_PER_TASK_MAX)
#define WALK             65536u /* tasks looked at for each time that stats are asked for, at most on average */

typedef struct {
  uint64_t batch;
  uint32_t place, name;
} cached_name_t;

struct ctl_correlate_t {
  ctl_instances_t *instances;
  ctl_names_t *names;
  ctl_peers_t *peers;
  ctl_shed_t *shed;
  ctl_hop_clock_t *clock;
  uint32_t open_max;
  uint64_t bytes_max;
  ctl_open_tasks_t tasks;
  ctl_wheel_t wheel;

  uint64_t batches;
  cached_name_t name_cache[NAME_CACHE];
  ctl_boot_t boot[WEFT_BOOTS_MAX];
  uint32_t boots;
  uint16_t boot_of[WEFT_INSTANCES_MAX];
  const ctl_entry_t **gather; /* TASK_ENTRIES_MAX */
  ctl_rooms_t rooms;
  uint32_t answered; /* open tasks whose CTL_OPEN_LOOKED and _COMPLETE are set */
  uint32_t oldest;   /* tick: none of the open ones was born before */
  uint64_t unwalked; /* tasks that stats may look at */
  uint32_t held;     /* list of tasks that were handed out, by `next` */
  uint64_t held_truncated, held_duplicates;
  ctl_correlate_stats_t stats;
};

ctl_correlate_t *ctl_correlate_new_within (ctl_instances_t *instances, uint32_t open_max, uint64_t bytes_max)
{
  ctl_correlate_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  self->instances = instances;
  self->names = ctl_instances_names (instances);
  self->open_max = open_max ? open_max : WEFT_OPEN_TASKS_MAX;
  self->bytes_max = !bytes_max                         ? WEFT_OPEN_BYTES_MAX
                    : bytes_max < WEFT_OPEN_BYTES_MOST ? bytes_max
                                                       : WEFT_OPEN_BYTES_MOST;
  self->peers = ctl_peers_new (ctl_instances_names (instances));
  self->shed = ctl_shed_new ();
  self->clock = ctl_hop_clock_new ();
  self->gather = malloc (TASK_ENTRIES_MAX * sizeof (const ctl_entry_t *));
  /* one batch may begin as many tasks as it has reports, after the last check of the bound */
  uint64_t entries = self->bytes_max / sizeof (ctl_entry_t) + CTL_ENTRY_LINES_MAX * WEFT_FRAME_MAX;
  int rc = ctl_open_tasks_begin (&self->tasks, self->open_max + WEFT_EVICTED_MAX + WEFT_FRAME_MAX,
                                 entries < CTL_NIL ? (uint32_t) entries : CTL_NIL - 1);
  ctl_wheel_begin (&self->wheel, &self->tasks);
  self->held = CTL_NIL;
  if (rc || !self->peers || !self->shed || !self->clock || !self->gather)
    ctl_correlate_destroy (&self);
  return self;
}

ctl_correlate_t *ctl_correlate_new (ctl_instances_t *instances, uint32_t open_max)
{
  return ctl_correlate_new_within (instances, open_max, 0);
}

void ctl_correlate_destroy (ctl_correlate_t **self_p)
{
  ctl_correlate_t *self = *self_p;
  if (!self)
    return;
  ctl_open_tasks_end (&self->tasks);
  free (self->gather);
  ctl_rooms_end (&self->rooms);
  ctl_peers_destroy (&self->peers);
  ctl_shed_destroy (&self->shed);
  ctl_hop_clock_destroy (&self->clock);
  free (self);
  *self_p = NULL;
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

static void count_kind (ctl_correlate_t *self, uint8_t kind)
{
  self->stats.captures += kind == WEFT_REPORT_CAPTURE;
  self->stats.embeds += kind == WEFT_REPORT_EMBED;
  self->stats.opaques += kind == WEFT_REPORT_OPAQUE;
}

static int find_or_make (ctl_correlate_t *self, const uint8_t id[WEFT_TASK_ID_SIZE], uint32_t hash,
                         uint32_t now, uint32_t *ret_number)
{
  int made;
  int rc = ctl_open_tasks_take (&self->tasks, id, hash, ret_number, &made);
  if (rc || !made)
    return rc;
  ctl_open_t *task = &self->tasks.task[*ret_number];
  task->touched = task->born = now;
  if (self->tasks.open == 1)
    self->oldest = now;
  ctl_wheel_put (&self->wheel, *ret_number);
  return 0;
}

/* What was known of the task as a whole holds no more. */
static void forget_look (ctl_correlate_t *self, ctl_open_t *task)
{
  self->answered -=
      (task->flags & (CTL_OPEN_LOOKED | CTL_OPEN_COMPLETE)) == (CTL_OPEN_LOOKED | CTL_OPEN_COMPLETE);
  task->flags &= (uint8_t) ~CTL_OPEN_LOOKED;
}

/* What the reports of a batch have in common. */
typedef struct {
  const uint8_t *frame;
  uint32_t now; /* tick */
  uint16_t instance;
  int shedding;
} batch_t;

/* A report on its way through the stages. */
typedef struct {
  weft_report_t report;
  uint32_t hash;
  uint32_t task; /* number, by its slot; CTL_NIL: none */
} coming_t;

static int insert (ctl_correlate_t *self, const batch_t *batch, const coming_t *coming)
{
  const weft_report_t *report = &coming->report;
  uint32_t name, number = coming->task;
  int rc = name_id (self, batch->frame, report, &name);
  if (rc == 0 && (number == CTL_NIL || !ctl_open_tasks_is (&self->tasks, number, report->task)))
    rc = find_or_make (self, report->task, coming->hash, batch->now, &number);
  ctl_entry_t *line = rc ? NULL : ctl_open_tasks_place (&self->tasks);
  if (!line)
    return rc ? rc : WEFT_E_FULL;
  ctl_open_t *task = &self->tasks.task[number];
  task->touched = batch->now;
  forget_look (self, task);
  uint32_t lines = ctl_entry_fill (self->peers, report, name, batch->instance, line);
  if (task->count + lines > TASK_ENTRIES_MAX) {
    task->truncated++;
    self->stats.truncated++;
    return 0;
  }
  count_kind (self, report->kind);
  ctl_open_tasks_add (&self->tasks, task, lines);
  return 0;
}

static int is_shed (ctl_correlate_t *self, const coming_t *coming)
{
  return ctl_shed_holds (self->shed, coming->report.task,
                         ctl_open_tasks_find (&self->tasks, coming->report.task, coming->hash) != CTL_NIL);
}

static int take_one (ctl_correlate_t *self, const batch_t *batch, const coming_t *coming, uint32_t *taken)
{
  int rc = 0;
  if (coming->report.kind == WEFT_REPORT_BARE)
    rc = take_bare (self, &coming->report, batch->instance);
  else if (coming->report.kind > WEFT_REPORT_OPAQUE)
    self->stats.skipped++;
  else if (batch->shedding && is_shed (self, coming))
    return 0;
  else
    rc = insert (self, batch, coming);
  if (rc)
    return rc;
  self->stats.reports++;
  ++*taken;
  return 0;
}

/* All that the reader has, or until something fails. */
static int take_reports (ctl_correlate_t *self, const batch_t *batch, weft_batch_reader_t *reader,
                         uint32_t *taken)
{
  coming_t coming[COMING];
  uint32_t decoded = 0, fetched = 0, done = 0;
  int more = 1, rc = 0;
  while (rc == 0 && (more == 1 || done < decoded)) {
    coming_t *one = &coming[decoded % COMING];
    if (more == 1 && (more = weft_batch_reader_next (reader, &one->report)) == 1) {
      one->hash = ctl_open_tasks_hash (&self->tasks, one->report.task);
      ctl_open_tasks_fetch_slot (&self->tasks, one->hash);
      decoded++;
    }
    if (decoded - fetched > AHEAD || (more != 1 && fetched < decoded)) {
      one = &coming[fetched++ % COMING];
      one->task = ctl_open_tasks_fetch_task (&self->tasks, one->hash);
    }
    if (fetched - done > AHEAD || (more != 1 && fetched == decoded && done < decoded))
      rc = take_one (self, batch, &coming[done++ % COMING], taken);
  }
  return rc ? rc : more;
}
_Static_assert(COMING > 2u * AHEAD + 1u, "none is overwritten on its way");

static void evict_one (ctl_correlate_t *self)
{
  self->stats.evicted += (uint64_t) ctl_wheel_evict (&self->wheel);
}

static uint64_t bytes_full (const ctl_correlate_t *self)
{
  return self->bytes_max / 8 * 7;
}

/* The ranges can hold a whole batch then. */
int ctl_correlate_room (ctl_correlate_t *self)
{
  while (self->tasks.open - self->wheel.evicted_count > self->open_max)
    evict_one (self);
  while (ctl_open_tasks_bytes (&self->tasks) > bytes_full (self) + self->wheel.evicted_bytes &&
         self->tasks.open > self->wheel.evicted_count)
    evict_one (self);
  return self->wheel.evicted_count > WEFT_EVICTED_MAX || ctl_open_tasks_bytes (&self->tasks) > self->bytes_max
             ? WEFT_E_FULL
             : 0;
}

int ctl_correlate_ease (const ctl_correlate_t *self, uint32_t batches)
{
  uint64_t more = (uint64_t) batches * WEFT_BATCH_REPORTS_MAX;
  uint64_t tasks = self->tasks.open - self->wheel.evicted_count;
  return self->wheel.evicted_count <= WEFT_EVICTED_MAX && tasks + more <= self->open_max &&
         ctl_open_tasks_bytes (&self->tasks) + more * sizeof (ctl_entry_t) <= bytes_full (self);
}

int ctl_correlate_batch (ctl_correlate_t *self, const void *frame, size_t size, uint32_t *ret_reports)
{
  weft_batch_reader_t reader;
  batch_t batch = {.frame = frame};
  uint32_t taken = 0;
  if (size > WEFT_FRAME_MAX)
    return WEFT_E_MALFORMED;
  int rc = ctl_correlate_room (self);
  if (rc == 0)
    rc = weft_batch_reader_begin (&reader, frame, size);
  if (rc == 0)
    rc = begin_batch (self, &reader.head, &batch.instance);
  if (rc)
    return rc;
  uint64_t now_ns = weft_mono_ns ();
  batch.now = ctl_wheel_tick (&self->wheel, now_ns);
  ctl_shed_tick (self->shed, now_ns);
  batch.shedding = ctl_shed_active (self->shed);
  rc = take_reports (self, &batch, &reader, &taken);
  self->stats.skipped += reader.skipped;
  *ret_reports = taken;
  return rc;
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

/* ret_duplicates NULL: it is looked at, no more. */
static int assemble (ctl_correlate_t *self, const ctl_open_t *task, ctl_execution_t **ret_execution,
                     uint64_t *ret_duplicates)
{
  ctl_assemble_t with = {self->instances, self->peers,           self->boot, self->boot_of, self->clock,
                         &self->rooms,    ret_duplicates != NULL};
  uint32_t count = 0;
  for (uint32_t i = task->first; i != CTL_NIL; i = self->tasks.entry[i].next)
    self->gather[count++] = &self->tasks.entry[i];
  return ctl_assemble (&with, task->id, self->gather, count, task->truncated, ret_execution, ret_duplicates);
}

static int visit (ctl_correlate_t *self, const ctl_open_t *task, uint32_t instruction, uint64_t from_ns,
                  uint64_t to_ns, ctl_execution_fn *fn, void *arg)
{
  ctl_execution_t *execution;
  int rc = assemble (self, task, &execution, NULL);
  if (rc || !execution)
    return rc;
  if ((!instruction || execution->instruction == instruction) && execution->start_ns >= from_ns &&
      execution->start_ns <= to_ns)
    rc = fn (&execution, arg);
  ctl_rooms_take_back (&self->rooms, &execution);
  return rc;
}

int ctl_correlate_each (ctl_correlate_t *self, uint32_t instruction, uint64_t from_ns, uint64_t to_ns,
                        ctl_execution_fn *fn, void *arg)
{
  int rc = 0;
  for (uint32_t i = 0; i < self->tasks.made && rc == 0; i++)
    if (self->tasks.task[i].flags & CTL_OPEN_USED)
      rc = visit (self, &self->tasks.task[i], instruction, from_ns, to_ns, fn, arg);
  return rc;
}

int ctl_correlate_between (ctl_correlate_t *self, const uint8_t low[WEFT_TASK_ID_SIZE],
                           const uint8_t high[WEFT_TASK_ID_SIZE], ctl_execution_fn *fn, void *arg)
{
  int rc = 0;
  for (uint32_t i = 0; i < self->tasks.made && rc == 0; i++) {
    const ctl_open_t *task = &self->tasks.task[i];
    if (task->flags & CTL_OPEN_USED && memcmp (task->id, low, WEFT_TASK_ID_SIZE) >= 0 &&
        memcmp (task->id, high, WEFT_TASK_ID_SIZE) <= 0)
      rc = visit (self, task, 0, 0, UINT64_MAX, fn, arg);
  }
  return rc;
}

int ctl_correlate_find (ctl_correlate_t *self, const uint8_t task[WEFT_TASK_ID_SIZE],
                        ctl_execution_t **ret_execution)
{
  uint32_t number = ctl_open_tasks_find (&self->tasks, task, ctl_open_tasks_hash (&self->tasks, task));
  ctl_execution_t *execution = NULL;
  int rc = number == CTL_NIL ? 0 : assemble (self, &self->tasks.task[number], &execution, NULL);
  if (rc)
    return rc;
  if (!execution)
    return WEFT_E_NOT_FOUND;
  *ret_execution = execution;
  return 0;
}

static void look (ctl_correlate_t *self, ctl_open_t *task)
{
  ctl_execution_t *execution;
  if (task->flags & CTL_OPEN_LOOKED || assemble (self, task, &execution, NULL))
    return;
  task->flags = (uint8_t) ((task->flags & ~(CTL_OPEN_COMPLETE | CTL_OPEN_COUNTS)) | CTL_OPEN_LOOKED);
  task->instruction = 0;
  if (!execution)
    return;
  task->instruction = execution->instruction;
  if (execution->kind == CTL_KIND_TASK)
    task->flags |= CTL_OPEN_COUNTS;
  if (execution->complete) {
    task->flags |= CTL_OPEN_COMPLETE;
    self->answered++;
  }
  ctl_rooms_take_back (&self->rooms, &execution);
}

uint64_t ctl_correlate_waiting (ctl_correlate_t *self, uint32_t instruction)
{
  uint64_t waiting = 0;
  for (uint32_t i = 0; i < self->tasks.made; i++) {
    ctl_open_t *task = &self->tasks.task[i];
    if (!(task->flags & CTL_OPEN_USED))
      continue;
    look (self, task);
    if (task->instruction == instruction &&
        (task->flags & (CTL_OPEN_COUNTS | CTL_OPEN_COMPLETE)) == CTL_OPEN_COUNTS)
      waiting++;
  }
  return waiting;
}

/* The oldest task gets no older: what was found last is a lower bound for as long as nobody looks anew,
 * and looking costs no more a call however many tasks there are. */
static void find_oldest (ctl_correlate_t *self)
{
  self->unwalked += WALK;
  if (self->unwalked < self->tasks.made)
    return;
  self->unwalked = 0;
  uint32_t oldest = UINT32_MAX;
  for (uint32_t i = 0; i < self->tasks.made; i++) {
    const ctl_open_t *task = &self->tasks.task[i];
    if (task->flags & CTL_OPEN_USED && task->born < oldest)
      oldest = task->born;
  }
  self->oldest = oldest;
}

void ctl_correlate_stats (ctl_correlate_t *self, ctl_correlate_stats_t *ret_stats)
{
  *ret_stats = self->stats;
  ret_stats->open_tasks = self->tasks.open;
  ret_stats->open_max = self->open_max;
  ret_stats->bytes = ctl_open_tasks_bytes (&self->tasks);
  ret_stats->bytes_max = self->bytes_max;
  ret_stats->shed = ctl_shed_count (self->shed);
  ret_stats->unanswered = self->tasks.open - self->answered;
  ret_stats->oldest_ns = UINT64_MAX;
  if (!self->tasks.open)
    return;
  find_oldest (self);
  ret_stats->oldest_ns = self->wheel.began_ns + (uint64_t) self->oldest * CTL_WHEEL_TICK_MS * WEFT_NS_PER_MS;
}

/* ---- settling ---------------------------------------------------------------- */

typedef struct {
  ctl_correlate_t *self;
  ctl_execution_fn *fn;
  void *arg;
} hand_t;

static void forget (ctl_correlate_t *self, uint32_t number)
{
  forget_look (self, &self->tasks.task[number]);
  ctl_open_tasks_forget (&self->tasks, number);
}

/* If fn fails, the task is as before. */
static int hand_out (uint32_t number, void *arg)
{
  const hand_t *hand = arg;
  ctl_correlate_t *self = hand->self;
  ctl_open_t *task = &self->tasks.task[number];
  ctl_execution_t *execution;
  uint64_t duplicates = 0;
  uint32_t cut = 0;
  int rc = assemble (self, task, &execution, &duplicates);
  if (rc)
    return rc;
  if (execution) {
    cut = execution->truncated - task->truncated;
    rc = hand->fn (&execution, hand->arg);
    ctl_rooms_take_back (&self->rooms, &execution);
  } else {
    self->stats.discarded++;
  }
  if (rc == 0 || rc == CTL_CORRELATE_HOLD)
    ctl_open_tasks_drop (&self->tasks, number); /* while its entries are at hand */
  if (rc == CTL_CORRELATE_HOLD) {
    self->held_truncated += cut;
    self->held_duplicates += duplicates;
    task->next = self->held;
    self->held = number;
    return CTL_WHEEL_HELD;
  }
  if (rc)
    return rc;
  self->stats.truncated += cut;
  self->stats.duplicates += duplicates;
  forget (self, number);
  return 0;
}

/* The memory of a burst goes back when nothing is open. */
static void give_back (ctl_correlate_t *self)
{
  if (self->tasks.open == 0 && self->tasks.made)
    ctl_open_tasks_give_back (&self->tasks);
}

int ctl_correlate_settle (ctl_correlate_t *self, uint64_t now_ns, int all, ctl_execution_fn *fn, void *arg)
{
  hand_t hand = {self, fn, arg};
  int rc = ctl_wheel_settle (&self->wheel, now_ns, all, hand_out, &hand);
  give_back (self);
  return rc;
}

void ctl_correlate_release (ctl_correlate_t *self, int taken)
{
  while (self->held != CTL_NIL) {
    uint32_t number = self->held;
    self->held = self->tasks.task[number].next;
    if (taken) {
      forget (self, number);
      continue;
    }
    ctl_open_tasks_regain (&self->tasks, number);
    ctl_wheel_put_back (&self->wheel, number);
  }
  self->stats.truncated += taken ? self->held_truncated : 0;
  self->stats.duplicates += taken ? self->held_duplicates : 0;
  self->held_truncated = self->held_duplicates = 0;
  give_back (self);
}
