/* SPDX-License-Identifier: Apache-2.0 */
/* probe_steps: the n-th internal step of the probe fails, for n = 1, 2, … until a
 * run is over before it: once that passage alone, once all later ones of its name,
 * too. Whatever fails, an application must not notice:
 *
 *  - every call returns and sets errno as it does without hooks
 *  - its peers receive the bytes that they receive without hooks, and between them
 *    nothing but whole field lines of ours, or digits in place of digits
 *  - the connection after that works, and is marked again
 *
 * Last line: how many steps failed, of which names. Needs a FAULTS=1 build. */
#include <stdarg.h>

#include "../../common/fault_step.h"
#include "../support/fake_streams.h"

#define CLIENT    3
#define SERVER    4
#define OLD       5 /* a client's connection from before the attach */
#define LOG_MAX   16384
#define NAMES_MAX 64
#define TP        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define HEAD      "GET /a?q=1 HTTP/1.1\r\nHost: x\r\n"
#define GET       HEAD "\r\n"
#define OK        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
#define CHUNKED   "HTTP/1.1 201 C\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
#define ASKED     "POST /s HTTP/1.1\r\ntraceparent: " TP "\r\nContent-Length: 40\r\n\r\n"
#define PASSED_ON "GET /next HTTP/1.1\r\ntraceparent: " TP "\r\n\r\n"
#define FORTY     "0123456789012345678901234567890123456789"

static probe_config_t config = {
    .serial = 1,
    .actions = WEFT_ACTION_ROOT | WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE,
    .rule_count = 1,
    .rules = {{.instruction = 7, .sample_num = 1, .sample_den = 1, .match = "*"}}};

typedef struct {
  char log[LOG_MAX]; /* what the application saw */
  size_t used;
  char *peer[STREAMS_FDS]; /* what its peers received, without ours */
  size_t peer_size[STREAMS_FDS];
  unsigned marks;
} trail_t;
static trail_t plain, faulty;
static trail_t *trail;
static int hooked;
static char trouble[256];

__attribute__ ((format (printf, 1, 2))) static void fail (const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  if (!trouble[0])
    vsnprintf (trouble, sizeof trouble, format, arguments);
  va_end (arguments);
}

static void saw (const char *what, int fd, ssize_t result)
{
  int n = snprintf (trail->log + trail->used, LOG_MAX - trail->used, "%s %d: %zd errno %d\n", what, fd,
                    result, result < 0 ? errno : 0);
  trail->used += (size_t) n < LOG_MAX - trail->used ? (size_t) n : 0;
}

/* ---- what the application does ---------------------------------------------- */
#define CALL(name, args) (hooked ? probe_hook_##name args : probe_real.name args)

static ssize_t say (int fd, const char *text, size_t size)
{
  streams[fd].memory = (const uint8_t *) text;
  streams[fd].memory_size = size;
  errno = 0;
  ssize_t result = CALL (send, (fd, text, size, MSG_NOSIGNAL));
  streams[fd].memory_size = 0;
  return result;
}

static void say_once (int fd, const char *text)
{
  ssize_t result = say (fd, text, strlen (text));
  saw ("send", fd, result);
}

/* However little each call takes; how much it was each time may differ. */
static void say_all (int fd, const char *text)
{
  size_t left = strlen (text);
  for (unsigned tries = 0; left && tries < 1000; tries++) {
    ssize_t result = say (fd, text, left);
    if (result == 0 || result > (ssize_t) left || (result < 0 && errno != EAGAIN))
      fail ("send returned %zd of %zu, errno %d", result, left, errno);
    text += result > 0 ? result : 0;
    left -= result > 0 ? (size_t) result : 0;
  }
  saw ("all said", fd, (ssize_t) left);
}

static void accepts (int fd, unsigned count, const long *plan)
{
  memcpy (streams[fd].plan, plan, count * sizeof *plan);
  streams[fd].planned = count;
  streams[fd].plan_at = 0;
}
#define ACCEPTS(fd, ...) accepts (fd, sizeof ((long[]){__VA_ARGS__}) / sizeof (long), (long[]){__VA_ARGS__})

static void hear (int fd, const char *text, size_t piece)
{
  char data[512];
  streams[fd].to_read = (const uint8_t *) text;
  streams[fd].to_read_size = strlen (text);
  while (streams[fd].to_read_size) {
    size_t size = piece < streams[fd].to_read_size ? piece : streams[fd].to_read_size;
    streams[fd].window = size;
    ssize_t result = CALL (recv, (fd, data, sizeof data, 0));
    saw ("recv", fd, result);
    if (result < 0 || memcmp (data, text, (size_t) result) != 0)
      fail ("the bytes read differ");
    text += result > 0 ? (size_t) result : size;
  }
}

static void hear_error (int fd, int error)
{
  char byte;
  streams[fd].read_error = error;
  ssize_t result = CALL (recv, (fd, &byte, 1, 0));
  saw ("recv", fd, result);
}

static void send_file (int fd, const char *text)
{
  streams[fd].memory = (const uint8_t *) text;
  streams[fd].memory_size = strlen (text);
  ssize_t result = CALL (sendfile, (fd, 9, NULL, strlen (text)));
  saw ("sendfile", fd, result);
  streams[fd].memory_size = 0;
}

static void as_client (void)
{
  stream_open (CLIENT, 1, NULL, 0);
  streams[CLIENT].nonblocking = 1;
  saw ("connect", CLIENT, CALL (connect, (CLIENT, NULL, 0)));
  say_once (CLIENT, GET);
  hear (CLIENT, OK, 512);
  ACCEPTS (CLIENT, -EAGAIN, -EINTR, 5);
  say_once (CLIENT, GET);
  say_once (CLIENT, GET);
  say_once (CLIENT, GET);
  say_once (CLIENT, &(GET)[5]);
  hear_error (CLIENT, EAGAIN);
  hear (CLIENT, "HTTP/1.1 100 Continue\r\n\r\n" OK, 7);
  // Short in the line that we insert, with the rest in later calls.
  ACCEPTS (CLIENT, sizeof HEAD - 1 + 10, -EAGAIN, 20, 1, 70);
  say_all (CLIENT, GET);
  hear (CLIENT, OK, 512);
  ACCEPTS (CLIENT, sizeof HEAD - 1 + 10, 9);
  say_all (CLIENT, HEAD);
  say_all (CLIENT, "\r\n");
  hear (CLIENT, CHUNKED, 11);
  say_once (CLIENT, "PUT /u HTTP/1.1\r\nContent-Length: 80\r\n\r\n" FORTY);
  send_file (CLIENT, FORTY);
  hear (CLIENT, OK, 512);
  say_once (CLIENT, GET GET);
  hear (CLIENT, OK OK, 30);
  hear_error (CLIENT, ECONNRESET);
  saw ("close", CLIENT, CALL (close, (CLIENT)));
}

/* Asked by somebody who carries a context, it passes that on; then an answer in parts. */
static void as_server (void)
{
  stream_open (SERVER, 0, NULL, 0);
  saw ("accept", SERVER, CALL (accept4, (SERVER, NULL, NULL, 0)));
  hear (SERVER, ASKED, 13);
  hear (SERVER, FORTY, 15);
  stream_open (CLIENT, 1, NULL, 0);
  saw ("connect", CLIENT, CALL (connect, (CLIENT, NULL, 0)));
  say_once (CLIENT, PASSED_ON);
  hear (CLIENT, OK, 512);
  say_once (CLIENT, GET);
  hear (CLIENT, "HTTP/1.1 200 OK\r\n\r\nuntil", 512);
  saw ("close", CLIENT, CALL (close, (CLIENT)));
  ACCEPTS (SERVER, 10, -EAGAIN);
  say_all (SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 120\r\n\r\n" FORTY);
  say_once (SERVER, FORTY);
  send_file (SERVER, FORTY);
  hear (SERVER, GET GET, 512);
  say_once (SERVER, OK OK);
  saw ("shutdown", SERVER, CALL (shutdown, (SERVER, SHUT_WR)));
  saw ("close", SERVER, CALL (close, (SERVER)));
}

static void from_before (void)
{
  stream_open (OLD, 1, NULL, 0);
  streams[OLD].written += 1000;
  streams[OLD].read += 1000;
  for (int i = 0; i < 3; i++) {
    say_once (OLD, GET);
    hear (OLD, OK, 20);
  }
  saw ("dup", OLD, CALL (dup, (OLD)));
  say_once (OLD, GET);
  saw ("close", OLD, CALL (close, (OLD)));
}

/* ---- what its peers saw ------------------------------------------------------ */
/* One insert: a whole line, or 16 digits that stand for as many of the application's. */
static size_t stands_for (const uint8_t *text, size_t size)
{
  int line = size == 70 && memcmp (text, "traceparent: 00-", 16) == 0 && memcmp (text + 68, "\r\n", 2) == 0;
  trail->marks += line ? 1 : 0;
  if (line)
    return 0;
  if (size != 16)
    fail ("%zu bytes of ours in the stream", size);
  return 16;
}

static void keep_peer (int fd)
{
  const stream_t *stream = &streams[fd];
  char *own = realloc (trail->peer[fd], trail->peer_size[fd] + stream->sent_size + 1);
  if (!own)
    abort ();
  trail->peer[fd] = own;
  size_t *size = &trail->peer_size[fd];
  for (size_t at = 0, run = 0; at < stream->sent_size; at += run + (run == 0)) {
    for (run = 0; at + run < stream->sent_size && !stream->whose[at + run];)
      run++;
    if (run == 0)
      own[(*size)++] = (char) stream->sent[at];
    else
      for (size_t i = stands_for (stream->sent + at, run); i; i--)
        own[(*size)++] = '*';
  }
}

static void act (void (*script) (void), int fd1, int fd2)
{
  script ();
  keep_peer (fd1);
  if (fd2)
    keep_peer (fd2);
}

static void run (int with_hooks, trail_t *into)
{
  trail = into;
  hooked = with_hooks;
  trail->used = 0;
  trail->log[0] = 0;
  trail->marks = 0;
  memset (trail->peer_size, 0, sizeof trail->peer_size);
  act (as_client, CLIENT, 0);
  act (as_server, SERVER, CLIENT);
  act (from_before, OLD, 0);
}

/* Digits of ours stand for the application's own. */
static int same_bytes (const char *a, const char *b, size_t size)
{
  for (size_t i = 0; i < size; i++)
    if (a[i] != b[i] && b[i] != '*')
      return 0;
  return 1;
}

static void compare (void)
{
  if (strcmp (plain.log, faulty.log) != 0)
    fail ("the application saw something else");
  for (int fd = CLIENT; fd <= OLD; fd++)
    if (plain.peer_size[fd] != faulty.peer_size[fd] ||
        !same_bytes (plain.peer[fd], faulty.peer[fd], plain.peer_size[fd]))
      fail ("the peer of %d received something else", fd);
  if (probe_connections_pending ())
    fail ("the rest of an insert is still waiting");
}

/* Nothing of a failure stays: the next run, without one, is marked as ever. */
static unsigned clean_run (void)
{
  weft_fault_steps_begin (0, 0);
  streams_reset ();
  run (1, &faulty);
  compare ();
  return faulty.marks;
}

/* ---- all steps ---------------------------------------------------------------- */
static const char *names[NAMES_MAX];
static unsigned name_count;

static void note_name (const char *name)
{
  for (unsigned i = 0; i < name_count; i++)
    if (strcmp (names[i], name) == 0)
      return;
  if (name_count < NAMES_MAX)
    names[name_count++] = name;
}

static int told (unsigned long n, int all, const char *name)
{
  if (!trouble[0])
    return 0;
  printf ("step %lu (%s)%s: %s\n--- without hooks\n%s--- with\n%s", n, name ? name : "none",
          all ? " and all later ones" : "", trouble, plain.log, faulty.log);
  return 1;
}

int main (void)
{
  unsigned long failed = 0;
  streams_begin (&config);
  streams_reset ();
  run (0, &plain);
  unsigned marks = clean_run ();
  if (told (0, 0, NULL) || marks < 8) {
    printf ("%u requests marked without a fault\n", marks);
    return 1;
  }
  for (int all = 0; all < 2; all++) {
    for (unsigned long n = 1;; n++) {
      streams_reset ();
      weft_fault_steps_begin (n, all);
      run (1, &faulty);
      const char *name = weft_fault_steps_failed ();
      if (!name)
        break;
      // A direction that nobody ever lets go of is no fault that there can be: no thread
      // waits for anything while it has one. What is left of it must be gone afterwards.
      if (all && strcmp (name, "hold") == 0)
        trouble[0] = 0;
      else
        compare ();
      note_name (name);
      failed++;
      if (told (n, all, name))
        return 1;
      if (clean_run () != marks)
        fail ("marked %u of %u requests afterwards", faulty.marks, marks);
      if (told (n, all, name))
        return 1;
    }
  }
  printf ("%lu steps failed, nobody noticed:", failed);
  for (unsigned i = 0; i < name_count; i++)
    printf (" %s%s", names[i], i + 1 < name_count ? "," : "\n");
  return failed == 0;
}
