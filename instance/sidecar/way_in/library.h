/* SPDX-License-Identifier: Apache-2.0 */
/* library: the probe's file, as it is brought into a process that cannot see
 * it: its loaded part, its identity, and where its start entry is. */
#ifndef CAR_LIBRARY_H
#define CAR_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include "elf.h"

#define CAR_LIBRARY_MAX   (16u << 20) /* bytes of the file */
#define CAR_LIBRARY_ENTRY "probe_start"

typedef struct {
  uint8_t *bytes;
  size_t size;                        /* of the file */
  size_t loaded;                      /* bytes that a loader needs */
  uint8_t build_id[CAR_ELF_BUILD_ID]; /* equal ids are equal code */
  uint64_t entry;                     /* of the start entry, from where it is mapped */
} car_library_t;

/* 0, or a status with "reason; remedy" in why. Free with car_library_clear. */
int car_library_read (const char *path, car_library_t *ret_library, char *why, size_t why_size);
void car_library_clear (car_library_t *self);

#endif
