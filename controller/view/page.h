/* SPDX-License-Identifier: Apache-2.0 */
/* page: what `weft report` puts into its file: executions are taken in one by
 * one, and written as one self-contained HTML page (html/page.html, .css, .js)
 * with its data in it.
 *
 *  P1  the page asks nobody for anything: its policy forbids every request, and
 *      lets one script and one style run, by the digests of their bytes
 *  P2  nothing that came from elsewhere ends the data or becomes markup: the data
 *      is ASCII without < > &, and the script puts it into text nodes only
 *  P3  the page is bounded: CTL_PAGE_SUBTASKS_MAX subtasks are in it; an execution
 *      whose tree is left out is listed, and what was left out is said
 *
 * One thread, no I/O but the stream. */
#ifndef CTL_PAGE_H
#define CTL_PAGE_H

#include <jansson.h>
#include <stdio.h>

#include "../task/task.h"

#define CTL_PAGE_EXECUTIONS_MAX 10000u       /* listed, the newest, where --limit says nothing else */
#define CTL_PAGE_SUBTASKS_MAX   100000u      /* in all trees together: some 12 MB of page */
#define CTL_PAGE_SLOWEST        8u           /* of each task name: trees of the slowest, */
#define CTL_PAGE_MEDIAN         3u           /* of those in the middle */
#define CTL_PAGE_FAILED         3u           /* and of the slowest with an error */
#define CTL_PAGE_KEPT_MAX       (256u << 20) /* bytes of packed executions to choose trees from */

typedef struct ctl_page_t ctl_page_t;

/* What is said of the whole; borrowed. */
typedef struct {
  const json_t *analysis;    /* of ctl_analysis_json */
  const json_t *sentences;   /* why slow: a text for each name of the analysis, or NULL */
  const json_t *instances;   /* as the controller lists them, or NULL */
  const char *scope;         /* which executions were asked for, for people */
  const uint8_t *task;       /* opened first, its tree is there in any case; NULL: none */
  uint64_t from_ns, made_ns; /* wall clock; from_ns 0: everything */
  int more;                  /* there were more executions than are listed */
} ctl_page_about_t;

ctl_page_t *ctl_page_new (void);
void ctl_page_destroy (ctl_page_t **self_p);
/* One packed execution, borrowed. WEFT_E_NOMEM, or as ctl_execution_unpack. */
int ctl_page_add (ctl_page_t *self, const void *data, size_t size);
int ctl_page_has (const ctl_page_t *self, const uint8_t task[WEFT_TASK_ID_SIZE]);
uint32_t ctl_page_count (const ctl_page_t *self);
/* The whole page. WEFT_E_IO, WEFT_E_NOMEM. */
int ctl_page_write (ctl_page_t *self, FILE *out, const ctl_page_about_t *about);

#endif
