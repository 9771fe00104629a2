/* SPDX-License-Identifier: Apache-2.0 */
/* places: where the executions of one task name spend their time. A place is a
 * service, VM and name below another place; what one execution adds to one place is
 * a part. Two executions hang together where their places are the same.
 *
 *  L1  a place comes after the place that it is below; so do the parts of a sample
 *  L2  texts are interned: two are equal if their pointers are
 *
 * One thread, no I/O. */
#ifndef CTL_PLACES_H
#define CTL_PLACES_H

#include "critical.h"
#include "names.h"
#include "task.h"

#define CTL_PLACES_MAX   1024u /* of one task name; deeper or wider trees lose their rarest places */
#define CTL_NO_PLACE     UINT32_MAX
#define CTL_PLACES_SLOTS (4 * CTL_PLACES_MAX) /* open addressing, at most a quarter full */

typedef struct {
  uint32_t parent, depth; /* parent: CTL_NO_PLACE at the top */
  const char *service, *vm, *name;
  ctl_hop_t hop;
} ctl_place_t;

typedef struct {
  ctl_place_t *place;
  uint32_t count, capacity;
  uint16_t *slot; /* place + 1, 0: free */
} ctl_places_t;

/* All calls of one execution at one place together. */
typedef struct {
  uint32_t place, calls;
  uint32_t failed;   /* of these: ctl_subtask_failed, or received once more */
  uint32_t no_cpu;   /* of these: nobody knows how long they computed */
  uint32_t apart;    /* of these: between two hosts, so that a queue is not told from the network */
  uint32_t parallel; /* calls to others that one of them had open at once, at most */
  uint64_t self_ns, children_ns, cpu_ns;
  uint64_t network_ns, queue_ns; /* queue is that part of network that the way there took longer */
  /* The same, as far as it is on the critical path; gap_ns as in ctl_critical_t. */
  uint64_t critical_self_ns, critical_network_ns, critical_queue_ns, critical_gap_ns;
  uint64_t from_ns, to_ns; /* from the first call's start to the last one's end */
} ctl_part_t;

/* One execution. */
typedef struct {
  uint64_t hash; /* of the task id */
  uint64_t start_ns, duration_ns;
  uint32_t host;    /* whose clock all its times are; 0: of several, or not known */
  ctl_part_t *part; /* NULL: only its duration is kept */
  uint32_t parts;
  uint8_t complete;
} ctl_sample_t;

/* One subtask of the execution in hand. */
typedef struct {
  const char *service, *vm, *name; /* interned */
  uint32_t place;
  uint32_t previous; /* sibling, CTL_NO_PARENT: none */
} ctl_places_row_t;

typedef struct {
  ctl_places_row_t *row; /* one for each subtask of the execution */
  ctl_critical_t *critical;
  uint64_t *end_ns;
  uint32_t capacity;
  ctl_part_t part[CTL_PLACES_MAX];
  uint32_t part_of[CTL_PLACES_MAX]; /* by place, CTL_NO_PLACE: none yet */
} ctl_places_work_t;

void ctl_places_work_clear (ctl_places_work_t *work);
/* Begins with an execution; all of one `work` with the same names. 0 or WEFT_E_NOMEM, as all here. */
int ctl_places_begin (ctl_places_work_t *work, ctl_names_t *names, const ctl_execution_t *execution);
/* Fills part and parts of *ret_sample, to be freed by the caller. */
int ctl_places_parts (ctl_places_t *self, ctl_places_work_t *work, const ctl_execution_t *execution,
                      ctl_sample_t *ret_sample);
void ctl_places_clear (ctl_places_t *self);

/* Between caller and callee, both ways; 0 where that is not known. queue: see ctl_part_t; 0 where
 * the two are apart: what they differ in is as much their clocks'. Two clocks that disagree make no negative network. */
uint64_t ctl_network_ns (const ctl_subtask_t *subtask);
int ctl_is_apart (const ctl_execution_t *execution, const ctl_subtask_t *subtask);
uint64_t ctl_queue_ns (const ctl_execution_t *execution, const ctl_subtask_t *subtask);

#endif
