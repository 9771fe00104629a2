/* SPDX-License-Identifier: Apache-2.0 */
#include "ptrace.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../common/clocks.h"
#include "../../../common/fault.h"
#include "../../../common/status.h"
#include "../../shm/reader.h"
#include "helper.h"
#include "landing.h"
#include "remote.h"
#include "safe_point.h"
#include "seccomp.h"
#include "signal_frame.h"
#include "stub.h"
#include "thread.h"
#include "turn.h"

#define PAGES_SIZE      ((size_t) CAR_STUB_PAGE * 2)
#define RED_ZONE        128
#define FLAGS_CLEAR     0x202 /* no direction flag, no trap flag */
#define CREATE_WAIT_MS  200   /* for pthread_create on the stopped thread */
#define CREATE_PAUSE_US 20
#define ROUNDS_BLOCKED  8 /* so often only threads that wait are tried, before running ones */

typedef struct {
  const car_target_t *target;
  car_landing_t landing;
  car_library_t library;
  uint64_t entry; /* of a probe that is mapped, 0: none */
  car_thread_t thread;
  car_context_t kernel;                /* to be given back */
  uint8_t xstate[CAR_XSTATE_MAX];      /* of it */
  uint8_t stack[CAR_SAFE_STACK_SCAN];  /* as it was found */
  uint8_t frame[CAR_SIGNAL_FRAME_MAX]; /* and the way back without us */
  uint64_t frame_at, pages;
  uint32_t created[2]; /* the first words of the data page: hijacked, created */
  unsigned stopped_us;
  car_safe_t verdict;              /* of the last thread that was looked at */
  pid_t late[CAR_PTRACE_LATE_MAX]; /* asked to stop, and have not yet (I5) */
  unsigned late_count;
  int changed;         /* it is another program by now (I6) */
  const char *refused; /* what its seccomp filter does not allow, or NULL */
  int found;           /* a status */
} injector_t;

/* ---- the stopped thread ------------------------------------------------------ */
/* Reads what is needed to decide. An interruption that the thread would see is mended
 * first of all: from then on it may be let go at any moment. */
static int inspect (injector_t *self, car_stopped_t *ret_stopped)
{
  car_stopped_t stopped = {.stack = self->stack};
  int status = car_thread_save (&self->thread, &self->kernel, self->xstate);
  if (status < 0)
    return status;
  stopped.regs = self->kernel.regs;
  stopped.deliverable = car_thread_deliverable (&self->thread, self->kernel.mask);
  struct user_regs_struct mended, alone;
  car_safe_resume (&stopped, &mended, &alone);
  if (memcmp (&mended, &stopped.regs, sizeof mended) != 0)
    car_thread_set_regs (&self->thread, &mended);
  const car_map_t *map = car_maps_at (&self->landing.maps, stopped.regs.rsp);
  if (map) {
    uint64_t above = map->to - stopped.regs.rsp;
    stopped.stack_size = above < sizeof self->stack ? above : sizeof self->stack;
    if (car_remote_read (self->landing.pid, stopped.regs.rsp, self->stack, stopped.stack_size) < 0)
      stopped.stack_size = 0;
  }
  size_t before = sizeof stopped.before_rip;
  if (car_remote_read (self->landing.pid, stopped.regs.rip - before, stopped.before_rip, before) < 0)
    memset (stopped.before_rip, 0, before);
  *ret_stopped = stopped;
  return 0;
}

/* The registers for one call of the kernel on the thread; it returns into its frame. */
static struct user_regs_struct kernel_call (const injector_t *self, uint64_t number)
{
  struct user_regs_struct regs = self->kernel.regs;
  regs.rip = self->landing.leave;
  regs.rsp = self->frame_at + 8; /* the restorer */
  regs.rax = number;
  regs.orig_rax = UINT64_MAX;
  regs.eflags = FLAGS_CLEAR;
  return regs;
}

static int run_call (injector_t *self, const struct user_regs_struct *call, int64_t *ret_result)
{
  struct user_regs_struct after;
  int status = car_thread_set_regs (&self->thread, call);
  if (status == 0)
    status = car_thread_set_mask (&self->thread, UINT64_MAX);
  if (status == 0)
    status = car_thread_step_call (&self->thread);
  if (status == 0)
    status = car_thread_regs (&self->thread, &after);
  if (status == 0)
    *ret_result = (int64_t) after.rax;
  return status;
}

static int map_pages (injector_t *self)
{
  struct user_regs_struct call = kernel_call (self, SYS_mmap);
  int64_t result = 0;
  call.rdi = 0;
  call.rsi = PAGES_SIZE;
  call.rdx = PROT_READ | PROT_EXEC;
  call.r10 = MAP_PRIVATE | MAP_ANONYMOUS;
  call.r8 = UINT64_MAX;
  call.r9 = 0;
  int status = run_call (self, &call, &result);
  if (status == 0 && (result <= 0 || result % CAR_STUB_PAGE))
    status = WEFT_E_NOMEM;
  if (status == 0)
    self->pages = (uint64_t) result;
  return status;
}

/* The thread is held as before; it was in the middle of a call that now has ended. */
static void unmap_pages (injector_t *self)
{
  struct user_regs_struct call = kernel_call (self, SYS_munmap);
  int64_t result;
  call.rdi = self->pages;
  call.rsi = PAGES_SIZE;
  if (self->pages)
    run_call (self, &call, &result);
}

/* The thread is the tracer's: what is read-only there is written nevertheless. */
static int write_stub (const injector_t *self)
{
  uint8_t pages[PAGES_SIZE];
  const car_landing_t *landing = &self->landing;
  car_stub_data_t data = {.fd = -1,
                          .patience = CAR_HELPER_PATIENCE,
                          .pause = {0, CAR_HELPER_PAUSE_US * 1000},
                          .all_signals = UINT64_MAX,
                          .pthread_create = landing->pthread_create,
                          .pthread_detach = landing->pthread_detach,
                          .dlopen = landing->dlopen,
                          .dlsym = landing->dlsym,
                          .dlerror = landing->dlerror,
                          .entry = self->entry,
                          .leave = landing->leave,
                          .symbol = CAR_LIBRARY_ENTRY,
                          .memory_name = CAR_HELPER_MEMORY};
  memset (pages, 0, sizeof pages);
  memcpy (pages, car_stub_code, (size_t) (car_stub_code_end - car_stub_code));
  memcpy (pages + CAR_STUB_PAGE, &data, sizeof data);
  WEFT_FAULT_POINT ("hold");
  return car_remote_force (landing->pid, self->pages, pages, sizeof pages);
}

static int enter_stub (injector_t *self)
{
  struct user_regs_struct regs = kernel_call (self, 0);
  regs.rip = self->pages + (uint64_t) (car_stub_entry - car_stub_code);
  regs.rsp = self->frame_at;
  regs.rbx = self->pages + CAR_STUB_PAGE;
  regs.r13 = self->frame_at + CAR_SIGNAL_FRAME_UC;
  int status = car_thread_set_regs (&self->thread, &regs);
  return status < 0 ? status : car_thread_run (&self->thread);
}

/* Until pthread_create has returned; the thread then waits for us. One that takes longer (others
 * hold the lock of malloc, the machine is busy) is let go in the middle and comes back alone. */
static int await_created (injector_t *self)
{
  uint64_t until_ns = weft_mono_ns () + CREATE_WAIT_MS * WEFT_NS_PER_MS;
  do {
    int status =
        car_remote_read (self->landing.pid, self->pages + CAR_STUB_PAGE, self->created, sizeof self->created);
    if (status < 0)
      return status;
    WEFT_FAULT_POINT ("hold");
    if (self->created[0] != CAR_STUB_ABSENT)
      return 0;
    usleep (CREATE_PAUSE_US);
  } while (weft_mono_ns () < until_ns);
  return 0;
}

/* From wherever it is held. 1: done. */
static int restore (injector_t *self, const car_context_t *context)
{
  return car_thread_stop (&self->thread, 1) == 0 && car_thread_restore (&self->thread, context) == 0;
}

/* Gives the thread what it had. 1: it is out of the stub for certain (B3). */
static int give_back (injector_t *self, const car_context_t *context)
{
  struct user_regs_struct now;
  car_stopped_t stopped;
  int out = 0;
  if (car_thread_stop (&self->thread, 1) < 0)
    return 0;
  if (car_thread_regs (&self->thread, &now) == 0 && now.rip - self->pages < CAR_STUB_PAGE) {
    if (self->created[0] != CAR_STUB_ABSENT && self->created[1] != 0)
      unmap_pages (self); /* there is no new thread that would */
    out = restore (self, context);
  } else if (self->created[0] != CAR_STUB_ABSENT)
    out = inspect (self, &stopped) == 0; /* it had waited long enough and went alone */
  car_thread_release (&self->thread);
  return out;
}

static int hijack (injector_t *self, const car_stopped_t *stopped)
{
  struct user_regs_struct alone;
  car_context_t way_back = self->kernel;
  size_t size;
  self->pages = 0;
  memset (self->created, 0, sizeof self->created);
  car_safe_resume (stopped, &self->kernel.regs, &alone);
  way_back.regs = alone;
  int status = car_signal_frame (&way_back, self->landing.restorer, stopped->regs.rsp - RED_ZONE, self->frame,
                                 &self->frame_at, &size);
  if (status == 0)
    status = car_remote_write (self->landing.pid, self->frame_at, self->frame, size);
  if (status == 0)
    status = map_pages (self); /* the first change of its registers: from here on I1 is the frame's */
  if (status == 0)
    status = write_stub (self);
  if (status < 0) {
    unmap_pages (self);
    restore (self, &self->kernel);
    car_thread_release (&self->thread);
    return status;
  }
  car_context_t context = self->kernel; /* its buffer is written again by inspect (), after its last use */
  status = enter_stub (self);
  if (status == 0)
    status = await_created (self);
  uint32_t out = (uint32_t) give_back (self, &context);
  if (status == 0 && self->created[1] != 0)
    return WEFT_E_FULL;
  if (status == 0 && out)
    status = car_remote_write (
        self->landing.pid, self->pages + CAR_STUB_PAGE + offsetof (car_stub_data_t, out), &out, sizeof out);
  return status;
}

/* ---- choosing a thread --------------------------------------------------------- */
/* Somebody stands still: nobody else is to go first. As far as we may. */
static void hurry (int *kept)
{
  struct sched_param first = {.sched_priority = 1};
  *kept = sched_getscheduler (0);
  prctl (PR_SET_TIMERSLACK, 1);
  sched_setscheduler (0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
}

static void take_time (int kept)
{
  struct sched_param none = {.sched_priority = 0};
  prctl (PR_SET_TIMERSLACK, 0); /* as it was at the start */
  if (kept >= 0)
    sched_setscheduler (0, kept, &none);
}

/* I5 */
static void release_late (injector_t *self)
{
  car_stopped_t stopped;
  while (car_thread_late (&self->thread)) {
    for (unsigned i = 0; i < self->late_count; i++)
      if (self->late[i] == self->thread.tid)
        self->late[i] = self->late[--self->late_count];
    inspect (self, &stopped); /* and mend */
    car_thread_release (&self->thread);
  }
}

static int is_late (const injector_t *self, pid_t tid)
{
  for (unsigned i = 0; i < self->late_count; i++)
    if (self->late[i] == tid)
      return 1;
  return 0;
}

/* Without the kernel's help: the call by which it resumes a wait may be one that the filter ends. */
static void let_go_alone (injector_t *self, const car_stopped_t *stopped)
{
  struct user_regs_struct kernel, alone;
  car_safe_resume (stopped, &kernel, &alone);
  car_thread_set_regs (&self->thread, &alone);
  car_thread_release (&self->thread);
}

/* With the thread seized: 0: the stub runs; WEFT_E_BUSY: it is at no safe point; else a status. */
static int use_thread (injector_t *self)
{
  car_stopped_t stopped;
  pid_t tid = self->thread.tid;
  int status = car_thread_stop (&self->thread, 0);
  if (status == WEFT_E_TIMEOUT) {
    self->late[self->late_count++] = tid;
    self->verdict = CAR_SAFE_STUCK;
    return WEFT_E_BUSY;
  }
  if (status < 0)
    return status;
  uint64_t began_ns = weft_mono_ns ();
  status = inspect (self, &stopped);
  if (status < 0) {
    car_thread_release (&self->thread);
    return status;
  }
  // Held, it cannot become another one: what we know of its memory is right, or it ends here.
  self->changed = !car_target_is_same (self->target);
  if (self->changed) {
    car_thread_release (&self->thread);
    return WEFT_E_UNSUPPORTED;
  }
  if (self->target->seccomp)
    self->refused = car_seccomp_refuses (self->thread.tid);
  if (self->refused) {
    let_go_alone (self, &stopped);
    return WEFT_E_UNSUPPORTED;
  }
  self->verdict = car_safe_point (&self->landing.maps, &stopped, self->landing.restorer);
  if (self->verdict != CAR_SAFE_YES) {
    car_thread_release (&self->thread);
    return WEFT_E_BUSY;
  }
  status = hijack (self, &stopped);
  self->stopped_us = (unsigned) ((weft_mono_ns () - began_ns) / 1000);
  return status;
}

static int try_thread (injector_t *self, pid_t tid)
{
  release_late (self);
  if (is_late (self, tid))
    return WEFT_E_BUSY;
  if (self->late_count == CAR_PTRACE_LATE_MAX)
    return WEFT_E_TIMEOUT;
  int status = car_thread_seize (&self->thread, tid);
  if (status < 0)
    return status;
  int kept;
  hurry (&kept);
  status = use_thread (self);
  take_time (kept);
  return status;
}

#define THREAD_RUNS (CAR_CALL_SHOWS + 1)

/* A car_safe_call_t or THREAD_RUNS. "running", or the number of the call it waits in. */
static int kind_of (pid_t pid, const char *tid)
{
  char file[64], text[256], *end;
  snprintf (file, sizeof file, "task/%.20s/syscall", tid);
  if (car_target_read (pid, file, text, sizeof text) <= 0)
    return CAR_CALL_OTHER;
  if (strncmp (text, "running", 7) == 0)
    return THREAD_RUNS;
  long number = strtol (text, &end, 10);
  return end != text ? (int) car_safe_call (number) : CAR_CALL_OTHER;
}

/* Tries every thread of a kind. 0, WEFT_E_BUSY: none was at a safe point. */
static int try_kind (injector_t *self, int kind)
{
  char path[64];
  int status = WEFT_E_BUSY, tried = 0;
  snprintf (path, sizeof path, "/proc/%d/task", (int) self->target->pid);
  DIR *dir = opendir (path);
  if (!dir)
    return WEFT_E_GONE;
  struct dirent *entry;
  while (status == WEFT_E_BUSY && tried < CAR_PTRACE_THREADS_MAX && (entry = readdir (dir))) {
    if (entry->d_name[0] == '.' || kind_of (self->target->pid, entry->d_name) != kind)
      continue;
    tried++;
    status = try_thread (self, (pid_t) strtol (entry->d_name, NULL, 10));
    if (status == WEFT_E_GONE)
      status = WEFT_E_BUSY; /* that thread; whether the process lives is seen by opendir */
  }
  closedir (dir);
  return status;
}

static int find_safe_point (injector_t *self)
{
  uint64_t until_ns = weft_mono_ns () + CAR_PTRACE_WAIT_MS * WEFT_NS_PER_MS;
  for (unsigned round = 0;; round++) {
    int status = car_target_await_continued (self->target->pid, CAR_TARGET_STOPPED_MS);
    if (status == 0)
      status = try_kind (self, CAR_CALL_WAITS);
    if (status == WEFT_E_BUSY)
      status = try_kind (self, CAR_CALL_SHOWS);
    if (status == WEFT_E_BUSY && round >= ROUNDS_BLOCKED) {
      if (!self->landing.allocators)
        car_landing_mark_allocators (&self->landing);
      status = try_kind (self, THREAD_RUNS);
    }
    if (status == 0 || (status != WEFT_E_BUSY && status != WEFT_E_STATE))
      return status;
    if (weft_mono_ns () >= until_ns)
      return status == WEFT_E_BUSY ? WEFT_E_TIMEOUT : status;
    usleep (CAR_PTRACE_PAUSE_US);
    car_landing_look_again (&self->landing);
  }
}

static void *search (void *injector)
{
  injector_t *self = injector;
  self->found = find_safe_point (self);
  release_late (self);
  return NULL;
}

/* In a thread of our own: what it has asked to stop, and what has not stopped when it ends, is nobody's
 * then. */
static int search_apart (injector_t *self)
{
  pthread_t thread;
  if (pthread_create (&thread, NULL, search, self) != 0)
    return WEFT_E_IO;
  pthread_join (thread, NULL);
  return self->found;
}

static void explain (const injector_t *self, int status, char *why, size_t why_size)
{
  if (status == WEFT_E_DENIED)
    snprintf (why, why_size,
              "the kernel does not let us trace it (another user or namespace, a debugger, or a security "
              "module); run weft as root with CAP_SYS_PTRACE");
  else if (status == WEFT_E_STATE)
    snprintf (why, why_size, CAR_TARGET_STOPPED, (int) self->target->pid);
  else if (status == WEFT_E_TIMEOUT)
    snprintf (why, why_size,
              "no thread of it came to a safe point within %d s (the last one was %s); try again",
              CAR_PTRACE_WAIT_MS / 1000, car_safe_text (self->verdict));
  else if (self->changed)
    snprintf (why, why_size, CAR_TARGET_CHANGED);
  else if (self->refused)
    snprintf (
        why, why_size,
        "its seccomp filter does not allow what joining takes (%s); start it with `weft run`, or allow that",
        self->refused);
  else if (status == WEFT_E_BUSY)
    snprintf (why, why_size, "somebody else is joining it just now; try again");
  else if (status == WEFT_E_NOMEM)
    snprintf (why, why_size,
              "it may not map two pages of memory to execute (a limit, or a security module); raise the "
              "limit, or start it with `weft run`");
  else if (status == WEFT_E_FULL)
    snprintf (why, why_size,
              "it could not start a thread (its limit is reached); raise the limit and try again");
  else
    snprintf (why, why_size, "it ended, or changed, meanwhile (%s); look for it with `weft profile`",
              weft_status_text (status));
}

/* 1: a probe lives in it by now. */
static int probe_lives (pid_t pid)
{
  shm_reader_t *reader = NULL;
  shm_status_t now;
  if (shm_reader_open (pid, &reader) < 0)
    return 0;
  shm_reader_status (reader, &now);
  shm_reader_destroy (&reader);
  return now.state < SHM_STATE_LEAVING;
}

/* Until the thread of an injector that died is done, one way or the other. */
static int await_others (injector_t *self)
{
  uint64_t until_ns = weft_mono_ns () + CAR_PTRACE_OTHERS_MS * WEFT_NS_PER_MS;
  while (car_landing_occupied (&self->landing)) {
    if (weft_mono_ns () >= until_ns)
      return WEFT_E_BUSY;
    usleep (CAR_PTRACE_PAUSE_US);
    car_landing_look_again (&self->landing);
  }
  return 0;
}

static int load (injector_t *self, int pidfd, char *why, size_t why_size)
{
  pid_t pid = self->target->pid;
  int status = car_landing_read (pid, &self->landing, why, why_size);
  if (status == 0 && (status = await_others (self)) < 0)
    explain (self, status, why, why_size);
  if (status < 0 || probe_lives (pid))
    return status;
  self->entry = car_landing_probe (&self->landing, &self->library);
  status = search_apart (self);
  if (status == 0)
    return car_helper_talk (pid, pidfd, self->pages + CAR_STUB_PAGE, &self->library,
                            car_landing_probes (&self->landing), why, why_size);
  explain (self, status, why, why_size);
  return status;
}

int car_ptrace_load (const car_target_t *target, int pidfd, const char *library, unsigned *ret_stopped_us,
                     char *why, size_t why_size)
{
  injector_t *self = calloc (1, sizeof *self);
  if (!self) {
    snprintf (why, why_size, CAR_NO_MEMORY);
    return WEFT_E_NOMEM;
  }
  self->target = target;
  int status = car_library_read (library, &self->library, why, why_size);
  int turn = status == 0 ? car_turn_take (target->pid) : -1;
  if (status == 0 && turn < 0) {
    status = turn;
    if (status == WEFT_E_BUSY)
      explain (self, status, why, why_size);
    else
      snprintf (why, why_size,
                "the socket that says whose turn it is cannot be bound (%s); end what keeps weft from "
                "binding abstract unix sockets here",
                strerror (errno));
  }
  if (status == 0)
    status = load (self, pidfd, why, why_size);
  if (status < 0 && car_target_image (target->pid) && !car_target_is_same (target))
    snprintf (why, why_size, CAR_TARGET_CHANGED); /* whatever else came of that */
  if (status == 0)
    *ret_stopped_us = self->stopped_us;
  if (turn >= 0)
    close (turn);
  car_landing_clear (&self->landing);
  car_library_clear (&self->library);
  free (self);
  return status;
}
