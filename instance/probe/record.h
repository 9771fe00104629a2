/* SPDX-License-Identifier: Apache-2.0 */
/* record: the table from fds to connections, the pool of their records, and
 * who owns a direction.
 *
 * Owner state of a direction, in busy[] together with the generation, so that
 * nobody can own a connection that is not the one it looked up:
 *
 *           hold            (answers only)
 *   FREE ────────▶ WORK      FREE ──▶ CALL ──▶ WORK ──▶ FREE
 *     ▲  release    │          a server's write keeps its place in the order
 *     └─────────────┘          of answers during its system call
 *   FREE, CALL, LEASED ──▶ DEAD   taken by whoever closes; for good
 *
 * A body is many calls of one thread, and a compare-and-swap in each would cost
 * more than all the rest. Who leaves a direction in the middle of a body leases it
 * instead of freeing it, WORK ──▶ LEASED, and comes back by loads and stores alone;
 * everybody else takes the lease away first, by membarrier(2), which orders the
 * lessee's accesses without its help. Where the kernel has none there are no leases.
 *
 *  R1  a lease is of one thread and one generation. It ends by its lessee, with
 *      any other hold of the direction, or by being taken away, LEASED ──▶ WORK
 *  R2  the lessee stores its generation into `section`, then looks at busy[] again,
 *      and only then touches what the direction owns. Who takes the lease away
 *      changes busy[], then the barrier, then looks at `section`: one of the two
 *      sees the other
 *  R3  a lease that was taken away is the last of that direction in this life of the
 *      record, so a lessee that is late with its store into `section` can meet
 *      only a later generation's lease: its value is then neither "in" nor "out"
 *      of that generation, and the taker waits, then does without. No store but
 *      this one is ever made into a record that was freed
 *
 * Fixed memory in .bss, touched lazily: what is never used costs none. */
#ifndef PROBE_RECORD_H
#define PROBE_RECORD_H

#include <errno.h>

#include "../../common/fault_step.h"
#include "exchange.h"
#include "start_line.h"

enum { PROBE_FREE = 0, PROBE_WORK = 1, PROBE_CALL = 2, PROBE_DEAD = 3, PROBE_LEASED = 4 };
#define PROBE_OWNER_BITS 3
#define PROBE_OWNER_MASK ((1u << PROBE_OWNER_BITS) - 1)

#define PROBE_CLOSE_YIELDS   1000       /* for a thread to leave its section before a record is lost */
#define PROBE_COUNT_EVERY    (4u << 20) /* bytes kept back from the shared counters, which cost a lock each */
#define PROBE_COUNT_REQUESTS 64         /* the same, of requests */

/* fd table entry: 0 unknown | NO_STREAM and a countdown | index + 1 and the low
 * bits of the generation. */
#define PROBE_NO_STREAM       0x80000000u
#define PROBE_INDEX_BITS      13
#define PROBE_INDEX_MASK      ((1u << PROBE_INDEX_BITS) - 1)
#define PROBE_GENERATION_MASK ((1u << (31 - PROBE_INDEX_BITS)) - 1)
_Static_assert(PROBE_CONNECTIONS_MAX < PROBE_INDEX_MASK, "index + 1 fits");

/* Hidden: reached without a detour through our own GOT. */
#pragma GCC visibility push(hidden)
extern uint32_t probe_fds[PROBE_FDS_MAX];
extern probe_connection_t probe_pool[PROBE_CONNECTIONS_MAX];
extern uint32_t probe_epoch;      /* activation; a record of another one is stale */
extern __thread uint8_t probe_me; /* its address is the mark of a thread */
#pragma GCC visibility pop

/* ---- ownership ----------------------------------------------------------- */
/* Takes it from a writer that is in its system call, too: that one will find
 * its place gone. 1: taken. */
int probe_take (probe_connection_t *self, probe_direction_t direction, uint32_t to, int yields);
/* Lets go of what is held as WORK, in the middle of a body: leased if it may be. */
void probe_lease (probe_connection_t *self, probe_direction_t direction);
int probe_hold_slow (probe_connection_t *self, probe_direction_t direction, uint32_t generation, uint32_t to);

static inline uint32_t probe_word (uint32_t generation, uint32_t state)
{
  return generation << PROBE_OWNER_BITS | state;
}

static inline int probe_swap (probe_connection_t *self, probe_direction_t direction, uint32_t generation,
                              uint32_t from, uint32_t to)
{
  uint32_t expected = probe_word (generation, from);
  return __atomic_compare_exchange_n (&self->busy[direction], &expected, probe_word (generation, to), 0,
                                      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* 1: held as `to`; 0: gone; -1: somebody else is in it, also after a few yields. */
static inline int probe_hold (probe_connection_t *self, probe_direction_t direction, uint32_t generation,
                              uint32_t to)
{
  if (WEFT_STEP_FAILS ("hold"))
    return -1;
  if (PROBE_LIKELY (probe_swap (self, direction, generation, PROBE_FREE, to)))
    return 1;
  return probe_hold_slow (self, direction, generation, to);
}

static inline void probe_release (probe_connection_t *self, probe_direction_t direction)
{
  uint32_t now = __atomic_load_n (&self->busy[direction], __ATOMIC_RELAXED);
  __atomic_store_n (&self->busy[direction], (now & ~PROBE_OWNER_MASK) | PROBE_FREE, __ATOMIC_RELEASE);
}

/* Lets go of what is held as WORK. */
static inline void probe_settle (probe_connection_t *self, probe_direction_t direction)
{
  if (probe_phase_opaque (&self->machine[direction]))
    probe_lease (self, direction);
  else
    probe_release (self, direction);
}

static inline void probe_lease_leave (probe_connection_t *self, probe_direction_t direction,
                                      uint32_t generation)
{
  __atomic_store_n (&self->section[direction], generation << 1, __ATOMIC_RELEASE);
}

/* 1: the caller's lease, at this moment. */
static inline int probe_lease_mine (const probe_connection_t *self, probe_direction_t direction,
                                    uint32_t generation)
{
  return __atomic_load_n (&self->busy[direction], __ATOMIC_ACQUIRE) ==
             probe_word (generation, PROBE_LEASED) &&
         __atomic_load_n (&self->lessee[direction], __ATOMIC_RELAXED) == (uintptr_t) &probe_me;
}

/* 1: the caller has leased the direction and is in it until probe_lease_leave (R2). */
static inline int probe_lease_enter (probe_connection_t *self, probe_direction_t direction,
                                     uint32_t generation)
{
  uint32_t leased = probe_word (generation, PROBE_LEASED);
  if (!probe_lease_mine (self, direction, generation) || WEFT_STEP_FAILS ("lease"))
    return 0;
  __atomic_store_n (&self->section[direction], generation << 1 | 1, __ATOMIC_RELAXED);
  __atomic_signal_fence (__ATOMIC_SEQ_CST); // the processor's half is the taker's barrier
  if (PROBE_LIKELY (__atomic_load_n (&self->busy[direction], __ATOMIC_ACQUIRE) == leased))
    return 1;
  probe_lease_leave (self, direction, generation);
  return 0;
}

/* ---- records ------------------------------------------------------------- */
/* NULL: idle by now, or the pool is empty (counted). */
probe_connection_t *probe_record_new (int fd, probe_state_t state);
/* Another thread that saw the fd at the same moment wins: NULL. */
probe_connection_t *probe_record_publish (int fd, probe_connection_t *self);
/* Records that have ever been in use stand first in the pool. */
uint32_t probe_records_used (void);
/* Forgets the fd; what was open on it is told. */
void probe_record_drop (int fd);
/* What is known of an fd, without a look at the kernel. */
probe_connection_t *probe_record_known (int fd, uint32_t *ret_generation);
/* Born ones are described at their first transfer. 0: no connected stream socket;
 * the record may be gone. The caller owns no direction; two may come at once, they
 * write the same. */
int probe_record_ready (probe_connection_t *self, int fd);
probe_connection_t *probe_lookup_slow (int fd, uint32_t entry, uint32_t *ret_generation);

static inline uint32_t probe_record_index (const probe_connection_t *self)
{
  return (uint32_t) (self - probe_pool);
}

/* What stands in probe_fds for it. */
static inline uint32_t probe_record_entry (const probe_connection_t *self)
{
  return (probe_record_index (self) + 1) | (self->generation & PROBE_GENERATION_MASK) << PROBE_INDEX_BITS;
}

/* C6: *ret_generation is that of the record which the entry means. */
static inline probe_connection_t *probe_record_of (uint32_t entry, uint32_t *ret_generation)
{
  if (!entry || (entry & PROBE_NO_STREAM))
    return NULL;
  probe_connection_t *self = &probe_pool[(entry & PROBE_INDEX_MASK) - 1];
  *ret_generation = __atomic_load_n (&self->generation, __ATOMIC_ACQUIRE);
  return (*ret_generation & PROBE_GENERATION_MASK) == entry >> PROBE_INDEX_BITS ? self : NULL;
}

/* The connection of an fd that is about to be used; NULL: not to be followed. */
static inline probe_connection_t *probe_lookup (int fd, uint32_t *ret_generation)
{
  if (PROBE_UNLIKELY ((unsigned) fd >= PROBE_FDS_MAX))
    return NULL;
  uint32_t entry = __atomic_load_n (&probe_fds[fd], __ATOMIC_ACQUIRE);
  probe_connection_t *self = probe_record_of (entry, ret_generation);
  if (PROBE_LIKELY (self && self->epoch == __atomic_load_n (&probe_epoch, __ATOMIC_RELAXED)))
    return self;
  return probe_lookup_slow (fd, entry, ret_generation);
}

/* One more, by whoever owns the direction of requests. */
static inline void probe_asked (probe_connection_t *self)
{
  uint32_t requests = __atomic_load_n (&self->requests, __ATOMIC_RELAXED) + 1;
  __atomic_store_n (&self->requests, requests, __ATOMIC_RELAXED);
  if (requests >= PROBE_COUNT_REQUESTS)
    probe_count_bytes (self);
}

/* Two directions may lose each other's sum here; it is a share for people. */
static inline void probe_moved (probe_connection_t *self, size_t size)
{
  uint32_t bytes = __atomic_load_n (&self->uncounted, __ATOMIC_RELAXED) + (uint32_t) (size & 0x7fffffff);
  __atomic_store_n (&self->uncounted, bytes, __ATOMIC_RELAXED);
  if (PROBE_UNLIKELY (bytes >= PROBE_COUNT_EVERY))
    probe_count_bytes (self);
}

#endif
