/* SPDX-License-Identifier: Apache-2.0 */
/* runtime: see runtime.h. */
#include "runtime.h"

#include <dlfcn.h>
#include <string.h>

#include "../../../common/status.h"
#include "cpython.h"
#include "hotspot.h"

int probe_runtime_detect (probe_runtime_t *ret_runtime)
{
  probe_runtime_t runtime;
  memset (&runtime, 0, sizeof runtime);
  int status = probe_hotspot_detect (runtime.version, sizeof runtime.version);
  if (status == 0)
    strcpy (runtime.vm, "jvm");
  else if ((status = probe_cpython_detect (runtime.version, sizeof runtime.version)) == 0)
    strcpy (runtime.vm, "cpython");
  dlerror (); /* names that are not there leave an error behind in this thread */
  if (status == 0)
    *ret_runtime = runtime;
  return status;
}
