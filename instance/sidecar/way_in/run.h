/* SPDX-License-Identifier: Apache-2.0 */
/* run: `weft-instance run -- COMMAND…`. The command keeps this very process:
 * its pid, terminal, signals and exit code are the application's own. */
#ifndef CAR_RUN_H
#define CAR_RUN_H

#include <stddef.h>

#include "../../../common/keys.h"

#define CAR_RUN_NOT_FOUND 127 /* exit codes as of a shell */
#define CAR_RUN_CANNOT    126

/* Returns only on failure, with the exit code; one line was logged. */
int car_run (const char *service, const char *controller, const weft_keys_t *keys, char **command);

/* 0: a dynamically linked 64-bit glibc program without set-user-id, or a
 * script. Else the exit code, reason and remedy in why. */
int car_run_check (const char *path, char *why, size_t why_size);
/* Finds `name` as execvp would. 0 or the exit code. */
int car_run_find (const char *name, const char *search, char *out, size_t size);

#endif
