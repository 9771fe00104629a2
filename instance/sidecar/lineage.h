/* SPDX-License-Identifier: Apache-2.0 */
/* lineage: a process and what it descends from within its tree, as far as an
 * instruction may name it. Copied and not linked: a parent may end before its
 * children, and what was asked of it still holds for them. */
#ifndef CAR_LINEAGE_H
#define CAR_LINEAGE_H

#include "../../common/limits.h"
#include "../../common/selector.h"

#define CAR_LINEAGE_MAX 8 /* the process and its nearest ancestors; those beyond select it no more */

typedef struct {
  weft_subject_t subject[CAR_LINEAGE_MAX]; /* linked, the process itself first */
  uint8_t instance[CAR_LINEAGE_MAX][WEFT_UUID_SIZE];
  unsigned count;
} car_lineage_t;

/* of: the process; its strings are borrowed for the life of the lineage, and stand for those of
 * its ancestors too. parent: NULL, or copied. self stays where it is. */
void car_lineage_begin (car_lineage_t *self, const weft_subject_t *of, const car_lineage_t *parent);
/* What selectors are compared with. */
const weft_subject_t *car_lineage_subject (const car_lineage_t *self);
/* 1: `instance` is an ancestor. */
int car_lineage_holds (const car_lineage_t *self, const uint8_t instance[WEFT_UUID_SIZE]);

#endif
