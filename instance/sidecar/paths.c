/* SPDX-License-Identifier: Apache-2.0 */
#include "paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/status.h"

static int take (const char *path, char *out, size_t size)
{
  char real[PATH_MAX];
  if (!realpath (path, real) || access (real, R_OK) != 0)
    return WEFT_E_NOT_FOUND;
  if (strlen (real) >= size)
    return WEFT_E_RANGE;
  memcpy (out, real, strlen (real) + 1);
  return 0;
}

int car_paths_probe (char *out, size_t size, char *why, size_t why_size)
{
  const char *given = getenv ("WEFT_PROBE");
  if (given && given[0]) {
    int status = take (given, out, size);
    if (status < 0)
      snprintf (why, why_size, "the probe library WEFT_PROBE=%s is not there; correct or unset it", given);
    return status;
  }
  char self[PATH_MAX], path[PATH_MAX + 64];
  ssize_t length = readlink ("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) {
    snprintf (why, why_size, "/proc is not mounted; mount it");
    return WEFT_E_NOT_FOUND;
  }
  self[length] = '\0';
  char *slash = strrchr (self, '/');
  if (slash)
    *slash = '\0';
  snprintf (path, sizeof path, "%s/libweft_probe.so", self);
  if (take (path, out, size) == 0)
    return 0;
  snprintf (path, sizeof path, "%s/../lib/weft/libweft_probe-%s.so", self, WEFT_VERSION);
  int status = take (path, out, size);
  if (status < 0)
    snprintf (why, why_size,
              "libweft_probe.so is neither in %s nor in %s/../lib/weft; install weft completely", self, self);
  return status;
}
