/* SPDX-License-Identifier: Apache-2.0 */
/* pack_old: executions as version 1 packed them, each alone: rows of a store of
 * schema 1 to 3 hold them. Read, and no longer written.
 *
 *   execution = [ version, task, truncated, hosts, origin, text, subtasks
 *                 , aligned, uncertainty, host or 0: of several ]
 *   text      = [ str … ]                    origin, service, vm, name are places in it
 *   subtasks  = [ subtask … ]
 *   subtask   = [ id, request, caller, hop, error, answered, inside, status, orphan, instruction,
 *                 instance, pid, service, vm, name, start, end - start, cpu or nil, sent, answered - sent
 *                 (of an opaque leaf alone) , calls, bytes out, bytes in, wait
 *                 (of others, where it is not 0 or what follows is there) , alone
 *                 (of several hosts) , host, sender's host, shift, sender's shift ]
 *   shift     = twice the amount, one less where it is negative
 *
 * All of it is msgpack. What stands behind the fields that are known is skipped. */
#ifndef CTL_PACK_OLD_H
#define CTL_PACK_OLD_H

#include "task.h"

/* WEFT_E_MALFORMED, WEFT_E_VERSION (of a newer one), WEFT_E_NOMEM. */
int ctl_pack_old_read (const void *data, size_t size, ctl_execution_t **ret_execution);

#endif
