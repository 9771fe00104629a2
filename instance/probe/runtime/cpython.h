/* SPDX-License-Identifier: Apache-2.0 */
/* cpython: knows CPython by Py_GetVersion. The thread slot is right for it:
 * what an event loop does is void there by rule X3. */
#ifndef PROBE_CPYTHON_H
#define PROBE_CPYTHON_H

#include <stddef.h>

/* 0 with the version text ("3.11.2"), or WEFT_E_NOT_FOUND. */
int probe_cpython_detect (char *ret_version, size_t size);

#endif
