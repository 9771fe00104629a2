/* SPDX-License-Identifier: Apache-2.0 */
/* live: the instructions that one controller has at one epoch. Every process of a tree is
 * told the same ones: they are kept once. One thread. */
#ifndef CAR_LIVE_H
#define CAR_LIVE_H

#include "../../common/wire.h"

typedef struct {
  unsigned users;
  uint8_t controller[WEFT_UUID_SIZE];
  uint64_t epoch;
  uint32_t count;
  weft_instruction_t *instructions;
} car_live_t;

/* What a STATE says, for one more user: what lies on the shelf if that is the same, else its
 * instructions are taken out of it, and put on the shelf for those to whom it is given after.
 * shelf: borrowed; NULL: none. NULL when out of memory, the message is as before. */
car_live_t *car_live_of (car_live_t **shelf, weft_bus_message_t *message);
/* Another user of the same. */
car_live_t *car_live_share (car_live_t *self);
/* NULL is allowed. */
void car_live_drop (car_live_t **self_p);

#endif
