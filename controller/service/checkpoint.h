/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: how far the journal is in the store. Under load there is always a
 * task that is open, so the end of the journal never is: places are marked on
 * the way, and one becomes the checkpoint when every task that was open then
 * has been stored. One thread. */
#ifndef CTL_CHECKPOINT_H
#define CTL_CHECKPOINT_H

#include <stdint.h>

#include "../../common/limits.h"
#include "journal.h"
#include "sums.h"

/* All zero before use, but for `dir` and `instances`. Marks are in the order of time and place. */
typedef struct {
  const char *dir;            /* of the journal; NULL: sums are not saved */
  ctl_instances_t *instances; /* whose; borrowed */
  struct {
    uint64_t ns;
    ctl_journal_position_t position;
    ctl_sums_t *sums; /* up to there */
  } mark[WEFT_CHECKPOINTS_MAX];
  uint32_t count;
  ctl_journal_position_t set;
} ctl_checkpoint_t;

void ctl_checkpoint_clear (ctl_checkpoint_t *self);
/* After everything settled at now_ns was committed: oldest_ns as in ctl_correlate_stats_t. 0 or as
 * ctl_journal_checkpoint_at. */
int ctl_checkpoint_run (ctl_checkpoint_t *self, ctl_journal_t *journal, uint64_t now_ns, uint64_t oldest_ns);

#endif
