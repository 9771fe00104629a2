/* SPDX-License-Identifier: Apache-2.0 */
/* lookups: the requests of requests.h that look at executions. Each takes the
 * request and fills a reply whose body is {"ok": true} already. */
#ifndef CTL_LOOKUPS_H
#define CTL_LOOKUPS_H

#include "requests.h"

int ctl_lookup_waiting (ctl_house_t *house, const json_t *request, ctl_reply_t *reply);
int ctl_lookup_tasks (ctl_house_t *house, const json_t *request, ctl_reply_t *reply);
int ctl_lookup_each (ctl_house_t *house, const json_t *request, ctl_reply_t *reply);
int ctl_lookup_show (ctl_house_t *house, const json_t *request, ctl_reply_t *reply);

#endif
