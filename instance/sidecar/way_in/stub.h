/* SPDX-License-Identifier: Apache-2.0 */
/* stub: two pages that are put into a process: position-independent code, and
 * the data it works on.
 *
 *   page 0  code   entry ─ the stopped thread: pthread_create (starter), then waits a
 *                          little to be given its registers back; takes them back
 *                          itself (rt_sigreturn) where nobody does
 *                  starter ─ the new thread: makes a memfd, waits for the library in
 *                          it, dlopens it, calls its start, says so, unmaps both pages
 *   page 1  data   stub_data_t
 *
 *  B1  at every instruction the injector may die: the stopped thread goes on as
 *      before, the new one ends within `patience`
 *  B2  the new thread has every signal blocked and is detached
 *  B3  the pages are unmapped only when the stopped thread is known to be out
 *      of them; a page that is left behind runs nothing and is never run again */
#ifndef CAR_STUB_H
#define CAR_STUB_H

#include <stddef.h>
#include <stdint.h>

#define CAR_STUB_PAGE 4096

/* stub_data_t.hijacked, by the stopped thread */
enum { CAR_STUB_ABSENT, CAR_STUB_CREATED, CAR_STUB_GOING };
/* stub_data_t.state: odd ones by the new thread, the others by the injector */
enum {
  CAR_STUB_WAITING = 0,
  CAR_STUB_STARTED = 1, /* fd is being made */
  CAR_STUB_READY = 2,   /* the library is in fd, its name in path */
  CAR_STUB_ASKING = 3,  /* fd is there, or negative */
  CAR_STUB_FREE = 4,    /* the result was read: end */
  CAR_STUB_DONE = 5,    /* result, error */
  CAR_STUB_CANCELLED = 6
};

/* Offsets stand in the code as well. */
typedef struct {
  uint32_t hijacked;
  int32_t created; /* what pthread_create returned */
  uint32_t state;
  int32_t fd;
  int32_t result;    /* of the start entry */
  uint32_t out;      /* 1: the stopped thread is out (B3) */
  uint32_t patience; /* pauses that the new thread waits for the injector */
  uint32_t reserved;
  uint64_t pause[2]; /* a timespec */
  uint64_t all_signals;
  uint64_t pthread_create, pthread_detach, dlopen, dlsym, dlerror; /* addresses there */
  uint64_t entry;                                                  /* not 0: already mapped, only start it */
  uint64_t error;                                                  /* text of dlerror, or 0 */
  uint64_t leave;  /* a `syscall; ret` outside of these pages */
  uint64_t thread; /* pthread_t of the new one */
  char symbol[32], memory_name[32], path[64];
} car_stub_data_t;

extern const uint8_t car_stub_code[];
extern const uint8_t car_stub_code_end[];
extern const uint8_t car_stub_entry[];

#define CAR_STUB_NOT_LOADED (-1000) /* result: dlopen or dlsym failed */

#endif
