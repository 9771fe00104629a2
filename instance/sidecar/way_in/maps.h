/* SPDX-License-Identifier: Apache-2.0 */
/* maps: the memory of a process as /proc/PID/maps lists it, and what the
 * injector must know of each range: is it libc, the dynamic loader, an
 * allocator, a stack. */
#ifndef CAR_MAPS_H
#define CAR_MAPS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CAR_MAPS_MAX     65536 /* ranges; the kernel's default for a process is 65,530 */
#define CAR_MAP_NAME_MAX 256   /* bytes of a path that are kept: the end of it */

typedef enum {
  CAR_MAP_OTHER,
  CAR_MAP_LIBC,      /* libc, and what was split from it before glibc 2.34 */
  CAR_MAP_LOADER,    /* ld.so */
  CAR_MAP_ALLOCATOR, /* replaces malloc */
  CAR_MAP_STACK,     /* of the first thread */
  CAR_MAP_PROBE      /* a probe, of whatever release */
} car_map_kind_t;

enum { CAR_MAP_R = 1, CAR_MAP_W = 2, CAR_MAP_X = 4 };

typedef struct {
  uint64_t from, to, offset, inode;
  uint8_t kind, access; /* car_map_kind_t; CAR_MAP_R | … */
  uint8_t file;         /* 1: a name that begins with / */
  uint8_t first;        /* 1: the first range of a mapped file: its headers */
  char name[CAR_MAP_NAME_MAX];
} car_map_t;

typedef struct {
  car_map_t *map; /* ascending */
  size_t count;
} car_maps_t;

/* Reads the maps of `pid`; free with car_maps_clear. 0, WEFT_E_IO, WEFT_E_NOMEM, WEFT_E_RANGE. */
int car_maps_read (pid_t pid, car_maps_t *ret_maps);
/* The same from text (tests). */
int car_maps_parse (const char *text, size_t size, car_maps_t *ret_maps);
void car_maps_clear (car_maps_t *self);

/* The range that holds `address`, or NULL. */
const car_map_t *car_maps_at (const car_maps_t *self, uint64_t address);
/* The next first range of an object of `kind` behind `after` (NULL: from the start), or NULL. */
const car_map_t *car_maps_next (const car_maps_t *self, car_map_kind_t kind, const car_map_t *after);
/* Marks every range of the object that begins with `first`. */
void car_maps_mark (car_maps_t *self, const car_map_t *first, car_map_kind_t kind);
/* Name without directories. Never NULL. */
const char *car_map_base_name (const car_map_t *map);

#endif
