/* SPDX-License-Identifier: Apache-2.0 */
#include "copies.h"

#include <stdlib.h>
#include <string.h>

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

/* Of one key the copy that counts first (M2). Two that agree
 * in all of this are told apart by nothing that the result would show. */
static int compare_entries (const void *left, const void *right, void *arg)
{
  const ctl_entry_t *a = *(const ctl_entry_t *const *) left;
  const ctl_entry_t *b = *(const ctl_entry_t *const *) right;
  int top = a->flags & b->flags & CTL_ENTRY_TOP; /* then a link is a hash, new with each start of ours */
  ORDER (ctl_entry_is_open (a), ctl_entry_is_open (b));
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
    if (ctl_copies_key (one) != ctl_copies_key (entry))
      return NULL;
    if (entry->kind != WEFT_REPORT_EMBED || is_same_sending (one, entry))
      return one;
  }
  return NULL;
}

/* Of those in order. */
static uint32_t drop (const ctl_entry_t **entries, uint32_t count, uint64_t *duplicates, uint32_t *truncated)
{
  uint32_t kept = 0, others;
  for (uint32_t i = 0; i < count; i++) {
    const ctl_entry_t *one = copy_of (entries, kept, entries[i], &others);
    if (!one && others == WEFT_SENDINGS_MAX)
      ++*truncated;
    else if (!one)
      entries[kept++] = entries[i];
    else if (ctl_entry_is_open (one) || !ctl_entry_is_open (entries[i]))
      ++*duplicates;
  }
  return kept;
}

/* By key; only those of one key are compared in all that they say. */
static void sort (const ctl_assemble_t *in, const ctl_entry_t **list, uint32_t count, ctl_triple_t *order)
{
  for (uint32_t i = 0; i < count; i++)
    order[i] = (ctl_triple_t){ctl_copies_key (list[i]), (uint64_t) (uintptr_t) list[i], 0};
  ctl_triples_sort (order, count);
  for (uint32_t i = 0, end; i < count; i = end) {
    for (end = i; end < count && order[end].first == order[i].first; end++)
      list[end] = (const ctl_entry_t *) (uintptr_t) order[end].second;
    if (end - i > 1)
      qsort_r (&list[i], end - i, sizeof (const ctl_entry_t *), compare_entries, (void *) (uintptr_t) in);
  }
}

/* Whether no two are alike. */
static int list_few (ctl_few_t *few, const ctl_entry_t *const *list, uint32_t count)
{
  int differ = 1;
  ctl_few_clear (few);
  for (uint32_t i = 0; i < count; i++)
    differ &= ctl_few_add (few, ctl_copies_key (list[i]), i);
  return differ;
}

uint32_t ctl_copies_drop (const ctl_assemble_t *in, const ctl_entry_t **list, uint32_t count,
                          ctl_triple_t *order, ctl_few_t *few, uint64_t *duplicates, uint32_t *truncated)
{
  if (count == 0 || (count <= CTL_FEW && list_few (few, list, count)))
    return count;
  sort (in, list, count, order);
  count = drop (list, count, duplicates, truncated);
  if (count <= CTL_FEW)
    list_few (few, list, count);
  return count;
}
