/* SPDX-License-Identifier: Apache-2.0 */
/* ranking: the order of task names in a list: `tasks --sort`, `top --sort`. */
#ifndef CTL_RANKING_H
#define CTL_RANKING_H

#include <jansson.h>

#include "verbs.h"

typedef enum {
  CTL_RANK_COUNT,
  CTL_RANK_TOTAL,
  CTL_RANK_P50,
  CTL_RANK_P99,
  CTL_RANK_ERRORS,
  CTL_RANK_KEYS
} ctl_rank_t;

/* What --sort says, `absent` without it. WEFT_E_USAGE: said on stderr. */
int ctl_ranking_read (const ctl_call_t *call, ctl_rank_t absent, ctl_rank_t *ret_rank);
/* Puts the names of an analysis (as JSON) into that order, the largest first, and drops those beyond `limit`.
 * What is equal stays as it stood. WEFT_E_NOMEM. */
int ctl_ranking_apply (json_t *analysis, ctl_rank_t rank, uint32_t limit);

#endif
