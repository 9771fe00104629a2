/* SPDX-License-Identifier: Apache-2.0 */
/* weft keys: makes the keys of a controller and of those who connect to it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../common/log.h"
#include "../../common/status.h"
#include "../service/keyring.h"
#include "../view/json.h"
#include "verbs.h"

static void print (const char *path, int made, void *arg)
{
  const ctl_call_t *call = arg;
  if (ctl_call_has (call, "json"))
    ctl_json_line (stdout, json_pack ("{s:o, s:b}", "file", ctl_json_text (path), "made", made));
  else
    printf ("%s %s\n", made ? "made " : "there", path);
}

int ctl_verb_keys (ctl_call_t *call)
{
  const char *dir = call->operand_count ? call->operands[0] : *call->keys ? call->keys : NULL;
  const char *name = ctl_call_value (call, "for", NULL);
  char why[1200] = "";
  if (!dir) {
    weft_log_error ("keys: no directory; give one, such as ~/.config/weft/keys, or set WEFT_KEYS");
    return CTL_EXIT_USAGE;
  }
  int rc = ctl_keyring_make (dir, print, call, why, sizeof why);
  if (rc == 0 && name)
    rc = ctl_keyring_make_for (dir, name, print, call, why, sizeof why);
  if (rc < 0)
    weft_log_error ("keys: %s", *why ? why : weft_status_text (rc));
  return rc == WEFT_E_USAGE ? CTL_EXIT_USAGE : rc < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK;
}
