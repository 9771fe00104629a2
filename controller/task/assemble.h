/* SPDX-License-Identifier: Apache-2.0 */
/* assemble: makes one execution of all copies of one task id. Used by correlate
 * when a task is asked for or settled, never per report.
 *
 *  M1  the result depends on the set of copies alone, not on their order
 *  M2  of copies of one (kind, request or subtask) one counts: an answered one
 *      before an open one, else the one that ended last. Two ADOPTED embeds of one
 *      request are copies only if subtask, start and connection are equal, too
 *  M3  hostile times, ids and circles give an odd tree, never a crash or a loop
 *  M4  an embed and a capture of one request on one connection are one hop. A
 *      FORWARDED embed is joined in no other way. A capture of that request that
 *      came on none of these has an unknown caller where a FORWARDED embed that is
 *      joined with none may have led to it (M5), and where the embed of another
 *      sort was joined so: who had that passed it on
 *  M5  an ADOPTED embed is never joined with the subtask that it left from, nor
 *      with a capture that began before it on the same clock */
#ifndef CTL_ASSEMBLE_H
#define CTL_ASSEMBLE_H

#include "../../common/batch.h"
#include "entry.h"
#include "hop_clock.h"
#include "instances.h"
#include "names.h"
#include "peers.h"
#include "room.h"
#include "task.h"

/* One host: its instances share one mapping to wall time, so that no skew arises
 * between processes of one kernel. The earliest anchor known counts (M1). */
typedef struct {
  uint8_t id[WEFT_UUID_SIZE];
  weft_anchor_t anchor;
  uint32_t tag; /* of the id, never 0 */
} ctl_boot_t;
/* The number of a batch's boot, made at first sight (room for WEFT_BOOTS_MAX); `guess` is looked at
 * first. */
uint16_t ctl_boot_of (ctl_boot_t *boots, uint32_t *count, const weft_batch_head_t *head, uint16_t guess);
/* Added to a boottime of the host: the wall clock. Wraps where it has to. */
static inline uint64_t ctl_boot_shift (const ctl_boot_t *boot)
{
  return boot->anchor.real_ns - boot->anchor.boot_ns;
}
/* A boottime of an instance on the wall clock. boot_of: by instance. */
static inline uint64_t ctl_boot_wall (const ctl_boot_t *boots, const uint16_t *boot_of, uint32_t instance,
                                      uint64_t boot_ns)
{
  return boot_ns + ctl_boot_shift (&boots[boot_of[instance]]);
}

/* What it works in, and an execution whose memory the next one takes over. Zeroed: none yet. */
typedef struct {
  ctl_room_t lists, raw, order, subtasks;
  ctl_execution_t *spare;
} ctl_rooms_t;
void ctl_rooms_end (ctl_rooms_t *self);
/* As ctl_execution_destroy, of one that ctl_assemble made. */
void ctl_rooms_take_back (ctl_rooms_t *self, ctl_execution_t **execution_p);

/* Where the numbers in an entry lead. All borrowed. */
typedef struct {
  ctl_instances_t *instances;
  ctl_peers_t *peers;
  const ctl_boot_t *boots;
  const uint16_t *boot_of; /* by instance index */
  ctl_hop_clock_t *clock;
  ctl_rooms_t *rooms;
  int settled; /* the clock is told of this one; it is for the store: no self times, no critical path */
} ctl_assemble_t;

/* entries: all lines, each first one with its second behind it (N1); in any order. `truncated`: copies
 * that were not kept.
 * *ret_execution NULL: a root from inside that no instruction asked for (R3).
 * *ret_duplicates (may be NULL): copies dropped by M2, an open one that was
 * followed by its answer not counted. 0 or WEFT_E_NOMEM. */
int ctl_assemble (const ctl_assemble_t *self, const uint8_t task[WEFT_TASK_ID_SIZE],
                  const ctl_entry_t *const *entries, uint32_t count, uint32_t truncated,
                  ctl_execution_t **ret_execution, uint64_t *ret_duplicates);

#endif
