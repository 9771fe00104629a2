/* SPDX-License-Identifier: Apache-2.0 */
/* replayer: sends a plan (replay_plan.h) to a controller, several times at once
 * if wanted, and sees to it that every batch is acknowledged.
 *
 *  E1  at most WEFT_REPLAY_WINDOW batches wait for their acknowledgement; what is
 *      not acknowledged in time is sent again, as a sidecar does
 *  E2  done means: each batch of each repeat is in the controller's journal
 * One thread. */
#ifndef CTL_REPLAYER_H
#define CTL_REPLAYER_H

#include "../service/replay_plan.h"
#include "progress.h"

typedef struct {
  const char *address;
  double speed; /* times the recorded pace; 0: as fast as it is taken */
  uint32_t repeat;
  uint64_t seed;            /* of the repeats' ids */
  const volatile int *stop; /* not 0: end now */
  ctl_progress_t *progress; /* NULL: nobody looks */
} ctl_replay_options_t;

typedef struct {
  uint64_t batches, reports, sent_again; /* each batch of each repeat once */
  double seconds;                        /* from the first frame to the last acknowledgement */
  int whole;                             /* everything was sent and acknowledged */
} ctl_replay_result_t;

/* WEFT_E_FULL: more instances than a controller takes; WEFT_E_TIMEOUT: it acknowledges nothing; WEFT_E_IO,
 * with `why`. *ret_result is filled in any case. */
int ctl_replay_run (const ctl_plan_t *plan, const ctl_replay_options_t *options,
                    ctl_replay_result_t *ret_result, char *why, size_t why_size);

#endif
