/* SPDX-License-Identifier: Apache-2.0 */
#include "summary.h"

#include <endian.h>
#include <string.h>

void ctl_summary_of (const ctl_execution_t *execution, ctl_summary_t *ret_summary)
{
  *ret_summary = (ctl_summary_t){.start_ns = execution->start_ns,
                                 .duration_ns = execution->duration_ns,
                                 .instruction = execution->instruction,
                                 .name = execution->name,
                                 .service = execution->count ? execution->subtasks[0].service : "",
                                 .origin = execution->origin,
                                 .truncated = execution->truncated,
                                 .kind = (uint8_t) execution->kind,
                                 .complete = execution->complete,
                                 .reason = execution->reason,
                                 .error = (uint8_t) ctl_execution_failed (execution)};
  memcpy (ret_summary->task, execution->task, WEFT_TASK_ID_SIZE);
  memcpy (ret_summary->hops, execution->hops, sizeof ret_summary->hops);
}

static uint8_t *put_32 (uint8_t *at, uint32_t value)
{
  value = htole32 (value);
  memcpy (at, &value, sizeof value);
  return at + sizeof value;
}

static uint8_t *put_64 (uint8_t *at, uint64_t value)
{
  value = htole64 (value);
  memcpy (at, &value, sizeof value);
  return at + sizeof value;
}

int ctl_summary_put (const ctl_summary_t *self, ctl_names_t *names, ctl_names_lately_t *lately,
                     uint8_t out[CTL_SUMMARY_SIZE])
{
  uint32_t name, service, origin;
  int rc = ctl_names_again (names, lately, self->name, &name);
  if (rc == 0)
    rc = ctl_names_again (names, lately, self->service, &service);
  if (rc == 0)
    rc = ctl_names_again (names, lately, self->origin, &origin);
  if (rc)
    return rc;
  uint8_t *at = put_64 (out, self->start_ns);
  at = put_64 (at, self->duration_ns);
  at = put_32 (at, self->instruction);
  at = put_32 (at, name);
  at = put_32 (at, service);
  at = put_32 (at, origin);
  for (int i = 0; i < CTL_HOP_COUNT; i++)
    at = put_32 (at, self->hops[i]);
  at = put_32 (at, self->truncated);
  *at++ = self->kind;
  *at++ = self->complete;
  *at++ = self->reason;
  *at++ = self->error;
  put_32 (at, 0);
  return 0;
}

static uint32_t get_32 (const uint8_t *at)
{
  uint32_t value;
  memcpy (&value, at, sizeof value);
  return le32toh (value);
}

static uint64_t get_64 (const uint8_t *at)
{
  uint64_t value;
  memcpy (&value, at, sizeof value);
  value = le64toh (value);
  return value > INT64_MAX ? INT64_MAX : value;
}

void ctl_summary_get (const uint8_t task[WEFT_TASK_ID_SIZE], const uint8_t in[CTL_SUMMARY_SIZE],
                      const ctl_names_t *names, ctl_summary_t *ret_self)
{
  *ret_self = (ctl_summary_t){.start_ns = get_64 (in),
                              .duration_ns = get_64 (in + 8),
                              .instruction = get_32 (in + 16),
                              .name = ctl_names_text (names, get_32 (in + 20)),
                              .service = ctl_names_text (names, get_32 (in + 24)),
                              .origin = ctl_names_text (names, get_32 (in + 28)),
                              .truncated = get_32 (in + 52),
                              .kind = in[56] == CTL_KIND_ORPHAN ? CTL_KIND_ORPHAN : CTL_KIND_TASK,
                              .complete = in[57] != 0,
                              .reason = in[58],
                              .error = in[59] != 0};
  memcpy (ret_self->task, task, WEFT_TASK_ID_SIZE);
  for (int i = 0; i < CTL_HOP_COUNT; i++)
    ret_self->hops[i] = get_32 (in + 32 + 4 * i);
}
