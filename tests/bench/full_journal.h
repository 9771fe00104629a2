/* SPDX-License-Identifier: Apache-2.0 */
/* full_journal: a journal at its bound, as a controller that has been under load
 * for a few seconds has it. What is in it says nothing to anybody. */
#ifndef BENCH_FULL_JOURNAL_H
#define BENCH_FULL_JOURNAL_H

#include "../../common/limits.h"
#include "../../controller/service/journal.h"

/* A status. */
static inline int bench_fill_journal (const char *dir)
{
  static const char frame[WEFT_BATCH_MAX];
  char why[300];
  ctl_journal_t *journal = NULL;
  int rc = ctl_journal_open (dir, 0, &journal, why, sizeof why);
  for (uint64_t at = 0; rc == 0 && at < WEFT_JOURNAL_MAX; at += sizeof frame)
    rc = ctl_journal_append (journal, frame, sizeof frame);
  ctl_journal_close (&journal);
  return rc;
}

#endif
