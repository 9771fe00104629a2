/* SPDX-License-Identifier: Apache-2.0 */
/* background: a process of its own session that nobody has to wait for. */
#ifndef CAR_BACKGROUND_H
#define CAR_BACKGROUND_H

/* Forks twice. 1 in the caller; 0 in the new process: own session, "/" as
 * directory, all signals blocked, no descriptor but `keep` (count of them) and
 * stdio, which is /dev/null, stderr the file WEFT_LOG names if that is a path.
 * WEFT_E_NOMEM: nothing was forked. */
int car_background (const int *keep, unsigned count);

#endif
