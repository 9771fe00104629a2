/* SPDX-License-Identifier: Apache-2.0 */
/* requests: what a client of the control socket can ask for, and the answer.
 * One JSON object in, {"op": …, …}; one out, {"ok": true, …} or {"ok": false,
 * "status": "NOT_FOUND", "why": …}, followed by frames of packed executions
 * where the request asks for them.
 *
 *   ping                                   -> version, pid, controller, epoch
 *   instances   uuids[] pids[] present notable recent_ms -> instances[]: all, or those that each one given
 *               lets through: one of these; one that has not left; or of which something is missing; or
 *               that was heard within this time
 *   losses                                 -> intervals[]
 *   instruct    actions[] selectors[] match sample[2] max carrier embed_to networks[] header excludes[]
 *               lease_ms for_ms            -> number, epoch
 *   instructions                           -> instructions[]
 *   instruction number                     -> live, expected, active, silent[]
 *   stop        number                     -> epoch
 *   detach      uuids[] pids[] all when_free -> uuids[] pids[] later[]: those that leave once nobody
 *               needs them any more (claims.h, H1)
 *   claim, release, keep: see claims.h
 *   waiting     number                     -> waiting
 *   tasks       which                      -> analysis
 *   each        which limit order          -> count, more, frames: the newest, or by order "slowest"
 *               which: instructions[] from_ns to_ns name match service slower_ns errors; see lookups.c
 *   show        task                       -> one frame
 *   journal     segment offset             -> segment, offset, end_segment, end_offset, gaps, a frame of records
 *               (without them: where it ends, and who is there as records)
 *   stats                                  -> intake, correlate, strangers, audit, otlp
 *   quit
 * One thread. */
#ifndef CTL_REQUESTS_H
#define CTL_REQUESTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "../task/correlate.h"
#include "../task/instances.h"
#include "../task/store.h"
#include "audit.h"
#include "broadcast.h"
#include "exporter.h"
#include "guard.h"
#include "instructions.h"
#include "intake.h"
#include "sink.h"

/* What the answers are made of; all borrowed. */
typedef struct {
  ctl_instances_t *instances;
  ctl_instructions_t *instructions;
  ctl_correlate_t *correlate;
  ctl_sink_t *sink;           /* may be NULL */
  ctl_store_t *store;         /* may be NULL */
  ctl_broadcast_t *broadcast; /* may be NULL: nothing is sent (a test) */
  ctl_intake_t *intake;       /* may be NULL */
  ctl_journal_t *journal;     /* may be NULL: nothing is remembered (a test) */
  struct ctl_claims_t *claims;
  ctl_guard_t *guard;       /* may be NULL: strangers are not counted (a test) */
  ctl_exporter_t *exporter; /* may be NULL: nothing goes out */
  ctl_audit_t *audit;       /* may be NULL: nothing is written down (a test) */
  const char *who;          /* asks, as the guard named it; set for each request, may be NULL */
  int quit;                 /* set by the request of that name */
} ctl_house_t;

typedef struct {
  void *data;
  size_t size;
} ctl_frame_t;

/* Owns what it points to; all zero before, cleared after use. */
typedef struct {
  json_t *body;
  ctl_frame_t *frames;
  uint32_t frame_count, frame_room;
} ctl_reply_t;

/* Answers whatever text there is; the body is set unless memory is short (WEFT_E_NOMEM). */
int ctl_requests_answer (ctl_house_t *house, const char *text, size_t size, ctl_reply_t *reply);
void ctl_reply_clear (ctl_reply_t *reply);

/* ---- for the rooms that answer a part (lookups.h) ----------------------- */
/* {"ok": false, …} in place of what the body was. Returns the status. */
int ctl_reply_refuse (ctl_reply_t *reply, int status, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
/* Tells an instance to restore its VM and go. */
void ctl_request_leave (ctl_house_t *house, ctl_instance_t *instance);
/* Takes the data, malloc'd, also on failure. WEFT_E_NOMEM. */
int ctl_reply_frame (ctl_reply_t *reply, void *data, size_t size);

#endif
