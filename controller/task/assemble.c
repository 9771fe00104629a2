/* SPDX-License-Identifier: Apache-2.0 */
#include "assemble.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"
#include "copies.h"
#include "mix.h"
#include "settle.h"

#define LEAF_ODD 0x9e3779b97f4a7c15ull /* so that no subtask id folds to nothing */

#define KINDS 8u /* an entry has three bits for it */

enum { SEEN = 1, CONNECTED = 2 };

/* What is known of a capture's request. */
typedef struct {
  const ctl_entry_t *connected; /* the embed of its connection (M4); NULL: none */
  uint32_t embed;               /* the first one of the request; `embeds`: none */
  uint8_t several;              /* on that connection */
} lead_t;

/* What one assembly works with. */
typedef struct {
  const ctl_assemble_t *in;
  const ctl_names_t *names;
  const ctl_entry_t **embed, **capture; /* one of each request and sender / subtask (copies.h) */
  const ctl_entry_t **opaque, **rest;   /* one of each id; what is none of these */
  uint32_t embeds, captures, opaques;
  uint32_t mixed;      /* not 0: they may be of several boots */
  ctl_few_t few;       /* embeds by request, if they are few */
  lead_t *lead;        /* of each capture */
  uint8_t *embed_seen; /* a capture of it is there: SEEN, or on its connection: CONNECTED */
  ctl_execution_t *out;
  uint64_t origin_ns; /* start of the orphan that out->origin is of */
  int discard;
} work_t;

/* The first embed of this request; `embeds`: none. */
static uint32_t find_embed (const work_t *self, uint64_t request)
{
  uint32_t low = 0, high = self->embeds;
  if (self->embeds && self->embeds <= CTL_FEW) {
    uint32_t at = ctl_few_find (&self->few, request);
    return at < self->embeds ? at : self->embeds;
  }
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (self->embed[middle]->link < request)
      low = middle + 1;
    else
      high = middle;
  }
  return low < self->embeds && self->embed[low]->link == request ? low : self->embeds;
}

static uint32_t tag_of (const uint8_t boot[WEFT_UUID_SIZE])
{
  static const ctl_seed_t fixed = {0xd1b54a32d192ed03ull, 0x9e3779b97f4a7c15ull};
  uint32_t tag = (uint32_t) (ctl_mix_16 (&fixed, boot) >> 32);
  return tag ? tag : 1;
}

uint16_t ctl_boot_of (ctl_boot_t *boots, uint32_t *count, const weft_batch_head_t *head, uint16_t guess)
{
  uint32_t at = guess;
  if (at >= *count || memcmp (boots[at].id, head->boot, WEFT_UUID_SIZE) != 0)
    for (at = 0; at < *count; at++)
      if (memcmp (boots[at].id, head->boot, WEFT_UUID_SIZE) == 0)
        break;
  if (at == WEFT_BOOTS_MAX)
    return WEFT_BOOTS_MAX - 1;
  if (at == *count) {
    memcpy (boots[at].id, head->boot, WEFT_UUID_SIZE);
    boots[at].anchor = head->anchor;
    boots[at].tag = tag_of (head->boot);
    ++*count;
  }
  const weft_anchor_t *known = &boots[at].anchor;
  if (head->anchor.boot_ns < known->boot_ns ||
      (head->anchor.boot_ns == known->boot_ns && head->anchor.real_ns < known->real_ns))
    boots[at].anchor = head->anchor;
  return (uint16_t) at;
}

static const ctl_boot_t *boot_of (const work_t *self, const ctl_entry_t *entry)
{
  return &self->in->boots[self->in->boot_of[entry->instance]];
}

/* An end before its start is no duration. */
static uint64_t end_of (const ctl_entry_t *entry)
{
  return entry->end_ns < entry->start_ns ? entry->start_ns : entry->end_ns;
}

static int is_earlier (const work_t *self, const ctl_subtask_t *subtask, const ctl_instance_t *instance)
{
  return subtask->start_ns < self->origin_ns ||
         (subtask->start_ns == self->origin_ns && strcmp (instance->service, self->out->origin) < 0);
}

static void note_orphan (work_t *self, ctl_subtask_t *subtask, uint8_t reason, uint16_t origin)
{
  const ctl_instance_t *instance = ctl_instances_at (self->in->instances, origin);
  subtask->orphan = reason ? reason : WEFT_REASON_NO_CONTEXT;
  if (instance && (!self->out->origin[0] || is_earlier (self, subtask, instance))) {
    self->out->origin = instance->service;
    self->origin_ns = subtask->start_ns;
  }
}

/* The subtask is zeroed. Returns who tells of it. */
static const ctl_instance_t *fill (const work_t *self, const ctl_entry_t *entry, ctl_subtask_t *subtask)
{
  const ctl_instance_t *instance = ctl_instances_at (self->in->instances, entry->instance);
  const ctl_boot_t *boot = boot_of (self, entry);
  uint64_t shift = ctl_boot_shift (boot);
  subtask->error = entry->error;
  if (ctl_entry_is_open (entry) && !entry->error)
    subtask->error = WEFT_ERROR_OPEN;
  subtask->answered = !ctl_entry_is_open (entry);
  subtask->status = entry->status;
  subtask->instruction = entry->instruction;
  memcpy (subtask->instance, instance->uuid, WEFT_UUID_SIZE);
  subtask->name = ctl_names_text (self->names, entry->name);
  subtask->host = boot->tag;
  subtask->start_ns = entry->start_ns + shift;
  subtask->end_ns = end_of (entry) + shift;
  subtask->cpu_ns = entry->cpu_ns < CTL_ENTRY_CPU_LONG ? entry->cpu_ns : WEFT_NS_NONE;
  return instance;
}

static void fill_request (work_t *self, const ctl_entry_t *embed, ctl_subtask_t *subtask)
{
  const ctl_boot_t *boot = boot_of (self, embed);
  uint64_t shift = ctl_boot_shift (boot);
  subtask->request = embed->link;
  subtask->sender_host = boot->tag;
  subtask->sent_ns = embed->start_ns + shift;
  subtask->answered_ns = end_of (embed) + shift;
  if (!ctl_entry_is_open (embed))
    subtask->error = ctl_error_of_both (subtask->error, embed->error);
  if (embed->flags & WEFT_REPORT_ORPHAN)
    note_orphan (self, subtask, embed->reason, embed->instance);
  else
    subtask->caller = embed->subtask;
}

/* R3: a ROOT on a connection that an instance said to use bare is none. */
static void fill_top (work_t *self, const ctl_entry_t *entry, ctl_subtask_t *subtask)
{
  int wanted;
  uint16_t sender;
  subtask->hop = CTL_HOP_ROOT;
  if (!(entry->flags & WEFT_REPORT_ROOT))
    note_orphan (self, subtask, entry->reason ? entry->reason : WEFT_REASON_NO_ROOT, entry->instance);
  else if (!ctl_peers_find_bare (self->in->peers, entry->link, subtask->start_ns, &wanted, &sender))
    return;
  else if (wanted)
    note_orphan (self, subtask, WEFT_REASON_INSIDE, sender);
  else
    self->discard = 1;
}

static int is_forwarded (const ctl_entry_t *embed)
{
  return (embed->flags & WEFT_REPORT_FORWARDED) != 0;
}

/* M5. */
static int may_lead (const work_t *self, const ctl_entry_t *embed, const ctl_entry_t *capture)
{
  if (!(embed->flags & WEFT_REPORT_ADOPTED))
    return 1;
  int same_clock = self->in->boot_of[embed->instance] == self->in->boot_of[capture->instance];
  return embed->subtask != capture->subtask && !(same_clock && capture->start_ns < embed->start_ns);
}

/* What leaves on a connection after the answer is another request. */
static int is_answered_before (const work_t *self, const ctl_entry_t *embed, const ctl_entry_t *capture)
{
  return self->in->boot_of[embed->instance] == self->in->boot_of[capture->instance] &&
         !ctl_entry_is_open (embed) && !embed->error && embed->end_ns < capture->start_ns;
}

/* M4: of the embeds from `index` on that are of this request, the one that left on the connection
 * that this capture came on. */
static const ctl_entry_t *find_connected (work_t *self, const ctl_entry_t *capture, uint32_t index,
                                          int *ret_several)
{
  const ctl_entry_t *found = NULL;
  *ret_several = 0;
  for (; index < self->embeds && self->embed[index]->link == capture->link; index++) {
    const ctl_entry_t *embed = self->embed[index];
    if (!capture->peer || embed->instruction != capture->peer || !may_lead (self, embed, capture) ||
        is_answered_before (self, embed, capture))
      continue;
    self->embed_seen[index] = CONNECTED;
    *ret_several |= found != NULL;
    found = embed;
  }
  return found;
}

/* No connection says it. The embed of another instance, for an instance that has received a request
 * passes it on and did not send it to itself. By several, or forwarded to nobody that is known, or
 * all that was sent reached others, who must have passed it on: it cannot be said. */
static const ctl_entry_t *find_elsewhere (work_t *self, const ctl_entry_t *capture, uint32_t index,
                                          int *ret_several)
{
  const ctl_entry_t *found = NULL, *own = NULL;
  *ret_several = 0;
  for (; index < self->embeds && self->embed[index]->link == capture->link; index++) {
    const ctl_entry_t *embed = self->embed[index];
    if (!may_lead (self, embed, capture))
      continue;
    int connected = self->embed_seen[index] == CONNECTED;
    if (connected || is_forwarded (embed)) {
      *ret_several |= connected != is_forwarded (embed);
      continue;
    }
    self->embed_seen[index] = SEEN;
    if (embed->instance == capture->instance) {
      own = embed;
      continue;
    }
    *ret_several |= found && (found->instance != embed->instance || found->subtask != embed->subtask);
    found = found ? found : embed;
  }
  return found ? found : own;
}

/* Several were sent under the id of this embed. */
static int is_shared (const work_t *self, uint32_t index)
{
  uint64_t link = self->embed[index]->link;
  return is_forwarded (self->embed[index]) ||
         (index + 1 < self->embeds && self->embed[index + 1]->link == link) ||
         (index > 0 && self->embed[index - 1]->link == link);
}

static void fill_capture (work_t *self, uint32_t index, ctl_subtask_t *subtask)
{
  const ctl_entry_t *entry = self->capture[index], *embed;
  const ctl_instance_t *instance = fill (self, entry, subtask);
  subtask->id = entry->subtask;
  subtask->service = instance->service;
  subtask->vm = instance->vm;
  subtask->pid = (uint32_t) instance->pid;
  if (entry->cpu_ns == CTL_ENTRY_CPU_LONG)
    subtask->cpu_ns = entry[1].link;
  if (entry->flags & CTL_ENTRY_TOP) {
    fill_top (self, entry, subtask);
    return;
  }
  const lead_t *lead = &self->lead[index];
  int several = lead->several;
  subtask->request = entry->link;
  subtask->hop = CTL_HOP_CAPTURE_ONLY;
  embed = lead->connected;
  if (embed)
    subtask->alone = is_shared (self, lead->embed);
  else if (lead->embed < self->embeds)
    embed = find_elsewhere (self, entry, lead->embed, &several);
  if (several) {
    subtask->alone = 1;
    note_orphan (self, subtask, WEFT_REASON_CONTEXT, entry->instance);
  } else if (embed) {
    subtask->hop = CTL_HOP_PROVEN;
    fill_request (self, embed, subtask);
  }
}

/* Before any capture looks elsewhere: which embeds are those of a connection. */
static void find_all_connected (work_t *self)
{
  for (uint32_t i = 0; i < self->captures; i++) {
    int several = 0, top = self->capture[i]->flags & CTL_ENTRY_TOP;
    lead_t *lead = &self->lead[i];
    lead->embed = top ? self->embeds : find_embed (self, self->capture[i]->link);
    lead->connected = find_connected (self, self->capture[i], lead->embed, &several);
    lead->several = (uint8_t) several;
  }
}

/* A leaf whose request id is not its alone has one of what it differs in from the others. */
static uint64_t leaf_id (const ctl_entry_t *embed)
{
  uint64_t id = embed->link ^ ctl_mix_fold (embed->start_ns | 1, embed->subtask ^ LEAF_ODD);
  return id ? id : 1;
}

static int fill_leaf (work_t *self, uint32_t index, ctl_subtask_t *subtask)
{
  const ctl_entry_t *embed = self->embed[index];
  fill (self, embed, subtask);
  fill_request (self, embed, subtask);
  subtask->alone = is_forwarded (embed) || (index > 0 && self->embed[index - 1]->link == embed->link);
  subtask->id = subtask->alone ? leaf_id (embed) : embed->link;
  subtask->instruction = 0;
  subtask->hop = CTL_HOP_EMBED_ONLY;
  subtask->inside = (uint8_t) ctl_peers_captures (self->in->peers, embed->peer);
  subtask->vm = "";
  subtask->cpu_ns = WEFT_NS_NONE;
  subtask->service = ctl_peers_text (self->in->peers, embed->peer);
  return subtask->service ? 0 : WEFT_E_NOMEM;
}

/* Of the embeds of one request that nobody captured: the first, and each that is a request of its own. */
static int is_leaf (const work_t *self, uint32_t index)
{
  const ctl_entry_t *embed = self->embed[index];
  return index == 0 || self->embed[index - 1]->link != embed->link || (embed->flags & WEFT_REPORT_ADOPTED);
}

static int fill_opaque (work_t *self, uint32_t index, ctl_subtask_t *subtask)
{
  const ctl_entry_t *entry = self->opaque[index], *bytes = entry + 1;
  fill (self, entry, subtask);
  subtask->id = entry->link;
  subtask->caller = entry->subtask;
  subtask->hop = CTL_HOP_OPAQUE;
  subtask->vm = "";
  subtask->status = 0;
  subtask->instruction = 0;
  subtask->cpu_ns = WEFT_NS_NONE;
  subtask->calls = entry->instruction;
  subtask->wait_ns = bytes->subtask;
  subtask->bytes_out = bytes->start_ns;
  subtask->bytes_in = bytes->end_ns;
  subtask->service = entry->peer          ? ctl_peers_text (self->in->peers, entry->peer)
                     : entry->status == 1 ? "unix socket"
                                          : "";
  return subtask->service ? 0 : WEFT_E_NOMEM;
}

/* Times within one kernel compare; each further kernel is another clock. */
static uint32_t count_hosts (const work_t *self)
{
  uint32_t hosts = 0;
  uint16_t seen[64];
  if (!self->mixed)
    return self->embeds + self->captures > 0;
  for (uint32_t i = 0; i < self->embeds + self->captures && hosts < 64; i++) {
    const ctl_entry_t *entry = i < self->embeds ? self->embed[i] : self->capture[i - self->embeds];
    uint16_t boot = self->in->boot_of[entry->instance];
    uint32_t k = 0;
    while (k < hosts && seen[k] != boot)
      k++;
    if (k == hosts)
      seen[hosts++] = boot;
  }
  return hosts;
}

static int compare_starts (const void *left, const void *right)
{
  const ctl_subtask_t *a = left, *b = right;
  if (a->start_ns != b->start_ns)
    return a->start_ns < b->start_ns ? -1 : 1;
  if (a->id != b->id)
    return a->id < b->id ? -1 : 1;
  return (int) a->hop - (int) b->hop;
}

static uint32_t count_leaves (const work_t *self)
{
  uint32_t leaves = 0;
  for (uint32_t i = 0; i < self->embeds; i++)
    leaves += !self->embed_seen[i] && is_leaf (self, i);
  return leaves;
}

/* All that the entries tell, into `raw`, which is cleared for many at a time. */
static int fill_all (work_t *self, ctl_subtask_t *raw)
{
  ctl_subtask_t *at = raw;
  int rc = 0;
  memset (at, 0, self->captures * sizeof *at);
  for (uint32_t i = 0; i < self->captures; i++)
    fill_capture (self, i, at++);
  memset (at, 0, (count_leaves (self) + self->opaques) * sizeof *at);
  for (uint32_t i = 0; i < self->embeds && rc == 0; i++)
    if (!self->embed_seen[i] && is_leaf (self, i))
      rc = fill_leaf (self, i, at++);
  for (uint32_t i = 0; i < self->opaques && rc == 0; i++)
    rc = fill_opaque (self, i, at++);
  self->out->count = (uint32_t) (at - raw);
  return rc;
}

static int align (work_t *self, ctl_subtask_t *raw)
{
  ctl_execution_t *out = self->out;
  out->hosts = count_hosts (self);
  if (out->hosts < 2)
    return 0;
  out->subtasks = raw;
  if (self->in->settled)
    ctl_hop_clock_learn (self->in->clock, out);
  int rc = ctl_hop_clock_align (self->in->clock, out);
  out->subtasks = NULL;
  return rc;
}

static int build (work_t *self)
{
  ctl_execution_t *out = self->out;
  ctl_rooms_t *rooms = self->in->rooms;
  ctl_subtask_t *raw =
      ctl_room (&rooms->raw, (self->captures + self->embeds + self->opaques + 1u) * sizeof *raw);
  if (!raw)
    return WEFT_E_NOMEM;
  find_all_connected (self);
  int rc = fill_all (self, raw);
  if (rc == 0)
    rc = align (self, raw);
  if (rc)
    return rc;
  if (out->count > WEFT_SUBTASKS_PER_TASK_MAX) {
    /* what began first is kept: callers begin before what they call */
    qsort (raw, out->count, sizeof *raw, compare_starts);
    out->truncated += out->count - WEFT_SUBTASKS_PER_TASK_MAX;
    out->count = WEFT_SUBTASKS_PER_TASK_MAX;
  }
  rc = ctl_execution_order (out, raw, &rooms->order, &rooms->subtasks);
  return rc || self->in->settled ? rc : ctl_execution_time (out, &rooms->order);
}

/* Each kind in a list of its own; second lines (N1) and what else there may be in none that is read. */
static void take_kinds (work_t *self, const ctl_entry_t *const *entries, uint32_t count)
{
  const ctl_entry_t **end[KINDS];
  for (uint32_t kind = 0; kind < KINDS; kind++)
    end[kind] = self->rest;
  end[WEFT_REPORT_CAPTURE] = self->capture;
  end[WEFT_REPORT_EMBED] = self->embed;
  end[WEFT_REPORT_OPAQUE] = self->opaque;
  uint32_t mixed = 0, boot = count ? self->in->boot_of[entries[0]->instance] : 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t kind = entries[i]->kind;
    *end[kind]++ = entries[i];
    mixed |= boot ^ self->in->boot_of[entries[i]->instance];
  }
  self->mixed = mixed;
  self->captures = (uint32_t) (end[WEFT_REPORT_CAPTURE] - self->capture);
  self->embeds = (uint32_t) (end[WEFT_REPORT_EMBED] - self->embed);
  self->opaques = (uint32_t) (end[WEFT_REPORT_OPAQUE] - self->opaque);
}

/* `few` is of the embeds in the end. */
static void drop_copies (work_t *self, ctl_triple_t *order, uint64_t *duplicates, uint32_t *truncated)
{
  ctl_few_t *few = &self->few;
  self->captures =
      ctl_copies_drop (self->in, self->capture, self->captures, order, few, duplicates, truncated);
  self->opaques = ctl_copies_drop (self->in, self->opaque, self->opaques, order, few, duplicates, truncated);
  self->embeds = ctl_copies_drop (self->in, self->embed, self->embeds, order, few, duplicates, truncated);
}

/* Room for everything but the subtasks; NULL: there is none. What is sorted by is done with when leads
 * are looked for: one place serves both. */
static ctl_triple_t *take_room (work_t *self, uint32_t count)
{
  size_t shared = sizeof (ctl_triple_t) > sizeof (lead_t) ? sizeof (ctl_triple_t) : sizeof (lead_t);
  char *room =
      ctl_room (&self->in->rooms->lists, (count + 1u) * (shared + 4 * sizeof (const ctl_entry_t *) + 1));
  if (!room)
    return NULL;
  self->lead = (lead_t *) (void *) room;
  self->capture = (const ctl_entry_t **) (void *) (room + count * shared);
  self->embed = self->capture + count;
  self->opaque = self->embed + count;
  self->rest = self->opaque + count;
  self->embed_seen = (uint8_t *) (self->rest + count);
  memset (self->embed_seen, 0, count);
  return (ctl_triple_t *) (void *) room;
}

static void rest (ctl_rooms_t *rooms)
{
  ctl_room_rest (&rooms->lists);
  ctl_room_rest (&rooms->raw);
  ctl_room_rest (&rooms->order);
}

void ctl_rooms_end (ctl_rooms_t *self)
{
  ctl_room_end (&self->lists);
  ctl_room_end (&self->raw);
  ctl_room_end (&self->order);
  ctl_room_end (&self->subtasks);
  free (self->spare);
  self->spare = NULL;
}

void ctl_rooms_take_back (ctl_rooms_t *self, ctl_execution_t **execution_p)
{
  ctl_execution_t *execution = *execution_p;
  if (!execution || execution->text || self->spare || self->subtasks.at) {
    ctl_execution_destroy (execution_p);
    return;
  }
  if (execution->subtasks)
    self->subtasks = (ctl_room_t){execution->subtasks, malloc_usable_size (execution->subtasks)};
  ctl_room_rest (&self->subtasks);
  self->spare = execution;
  *execution_p = NULL;
}

/* An empty one. NULL: out of memory. */
static ctl_execution_t *take_execution (ctl_rooms_t *rooms)
{
  ctl_execution_t *out = rooms->spare ? rooms->spare : malloc (sizeof *out);
  rooms->spare = NULL;
  if (out)
    ctl_clear (out, sizeof *out);
  return out;
}

int ctl_assemble (const ctl_assemble_t *self, const uint8_t task[WEFT_TASK_ID_SIZE],
                  const ctl_entry_t *const *entries, uint32_t count, uint32_t truncated,
                  ctl_execution_t **ret_execution, uint64_t *ret_duplicates)
{
  uint64_t duplicates = 0;
  work_t work;
  work.in = self;
  work.names = ctl_instances_names (self->instances);
  work.out = take_execution (self->rooms);
  work.discard = 0;
  ctl_triple_t *order = take_room (&work, count);
  int rc = order && work.out ? 0 : WEFT_E_NOMEM;
  if (rc == 0) {
    take_kinds (&work, entries, count);
    drop_copies (&work, order, &duplicates, &truncated);
    memcpy (work.out->task, task, WEFT_TASK_ID_SIZE);
    work.out->truncated = truncated;
    work.out->name = work.out->origin = "";
    rc = build (&work);
  }
  rest (self->rooms);
  if (rc || work.discard)
    ctl_execution_destroy (&work.out);
  if (rc)
    return rc;
  if (ret_duplicates)
    *ret_duplicates += duplicates;
  *ret_execution = work.out;
  return 0;
}
