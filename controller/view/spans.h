/* SPDX-License-Identifier: Apache-2.0 */
/* spans: an execution as the spans that other tools know: what a VM did for a request
 * (SERVER), and what it waited for (CLIENT). Says which there are, whose they are, their
 * ids and times; how they are written is another room's matter (otlp, perfetto).
 *
 *   a subtask   a SERVER span: its id is the span id, its parent the request that led to it
 *   a request   a CLIENT span: its id is the span id, its parent the subtask that sent it. One
 *               that nobody captured, and an opaque call, have a CLIENT span alone
 *
 *  N1  a request of which no sender told has no span; its id stands as the parent all the same
 *  N2  ids and parents do not depend on what else is known of a task, so that a part that comes
 *      later fits; but for requests whose id went out several times
 *  N3  a request that was captured several times has one span
 *  N4  no id is zero, no span is its own ancestor within the execution, none ends before it starts */
#ifndef CTL_SPANS_H
#define CTL_SPANS_H

#include "../task/task.h"

/* Of an instance, beyond what executions tell; "" or NULL: not known. */
typedef struct {
  const char *service, *vm, *version, *host;
  int64_t pid; /* 0: not known */
} ctl_place_t;

/* WEFT_E_NOT_FOUND: nobody knows that instance (any more). */
typedef int (ctl_place_fn) (const uint8_t instance[WEFT_UUID_SIZE], ctl_place_t *ret_place, void *arg);

/* Whose a span is. Texts are the execution's, never NULL. */
typedef struct {
  uint8_t instance[WEFT_UUID_SIZE]; /* all zero: not known */
  const char *service, *vm;         /* "": not known */
  uint32_t pid;                     /* 0: not known */
} ctl_owner_t;

int ctl_owner_is (const ctl_owner_t *a, const ctl_owner_t *b);
int ctl_owner_is_known (const ctl_owner_t *owner);

typedef struct {
  int is_client;
  uint64_t id, parent; /* parent 0: none */
  uint64_t start_ns, end_ns;
  int64_t shift_ns; /* what both are ahead of the clock of their own host */
  uint32_t subtask; /* its index; of a CLIENT span the one that it led to, or the leaf */
  int has_request;  /* of a SERVER span: there is a CLIENT span of the request that led to it, … */
  uint32_t request; /* … told for this subtask */
  int is_top;       /* what is known of the task as a whole belongs here */
  ctl_owner_t owner;
} ctl_span_t;

/* As many as it has, or more by those that N3 leaves out. */
uint32_t ctl_spans_most (const ctl_execution_t *execution);
/* Calls fn for each, requests before what they led to, callers before callees. Stops with the
 * callback's non-zero return. WEFT_E_NOMEM. */
int ctl_spans_each (const ctl_execution_t *execution, int (*fn) (const ctl_span_t *span, void *arg),
                    void *arg);

#endif
