/* SPDX-License-Identifier: Apache-2.0 */
#include "sums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/ids.h"
#include "../../common/status.h"

#define PATH_ROOM 600

ctl_sums_t *ctl_sums_take (ctl_instances_t *instances)
{
  uint32_t count = ctl_instances_count (instances);
  ctl_sums_t *self = malloc (sizeof *self + count * sizeof self->of[0]);
  if (!self)
    return NULL;
  self->count = count;
  for (uint32_t n = 0; n < count; n++) {
    const ctl_instance_t *one = ctl_instances_at (instances, n);
    self->of[n].stored = one->stored;
    memcpy (self->of[n].losses, one->losses, sizeof self->of[n].losses);
  }
  return self;
}

static json_t *list_of (const uint64_t losses[WEFT_LOSS_COUNT])
{
  json_t *list = json_array ();
  for (unsigned n = 0; n < WEFT_LOSS_COUNT; n++)
    json_array_append_new (list, json_integer ((json_int_t) losses[n]));
  return list;
}

static json_t *make (const ctl_sums_t *sums, ctl_instances_t *instances,
                     const ctl_journal_position_t *position)
{
  json_t *list = json_array ();
  for (uint32_t n = 0; n < sums->count; n++) {
    const ctl_instance_t *one = ctl_instances_at (instances, n);
    char uuid[37];
    weft_uuid_put (uuid, one->uuid);
    json_array_append_new (list, json_pack ("{s:s, s:b, s:I, s:o}", "instance", uuid, "there",
                                            one->presence != CTL_INSTANCE_LEFT, "stored",
                                            (json_int_t) sums->of[n].stored, "losses",
                                            list_of (sums->of[n].losses)));
  }
  return json_pack ("{s:I, s:I, s:o}", "segment", (json_int_t) position->segment, "offset",
                    (json_int_t) position->offset, "instances", list);
}

int ctl_sums_save (const char *dir, const char *name, const ctl_sums_t *sums, ctl_instances_t *instances,
                   const ctl_journal_position_t *position)
{
  char path[PATH_ROOM], other[PATH_ROOM];
  json_t *saved = sums ? make (sums, instances, position) : NULL;
  if (!saved)
    return WEFT_E_NOMEM;
  snprintf (path, sizeof path, "%s/%s", dir, name);
  snprintf (other, sizeof other, "%s/%s.new", dir, name);
  int rc = json_dump_file (saved, other, JSON_COMPACT) < 0 || rename (other, path) < 0 ? WEFT_E_IO : 0;
  json_decref (saved);
  return rc;
}

json_t *ctl_sums_load (const char *dir, const char *name, ctl_journal_position_t *ret_position)
{
  char path[PATH_ROOM];
  snprintf (path, sizeof path, "%s/%s", dir, name);
  json_t *sums = json_load_file (path, 0, NULL);
  json_int_t segment = json_integer_value (json_object_get (sums, "segment"));
  json_int_t offset = json_integer_value (json_object_get (sums, "offset"));
  *ret_position = (ctl_journal_position_t){0};
  if (segment <= 0 || segment > UINT32_MAX || offset < 0) {
    json_decref (sums);
    return NULL;
  }
  *ret_position = (ctl_journal_position_t){(uint32_t) segment, (uint64_t) offset};
  return sums;
}

static uint64_t count_of (const json_t *value)
{
  json_int_t count = json_integer_value (value);
  return count > 0 ? (uint64_t) count : 0;
}

void ctl_sums_add (const json_t *sums, ctl_instances_t *instances)
{
  const json_t *list = json_object_get (sums, "instances");
  for (size_t n = 0; n < json_array_size (list); n++) {
    const json_t *one = json_array_get (list, n);
    const char *text = json_string_value (json_object_get (one, "instance"));
    const json_t *losses = json_object_get (one, "losses");
    uint8_t uuid[WEFT_UUID_SIZE];
    if (!text || weft_uuid_get (uuid, text) < 0)
      continue;
    ctl_instance_t *instance = ctl_instances_find (instances, uuid);
    if (!instance && (!json_is_true (json_object_get (one, "there")) ||
                      ctl_instances_touch (instances, uuid, &instance) < 0))
      continue;
    instance->stored += count_of (json_object_get (one, "stored"));
    for (unsigned k = 0; k < WEFT_LOSS_COUNT; k++)
      instance->losses[k] += count_of (json_array_get (losses, k));
  }
}
