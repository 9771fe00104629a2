/* SPDX-License-Identifier: Apache-2.0 */
/* What a head costs in the framing machine, beside picohttpparser on the same
 * bytes, and what a body costs in the active hooks, whatever its size.
 *
 * picohttpparser is the copy in Debian's libh2o, built for the same baseline. It
 * finds all fields of a head that it gets in one piece, and keeps no state between
 * pieces: the split case has no yardstick and is shown only. */
#include <dlfcn.h>

#include "../../instance/probe/http1.h"
#define BENCH_CLOCK CLOCK_THREAD_CPUTIME_ID /* what a neighbour takes is none of ours */
#include "../support/fake_streams.h"
#include "bench.h"

#define HEADS     1500000u
#define CALLS     12000000u
#define YARDSTICK "libh2o-evloop.so.0.13"
#define FIELDS    100
#define WRITE_FD  3
#define READ_FD   4
#define CALL_MOST 65536u

/* ---- heads ------------------------------------------------------------------ */
#define START(path)                                                                                          \
  "GET " path " HTTP/1.1\r\nHost: shop.example.com\r\n"                                                      \
  "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"                   \
  "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n"        \
  "Accept-Language: en-GB,en;q=0.7,de;q=0.3\r\nAccept-Encoding: gzip, deflate, br\r\n"                       \
  "Referer: https://shop.example.com/catalogue/shoes/running?sort=price&page=2\r\n"                          \
  "DNT: 1\r\nConnection: keep-alive\r\nUpgrade-Insecure-Requests: 1\r\nSec-Fetch-Dest: document\r\n"         \
  "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Site: same-origin\r\nPriority: u=0, i\r\n"
#define COOKIE                                                                                               \
  "Cookie: session=6b1f0c52e8a94d07b3f4; theme=dark; consent=necessary%2Cstatistics; cart=8812\r\n"

static const char small[] =
    "GET /quote/8812 HTTP/1.1\r\nHost: pricing:8080\r\nUser-Agent: python-requests/2.28.1\r\n"
    "Accept-Encoding: gzip, deflate\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n";
static const char browser[] = START ("/catalogue/shoes/running/8812?colour=blue") COOKIE "\r\n";
static char cookies[8192];

static const char *head;
static size_t head_size, piece;

/* ---- the yardstick ---------------------------------------------------------- */
typedef struct {
  const char *name;
  size_t name_size;
  const char *value;
  size_t value_size;
} field_t;
static int (*parse_request) (const char *data, size_t size, const char **method, size_t *method_size,
                             const char **path, size_t *path_size, int *minor, field_t *fields, size_t *count,
                             size_t last_size);

static void theirs (uint64_t n)
{
  field_t fields[FIELDS];
  const char *method, *path;
  size_t method_size, path_size;
  int minor;
  for (uint64_t i = 0; i < n; i++) {
    size_t count = FIELDS;
    BENCH_KEEP (head);
    BENCH_KEEP (
        parse_request (head, head_size, &method, &method_size, &path, &path_size, &minor, fields, &count, 0));
    BENCH_KEEP (count);
  }
}

/* ---- ours ------------------------------------------------------------------- */
static uint64_t blanks, ends;

static void ours (uint64_t n)
{
  static probe_http1_t machine;
  probe_http1_init (&machine, PROBE_HTTP1_REQUEST);
  for (uint64_t i = 0; i < n; i++) {
    BENCH_KEEP (head);
    for (size_t at = 0; at < head_size || ends == blanks - 1;) {
      size_t used, size = at + piece < head_size ? piece : head_size - at;
      probe_http1_event_t event = probe_http1_feed (&machine, head + at, size, &used);
      at += used;
      blanks += event == PROBE_HTTP1_BLANK;
      ends += event == PROBE_HTTP1_END;
    }
  }
}

static void head_rows (const char *name, const char *text)
{
  char what[64], beside[96];
  head = text;
  head_size = strlen (text);
  piece = SIZE_MAX / 2;
  uint64_t before = ends;
  bench_pair_t pair = bench_pair (ours, theirs, HEADS);
  snprintf (what, sizeof what, "%s head / picohttpparser", name);
  snprintf (beside, sizeof beside, "%zu B: %.1f ns, picohttpparser %.1f ns", head_size, pair.subject,
            pair.yardstick);
  bench_row (what, pair.ratio, "x", 1, 2, beside);
  bench_equal ("heads that ended", ends - before, pair.runs);
  piece = 64;
  snprintf (what, sizeof what, "%s head in pieces of 64 B", name);
  bench_note (what, bench_once (ours, HEADS / 8), "ns", "");
}

static void heads (void)
{
  size_t size = (size_t) snprintf (cookies, sizeof cookies, "%sCookie: ", START ("/account"));
  for (unsigned i = 0; size < 4600; i++)
    size += (size_t) snprintf (cookies + size, sizeof cookies - size,
                               "_ga_%u=GS1.1.%u.%u.1.1765000000.60.0.0; ", i, 1764000000 + i, i * 7919);
  snprintf (cookies + size, sizeof cookies - size, "last=1\r\n\r\n");
  void *library = dlopen (YARDSTICK, RTLD_NOW | RTLD_LOCAL);
  void *found = library ? dlsym (library, "phr_parse_request") : NULL;
  if (!found) {
    printf ("no picohttpparser: install libh2o-evloop0.13: FAIL\n");
    bench_failed = 1;
    return;
  }
  memcpy (&parse_request, &found, sizeof found);
  head_rows ("small", small);
  head_rows ("browser's", browser);
  head_rows ("4 KB of cookies,", cookies);
}

/* ---- bodies ----------------------------------------------------------------- */
static probe_config_t config = {.serial = 1,
                                .actions = WEFT_ACTION_ROOT | WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE};
static char body[CALL_MOST];
static size_t call_size;

/* A kernel that counts: what it does with bytes is none of our cost. */
static ssize_t count_send (int fd, const void *data, size_t size, int flags)
{
  streams[fd].written += size;
  return (ssize_t) size;
}
static ssize_t count_recv (int fd, void *data, size_t size, int flags)
{
  streams[fd].read += size;
  return (ssize_t) size;
}

BENCH_SUBJECT (write_hook, probe_hook_send (WRITE_FD, body, call_size, 0))
BENCH_SUBJECT (write_bare, probe_real.send (WRITE_FD, body, call_size, 0))
BENCH_SUBJECT (read_hook, probe_hook_recv (READ_FD, body, call_size, 0))
BENCH_SUBJECT (read_bare, probe_real.recv (READ_FD, body, call_size, 0))

static void body_rows (size_t size)
{
  char what[64], beside[96];
  call_size = size;
  for (int reads = 0; reads < 2; reads++) {
    bench_pair_t pair =
        reads ? bench_pair (read_hook, read_bare, CALLS) : bench_pair (write_hook, write_bare, CALLS);
    snprintf (what, sizeof what, "body, %s %zu B a call", reads ? "read" : "written", size);
    snprintf (beside, sizeof beside, "%.1f ns, bare %.1f ns; %.3f ms a GiB", pair.subject, pair.yardstick,
              pair.difference * (double) (1u << 30) / (double) size / 1e6);
    bench_row (what, pair.difference, "ns", 1, 15, beside);
  }
}

/* A request and an answer, both in the middle of a body that outlasts the run. */
static void bodies (void)
{
  static const char upload[] = "PUT /u HTTP/1.1\r\nHost: h\r\nContent-Length: 900000000000000000\r\n\r\n";
  static const char ask[] = "GET /d HTTP/1.1\r\nHost: h\r\n\r\n";
  static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 900000000000000000\r\n\r\n";
  char buffer[sizeof answer];
  streams_begin (&config);
  streams_reset ();
  stream_open (WRITE_FD, 1, NULL, 0);
  stream_open (READ_FD, 1, (const uint8_t *) answer, sizeof answer - 1);
  streams[READ_FD].window = sizeof answer - 1;
  probe_hook_connect (WRITE_FD, NULL, 0);
  probe_hook_connect (READ_FD, NULL, 0);
  probe_hook_send (WRITE_FD, upload, sizeof upload - 1, 0);
  probe_hook_send (READ_FD, ask, sizeof ask - 1, 0);
  probe_hook_recv (READ_FD, buffer, sizeof buffer, 0);
  probe_real.send = count_send;
  probe_real.recv = count_recv;
  for (size_t size = 1024; size <= CALL_MOST; size *= 64)
    body_rows (size);
  bench_equal ("requests marked", shm_status (probe_shm)->counter[SHM_COUNT_EMBEDDED], 2);
  bench_equal ("connections given up", shm_status (probe_shm)->counter[SHM_COUNT_GIVEN_UP_FRAMING], 0);
}

int main (void)
{
  heads ();
  bodies ();
  return bench_failed;
}
