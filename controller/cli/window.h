/* SPDX-License-Identifier: Apache-2.0 */
/* window: one profile window against a controller: who is in it, its
 * instructions, when it was open, and what its answer is.
 *
 *   open    capture, acknowledged: from here on every VM knows which request it works on;
 *           what it was at before may end (WEFT_WINDOW_SETTLE_MS); then embed, then root:
 *           nothing begins before everyone who has to see it does
 *   wait    until the time is over or the user has enough
 *   close   root ends; what has begun may answer (WEFT_WINDOW_GRACE_MS at least,
 *           WEFT_WINDOW_WAIT_MS at most); embed and capture end: the last reports
 *           precede these acknowledgements
 *
 *  W1  the answer is there within a second of the end of the time; before it says that nothing was, it
 *      hears everybody, which may take WEFT_ACK_WAIT_MS more
 *  W2  the instructions end by themselves if this process does not live to end them */
#ifndef CTL_WINDOW_H
#define CTL_WINDOW_H

#include <jansson.h>
#include <stdint.h>

#include "../task/analyse.h"
#include "client.h"
#include "orders.h"
#include "roster.h"

typedef enum { CTL_PHASE_CAPTURE, CTL_PHASE_EMBED, CTL_PHASE_ROOT, CTL_PHASE_COUNT } ctl_phase_t;

typedef struct {
  ctl_orders_t orders;
  uint32_t number[CTL_ORDERS_MAX];
  uint32_t sent;
  uint32_t expected; /* instances that any of them holds for, at the opening */
} ctl_window_phase_t;

typedef struct {
  ctl_client_t *client;
  const ctl_orders_t *orders;
  uint64_t for_ms;
  int progress; /* on a terminal */

  ctl_window_phase_t phase[CTL_PHASE_COUNT];
  uint64_t from_ns, to_ns; /* wall clock */
  uint64_t opened_ns;      /* CLOCK_MONOTONIC: those of `before` were asked for */
  uint64_t closed_ns;      /* CLOCK_MONOTONIC of to_ns */
  ctl_roster_t before;     /* who was there, or had been just before */
  ctl_roster_t after;      /* who is there, or was in the meantime */
} ctl_window_t;

/* SIGINT, SIGTERM, SIGHUP from here on: the first ends the window, the second everything. */
void ctl_window_signals (void);
extern volatile int ctl_window_enough, ctl_window_at_once;

/* Client, orders, for_ms and progress are set. *ret_counts of all instructions taken together. Statuses
 * are said on stderr; whatever was sent is stopped by close. */
int ctl_window_open (ctl_window_t *self, ctl_standing_counts_t *ret_counts);
void ctl_window_wait (ctl_window_t *self);
int ctl_window_close (ctl_window_t *self);
/* Whoever could not acknowledge the end in time has a little more of it; `after` is read anew. */
int ctl_window_late (ctl_window_t *self);
/* The tasks that root started, and the orphans and losses of its time. */
int ctl_window_analysis (ctl_window_t *self, ctl_analysis_t **ret_analysis, json_t **ret_json);
/* The instances as they were used: the traffic is that of the window. Changes `after`. */
void ctl_window_traffic (ctl_window_t *self);
void ctl_window_clear (ctl_window_t *self);

#endif
