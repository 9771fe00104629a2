/* SPDX-License-Identifier: Apache-2.0 */
/* traits: what can be compared between executions of one task name. A trait is an edge,
 * or all edges to one name or one service together, and one of the things that can
 * take time there; its value in an execution is the time that the execution had to wait
 * for it (critical.h).
 *
 *  calls    what the calls beyond the usual number take, with all that is below them and
 *           the patience between a failed one and the next
 *  self     what the usual number of calls takes in the callee itself
 *  queue    what the way there takes longer than the way back
 *  network  the rest of what lies between caller and callee
 *  held     self and queue together: what holds up a callee's threads makes the ones wait in it
 *           and the others before it
 *
 *  T1  of the traits of edges, the values of one execution add up to its duration (held apart):
 *      no time is told twice
 *  T2  the usual number of calls is the median, in the middle half of the executions, of
 *      calls in one call of the caller; where the caller itself is called more often, its
 *      callees are not blamed for it */
#ifndef CTL_TRAITS_H
#define CTL_TRAITS_H

#include "analyse.h"
#include "places.h"

typedef enum {
  CTL_TRAIT_CALLS,
  CTL_TRAIT_SELF,
  CTL_TRAIT_QUEUE,
  CTL_TRAIT_NETWORK,
  CTL_TRAIT_HELD,
  CTL_TRAIT_COUNT
} ctl_trait_kind_t;
typedef enum { CTL_TRAIT_EDGE, CTL_TRAIT_NAME, CTL_TRAIT_SERVICE, CTL_TRAIT_LEVELS } ctl_trait_level_t;

#define CTL_TRAIT_KEYS_MAX 256u /* told apart at each level; what is beyond is compared with nothing */
#define CTL_TRAIT_NO_KEY   UINT32_MAX

/* What a trait is about; as in ctl_why_cause_t. */
typedef struct {
  const char *from_service, *from_name, *service, *vm, *name;
  ctl_hop_t hop;
  ctl_trait_level_t level;
  uint32_t edges; /* that it comprises */
} ctl_trait_key_t;

/* Trait number = key number * CTL_TRAIT_COUNT + kind. */
typedef struct {
  const ctl_places_t *places;
  ctl_trait_key_t key[CTL_TRAIT_LEVELS * CTL_TRAIT_KEYS_MAX];
  uint32_t keys;
  uint32_t *key_of[CTL_TRAIT_LEVELS]; /* by place, CTL_TRAIT_NO_KEY: none */
  double *usual;                      /* by place: calls in one call of its caller */
  double *scratch;                    /* three by place */
} ctl_traits_t;

/* usual: the middle half. Borrows the places. 0 or WEFT_E_NOMEM. */
int ctl_traits_new (const ctl_places_t *places, const ctl_sample_t *const *usual, uint32_t usual_count,
                    ctl_traits_t **ret_self);
void ctl_traits_destroy (ctl_traits_t **self_p);
/* keys * CTL_TRAIT_COUNT values, in ns. */
void ctl_traits_fill (const ctl_traits_t *self, const ctl_sample_t *sample, float *values);
/* Whether trait `inner` is a part of trait `outer`, or is it. */
int ctl_traits_within (const ctl_traits_t *self, uint32_t inner, uint32_t outer);
/* Whether some of the time of `inner`, at the same place or a part of it, is that of `outer`. */
int ctl_traits_share (const ctl_traits_t *self, uint32_t inner, uint32_t outer);

#endif
