/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/1 boundary, differential: whole connections, valid and not, cut into
 * any calls, through the real hooks onto a kernel that takes what it likes. An
 * oracle that knows the whole stream (boundary_oracle.h) says what may be.
 *
 *  B1  what the peer received without the inserts is what the application wrote
 *  B2  an insert is one whole field line before the blank line of a head, at most
 *      one a head, or 16 digits of a context there; never in or behind what is
 *      doubtful, a tunnel, or a body; cut off only where the connection ends
 *  B3  the counts that the application sees add up to its own bytes, and every byte
 *      leaves in the call that wrote it; errors are those of the kernel
 *  B4  on a valid connection every head is marked that may be, however many go out at once
 *
 * Environment FUZZ_BYTES=1: how many bytes passed is printed at the end. */
#include "../support/fake_streams.h"
#include "boundary_oracle.h"
#include "boundary_streams.h"

#define FD      3 /* the connection under test */
#define BACK_FD 4 /* a request that this VM is being asked, whose context may be passed on */
#define STEPS   20000

static probe_config_t config = {.serial = 1,
                                .actions = WEFT_ACTION_ROOT | WEFT_ACTION_EMBED | WEFT_ACTION_CAPTURE,
                                .embed_to = WEFT_EMBED_TO_ANY};

typedef struct {
  fuzz_input_t *input;
  int client, polite, born, clean; /* clean: B4 can be asked */
  unsigned depth;                  /* requests in flight */
  unsigned cut;                    /* most bytes of a call */
  bytes_t *mine, *theirs;
  size_t wrote, heard; /* accepted by a call; read */
  size_t tried;        /* handed in to a call, which may have failed */
  size_t silence;      /* from this byte of ours on nothing may be inserted */
  size_t checked, app; /* sent bytes that were looked at, bytes of ours among them */
  size_t run;          /* length of the insert in hand */
  unsigned marked[ORACLE_MESSAGES];
  int over;
} run_t;

static oracle_t asked, answered; /* of the stream of requests, of answers */
static bytes_t ours_bytes, theirs_bytes;

static void silent_from (run_t *self, size_t at)
{
  self->silence = at < self->silence ? at : self->silence;
}

static unsigned final_answers (size_t heard, int whole)
{
  unsigned n = 0;
  for (unsigned i = 0; i < answered.count; i++) {
    const oracle_message_t *message = &answered.message[i];
    n += !message->interim && (whole ? message->end <= heard : message->begin < heard);
  }
  return n;
}

/* ---- B1, B2 --------------------------------------------------------------- */
static oracle_message_t *head_with (size_t blank)
{
  for (unsigned i = 0; i < asked.count; i++)
    if (asked.message[i].blank == blank)
      return &asked.message[i];
  return NULL;
}

/* The insert of `size` bytes that ends here, at byte `at` of ours. A connection that was not
 * seen from birth is taken up anew after nonsense: there the oracle has nothing to say. */
static void check_insert (run_t *self, const uint8_t *text, size_t size, size_t at)
{
  oracle_message_t *head = NULL;
  if (!self->born && at >= asked.bad)
    return;
  if (size == 16) {
    for (unsigned i = 0; i < asked.count && !head; i++)
      if (asked.message[i].weft_tasks
              ? asked.message[i].task_at + 33 == at
              : asked.message[i].traceparents && asked.message[i].parent_at + 36 == at)
        head = &asked.message[i];
    FUZZ_MUST (head);
    for (size_t i = 0; i < size; i++)
      FUZZ_MUST ((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f'));
  } else {
    int parent =
        size == 70 && memcmp (text, "traceparent: 00-", 16) == 0 && memcmp (text + 65, "-01\r\n", 5) == 0;
    int task = size == 62 && memcmp (text, "weft-task: ", 11) == 0 && memcmp (text + 60, "\r\n", 2) == 0;
    FUZZ_MUST (parent || task);
    head = head_with (at);
    FUZZ_MUST (head && !head->weft_tasks && head->fields <= 64 && head->blank - head->begin <= 6144);
    FUZZ_MUST (parent ? !head->traceparents && !head->foreign && !config.carrier
                      : head->foreign || config.carrier == WEFT_CARRIER_WEFT);
  }
  FUZZ_MUST (self->client && !head->connect);
  for (const oracle_message_t *other = asked.message; other < head; other++)
    FUZZ_MUST (!other->connect || final_answers (self->heard, 1) > other - asked.message);
  FUZZ_MUST (at < asked.bad && (at <= self->silence || !self->born));
  FUZZ_MUST (++self->marked[head - asked.message] == 1);
}

/* What the kernel got since the last look. */
static void check_sent (run_t *self)
{
  const stream_t *stream = &streams[FD];
  for (; self->checked < stream->sent_size; self->checked++) {
    if (!stream->whose[self->checked]) {
      self->run++;
      continue;
    }
    if (self->run) {
      check_insert (self, stream->sent + self->checked - self->run, self->run, self->app);
      self->app += self->run == 16 ? 16 : 0;
      self->run = 0;
    }
    FUZZ_MUST (self->app < self->mine->size && stream->sent[self->checked] == self->mine->data[self->app]);
    self->app++;
  }
}

/* ---- calls ---------------------------------------------------------------- */
static void plan (run_t *self, size_t size)
{
  stream_t *stream = &streams[FD];
  stream->planned = stream->plan_at = 0;
  while (stream->planned < 8 && seldom (self->input, 3)) {
    unsigned kind = draw (self->input, 8);
    long take = 1 + (long) draw (self->input, (unsigned) size + 80);
    stream->plan[stream->planned++] = kind == 0 ? -EAGAIN : kind == 1 ? -EINTR : take;
  }
  if (seldom (self->input, 64))
    stream->dead = 1;
}

static ssize_t call_write (run_t *self, uint8_t *data, size_t size)
{
  size_t half = draw (self->input, (unsigned) size);
  struct iovec iov[4] = {{data, half}, {NULL, 0}, {data + half, size - half}, {NULL, 0}};
  struct msghdr message = {.msg_iov = iov, .msg_iovlen = 4};
  switch (draw (self->input, 6)) {
  case 1:
    return probe_hook_writev (FD, iov, 4);
  case 2:
    return probe_hook_sendmsg (FD, &message, MSG_NOSIGNAL);
  case 3:
    return probe_hook_sendto (FD, data, size, MSG_NOSIGNAL, NULL, 0);
  case 4:
    return probe_hook_write (FD, data, size);
  default:
    return probe_hook_send (FD, data, size, MSG_NOSIGNAL);
  }
}

/* A range of ours that is all body, or not: sendfile does not care. */
static int inside_body (const oracle_t *of, size_t from, size_t to)
{
  for (unsigned i = 0; i < of->ranges; i++)
    if (of->range[i].from <= from && to <= of->range[i].to)
      return 1;
  return 0;
}

/* From here on there is something that a connection is given up for. */
static size_t final_byte (const run_t *self)
{
  size_t at = asked.bad;
  for (unsigned i = 0; i < asked.count && self->depth > 1; i++)
    if (asked.message[i].connect && asked.message[i].body < at)
      at = asked.message[i].body;
  return at;
}

static void write_some (run_t *self, size_t size)
{
  stream_t *stream = &streams[FD];
  uint8_t *copy = malloc (size);
  if (!copy)
    abort ();
  memcpy (copy, self->mine->data + self->wrote, size);
  stream->memory = copy;
  stream->memory_size = size;
  plan (self, size);
  unsigned calls = stream->calls;
  self->tried = self->wrote + size > self->tried ? self->wrote + size : self->tried;
  // A file does not go on in the middle of a context that is being overwritten.
  int opaque = seldom (self->input, 16) && (!self->run || head_with (self->app));
  errno = 4711;
  ssize_t result = opaque ? probe_hook_sendfile (FD, 9, NULL, size) : call_write (self, copy, size);
  int error = errno;
  FUZZ_MUST (stream->calls > calls);
  FUZZ_MUST (result > 0 ? (size_t) result <= size && error == 4711 : result < 0);
  if (result < 0) {
    // A kernel's own error, or that of a socket which may not wait.
    int own = stream->plan_at && stream->plan[stream->plan_at - 1] == -error;
    FUZZ_MUST (own || (stream->dead && error == EPIPE) || (error == EAGAIN && stream->nonblocking));
  }
  if (opaque && result > 0 &&
      !inside_body (self->client ? &asked : &answered, self->wrote, self->wrote + (size_t) result)) {
    silent_from (self, self->wrote);
    self->clean = 0;
  }
  // What is given up for bytes that the kernel did not take stays given up.
  if (result < (ssize_t) size && self->wrote + size > final_byte (self))
    self->clean = 0;
  FUZZ_MUST (memcmp (copy, self->mine->data + self->wrote, size) == 0);
  self->wrote += result > 0 ? (size_t) result : 0;
  check_sent (self);
  FUZZ_MUST (self->app + (self->run && self->run < 17 && !head_with (self->app) ? self->run : 0) ==
             self->wrote); // B3
  self->over |= stream->dead;
  stream->memory_size = 0;
  free (copy);
}

static void read_some (run_t *self, size_t size)
{
  stream_t *stream = &streams[FD];
  uint8_t *data = malloc (size);
  if (!data)
    abort ();
  stream->window = draw (self->input, 2) && stream->to_read_size > size ? stream->to_read_size : size;
  stream->window = stream->window < stream->to_read_size ? stream->window : stream->to_read_size;
  if (seldom (self->input, 16))
    stream->read_error = EAGAIN;
  size_t half = draw (self->input, (unsigned) size + 1);
  struct iovec iov[2] = {{data, half}, {data + half, size - half}};
  struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
  int fails = stream->read_error;
  ssize_t result;
  errno = 4711;
  switch (draw (self->input, 5)) {
  case 1:
    result = probe_hook_readv (FD, iov, 2);
    break;
  case 2:
    result = probe_hook_recvmsg (FD, &message, 0);
    break;
  case 3:
    result = probe_hook_recvfrom (FD, data, size, 0, NULL, NULL);
    break;
  case 4:
    result = probe_hook_read (FD, data, size);
    break;
  default:
    result = probe_hook_recv (FD, data, size, 0);
  }
  FUZZ_MUST (fails ? result == -1 && errno == fails : (size_t) result == size && errno == 4711);
  FUZZ_MUST (result <= 0 || memcmp (data, self->theirs->data + self->heard, (size_t) result) == 0);
  self->heard += result > 0 ? (size_t) result : 0;
  stream->window = 0;
  free (data);
}

/* ---- one connection ------------------------------------------------------- */
static unsigned requests_in (size_t bytes, int whole)
{
  unsigned n = 0;
  for (unsigned i = 0; i < asked.count; i++)
    n += whole ? asked.message[i].end <= bytes : asked.message[i].blank < bytes;
  return n;
}

/* Where the side that asks must wait for an answer, where the other one for a request. */
static size_t may_ask (const run_t *self, size_t have, size_t heard)
{
  unsigned open = final_answers (heard, 1) + self->depth;
  size_t to = self->client ? self->mine->size : self->theirs->size;
  size_t end = open && open <= asked.count ? asked.message[open - 1].end : SIZE_MAX;
  end = end < to ? end : to;
  return end > have ? end - have : 0;
}
static size_t may_answer (size_t whole_size, size_t have, size_t requested)
{
  unsigned due = requests_in (requested, 1), final = 0;
  size_t end = due ? whole_size : 0;
  for (unsigned i = 0; due && i < answered.count; i++)
    if (!answered.message[i].interim && ++final == due && answered.message[i].end < whole_size)
      end = answered.message[i].end;
  return end > have ? end - have : 0;
}

/* Answers that we have heard and that leave nothing to be said: an end that is none yet, a
 * switch of protocols, nonsense, one too many. */
static void heed_answers (run_t *self)
{
  if (!self->client)
    return;
  for (unsigned i = 0; i < answered.count; i++) {
    const oracle_message_t *message = &answered.message[i];
    if (message->body <= self->heard && (message->switches || message->until_close))
      silent_from (self, self->wrote);
  }
  if (answered.bad < self->heard)
    self->clean = 0;
  if (final_answers (self->heard, 0) > requests_in (self->tried, 0)) {
    silent_from (self, self->wrote);
    self->clean = 0;
  }
}

static void step (run_t *self)
{
  size_t out = self->mine->size - self->wrote, in = self->theirs->size - self->heard;
  if (self->polite) {
    size_t ask =
        self->client ? may_ask (self, self->wrote, self->heard) : may_ask (self, self->heard, self->wrote);
    size_t say = self->client ? may_answer (self->theirs->size, self->heard, self->wrote)
                              : may_answer (self->mine->size, self->wrote, self->heard);
    out = self->client ? ask : say;
    in = self->client ? say : ask;
    if (out == 0 && in == 0) {
      self->polite = self->clean = 0;
      return;
    }
  }
  int write = out && (!in || draw (self->input, 2));
  size_t most = write ? out : in, size = 1 + draw (self->input, self->cut);
  size = size < most ? size : most;
  if (write)
    write_some (self, size);
  else
    read_some (self, size);
  heed_answers (self);
  if (seldom (self->input, 250)) {
    probe_hook_dup (FD);
    silent_from (self, self->wrote);
    self->clean = 0;
  }
}

static void generate (run_t *self)
{
  bytes_t *requests = self->client ? self->mine : self->theirs,
          *answers = self->client ? self->theirs : self->mine;
  requests->size = answers->size = 0;
  for (unsigned n = 1 + draw (self->input, 12); n; n--)
    request (requests, self->input);
  if (seldom (self->input, 8))
    spoil (requests, self->input);
  oracle_stream_t asks = {.text = requests->data, .size = requests->size};
  oracle_read (&asks, &asked);
  unsigned n = asked.count < 40 ? asked.count : 40;
  for (unsigned i = 0; i < n + seldom (self->input, 20); i++)
    if (i < n && asked.message[i].is_head)
      answer_to_head (answers);
    else
      answer (answers, self->input);
  if (seldom (self->input, 8))
    spoil (answers, self->input);
  oracle_stream_t answer_stream = {
      .text = answers->data, .size = answers->size, .response = 1, .requests = &asked};
  oracle_read (&answer_stream, &answered);
}

/* Bytes that pass before anybody looks; a bypass is one that our hooks do not see. */
static void begin (run_t *self)
{
  stream_open (FD, self->client, self->theirs->data, self->theirs->size);
  streams[FD].nonblocking = (int) draw (self->input, 2);
  if (self->born && self->client)
    probe_hook_connect (FD, NULL, 0);
  else if (self->born)
    probe_hook_accept4 (FD, NULL, NULL, 0);
  if (seldom (self->input, 10) && self->client && asked.count && asked.message[0].end < SIZE_MAX) {
    size_t size = draw (self->input, 2) ? asked.message[0].end
                                        : 1 + draw (self->input, 300) % (unsigned) self->mine->size;
    streams[FD].memory = self->mine->data;
    streams[FD].memory_size = self->mine->size;
    probe_real.send (FD, self->mine->data, size, 0);
    streams[FD].memory_size = 0;
    self->wrote = size;
    self->clean = 0;
    if (self->born)
      silent_from (self, size); // the kernel counted what we did not
    check_sent (self);
  }
}

/* B4. */
static void check_marked (const run_t *self)
{
  for (unsigned i = 0; i < asked.count; i++) {
    const oracle_message_t *head = &asked.message[i];
    if (head->blank >= self->app || head->blank >= asked.bad || head->blank >= self->silence)
      break;
    if (head->connect && self->depth > 1)
      break; // what follows before its answer is left alone, and all that follows that
    int may = !head->connect && !head->traceparents && !head->weft_tasks && head->fields <= 64 &&
              head->blank - head->begin <= 6144;
    FUZZ_MUST (!may || self->marked[i] == 1);
  }
}

static void connection (fuzz_input_t *input)
{
  unsigned kind = draw (input, 256);
  run_t self = {.input = input,
                .client = (kind & 3) != 0,
                .born = (kind & 12) != 0,
                .polite = (kind & 48) != 0,
                .depth = kind & 64 ? 1 + draw (input, 20) : 1,
                .cut = kind & 128 ? 1 + draw (input, 100) : 65535,
                .mine = &ours_bytes,
                .theirs = &theirs_bytes,
                .silence = SIZE_MAX};
  self.clean = self.client && self.born && self.polite && self.depth <= PROBE_EXCHANGES_MAX;
  generate (&self);
  begin (&self);
  for (unsigned i = 0;
       i < STEPS && !self.over && (self.wrote < self.mine->size || self.heard < self.theirs->size); i++)
    step (&self);
  if (self.clean)
    check_marked (&self);
  if (seldom (input, 4))
    probe_hook_shutdown (FD, SHUT_WR);
  streams[FD].planned = 0;
  probe_hook_close (FD);
  check_sent (&self);
  FUZZ_MUST (self.run <= PROBE_INSERT_MAX);
}

static void bytes_told (void)
{
  fprintf (stderr, "%llu bytes through the streams\n", (unsigned long long) stream_bytes);
}

static void once (void)
{
  static int begun;
  if (begun++)
    return;
  streams_begin (&config);
  if (getenv ("FUZZ_BYTES"))
    atexit (bytes_told);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  static const char passed_on[] = "GET /back HTTP/1.1\r\ntraceparent: " TP "\r\n\r\n";
  fuzz_input_t input = {data, data + size};
  once ();
  chance_from (data, size);
  unsigned kind = draw (&input, 256);
  config.serial++;
  config.carrier = kind & 7 ? WEFT_CARRIER_TRACEPARENT : WEFT_CARRIER_WEFT;
  streams_reset ();
  if (kind & 8) {
    char text[sizeof passed_on];
    stream_open (BACK_FD, 0, (const uint8_t *) passed_on, sizeof passed_on - 1);
    streams[BACK_FD].window = sizeof passed_on - 1;
    probe_hook_accept4 (BACK_FD, NULL, NULL, 0);
    probe_hook_recv (BACK_FD, text, sizeof text, 0);
  }
  for (unsigned n = 1 + (kind >> 6); n; n--)
    connection (&input);
  return 0;
}
