/* SPDX-License-Identifier: Apache-2.0 */
/* sequence: which batches of which probe are there already. One entry a
 * (instance, start): everything up to `done`, and a bit for each of the
 * WEFT_BATCH_AHEAD_MAX numbers behind it. One thread. */
#ifndef CTL_SEQUENCE_H
#define CTL_SEQUENCE_H

#include <stdint.h>

#include "../../common/limits.h"

typedef struct {
  uint8_t instance[WEFT_UUID_SIZE];
  uint8_t start[WEFT_UUID_SIZE];
  uint64_t done;  /* all numbers up to here are there */
  uint64_t ahead; /* bit n: done + 1 + n is there; bit 0 is always clear */
  uint8_t used;
} ctl_sequence_entry_t;

typedef struct ctl_sequence_t ctl_sequence_t;

ctl_sequence_t *ctl_sequence_new (void);
void ctl_sequence_destroy (ctl_sequence_t **self_p);
/* The entry of a probe; made at first sight with everything before `number` done: what came
 * before was acknowledged by another controller. Borrowed until the next call. WEFT_E_NOMEM,
 * WEFT_E_FULL beyond WEFT_STARTS_MAX. */
int ctl_sequence_of (ctl_sequence_t *self, const uint8_t instance[WEFT_UUID_SIZE],
                     const uint8_t start[WEFT_UUID_SIZE], uint64_t number, ctl_sequence_entry_t **ret_entry);
/* 0: new; 1: there already; WEFT_E_RANGE: too far ahead. */
int ctl_sequence_look (const ctl_sequence_entry_t *entry, uint64_t number);
/* Marks a number that look returned 0 for. */
void ctl_sequence_take (ctl_sequence_entry_t *entry, uint64_t number);

#endif
