/* SPDX-License-Identifier: Apache-2.0 */
/* main: picks the verb. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../common/log.h"
#include "../common/status.h"
#include "cli/client.h"
#include "cli/usage.h"
#include "cli/verbs.h"

static int print_about (const char *what)
{
  if (strcmp (what, "--help") == 0 || strcmp (what, "-h") == 0 || strcmp (what, "help") == 0)
    ctl_usage (stdout);
  else if (strcmp (what, "--version") == 0)
    printf ("weft %s\n", WEFT_VERSION);
  else if (strcmp (what, "--completion") == 0)
    ctl_usage_completion (stdout);
  else if (strcmp (what, "--man") == 0)
    ctl_usage_man (stdout);
  else
    return 0;
  return 1;
}

int main (int argc, char **argv)
{
  weft_log_name ("weft");
  if (argc < 2) {
    ctl_usage (stderr);
    return CTL_EXIT_USAGE;
  }
  if (print_about (argv[1]))
    return CTL_EXIT_OK;
  const ctl_verb_t *verb = ctl_verb_find (argv[1]);
  if (!verb) {
    weft_log_error ("no verb '%s'; see `weft --help`", argv[1]);
    return CTL_EXIT_USAGE;
  }
  ctl_call_t call;
  int rc = ctl_call_parse (&call, verb, argc - 1, argv + 1);
  if (rc == 1)
    ctl_usage_verb (stdout, verb);
  if (rc)
    return rc == 1 ? CTL_EXIT_OK : CTL_EXIT_USAGE;
  ctl_client_use (call.keys, ctl_call_has (&call, "plain-tcp"));
  rc = verb->run (&call);
  errno = 0;
  if ((fflush (stdout) == EOF || ferror (stdout)) && rc == CTL_EXIT_OK) {
    weft_log_error ("what was to be printed is not all out: %s; give another place for it",
                    errno ? strerror (errno) : "a write failed");
    rc = CTL_EXIT_FAILED;
  }
  return rc;
}
