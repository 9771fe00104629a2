/* SPDX-License-Identifier: Apache-2.0 */
/* sums: what each instance has stored and lost, so that the account still adds up
 * after a restart when the journal no longer has the batches that it came from.
 *
 *   DIR/sums   {"segment": …, "offset": …, "instances": [{"instance": uuid, "there": bool,
 *               "stored": n, "losses": [n, …]}, …]}, in the journal's directory
 *
 *  U1  the sums are those of every batch before the position, and of no other: recovery
 *      adds what it reads behind it
 *  U2  a file that is missing or damaged is none: recovery adds up all that the journal has
 * One thread. */
#ifndef CTL_SUMS_H
#define CTL_SUMS_H

#include <jansson.h>

#include "../task/instances.h"
#include "journal.h"

/* Replaces the file as a whole. WEFT_E_NOMEM, WEFT_E_IO: the one before stays. */
int ctl_sums_save (const char *dir, ctl_instances_t *instances, const ctl_journal_position_t *position);
/* What was saved, to be given back by json_decref; NULL: nothing (U2), the position is 0, 0. */
json_t *ctl_sums_load (const char *dir, ctl_journal_position_t *ret_position);
/* Adds it to the instances that are known, and to those that were there when it was saved. */
void ctl_sums_add (const json_t *sums, ctl_instances_t *instances);

#endif
