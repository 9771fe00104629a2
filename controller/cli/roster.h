/* SPDX-License-Identifier: Apache-2.0 */
/* roster: the instances as the controller tells of them, in the form that the
 * views read. */
#ifndef CTL_ROSTER_H
#define CTL_ROSTER_H

#include <jansson.h>

#include "../task/instances.h"
#include "client.h"

/* Owns what it points to; the instances' strings live in `list`. */
typedef struct {
  json_t *list;
  ctl_instance_t *instances;
  uint32_t count;
} ctl_roster_t;

/* Asks for all (`which` NULL), or for those that `which` (taken) lets through, as service/requests.h has it:
 * a controller remembers many that have left. A status: said on stderr. */
int ctl_roster_read (ctl_client_t *client, json_t *which, ctl_roster_t *ret_roster);
/* The list of pids in words: what ctl_roster_pid may be asked for then. NULL: out of memory. */
json_t *ctl_roster_of_pids (char *const *words, int count);
void ctl_roster_clear (ctl_roster_t *roster);
/* The present or silent instance that is process `pid` of this host, else NULL. */
const ctl_instance_t *ctl_roster_pid (const ctl_roster_t *roster, int64_t pid);
const ctl_instance_t *ctl_roster_uuid (const ctl_roster_t *roster, const uint8_t uuid[WEFT_UUID_SIZE]);

#endif
