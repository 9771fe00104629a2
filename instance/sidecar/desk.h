/* SPDX-License-Identifier: Apache-2.0 */
/* desk: at which batches are written: the names known so far, and what a batch in the
 * making takes. All processes of a tree use one: it is taken for the length of a call. */
#ifndef CAR_DESK_H
#define CAR_DESK_H

#include "../../common/batch.h"
#include "names.h"

typedef struct {
  car_names_t *names;
  weft_batch_writer_t *writer;
} car_desk_t;

/* NULL when out of memory. */
car_desk_t *car_desk_new (void);
void car_desk_destroy (car_desk_t **self_p);

#endif
