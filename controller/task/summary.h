/* SPDX-License-Identifier: Apache-2.0 */
/* summary: what is counted of an execution, without its subtasks. As bytes it is
 * an entry of fixed size: the store keeps thousands of them in one row, and their
 * ids in another column, so that a million tasks are counted without being read.
 *
 *   0   start_ns  8 duration_ns                               8 bytes each, little endian
 *  16   instruction  20 name  24 service  28 origin           4 bytes each; texts by their number
 *  32   hops, in the order of ctl_hop_t [5]                   4 bytes each
 *  52   truncated                                             4 bytes
 *  56   kind  57 complete  58 reason  59 error                1 byte each
 *  60   flags (the store's)                                   4 bytes
 *  64   end */
#ifndef CTL_SUMMARY_H
#define CTL_SUMMARY_H

#include "names.h"
#include "task.h"

#define CTL_SUMMARY_SIZE  64u
#define CTL_SUMMARY_FLAGS 60u /* where they are */
_Static_assert(CTL_HOP_COUNT == 5, "a hop more is an entry of another size: a schema more");

typedef struct {
  uint8_t task[WEFT_TASK_ID_SIZE];
  uint64_t start_ns, duration_ns;
  uint32_t instruction;
  const char *name, *service, *origin; /* service of the top; borrowed, never NULL */
  uint32_t hops[CTL_HOP_COUNT];
  uint32_t truncated;
  uint8_t kind; /* ctl_kind_t */
  uint8_t complete, reason;
  uint8_t error; /* as ctl_execution_failed */
} ctl_summary_t;

/* Borrows the execution's texts. */
void ctl_summary_of (const ctl_execution_t *execution, ctl_summary_t *ret_summary);
/* Texts become numbers of `names`, by way of `lately`, which may be NULL; flags are 0. WEFT_E_NOMEM. */
int ctl_summary_put (const ctl_summary_t *self, ctl_names_t *names, ctl_names_lately_t *lately,
                     uint8_t out[CTL_SUMMARY_SIZE]);
/* Any bytes give a summary; what is out of its range is brought back into it. */
void ctl_summary_get (const uint8_t task[WEFT_TASK_ID_SIZE], const uint8_t in[CTL_SUMMARY_SIZE],
                      const ctl_names_t *names, ctl_summary_t *ret_self);

#endif
