/* SPDX-License-Identifier: Apache-2.0 */
/* recovery: what a controller that ended badly left in its journal, brought
 * back: names, batch numbers, and what had not reached the store. */
#ifndef CTL_RECOVERY_H
#define CTL_RECOVERY_H

#include <stdint.h>

#include "intake.h"

typedef struct {
  uint64_t frames;  /* behind the checkpoint */
  uint32_t damaged; /* segments that were not read to their end */
  ctl_journal_position_t first_damage;
} ctl_recovery_t;

/* Reads `dir` and the sums in it through `intake`, whose links must hold neither journal nor broadcast: batches
 * from the checkpoint on, of those before it their numbers and counts. Instances are left as gone: they
 * say hello when they see this controller. WEFT_E_IO; WEFT_E_FULL: the store has no room for what is in
 * the journal. */
int ctl_recovery_run (const char *dir, ctl_intake_t *intake, ctl_instances_t *instances,
                      ctl_recovery_t *ret_recovery);

#endif
