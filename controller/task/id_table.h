/* SPDX-License-Identifier: Apache-2.0 */
/* id_table: under which number a task id is stored. 36 bits of the id's hash and
 * 28 of the number, in order of the hash, so that growing is one pass. The store
 * asks it for every task that it writes; a tree on disk would be read and written
 * at another place each time.
 *
 *  I1  every id that was added is found, until it is forgotten
 *  I2  what is found may be wrong (another id, a number that is no more): whoever
 *      asks compares the id that stands at that number
 *  I3  numbers are told apart within CTL_ID_TABLE_WINDOW of each other
 *
 * 8 bytes a slot, at most three quarters full. One thread. */
#ifndef CTL_ID_TABLE_H
#define CTL_ID_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "mix.h"

#define CTL_ID_TABLE_BITS   28 /* of the number */
#define CTL_ID_TABLE_WINDOW (INT64_C (1) << CTL_ID_TABLE_BITS)

typedef struct {
  ctl_seed_t seed;
  uint64_t *slot; /* 0: free */
  unsigned bits;  /* of their number */
  size_t used;
} ctl_id_table_t;

/* Where a search is. */
typedef struct {
  uint64_t hash;
  size_t at;
} ctl_id_search_t;

int ctl_id_table_init (ctl_id_table_t *self); /* WEFT_E_NOMEM */
void ctl_id_table_clear (ctl_id_table_t *self);
/* Those below `first` and from `end` on may be forgotten. WEFT_E_NOMEM: it is not added. */
int ctl_id_table_add (ctl_id_table_t *self, const uint8_t id[16], int64_t number, int64_t first, int64_t end);
/* Begins to fetch what a search will read: in a big table that is a miss, which other work can cover. */
void ctl_id_table_prefetch (const ctl_id_table_t *self, const uint8_t id[16]);
ctl_id_search_t ctl_id_table_search (const ctl_id_table_t *self, const uint8_t id[16]);
/* 1: the next number, below `end`, under which the id may be; 0: no more. */
int ctl_id_table_next (const ctl_id_table_t *self, ctl_id_search_t *search, int64_t end, int64_t *ret_number);

#endif
