/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/status.h"
#include "arrivals.h"
#include "claim.h"
#include "processes.h"

#define EVENTS_MAX 64

typedef struct {
  car_session_t *session;
  uint64_t due_ns;
  int touched; /* something happened to it */
  int answers; /* before this round is over */
  int left;    /* T2: those below it were told */
} member_t;

typedef struct {
  uint8_t instance[WEFT_UUID_SIZE];
  uint64_t since_ns;
} rest_t;

typedef struct {
  car_session_options_t first;
  car_bus_t *bus;
  car_arrivals_t *arrivals; /* NULL: nobody can announce itself */
  int epoll, signals;
  member_t member[CAR_TREE_MAX];
  unsigned count;
  car_live_t *live; /* the shelf */
  rest_t *rest;     /* T4, a ring */
  unsigned rest_first, rest_count;
} tree_t;

/* ---- members -------------------------------------------------------------- */

static member_t *find_pid (tree_t *self, pid_t pid)
{
  for (unsigned i = 0; i < self->count; i++)
    if (car_session_options (self->member[i].session)->pid == pid)
      return &self->member[i];
  return NULL;
}

static const shm_head_t *head_of (car_session_t *session)
{
  return shm_reader_base (car_session_reader (session));
}

static member_t *find_start (tree_t *self, const uint8_t start[WEFT_UUID_SIZE])
{
  for (unsigned i = 0; i < self->count; i++)
    if (memcmp (head_of (self->member[i].session)->start, start, WEFT_UUID_SIZE) == 0)
      return &self->member[i];
  return NULL;
}

/* The nearest ancestor that is followed; the first one of all where none is found: it is of this tree. */
static member_t *find_above (tree_t *self, pid_t pid)
{
  for (unsigned i = 0; i < CAR_TREE_UP_MAX && pid > 1; i++) {
    car_target_state (pid, &pid);
    member_t *member = pid > 1 ? find_pid (self, pid) : NULL;
    if (member)
      return member;
  }
  return self->count ? &self->member[0] : NULL;
}

static int watch (tree_t *self, int fd, void *tag, uint32_t more)
{
  struct epoll_event event = {.events = EPOLLIN | more, .data.ptr = tag};
  return epoll_ctl (self->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : WEFT_E_IO;
}

/* Takes over reader and pidfd, also on failure. */
static int add (tree_t *self, const car_session_options_t *options, shm_reader_t **reader_p,
                const uint8_t instance[WEFT_UUID_SIZE])
{
  car_session_t *session = NULL;
  if (self->arrivals)
    shm_control (shm_reader_base (*reader_p))->tree = *car_arrivals_tree (self->arrivals);
  int status = car_session_new (options, self->bus, reader_p, instance, &session);
  if (status < 0)
    return status;
  if (options->pidfd < 0)
    car_session_gone (session, weft_mono_ns ());
  else if ((status = watch (self, options->pidfd, session, EPOLLONESHOT)) < 0) {
    car_session_destroy (&session); /* its end would not be seen */
    return status;
  }
  self->member[self->count++] = (member_t){.session = session, .touched = 1};
  return 0;
}

/* ---- T4 -------------------------------------------------------------------- */

static void put_to_rest (tree_t *self, const uint8_t instance[WEFT_UUID_SIZE], uint64_t now)
{
  if (!self->rest)
    self->rest = calloc (CAR_TREE_RESTS_MAX, sizeof *self->rest);
  if (!self->rest || self->rest_count == CAR_TREE_RESTS_MAX)
    return;
  rest_t *place = &self->rest[(self->rest_first + self->rest_count++) % CAR_TREE_RESTS_MAX];
  memcpy (place->instance, instance, WEFT_UUID_SIZE);
  place->since_ns = now;
}

/* The uuid that has rested for the longest, if for long enough, or NULL. */
static const uint8_t *rested (const tree_t *self, uint64_t now)
{
  const rest_t *place = self->rest_count ? &self->rest[self->rest_first] : NULL;
  return place && now - place->since_ns >= CAR_TREE_REST_MS * WEFT_NS_PER_MS ? place->instance : NULL;
}

/* It is somebody's again. */
static void end_rest (tree_t *self)
{
  self->rest_first = (self->rest_first + 1) % CAR_TREE_RESTS_MAX;
  self->rest_count--;
}

/* ---- arrivals --------------------------------------------------------------- */

/* pidfd and reader are taken over. */
static void welcome (tree_t *self, pid_t pid, int pidfd, const member_t *parent, int forked,
                     shm_reader_t **reader_p, uint64_t now)
{
  uint8_t instance[WEFT_UUID_SIZE];
  const uint8_t *prefer = rested (self, now);
  if (self->count == CAR_TREE_MAX || car_claim_take (*reader_p, prefer, instance) < 0) {
    shm_reader_destroy (reader_p);
    if (pidfd >= 0)
      close (pidfd);
    return;
  }
  if (prefer && memcmp (instance, prefer, WEFT_UUID_SIZE) == 0)
    end_rest (self);
  car_session_options_t options = {.pid = pid,
                                   .pidfd = pidfd,
                                   .service = self->first.service,
                                   .controller = self->first.controller,
                                   .keys = self->first.keys,
                                   .desk = self->first.desk,
                                   .shelf = self->first.shelf,
                                   .launched = !forked,
                                   .parent = parent ? parent->session : NULL,
                                   .forked = forked};
  int leaving = parent && car_session_leaving (parent->session);
  if (add (self, &options, reader_p, instance) == 0 && leaving) /* T2 */
    car_session_leave (self->member[self->count - 1].session, now);
}

/* The same process with another probe runs another program now. One that the session cannot take now
 * it looks for again by itself: a process has one session. */
static int is_exec (tree_t *self, car_arrival_t *arrival, uint64_t now)
{
  member_t *member = arrival->kind == SHM_ARRIVAL_STARTED ? find_pid (self, arrival->pid) : NULL;
  if (!member)
    return 0;
  if (car_session_become (member->session, &arrival->reader, now) < 0)
    shm_reader_destroy (&arrival->reader);
  member->touched = 1;
  if (arrival->pidfd >= 0)
    close (arrival->pidfd);
  return 1;
}

static void take_arrivals (tree_t *self, uint64_t now)
{
  car_arrival_t arrival;
  for (unsigned i = 0; i < CAR_ARRIVALS_BURST && car_arrivals_take (self->arrivals, &arrival) == 0; i++) {
    if (is_exec (self, &arrival, now))
      continue;
    const member_t *parent =
        arrival.kind == SHM_ARRIVAL_FORKED ? find_start (self, arrival.parent_start) : NULL;
    int forked = parent != NULL;
    if (!forked)
      parent = find_above (self, arrival.pid);
    welcome (self, arrival.pid, arrival.pidfd, parent, forked, &arrival.reader, now);
  }
}

typedef struct {
  tree_t *self;
  const shm_tree_t *tree; /* as it was before */
  uint64_t now;
} adoption_t;

/* T3: a process in which a probe of this tree waits for a sidecar. */
static void adopt (void *arg, pid_t pid)
{
  const adoption_t *adoption = arg;
  tree_t *self = adoption->self;
  shm_reader_t *reader = NULL;
  if (find_pid (self, pid) || shm_reader_open (pid, &reader) < 0)
    return;
  int ours = memcmp (&shm_control (shm_reader_base (reader))->tree, adoption->tree, sizeof (shm_tree_t)) == 0;
  int pidfd = ours && car_claim_holder (reader) == 0 ? (int) syscall (SYS_pidfd_open, pid, 0) : -1;
  if (pidfd >= 0)
    welcome (self, pid, pidfd, find_above (self, pid), 0, &reader, adoption->now);
  shm_reader_destroy (&reader);
}

/* ---- what comes in ------------------------------------------------------------ */

static void take_messages (tree_t *self, uint64_t now)
{
  weft_bus_message_t message;
  const char *topic;
  while (car_bus_receive (self->bus, &message, &topic) == 0) {
    for (unsigned i = 0; i < self->count; i++)
      if (car_session_listens (self->member[i].session, topic)) {
        car_session_take (self->member[i].session, &message, topic,
                          now); /* the first one leaves it on the shelf */
        self->member[i].touched = 1;
      }
    weft_bus_clear (&message);
  }
}

static void take_signal (tree_t *self, uint64_t now)
{
  struct signalfd_siginfo info;
  if (read (self->signals, &info, sizeof info) != (ssize_t) sizeof info)
    return;
  for (unsigned i = 0; i < self->count; i++) {
    car_session_end (self->member[i].session, now);
    self->member[i].touched = 1;
  }
}

static void take_event (tree_t *self, void *tag, uint64_t now)
{
  if (tag == &self->signals)
    take_signal (self, now);
  else if (tag == &self->arrivals)
    take_arrivals (self, now);
  for (unsigned i = 0; i < self->count; i++)
    if (self->member[i].session == tag) {
      car_session_gone (self->member[i].session, now);
      self->member[i].touched = 1;
    }
}

static void take_events (tree_t *self, uint64_t now)
{
  struct epoll_event event[EVENTS_MAX];
  int count = epoll_wait (self->epoll, event, EVENTS_MAX, 0);
  for (int i = 0; i < count; i++)
    take_event (self, event[i].data.ptr, now);
}

/* ---- the loop ----------------------------------------------------------------- */

/* T2 */
static void leave_below (tree_t *self, member_t *above, uint64_t now)
{
  above->left = 1;
  for (unsigned i = 0; i < self->count; i++)
    if (car_session_descends (self->member[i].session, car_session_instance (above->session))) {
      car_session_leave (self->member[i].session, now);
      self->member[i].touched = 1;
    }
}

static void settle (tree_t *self, member_t *member, uint64_t now)
{
  int wait_ms = car_session_wait_ms (member->session, now);
  member->due_ns = now + (uint64_t) wait_ms * WEFT_NS_PER_MS;
  if (wait_ms >= CAR_SESSION_IDLE_MS)
    car_session_rest (member->session);
  if (!member->left && car_session_leaving (member->session))
    leave_below (self, member, now);
}

/* Each by itself, and then all answers in one go: so libzmq's thread is woken once for them. */
static void step (tree_t *self, uint64_t now)
{
  for (unsigned i = 0; i < self->count; i++) {
    member_t *member = &self->member[i];
    if (!member->touched && now < member->due_ns)
      continue;
    member->touched = 0;
    car_session_step (member->session, now);
    member->answers = car_session_owes (member->session, now);
    if (!member->answers)
      settle (self, member, now);
  }
  for (unsigned i = 0; i < self->count; i++) {
    member_t *member = &self->member[i];
    if (!member->answers)
      continue;
    member->answers = 0;
    car_session_answer (member->session, now);
    settle (self, member, now);
  }
}

static void remove_done (tree_t *self, uint64_t now)
{
  unsigned kept = 0;
  for (unsigned i = 0; i < self->count; i++) {
    member_t *member = &self->member[i];
    if (!car_session_done (member->session)) {
      self->member[kept++] = *member;
      continue;
    }
    put_to_rest (self, car_session_instance (member->session), now);
    car_session_destroy (&member->session);
  }
  self->count = kept;
}

static int next_wait_ms (const tree_t *self, uint64_t now, int *ret_blocked)
{
  uint64_t due_ns = now + CAR_SESSION_TICK_MS * WEFT_NS_PER_MS;
  *ret_blocked = 0;
  for (unsigned i = 0; i < self->count; i++) {
    const member_t *member = &self->member[i];
    due_ns = member->touched ? now : member->due_ns < due_ns ? member->due_ns : due_ns;
    *ret_blocked |= car_session_blocked (member->session);
  }
  return due_ns <= now ? 0 : (int) ((due_ns - now + WEFT_NS_PER_MS - 1) / WEFT_NS_PER_MS);
}

static int loop (tree_t *self)
{
  while (self->count) {
    uint32_t ready = 0;
    int blocked;
    int wait_ms = next_wait_ms (self, weft_mono_ns (), &blocked);
    int status = car_bus_wait (self->bus, &self->epoll, 1, blocked, wait_ms, &ready);
    if (status < 0)
      return status;
    uint64_t now = weft_mono_ns ();
    take_messages (self, now);
    if (ready & 1u)
      take_events (self, now);
    if (self->arrivals)
      car_arrivals_tidy (self->arrivals, now);
    int interrupted = car_bus_interrupted (self->bus);
    for (unsigned i = 0; (interrupted || blocked) && i < self->count; i++) {
      self->member[i].touched |= interrupted || car_session_blocked (self->member[i].session);
      if (interrupted)
        car_session_interrupted (self->member[i].session, now);
    }
    step (self, now);
    remove_done (self, now);
  }
  return 0;
}

static int open_signals (void)
{
  sigset_t set;
  sigemptyset (&set);
  sigaddset (&set, SIGTERM);
  sigaddset (&set, SIGINT);
  sigaddset (&set, SIGHUP);
  return signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int set_up (tree_t *self, const shm_tree_t *wanted, shm_reader_t **reader_p,
                   const uint8_t instance[WEFT_UUID_SIZE], char *why, size_t why_size)
{
  shm_tree_t before = shm_control (shm_reader_base (*reader_p))->tree;
  int orphans = car_arrivals_drawn (&before) && !(wanted && memcmp (&before, wanted, sizeof before) == 0);
  self->signals = open_signals ();
  self->epoll = epoll_create1 (EPOLL_CLOEXEC);
  int status = self->signals < 0 || self->epoll < 0 || !self->first.desk ? WEFT_E_NOMEM : 0;
  snprintf (why, why_size, "%s", weft_status_text (WEFT_E_NOMEM)); /* of whatever says no other reason */
  if (status == 0)
    status = car_bus_new (self->first.controller, self->first.keys, &self->bus, why, why_size);
  if (status < 0)
    return status;
  car_bus_subscribe (self->bus, WEFT_TOPIC_ALL);
  watch (self, self->signals, &self->signals, 0);
  if (car_arrivals_new (self->first.pid, orphans ? &before : wanted, &self->arrivals) == 0)
    watch (self, car_arrivals_fd (self->arrivals), &self->arrivals, 0);
  status = add (self, &self->first, reader_p, instance);
  if (status < 0)
    snprintf (why, why_size, "%s", weft_status_text (status));
  else if (orphans)
    car_processes_each (adopt, &(adoption_t){self, &before, weft_mono_ns ()});
  return status;
}

int car_tree_run (const car_session_options_t *options, const shm_tree_t *wanted, shm_reader_t **reader_p,
                  const uint8_t instance[WEFT_UUID_SIZE], char *why, size_t why_size)
{
  tree_t *self = calloc (1, sizeof *self);
  if (!self) {
    snprintf (why, why_size, "%s", weft_status_text (WEFT_E_NOMEM));
    shm_reader_destroy (reader_p);
    if (options->pidfd >= 0)
      close (options->pidfd);
    return WEFT_E_NOMEM;
  }
  self->first = *options;
  self->first.desk = car_desk_new ();
  self->first.shelf = &self->live;
  self->epoll = self->signals = -1;
  int status = set_up (self, wanted, reader_p, instance, why, why_size);
  if (status == 0)
    status = loop (self);
  for (unsigned i = 0; i < self->count; i++)
    car_session_destroy (&self->member[i].session);
  car_arrivals_destroy (&self->arrivals);
  car_bus_destroy (&self->bus);
  if (self->epoll >= 0)
    close (self->epoll);
  if (self->signals >= 0)
    close (self->signals);
  if (*reader_p && options->pidfd >= 0) /* no session was made of them */
    close (options->pidfd);
  shm_reader_destroy (reader_p);
  car_desk_destroy (&self->first.desk);
  car_live_drop (&self->live);
  free (self->rest);
  free (self);
  return status;
}
