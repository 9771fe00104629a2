/* SPDX-License-Identifier: Apache-2.0 */
/* pack: executions as bytes: dozens in a row of the store, one in a frame of the
 * control socket. Only what cannot be derived is kept; unpacking settles again, so
 * damaged bytes cannot make a damaged tree. By hand: one goes to the store for each
 * task, and what it writes costs more than the rest of the way there.
 *
 *   pack        0x97 0x02, count (1 byte, 1 to CTL_PACK_MOST), 0xff
 *               where each execution ends, counted from the first (4 bytes each, little endian)
 *               executions
 *               dictionary: texts (number), each its size (number) and its bytes
 *                           resources (number), each: instance (16 bytes), pid, places of service and vm in texts
 *   execution   what follows (CTL_PACK_HEAD, 1 byte), task (16 bytes), start of its first subtask (8 bytes)
 *               , count of subtasks (number) , the numbers that follow, in the order of CTL_PACK_HEAD
 *               , subtasks
 *   subtask     its hop and what follows (CTL_PACK_FLAG, 2 bytes), id (8 bytes) , request (8 bytes)
 *               , caller: how many subtasks before this one (number), or 8 bytes
 *               , places of its resource and its name , start (after its near caller's, else the first's), duration
 *               , sent (before start), answered (after end) , cpu , status
 *               , what is rare (CTL_PACK_RARE, 1 byte) and follows
 *               , of an opaque leaf: calls, bytes out, bytes in, wait
 *               , of several hosts: host, sender's host, shift, sender's shift
 *
 * Numbers and places as in varint.h; 8 bytes are little endian. Start, sent, answered and shifts may be
 * negative (zigzag); differences are modulo 2^64.
 *
 *  P1  a reader of version 1 takes the first bytes for an array of 7 and version 2, which it does not know;
 *      the fourth makes the first four no place where a task of a row of schema 3 can end (store_block.c)
 *  P2  one execution is read without another; a damaged one hides no other
 *  P3  every byte is accounted for: what is cut off, or has bytes too many, is refused
 *  P4  hostile bytes cost memory and time in proportion to how many there are */
#ifndef CTL_PACK_H
#define CTL_PACK_H

#include "dictionary.h"

#define CTL_PACK_MOST 128u

/* Bits of an execution, in the order in which what they announce follows. */
#define CTL_PACK_HEAD_TRUNCATED   0x01u
#define CTL_PACK_HEAD_HOSTS       0x02u /* else 1 */
#define CTL_PACK_HEAD_ORIGIN      0x04u /* its place in texts; else "" */
#define CTL_PACK_HEAD_UNCERTAINTY 0x08u
#define CTL_PACK_HEAD_HOST        0x10u /* of all its subtasks */
#define CTL_PACK_HEAD_ALIGNED     0x20u /* nothing follows */
#define CTL_PACK_HEAD_KNOWN       0x3fu

/* Bits of a subtask. */
#define CTL_PACK_FLAG_HOP      0x0007u /* ctl_hop_t */
#define CTL_PACK_FLAG_ANSWERED 0x0008u
#define CTL_PACK_FLAG_REQUEST  0x0010u /* follows */
#define CTL_PACK_FLAG_LEAF     0x0020u /* its request is its id */
#define CTL_PACK_FLAG_NEAR     0x0040u /* its caller is before it */
#define CTL_PACK_FLAG_CALLER   0x0080u /* its caller follows in 8 bytes */
#define CTL_PACK_FLAG_SIDES    0x0100u /* sent and answered follow; else 0 */
#define CTL_PACK_FLAG_CPU      0x0200u /* follows; else not known */
#define CTL_PACK_FLAG_OK       0x0400u /* status 200 */
#define CTL_PACK_FLAG_STATUS   0x0800u /* follows */
#define CTL_PACK_FLAG_RARE     0x1000u /* follows */
#define CTL_PACK_FLAG_KNOWN    0x1fffu

#define CTL_PACK_RARE_ERROR       0x01u
#define CTL_PACK_RARE_ORPHAN      0x02u
#define CTL_PACK_RARE_INSTRUCTION 0x04u
#define CTL_PACK_RARE_ALONE       0x08u /* nothing follows, as of the next */
#define CTL_PACK_RARE_INSIDE      0x10u
#define CTL_PACK_RARE_KNOWN       0x1fu

#define CTL_PACK_SHIFT_MAX (1ull << 62) /* as zigzag: no sum of it and a time overflows */

/* One that is being filled. */
typedef struct ctl_pack_t ctl_pack_t;
ctl_pack_t *ctl_pack_new (void); /* NULL: no memory */
void ctl_pack_destroy (ctl_pack_t **self_p);
void ctl_pack_empty (ctl_pack_t *self);
/* WEFT_E_FULL (it holds CTL_PACK_MOST), WEFT_E_NOMEM: it holds what it held. Interned
 * texts (task.h) must stay where and as they are until it is emptied; an execution's own ones may go. */
int ctl_pack_add (ctl_pack_t *self, const ctl_execution_t *execution);
/* Without the one that was added last. */
void ctl_pack_take_back (ctl_pack_t *self);
uint32_t ctl_pack_count (const ctl_pack_t *self);
size_t ctl_pack_size (const ctl_pack_t *self);
/* The bytes of those it holds, at least one; borrowed until it changes. WEFT_E_NOMEM. */
int ctl_pack_finish (ctl_pack_t *self, const void **ret_data, size_t *ret_size);

/* How many are in a pack; 0: this is none. */
uint32_t ctl_pack_count_of (const void *data, size_t size);
/* One of them; WEFT_E_MALFORMED, WEFT_E_NOMEM. */
int ctl_pack_read (const void *data, size_t size, uint32_t place, ctl_execution_t **ret_execution);

/* A pack of one, malloc'd. WEFT_E_NOMEM. */
int ctl_execution_pack (const ctl_execution_t *self, void **ret_data, size_t *ret_size);
/* Of one, of version 1 (pack_old.h) as well. WEFT_E_MALFORMED, WEFT_E_VERSION, WEFT_E_NOMEM. */
int ctl_execution_unpack (const void *data, size_t size, ctl_execution_t **ret_self);

#endif
