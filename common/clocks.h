/* SPDX-License-Identifier: Apache-2.0 */
/* clocks: which clock means what.
 *
 * Events carry CLOCK_BOOTTIME (comparable across processes of one boot);
 * leases and timeouts use CLOCK_MONOTONIC; CLOCK_REALTIME appears only as an
 * anchor beside a boottime, so that views can print dates. All in ns. */
#ifndef WEFT_CLOCKS_H
#define WEFT_CLOCKS_H

#include <stdint.h>
#include <time.h>

#include "limits.h"

#define WEFT_NS_PER_S  1000000000ull
#define WEFT_NS_PER_MS 1000000ull

static inline uint64_t weft_clock_ns (clockid_t clock)
{
  struct timespec t;
  clock_gettime (clock, &t);
  return (uint64_t) t.tv_sec * WEFT_NS_PER_S + (uint64_t) t.tv_nsec;
}

static inline uint64_t weft_boot_ns (void)
{
  return weft_clock_ns (CLOCK_BOOTTIME);
}
static inline uint64_t weft_mono_ns (void)
{
  return weft_clock_ns (CLOCK_MONOTONIC);
}

/* One moment on both clocks: wall = boot + (real_ns - boot_ns). */
typedef struct {
  uint64_t boot_ns;
  uint64_t real_ns;
} weft_anchor_t;

/* Reads both clocks close together (best of three). */
void weft_anchor_take (weft_anchor_t *ret_anchor);
/* The kernel's boot id (/proc/sys/kernel/random/boot_id): equal on two reports
 * means their boottimes compare. 0 or WEFT_E_IO. */
int weft_boot_id (uint8_t ret_boot[WEFT_UUID_SIZE]);
/* "10s", "250ms", "5m", "1h" -> milliseconds. A number without a unit, a sign,
 * or more than max_ms is WEFT_E_RANGE / WEFT_E_MALFORMED. */
int weft_duration_ms (const char *text, uint64_t max_ms, uint64_t *ret_ms);

#endif
