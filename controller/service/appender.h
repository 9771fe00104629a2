/* SPDX-License-Identifier: Apache-2.0 */
/* appender: a thread that appends to a journal while its owner does something
 * else: copying 64 KiB into the page cache takes as long as correlating a
 * third of them.
 *
 *   begin ──▶ begun ──▶ under way ──▶ end
 *               └──▶ taken back by end, which appends itself: where all CPUs are busy the thread would
 *                    only be waited for
 *
 *  A1  from `under way` on the journal and the frames belong to who appends, the thread or end; before
 *      begin and after end to the owner; in between to nobody
 *  A2  at most one append is under way
 * One owner thread. */
#ifndef CTL_APPENDER_H
#define CTL_APPENDER_H

#include "journal.h"

typedef struct ctl_appender_t ctl_appender_t;

/* Starts the thread, which takes no signals. NULL: it could not be started. */
ctl_appender_t *ctl_appender_new (void);
/* Waits for what is under way. */
void ctl_appender_destroy (ctl_appender_t **self_p);

/* Begins ctl_journal_append_all with these frames; all borrowed until end. */
void ctl_appender_begin (ctl_appender_t *self, ctl_journal_t *journal, const ctl_journal_frame_t *frames,
                         unsigned count);
/* Does it or waits for it; its status. */
int ctl_appender_end (ctl_appender_t *self);

#endif
