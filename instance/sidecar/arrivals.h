/* SPDX-License-Identifier: Apache-2.0 */
/* arrivals: the door at which processes of a tree announce themselves: those that
 * were forked by one that is followed, and those started below `weft run`.
 *
 *  V1  who it is, is what the kernel says (SO_PEERCRED), never what the message says
 *  V2  nothing is mapped before the key was right and seals, size, magic, version,
 *      owner and pid were checked
 *  V3  whoever connects and says nothing costs one of CAR_ARRIVALS_WAITING_MAX places
 *      for CAR_ARRIVALS_WAIT_MS, and never a wait
 *
 * The memory comes along: what a child that lives for one request has written is
 * kept, even when it is gone before anybody looks. One thread. */
#ifndef CAR_ARRIVALS_H
#define CAR_ARRIVALS_H

#include "../shm/reader.h"

#define CAR_ARRIVALS_BACKLOG                                                                                 \
  4096 /* forked at once; the kernel may hold fewer, who does not fit tries again */
#define CAR_ARRIVALS_WAITING_MAX 64
#define CAR_ARRIVALS_WAIT_MS     1000
#define CAR_ARRIVALS_BURST       64 /* taken in one go: those that work already wait so long */

typedef struct car_arrivals_t car_arrivals_t;

typedef struct {
  pid_t pid;
  int pidfd; /* -1: it has ended already */
  shm_arrival_t kind;
  uint8_t parent_start[WEFT_UUID_SIZE];
  shm_reader_t *reader;
} car_arrival_t;

/* Listens in the network namespace of process `of` (0: in our own) as `wanted`; under a name of its own
 * where that is NULL or taken. 0, or a status: nobody can announce itself. */
int car_arrivals_new (pid_t of, const shm_tree_t *wanted, car_arrivals_t **ret_self);
void car_arrivals_destroy (car_arrivals_t **self_p);
/* What processes of the tree have to know. */
const shm_tree_t *car_arrivals_tree (const car_arrivals_t *self);
/* Readable when somebody came. */
int car_arrivals_fd (const car_arrivals_t *self);
/* 0 and one of them, whose reader and pidfd are the caller's; WEFT_E_NOT_FOUND: no more. */
int car_arrivals_take (car_arrivals_t *self, car_arrival_t *ret_arrival);
/* Turns away who has been silent for too long; from time to time. */
void car_arrivals_tidy (car_arrivals_t *self, uint64_t mono_ns);
/* Who was turned away. */
uint64_t car_arrivals_refused (const car_arrivals_t *self);
/* A new tree: never all zero. WEFT_E_IO. */
int car_arrivals_draw (shm_tree_t *ret_tree);
/* 1: it is one that was drawn; NULL and what a page begins with are none. */
int car_arrivals_drawn (const shm_tree_t *tree);

#endif
