/* SPDX-License-Identifier: Apache-2.0 */
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ROWS_UNKNOWN 24u
#define ENTER        "\033[?1049h\033[?25l\033[?7l"
#define LEAVE        "\033[?7h\033[?25h\033[?1049l"

struct ctl_screen_t {
  struct termios before;
  int keys; /* stdin is a terminal: its modes are ours, its bytes are keys */
};

static volatile sig_atomic_t ended;

static void on_end (int number)
{
  ended = 1;
}

static void on_size (int number) {}

static void put (const char *text, size_t size)
{
  while (size) {
    ssize_t sent = write (STDOUT_FILENO, text, size);
    if (sent < 0 && errno != EINTR && errno != EAGAIN) {
      ended = 1; /* nobody looks any more */
      return;
    }
    text += sent > 0 ? sent : 0;
    size -= sent > 0 ? (size_t) sent : 0;
  }
}

static void read_keys (ctl_screen_t *self)
{
  struct termios modes;
  if (tcgetattr (STDIN_FILENO, &self->before) < 0)
    return;
  modes = self->before;
  modes.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
  modes.c_cc[VSUSP] = _POSIX_VDISABLE; /* whoever stops us would find the terminal as we left it */
  modes.c_cc[VMIN] = 0;
  modes.c_cc[VTIME] = 0;
  self->keys = tcsetattr (STDIN_FILENO, TCSANOW, &modes) == 0;
}

ctl_screen_t *ctl_screen_new (void)
{
  ctl_screen_t *self = calloc (1, sizeof *self);
  if (!self)
    return NULL;
  struct sigaction end = {.sa_handler = on_end}, size = {.sa_handler = on_size};
  sigaction (SIGINT, &end, NULL);
  sigaction (SIGTERM, &end, NULL);
  sigaction (SIGHUP, &end, NULL);
  sigaction (SIGQUIT, &end, NULL);
  sigaction (SIGWINCH, &size, NULL);
  read_keys (self);
  put (ENTER, strlen (ENTER));
  return self;
}

void ctl_screen_destroy (ctl_screen_t **self_p)
{
  ctl_screen_t *self = *self_p;
  if (!self)
    return;
  put (LEAVE, strlen (LEAVE));
  if (self->keys)
    tcsetattr (STDIN_FILENO, TCSANOW, &self->before);
  free (self);
  *self_p = NULL;
}

uint32_t ctl_screen_rows (const ctl_screen_t *self)
{
  struct winsize size = {0};
  return ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : ROWS_UNKNOWN;
}

/* Each line wipes what stood behind it, the last one what stood below. */
void ctl_screen_draw (ctl_screen_t *self, const char *text, size_t size)
{
  const char *end = text + size;
  put ("\033[H", 3);
  for (uint32_t rows = ctl_screen_rows (self); text < end && rows; rows--) {
    const char *stop = memchr (text, '\n', (size_t) (end - text));
    stop = stop ? stop : end;
    put (text, (size_t) (stop - text));
    put ("\033[K", 3);
    text = stop + 1;
    if (text < end && rows > 1)
      put ("\r\n", 2);
  }
  put ("\033[J", 3);
}

int ctl_screen_key (ctl_screen_t *self, unsigned wait_ms)
{
  struct pollfd keys = {.fd = self->keys ? STDIN_FILENO : -1, .events = POLLIN};
  char key = 0;
  if (ended)
    return 'q';
  int ready = poll (&keys, 1, (int) wait_ms);
  if (ready > 0 && read (STDIN_FILENO, &key, 1) <= 0)
    ended = 1; /* the terminal has gone */
  return ended || key == 'q' || key == 'Q' ? 'q' : 0;
}
