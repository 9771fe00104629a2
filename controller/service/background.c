/* SPDX-License-Identifier: Apache-2.0 */
#include "background.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../common/limits.h"
#include "../../common/log.h"
#include "../../common/status.h"

static int await (int fd)
{
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  char byte = 0;
  int rc;
  do {
    rc = poll (&ready, 1, WEFT_AUTOSTART_MS);
  } while (rc < 0 && errno == EINTR);
  if (rc == 0) {
    weft_log_error ("the controller does not listen after %d s; look at it with `weft controller`",
                    WEFT_AUTOSTART_MS / 1000);
    return WEFT_E_TIMEOUT;
  }
  return read (fd, &byte, 1) == 1 ? CTL_BACKGROUND_PARENT : WEFT_E_STATE;
}

int ctl_background_fork (int *ret_ready_fd)
{
  int pipe_fds[2];
  if (pipe2 (pipe_fds, O_CLOEXEC) < 0) {
    weft_log_error ("cannot start in the background: %s", strerror (errno));
    return WEFT_E_IO;
  }
  pid_t child = fork ();
  if (child < 0) {
    weft_log_error ("cannot start in the background: %s", strerror (errno));
    close (pipe_fds[0]);
    close (pipe_fds[1]);
    return WEFT_E_IO;
  }
  if (child > 0) {
    close (pipe_fds[1]);
    int rc = await (pipe_fds[0]);
    close (pipe_fds[0]);
    return rc;
  }
  setsid ();
  /* What the caller had open (a pipe somebody waits on) must not live as long as we do. */
  dup2 (pipe_fds[1], 3);
  close_range (4, ~0u, 0);
  fcntl (3, F_SETFD, FD_CLOEXEC);
  *ret_ready_fd = 3;
  return 0;
}

void ctl_background_ready (int ready_fd, const char *store_path)
{
  char path[560];
  snprintf (path, sizeof path, "%s.log", store_path);
  int null_fd = open ("/dev/null", O_RDWR | O_CLOEXEC);
  int log_fd = open (path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  dup2 (null_fd, STDIN_FILENO);
  dup2 (null_fd, STDOUT_FILENO);
  ssize_t told = write (ready_fd, "", 1); /* a parent that is gone waits for nothing */
  (void) told;
  dup2 (log_fd >= 0 ? log_fd : null_fd, STDERR_FILENO);
  close (ready_fd);
  close (null_fd);
  if (log_fd >= 0)
    close (log_fd);
}
