/* SPDX-License-Identifier: Apache-2.0 */
/* audit: who did what to which process, when. One line of JSON in audit.log
 * beside the store for every attach, instruction, stop, detach and release of a claim:
 *
 *   {"time":"2026-11-29T14:02:11.482Z","event":"attach","who":"uid 1000 pid 4400","pid":4188,
 *    "instance":"…","service":"orders","vm":"jvm","host":"box1","result":"ok"}
 *   {"time":…,"event":"instruct","who":"key ops","instruction":7,"actions":[…],"selectors":[…],
 *    "match":"POST /checkout","result":"ok"}
 *   {"time":…,"event":"release","who":"uid 1000 pid 4431","pid":4188,"instance":"…","service":"orders",
 *    "reason":"claim 3 ended at its time","result":"ok"}
 *
 *  A1  a line is one write to a file opened for appending, 0600, no symbolic link
 *  A2  whatever a name holds, a line is ASCII and one object: JSON escapes the rest
 *  A3  beyond WEFT_AUDIT_FILE_MAX the file is renamed, the oldest of WEFT_AUDIT_FILES_MAX goes
 *  A4  what could not be written is counted; nothing else stops for it
 * One thread. */
#ifndef CTL_AUDIT_H
#define CTL_AUDIT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "../../common/wire.h"
#include "../task/instances.h"

typedef struct ctl_audit_t ctl_audit_t;

/* For the store of that path: audit.log in the same directory. WEFT_E_NOMEM, WEFT_E_RANGE, WEFT_E_IO with why. */
int ctl_audit_open (const char *store_path, ctl_audit_t **ret_self, char *why, size_t why_size);
void ctl_audit_close (ctl_audit_t **self_p);
/* Lines that could not be written so far. */
uint64_t ctl_audit_lost (const ctl_audit_t *self);

/* All of these: self NULL writes nothing; who NULL: not known. */
/* A HELLO of an instance, or of a start of it, that was not known. */
void ctl_audit_attach (ctl_audit_t *self, const char *who, const weft_up_message_t *hello);
/* A BYE of an instance that was there. */
void ctl_audit_left (ctl_audit_t *self, const char *who, const weft_up_message_t *bye,
                     const ctl_instance_t *instance);
/* An instance that was joined for a claim is told to leave, because of what became of `who`'s claim. */
void ctl_audit_release (ctl_audit_t *self, const char *who, const ctl_instance_t *instance,
                        const char *reason);
/* A request of a client and its answer; of those that change nothing no line is written. */
void ctl_audit_request (ctl_audit_t *self, const char *who, const json_t *request, const json_t *answer);

#endif
