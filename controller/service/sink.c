/* SPDX-License-Identifier: Apache-2.0 */
#include "sink.h"

#include <stdlib.h>

#include "../../common/clocks.h"
#include "../../common/limits.h"
#include "../../common/status.h"
#include "../task/pack.h"

struct ctl_sink_t {
  ctl_correlate_t *correlate;
  ctl_store_t *store;
  ctl_execution_fn *onward; /* may be NULL */
  void *onward_arg;
  ctl_execution_t *waiting[WEFT_SINK_MAX];
  uint32_t count;
};

ctl_sink_t *ctl_sink_new (ctl_correlate_t *correlate, ctl_store_t *store)
{
  ctl_sink_t *self = calloc (1, sizeof *self);
  if (self) {
    self->correlate = correlate;
    self->store = store;
  }
  return self;
}

void ctl_sink_onward (ctl_sink_t *self, ctl_execution_fn *fn, void *arg)
{
  self->onward = fn;
  self->onward_arg = arg;
}

static void drop (ctl_sink_t *self)
{
  while (self->count)
    ctl_execution_destroy (&self->waiting[--self->count]);
}

void ctl_sink_destroy (ctl_sink_t **self_p)
{
  if (!*self_p)
    return;
  drop (*self_p);
  free (*self_p);
  *self_p = NULL;
}

/* Everything that waits, in one transaction. */
static int write_out (ctl_sink_t *self)
{
  int rc = 0;
  for (uint32_t n = 0; rc == 0 && n < self->count; n++)
    rc = ctl_store_put (self->store, self->waiting[n]);
  if (rc == 0)
    rc = ctl_store_commit (self->store);
  for (uint32_t n = 0; rc == 0 && self->onward && n < self->count; n++)
    self->onward (&self->waiting[n], self->onward_arg);
  if (rc == 0)
    drop (self);
  return rc;
}

/* Not zero when full: the correlator keeps this one and those behind it. */
static int take (ctl_execution_t **execution_p, void *arg)
{
  ctl_sink_t *self = arg;
  if (self->count == WEFT_SINK_MAX)
    return WEFT_E_FULL;
  self->waiting[self->count++] = *execution_p;
  *execution_p = NULL;
  return 0;
}

int ctl_sink_run (ctl_sink_t *self, uint64_t now_ns, int all)
{
  int rc = self->count ? write_out (self) : 0;
  int more = 1;
  uint64_t end_ns = weft_mono_ns () + WEFT_SINK_RUN_MS * WEFT_NS_PER_MS;
  while (rc == 0 && more && (all || weft_mono_ns () < end_ns)) {
    more = ctl_correlate_settle (self->correlate, now_ns, all, take, self) == WEFT_E_FULL;
    if (self->count)
      rc = write_out (self);
  }
  return rc < 0 ? rc : more;
}

uint32_t ctl_sink_waiting (const ctl_sink_t *self)
{
  return self->count;
}

static ctl_execution_t *copy (const ctl_execution_t *execution)
{
  void *data = NULL;
  size_t size = 0;
  ctl_execution_t *made = NULL;
  if (ctl_execution_pack (execution, &data, &size) == 0)
    ctl_execution_unpack (data, size, &made);
  free (data);
  return made;
}

int ctl_sink_each (const ctl_sink_t *self, uint32_t instruction, uint64_t from_ns, uint64_t to_ns,
                   ctl_execution_fn *fn, void *arg)
{
  for (uint32_t n = 0; n < self->count; n++) {
    const ctl_execution_t *execution = self->waiting[n];
    if ((instruction && execution->instruction != instruction) || execution->start_ns < from_ns ||
        execution->start_ns > to_ns)
      continue;
    ctl_execution_t *made = copy (execution);
    int rc = made ? fn (&made, arg) : WEFT_E_NOMEM;
    ctl_execution_destroy (&made);
    if (rc)
      return rc;
  }
  return 0;
}
