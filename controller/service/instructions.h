/* SPDX-License-Identifier: Apache-2.0 */
/* instructions: what is live, since when, and who works under it. The clone
 * pattern's state: every change makes a new epoch, and the whole list is what
 * an epoch means.
 *
 *  I1  epochs only grow, also from one controller to the next (they begin at the
 *      wall clock's milliseconds); a number is never given twice
 *  I2  an instance works under an instruction once it has acknowledged an epoch
 *      at or above the one that brought it, and is free of it likewise
 *  I3  at most WEFT_INSTRUCTIONS_MAX are live
 * One thread, no I/O. */
#ifndef CTL_INSTRUCTIONS_H
#define CTL_INSTRUCTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "../../common/wire.h"
#include "../task/instances.h"

typedef struct ctl_instructions_t ctl_instructions_t;

/* NULL when out of memory. The first number given is last_number + 1. */
ctl_instructions_t *ctl_instructions_new (uint64_t epoch, uint32_t last_number);
void ctl_instructions_destroy (ctl_instructions_t **self_p);

/* No number up to this one is given any more. */
void ctl_instructions_skip (ctl_instructions_t *self, uint32_t number);

/* Checks `wanted` (its number is not looked at) and makes it live until until_ns
 * (CLOCK_MONOTONIC; 0: until stopped). WEFT_E_MALFORMED, WEFT_E_RANGE, WEFT_E_FULL with `why`. */
int ctl_instructions_add (ctl_instructions_t *self, const weft_instruction_t *wanted, uint64_t until_ns,
                          uint32_t *ret_number, char *why, size_t why_size);
/* WEFT_E_NOT_FOUND: not live. */
int ctl_instructions_stop (ctl_instructions_t *self, uint32_t number);
/* Stops what has had its time; how many. */
uint32_t ctl_instructions_expire (ctl_instructions_t *self, uint64_t now_ns);
/* When the next one has had its time, 0: none has one. */
uint64_t ctl_instructions_next_ns (const ctl_instructions_t *self);

uint64_t ctl_instructions_epoch (const ctl_instructions_t *self);
/* All live ones, in order of their numbers; borrowed until the next change. */
const weft_instruction_t *ctl_instructions_live (const ctl_instructions_t *self, uint32_t *ret_count);
/* A live one, or one of the last WEFT_STOPPED_MAX stopped; *ret_live says which. NULL: neither. */
const weft_instruction_t *ctl_instructions_find (const ctl_instructions_t *self, uint32_t number,
                                                 int *ret_live);

typedef enum {
  CTL_STANDING_NONE,   /* the instruction is not for this instance, or unknown */
  CTL_STANDING_SILENT, /* not acknowledged yet */
  CTL_STANDING_ACKED
} ctl_standing_t;
/* I2, of a live instruction or of the stopping of one. An instance that has left
 * has no standing with a live one, and is free of a stopped one. */
ctl_standing_t ctl_instructions_standing (const ctl_instructions_t *self, uint32_t number,
                                          const ctl_instance_t *instance);
/* 1 if every request of this name may start a task under it; 0 also where the header fields decide,
 * which nobody kept. */
int ctl_instruction_matches (const weft_instruction_t *instruction, const char *name, size_t name_size);
/* 1 if one of the instruction's selectors holds for the instance. */
int ctl_instruction_selects (const weft_instruction_t *instruction, const ctl_instance_t *instance);

#endif
