/* SPDX-License-Identifier: Apache-2.0 */
#include "live.h"

#include <stdlib.h>
#include <string.h>

static int says (const car_live_t *self, const weft_bus_message_t *message)
{
  return self && self->epoch == message->epoch &&
         memcmp (self->controller, message->controller, WEFT_UUID_SIZE) == 0;
}

car_live_t *car_live_share (car_live_t *self)
{
  self->users++;
  return self;
}

car_live_t *car_live_of (car_live_t **shelf, weft_bus_message_t *message)
{
  if (shelf && says (*shelf, message))
    return car_live_share (*shelf);
  car_live_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  self->users = 1;
  memcpy (self->controller, message->controller, WEFT_UUID_SIZE);
  self->epoch = message->epoch;
  self->count = message->instruction_count;
  self->instructions = message->instructions;
  message->instructions = NULL;
  message->instruction_count = 0;
  if (shelf) {
    car_live_drop (shelf);
    *shelf = car_live_share (self);
  }
  return self;
}

void car_live_drop (car_live_t **self_p)
{
  car_live_t *self = *self_p;
  *self_p = NULL;
  if (!self || --self->users)
    return;
  free (self->instructions);
  free (self);
}
