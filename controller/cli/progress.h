/* SPDX-License-Identifier: Apache-2.0 */
/* progress: one line on stderr that says how far a verb is, on a terminal only,
 * gone when it is done. */
#ifndef CTL_PROGRESS_H
#define CTL_PROGRESS_H

#include <stdint.h>

typedef struct {
  int shown;         /* stderr is a terminal */
  uint64_t start_ns; /* CLOCK_MONOTONIC */
  uint64_t last_ns;  /* of the last line, 0: none stands */
} ctl_progress_t;

void ctl_progress_begin (ctl_progress_t *self);
/* Since then. */
double ctl_progress_seconds (const ctl_progress_t *self);
/* Says it, at most ten times a second, and not in the first CTL_PROGRESS_AFTER_MS. */
void ctl_progress_say (ctl_progress_t *self, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
/* Says it at once: what follows may take long and cannot tell how far it is. */
void ctl_progress_now (ctl_progress_t *self, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
/* Wipes the line. Before anything else is said, and in the end; more may follow. */
void ctl_progress_wipe (ctl_progress_t *self);
/* Whosever line it is: before an error is said. One thread. */
void ctl_progress_clear (void);

#define CTL_PROGRESS_AFTER_MS 500u
#define CTL_PROGRESS_EVERY_MS 100u

#endif
