/* SPDX-License-Identifier: Apache-2.0 */
/* background: a process of its own session that nobody has to wait for. */
#ifndef CAR_BACKGROUND_H
#define CAR_BACKGROUND_H

#include <sys/types.h>

/* Forks twice. 1 in the caller; 0 in the new process: own session, "/" as
 * directory, all signals blocked, no descriptor but `keep` (count of them) and
 * stdio, which is /dev/null, stderr the file WEFT_LOG names if that is a path.
 * `of` is the process it is for, shown in its command line.
 * WEFT_E_NOMEM: nothing was forked. */
int car_background (pid_t of, const int *keep, unsigned count);

/* Remembers where the command line stands, so that a process in the background
 * does not go on under it: `pgrep -f` must not take it for the application. */
void car_background_words (int argc, char **argv);

#endif
