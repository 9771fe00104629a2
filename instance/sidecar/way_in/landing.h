/* SPDX-License-Identifier: Apache-2.0 */
/* landing: where in a process the injector's stub can land: the functions of its
 * libc, two instructions in it, the objects that stand in for malloc, a probe
 * that is mapped already. Read from its memory, nothing is changed. */
#ifndef CAR_LANDING_H
#define CAR_LANDING_H

#include "elf.h"
#include "library.h"
#include "maps.h"

typedef struct {
  pid_t pid;
  car_maps_t maps;
  uint64_t pthread_create, pthread_detach, dlopen, dlsym, dlerror;
  uint64_t leave;    /* `syscall; ret` */
  uint64_t restorer; /* `mov $15, %rax; syscall`: where handlers of libc return to */
  int allocators;    /* 1: objects that define malloc are marked in maps */
} car_landing_t;

/* 0, or a status with "reason; remedy" in why. Free with car_landing_clear. */
int car_landing_read (pid_t pid, car_landing_t *ret_landing, char *why, size_t why_size);
void car_landing_clear (car_landing_t *self);
/* Reads the maps again: they change. On failure they stay as they were. */
int car_landing_look_again (car_landing_t *self);
/* Marks the objects that replace malloc; they stay marked. */
void car_landing_mark_allocators (car_landing_t *self);
/* Probe libraries that are mapped. */
unsigned car_landing_probes (const car_landing_t *self);
/* 1: a stub of somebody else is at work in the process: its thread brings a probe
 * in. One that has not begun yet never will. */
int car_landing_occupied (const car_landing_t *self);
/* Start entry of a mapped probe of the same build; 0: there is none. */
uint64_t car_landing_probe (const car_landing_t *self, const car_library_t *library);

#endif
