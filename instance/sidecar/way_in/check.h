/* SPDX-License-Identifier: Apache-2.0 */
/* check: can this process be joined while it runs, by which way in, and if
 * not, why not and what helps. Nothing is sent to the process. */
#ifndef CAR_CHECK_H
#define CAR_CHECK_H

#include <stddef.h>

#include "../target.h"

#define CAR_WHY_MAX 400 /* bytes of one explanation */

typedef enum {
  CAR_WAY_NONE,
  CAR_WAY_ADOPT,   /* a probe without a sidecar is in there */
  CAR_WAY_JOINED,  /* a sidecar works for it already */
  CAR_WAY_HOTSPOT, /* attach protocol */
  CAR_WAY_PTRACE   /* a thread of it is made to load the probe */
} car_way_t;

typedef struct {
  car_way_t way;
  char name[48];                    /* for people: "attach protocol" */
  char why[CAR_WHY_MAX];            /* CAR_WAY_NONE: "reason; remedy" */
  uint8_t instance[WEFT_UUID_SIZE]; /* CAR_WAY_JOINED */
  char service[WEFT_SERVICE_MAX];   /* CAR_WAY_JOINED: given by a user, "": none */
  int leaving;                      /* CAR_WAY_JOINED: its sidecar is about to end */
} car_check_t;

/* any: also what is no known VM, if it can be joined by ptrace. */
void car_check (const car_target_t *target, int any, car_check_t *ret_check);
/* The whole line for a person: "cannot join 4377 (HotSpot 25.0.3): …". */
void car_check_line (const car_target_t *target, const char *why, char *out, size_t size);

#endif
