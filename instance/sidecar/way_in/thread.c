/* SPDX-License-Identifier: Apache-2.0 */
#include "thread.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../common/clocks.h"
#include "../../../common/fault.h"
#include "../../../common/status.h"

#define STEP_NS      1000000
#define PENDING_MAX  32 /* queued signals that are looked at */
#define MASK_SIZE    8
#define CALL_STOP    (SIGTRAP | 0x80)
#define EVENT_OF(st) ((st) >> 16)

/* Waits for a change of the thread, asleep: it needs the processor more than we do.
 * 0 and the wait status. */
static int await (const car_thread_t *self, int *ret_state)
{
  uint64_t until_ns = weft_mono_ns () + CAR_THREAD_WAIT_MS * WEFT_NS_PER_MS;
  const struct timespec step = {0, STEP_NS}; /* where the signal is taken by somebody else */
  sigset_t child;
  sigemptyset (&child);
  sigaddset (&child, SIGCHLD);
  for (;;) {
    pid_t got = waitpid (self->tid, ret_state, __WALL | WNOHANG);
    WEFT_FAULT_POINT ("hold");
    if (got == self->tid)
      return WIFSTOPPED (*ret_state) ? 0 : WEFT_E_GONE;
    if (got < 0 && errno != EINTR)
      return WEFT_E_GONE;
    if (weft_mono_ns () >= until_ns)
      return WEFT_E_TIMEOUT; /* T3 */
    sigtimedwait (&child, NULL, &step);
  }
}

static int is_group_stop (int state)
{
  int number = WSTOPSIG (state);
  return EVENT_OF (state) == PTRACE_EVENT_STOP && number != SIGTRAP;
}

/* The kernel's struct sigset is smaller than glibc's sigset_t. */
static long raw (long request, pid_t tid, uintptr_t address, uintptr_t data)
{
  long result = syscall (SYS_ptrace, request, tid, address, data);
  WEFT_FAULT_POINT ("hold");
  return result;
}

int car_thread_seize (car_thread_t *self, pid_t tid)
{
  *self = (car_thread_t){.tid = tid};
  if (raw (PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) == 0) /* T1 */
    return 0;
  int status = errno == ESRCH ? WEFT_E_GONE : errno == EPERM ? WEFT_E_DENIED : WEFT_E_IO;
  self->tid = 0;
  return status;
}

int car_thread_stop (car_thread_t *self, int even_stopped)
{
  int state, status;
  if (raw (PTRACE_INTERRUPT, self->tid, 0, 0) < 0)
    return WEFT_E_GONE;
  if (self->held)
    car_thread_run (self);
  while ((status = await (self, &state)) == 0) {
    self->held = 1;
    if (is_group_stop (state) && !even_stopped) {
      status = WEFT_E_STATE;
      break;
    }
    if (EVENT_OF (state) == PTRACE_EVENT_STOP)
      return 0;
    raw (PTRACE_CONT, self->tid, 0, EVENT_OF (state) ? 0 : (uintptr_t) WSTOPSIG (state)); /* T2 */
    self->held = 0;
  }
  if (status == WEFT_E_TIMEOUT)
    *self = (car_thread_t){.tid = 0}; /* asking again would be another wait for nothing */
  car_thread_release (self);
  return status;
}

int car_thread_run (car_thread_t *self)
{
  if (raw (PTRACE_CONT, self->tid, 0, 0) < 0)
    return WEFT_E_GONE;
  self->held = 0;
  return 0;
}

/* Two stops: before the call and behind it. Its signals are blocked, so that
 * only a stop of the whole process can come between: it begins, and we run on. */
int car_thread_step_call (car_thread_t *self)
{
  uintptr_t handed_on = 0;
  for (int seen = 0; seen < 2;) {
    int state;
    if (raw (PTRACE_SYSCALL, self->tid, 0, handed_on) < 0)
      return WEFT_E_GONE;
    self->held = 0;
    int status = await (self, &state);
    if (status < 0)
      return status;
    self->held = 1;
    int call = EVENT_OF (state) == 0 && WSTOPSIG (state) == CALL_STOP;
    seen += call;
    handed_on = EVENT_OF (state) == 0 && !call ? (uintptr_t) WSTOPSIG (state) : 0; /* T2 */
  }
  return 0;
}

void car_thread_release (car_thread_t *self)
{
  int state;
  if (!self->tid)
    return;
  /* Only a stopped thread can be let go. */
  if (!self->held && raw (PTRACE_INTERRUPT, self->tid, 0, 0) == 0 && await (self, &state) == 0)
    self->held = 1;
  raw (PTRACE_DETACH, self->tid, 0, 0);
  self->tid = 0;
  self->held = 0;
}

int car_thread_late (car_thread_t *ret_self)
{
  int state;
  pid_t tid;
  while ((tid = waitpid (-1, &state, __WALL | __WNOTHREAD | WNOHANG)) > 0) {
    if (!WIFSTOPPED (state))
      continue;
    if (EVENT_OF (state) == PTRACE_EVENT_STOP) {
      *ret_self = (car_thread_t){.tid = tid, .held = 1};
      return 1;
    }
    raw (PTRACE_CONT, tid, 0, EVENT_OF (state) ? 0 : (uintptr_t) WSTOPSIG (state)); /* T2; it stops again */
  }
  return 0;
}

int car_thread_regs (const car_thread_t *self, struct user_regs_struct *ret_regs)
{
  return raw (PTRACE_GETREGS, self->tid, 0, (uintptr_t) ret_regs) < 0 ? WEFT_E_GONE : 0;
}

int car_thread_set_regs (const car_thread_t *self, const struct user_regs_struct *regs)
{
  return raw (PTRACE_SETREGS, self->tid, 0, (uintptr_t) regs) < 0 ? WEFT_E_GONE : 0;
}

int car_thread_set_mask (const car_thread_t *self, uint64_t mask)
{
  return raw (PTRACE_SETSIGMASK, self->tid, MASK_SIZE, (uintptr_t) &mask) < 0 ? WEFT_E_GONE : 0;
}

int car_thread_save (const car_thread_t *self, car_context_t *ret_context, uint8_t *xstate)
{
  car_context_t context = {.xstate = xstate};
  struct iovec vector = {xstate, CAR_XSTATE_MAX};
  if (car_thread_regs (self, &context.regs) < 0 ||
      raw (PTRACE_GETREGSET, self->tid, NT_X86_XSTATE, (uintptr_t) &vector) < 0 ||
      raw (PTRACE_GETSIGMASK, self->tid, MASK_SIZE, (uintptr_t) &context.mask) < 0)
    return WEFT_E_IO;
  context.xstate_size = vector.iov_len;
  *ret_context = context;
  return 0;
}

int car_thread_restore (const car_thread_t *self, const car_context_t *context)
{
  struct iovec vector = {(void *) (uintptr_t) context->xstate, context->xstate_size};
  if (raw (PTRACE_SETREGSET, self->tid, NT_X86_XSTATE, (uintptr_t) &vector) < 0)
    return WEFT_E_GONE;
  int status = car_thread_set_mask (self, context->mask);
  return status < 0 ? status : car_thread_set_regs (self, &context->regs);
}

uint64_t car_thread_deliverable (const car_thread_t *self, uint64_t mask)
{
  siginfo_t waiting[PENDING_MAX];
  uint64_t found = 0;
  for (unsigned shared = 0; shared < 2; shared++) {
    struct __ptrace_peeksiginfo_args which = {.off = 0, .flags = shared, .nr = PENDING_MAX};
    long count = raw (PTRACE_PEEKSIGINFO, self->tid, (uintptr_t) &which, (uintptr_t) waiting);
    for (long i = 0; i < count; i++)
      if (waiting[i].si_signo >= 1 && waiting[i].si_signo <= 64)
        found |= 1ull << (waiting[i].si_signo - 1);
  }
  return found & ~mask;
}
