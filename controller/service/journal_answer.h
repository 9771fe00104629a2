/* SPDX-License-Identifier: Apache-2.0 */
/* journal_answer: the part of requests.h by which a client copies the journal
 * while it is written: it asks for the records behind a position and gets at most
 * WEFT_RECORD_CHUNK_MAX bytes of them, so that nobody ever waits for a slow one. */
#ifndef CTL_JOURNAL_ANSWER_H
#define CTL_JOURNAL_ANSWER_H

#include "requests.h"

int ctl_journal_answer (ctl_house_t *house, const json_t *request, ctl_reply_t *reply);

#endif
