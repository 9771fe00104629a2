/* SPDX-License-Identifier: Apache-2.0 */
/* session: what a sidecar does for one process once its probe is there, between
 * the bus, the shared memory and the process; the loop around it, which serves
 * all processes of a tree, is tree.h.
 *
 *   WORKING ──LEAVE, SIGTERM──▶ LEAVING ──probe has left──▶ CLOSING ──▶ DONE
 *      │                                                      ▲   all acknowledged,
 *      ├──process ended───────────────────────────────────────┘   or no time left (S4)
 *      └──exec: a new image, wait for its probe──▶ WORKING (same instance, new start)
 *
 *  S1  the last batch of an active time is on the socket before the ACK that
 *      says it is over, and before the BYE
 *  S2  no step waits; without a controller the session goes on
 *  S3  nothing is written into the process but its control page
 *  S4  what a process left when it ended is nowhere else, and nobody waits: it is kept for
 *      CAR_SESSION_GONE_MS, or until a signal; after a detach, and for the BYE alone,
 *      CAR_SESSION_CLOSE_MS must do */
#ifndef CAR_SESSION_H
#define CAR_SESSION_H

#include "../../common/keys.h"
#include "../shm/reader.h"
#include "bus.h"
#include "desk.h"
#include "live.h"
#include "target.h"

#define CAR_SESSION_TICK_MS       1500 /* idle: longer than from heartbeat to heartbeat, which wakes it too */
#define CAR_SESSION_IDLE_MS       500  /* whoever sleeps for so long holds nothing meanwhile */
#define CAR_SESSION_IMAGE_MS      1000 /* does it run another program? */
#define CAR_SESSION_ACK_MS        5000 /* an ACK at least so often: it carries the counters */
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
#define CAR_SESSION_LISTED_MS                                                                                \
  3000 /* after this long the caller is told even without an answer: a busy controller */
#define CAR_SESSION_PROBE_MS 30000 /* for a probe that is to come */

#define CAR_SESSION_EXEC_MS 5000 /* for that of a new image: it comes before main () */

typedef struct car_session_t car_session_t;

typedef struct {
  pid_t pid;
  int pidfd;               /* closed with the session; -1: the process has ended already */
  const char *service;     /* given by the user, or NULL; borrowed */
  const char *controller;  /* base address; borrowed */
  const weft_keys_t *keys; /* for it; NULL: none; borrowed */
  int launched;            /* by `run`: the process is young */
  /* In the same tree; NULL: none. Looked at by car_session_new alone. */
  const car_session_t *parent;
  int forked; /* from it, without exec: it is what its parent is */
  /* What the tree has once; borrowed; NULL: a session has its own. */
  car_desk_t *desk;
  car_live_t **shelf;
  /* Called once: the controller knows the instance (answered 1), or did not
   * answer within CAR_SESSION_LISTED_MS (0). May be NULL. */
  void (*listed) (void *arg, const car_target_t *target, int answered);
  void *listed_arg;
} car_session_options_t;

/* Takes over the pidfd, and a reader that this process has claimed for `instance`, also on failure. The
 * bus is borrowed. 0, or a status. */
int car_session_new (const car_session_options_t *options, car_bus_t *bus, shm_reader_t **reader_p,
                     const uint8_t instance[WEFT_UUID_SIZE], car_session_t **ret_self);
void car_session_destroy (car_session_t **self_p);

/* 1: what comes on this topic is for this one. */
int car_session_listens (const car_session_t *self, const char *topic);
/* What came in on such a topic. Takes the instructions out of a STATE. */
void car_session_take (car_session_t *self, weft_bus_message_t *message, const char *topic, uint64_t now);
/* The process has ended. */
void car_session_gone (car_session_t *self, uint64_t now);
/* The probe is to leave; `end`: because this sidecar was told to end, and a second time at once. */
void car_session_leave (car_session_t *self, uint64_t now);
void car_session_end (car_session_t *self, uint64_t now);
/* The connection for reports was lost. */
void car_session_interrupted (car_session_t *self, uint64_t now);
/* The process runs another image whose probe is this one; *next_p is taken over if it can be. */
int car_session_become (car_session_t *self, shm_reader_t **next_p, uint64_t now);
/* Does what is due, but for the ACK … */
void car_session_step (car_session_t *self, uint64_t now);
/* … which is said where one is owed: those of a tree one after the other, in one go. */
int car_session_owes (car_session_t *self, uint64_t now);
void car_session_answer (car_session_t *self, uint64_t now);
/* Milliseconds until the next step at the latest. */
int car_session_wait_ms (car_session_t *self, uint64_t now);
/* The next step is CAR_SESSION_IDLE_MS away or more. */
void car_session_rest (car_session_t *self);
/* 1: something waits for room on the bus. */
int car_session_blocked (const car_session_t *self);
/* 1: it is over; to be destroyed. */
int car_session_done (const car_session_t *self);
/* 1: its probe was told to leave, whatever became of that: it left, was lost, the process ended. */
int car_session_leaving (const car_session_t *self);
/* 1: `instance` is among the ancestors of this one. */
int car_session_descends (const car_session_t *self, const uint8_t instance[WEFT_UUID_SIZE]);
const uint8_t *car_session_instance (const car_session_t *self);
const car_session_options_t *car_session_options (const car_session_t *self);
shm_reader_t *car_session_reader (car_session_t *self);

#endif
