/* SPDX-License-Identifier: Apache-2.0 */
/* cpython: see cpython.h. */
#include "cpython.h"

#include <dlfcn.h>
#include <string.h>

#include "../../../common/status.h"

int probe_cpython_detect (char *ret_version, size_t size)
{
  const char *(*get_version) (void);
  void *found = dlsym (RTLD_DEFAULT, "Py_GetVersion");
  if (!found)
    return WEFT_E_NOT_FOUND;
  memcpy (&get_version, &found, sizeof get_version);
  /* "3.11.2 (main, …)": formats constants into a static buffer, needs no interpreter and no lock. */
  const char *text = get_version ();
  if (!text)
    return WEFT_E_NOT_FOUND;
  size_t length = strcspn (text, " ");
  if (length >= size)
    length = size - 1;
  memcpy (ret_version, text, length);
  ret_version[length] = 0;
  return 0;
}
