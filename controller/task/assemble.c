/* SPDX-License-Identifier: Apache-2.0 */
#include "assemble.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"
#include "few.h"
#include "mix.h"
#include "triples.h"

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
  const ctl_entry_t **entry;            /* all, sorted */
  ctl_few_t few;                        /* embeds by request, if they are few */
  lead_t *lead;                         /* of each capture */
  const ctl_entry_t **embed, **capture; /* one of each request and sender / subtask, sorted by it */
  const ctl_entry_t **opaque;           /* one of each id, sorted by it */
  uint32_t embeds, captures, opaques;
  uint8_t *embed_seen; /* a capture of it is there: SEEN, or on its connection: CONNECTED */
  ctl_execution_t *out;
  uint64_t origin_ns; /* start of the orphan that out->origin is of */
  int discard;
} work_t;

static int is_open (const ctl_entry_t *entry)
{
  return (entry->flags & WEFT_REPORT_OPEN) != 0;
}

static uint64_t key_of (const ctl_entry_t *entry)
{
  return entry->kind == WEFT_REPORT_CAPTURE ? entry->subtask : entry->link;
}

#define ORDER(a, b)                                                                                          \
  do {                                                                                                       \
    if ((a) != (b))                                                                                          \
      return (a) < (b) ? -1 : 1;                                                                             \
  } while (0)

/* Numbers depend on who came first, texts do not. */
static int compare_places (const ctl_assemble_t *in, const ctl_entry_t *a, const ctl_entry_t *b)
{
  const ctl_names_t *names = ctl_instances_names (in->instances);
  int order = memcmp (ctl_instances_at (in->instances, a->instance)->uuid,
                      ctl_instances_at (in->instances, b->instance)->uuid, WEFT_UUID_SIZE);
  if (order == 0)
    order = strcmp (ctl_names_text (names, a->name), ctl_names_text (names, b->name));
  if (order == 0 && a->kind != WEFT_REPORT_CAPTURE) {
    const char *left = ctl_peers_text (in->peers, a->peer), *right = ctl_peers_text (in->peers, b->peer);
    order = left && right ? strcmp (left, right) : 0;
  }
  return order;
}

/* What R3 would make of a copy that came on this connection. */
static int class_of (const ctl_assemble_t *in, const ctl_entry_t *entry)
{
  int wanted = 0;
  uint16_t sender;
  uint64_t wall_ns = ctl_boot_wall (in->boots, in->boot_of, entry->instance, entry->start_ns);
  return ctl_peers_find_bare (in->peers, entry->link, wall_ns, &wanted, &sender) ? 1 + wanted : 0;
}

/* By kind, by key, and of one key the copy that counts first (M2). Two that agree
 * in all of this are told apart by nothing that the result would show. */
static int compare_entries (const void *left, const void *right, void *arg)
{
  const ctl_entry_t *a = *(const ctl_entry_t *const *) left;
  const ctl_entry_t *b = *(const ctl_entry_t *const *) right;
  int top = a->flags & b->flags & CTL_ENTRY_TOP; /* then a link is a hash, new with each start of ours */
  ORDER (a->kind, b->kind);
  ORDER (key_of (a), key_of (b));
  ORDER (is_open (a), is_open (b));
  ORDER (b->end_ns, a->end_ns);
  ORDER (a->start_ns, b->start_ns);
  ORDER (a->flags, b->flags);
  if (!top)
    ORDER (a->link, b->link);
  ORDER (a->subtask, b->subtask);
  ORDER (a->cpu_ns, b->cpu_ns);
  ORDER (a->status, b->status);
  ORDER (a->error, b->error);
  ORDER (a->reason, b->reason);
  if (a->kind != WEFT_REPORT_EMBED) /* there it is a hash, too */
    ORDER (a->instruction, b->instruction);
  if (a->instance != b->instance || a->name != b->name || a->peer != b->peer) {
    int order = compare_places (arg, a, b);
    if (order)
      return order;
  }
  if (top && a->link != b->link)
    ORDER (class_of (arg, a), class_of (arg, b));
  return 0;
}

/* Sent by one subtask at one time: what a replay says of it once more, under another name. An id
 * that is not of our making may be sent again by the same instance. */
static int is_same_sending (const ctl_entry_t *a, const ctl_entry_t *b)
{
  int together = a->subtask == b->subtask && a->start_ns == b->start_ns;
  if (a->flags & b->flags & WEFT_REPORT_ADOPTED)
    return together && a->instruction == b->instruction && (a->subtask || a->instance == b->instance);
  return a->instance == b->instance || (a->subtask && together);
}

/* The one among the last `kept` entries that `entry` repeats, or NULL. Two embeds of
 * one request by different senders are no copies: a gateway passed the header on.
 * *ret_others: how many of its key were looked at. */
static const ctl_entry_t *copy_of (const ctl_entry_t *const *entries, uint32_t kept, const ctl_entry_t *entry,
                                   uint32_t *ret_others)
{
  for (*ret_others = 0; kept > 0; kept--, ++*ret_others) {
    const ctl_entry_t *one = entries[kept - 1];
    if (one->kind != entry->kind || key_of (one) != key_of (entry))
      return NULL;
    if (entry->kind != WEFT_REPORT_EMBED || is_same_sending (one, entry))
      return one;
  }
  return NULL;
}

/* Keeps the first of each key, and of the embeds of one request WEFT_SENDINGS_MAX: every capture of
 * it looks at all of them. Returns how many. */
static uint32_t drop_copies (const ctl_entry_t **entries, uint32_t count, uint64_t *duplicates,
                             uint32_t *truncated)
{
  uint32_t kept = 0, others;
  for (uint32_t i = 0; i < count; i++) {
    const ctl_entry_t *one = copy_of (entries, kept, entries[i], &others);
    if (!one && others == WEFT_SENDINGS_MAX)
      ++*truncated;
    else if (!one)
      entries[kept++] = entries[i];
    else if (is_open (one) || !is_open (entries[i]))
      ++*duplicates;
  }
  return kept;
}

static void list_embeds (work_t *self)
{
  ctl_few_clear (&self->few);
  for (uint32_t i = 0; i < self->embeds && self->embeds <= CTL_FEW; i++)
    ctl_few_add (&self->few, self->embed[i]->link, i);
}

/* The first embed of this request; `embeds`: none. */
static uint32_t find_embed (const work_t *self, uint64_t request)
{
  uint32_t low = 0, high = self->embeds;
  if (self->embeds <= CTL_FEW) {
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

static uint64_t wall (const work_t *self, const ctl_entry_t *entry, uint64_t boot_ns)
{
  return ctl_boot_wall (self->in->boots, self->in->boot_of, entry->instance, boot_ns);
}

/* An end before its start is no duration. */
static uint64_t end_of (const work_t *self, const ctl_entry_t *entry)
{
  uint64_t end_ns = entry->end_ns < entry->start_ns ? entry->start_ns : entry->end_ns;
  return wall (self, entry, end_ns);
}

static uint32_t host_of (const work_t *self, const ctl_entry_t *entry)
{
  return self->in->boots[self->in->boot_of[entry->instance]].tag;
}

static void note_orphan (work_t *self, ctl_subtask_t *subtask, uint8_t reason, uint16_t origin)
{
  const ctl_instance_t *instance = ctl_instances_at (self->in->instances, origin);
  subtask->orphan = reason ? reason : WEFT_REASON_NO_CONTEXT;
  if (instance && (!self->out->origin[0] || subtask->start_ns < self->origin_ns)) {
    self->out->origin = instance->service;
    self->origin_ns = subtask->start_ns;
  }
}

static void fill (const work_t *self, const ctl_entry_t *entry, ctl_subtask_t *subtask)
{
  const ctl_instance_t *instance = ctl_instances_at (self->in->instances, entry->instance);
  memset (subtask, 0, sizeof *subtask);
  subtask->parent = subtask->first_child = subtask->next_sibling = CTL_NO_PARENT;
  subtask->error = entry->error;
  if (is_open (entry) && !entry->error)
    subtask->error = WEFT_ERROR_OPEN;
  subtask->answered = !is_open (entry);
  subtask->status = entry->status;
  subtask->instruction = entry->instruction;
  memcpy (subtask->instance, instance->uuid, WEFT_UUID_SIZE);
  subtask->name = ctl_names_text (ctl_instances_names (self->in->instances), entry->name);
  subtask->host = host_of (self, entry);
  subtask->start_ns = wall (self, entry, entry->start_ns);
  subtask->end_ns = end_of (self, entry);
  subtask->cpu_ns = entry->cpu_ns < CTL_ENTRY_CPU_LONG ? entry->cpu_ns : WEFT_NS_NONE;
}

static void fill_request (work_t *self, const ctl_entry_t *embed, ctl_subtask_t *subtask)
{
  subtask->request = embed->link;
  subtask->sender_host = host_of (self, embed);
  subtask->sent_ns = wall (self, embed, embed->start_ns);
  subtask->answered_ns = end_of (self, embed);
  if (!is_open (embed))
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
  return self->in->boot_of[embed->instance] == self->in->boot_of[capture->instance] && !is_open (embed) &&
         !embed->error && embed->end_ns < capture->start_ns;
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
  const ctl_instance_t *instance = ctl_instances_at (self->in->instances, entry->instance);
  fill (self, entry, subtask);
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
  list_embeds (self);
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
  ORDER (a->start_ns, b->start_ns);
  ORDER (a->id, b->id);
  ORDER (a->hop, b->hop);
  return 0;
}

static int build (work_t *self)
{
  ctl_execution_t *out = self->out;
  uint32_t room = self->captures + self->embeds + self->opaques;
  out->subtasks = malloc ((room ? room : 1) * sizeof *out->subtasks);
  if (!out->subtasks)
    return WEFT_E_NOMEM;
  find_all_connected (self);
  for (uint32_t i = 0; i < self->captures; i++)
    fill_capture (self, i, &out->subtasks[out->count++]);
  for (uint32_t i = 0; i < self->embeds; i++)
    if (!self->embed_seen[i] && is_leaf (self, i)) {
      int rc = fill_leaf (self, i, &out->subtasks[out->count++]);
      if (rc)
        return rc;
    }
  for (uint32_t i = 0; i < self->opaques; i++) {
    int rc = fill_opaque (self, i, &out->subtasks[out->count++]);
    if (rc)
      return rc;
  }
  out->hosts = count_hosts (self);
  if (out->hosts > 1) {
    if (self->in->learn)
      ctl_hop_clock_learn (self->in->clock, out);
    int rc = ctl_hop_clock_align (self->in->clock, out);
    if (rc)
      return rc;
  }
  if (out->count > WEFT_SUBTASKS_PER_TASK_MAX) {
    /* what began first is kept: callers begin before what they call */
    qsort (out->subtasks, out->count, sizeof *out->subtasks, compare_starts);
    out->truncated += out->count - WEFT_SUBTASKS_PER_TASK_MAX;
    out->count = WEFT_SUBTASKS_PER_TASK_MAX;
  }
  return ctl_execution_settle (out);
}

/* By key, from `from` up to `to`; only copies of one key are compared in all that they say. */
static void sort_kind (work_t *self, const ctl_entry_t *const *entries, ctl_triple_t *order, uint32_t from,
                       uint32_t to)
{
  ctl_triples_sort (order + from, to - from);
  for (uint32_t i = from, end; i < to; i = end) {
    for (end = i; end < to && order[end].first == order[i].first; end++)
      self->entry[end] = entries[order[end].second];
    if (end - i > 1)
      qsort_r (&self->entry[i], end - i, sizeof (const ctl_entry_t *), compare_entries,
               (void *) (uintptr_t) self->in);
  }
}

/* By kind, then by key. */
static void sort_entries (work_t *self, const ctl_entry_t *const *entries, uint32_t count,
                          ctl_triple_t *order)
{
  uint32_t end[KINDS] = {0}, from = 0;
  for (uint32_t i = 0; i < count; i++)
    end[entries[i]->kind]++;
  for (uint32_t kind = 0, before = 0; kind < KINDS; kind++) { /* first where each begins */
    uint32_t own = end[kind];
    end[kind] = before;
    before += own;
  }
  for (uint32_t i = 0; i < count; i++)
    order[end[entries[i]->kind]++] = (ctl_triple_t){key_of (entries[i]), i, 0};
  for (uint32_t kind = 0; kind < KINDS; kind++) {
    sort_kind (self, entries, order, from, end[kind]);
    from = end[kind];
  }
}

/* The entries of the next kind, as they were sorted; returns where those behind them begin. */
static const ctl_entry_t **take_kind (const ctl_entry_t **at, const ctl_entry_t **end, uint8_t kind,
                                      const ctl_entry_t ***ret_first, uint32_t *ret_count)
{
  *ret_first = at;
  while (at < end && (*at)->kind == kind)
    at++;
  *ret_count = (uint32_t) (at - *ret_first);
  return at;
}
_Static_assert(WEFT_REPORT_CAPTURE < WEFT_REPORT_EMBED && WEFT_REPORT_EMBED < WEFT_REPORT_OPAQUE,
               "they are sorted in the order in which they are taken");

static void take_kinds (work_t *self, uint32_t count)
{
  const ctl_entry_t **at = self->entry, **end = at + count;
  at = take_kind (at, end, WEFT_REPORT_CAPTURE, &self->capture, &self->captures);
  at = take_kind (at, end, WEFT_REPORT_EMBED, &self->embed, &self->embeds);
  take_kind (at, end, WEFT_REPORT_OPAQUE, &self->opaque, &self->opaques);
}

/* Room for everything but the result, in one allocation; NULL: there is none. What is sorted by is
 * done with when leads are looked for: one place serves both. */
static void *make_room (work_t *self, uint32_t count, ctl_triple_t **ret_order)
{
  size_t shared = sizeof **ret_order > sizeof (lead_t) ? sizeof **ret_order : sizeof (lead_t);
  char *room = malloc ((count + 1u) * (shared + sizeof (ctl_entry_t *) + 1));
  if (!room)
    return NULL;
  *ret_order = (ctl_triple_t *) (void *) room;
  self->lead = (lead_t *) (void *) room;
  self->entry = (const ctl_entry_t **) (void *) (room + count * shared);
  self->embed_seen = (uint8_t *) (self->entry + count);
  memset (self->embed_seen, 0, count);
  return room;
}

int ctl_assemble (const ctl_assemble_t *self, const uint8_t task[WEFT_TASK_ID_SIZE],
                  const ctl_entry_t *const *entries, uint32_t count, uint32_t truncated,
                  ctl_execution_t **ret_execution, uint64_t *ret_duplicates)
{
  uint64_t duplicates = 0;
  work_t work = {.in = self, .out = calloc (1, sizeof *work.out)};
  ctl_triple_t *order;
  void *room = make_room (&work, count, &order);
  int rc = room && work.out ? 0 : WEFT_E_NOMEM;
  if (rc == 0) {
    sort_entries (&work, entries, count, order);
    take_kinds (&work, drop_copies (work.entry, count, &duplicates, &truncated));
    memcpy (work.out->task, task, WEFT_TASK_ID_SIZE);
    work.out->truncated = truncated;
    work.out->name = work.out->origin = "";
    rc = build (&work);
  }
  free (room);
  if (rc || work.discard)
    ctl_execution_destroy (&work.out);
  if (rc)
    return rc;
  if (ret_duplicates)
    *ret_duplicates += duplicates;
  *ret_execution = work.out;
  return 0;
}
