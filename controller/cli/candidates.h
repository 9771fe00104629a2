/* SPDX-License-Identifier: Apache-2.0 */
/* candidates: the process VMs of this host, joined or not, and whether they
 * could be joined, as weft-instance sees them. */
#ifndef CTL_CANDIDATES_H
#define CTL_CANDIDATES_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "../view/style.h"

/* An array of what `weft-instance identify` prints, by pid. A status: said on stderr. */
int ctl_candidates_read (json_t **ret_list);
int ctl_candidate_joinable (const json_t *one); /* or joined already */
int64_t ctl_candidate_pid (const json_t *one);
/* The table that `weft profile` prints where it has nothing to do. */
void ctl_candidates_print (FILE *out, const ctl_style_t *style, const json_t *list);

#endif
