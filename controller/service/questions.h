/* SPDX-License-Identifier: Apache-2.0 */
/* questions: which executions there are: in memory and in the store taken together. Parts of one task are one execution here.
 * One thread, reads only. */
#ifndef CTL_QUESTIONS_H
#define CTL_QUESTIONS_H

#include <stdint.h>

#include "../task/correlate.h"
#include "../task/store.h"

/* Both places; store may be NULL. */
typedef struct {
  ctl_correlate_t *correlate;
  ctl_store_t *store;
  int *in_store; /* may be NULL; set while the store is walked: from then on the newest comes first */
} ctl_places_t;

/* As ctl_correlate_each, over all places. Each task once: what is in memory, then the
 * store's, newest first. */
int ctl_questions_each (const ctl_places_t *places, uint32_t instruction, uint64_t from_ns, uint64_t to_ns,
                        ctl_execution_fn *fn, void *arg);
/* As above in the window, in any order; but of the store's tasks `wants` is asked first (store.h), and one
 * that memory knows is never asked for. */
int ctl_questions_skim (const ctl_places_t *places, uint64_t from_ns, uint64_t to_ns,
                        ctl_store_summary_fn *wants, ctl_execution_fn *fn, void *arg);
/* By a prefix of 4 to 32 lower-case digits. WEFT_E_MALFORMED, WEFT_E_NOT_FOUND;
 * WEFT_E_BUSY: at least *ret_count begin so. */
int ctl_questions_find (const ctl_places_t *places, const char *prefix, ctl_execution_t **ret_execution,
                        uint32_t *ret_count);

#endif
