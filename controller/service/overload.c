/* SPDX-License-Identifier: Apache-2.0 */
#include "overload.h"

#include "../../common/clocks.h"

/* What is kept at least: one task in 64 says more than none. */
#define KEEP_LEAST (CTL_SHED_NOTHING / 64)

void ctl_overload_backlog (ctl_overload_t *self, int more, uint64_t now_ns)
{
  if (!more)
    self->backlog_since_ns = 0;
  else if (!self->backlog_since_ns)
    self->backlog_since_ns = now_ns;
}

uint32_t ctl_overload_look (ctl_overload_t *self, ctl_shed_t *shed, uint64_t open, uint64_t open_max,
                            uint64_t deferred, uint64_t now_ns)
{
  ctl_shed_tick (shed, now_ns);
  uint32_t keep = ctl_shed_threshold (shed);
  int behind =
      self->backlog_since_ns && now_ns - self->backlog_since_ns >= WEFT_SHED_BACKLOG_MS * WEFT_NS_PER_MS;
  int overloaded = behind || deferred != self->deferred || open > open_max / 4 * 3;
  self->deferred = deferred;
  if (overloaded) {
    uint32_t less = keep / 4 * 3;
    return ctl_shed_keep (shed, less > KEEP_LEAST ? less : KEEP_LEAST);
  }
  if (keep == CTL_SHED_NOTHING || open > open_max / 2 || now_ns - self->raised_ns < WEFT_NS_PER_S)
    return keep;
  self->raised_ns = now_ns;
  return ctl_shed_keep (shed, keep + keep / 4 + 1);
}
