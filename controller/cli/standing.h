/* SPDX-License-Identifier: Apache-2.0 */
/* standing: the instructions that are in force, for people. */
#ifndef CTL_CLI_STANDING_H
#define CTL_CLI_STANDING_H

#include <stdio.h>

#include "../view/style.h"
#include "client.h"

/* A table of them, after an empty line; nothing if there are none. 0 or a status that was said. */
int ctl_standing_list (FILE *out, const ctl_style_t *style, ctl_client_t *client);
/* "instructions 3, 4 still stand; …" on `out`, if any do. */
void ctl_standing_remind (FILE *out, ctl_client_t *client);

#endif
