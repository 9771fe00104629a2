/* SPDX-License-Identifier: Apache-2.0 */
#include "fold.h"

#include <stdlib.h>
#include <string.h>

#include "../../common/status.h"

/* Of a leader: its group. */
typedef struct {
  uint32_t total, failed;
  uint8_t dropped; /* by `wide` */
  uint64_t ns;
} group_t;

typedef struct {
  const ctl_execution_t *execution;
  const ctl_subtask_t *subtasks;
  uint32_t count;
  ctl_fold_t *fold;
  group_t *group;
  uint32_t *ordinal; /* among its like */
  uint32_t *below;   /* subtasks in its subtree, itself included */
  uint32_t *table;   /* leaders by hash */
  uint32_t table_size;
  uint32_t *leaders; /* scratch */
} folding_t;

int ctl_fold_is_bad (const ctl_subtask_t *subtask)
{
  return subtask->error || subtask->status >= 500;
}

/* ---- like ----------------------------------------------------------------------------- */

static int similar (const ctl_subtask_t *a, const ctl_subtask_t *b)
{
  return a->parent == b->parent && a->hop == b->hop && (a->hop != CTL_HOP_OPAQUE || a->error == b->error) &&
         strcmp (a->name, b->name) == 0 && strcmp (a->service, b->service) == 0;
}

static uint32_t hash_of (const ctl_subtask_t *subtask)
{
  uint32_t hash = 2166136261u ^ subtask->parent;
  for (const char *at = subtask->name; *at; at++)
    hash = (hash ^ (unsigned char) *at) * 16777619u;
  for (const char *at = subtask->service; *at; at++)
    hash = (hash ^ (unsigned char) *at) * 16777619u;
  return hash ^ hash >> 15;
}

static uint32_t leader_of (folding_t *self, uint32_t index)
{
  uint32_t place = hash_of (&self->subtasks[index]);
  for (;; place++) {
    uint32_t *entry = &self->table[place & (self->table_size - 1)];
    if (*entry == CTL_NO_PARENT)
      *entry = index;
    if (similar (&self->subtasks[*entry], &self->subtasks[index]))
      return *entry;
  }
}

static void find_groups (folding_t *self, int all)
{
  for (uint32_t i = 0; i < self->count; i++) {
    const ctl_subtask_t *subtask = &self->subtasks[i];
    ctl_fold_t *fold = &self->fold[i];
    fold->into = CTL_NO_PARENT;
    fold->leader = all ? i : leader_of (self, i);
    group_t *group = &self->group[fold->leader];
    ctl_fold_t *leader = &self->fold[fold->leader];
    self->ordinal[i] = group->total++;
    group->failed += (uint32_t) ctl_fold_is_bad (subtask);
    group->ns += subtask->end_ns - subtask->start_ns;
    leader->calls += subtask->calls;
    leader->wait_ns += subtask->wait_ns;
  }
}

static void put_into_line (folding_t *self, uint32_t index, uint32_t place, ctl_fold_kind_t kind,
                           uint32_t count)
{
  const ctl_subtask_t *subtask = &self->subtasks[index];
  ctl_fold_t *line = &self->fold[place];
  self->fold[index].hidden = 1;
  self->fold[index].into = place;
  line->line = kind;
  line->count += count;
  line->failed += (uint32_t) ctl_fold_is_bad (subtask);
  line->critical |= subtask->on_critical_path;
  line->ns += subtask->end_ns - subtask->start_ns;
}

/* The third of its like stands for itself and those after it. */
static void fold_like (folding_t *self)
{
  for (uint32_t i = 0; i < self->count; i++) {
    uint32_t leader = self->fold[i].leader;
    if (self->subtasks[i].hop == CTL_HOP_OPAQUE) {
      self->fold[i].hidden = self->ordinal[i] > 0;
    } else if (self->group[leader].total > CTL_FOLD_SIMILAR && self->ordinal[i] >= CTL_FOLD_FIRST) {
      if (self->ordinal[i] == CTL_FOLD_FIRST)
        self->leaders[leader] = i;
      put_into_line (self, i, self->leaders[leader], CTL_FOLD_LIKE, 1);
    }
  }
}

/* ---- wide ----------------------------------------------------------------------------- */

static int compare (const void *left, const void *right, void *arg)
{
  const group_t *groups = arg;
  uint32_t a = *(const uint32_t *) left, b = *(const uint32_t *) right;
  if (groups[a].ns != groups[b].ns)
    return groups[a].ns > groups[b].ns ? -1 : 1;
  return a < b ? -1 : 1;
}

/* `leaders` are siblings. The longest stay, and the longest that went wrong. */
static int drop_groups (folding_t *self, uint32_t count)
{
  if (count <= CTL_FOLD_SIBLINGS)
    return 0;
  qsort_r (self->leaders, count, sizeof *self->leaders, compare, self->group);
  uint32_t kept = CTL_FOLD_SIBLINGS - CTL_FOLD_FAILED;
  for (uint32_t i = kept; i < count; i++) {
    group_t *group = &self->group[self->leaders[i]];
    group->dropped = !group->failed || kept == CTL_FOLD_SIBLINGS;
    kept += !group->dropped;
  }
  for (uint32_t i = 0; i < count && kept < CTL_FOLD_SIBLINGS; i++)
    if (self->group[self->leaders[i]].dropped) {
      self->group[self->leaders[i]].dropped = 0;
      kept++;
    }
  return 1;
}

static void forget_line (ctl_fold_t *fold)
{
  *fold = (ctl_fold_t){.hidden = 1, .leader = fold->leader, .into = CTL_NO_PARENT};
}

/* The last sibling that goes stands for all of them. */
static void line_of_dropped (folding_t *self, uint32_t first, uint32_t (*next) (const folding_t *, uint32_t))
{
  uint32_t last = CTL_NO_PARENT;
  for (uint32_t i = first; i != CTL_NO_PARENT; i = next (self, i))
    if (self->group[self->fold[i].leader].dropped) {
      forget_line (&self->fold[i]);
      last = i;
    }
  for (uint32_t i = first; i != CTL_NO_PARENT; i = next (self, i))
    if (self->group[self->fold[i].leader].dropped)
      put_into_line (self, i, last, CTL_FOLD_WIDE, self->below[i]);
}

static uint32_t next_sibling (const folding_t *self, uint32_t index)
{
  return self->subtasks[index].next_sibling;
}

static uint32_t next_root (const folding_t *self, uint32_t index)
{
  while (++index < self->count)
    if (self->subtasks[index].parent == CTL_NO_PARENT)
      return index;
  return CTL_NO_PARENT;
}

static void fold_wide_of (folding_t *self, uint32_t first, uint32_t (*next) (const folding_t *, uint32_t))
{
  uint32_t count = 0;
  for (uint32_t i = first; i != CTL_NO_PARENT; i = next (self, i))
    if (self->fold[i].leader == i)
      self->leaders[count++] = i;
  if (drop_groups (self, count))
    line_of_dropped (self, first, next);
}

static void fold_wide (folding_t *self)
{
  fold_wide_of (self, 0, next_root);
  for (uint32_t i = 0; i < self->count; i++)
    fold_wide_of (self, self->subtasks[i].first_child, next_sibling);
}

/* ---- deep ----------------------------------------------------------------------------- */

/* What is below something hidden is hidden, and has no lines. Parents stand before their children. */
static void hide_below (folding_t *self)
{
  for (uint32_t i = 0; i < self->count; i++) {
    uint32_t parent = self->subtasks[i].parent;
    if (parent == CTL_NO_PARENT || !self->fold[parent].hidden)
      continue;
    forget_line (&self->fold[i]);
  }
}

/* As deep as there are not too many lines; the children of the top are seen in any case. */
static uint32_t depth_for (const folding_t *self)
{
  uint32_t lines[CTL_FOLD_DEPTH + 1] = {0}, sum = 0, depth = 0;
  for (uint32_t i = 0; i < self->count; i++)
    if (self->subtasks[i].depth <= CTL_FOLD_DEPTH && (!self->fold[i].hidden || self->fold[i].line))
      lines[self->subtasks[i].depth]++;
  for (sum = lines[0]; depth < CTL_FOLD_DEPTH && (depth == 0 || sum + lines[depth + 1] <= CTL_FOLD_LINES);
       depth++)
    sum += lines[depth + 1];
  return depth;
}

static void fold_deep (folding_t *self)
{
  uint32_t depth = depth_for (self);
  for (uint32_t i = 0; i < self->count; i++) {
    if (self->subtasks[i].depth != depth || self->fold[i].hidden)
      continue;
    uint32_t first = self->subtasks[i].first_child;
    for (uint32_t k = first; k != CTL_NO_PARENT; k = self->subtasks[k].next_sibling)
      forget_line (&self->fold[k]);
    for (uint32_t k = first; k != CTL_NO_PARENT; k = self->subtasks[k].next_sibling)
      put_into_line (self, k, first, CTL_FOLD_DEEP, self->below[k]);
  }
  hide_below (self);
}

/* ---- all of it -------------------------------------------------------------------------- */

static void find_last (folding_t *self)
{
  memset (self->ordinal, 0, self->count * sizeof *self->ordinal); /* 1: of this parent one is seen already */
  uint8_t root = 0;
  for (uint32_t i = self->count; i-- > 0;) {
    uint32_t parent = self->subtasks[i].parent;
    if (self->fold[i].hidden && !self->fold[i].line)
      continue;
    self->fold[i].last = parent == CTL_NO_PARENT ? !root : !self->ordinal[parent];
    if (parent == CTL_NO_PARENT)
      root = 1;
    else
      self->ordinal[parent] = 1;
  }
}

static void count_below (folding_t *self)
{
  for (uint32_t i = self->count; i-- > 0;) {
    self->below[i]++;
    if (self->subtasks[i].parent != CTL_NO_PARENT)
      self->below[self->subtasks[i].parent] += self->below[i];
  }
}

static int make_room (folding_t *self)
{
  self->table_size = 16;
  while (self->table_size < 2 * (self->count + 1))
    self->table_size *= 2;
  self->group = calloc (self->count + 1u, sizeof *self->group);
  self->ordinal = calloc (self->count + 1u, sizeof *self->ordinal);
  self->below = calloc (self->count + 1u, sizeof *self->below);
  self->leaders = calloc (self->count + 1u, sizeof *self->leaders);
  self->table = malloc (self->table_size * sizeof *self->table);
  if (!self->group || !self->ordinal || !self->below || !self->leaders || !self->table)
    return WEFT_E_NOMEM;
  memset (self->table, 0xff, self->table_size * sizeof *self->table);
  return 0;
}

int ctl_fold (const ctl_execution_t *execution, int all, ctl_fold_t *ret_fold)
{
  folding_t self = {
      .execution = execution, .subtasks = execution->subtasks, .count = execution->count, .fold = ret_fold};
  int rc = make_room (&self);
  if (rc == 0) {
    memset (ret_fold, 0, self.count * sizeof *ret_fold);
    count_below (&self);
    find_groups (&self, all);
  }
  if (rc == 0 && !all && self.count) {
    fold_like (&self);
    fold_wide (&self);
    hide_below (&self);
    fold_deep (&self);
  }
  if (rc == 0)
    find_last (&self);
  free (self.group);
  free (self.ordinal);
  free (self.below);
  free (self.leaders);
  free (self.table);
  return rc;
}
