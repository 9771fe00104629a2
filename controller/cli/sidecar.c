/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../common/log.h"
#include "../../common/status.h"
#include "progress.h"
#include "verbs.h"

#define PROGRAM "weft-instance"

void ctl_words_begin (ctl_words_t *self, const ctl_call_t *call, const char *mode)
{
  *self = (ctl_words_t){.word = {PROGRAM, mode, "--controller", call->address}, .count = 4};
  if (*call->keys) {
    ctl_words_add (self, "--keys");
    ctl_words_add (self, call->keys);
  }
  if (ctl_call_has (call, "plain-tcp"))
    ctl_words_add (self, "--plain-tcp");
}

int ctl_words_add (ctl_words_t *self, const char *word)
{
  if (self->count == CTL_SIDECAR_WORDS_MAX) {
    weft_log_error ("too many process VMs at once; name at most 256");
    return WEFT_E_RANGE;
  }
  self->word[self->count++] = word;
  self->word[self->count] = NULL;
  return 0;
}

/* "" if we do not know where we are, or there is none beside us. */
static void find_beside (char *out, size_t size)
{
  ssize_t length = readlink ("/proc/self/exe", out, size - sizeof PROGRAM - 1);
  if (length > 0) {
    out[length] = 0;
    char *slash = strrchr (out, '/');
    if (slash) {
      memcpy (slash + 1, PROGRAM, sizeof PROGRAM);
      if (access (out, X_OK) == 0)
        return;
    }
  }
  *out = 0;
}

static void become (const ctl_words_t *words)
{
  char path[1024];
  find_beside (path, sizeof path);
  /* exec takes char *const by history, and changes nothing. */
  char *const *argv = (char *const *) (uintptr_t) words->word;
  if (*path)
    execv (path, argv);
  else
    execvp (PROGRAM, argv);
}

int ctl_sidecar_exec (const ctl_words_t *words)
{
  become (words);
  weft_log_error ("cannot run " PROGRAM ": %s; it belongs beside weft or into PATH", strerror (errno));
  return CTL_EXIT_FAILED;
}

/* Until there is something to read. What the other one says of refusals goes to the same terminal: the line is
 * short, and ends where theirs begins. */
static void await_line (int fd, const char *what, ctl_progress_t *progress)
{
  struct pollfd one = {.fd = fd, .events = POLLIN};
  for (int rc; (rc = poll (&one, 1, (int) CTL_PROGRESS_EVERY_MS)) == 0 || (rc < 0 && errno == EINTR);)
    ctl_progress_say (progress, "%s: %.1f s\r", what, ctl_progress_seconds (progress));
}

static json_t *read_lines (int fd, const char *what)
{
  ctl_progress_t progress;
  ctl_progress_begin (&progress);
  json_t *lines = json_array ();
  FILE *in = fdopen (fd, "r");
  char *line = NULL;
  size_t room = 0;
  while (in) {
    await_line (fd, what, &progress);
    errno = 0;
    if (getline (&line, &room, in) <= 0) {
      if (errno != EINTR)
        break;
      clearerr (in); /* Ctrl-C: what is being joined must still be known, or nobody leaves it */
      continue;
    }
    json_t *one = json_loads (line, 0, NULL);
    if (one)
      json_array_append_new (lines, one);
  }
  ctl_progress_wipe (&progress);
  free (line);
  if (in)
    fclose (in);
  else
    close (fd);
  return lines;
}

int ctl_sidecar_lines (const ctl_words_t *words, const char *what, json_t **ret_lines, int *ret_code)
{
  int fds[2];
  if (pipe2 (fds, O_CLOEXEC) < 0)
    return WEFT_E_IO;
  fflush (stdout);
  pid_t child = fork ();
  if (child < 0) {
    close (fds[0]);
    close (fds[1]);
    return WEFT_E_IO;
  }
  if (child == 0) {
    dup2 (fds[1], STDOUT_FILENO);
    signal (SIGHUP, SIG_IGN);
    signal (SIGINT, SIG_IGN); /* a terminal sends it to both; what is half joined is told all the same */
    _exit (ctl_sidecar_exec (words));
  }
  close (fds[1]);
  json_t *lines = read_lines (fds[0], what);
  int status = 0;
  while (waitpid (child, &status, 0) < 0 && errno == EINTR)
    ;
  *ret_lines = lines;
  *ret_code = WIFEXITED (status) ? WEXITSTATUS (status) : CTL_EXIT_FAILED;
  return 0;
}
