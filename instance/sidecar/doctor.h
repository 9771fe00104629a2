/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: `weft-instance doctor [PID…]`: a rehearsal. Everything that joining a
 * process would depend on, looked at and said, and nothing done. */
#ifndef CAR_DOCTOR_H
#define CAR_DOCTOR_H

#include <stdio.h>
#include <sys/types.h>

typedef struct {
  FILE *out;
  int json, any; /* any: judge as `attach --any` would */
} car_doctor_t;

/* 0: it can be joined, or is; WEFT_E_UNSUPPORTED: it cannot; WEFT_E_NOT_FOUND: no
 * such process, nothing printed. */
int car_doctor (const car_doctor_t *options, pid_t pid);
/* This host and every process VM on it. 0: each of them can be joined. */
int car_doctor_all (const car_doctor_t *options);

#endif
