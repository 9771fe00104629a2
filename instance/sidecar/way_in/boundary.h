/* SPDX-License-Identifier: Apache-2.0 */
/* boundary: where in a process the probe would stand: the slots through which
 * its objects call libc for sockets; and what would pass it by. Read from the
 * memory of the process, nothing is changed. */
#ifndef CAR_BOUNDARY_H
#define CAR_BOUNDARY_H

#include <sys/types.h>

#define CAR_BOUNDARY_OBJECTS_MAX 512 /* objects with slots that are named */
#define CAR_BOUNDARY_NAME_MAX    64

typedef struct {
  unsigned slots, objects; /* in all; objects that have some */
  struct {
    char name[CAR_BOUNDARY_NAME_MAX];
    unsigned slots;
  } object[CAR_BOUNDARY_OBJECTS_MAX];
  char tls[CAR_BOUNDARY_NAME_MAX]; /* a TLS library, or an object with one linked in; "": none seen */
  int tls_inside;                  /* linked into that object: not a library of its own */
  int uring;                       /* an io_uring is open */
  unsigned probes;                 /* probe libraries that are mapped */
  unsigned foreign;                /* objects that could not be read */
} car_boundary_t;

/* 0; WEFT_E_IO, WEFT_E_DENIED: its memory cannot be read. */
int car_boundary_read (pid_t pid, car_boundary_t *ret_boundary);
/* 1: a name whose slots the probe writes. */
int car_boundary_has (const char *name);
/* All of them, NULL behind the last. */
extern const char *const car_boundary_names[];

#endif
