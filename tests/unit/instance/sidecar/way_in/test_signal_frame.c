/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h must follow these */
#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../../../common/status.h"
#include "../../../../../instance/sidecar/way_in/remote.h"
#include "../../../../../instance/sidecar/way_in/thread.h"

/* `mov $15, %eax; syscall`: what a handler returns into. */
extern const uint8_t test_restorer[];
__asm__(".text\n"
        "test_restorer:\n"
        "  mov $15, %eax\n"
        "  syscall\n");

/* Fills registers, spins until *flag is set, and compares. 0: all as they were. */
static int spin (volatile uint32_t *flag)
{
  uint64_t bad;
  __asm__ volatile("  movabs $0x1111222233334444, %%r8\n"
                   "  movabs $0x5555666677778888, %%r15\n"
                   "  movq %%r8, %%xmm3\n"
                   "  movq %%r15, %%xmm15\n"
                   "  stc\n" /* a flag, too */
                   "1: pause\n"
                   "  mov (%1), %%r9d\n"
                   "  mov %%r9, %%rcx\n" /* no flag is touched */
                   "  jrcxz 1b\n"
                   "  setnc %%r11b\n"
                   "  movzx %%r11b, %0\n"
                   "  movabs $0x1111222233334444, %%r9\n"
                   "  movq %%xmm3, %%r10\n"
                   "  xor %%r9, %%r8\n"
                   "  xor %%r9, %%r10\n"
                   "  or %%r8, %0\n"
                   "  or %%r10, %0\n"
                   "  movabs $0x5555666677778888, %%r9\n"
                   "  movq %%xmm15, %%r10\n"
                   "  xor %%r9, %%r15\n"
                   "  xor %%r9, %%r10\n"
                   "  or %%r15, %0\n"
                   "  or %%r10, %0\n"
                   : "=&a"(bad)
                   : "d"(flag)
                   : "rcx", "r8", "r9", "r10", "r11", "r15", "xmm3", "xmm15", "memory", "cc");
  return bad != 0;
}

static void child_main (volatile uint32_t *flag)
{
  sigset_t blocked, now;
  stack_t other = {.ss_sp = malloc (65536), .ss_size = 65536}, seen;
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  sigemptyset (&blocked);
  sigaddset (&blocked, SIGUSR2);
  sigprocmask (SIG_SETMASK, &blocked, NULL);
  sigaltstack (&other, NULL);
  flag[1] = 1;
  int bad = spin (flag);
  sigprocmask (SIG_SETMASK, NULL, &now);
  sigaltstack (NULL, &seen);
  bad |= (sigismember (&now, SIGUSR2) != 1) << 1 | (sigismember (&now, SIGUSR1) != 0) << 2;
  bad |= (seen.ss_sp != other.ss_sp || seen.ss_flags != other.ss_flags) << 3;
  _exit (bad);
}

/* A thread whose registers, vectors and mask are spoilt finds its way back by the frame alone. */
static void brings_a_thread_back (void **state)
{
  static uint8_t xstate[CAR_XSTATE_MAX], spoilt[CAR_XSTATE_MAX], frame[CAR_SIGNAL_FRAME_MAX];
  volatile uint32_t *flag = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  car_thread_t thread;
  car_context_t context;
  uint64_t at;
  size_t size;
  int code;
  pid_t child = fork ();
  if (child == 0)
    child_main (flag);
  while (!flag[1])
    usleep (100);
  usleep (2000); /* it spins */
  assert_int_equal (car_thread_seize (&thread, child), 0);
  assert_int_equal (car_thread_stop (&thread, 0), 0);
  assert_int_equal (car_thread_save (&thread, &context, xstate), 0);
  assert_int_equal (car_signal_frame (&context, (uint64_t) (uintptr_t) test_restorer, context.regs.rsp - 128,
                                      frame, &at, &size),
                    0);
  assert_true (at % 16 == 0 && at + size <= context.regs.rsp - 128 && size <= sizeof frame);
  assert_int_equal (car_remote_write (child, at, frame, size), 0);
  memcpy (spoilt, xstate, sizeof spoilt);
  memset (spoilt + 160, 0x5a, 256); /* xmm0 to xmm15 */
  car_context_t other = context;
  memset (&other.regs, 0x77, offsetof (struct user_regs_struct, orig_rax));
  other.regs.rip = (uint64_t) (uintptr_t) test_restorer;
  other.regs.rsp = at + CAR_SIGNAL_FRAME_UC;
  other.regs.orig_rax = UINT64_MAX;
  other.regs.eflags = 0x202;
  other.mask = UINT64_MAX;
  other.xstate = spoilt;
  assert_int_equal (car_thread_restore (&thread, &other), 0);
  car_thread_release (&thread);
  usleep (2000);
  flag[0] = 1;
  assert_int_equal (waitpid (child, &code, 0), child);
  assert_int_equal (code, 0);
  munmap ((void *) (uintptr_t) flag, 4096);
}

static void refuses_what_is_no_image (void **state)
{
  static uint8_t xstate[CAR_XSTATE_MAX], frame[CAR_SIGNAL_FRAME_MAX];
  uint64_t at;
  size_t size;
  car_context_t context = {.xstate = xstate, .xstate_size = 512};
  assert_int_equal (car_signal_frame (&context, 1, 1 << 20, frame, &at, &size), WEFT_E_MALFORMED);
  context.xstate_size = CAR_XSTATE_MAX + 1;
  assert_int_equal (car_signal_frame (&context, 1, 1 << 20, frame, &at, &size), WEFT_E_MALFORMED);
  context.xstate_size = 600;
  memset (xstate + 464, 0xff, 8); /* every component enabled, and no room for them */
  assert_int_equal (car_signal_frame (&context, 1, 1 << 20, frame, &at, &size), WEFT_E_MALFORMED);
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (brings_a_thread_back),
      cmocka_unit_test (refuses_what_is_no_image),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
