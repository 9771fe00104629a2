/* SPDX-License-Identifier: Apache-2.0 */
#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../common/clocks.h"
#include "../../../common/fault.h"
#include "../../../common/status.h"
#include "remote.h"

#define POLL_US     50
#define POLLS_QUICK 400 /* then slower */
#define SLOW_MS     1
#define PATH_SIZE   (sizeof ((car_stub_data_t *) NULL)->path)

typedef struct {
  pid_t pid;
  int pidfd;
  uint64_t data;
  unsigned loaded;
  car_stub_data_t seen;
} talk_t;

static int say (const talk_t *self, size_t field, const void *value, size_t size)
{
  WEFT_FAULT_POINT ("hold");
  return car_remote_write (self->pid, self->data + field, value, size);
}

static int say_state (const talk_t *self, uint32_t state)
{
  return say (self, offsetof (car_stub_data_t, state), &state, sizeof state);
}

/* Until the thread is in one of two states. */
static int await (talk_t *self, uint32_t one, uint32_t other)
{
  uint64_t until_ns = weft_mono_ns () + CAR_HELPER_WAIT_MS * WEFT_NS_PER_MS;
  for (unsigned polls = 0;; polls++) {
    int status = car_remote_read (self->pid, self->data, &self->seen, sizeof self->seen);
    if (status < 0)
      return status;
    if (self->seen.state == one || self->seen.state == other)
      return 0;
    if (weft_mono_ns () >= until_ns)
      return WEFT_E_TIMEOUT;
    if (polls < POLLS_QUICK) {
      usleep (POLL_US);
      continue;
    }
    struct pollfd gone = {.fd = self->pidfd, .events = POLLIN};
    if (poll (&gone, 1, SLOW_MS) == 1)
      return WEFT_E_GONE;
  }
}

/* What the process calls number fd may be anything: only an empty memfd of the
 * right name is written into. */
static int open_memory (const talk_t *self)
{
  char path[64], name[64];
  struct stat info;
  snprintf (path, sizeof path, "/proc/%d/fd/%d", (int) self->pid, (int) self->seen.fd);
  int fd = open (path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return WEFT_E_IO;
  snprintf (path, sizeof path, "/proc/self/fd/%d", fd);
  ssize_t size = readlink (path, name, sizeof name - 1);
  name[size > 0 ? size : 0] = '\0';
  if (strcmp (name, "/memfd:" CAR_HELPER_MEMORY " (deleted)") != 0 || fcntl (fd, F_GET_SEALS) < 0 ||
      fstat (fd, &info) < 0 || !S_ISREG (info.st_mode) || info.st_size != 0 || info.st_nlink != 0) {
    close (fd);
    return WEFT_E_DENIED;
  }
  return fd;
}

static int write_whole (int fd, const uint8_t *bytes, size_t size)
{
  for (size_t at = 0; at < size;) {
    ssize_t done = write (fd, bytes + at, size - at);
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return WEFT_E_IO;
    at += (size_t) done;
  }
  return 0;
}

/* A name of the file that the loader has not seen before: it compares names before
 * files, and what was loaded stays. */
static void put_path (const talk_t *self, char path[PATH_SIZE])
{
  size_t at = (size_t) snprintf (path, PATH_SIZE, "/proc/self/");
  for (unsigned i = 0; i < self->loaded && at < PATH_SIZE - 16; i++)
    at += (size_t) snprintf (path + at, PATH_SIZE - at, "./");
  snprintf (path + at, PATH_SIZE - at, "fd/%d", (int) self->seen.fd);
}

static int hand_over (const talk_t *self, const car_library_t *library)
{
  char path[PATH_SIZE] = "";
  int fd = open_memory (self);
  if (fd < 0)
    return fd;
  int status = write_whole (fd, library->bytes, library->loaded);
  close (fd);
  if (status < 0)
    return status;
  put_path (self, path);
  status = say (self, offsetof (car_stub_data_t, path), path, sizeof path);
  return status < 0 ? status : say_state (self, CAR_STUB_READY);
}

static int explain (const talk_t *self, char *why, size_t why_size)
{
  char text[200] = "";
  if (self->seen.fd < -1 && self->seen.result == 0)
    snprintf (why, why_size, "it could not make a memfd (%s); start it with `weft run`",
              strerror (-self->seen.fd));
  else if (self->seen.result == CAR_STUB_NOT_LOADED) {
    if (self->seen.error)
      car_remote_text (self->pid, self->seen.error, text, sizeof text);
    snprintf (why, why_size, "its loader did not take the probe (%s); start it with `weft run`", text);
  } else
    snprintf (why, why_size, "the probe refused to start there (%s); restart it under `weft run`",
              weft_status_text (self->seen.result));
  return WEFT_E_UNSUPPORTED;
}

static int talk (talk_t *self, const car_library_t *library)
{
  int status = await (self, CAR_STUB_ASKING, CAR_STUB_DONE);
  if (status == 0 && self->seen.state == CAR_STUB_ASKING && self->seen.fd >= 0)
    status = hand_over (self, library);
  if (status == 0 && self->seen.fd < -1) {
    say_state (self, CAR_STUB_CANCELLED);
    return await (self, CAR_STUB_DONE, CAR_STUB_DONE);
  }
  return status == 0 ? await (self, CAR_STUB_DONE, CAR_STUB_DONE) : status;
}

int car_helper_talk (pid_t pid, int pidfd, uint64_t data, const car_library_t *library, unsigned loaded,
                     char *why, size_t why_size)
{
  talk_t self = {.pid = pid, .pidfd = pidfd, .data = data, .loaded = loaded};
  int status = talk (&self, library);
  if (status < 0) {
    snprintf (why, why_size,
              "its new thread did not bring the probe in (%s); try again, or start it with `weft run`",
              weft_status_text (status));
    say_state (&self, CAR_STUB_CANCELLED);
    return status;
  }
  if (self.seen.result != 0 || self.seen.fd < -1)
    status = explain (&self, why, why_size);
  say_state (&self, CAR_STUB_FREE);
  return status;
}
