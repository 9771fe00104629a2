/* SPDX-License-Identifier: Apache-2.0 */
/* report: one copy of a task id, as the probe saw it. Header only, plain data:
 * the same words in shared memory (instance/shm/layout.h), on the bus
 * (batch.h) and in the correlator. libc free. */
#ifndef WEFT_REPORT_H
#define WEFT_REPORT_H

#include <stdint.h>

#include "limits.h"

/* Numbers are part of PROTOCOL.md; a retired one is never used again. */
typedef enum {
  WEFT_REPORT_CAPTURE = 1, /* a VM received a subtask request and did the subtask */
  WEFT_REPORT_EMBED = 2,   /* a VM sent a subtask request that carries our id */
  WEFT_REPORT_BARE = 3,    /* a VM under weft sends requests on this connection that carry
                              no id of ours, for `reason`: what the other side receives
                              from this address is no root. Once per connection, reason
                              class (UNMATCHED or any other) and configuration; for NONE
                              when it is closed: the address may be somebody else's now */
  WEFT_REPORT_OPAQUE = 4   /* what a subtask asked of a peer that is not spoken: calls, bytes and
                              wait, coalesced by peer, protocol and error. Told once, when the
                              subtask ends; what comes later is another report */
} weft_report_kind_t;

/* Flags of a report. */
#define WEFT_REPORT_ROOT 0x01u /* capture: came without context, a `root` action started the task */
#define WEFT_REPORT_ORPHAN                                                                                   \
  0x02u                           /* embed: sent from an unknown context. capture: came without
                                     context and no `root` action applied */
#define WEFT_REPORT_ADOPTED 0x04u /* embed: the request id is that of the application's own traceparent */
#define WEFT_REPORT_OPEN    0x08u /* not answered when it was reported: end_ns is the moment of the report */
#define WEFT_REPORT_PRIVATE 0x10u /* travelled in the `weft-task` header */
#define WEFT_REPORT_CUT     0x20u /* the name was longer than WEFT_NAME_MAX */
#define WEFT_REPORT_FORWARDED                                                                                \
  0x40u /* embed, ADOPTED: an open subtask of this VM came with the same request id, which was passed on     \
           as it came: it names more than one request */

/* Why an exchange had no regular answer. */
#define WEFT_ERROR_MAP(XX)                                                                                   \
  XX (0, NONE, "")                                                                                           \
  XX (1, REFUSED, "refused")                                                                                 \
  XX (2, TIMEOUT, "timeout")                                                                                 \
  XX (3, RESET, "reset")                                                                                     \
  XX (4, OPEN, "open")                                                                                       \
  XX (5, CLOSED, "closed") /* orderly close before the answer was complete */
typedef enum {
#define XX(number, name, text) WEFT_ERROR_##name = number,
  WEFT_ERROR_MAP (XX)
#undef XX
} weft_error_t;

/* Why an orphan is one / why a request stayed bare. */
#define WEFT_REASON_MAP(XX)                                                                                  \
  XX (0, NONE, "")                                                                                           \
  XX (1, NO_CONTEXT, "no inbound request is open on the sending thread")                                     \
  XX (2, SEVERAL_OPEN, "several inbound requests are open on the sending thread")                            \
  XX (3, EVENT_LOOP, "the sending thread is an event loop")                                                  \
  XX (4, NO_ROOT, "came without context and nothing was told to start tasks")                                \
  XX (5, UNPROVEN, "connection from before the attach, or the kernel disagrees")                             \
  XX (6, HEAD_LIMIT, "request head too long or with too many fields")                                        \
  XX (7, ADDRESS, "peer outside --embed-to")                                                                 \
  XX (8, VM_CONTEXT, "the VM's thread context could not be read")                                            \
  XX (9, INSIDE, "came without context from a VM under weft")                                                \
  XX (10, CAPPED, "over --max or --sample")                                                                  \
  XX (11, PIPELINE, "too many requests in flight on one connection")                                         \
  XX (12, UNMATCHED, "belongs to a request that no instruction asked for")                                   \
  XX (13, CONTEXT, "carries a context of its own that is not valid, or several")
typedef enum {
#define XX(number, name, text) WEFT_REASON_##name = number,
  WEFT_REASON_MAP (XX)
#undef XX
} weft_reason_t;

/* Losses, by cause; the order is the order on the wire. */
#define WEFT_LOSS_MAP(XX)                                                                                    \
  XX (0, RING_FULL, "ring full")                                                                             \
  XX (1, RING_BUSY, "all rings busy")                                                                        \
  XX (2, SPOOL_FULL, "spool full")                                                                           \
  XX (3, OVERSIZE, "too large")                                                                              \
  XX (4, UNDECODABLE, "undecodable")                                                                         \
  XX (5, VERSION, "newer version")                                                                           \
  XX (6, OWNER_DIED, "writer died")                                                                          \
  XX (7, TABLE_FULL, "probe table full")                                                                     \
  XX (8, SHED, "shed by the controller")
/* The first of them are counted by probe and sidecar and travel in batches; the rest the controller
 * counts itself. */
#define WEFT_LOSS_WIRE_COUNT 8
typedef enum {
#define XX(number, name, text) WEFT_LOSS_##name = number,
  WEFT_LOSS_MAP (XX)
#undef XX
      WEFT_LOSS_COUNT
} weft_loss_t;

#define WEFT_NS_NONE UINT64_MAX

/* OPAQUE alone has these. A call is all that is written until something is read,
 * and all that is read until something is written again. */
typedef struct {
  uint64_t bytes_out, bytes_in;
  uint64_t wait_ns; /* of all calls: from the write that began one to the first byte of its answer */
  uint32_t calls;
  uint32_t reserved;
} weft_opaque_t;
_Static_assert(sizeof (weft_opaque_t) == 32, "so it stands in shared memory");

/* A socket address, v4 as v4-mapped v6; family 0: unknown, 1: unix. Network byte
 * order inside `ip`, host byte order in `port`. 20 bytes. */
typedef struct {
  uint8_t ip[16];
  uint16_t port;
  uint8_t family; /* 0, 1, 4, 6 */
  uint8_t reserved;
} weft_address_t;
_Static_assert(sizeof (weft_address_t) == 20, "an address is 20 bytes in shared memory");

/* One report, decoded. `name` is borrowed from where it was decoded. */
typedef struct {
  uint8_t kind;     /* weft_report_kind_t */
  uint8_t error;    /* weft_error_t */
  uint8_t reason;   /* weft_reason_t */
  uint8_t protocol; /* opaque, on its way through shared memory: weft_protocol_t; else 0 */
  uint16_t status;  /* HTTP status, 0: none */
  uint16_t name_size;
  uint32_t flags;       /* WEFT_REPORT_* */
  uint32_t instruction; /* capture: number of the instruction whose `match` and sample it passed, else 0;
                           it counts only where this capture turns out to be the top of its tree */
  uint32_t tid;
  uint8_t task[WEFT_TASK_ID_SIZE];
  uint64_t request;          /* capture: received id, 0 at a root; embed, opaque: made here */
  uint64_t subtask;          /* capture: made here; embed, opaque: sent from, 0 for an orphan */
  uint64_t start_ns, end_ns; /* CLOCK_BOOTTIME; opaque: of the first call and of the last */
  uint64_t cpu_ns;           /* thread CPU time, WEFT_NS_NONE: not known */
  weft_address_t local, peer;
  const char *name;     /* "GET /orders/{id}", not terminated, name_size bytes; opaque: the protocol */
  weft_opaque_t opaque; /* of other kinds not set */
} weft_report_t;

#endif
