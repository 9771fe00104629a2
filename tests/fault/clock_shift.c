/* SPDX-License-Identifier: Apache-2.0 */
/* clock_shift: the wall clock of whoever preloads it, shifted by the seconds
 * that stand (int64, little endian) in the file WEFT_TEST_CLOCK. All processes
 * of one test share the file, as processes of one host share a clock. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift;

__attribute__ ((constructor)) static void open_shift (void)
{
  const char *path = getenv ("WEFT_TEST_CLOCK");
  int fd = path ? open (path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0)
    return;
  void *map = mmap (NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0);
  close (fd);
  if (map != MAP_FAILED)
    shift = map;
}

int clock_gettime (clockid_t id, struct timespec *t)
{
  int rc = (int) syscall (SYS_clock_gettime, id, t);
  if (rc == 0 && shift && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
    t->tv_sec += (time_t) *shift;
  return rc;
}

int gettimeofday (struct timeval *t, void *zone)
{
  (void) zone;
  struct timespec now;
  clock_gettime (CLOCK_REALTIME, &now);
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time (time_t *out)
{
  struct timespec now;
  clock_gettime (CLOCK_REALTIME, &now);
  if (out)
    *out = now.tv_sec;
  return now.tv_sec;
}
