/* SPDX-License-Identifier: Apache-2.0 */
#include "fault_step.h"

#include <stddef.h>
#include <string.h>

static unsigned long passed, wanted;
static int all_later;
static const char *failed;

int weft_fault_step (const char *name)
{
  passed++;
  if (wanted == 0 || passed < wanted)
    return 0;
  if (passed == wanted) {
    failed = name;
    return 1;
  }
  return all_later && strcmp (name, failed) == 0;
}

void weft_fault_steps_begin (unsigned long n, int all)
{
  passed = 0;
  wanted = n;
  all_later = all;
  failed = NULL;
}

const char *weft_fault_steps_failed (void)
{
  return failed;
}
