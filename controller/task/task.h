/* SPDX-License-Identifier: Apache-2.0 */
/* task: what is known of one execution, as every view reads it. The ground
 * floor: no socket, no terminal, no store.
 *
 * An execution owns everything it points to except interned strings, which live
 * as long as the pool they came from. Not thread-safe. */
#ifndef CTL_TASK_H
#define CTL_TASK_H

#include <stddef.h>
#include <stdint.h>

#include "../../common/report.h"

typedef enum { CTL_KIND_TASK, CTL_KIND_ORPHAN } ctl_kind_t;

/* Order and text as in execution.schema.json. */
#define CTL_HOP_MAP(XX)                                                                                      \
  XX (ROOT, "root")                                                                                          \
  XX (PROVEN, "proven")                                                                                      \
  XX (CAPTURE_ONLY, "capture_only")                                                                          \
  XX (EMBED_ONLY, "embed_only")                                                                              \
  XX (OPAQUE, "opaque")
typedef enum {
#define XX(name, text) CTL_HOP_##name,
  CTL_HOP_MAP (XX)
#undef XX
      CTL_HOP_COUNT
} ctl_hop_t;
const char *ctl_hop_text (ctl_hop_t hop);
/* Of a weft_reason_t, for people; "" for one that is none. */
const char *ctl_reason_text (uint8_t reason);
/* Of a weft_error_t; "" for one that is none. */
const char *ctl_error_text (uint8_t error);
/* Error of a request that both sides tell of: a callee that finds its connection gone does
 * not know why, its sender does. One that is still at work is open, whoever has given it up. */
uint8_t ctl_error_of_both (uint8_t callee, uint8_t sender);
/* Of a weft_loss_t. */
const char *ctl_loss_text (int loss);
/* Of every cause. */
uint64_t ctl_losses_sum (const uint64_t losses[WEFT_LOSS_COUNT]);

#define CTL_NO_PARENT UINT32_MAX

/* One subtask, or a leaf: a request nobody captured; all that its caller asked of one opaque
 * peer (`service` is its address or "", `name` the protocol). */
typedef struct {
  uint64_t id;      /* subtask id; of an embed-only leaf: its request id, made of it if `alone`;
                       of an opaque one: its own */
  uint64_t request; /* request id that led here, 0: none */
  uint64_t caller;  /* subtask id that the request left from, 0: not known */
  uint32_t parent;  /* index in `subtasks`, CTL_NO_PARENT */
  uint32_t first_child, next_sibling; /* by start; CTL_NO_PARENT: none */
  uint32_t depth;
  ctl_hop_t hop;
  uint8_t error; /* weft_error_t */
  uint8_t on_critical_path;
  uint8_t answered;
  uint8_t inside;  /* of an embed-only leaf: an instance captures at that address, so its copy is missing */
  uint16_t status; /* 0: none */
  uint8_t orphan;  /* weft_reason_t why its caller is unknown, 0: it is none */
  uint8_t alone;   /* its request id went out several times: what is said of the sender holds for it only */
  uint32_t instruction;
  uint8_t instance[WEFT_UUID_SIZE]; /* of a leaf: the sender's */
  uint32_t pid;                     /* 0: not known */
  const char *service, *vm, *name;  /* never NULL; vm "" when not known */
  uint64_t start_ns, end_ns;        /* wall clock, ns since the Unix epoch */
  uint64_t self_ns, cpu_ns;         /* self_ns of an opaque leaf: wait_ns; cpu_ns WEFT_NS_NONE: not known */
  uint64_t sent_ns, answered_ns;    /* the caller's side of the request, 0: not known */
  uint64_t wait_ns;                 /* of an opaque leaf, as the three after it; of others 0 */
  uint64_t bytes_out, bytes_in;
  uint32_t calls;
  uint32_t host, sender_host;        /* whose clock; 0: not known. Equal numbers: the same kernel */
  int64_t shift_ns, sender_shift_ns; /* in start and end, in sent and answered (hop_clock.h) */
} ctl_subtask_t;

/* Stands for what was asked of somebody who did not tell of it: its id is no caller's. */
static inline int ctl_subtask_is_leaf (const ctl_subtask_t *subtask)
{
  return subtask->hop == CTL_HOP_EMBED_ONLY || subtask->hop == CTL_HOP_OPAQUE;
}

typedef struct {
  uint8_t task[WEFT_TASK_ID_SIZE];
  ctl_kind_t kind;
  uint8_t complete;              /* see design: root answered, all answered, no one-sided request */
  uint8_t reason;                /* weft_reason_t of an orphan */
  uint32_t instruction;          /* that started it, 0: none */
  uint32_t hosts;                /* how many kernels' clocks are in it; 1: all times compare */
  uint8_t aligned;               /* times of other hosts are shifted to the clock of the top's */
  uint64_t clock_uncertainty_ns; /* of such times; 0 where not aligned */
  const char *name;              /* of the root subtask */
  const char *origin;            /* of an orphan: the service it came from; "" of a task. Never NULL */
  uint64_t start_ns, duration_ns;
  ctl_subtask_t *subtasks; /* parents before children, siblings by start */
  uint32_t count;
  uint32_t truncated; /* subtasks left out by WEFT_SUBTASKS_PER_TASK_MAX */
  uint32_t hops[CTL_HOP_COUNT];
  struct ctl_text_t *text; /* strings of its own (unpacked), else NULL */
} ctl_execution_t;

void ctl_execution_destroy (ctl_execution_t **self_p);

/* 1: it counts as an error. An answer of 500 inside is the caller's to judge; a request without a regular
 * answer is an error whatever the caller made of it. An opaque call is his to judge, too: a connect that
 * fails may be the first of two addresses. */
int ctl_execution_failed (const ctl_execution_t *self);

/* Fills what follows from the rest: parents (from `caller`), children, depth, order,
 * self time, hop counts, critical path, name, times, complete. `subtasks` may be in
 * any order before. Callers that form a circle are cut: no input makes it loop.
 * 0 or WEFT_E_NOMEM (then self is as before). */
int ctl_execution_settle (ctl_execution_t *self);

/* Takes every subtask and one-sided request of `other`, another part of the same
 * task, into self and settles it again. `other` is emptied, not destroyed. */
int ctl_execution_merge (ctl_execution_t *self, ctl_execution_t *other);

#endif
