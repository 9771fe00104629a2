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
} ctl_analysis_row_t;

/* One task name. Rows stand in tree order: a row's children follow it. */
typedef struct {
  const char *name;    /* "POST /checkout" */
  const char *service; /* of the root */
  uint64_t executions, complete;
  uint64_t errors; /* executions whose top answered 5xx, or in which a request had no regular answer */
  uint64_t p50_ns, p90_ns, p99_ns, max_ns;
  uint8_t slowest[WEFT_TASK_ID_SIZE]; /* the one with max_ns */
  uint64_t mean_ns;                   /* mean duration of the executions that the rows are made of */
  uint64_t network_ns;                /* of these, mean time between callers and callees of proven hops */
  uint32_t sample;                    /* executions that the rows are made of */
  ctl_analysis_row_t *rows;
  uint32_t row_count;
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

#define CTL_ANALYSE_DURATIONS 262144u /* 10 MiB of samples a name */
#define CTL_ANALYSE_TREES     1024u   /* trees whose rows are kept: enough for a mean */

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
