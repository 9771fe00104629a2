/* SPDX-License-Identifier: Apache-2.0 */
/* calls: socket calls as a program's own code makes them, with whatever arguments; the result is -errno where one fails. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALL(name, call)                                                                                     \
  long name (long fd, void *data, long size, long flags)                                                     \
  {                                                                                                          \
    errno = 0;                                                                                               \
    long result = (long) (call);                                                                             \
    return result < 0 ? -errno : result;                                                                     \
  }

CALL (do_send, send ((int) fd, data, (size_t) size, (int) flags))
CALL (do_sendto, sendto ((int) fd, data, (size_t) size, (int) flags, NULL, 0))
CALL (do_write, write ((int) fd, data, (size_t) size))
CALL (do_writev, writev ((int) fd, data, (int) size))
CALL (do_sendmsg, sendmsg ((int) fd, data, (int) flags))
CALL (do_recv, recv ((int) fd, data, (size_t) size, (int) flags))
CALL (do_read, read ((int) fd, data, (size_t) size))
CALL (do_readv, readv ((int) fd, data, (int) size))
CALL (do_recvmsg, recvmsg ((int) fd, data, (int) flags))
CALL (do_shutdown, shutdown ((int) fd, (int) flags))
CALL (do_dup2, dup2 ((int) fd, (int) flags))
CALL (do_dup3, dup3 ((int) fd, (int) fd, (int) flags))
CALL (do_close, close ((int) fd))
CALL (do_connect, connect ((int) fd, data, (socklen_t) size))
CALL (do_accept, accept ((int) fd, data, NULL))
CALL (do_fcntl, fcntl ((int) fd, F_DUPFD, (int) flags))
