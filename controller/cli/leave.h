/* SPDX-License-Identifier: Apache-2.0 */
/* leave: instances restore their VMs, and say whether these are as before. */
#ifndef CTL_LEAVE_H
#define CTL_LEAVE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "client.h"

typedef struct {
  uint32_t asked, left;
  uint32_t kept;                                                       /* somebody else needs them */
  uint32_t slots_written, slots_restored, slots_foreign, threads_left; /* sums */
} ctl_leave_t;

/* Tells the instances with these uuids (an array; borrowed) to leave, and waits until they have, at
 * most WEFT_LEAVE_WAIT_MS or until *stop (may be NULL) is not 0. Who has not left in time is said on stderr. */
int ctl_leave (ctl_client_t *client, const json_t *uuids, const volatile int *stop, ctl_leave_t *ret_leave);
/* The instances of `uuids` are needed for so long; those in `joined` go when nobody needs them any more.
 * WEFT_E_BUSY: one is leaving, join it again. */
int ctl_leave_claim (ctl_client_t *client, const json_t *uuids, const json_t *joined, uint64_t for_ms,
                     uint32_t *ret_claim);
/* The claim (0: there is none) ends; waits for those that leave with it, as ctl_leave. Those in `joined` that
 * it did not hold, or not any more, go as soon as nobody needs them, too. */
int ctl_leave_release (ctl_client_t *client, uint32_t claim, const json_t *joined, const volatile int *stop,
                       ctl_leave_t *ret_leave);
/* 1: all left, every slot as before, no thread. */
int ctl_leave_verified (const ctl_leave_t *leave);
/* "left 3 VMs, verified: 57 of 57 call slots as before, no thread of ours" */
void ctl_leave_print (FILE *out, const ctl_leave_t *leave);

#endif
