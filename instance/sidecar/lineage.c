/* SPDX-License-Identifier: Apache-2.0 */
#include "lineage.h"

#include <string.h>

static void add (car_lineage_t *self, const weft_subject_t *of, const uint8_t instance[WEFT_UUID_SIZE],
                 int64_t pid)
{
  unsigned n = self->count;
  if (n == CAR_LINEAGE_MAX)
    return;
  memcpy (self->instance[n], instance, WEFT_UUID_SIZE);
  self->subject[n] = *of;
  self->subject[n].instance = self->instance[n];
  self->subject[n].pid = pid;
  self->subject[n].parent = NULL;
  if (n > 0)
    self->subject[n - 1].parent = &self->subject[n];
  self->count++;
}

void car_lineage_begin (car_lineage_t *self, const weft_subject_t *of, const car_lineage_t *parent)
{
  self->count = 0;
  add (self, of, of->instance, of->pid);
  for (unsigned i = 0; parent && i < parent->count; i++)
    add (self, of, parent->instance[i], parent->subject[i].pid);
}

const weft_subject_t *car_lineage_subject (const car_lineage_t *self)
{
  return &self->subject[0];
}

int car_lineage_holds (const car_lineage_t *self, const uint8_t instance[WEFT_UUID_SIZE])
{
  for (unsigned i = 1; i < self->count; i++)
    if (memcmp (self->instance[i], instance, WEFT_UUID_SIZE) == 0)
      return 1;
  return 0;
}
