/* SPDX-License-Identifier: Apache-2.0 */
/* paths: where our own files are, in a build tree and installed. */
#ifndef CAR_PATHS_H
#define CAR_PATHS_H

#include <stddef.h>

/* The probe library: WEFT_PROBE if set, else beside this program, else in
 * ../lib/weft below it. Absolute, symlinks resolved. 0; WEFT_E_NOT_FOUND with
 * the places in why; WEFT_E_RANGE. */
int car_paths_probe (char *out, size_t size, char *why, size_t why_size);

#endif
