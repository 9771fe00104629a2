/* SPDX-License-Identifier: Apache-2.0 */
/* connection: what is known of one stream socket, from its first byte on.
 *
 *                 connect/accept            foreign bytes, conflict, disproof
 *   (new fd) ───────────────▶ PROVEN ─────────────────────────▶ GIVEN_UP
 *      │ first seen in mid-life   ▲                                 ▲
 *      └──────▶ UNKNOWN ──▶ CANDIDATE ──────────────────────────────┘
 *               request after    one whole exchange in lockstep
 *               a turn           and the kernel agrees
 *
 * A direction is owned by the thread that is in a socket call for it; the two
 * directions meet only in the queue of open exchanges (single producer, single
 * consumer). A second thread in the same direction gives the connection up.
 * In the middle of a body a direction is leased to its thread, whose calls then
 * take no lock; the invariants R1 to R3 of that stand in record.h.
 *
 *  C1  bytes leave in the call in which the application wrote them
 *  C2  nothing is inserted unless the state is PROVEN and the kernel agrees
 *      (TCP_INFO, boundary proof; before the first insertion, every 64th, and
 *      after a request whose answer came before its end)
 *  C3  what the caller sees are counts of its own bytes
 *  C4  an insert is sent whole before any later byte of the application
 *  C5  GIVEN_UP is final until close; a given-up connection costs one load
 *  C6  an fd is believed only with the generation read before the system call
 *  C7  no two requests that this VM reports share a request id, but for those of
 *      the application's making (ADOPTED); one that goes out under the id with
 *      which an open subtask came is marked (FORWARDED)
 *
 * No allocation, no lock that blocks, errno preserved by every function. */
#ifndef PROBE_CONNECTION_H
#define PROBE_CONNECTION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef enum { PROBE_ROLE_UNKNOWN, PROBE_ROLE_CLIENT, PROBE_ROLE_SERVER } probe_role_t;

#define PROBE_FDS_MAX         65536 /* higher fds are not tracked, counted TABLE_FULL */
#define PROBE_CONNECTIONS_MAX 4096
#define PROBE_EXCHANGES_MAX   16                        /* pipelined per connection; beyond: given up */
#define PROBE_IOV_MAX         64                        /* longer vectors are never inserted into */
#define PROBE_EDITS_MAX       (PROBE_EXCHANGES_MAX + 1) /* one a request in flight, the rest of a cut one */
#define PROBE_EDIT_MIN        72  /* bytes that every one has room for: the line of a context */
#define PROBE_INSERT_MAX      640 /* bytes of one: a traceparent and a tracestate line */
#define PROBE_TEXTS_MAX       (2 * PROBE_INSERT_MAX + PROBE_EDITS_MAX * PROBE_EDIT_MIN) /* of all in one write */

/* One alteration of a write: `text` in front of the application's byte `offset`,
 * in place of `cut` bytes from there on (0 or all of its size). */
typedef struct {
  size_t offset, size, cut;
  uint32_t head; /* number of the head that it belongs to */
  uint8_t old;   /* the rest of an earlier one */
  char *text;    /* in `texts` of its write */
} probe_edit_t;

/* What a write needs that may be altered, on the hook's stack. Most writes are none, and some
 * come from a signal handler on a stack of its own, of which little is left. */
typedef struct {
  struct iovec iov[PROBE_IOV_MAX + 2 * PROBE_EDITS_MAX];
  probe_edit_t edit[PROBE_EDITS_MAX];
  char texts[PROBE_TEXTS_MAX];
  uint8_t snapshot[384]; /* of the outbound machine, to roll back a short write */
} probe_room_t;

/* A write in flight, on the hook's stack. */
typedef struct {
  probe_room_t *room; /* the caller's, NULL: none */
  int insert;         /* 1: send `room->iov`/`iov_count` instead of the caller's vector */
  int iov_count;
  /* private to connection.c and embed.c */
  void *record;
  uint32_t generation;
  uint32_t turn;   /* of this write in its direction */
  uint8_t opaque;  /* it is part of an opaque call (opaque.h) */
  uint8_t mode;    /* what after_write has to do */
  uint8_t skipped; /* all of it is body: no snapshot was taken */
  uint8_t fresh;   /* it begins a request: the number of heads before is snapshot enough */
  uint32_t heads;
  int flags;                   /* the caller's */
  const struct iovec *app_iov; /* the caller's vector, valid until after_write */
  int app_count;
  size_t app_size;
  size_t grown;       /* bytes that leave in addition; valid with `insert` */
  uint8_t edit_count; /* in the order of their offsets */
  uint16_t text_size; /* of `texts`, taken */
} probe_write_t;

/* What there is to do with a write. */
typedef enum {
  PROBE_WRITE_PLAIN,   /* the plain call and nothing more */
  PROBE_WRITE_TRACKED, /* the call, then after_write */
  PROBE_WRITE_ROOM     /* nothing has been done: again, with room */
} probe_write_how_t;

typedef struct {
  void *record;
  uint32_t generation;
  uint32_t turn;
  uint8_t opaque; /* the connection is given up */
} probe_read_t;

/* connect() returned 0 or EINPROGRESS / accept() returned fd: the connection is
 * seen from birth. */
void probe_connection_born (int fd, probe_role_t role);
/* connect() failed at once: an exchange cannot start. Only counted. */
void probe_connection_refused (int fd, int error);
/* About to be closed, or overwritten by dup2: open exchanges are reported. */
void probe_connection_closing (int fd);
/* dup, dup2, dup3, F_DUPFD of a tracked socket, SCM_RIGHTS: two names, give up. */
void probe_connection_shared (int fd);
/* shutdown(): SHUT_WR ends a close-delimited response. */
void probe_connection_shutdown (int fd, int how);

/* Around a write-like call, with write->room set. TRACKED: do the call with the
 * caller's vector or, if write->insert, with room->iov, then call after. ROOM: only
 * where there is none. Outbound state ("a request is out") is set before the call,
 * never after it. */
probe_write_how_t probe_connection_before_write (int fd, const struct iovec *iov, int iov_count, int flags,
                                                 probe_write_t *write);
/* `result` and errno of the call. Returns what the application may see, sets
 * errno accordingly; may send the rest of a cut insert (C4). */
ssize_t probe_connection_after_write (int fd, probe_write_t *write, ssize_t result);
/* Before bytes leave at fd in a call that cannot carry the rest of a cut insert
 * (C4). 1: nothing of one is left; 0: errno is what the application is to see
 * instead of its call. */
int probe_connection_finish (int fd);
/* sendfile/splice moved `size` bytes out that nobody looked at. */
void probe_connection_sent_opaque (int fd, size_t size);

/* Around a read-like call. before returns 0 if not tracked. Never for MSG_PEEK. */
int probe_connection_before_read (int fd, probe_read_t *ret_read);
void probe_connection_after_read (int fd, const probe_read_t *read, const struct iovec *iov, int iov_count,
                                  ssize_t result);

/* From now on bodies are counted without a lock (leases, record.h), if the kernel
 * has what that takes. Once, before the first hook is active. */
void probe_leases_begin (void);
/* Reports what is still open (end of an instruction; parked thread), then
 * forgets all connections. probe_actions must be 0 already: what is born
 * afterwards belongs to the next activation. */
void probe_connections_flush (void);
/* Takes over what the kernel has counted on quiet ones (parked thread, while active). */
void probe_connections_count (void);
/* Inserts that were cut by a short write and whose rest waits for the next
 * write. While it is not 0 the hooks should stay active a little longer (with
 * WEFT_ACTION_EMBED off), or the peer sees half a line. */
unsigned probe_connections_pending (void);
/* Forgets everything without a report (forked child). */
void probe_connections_reset (void);

#endif
