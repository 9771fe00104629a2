/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

#include <stddef.h>

static const struct {
  const char *name, *text;
} entry[] = {{"OK", "success"},
#define XX(number, name, text) [number] = {#name, text},
             WEFT_STATUS_MAP (XX)
#undef XX
};
#define ENTRIES ((int) (sizeof (entry) / sizeof (entry[0])))

/* A retired number leaves a hole in the table. */
static int known (int status)
{
  return status <= 0 && status > -ENTRIES && entry[-status].name;
}

const char *weft_status_name (int status)
{
  return known (status) ? entry[-status].name : "UNKNOWN";
}

const char *weft_status_text (int status)
{
  return known (status) ? entry[-status].text : "unknown status";
}
