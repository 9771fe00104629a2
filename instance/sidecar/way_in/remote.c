/* SPDX-License-Identifier: Apache-2.0 */
#include "remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../../../common/status.h"

#define PAGE 4096u

static int status_of (ssize_t done, size_t size)
{
  if (done == (ssize_t) size)
    return 0;
  if (done < 0 && errno == EPERM)
    return WEFT_E_DENIED;
  return done < 0 && errno == ESRCH ? WEFT_E_GONE : WEFT_E_IO;
}

int car_remote_read (pid_t pid, uint64_t address, void *out, size_t size)
{
  struct iovec here = {out, size}, there = {(void *) (uintptr_t) address, size};
  return status_of (process_vm_readv (pid, &here, 1, &there, 1, 0), size);
}

int car_remote_read_elf (void *pid, uint64_t address, void *out, size_t size)
{
  return car_remote_read (*(const pid_t *) pid, address, out, size);
}

int car_remote_write (pid_t pid, uint64_t address, const void *data, size_t size)
{
  /* iov_base is void * by history; the data is only read. */
  struct iovec here = {(void *) (uintptr_t) data, size}, there = {(void *) (uintptr_t) address, size};
  return status_of (process_vm_writev (pid, &here, 1, &there, 1, 0), size);
}

int car_remote_force (pid_t pid, uint64_t address, const void *data, size_t size)
{
  char path[64];
  snprintf (path, sizeof path, "/proc/%d/mem", (int) pid);
  int fd = open (path, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return errno == EACCES || errno == EPERM ? WEFT_E_DENIED : WEFT_E_GONE;
  int status = status_of (pwrite (fd, data, size, (off_t) address), size);
  close (fd);
  return status;
}

int car_remote_text (pid_t pid, uint64_t address, char *out, size_t size)
{
  size_t at = 0;
  while (at < size - 1) {
    size_t part = PAGE - (address + at) % PAGE; /* up to the end of a page: the next may not be mapped */
    part = part < size - 1 - at ? part : size - 1 - at;
    int status = car_remote_read (pid, address + at, out + at, part);
    if (status < 0)
      return status;
    for (size_t end = at + part; at < end; at++) {
      if (!out[at])
        return 0;
      if ((unsigned char) out[at] < 0x20 || out[at] == 0x7f)
        out[at] = '?';
    }
  }
  out[at] = '\0';
  return 0;
}
