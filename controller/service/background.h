/* SPDX-License-Identifier: Apache-2.0 */
/* background: how a controller leaves the terminal: a fork in a session of its
 * own, whose parent returns once the child listens or has said why not. */
#ifndef CTL_BACKGROUND_H
#define CTL_BACKGROUND_H

#define CTL_BACKGROUND_PARENT 1

/* Call before any thread exists. 0 in the child, *ret_ready_fd for _ready;
 * CTL_BACKGROUND_PARENT in the parent: the child listens. WEFT_E_STATE in the parent: the child ended
 * and said why on stderr. WEFT_E_TIMEOUT, WEFT_E_IO: said here. */
int ctl_background_fork (int *ret_ready_fd);
/* In the child: lets the parent go, and turns stderr to the log file beside the store. */
void ctl_background_ready (int ready_fd, const char *store_path);

#endif
