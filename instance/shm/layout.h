/* SPDX-License-Identifier: Apache-2.0 */
/* layout: everything that a probe and its sidecar share, byte by byte.
 *
 * One sealed memfd (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), made by the
 * probe under the name SHM_MEMFD_NAME; the sidecar opens it through
 * /proc/PID/fd/N, or is handed it by a process that announces itself. libc free.
 *
 *   0x000000  shm_head_t      identity; constant after `magic` is set last
 *   0x001000  shm_control_t   sidecar -> probe: what to do; lease
 *   0x002000  shm_status_t    probe -> sidecar: what is; counters
 *   0x002800  shm_rest_t      probe -> sidecar: bytes that are not understood
 *   0x003000  shm_ring_t[64]  ring heads, one cache-line pair each side
 *   0x00b000  shm_filter_t    sidecar -> probe: peers, field names, exclusions
 *   0x010000  ring data       64 x 64 KiB
 *   0x410000  spool           64 slots x (64 B head + 64 KiB), sidecar only
 *
 * Invariants
 *  L1  every field has one writer, named in its comment; the other side only reads. Before
 *      anybody else has seen the memory, a probe fills in `tree`, and a forked child what
 *      its parent's control page and filter hold
 *  L2  a reader trusts nothing: sizes and offsets are checked against the
 *      constants here, never against values in the memory
 *  L3  structs only grow at the end, within their page
 *  L4  a record in a ring is whole once `head` has passed it (release/acquire)
 *  L5  `head` and `tail` only grow; head - tail <= SHM_RING_SIZE
 *  L6  batch N is sealed <=> what `pending` says for N holds: a sidecar that finds
 *      N in the spool and batch_last below N brings tails and counts (the broken
 *      locks among them) up to it */
#ifndef SHM_LAYOUT_H
#define SHM_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "../../common/limits.h"
#include "../../common/network.h"
#include "../../common/protocols.h"
#include "../../common/report.h"

#define SHM_MEMFD_NAME "weft-probe"
#define SHM_MAGIC      0x314d485354464557ull /* "WEFTSHM1", little endian */
#define SHM_VERSION    2 /* 2: shm_rest_t, events of kind OPAQUE, tree; a reader takes 1 as well */

#define SHM_RINGS           64     /* more threads share; memory must not grow with threads */
#define SHM_RING_SIZE       65536u /* power of two; about 300 events */
#define SHM_SPOOL_SLOTS     64     /* 4 MiB of unacknowledged batches: about 40,000 reports */
#define SHM_SPOOL_SLOT_SIZE (64u + WEFT_BATCH_MAX)

#define SHM_HEAD_AT    0x0u
#define SHM_CONTROL_AT 0x1000u
#define SHM_STATUS_AT  0x2000u
#define SHM_REST_AT    0x2800u
#define SHM_RINGS_AT   0x3000u
#define SHM_FILTER_AT  0xb000u
#define SHM_DATA_AT    0x10000u
#define SHM_SPOOL_AT   (SHM_DATA_AT + SHM_RINGS * SHM_RING_SIZE)
#define SHM_SIZE       (SHM_SPOOL_AT + SHM_SPOOL_SLOTS * SHM_SPOOL_SLOT_SIZE)

/* ---- 0x0000: written by the probe once --------------------------------- */
typedef struct {
  uint64_t magic; /* written last, release */
  uint16_t version;
  uint16_t struct_size; /* of this struct */
  uint32_t total_size;  /* SHM_SIZE */
  uint32_t pid;         /* as the probe sees it */
  uint32_t uid;
  uint8_t start[WEFT_UUID_SIZE]; /* start id: new for every life and every re-attach */
  char vm[16];                   /* "jvm", "cpython"; "" not known yet */
  char vm_version[WEFT_VM_VERSION_MAX];
  uint64_t probe_base; /* address the library is mapped at */
} shm_head_t;

/* ---- 0x1000: written by the sidecar, read by the probe ------------------ */
typedef enum { SHM_COMMAND_NONE = 0, SHM_COMMAND_CONFIGURE = 1, SHM_COMMAND_LEAVE = 2 } shm_command_t;

#define SHM_RULES_MAX WEFT_INSTRUCTIONS_MAX
/* One `root` rule: which requests without context start a task. */
typedef struct {
  uint32_t instruction;
  uint32_t sample_num, sample_den; /* den >= 1 */
  uint32_t reserved;
  uint64_t max_roots;         /* 0: no cap */
  char match[WEFT_MATCH_MAX]; /* terminated; "" matches all */
} shm_rule_t;

/* Which tree of processes this is. The first half, in hexadecimal digits behind SHM_TREE_PREFIX, is
 * the name of the abstract unix socket on which its sidecar listens; whoever knows the
 * second half has it from a process of the tree. All zero: nobody follows children. */
#define SHM_TREE_NAME_SIZE 16
#define SHM_TREE_KEY_SIZE  16
#define SHM_TREE_PREFIX    "weft-tree-"
typedef struct {
  uint8_t name[SHM_TREE_NAME_SIZE], key[SHM_TREE_KEY_SIZE];
} shm_tree_t;

/* A process that announces itself connects (SOCK_SEQPACKET), sends this in one message
 * with the descriptor of its memory (SCM_RIGHTS), and closes. */
typedef struct {
  uint64_t magic; /* SHM_MAGIC */
  uint32_t kind;  /* shm_arrival_t */
  uint32_t reserved;
  uint8_t key[SHM_TREE_KEY_SIZE];
  uint8_t parent_start[WEFT_UUID_SIZE]; /* of the memory it was forked from; zero: of none */
} shm_announcement_t;
typedef enum { SHM_ARRIVAL_FORKED = 1, SHM_ARRIVAL_STARTED = 2 } shm_arrival_t;
_Static_assert(sizeof (shm_announcement_t) == 48, "announcement");

typedef struct {
  /* Futex, atomic. The sidecar raises it by one and wakes it after it changed
   * anything below; the probe's parked thread waits on it. The one word with two
   * writers: other threads of the probe raise it too when they have work for it. */
  uint32_t doorbell;
  uint32_t command; /* shm_command_t */
  /* Even: stable. The sidecar makes it odd, writes `actions`…`rules`, makes it even. */
  uint32_t config_seq;
  uint32_t actions; /* WEFT_ACTION_*, 0: idle */
  uint32_t carrier, embed_to;
  uint32_t rule_count;
  uint32_t reserved;
  /* CLOCK_MONOTONIC; outside the sequence, stored atomically. Past it the
   * probe makes itself idle, whatever `actions` says. */
  uint64_t lease_until_ns;
  uint64_t sidecar_pid; /* claimed by compare-and-swap: one sidecar at a time */
  shm_rule_t rules[SHM_RULES_MAX];
  /* For the sidecar that comes after one that died; nothing to the probe. */
  uint8_t instance[WEFT_UUID_SIZE];             /* all zero: nobody has claimed it yet */
  uint64_t batch_last;                          /* highest batch number ever sealed */
  uint64_t lost_reported[WEFT_LOSS_WIRE_COUNT]; /* of status.lost, what batches have told */
  char service[WEFT_SERVICE_MAX];               /* name that the user gave, "": none */
  uint64_t pending_number;                      /* of the batch about to be sealed; release (L6) */
  uint64_t pending_tail[SHM_RINGS];
  uint64_t pending_told[WEFT_LOSS_WIRE_COUNT];
  uint64_t broken_reported; /* locks of dead owners, what batches have told */
  uint64_t pending_broken;  /* what it is once the pending batch is sealed */
  shm_tree_t tree;          /* where a forked child announces itself; handed down in its first control page */
} shm_control_t;

/* ---- 0xb000: written by the sidecar, under config_seq like actions…rules --- */
#define SHM_EMBED_TO_LISTED 2u /* in embed_to: `networks` alone; an older probe takes it for private */
#define SHM_NETWORKS_MAX    64 /* of several instructions; beyond, fewer are embedded to */
#define SHM_EXCLUDES_MAX    96 /* distinct ones of several instructions; beyond, fewer are excluded */
typedef struct {
  uint32_t network_count, exclude_count;
  weft_network_t networks[SHM_NETWORKS_MAX];
  char header[SHM_RULES_MAX][WEFT_HEADER_MAX]; /* of the rule of this index; "" for any */
  uint16_t exclude_rules[SHM_EXCLUDES_MAX];    /* bit per rule that it is for */
  char exclude[SHM_EXCLUDES_MAX][WEFT_MATCH_MAX];
} shm_filter_t;
_Static_assert(SHM_RULES_MAX <= 16, "a bit per rule");

/* ---- 0x2000: written by the probe, read by the sidecar ------------------ */
typedef enum {
  SHM_STATE_NONE = 0,
  SHM_STATE_IDLE = 1,   /* hooks in place, nothing active */
  SHM_STATE_ACTIVE = 2, /* works under config_seen */
  SHM_STATE_LEAVING = 3,
  SHM_STATE_LEFT = 4 /* slots restored, thread about to end; nothing is written after this */
} shm_state_t;

/* What the probe counts; all atomic, relaxed. */
#define SHM_COUNTER_MAP(XX)                                                                                  \
  XX (BYTES_TOTAL)      /* on stream sockets while active */                                                 \
  XX (BYTES_SPOKEN)     /* of these on connections it understands */                                         \
  XX (CONNECTIONS)      /* tracked since start */                                                            \
  XX (GIVEN_UP_OTHER)   /* connection given up: not HTTP/1 */                                                \
  XX (GIVEN_UP_FRAMING) /* conflicting lengths, bad chunk, … */                                            \
  XX (GIVEN_UP_TUNNEL)  /* CONNECT, Upgrade */                                                               \
  XX (GIVEN_UP_PROOF)   /* the kernel saw bytes that we did not */                                           \
  XX (GIVEN_UP_BUSY)    /* two threads in one direction */                                                   \
  XX (UNPROVEN)         /* requests on connections from before the attach */                                 \
  XX (REQUESTS_IN)      /* request heads seen inbound while active */                                        \
  XX (REQUESTS_OUT)     /* … outbound */                                                                   \
  XX (EMBEDDED)         /* heads that carry our id */                                                        \
  XX (BARE)             /* heads that could not be marked */                                                 \
  XX (CAPTURED)                                                                                              \
  XX (ROOTS)                                                                                                 \
  XX (UNMATCHED)  /* came without context, no rule matched */                                                \
  XX (TABLE_FULL) /* fd, connection or subtask table full */                                                 \
  XX (FAULTS)     /* internal doubt, did nothing instead */                                                  \
  XX (EXCLUDED)   /* of UNMATCHED: a rule would hold, but excludes it */                                     \
  XX (SHARED)     /* connection to an opaque peer that several subtasks use at once: not followed */
typedef enum {
#define XX(name) SHM_COUNT_##name,
  SHM_COUNTER_MAP (XX)
#undef XX
      SHM_COUNTERS
} shm_counter_t;

typedef struct {
  uint32_t state;                                        /* shm_state_t; futex: woken on every change */
  uint32_t config_seen;                                  /* config_seq of the configuration in force */
  uint32_t actions;                                      /* in force */
  uint32_t slots_written, slots_restored, slots_foreign; /* GOT slots */
  uint32_t objects;                                      /* loaded objects looked at */
  uint32_t reserved;
  uint64_t heartbeat_ns;               /* CLOCK_MONOTONIC, parked thread's last wake-up */
  uint64_t lost[WEFT_LOSS_WIRE_COUNT]; /* monotonic counts by cause */
  uint64_t counter[SHM_COUNTERS];
} shm_status_t;

/* ---- 0x2800: written by the probe, read by the sidecar ------------------ */
typedef struct {
  uint64_t bytes[64]; /* of BYTES_TOTAL less BYTES_SPOKEN, by weft_protocol_t; atomic, relaxed */
} shm_rest_t;
_Static_assert(WEFT_PROTOCOL_COUNT <= 64, "each protocol has its place");

/* ---- 0x3000: rings ------------------------------------------------------ */
typedef struct {
  /* writer's lines */
  uint32_t owner; /* tid that borrows the ring for one write, 0: free */
  uint32_t reserved;
  uint64_t head;    /* bytes ever written; writer, release */
  uint64_t written; /* records ever written */
  uint8_t pad0[104];
  /* reader's lines */
  uint64_t tail; /* bytes ever read; sidecar, release */
  uint8_t pad1[376];
} shm_ring_t;
_Static_assert(sizeof (shm_ring_t) == 512, "64 ring heads fill 32 KiB");

/* A record in a ring: never wraps (a record that would is preceded by a
 * WEFT padding record: kind 0), 8-byte aligned. */
typedef struct {
  uint32_t size; /* whole record, multiple of 8, <= SHM_EVENT_MAX */
  uint8_t kind;  /* weft_report_kind_t; 0: padding */
  uint8_t error, reason;
  uint8_t protocol; /* OPAQUE: weft_protocol_t; else 0 */
  uint16_t status, name_size;
  uint32_t flags, instruction, tid;
  uint8_t task[WEFT_TASK_ID_SIZE];
  uint64_t request, subtask, start_ns, end_ns, cpu_ns;
  weft_address_t local, peer;
  /* name_size bytes of name follow, then zeros to the multiple of 8; where the kind is
   * OPAQUE there is no name, and one weft_opaque_t follows */
} shm_event_t;
#define SHM_EVENT_NAME_AT 120u
_Static_assert(sizeof (shm_event_t) == SHM_EVENT_NAME_AT, "the name follows at 120");
#define SHM_EVENT_MAX    (SHM_EVENT_NAME_AT + WEFT_NAME_MAX)
#define SHM_EVENT_OPAQUE (SHM_EVENT_NAME_AT + (uint32_t) sizeof (weft_opaque_t)) /* bytes of such an event */

/* ---- 0x410000: spool, sidecar only -------------------------------------- */
typedef struct {
  uint64_t number; /* of the batch; 0: free. Stored last, release */
  uint32_t size;
  uint32_t checksum;  /* CRC-32C of the batch: a slot torn by a crash is dropped */
  uint64_t pushed_ns; /* CLOCK_MONOTONIC of the last push */
  uint8_t reserved[40];
} shm_spool_t;
_Static_assert(sizeof (shm_spool_t) == 64, "spool head");

_Static_assert(sizeof (shm_head_t) <= 0x1000 && sizeof (shm_control_t) <= 0x1000 &&
                   sizeof (shm_status_t) <= SHM_REST_AT - SHM_STATUS_AT &&
                   sizeof (shm_rest_t) <= SHM_RINGS_AT - SHM_REST_AT,
               "one page each, the third in two halves");
_Static_assert(SHM_RINGS_AT + SHM_RINGS * sizeof (shm_ring_t) <= SHM_FILTER_AT &&
                   SHM_FILTER_AT + sizeof (shm_filter_t) <= SHM_DATA_AT,
               "the filter fits behind the ring heads");

static inline shm_control_t *shm_control (void *base)
{
  return (shm_control_t *) ((char *) base + SHM_CONTROL_AT);
}
static inline shm_filter_t *shm_filter (void *base)
{
  return (shm_filter_t *) ((char *) base + SHM_FILTER_AT);
}
static inline shm_status_t *shm_status (void *base)
{
  return (shm_status_t *) ((char *) base + SHM_STATUS_AT);
}
static inline shm_rest_t *shm_rest (void *base)
{
  return (shm_rest_t *) ((char *) base + SHM_REST_AT);
}
static inline shm_ring_t *shm_ring (void *base, unsigned n)
{
  return (shm_ring_t *) ((char *) base + SHM_RINGS_AT) + n;
}
static inline uint8_t *shm_ring_data (void *base, unsigned n)
{
  return (uint8_t *) base + SHM_DATA_AT + (size_t) n * SHM_RING_SIZE;
}
static inline shm_spool_t *shm_spool (void *base, unsigned n)
{
  return (shm_spool_t *) ((char *) base + SHM_SPOOL_AT + (size_t) n * SHM_SPOOL_SLOT_SIZE);
}

#endif
