/* SPDX-License-Identifier: Apache-2.0 */
#include "desk.h"

#include <stdlib.h>

car_desk_t *car_desk_new (void)
{
  car_desk_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  self->names = car_names_new ();
  self->writer = weft_batch_writer_new ();
  if (!self->names || !self->writer)
    car_desk_destroy (&self);
  return self;
}

void car_desk_destroy (car_desk_t **self_p)
{
  if (!self_p || !*self_p)
    return;
  car_names_destroy (&(*self_p)->names);
  weft_batch_writer_destroy (&(*self_p)->writer);
  free (*self_p);
  *self_p = NULL;
}
