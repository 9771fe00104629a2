/* SPDX-License-Identifier: Apache-2.0 */
#include "turn.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../../common/clocks.h"
#include "../../../common/status.h"

#define POLL_MS 2

int car_turn_take (pid_t pid)
{
  struct sockaddr_un name = {.sun_family = AF_UNIX}; /* abstract: begins with a zero */
  int size = snprintf (name.sun_path + 1, sizeof name.sun_path - 1, "weft-joins-%d", (int) pid);
  socklen_t length = (socklen_t) (offsetof (struct sockaddr_un, sun_path) + 1 + (size_t) size);
  uint64_t until_ns = weft_mono_ns () + CAR_TURN_WAIT_MS * WEFT_NS_PER_MS;
  int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return WEFT_E_IO;
  while (bind (fd, (struct sockaddr *) &name, length) < 0) {
    int taken = errno == EADDRINUSE, error = errno;
    if (!taken || weft_mono_ns () >= until_ns) {
      close (fd);
      errno = error;
      return taken ? WEFT_E_BUSY : WEFT_E_IO;
    }
    poll (NULL, 0, POLL_MS);
  }
  return fd;
}
