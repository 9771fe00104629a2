/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int weft_fault_means (const char *order, const char *point, unsigned long count)
{
  size_t size = strlen (point);
  if (!order || strncmp (order, point, size) != 0 || order[size] != ':')
    return 0;
  char *end;
  unsigned long wanted = strtoul (order + size + 1, &end, 10);
  return end != order + size + 1 && *end == '\0' && wanted > 0 && wanted == count;
}

void weft_fault_pass (const char *point)
{
  static unsigned long passed; /* of the one point that the order names */
  const char *order = getenv ("WEFT_FAULT");
  size_t size = strlen (point);
  if (!order || strncmp (order, point, size) != 0 || order[size] != ':')
    return;
  passed++;
  if (!weft_fault_means (order, point, passed))
    return;
  dprintf (STDERR_FILENO, "dies at %s\n", order);
  kill (getpid (), SIGKILL);
}
