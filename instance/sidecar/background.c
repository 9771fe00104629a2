/* SPDX-License-Identifier: Apache-2.0 */
#include "background.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../common/status.h"

static void close_others (const int *keep, unsigned count)
{
  unsigned from = 3;
  for (;;) {
    unsigned next = ~0u; /* the lowest descriptor to keep, not below `from` */
    for (unsigned i = 0; i < count; i++)
      if (keep[i] >= 0 && (unsigned) keep[i] >= from && (unsigned) keep[i] < next)
        next = (unsigned) keep[i];
    if (next > from)
      syscall (SYS_close_range, from, next == ~0u ? ~0u : next - 1, 0);
    if (next == ~0u)
      return;
    from = next + 1;
  }
}

static char *words;
static size_t words_size;

void car_background_words (int argc, char **argv)
{
  char *end = argv[0];
  for (int i = 0; i < argc && argv[i] == end; i++) /* one after another in memory, or not ours to write */
    end += strlen (end) + 1;
  words = argv[0];
  words_size = (size_t) (end - argv[0]);
}

static void set_words (pid_t of)
{
  if (words_size == 0)
    return;
  memset (words, 0, words_size);
  snprintf (words, words_size, "weft-instance sidecar-of %d", (int) of);
}

static void set_stdio (void)
{
  const char *log = getenv ("WEFT_LOG");
  int null = open ("/dev/null", O_RDWR | O_CLOEXEC);
  int err = log && strchr (log, '/') ? open (log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  if (null >= 0) {
    dup2 (null, 0);
    dup2 (null, 1);
  }
  if (err >= 0 || null >= 0)
    dup2 (err >= 0 ? err : null, 2);
}

int car_background (pid_t of, const int *keep, unsigned count)
{
  pid_t child = fork ();
  if (child < 0)
    return WEFT_E_NOMEM;
  if (child > 0) {
    int state;
    while (waitpid (child, &state, 0) < 0 && kill (child, 0) == 0)
      continue; /* interrupted, or SIGCHLD is ignored: it ends at once anyway */
    return 1;
  }
  setsid ();
  if (fork () != 0)
    _exit (0);
  sigset_t all;
  sigfillset (&all);
  sigprocmask (SIG_SETMASK, &all, NULL);
  umask (077);
  set_words (of);
  set_stdio ();
  if (chdir ("/") < 0)
    _exit (1);
  close_others (keep, count);
  return 0;
}
