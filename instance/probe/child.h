/* SPDX-License-Identifier: Apache-2.0 */
/* child: what a new process of a tree has from its parent, and how it says that it
 * is there. libc only; no allocation, errno is the caller's to keep. */
#ifndef PROBE_CHILD_H
#define PROBE_CHILD_H

#include "../shm/layout.h"

#define PROBE_TREE_ENVIRONMENT "WEFT_PROBE_TREE" /* 64 hexadecimal digits: shm_tree_t */

/* Fills the control page and the filter of memory that is new and still nobody else's with what
 * holds in the parent's: configuration, lease, service and tree. One that its sidecar
 * left half written is not taken: the child begins idle. */
void probe_child_inherit (void *parent, void *child);
/* 1: *ret_tree is what `weft run` has told its command; 0: nothing usable. */
int probe_child_tree (shm_tree_t *ret_tree);
/* Hands the memory to the sidecar of the tree. 0; WEFT_E_BUSY: nobody takes it now;
 * WEFT_E_DENIED: who listens there is neither root nor of our user; WEFT_E_NOT_FOUND: no tree. */
int probe_child_announce (const shm_tree_t *tree, shm_arrival_t kind,
                          const uint8_t parent_start[WEFT_UUID_SIZE], int memory_fd);

#endif
