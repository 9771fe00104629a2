/* SPDX-License-Identifier: Apache-2.0 */
#include "sink.h"

#include <stdlib.h>

#include "../../common/clocks.h"
#include "../../common/limits.h"
#include "../../common/status.h"
#include "../task/settle.h"

#define ENOUGH 2 /* beside what a store's status can be */

struct ctl_sink_t {
  ctl_correlate_t *correlate;
  ctl_store_t *store;
  ctl_execution_fn *onward; /* may be NULL */
  void *onward_arg;
  uint32_t most;                           /* tasks of the next transaction */
  uint32_t count;                          /* of this one */
  ctl_execution_t *onwards[WEFT_SINK_MAX]; /* those of this one, if they go on */
  ctl_room_t room;                         /* to look at those in */
};

ctl_sink_t *ctl_sink_new (ctl_correlate_t *correlate, ctl_store_t *store)
{
  ctl_sink_t *self = calloc (1, sizeof *self);
  if (self) {
    self->correlate = correlate;
    self->store = store;
    self->most = WEFT_SINK_MAX;
  }
  return self;
}

void ctl_sink_onward (ctl_sink_t *self, ctl_execution_fn *fn, void *arg)
{
  self->onward = fn;
  self->onward_arg = arg;
}

void ctl_sink_destroy (ctl_sink_t **self_p)
{
  ctl_sink_t *self = *self_p;
  if (self)
    ctl_room_end (&self->room);
  free (self);
  *self_p = NULL;
}

static int put (ctl_execution_t **execution_p, void *arg)
{
  ctl_sink_t *self = arg;
  if (self->count == self->most)
    return ENOUGH;
  int rc = self->onward ? ctl_execution_time (*execution_p, &self->room) : 0;
  ctl_room_rest (&self->room);
  if (rc == 0)
    rc = ctl_store_put (self->store, *execution_p);
  if (rc)
    return rc;
  if (self->onward) {
    self->onwards[self->count] = *execution_p;
    *execution_p = NULL;
  }
  self->count++;
  return CTL_CORRELATE_HOLD;
}

/* What was put is stored, or is not. */
static void end (ctl_sink_t *self, int stored)
{
  for (uint32_t n = 0; self->onward && n < self->count; n++) {
    if (stored)
      self->onward (&self->onwards[n], self->onward_arg);
    ctl_execution_destroy (&self->onwards[n]);
  }
  ctl_correlate_release (self->correlate, stored);
  self->count = 0;
  self->most = stored ? WEFT_SINK_MAX : 1;
}

/* One transaction. 1: there is more. */
static int move (ctl_sink_t *self, uint64_t now_ns, int all)
{
  int settled = ctl_correlate_settle (self->correlate, now_ns, all, put, self);
  int rc = settled == ENOUGH ? 0 : settled;
  if (rc == 0 && self->count)
    rc = ctl_store_commit (self->store);
  end (self, rc == 0);
  return rc ? rc : settled == ENOUGH;
}

int ctl_sink_run (ctl_sink_t *self, uint64_t now_ns, int all)
{
  int more = 1;
  uint64_t end_ns = weft_mono_ns () + WEFT_SINK_RUN_MS * WEFT_NS_PER_MS;
  while (more == 1 && (all || weft_mono_ns () < end_ns))
    more = move (self, now_ns, all);
  return more;
}
