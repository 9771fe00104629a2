/* SPDX-License-Identifier: Apache-2.0 */
/* tree: the life of a sidecar: one loop for all processes of one tree, each a
 * session of its own, over one connection to the controller.
 *
 *   the process that was joined ──fork──▶ announces itself (arrivals) ──▶ session
 *                               └─exec──▶ the same below `weft run`
 *
 *  T1  it lasts until the last of its processes has ended or was left
 *  T2  what leaves a process leaves what descends from it; those that come
 *      later are left as they come
 *  T3  a sidecar that comes after one that died takes over all that is left of
 *      its tree, not only the process that it was started for
 *  T4  the uuid of a process that has ended is given to another one only after
 *      CAR_TREE_REST_MS: until then what it said is still being told apart
 *  T5  a session is stepped when something happened to it or its time has come: what
 *      one process does costs nothing for the others */
#ifndef CAR_TREE_H
#define CAR_TREE_H

#include "session.h"

#define CAR_TREE_MAX       1024  /* processes at once; more go on unseen */
#define CAR_TREE_REST_MS   10000 /* longer than a task takes to settle */
#define CAR_TREE_RESTS_MAX 4096  /* uuids that rest; more are not used again */
#define CAR_TREE_UP_MAX    32    /* generations between a started process and one that is followed */

/* Runs until T1. options: of the first process; its pidfd, and its reader, which was claimed for
 * `instance`, are taken over. wanted: the tree that `run` has told its command of, or NULL. All
 * signals are to be blocked. 0, or a status with the reason in why. */
int car_tree_run (const car_session_options_t *options, const shm_tree_t *wanted, shm_reader_t **reader_p,
                  const uint8_t instance[WEFT_UUID_SIZE], char *why, size_t why_size);

#endif
