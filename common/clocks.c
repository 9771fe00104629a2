/* SPDX-License-Identifier: Apache-2.0 */
#include "clocks.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ids.h"
#include "status.h"

void weft_anchor_take (weft_anchor_t *ret_anchor)
{
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 3; i++) {
    uint64_t before = weft_boot_ns ();
    uint64_t real = weft_clock_ns (CLOCK_REALTIME);
    uint64_t gap = weft_boot_ns () - before;
    if (gap >= best)
      continue;
    /* The narrower the bracket, the less a preemption can have moved it. */
    best = gap;
    ret_anchor->boot_ns = before + gap / 2;
    ret_anchor->real_ns = real;
  }
}

int weft_boot_id (uint8_t ret_boot[WEFT_UUID_SIZE])
{
  char text[37] = "";
  int fd = open ("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return WEFT_E_IO;
  ssize_t got = read (fd, text, 36);
  close (fd);
  if (got != 36 || weft_uuid_get (ret_boot, text) < 0)
    return WEFT_E_IO;
  return 0;
}

int weft_duration_ms (const char *text, uint64_t max_ms, uint64_t *ret_ms)
{
  static const struct {
    const char *text;
    uint64_t ms;
  } unit[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
  uint64_t value = 0;
  int too_big = 0;
  const char *at = text;

  for (; *at >= '0' && *at <= '9'; at++)
    if (__builtin_mul_overflow (value, 10u, &value) ||
        __builtin_add_overflow (value, (uint64_t) (*at - '0'), &value))
      too_big = 1;
  if (at == text)
    return WEFT_E_MALFORMED;
  for (size_t i = 0; i < sizeof (unit) / sizeof (unit[0]); i++) {
    if (strcmp (at, unit[i].text) != 0)
      continue;
    if (too_big || __builtin_mul_overflow (value, unit[i].ms, &value) || value > max_ms)
      return WEFT_E_RANGE;
    *ret_ms = value;
    return 0;
  }
  return WEFT_E_MALFORMED;
}
