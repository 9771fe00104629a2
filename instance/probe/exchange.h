/* SPDX-License-Identifier: Apache-2.0 */
/* exchange: a request and its answer, the queue of them that a connection
 * holds, and the record of a connection itself, which connection.c, embed.c,
 * capture.c and proof.c share.
 *
 *  E1  who sends requests on the stream pushes, who handles answers pops; each
 *      side is one thread at a time (the owner of its direction)
 *  E2  on a client an exchange is in the queue before the system call that may
 *      let the peer see the request; what a short write took back is filled
 *      anew in its old place: slots from machine[OUT].heads on were never sent
 *  E3  an exchange is reported once, by whoever pops it, and its context is
 *      closed then */
#ifndef PROBE_EXCHANGE_H
#define PROBE_EXCHANGE_H

#include "../../common/report.h"
#include "connection.h"
#include "context.h"
#include "http1.h"
#include "state.h"

typedef enum { PROBE_IN, PROBE_OUT } probe_direction_t;

typedef enum { PROBE_UNKNOWN, PROBE_CANDIDATE, PROBE_PROVEN, PROBE_GIVEN_UP } probe_state_t;

typedef struct {
  uint8_t kind; /* weft_report_kind_t; 0 and BARE: nobody is told of its end */
  uint8_t method, reason, name_size;
  uint16_t status;
  uint32_t flags, instruction, tid;
  uint8_t task[WEFT_TASK_ID_SIZE];
  uint64_t request, subtask, start_ns;
  uint64_t cpu_ns; /* thread CPU clock at the start */
  probe_handle_t context;
  char name[WEFT_NAME_MAX];
} probe_exchange_t;

typedef struct {
  uint32_t generation; /* grows when the record is freed (C6) */
  uint32_t next_free;  /* index + 1 */
  uint32_t epoch;      /* activation in which it was first seen */
  int fd;              /* -1: free */
  uint32_t busy[2];    /* generation and owner state, see record.h */
  uint32_t turn[2];    /* writes begun; reads completed */
  uint64_t lessee[2];  /* mark of the thread that has leased the direction (R1) */
  uint32_t section[2]; /* generation << 1 | 1: the lessee is in it (R2) */
  uint8_t shy[2];      /* a lease was taken away: none again in this life (R3) */
  uint8_t calling[2];  /* somebody is in a system call; a hint, not a lock */
  uint8_t state, role;
  uint8_t last;      /* UNKNOWN: direction of the last transfer + 1 */
  uint8_t tries;     /* candidacies so far */
  uint8_t described; /* family, addresses and is_private are set */
  uint8_t is_private;
  uint8_t error;     /* weft_error_t that a system call told */
  uint8_t bare_said; /* under bare_serial: 1 UNMATCHED, 2 any other reason */
  uint16_t pending_size, pending_cut;
  uint8_t last_answer; /* client: it lasts until the connection ends, no request can follow */
  uint32_t inserts;
  uint32_t uncounted; /* bytes not in the shared counters yet */
  uint32_t requests;  /* the same, of requests that it asked or was asked */
  uint64_t bare_serial;
  uint64_t base[2], seen[2]; /* kernel's count when we began to look; bytes since */
  uint64_t start_ns;         /* first byte of the request that is being written */
  uint64_t waited, starved;  /* client: seen[IN] + 1 when a wait for its answer ran out of time, or a read
                                found nothing; 0: never */
  weft_address_t local, peer;
  uint32_t pushed, popped;
  probe_http1_t machine[2];
  probe_exchange_t queue[PROBE_EXCHANGES_MAX];
  char pending[PROBE_INSERT_MAX]; /* rest of a cut insert */
  probe_tracestate_t tracestate;  /* server: of the request whose head is being read */
  /* of one that is given up, or not there yet; behind all that HTTP touches */
  uint8_t quiet;            /* the kernel counts its bytes (quiet.h) */
  uint8_t protocol;         /* weft_protocol_t by what passed, 0: nothing told */
  uint8_t likely;           /* the same by what it was before it was given up */
  uint8_t waiting;          /* opaque: of a call nothing of the answer has come */
  uint8_t answered;         /* opaque: something has been read */
  uint8_t shared;           /* opaque: several subtasks at once (O4) */
  uint32_t sum;             /* opaque: index + 1 of the sum of the last call, 0: none */
  uint32_t sum_life;        /* in which it was that */
  uint64_t call_ns;         /* opaque: start of the last call */
  uint64_t call_bytes;      /* of it, written */
  uint64_t lapsed_ns;       /* opaque: when the client last gave up on it, 0: it waits (O6) */
  uint64_t early;           /* opaque: bytes that came before the first call */
  uint64_t reach_ns;        /* a connect that is under way: its start, 0: none */
  probe_context_t reach_of; /* and whose it is */
} probe_connection_t;

/* ---- connection.c ------------------------------------------------------- */
static inline probe_state_t probe_state (const probe_connection_t *self)
{
  return (probe_state_t) __atomic_load_n (&self->state, __ATOMIC_ACQUIRE);
}
/* Direction in which answers pass. */
static inline probe_direction_t probe_answers (const probe_connection_t *self)
{
  return self->role == PROBE_ROLE_SERVER ? PROBE_OUT : PROBE_IN;
}
/* For good (C5). `held`: directions that the caller owns, bit per direction. */
void probe_give_up (probe_connection_t *self, shm_counter_t why, unsigned held);
#define PROBE_HOLDS(direction) (1u << (direction))
/* The stream is not what we took it for: back to UNKNOWN, or given up. */
void probe_misfit (probe_connection_t *self, probe_direction_t direction, unsigned held);
/* 1: taken without waiting; the caller must release. */
int probe_try_hold (probe_connection_t *self, probe_direction_t direction);
void probe_count_bytes (probe_connection_t *self);

/* ---- exchange.c --------------------------------------------------------- */
/* What the errno of a transfer says of the peer. NONE: nothing. */
weft_error_t probe_error_of (int error);
/* The queue's slot for exchange number n. */
static inline probe_exchange_t *probe_exchange (probe_connection_t *self, uint32_t n)
{
  return &self->queue[n % PROBE_EXCHANGES_MAX];
}
/* Clears a slot and notes what the request's head says. */
void probe_exchange_begin (probe_exchange_t *self, const probe_http1_t *head, uint64_t start_ns);
/* Bytes of answers passed; the caller owns the direction. */
void probe_exchange_answer (probe_connection_t *self, const struct iovec *iov, int iov_count, size_t size);
/* Bytes left that nobody looked at: part of a body, or the end of our understanding. */
void probe_exchange_opaque (probe_connection_t *self, size_t size);
/* The stream ended in the answers' direction: completes an answer that lasts
 * until then, tells the others as `error`. */
void probe_exchange_end (probe_connection_t *self, weft_error_t error);
/* Pops everything that is open and tells it as `error`, with `flags`. */
void probe_exchange_abandon (probe_connection_t *self, weft_error_t error, uint32_t flags);
/* Once per connection, reason class and configuration: requests from here carry no id of ours. */
void probe_exchange_bare (probe_connection_t *self, weft_reason_t reason);
/* Its end, if that was said: what comes from this address afterwards is another connection. */
void probe_exchange_bare_end (probe_connection_t *self);

#endif
