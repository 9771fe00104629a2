/* SPDX-License-Identifier: Apache-2.0 */
/* fold: which subtasks of an execution a waterfall leaves out, and the lines that
 * say so. Whatever the tree's form, about CTL_FOLD_LINES lines are left.
 *
 *   like   of more than CTL_FOLD_SIMILAR siblings of one service and name the first
 *          CTL_FOLD_FIRST stand, and one line for the others
 *   wide   of more than CTL_FOLD_SIBLINGS different ones those stand that took longest,
 *          some of them of those that went wrong, and one line for the others
 *   deep   what is beyond a depth (CTL_FOLD_DEPTH, less where there would be too many
 *          lines): one line
 *
 *  F1  what is left out is counted in exactly one line, with its subtrees in `wide` and `deep`
 *  F2  opaque leaves of one caller, peer and error are one line, whatever their number */
#ifndef CTL_FOLD_H
#define CTL_FOLD_H

#include "../task/task.h"

#define CTL_FOLD_SIMILAR  3u
#define CTL_FOLD_FIRST    2u
#define CTL_FOLD_SIBLINGS 40u
#define CTL_FOLD_FAILED   10u /* of them, that went wrong, if there are so many */
#define CTL_FOLD_DEPTH    32u
#define CTL_FOLD_LINES    400u

typedef enum { CTL_FOLD_NONE, CTL_FOLD_LIKE, CTL_FOLD_WIDE, CTL_FOLD_DEEP } ctl_fold_kind_t;

/* One of these for each subtask, at its index. */
typedef struct {
  uint8_t hidden;
  uint8_t last;    /* no sibling that is seen, and no line, follows */
  uint32_t leader; /* first sibling of its like */
  uint32_t into;   /* of one of the topmost that a line stands for: where that line is; else CTL_NO_PARENT */
  uint64_t calls, wait_ns; /* of an opaque leaf that is seen: of all that it stands for */

  /* A line in place of this one, which is hidden then, and of others. */
  ctl_fold_kind_t line;
  uint32_t count; /* subtasks that it stands for */
  uint32_t failed;
  uint8_t critical;
  uint64_t ns; /* durations of the topmost of them */
} ctl_fold_t;

/* `ret_fold` has a place for each subtask. all: nothing is left out. WEFT_E_NOMEM. */
int ctl_fold (const ctl_execution_t *execution, int all, ctl_fold_t *ret_fold);
/* It counts as gone wrong: no regular answer, or 5xx. */
int ctl_fold_is_bad (const ctl_subtask_t *subtask);

#endif
