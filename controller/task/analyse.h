/* SPDX-License-Identifier: Apache-2.0 */
/* analyse: many executions, one answer: how many, how long, where the time
 * goes, what is missing. Executions are streamed in, the analysis comes out; it
 * travels over the control socket as JSON and is what `weft profile` and
 * `weft tasks` print.
 *
 *  A1  the order of the executions does not matter
 *  A2  counts, errors, the slowest execution and hops are exact; percentiles are
 *      exact up to CTL_ANALYSE_DURATIONS executions of one name, and those of an
 *      even sample beyond; "where the time goes" is the mean of the executions
 *      between p25 and p75 of at most CTL_ANALYSE_TREES of them
 *  A3  of a task name, orphans are counted apart: they are in `orphans` only
 *  A4  of an edge, calls and errors are exact; percentiles are exact up to
 *      CTL_EDGE_CALLS calls of it, and those of an even sample beyond
 *  A5  what is said of the slowest is said of complete executions only (why.h has
 *      the rule)
 *
 * As JSON: every struct an object, every field a key of its name, enums their text.
 *
 * One thread, no I/O. */
#ifndef CTL_ANALYSE_H
#define CTL_ANALYSE_H

#include <jansson.h>

#include "summary.h"
#include "task.h"

/* Two executions hang together in the table where service, VM, name and the path from the top agree. */
typedef struct {
  const char *service, *vm, *name; /* never NULL */
  uint32_t depth;                  /* 0: the root */
  ctl_hop_t hop;                   /* EMBED_ONLY, OPAQUE: a leaf outside weft */
  double calls;                    /* mean calls in one execution */
  uint64_t self_ns;                /* mean self time in one execution, all calls together */
  double share;                    /* of the mean duration, 0..1; parallel calls may sum up to more than 1 */
  /* Means in one execution, too: */
  uint64_t children_ns; /* that it waited for its calls to others; parallel ones count once */
  uint64_t network_ns;  /* between caller and callee, both ways; 0 where that is not known */
  uint64_t queue_ns;    /* of it, within one host: what the way there took longer than the way back */
  uint64_t critical_ns; /* of self and network, what the execution had to wait for: all rows' sum is its
                           duration */
  uint32_t parallel;    /* calls of it that one caller had open at once, at most */
} ctl_analysis_row_t;

/* Who calls what: one of these in a task name, wherever in the tree. */
typedef struct {
  const char *from_service, *from_name; /* the caller; "" of a root */
  const char *service, *vm, *name;      /* of an opaque peer: its address, "", its protocol */
  ctl_hop_t hop;                        /* OPAQUE: durations are waits, of all calls that one caller made */
  uint64_t calls, errors;               /* errors: no regular answer, or 5xx, or 429 */
  uint64_t p50_ns, p90_ns, p99_ns, max_ns; /* of one call, as its caller saw it where that is known */
} ctl_analysis_edge_t;

/* What can make an execution slow. Text as in JSON. */
#define CTL_WHY_KIND_MAP(XX)                                                                                 \
  XX (CALLS, "calls")     /* more calls of one edge from one caller */                                       \
  XX (RETRY, "retry")     /* likewise, and the first ones failed or came twice */                            \
  XX (SELF, "self")       /* longer in itself, nobody knows whether it computes */                           \
  XX (CPU, "cpu")         /* longer in itself, and computing */                                              \
  XX (WAIT, "wait")       /* longer in itself, without the CPU: a lock, a pool, a sleep */                   \
  XX (QUEUE, "queue")     /* longer before a thread of the callee took it up */                              \
  XX (NETWORK, "network") /* longer on the way */                                                            \
  XX (HELD, "held")       /* longer before a thread took it up, and in itself: threads are held up */        \
  XX (OPAQUE, "opaque")   /* longer waits for a peer that is not spoken to */
typedef enum {
#define XX(name, text) CTL_WHY_##name,
  CTL_WHY_KIND_MAP (XX)
#undef XX
      CTL_WHY_KIND_COUNT
} ctl_why_kind_t;
const char *ctl_why_kind_text (ctl_why_kind_t kind);

#define CTL_WHY_VERDICT_MAP(XX)                                                                              \
  XX (FEW, "few")         /* too few complete executions to tell */                                          \
  XX (NAMED, "named")     /* `causes` says what */                                                           \
  XX (NOTHING, "nothing") /* the slowest differ in nothing that the others' spread does not explain */       \
  XX (UNKNOWN,                                                                                               \
      "unknown") /* they differ in a part of which it is not known what happened there: the first   \
                             of `causes` */
typedef enum {
#define XX(name, text) CTL_WHY_##name,
  CTL_WHY_VERDICT_MAP (XX)
#undef XX
      CTL_WHY_VERDICT_COUNT
} ctl_why_verdict_t;
const char *ctl_why_verdict_text (ctl_why_verdict_t verdict);

/* One difference. "" where it is the same of several: an edge without a caller is every caller of that
 * name, one without a name is everything that this service does. */
typedef struct {
  ctl_why_kind_t kind;
  const char *from_service, *from_name;
  const char *service, *vm, *name;
  ctl_hop_t hop;
  uint64_t more_ns;           /* mean of the slowest minus mean of the middle half, on the critical path */
  uint64_t each_ns, usual_ns; /* of one call: in the slowest, in the middle half */
  uint64_t before_ns;         /* of more_ns: before it is taken up */
  uint64_t behind_ns; /* of more_ns: before a callee, `behind` for most of it, whose threads wait for this */
  const char *behind; /* a service; "": none */
  ctl_why_kind_t own; /* of HELD: what it is longer in itself is this kind */
  double calls, usual_calls; /* in one execution */
  double failed;             /* of `calls`: without a regular answer, 5xx, 429, or received twice */
  double apart;              /* of `calls`: between two hosts, where a queue is part of the network */
} ctl_why_cause_t;

#define CTL_WHY_CAUSES_MAX 3u /* two or three plain sentences */

typedef struct {
  ctl_why_verdict_t verdict;
  uint32_t slow, of;         /* so many of so many complete executions are the slowest */
  uint64_t slow_ns, mean_ns; /* mean durations: of the slowest, of the middle half */
  uint64_t other_ns;         /* the largest difference that is not among the causes */
  uint64_t unknown;          /* requests without a known caller that left where the unknown part is */
  ctl_why_cause_t causes[CTL_WHY_CAUSES_MAX]; /* the largest first */
  uint32_t cause_count;
} ctl_why_t;

/* One task name. Rows stand in tree order: a row's children follow it. */
typedef struct {
  const char *name;    /* "POST /checkout" */
  const char *service; /* of the root */
  uint64_t executions, complete;
  uint64_t errors; /* executions whose top answered 5xx, or in which a request had no regular answer */
  uint64_t p50_ns, p90_ns, p99_ns, max_ns;
  uint64_t total_ns;                  /* of all durations */
  uint8_t slowest[WEFT_TASK_ID_SIZE]; /* the one with max_ns */
  uint64_t mean_ns;                   /* mean duration of the executions that the rows are made of */
  uint64_t network_ns;                /* of these, mean time between callers and callees of proven hops */
  uint32_t sample;                    /* executions that the rows are made of */
  ctl_analysis_row_t *rows;
  uint32_t row_count;
  ctl_analysis_edge_t *edges; /* by calls, the most frequent first */
  uint32_t edge_count;
  uint64_t more_edges; /* calls whose edge is beyond CTL_EDGES_MAX */
  ctl_why_t why;
} ctl_analysis_name_t;

typedef struct {
  const char *service;
  uint8_t reason; /* weft_reason_t */
  uint64_t count;
} ctl_analysis_orphan_t;

/* Owns everything it points to. */
typedef struct {
  ctl_analysis_name_t *names; /* by count, the most frequent first */
  uint32_t name_count;
  uint64_t more_names; /* executions whose name is beyond WEFT_ANALYSE_NAMES_MAX */
  ctl_analysis_orphan_t *orphans;
  uint32_t orphan_count;
  uint64_t executions, complete, orphan_trees;
  uint64_t hops[CTL_HOP_COUNT];
  uint64_t truncated;               /* subtasks beyond the cap */
  uint64_t losses[WEFT_LOSS_COUNT]; /* filled in by the caller (ctl_instances_losses_in), 0 before */
  uint64_t tails;                   /* likewise (ctl_instances_tails_in) */
  json_t *text;                     /* holds the strings */
} ctl_analysis_t;

#define CTL_ANALYSE_DURATIONS 262144u /* 14 MiB of samples a name */
#define CTL_ANALYSE_TREES     1024u   /* trees whose rows are kept: enough for a mean */
#define CTL_EDGES_MAX         1024u   /* told apart in one analysis */
#define CTL_EDGE_CALLS        8192u   /* 128 KiB of samples an edge */

typedef struct ctl_analyse_t ctl_analyse_t;

ctl_analyse_t *ctl_analyse_new (void);
void ctl_analyse_destroy (ctl_analyse_t **self_p);
/* Takes one execution in; borrows it for the call. 0 or WEFT_E_NOMEM. */
int ctl_analyse_add (ctl_analyse_t *self, const ctl_execution_t *execution);
/* Counts one of which no more than its summary is looked at: it is in every figure but those that are
 * made of trees. 0 or WEFT_E_NOMEM. */
int ctl_analyse_count (ctl_analyse_t *self, const ctl_summary_t *summary);
/* The analysis of what was added so far; more may be added afterwards. */
int ctl_analyse_finish (ctl_analyse_t *self, ctl_analysis_t **ret_analysis);

void ctl_analysis_destroy (ctl_analysis_t **self_p);
/* A new reference, NULL when out of memory. */
json_t *ctl_analysis_json (const ctl_analysis_t *self);
/* The reverse; checks every field: WEFT_E_MALFORMED. Keeps nothing of `json`. */
int ctl_analysis_from_json (const json_t *json, ctl_analysis_t **ret_analysis);

#endif
