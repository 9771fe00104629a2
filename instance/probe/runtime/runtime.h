/* SPDX-License-Identifier: Apache-2.0 */
/* runtime: which VM this process is, found by the symbols it exports, and the
 * context slot that is right for it. Called from the start of the probe and
 * from its parked thread. */
#ifndef PROBE_RUNTIME_H
#define PROBE_RUNTIME_H

#include "../../../common/limits.h"

typedef struct {
  char vm[16]; /* "jvm", "cpython", "" not known (yet) */
  char version[WEFT_VM_VERSION_MAX];
} probe_runtime_t;

/* 0, or WEFT_E_NOT_FOUND: no runtime that we know is loaded. When found, the
 * context slot is set to what this runtime needs. */
int probe_runtime_detect (probe_runtime_t *ret_runtime);

#endif
