/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_SIZE 1024 /* longer lines are cut: one write below PIPE_BUF stays one line */

static const char *program = "weft";
static int verbose = -1; /* -1: the environment has not been asked yet */

void weft_log_name (const char *name)
{
  program = name;
}

void weft_log_verbose (int on)
{
  __atomic_store_n (&verbose, on != 0, __ATOMIC_RELAXED);
}

static int is_verbose (void)
{
  int on = __atomic_load_n (&verbose, __ATOMIC_RELAXED);
  if (on < 0) {
    const char *level = getenv ("WEFT_LOG");
    on = level && strcmp (level, "debug") == 0;
    weft_log_verbose (on);
  }
  return on;
}

static void print_line (const char *format, va_list args) __attribute__ ((format (printf, 1, 0)));
static void print_line (const char *format, va_list args)
{
  char line[LINE_MAX_SIZE];
  int saved = errno;
  size_t room = sizeof (line) - 1; /* for the newline */
  int head = snprintf (line, room, "%s: ", program);
  if (head < 0 || (size_t) head >= room)
    head = 0;
  errno = saved; /* for %m */
  int body = vsnprintf (line + head, room - (size_t) head, format, args);
  size_t size = (size_t) head + (body > 0 ? (size_t) body : 0);
  if (size > room - 1)
    size = room - 1;
  /* What came from elsewhere must not forge a second line or steer a terminal. */
  for (size_t i = (size_t) head; i < size; i++)
    if ((unsigned char) line[i] < 0x20 || line[i] == 0x7f)
      line[i] = ' ';
  line[size++] = '\n';
  for (size_t at = 0; at < size;) {
    ssize_t put = write (STDERR_FILENO, line + at, size - at);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      break; /* stderr itself is broken: there is nobody left to tell */
    at += (size_t) put;
  }
  errno = saved;
}

void weft_log_error (const char *format, ...)
{
  va_list args;
  va_start (args, format);
  print_line (format, args);
  va_end (args);
}

void weft_log_debug (const char *format, ...)
{
  va_list args;
  if (!is_verbose ())
    return;
  va_start (args, format);
  print_line (format, args);
  va_end (args);
}
