/* SPDX-License-Identifier: Apache-2.0 */
#include "safe_point.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#define RED_ZONE        128
#define ARENA_SIZE_MASK 0x3ffffffull /* malloc's arenas begin at multiples of 64 MiB … */
#define ARENA_HEAD      0x100        /* … with their lock */
#define SYSCALL_SIZE    2            /* bytes of the instruction */

/* Results by which the kernel says that a call is to be made again. */
#define RESTART_SYS      (-512)
#define RESTART_NO_INTR  (-513)
#define RESTART_NO_HAND  (-514)
#define RESTART_BY_BLOCK (-516)
#define NO_CALL          (-1)

/* A signal frame: what the kernel pushes, return address first. */
#define FRAME_IP 176 /* of the interrupted code; behind the return address */
#define FRAME_SP 168

typedef struct {
  long number;
  int rewind; /* shows -EINTR to a caller that no signal has interrupted, and is made again by us: 1: on a
                 socket with a timeout; 2: always */
} call_t;

/* Calls in which threads wait without a lock of libc. connect is none: made again it fails. */
static const call_t calls[] = {{SYS_read, 1},      {SYS_readv, 1},           {SYS_recvfrom, 1},
                               {SYS_recvmsg, 1},   {SYS_accept, 1},          {SYS_accept4, 1},
                               {SYS_poll, 0},      {SYS_ppoll, 0},           {SYS_select, 0},
                               {SYS_pselect6, 0},  {SYS_epoll_wait, 2},      {SYS_epoll_pwait, 2},
                               {441, 2}, /* epoll_pwait2 */
                               {SYS_nanosleep, 0}, {SYS_clock_nanosleep, 0}, {SYS_pause, 0},
                               {SYS_wait4, 0},     {SYS_waitid, 0},          {SYS_rt_sigtimedwait, 2},
                               {SYS_semop, 2},     {SYS_semtimedop, 2},      {SYS_restart_syscall, 0},
                               {SYS_futex, 0}};

static const call_t *find_call (long number)
{
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
    if (calls[i].number == number)
      return &calls[i];
  return NULL;
}

car_safe_call_t car_safe_call (long number)
{
  const call_t *call = find_call (number);
  return !call ? CAR_CALL_OTHER : call->rewind == 2 ? CAR_CALL_SHOWS : CAR_CALL_WAITS;
}

const char *car_safe_text (car_safe_t verdict)
{
  static const char *const texts[] = {
#define XX(name, text) text,
    CAR_SAFE_MAP (XX)
#undef XX
  };
  return (size_t) verdict < sizeof texts / sizeof texts[0] ? texts[verdict] : "";
}

/* Of libc, the loader or malloc. */
static int is_delicate (const car_map_t *map)
{
  return map->kind == CAR_MAP_LIBC || map->kind == CAR_MAP_LOADER || map->kind == CAR_MAP_ALLOCATOR;
}

/* Y1. The control block of a thread (fs_base) lies at the upper end of its stack. */
static int on_own_stack (const car_maps_t *maps, const struct user_regs_struct *regs)
{
  const car_map_t *map = car_maps_at (maps, regs->rsp);
  if (!map || !(map->access & CAR_MAP_W) || map->file)
    return 0;
  if (regs->rsp - map->from < CAR_SAFE_STACK_ROOM + RED_ZONE)
    return 0;
  return map->kind == CAR_MAP_STACK || (regs->fs_base > regs->rsp && regs->fs_base < map->to);
}

static uint64_t word_at (const car_stopped_t *thread, size_t at)
{
  uint64_t word;
  memcpy (&word, thread->stack + at, sizeof word);
  return word;
}

/* Y4 */
static int handler_interrupts (const car_maps_t *maps, const car_stopped_t *thread, uint64_t restorer)
{
  for (size_t at = 0; restorer && at + 8 + FRAME_IP <= thread->stack_size; at += 8) {
    if (word_at (thread, at) != restorer)
      continue;
    uint64_t ip = word_at (thread, at + FRAME_IP), sp = word_at (thread, at + FRAME_SP);
    const car_map_t *code = car_maps_at (maps, ip), *stack = car_maps_at (maps, sp);
    if (!code || !(code->access & CAR_MAP_X) || !stack)
      continue; /* no frame, only its address: a left-over */
    if (is_delicate (code))
      return 1;
  }
  return 0;
}

/* A wrapper of an allocator around a call that is harmless by itself. */
static int allocator_called (const car_maps_t *maps, const car_stopped_t *thread)
{
  size_t end = thread->stack_size < CAR_SAFE_STACK_TOP ? thread->stack_size : CAR_SAFE_STACK_TOP;
  for (size_t at = 0; at + 8 <= end; at += 8) {
    const car_map_t *map = car_maps_at (maps, word_at (thread, at));
    if (map && map->kind == CAR_MAP_ALLOCATOR && (map->access & CAR_MAP_X))
      return 1;
  }
  return 0;
}

/* Y2: the word that a futex waiter waits on. */
static int is_foreign_lock (const car_maps_t *maps, uint64_t word)
{
  const car_map_t *map = car_maps_at (maps, word);
  return map && !is_delicate (map) && (word & ARENA_SIZE_MASK) >= ARENA_HEAD;
}

static car_safe_t in_call (const car_maps_t *maps, const struct user_regs_struct *regs, const car_map_t *code)
{
  long number = (long) regs->orig_rax;
  if (!find_call (number) || code->kind == CAR_MAP_LOADER)
    return CAR_SAFE_CALL;
  int futex = number == SYS_futex;
  if (number ==
      SYS_restart_syscall) /* of a futex, perhaps; the others have no address there, or a harmless one */
    futex = regs->rdi > UINT32_MAX;
  return futex && !is_foreign_lock (maps, regs->rdi) ? CAR_SAFE_LOCK : CAR_SAFE_YES;
}

car_safe_t car_safe_point (const car_maps_t *maps, const car_stopped_t *thread, uint64_t restorer)
{
  const struct user_regs_struct *regs = &thread->regs;
  const car_map_t *code = car_maps_at (maps, regs->rip);
  if (!on_own_stack (maps, regs))
    return CAR_SAFE_STACK;
  if (!code || !(code->access & CAR_MAP_X))
    return CAR_SAFE_CODE;
  if (thread->deliverable)
    return CAR_SAFE_SIGNAL;
  car_safe_t verdict = CAR_SAFE_YES;
  if ((int64_t) regs->orig_rax >= 0)
    verdict = in_call (maps, regs, code);
  else if (is_delicate (code))
    verdict = CAR_SAFE_CODE;
  if (verdict == CAR_SAFE_YES && handler_interrupts (maps, thread, restorer))
    verdict = CAR_SAFE_HANDLER;
  if (verdict == CAR_SAFE_YES && allocator_called (maps, thread))
    verdict = CAR_SAFE_CODE;
  return verdict;
}

/* ---- going on ----------------------------------------------------------------- */
static void make_again (struct user_regs_struct *regs, uint64_t number)
{
  regs->rax = number;
  regs->rip -= SYSCALL_SIZE;
  regs->orig_rax = (uint64_t) NO_CALL;
}

/* A call that the kernel has restarted once goes by another number since; its own
 * stands in the instruction before: b8 NUMBER, 0f 05. */
static uint64_t own_number (const car_stopped_t *thread)
{
  const uint8_t *code = thread->before_rip;
  uint32_t number;
  memcpy (&number, code + 1, sizeof number);
  int known = code[0] == 0xb8 && code[5] == 0x0f && code[6] == 0x05 && number != SYS_restart_syscall;
  return known && find_call ((long) number) ? number : (uint64_t) SYS_restart_syscall;
}

void car_safe_resume (const car_stopped_t *thread, struct user_regs_struct *ret_kernel,
                      struct user_regs_struct *ret_alone)
{
  struct user_regs_struct kernel = thread->regs, alone = thread->regs;
  int64_t result = (int64_t) thread->regs.rax, number = (int64_t) thread->regs.orig_rax;
  const call_t *call = number >= 0 ? find_call (number) : NULL;
  if (number >= 0) {
    if (result == -EINTR && call && call->rewind && !thread->deliverable) {
      make_again (&kernel, (uint64_t) number);
      make_again (&alone, (uint64_t) number);
    } else if (result == RESTART_SYS || result == RESTART_NO_INTR || result == RESTART_NO_HAND)
      make_again (&alone, (uint64_t) number);
    else if (result == RESTART_BY_BLOCK)
      make_again (&alone, number == SYS_restart_syscall ? own_number (thread) : (uint64_t) number);
  }
  alone.orig_rax = (uint64_t) NO_CALL;
  *ret_kernel = kernel;
  *ret_alone = alone;
}
