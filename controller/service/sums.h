/* SPDX-License-Identifier: Apache-2.0 */
/* sums: what each instance has stored and lost, so that the account still adds up
 * after a restart when the journal no longer has the batches that it came from.
 *
 *   DIR/sums         {"segment": …, "offset": …, "instances": [{"instance": uuid, "there": bool,
 *                     "stored": n, "losses": [n, …]}, …]}, in the journal's directory
 *   DIR/sums-stored  the same, of the checkpoint: what lies before it is in the store, or lost
 *
 *  U1  the sums are those of every batch before the position, and of no other: recovery
 *      adds what it reads behind it
 *  U2  a file that is missing or damaged is none: recovery adds up all that the journal has
 *  U3  recovery begins at sums-stored where the journal still has what follows: what is
 *      behind it is taken anew, and may be stored where it was shed before, or the other
 *      way round. `sums` is for a journal whose bound has taken some of that
 * One thread. */
#ifndef CTL_SUMS_H
#define CTL_SUMS_H

#include <jansson.h>

#include "../task/instances.h"
#include "journal.h"

#define CTL_SUMS_LAST   "sums"
#define CTL_SUMS_STORED "sums-stored"

/* What each instance had at one moment, by its index; to be freed. */
typedef struct {
  uint32_t count;
  struct {
    uint64_t stored, losses[WEFT_LOSS_COUNT];
  } of[];
} ctl_sums_t;

/* NULL: no memory. */
ctl_sums_t *ctl_sums_take (ctl_instances_t *instances);
/* Replaces the file as a whole. WEFT_E_NOMEM (also for sums NULL), WEFT_E_IO: the one before stays. */
int ctl_sums_save (const char *dir, const char *name, const ctl_sums_t *sums, ctl_instances_t *instances,
                   const ctl_journal_position_t *position);
/* What was saved, to be given back by json_decref; NULL: nothing (U2), the position is 0, 0. */
json_t *ctl_sums_load (const char *dir, const char *name, ctl_journal_position_t *ret_position);
/* Adds it to the instances that are known, and to those that were there when it was saved. */
void ctl_sums_add (const json_t *sums, ctl_instances_t *instances);

#endif
