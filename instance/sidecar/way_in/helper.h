/* SPDX-License-Identifier: Apache-2.0 */
/* helper: the injector's side of the talk with the thread that it had started in
 * a process (stub.h): hands over the library, hears how its start went.
 *
 *   injector                       new thread
 *      │          ASKING, fd            │  a memfd
 *      │◀───────────────────────────────│
 *      │  writes the library into it    │
 *      │  READY, path                   │
 *      │───────────────────────────────▶│  dlopen, start entry
 *      │          DONE, result, error   │
 *      │◀───────────────────────────────│
 *      │  FREE                          │
 *      │───────────────────────────────▶│  unmaps the stub, ends */
#ifndef CAR_HELPER_H
#define CAR_HELPER_H

#include <sys/types.h>

#include "library.h"
#include "stub.h"

#define CAR_HELPER_MEMORY   "libweft_probe.so" /* name of the memfd */
#define CAR_HELPER_WAIT_MS  3000  /* for each step: the loader's lock may be held, the machine busy */
#define CAR_HELPER_PAUSE_US 200   /* of the new thread between two looks */
#define CAR_HELPER_PATIENCE 16000 /* such pauses: it outlives each of our steps and ends by itself */

/* data: where the data page is there; loaded: probe libraries that it has mapped. 0, or a status with "reason; remedy" in why. */
int car_helper_talk (pid_t pid, int pidfd, uint64_t data, const car_library_t *library, unsigned loaded,
                     char *why, size_t why_size);

#endif
