/* SPDX-License-Identifier: Apache-2.0 */
/* json: executions and instances for programs. An execution follows
 * common/execution.schema.json; its names are fixed. Bytes that are no UTF-8
 * become U+FFFD. Functions that return json_t: a new reference, NULL when out of memory. */
#ifndef CTL_JSON_H
#define CTL_JSON_H

#include <jansson.h>
#include <stdio.h>

#include "../task/instances.h"
#include "../task/task.h"

json_t *ctl_json_execution (const ctl_execution_t *execution);
json_t *ctl_json_instance (const ctl_instance_t *instance);
/* The bytes that are not understood, by protocol: an object of those that there are. */
json_t *ctl_json_rest (const ctl_instance_t *instance);
/* The reverse, for a client of the control socket: strings are borrowed from `json`. WEFT_E_MALFORMED. */
int ctl_json_to_instance (const json_t *json, ctl_instance_t *ret_instance);
/* A string that jansson accepts, whatever `text` holds. */
json_t *ctl_json_text (const char *text);
/* One object, one line. Takes the reference. WEFT_E_IO, WEFT_E_NOMEM (json NULL). */
int ctl_json_line (FILE *out, json_t *json);

#endif
