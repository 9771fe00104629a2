/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint.h"

#include <stdlib.h>
#include <string.h>

static int same (const ctl_journal_position_t *a, const ctl_journal_position_t *b)
{
  return a->segment == b->segment && a->offset == b->offset;
}

static void drop (ctl_checkpoint_t *self, uint32_t n)
{
  free (self->mark[n].sums);
  self->mark[n].sums = NULL;
}

void ctl_checkpoint_clear (ctl_checkpoint_t *self)
{
  while (self->count)
    drop (self, --self->count);
}

static void add_mark (ctl_checkpoint_t *self, uint64_t now_ns, const ctl_journal_position_t *here)
{
  if (self->count && same (&self->mark[self->count - 1].position, here))
    return;
  if (self->count == WEFT_CHECKPOINTS_MAX) { /* every second one: coarser, none is wrong, the first stays */
    for (uint32_t n = 0; n < WEFT_CHECKPOINTS_MAX / 2; n++) {
      drop (self, 2 * n + 1);
      self->mark[n] = self->mark[2 * n];
    }
    self->count = WEFT_CHECKPOINTS_MAX / 2;
  }
  self->mark[self->count].ns = now_ns;
  self->mark[self->count].sums = self->dir ? ctl_sums_take (self->instances) : NULL;
  self->mark[self->count++].position = *here;
}

int ctl_checkpoint_run (ctl_checkpoint_t *self, ctl_journal_t *journal, uint64_t now_ns, uint64_t oldest_ns)
{
  ctl_journal_position_t here;
  ctl_journal_position (journal, &here);
  add_mark (self, now_ns, &here);
  uint32_t done = 0;
  while (done < self->count && self->mark[done].ns <= oldest_ns)
    done++;
  if (!done || same (&self->mark[done - 1].position, &self->set))
    return 0;
  ctl_journal_position_t reached = self->mark[done - 1].position;
  if (self->dir) /* if it cannot be saved, recovery adds up from the one before */
    ctl_sums_save (self->dir, CTL_SUMS_STORED, self->mark[done - 1].sums, self->instances, &reached);
  int rc = ctl_journal_checkpoint_at (journal, &reached);
  if (rc < 0)
    return rc;
  self->set = reached;
  for (uint32_t n = 0; n < done; n++)
    drop (self, n);
  self->count -= done;
  memmove (self->mark, self->mark + done, self->count * sizeof *self->mark);
  return 0;
}
