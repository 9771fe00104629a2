/* SPDX-License-Identifier: Apache-2.0 */
/* hsperf: reads one string out of HotSpot's performance data file
 * (/tmp/hsperfdata_<user>/<pid>). The file belongs to somebody else: nothing
 * in it is trusted. */
#ifndef CAR_HSPERF_H
#define CAR_HSPERF_H

#include <stddef.h>

#define CAR_HSPERF_MAX 262144 /* bytes of a file that are read; the JVM's default is 32 KiB */

/* The value of string entry `name` in an image of such a file. 0;
 * WEFT_E_NOT_FOUND; WEFT_E_MALFORMED. */
int car_hsperf_string (const void *image, size_t size, const char *name, char *out, size_t out_size);

#endif
