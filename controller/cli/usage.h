/* SPDX-License-Identifier: Apache-2.0 */
/* usage: the texts that are made from the table of verbs: help, bash completion
 * and man page. */
#ifndef CTL_USAGE_H
#define CTL_USAGE_H

#include <stdio.h>

#include "verbs.h"

void ctl_usage (FILE *out);                              /* weft --help */
void ctl_usage_verb (FILE *out, const ctl_verb_t *verb); /* weft VERB --help */
void ctl_usage_completion (FILE *out);                   /* weft --completion */
void ctl_usage_man (FILE *out);                          /* weft --man */

#endif
