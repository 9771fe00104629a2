/* SPDX-License-Identifier: Apache-2.0 */
/* attach: `weft-instance attach PID…`. One sidecar in the background for every
 * process; the foreground waits until each has joined or failed, prints that
 * and returns. */
#ifndef CAR_ATTACH_H
#define CAR_ATTACH_H

#include <stdio.h>
#include <sys/types.h>

#include "../../../common/keys.h"

#define CAR_ATTACH_PIDS_MAX   256
#define CAR_ATTACH_WAIT_MS    20000 /* for one sidecar: twice the attach protocol, the probe, the controller */
#define CAR_ATTACH_LEAVING_MS 5000  /* for a sidecar that is about to end */
#define CAR_ATTACH_SAY_MS     500   /* then whoever waits at a terminal is told so … */
#define CAR_ATTACH_STEP_MS    100   /* … so often */
#define CAR_ATTACH_PROBE_MS   3000  /* between "loaded" and the probe's memory */

typedef struct {
  const char *service, *controller;
  const weft_keys_t *keys; /* for the controller; NULL: none */
  int json, any;           /* any: also what is no known VM */
  FILE *out;               /* where joined processes are printed */
} car_attach_options_t;

/* Returns the number of processes that were not joined; one line each was
 * logged. One that is joined already is no failure. */
unsigned car_attach (const car_attach_options_t *options, const pid_t *pids, unsigned count);

#endif
