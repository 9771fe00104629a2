/* SPDX-License-Identifier: Apache-2.0 */
/* config: from the control page, which may hold anything, to the configuration
 * that the hooks read (state.h): within bounds, never torn. The parked thread's. */
#ifndef PROBE_CONFIG_H
#define PROBE_CONFIG_H

#include "state.h"

/* Reads the page. 1: something new; 0: nothing new; negative: it never stood still. */
int probe_config_read (const shm_control_t *control);
/* What was read last, with these actions in force, becomes what the hooks see. */
void probe_config_publish (uint32_t actions);
/* Of what was read last: WEFT_ACTION_* that it asks for, and its config_seq. */
uint32_t probe_config_actions (void);
uint32_t probe_config_seq (void);
/* Another memory: nothing of it was read yet. */
void probe_config_forget (void);
/* The same in a forked child, whose tasks are counted anew. */
void probe_config_born (void);

#endif
