/* SPDX-License-Identifier: Apache-2.0 */
/* session: the life of a sidecar once its probe is there: one loop over the
 * bus, the shared memory and the process.
 *
 *   WORKING ──LEAVE, SIGTERM──▶ LEAVING ──probe has left──▶ CLOSING ──▶ DONE
 *      │                                                      ▲   all acknowledged,
 *      ├──process ended───────────────────────────────────────┘   or no time left (S4)
 *      └──exec: a new image, wait for its probe──▶ WORKING (same instance, new start)
 *
 *  S1  the last batch of an active time is on the socket before the ACK that
 *      says it is over, and before the BYE
 *  S2  every wait is bounded; without a controller the loop goes on
 *  S3  nothing is written into the process but its control page
 *  S4  what a process left when it ended is nowhere else, and nobody waits: it is kept for
 *      CAR_SESSION_GONE_MS, or until a signal; after a detach, and for the BYE alone,
 *      CAR_SESSION_CLOSE_MS must do */
#ifndef CAR_SESSION_H
#define CAR_SESSION_H

#include "../../common/keys.h"
#include "../shm/reader.h"
#include "target.h"

#define CAR_SESSION_TICK_MS       1000  /* idle: one wake-up for this, one for the heartbeat */
#define CAR_SESSION_ACK_MS        5000  /* an ACK at least so often: it carries the counters */
#define CAR_SESSION_LOOK_MS       10000 /* ports and names are looked at again */
#define CAR_SESSION_YOUNG_MS      5000  /* launchers exec and VMs open ports now: look every … */
#define CAR_SESSION_YOUNG_TICK_MS 50
#define CAR_SESSION_LEAVE_MS      2000  /* for the probe to leave */
#define CAR_SESSION_CLOSE_MS      2000  /* for the controller to acknowledge the rest */
#define CAR_SESSION_GONE_MS       30000 /* the same, of a process that has ended */
#define CAR_SESSION_GONE_TICK_MS  50
#define CAR_SESSION_FIRST_MS                                                                                 \
  4 /* before the very first HELLO is said again: its answer may have come too early */
#define CAR_SESSION_HELLO_MS     30 /* before an unanswered one is said again, then doubled … */
#define CAR_SESSION_HELLO_MAX_MS 1000
#define CAR_SESSION_LISTED_MS    1000  /* after this long the caller is told even without an answer */
#define CAR_SESSION_PROBE_MS     30000 /* for a probe that is to come */

#define CAR_SESSION_EXEC_MS 5000 /* for that of a new image: it comes before main () */

typedef struct {
  pid_t pid;
  int pidfd;               /* borrowed */
  const char *service;     /* given by the user, or NULL */
  const char *controller;  /* base address */
  const weft_keys_t *keys; /* for it; NULL: none */
  int launched;            /* by `run`: the process is young */
  /* Called once: the controller knows the instance (answered 1), or did not
   * answer within CAR_SESSION_LISTED_MS (0). May be NULL. */
  void (*listed) (void *arg, const car_target_t *target, int answered);
  void *listed_arg;
} car_session_options_t;

/* Runs until the probe has left or the process has ended. Takes over a reader
 * that this process has claimed for `instance`. All signals are to be blocked.
 * 0, or a status with the reason in why. */
int car_session_run (const car_session_options_t *options, shm_reader_t **reader_p,
                     const uint8_t instance[WEFT_UUID_SIZE], char *why, size_t why_size);

#endif
