/* SPDX-License-Identifier: Apache-2.0 */
/* wire: the messages that are not batches, packed and unpacked with msgpack-c.
 * Grammar: PROTOCOL.md. Nothing here knows ZeroMQ.
 *
 * Every unpack bounds-checks, refuses a newer major version with
 * WEFT_E_VERSION, skips unknown map keys, and leaves ret_x untouched on
 * failure. Strings in the structs are terminated and cut to their arrays.
 * Pack functions return a malloc'd buffer the caller frees. */
#ifndef WEFT_WIRE_H
#define WEFT_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "endpoint.h"
#include "limits.h"
#include "network.h"
#include "protocols.h"

#define WEFT_WIRE_MAJOR 1
#define WEFT_WIRE_MINOR 1

/* ---- actions ----------------------------------------------------------- */
#define WEFT_ACTION_ROOT    0x01u
#define WEFT_ACTION_EMBED   0x02u
#define WEFT_ACTION_CAPTURE 0x04u
#define WEFT_ACTION_STACKS  0x08u

#define WEFT_CARRIER_TRACEPARENT 0u /* the W3C header where possible */
#define WEFT_CARRIER_WEFT        1u /* always the private `weft-task` */

#define WEFT_EMBED_TO_PRIVATE 0u /* loopback, RFC 1918, RFC 4193, link-local, unix */
#define WEFT_EMBED_TO_ANY     1u

/* ---- instruction ------------------------------------------------------- */
typedef struct {
  uint32_t number;                                       /* grows by one; 0 is none */
  uint32_t actions;                                      /* WEFT_ACTION_* */
  char selectors[WEFT_SELECTORS_MAX][WEFT_SELECTOR_MAX]; /* one that holds is enough */
  uint32_t selector_count;
  char match[WEFT_MATCH_MAX];      /* "POST /checkout" with * and ** wild; "" for all; roots only */
  uint32_t sample_num, sample_den; /* 1/1: every root */
  uint64_t max_roots;              /* per instance, 0: no cap */
  uint32_t carrier, embed_to;
  uint32_t lease_ms;
  /* since 1.1 */
  weft_network_t networks[WEFT_NETWORKS_MAX]; /* embed to these, not to all that are private */
  uint32_t network_count;
  char header[WEFT_HEADER_MAX]; /* lower case: roots have a field of this name; "" for any */
  char excludes[WEFT_EXCLUDES_MAX][WEFT_MATCH_MAX]; /* patterns of what is no root all the same */
  uint32_t exclude_count;
} weft_instruction_t;

/* ---- instruction bus (XPUB): [topic][map] ------------------------------- */
typedef enum {
  WEFT_BUS_HEARTBEAT = 1, /* epoch, seq, when it left */
  WEFT_BUS_STATE = 2,     /* epoch and every live instruction */
  WEFT_BUS_BATCH_ACK = 3, /* instance topic: batches up to `number` of `start` are journalled */
  WEFT_BUS_LEAVE = 4      /* instance topic: restore the VM and go */
} weft_bus_kind_t;

typedef struct {
  weft_bus_kind_t kind;
  uint8_t controller[WEFT_UUID_SIZE]; /* changes when another controller took over */
  uint64_t epoch;                     /* HEARTBEAT, STATE */
  uint64_t seq;                       /* HEARTBEAT: grows by one */
  uint8_t boot[WEFT_UUID_SIZE];       /* HEARTBEAT, STATE: of the controller's kernel */
  uint64_t sent_ns;                   /* HEARTBEAT, STATE: controller's CLOCK_MONOTONIC when it left */
  uint64_t number;                    /* BATCH_ACK */
  uint8_t start[WEFT_UUID_SIZE];      /* BATCH_ACK */
  uint32_t instruction_count;         /* STATE */
  weft_instruction_t *instructions;   /* STATE: malloc'd by unpack, freed by _clear */
} weft_bus_message_t;

int weft_bus_pack (const weft_bus_message_t *message, void **ret_data, size_t *ret_size);
int weft_bus_unpack (const void *data, size_t size, weft_bus_message_t *ret_message);
void weft_bus_clear (weft_bus_message_t *message);

/* Topics. `out` of WEFT_TOPIC_MAX bytes, terminated. */
#define WEFT_TOPIC_ALL "all"
#define WEFT_TOPIC_MAX 96
void weft_topic_instance (char out[WEFT_TOPIC_MAX], const uint8_t uuid[WEFT_UUID_SIZE]);
void weft_topic_service (char out[WEFT_TOPIC_MAX], const char *service);

/* ---- report bus (PUSH/PULL): one array [major, minor, kind, …] ---------- */
typedef enum {
  WEFT_UP_HELLO = 1, /* an instance appeared, or saw a gap and wants the state */
  WEFT_UP_ACK = 2,   /* the probe works under this epoch */
  WEFT_UP_BYE = 3,   /* the probe has left; what the check found */
  WEFT_UP_BATCH = 4  /* see batch.h */
} weft_up_kind_t;

/* HELLO, ACK, BYE share this; fields that a kind does not use are 0. */
typedef struct {
  weft_up_kind_t kind;
  uint8_t instance[WEFT_UUID_SIZE];
  uint8_t start[WEFT_UUID_SIZE];
  uint64_t epoch;  /* HELLO: last one known; ACK: the one in force */
  uint32_t active; /* ACK: WEFT_ACTION_* in force */
  /* HELLO */
  uint8_t boot[WEFT_UUID_SIZE];
  int64_t pid;
  char vm[16];
  char version[WEFT_VM_VERSION_MAX];
  char service[WEFT_SERVICE_MAX];
  char host[WEFT_HOST_MAX];
  char listens[64];  /* ":8080 :8081", for people */
  uint32_t replayed; /* 1: out of a recording, nobody is there */
  /* ACK, BYE: what the probe counts since its start */
  uint64_t bytes_total;  /* on stream sockets */
  uint64_t bytes_spoken; /* of these on connections that it understands */
  uint64_t connections_given_up;
  uint64_t requests_bare;
  uint64_t events_written; /* into its rings, or counted as lost on the way there */
  /* Since 1.1; an older peer does not say them: 0 */
  uint64_t requests_in;               /* heads that came while it was active */
  uint64_t requests_unmatched;        /* of these, without context and taken by no instruction */
  uint64_t requests_excluded;         /* started no task, as `excludes` asks */
  uint64_t rest[WEFT_PROTOCOL_COUNT]; /* of the bytes that it does not understand, by weft_protocol_t */
  /* BYE */
  uint32_t slots_written, slots_restored, slots_foreign;
  uint32_t threads_left;
  char reason[64]; /* "detach", "exited", "lost" */
} weft_up_message_t;

/* Reads major, minor and kind of any frame from the report bus. */
int weft_up_kind (const void *data, size_t size, weft_up_kind_t *ret_kind);
int weft_up_pack (const weft_up_message_t *message, void **ret_data, size_t *ret_size);
int weft_up_unpack (const void *data, size_t size, weft_up_message_t *ret_message);

#endif
