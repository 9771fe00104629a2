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

#include <errno.h>
#include <sys/syscall.h>

#include "../../../../../instance/sidecar/way_in/safe_point.h"

/* A program with libc, the loader, an allocator, an arena, and the stacks of two threads. */
static const char text[] = "555500000000-555500010000 r-xp 00000000 08:01 11 /usr/bin/app\n"
                           "555500010000-555500020000 rw-p 00010000 08:01 11 /usr/bin/app\n"
                           "555500020000-555500040000 rw-p 00000000 00:00 0 [heap]\n"
                           "7f0004000000-7f0004021000 rw-p 00000000 00:00 0 \n"
                           "7f1000000000-7f1000800000 rw-p 00000000 00:00 0 \n"
                           "7f2000000000-7f2000010000 r-xp 00000000 08:01 12 /usr/lib/libjemalloc.so.2\n"
                           "7f2000010000-7f2000020000 rw-p 00010000 08:01 12 /usr/lib/libjemalloc.so.2\n"
                           "7f3000000000-7f3000020000 r--p 00000000 08:01 13 /usr/lib/libc.so.6\n"
                           "7f3000020000-7f3000100000 r-xp 00020000 08:01 13 /usr/lib/libc.so.6\n"
                           "7f3000100000-7f3000110000 rw-p 00100000 08:01 13 /usr/lib/libc.so.6\n"
                           "7f3000110000-7f3000120000 rw-p 00000000 00:00 0 \n"
                           "7f4000000000-7f4000020000 r-xp 00000000 08:01 14 /usr/lib/ld-linux-x86-64.so.2\n"
                           "7f4000020000-7f4000030000 rw-p 00020000 08:01 14 /usr/lib/ld-linux-x86-64.so.2\n"
                           "7ffe00000000-7ffe00100000 rw-p 00000000 00:00 0 [stack]\n";
#define APP       0x555500000100
#define DATA      0x555500010100
#define ARENA     0x7f0004000020
#define HEAP      0x7f0004000400
#define OWN_TOP   0x7f10007ff000
#define JEMALLOC  0x7f2000000100
#define LIBC      0x7f3000020100
#define LIBC_DATA 0x7f3000100100
#define LIBC_BSS  0x7f3000110100
#define LOADER    0x7f4000000100
#define RESTORER  0x7f3000020200
#define MAIN_SP   0x7ffe000f0000

static car_maps_t maps;
static uint8_t stack[4096];

static car_stopped_t stopped_at (uint64_t rip)
{
  car_stopped_t thread = {.regs = {.rip = rip, .rsp = MAIN_SP, .orig_rax = UINT64_MAX},
                          .stack = stack,
                          .stack_size = sizeof stack};
  memset (stack, 0, sizeof stack);
  return thread;
}

static car_stopped_t in_call (uint64_t rip, uint64_t number, int64_t result)
{
  car_stopped_t thread = stopped_at (rip);
  thread.regs.orig_rax = number;
  thread.regs.rax = (uint64_t) result;
  return thread;
}

static void put (size_t at, uint64_t word)
{
  memcpy (stack + at, &word, sizeof word);
}

static void expect (const car_stopped_t *thread, car_safe_t verdict)
{
  assert_string_equal (car_safe_text (car_safe_point (&maps, thread, RESTORER)), car_safe_text (verdict));
}

static void running (void **state)
{
  const struct {
    uint64_t rip;
    car_safe_t verdict;
  } cases[] = {{APP, CAR_SAFE_YES},       {LIBC, CAR_SAFE_CODE},     {LOADER, CAR_SAFE_CODE},
               {JEMALLOC, CAR_SAFE_CODE}, {0x123456, CAR_SAFE_CODE}, {DATA, CAR_SAFE_CODE},
               {HEAP, CAR_SAFE_CODE}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    car_stopped_t thread = stopped_at (cases[i].rip);
    expect (&thread, cases[i].verdict);
  }
}

static void waiting (void **state)
{
  const long listed[] = {SYS_read,       SYS_recvfrom, SYS_poll,      SYS_select,
                         SYS_epoll_wait, SYS_accept4,  SYS_nanosleep, SYS_wait4};
  const long others[] = {SYS_connect, SYS_write, SYS_mmap,  SYS_munmap,
                         SYS_openat,  SYS_clone, SYS_vfork, SYS_execve};
  for (size_t i = 0; i < 8; i++) {
    car_stopped_t thread = in_call (LIBC, (uint64_t) listed[i], -EINTR);
    expect (&thread, CAR_SAFE_YES);
    thread.regs.rip = LOADER; /* dlopen reads a file */
    expect (&thread, CAR_SAFE_CALL);
    thread = in_call (LIBC, (uint64_t) others[i], -EINTR);
    expect (&thread, CAR_SAFE_CALL);
  }
}

static void waiting_on_a_futex (void **state)
{
  const struct {
    uint64_t word;
    car_safe_t verdict;
  } cases[] = {{DATA, CAR_SAFE_YES},       {HEAP, CAR_SAFE_YES},      {OWN_TOP, CAR_SAFE_YES},
               {LIBC_DATA, CAR_SAFE_LOCK}, {LIBC_BSS, CAR_SAFE_LOCK}, {0x7f4000020100, CAR_SAFE_LOCK},
               {ARENA, CAR_SAFE_LOCK},     {0x1000, CAR_SAFE_LOCK}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    for (int again = 0; again < 2; again++) { /* the kernel made it again once: another number */
      car_stopped_t thread = in_call (LIBC, again ? SYS_restart_syscall : SYS_futex, -516);
      thread.regs.rdi = cases[i].word;
      if (again && cases[i].word <= UINT32_MAX)
        continue; /* a descriptor or a count, of another call */
      expect (&thread, cases[i].verdict);
    }
}

static void only_on_its_own_stack (void **state)
{
  car_stopped_t thread = stopped_at (APP);
  thread.regs.rsp = 0x7f1000700000; /* in what may be the stack of a thread */
  expect (&thread, CAR_SAFE_STACK);
  thread.regs.fs_base = OWN_TOP; /* and is that of this one */
  expect (&thread, CAR_SAFE_YES);
  thread.regs.rsp = 0x7f1000001000; /* nearly full */
  expect (&thread, CAR_SAFE_STACK);
  thread.regs.rsp = 0x555500030000; /* a coroutine's, out of malloc */
  expect (&thread, CAR_SAFE_STACK);
  thread.regs.rsp = 0x1000;
  expect (&thread, CAR_SAFE_STACK);
}

/* A frame: the restorer, then the ucontext with rsp at 160 and rip at 168. */
static void put_frame (uint64_t rip)
{
  put (512, RESTORER);
  put (512 + 8 + 160, MAIN_SP + 1024);
  put (512 + 8 + 168, rip);
}

static void a_handler_that_interrupted_malloc (void **state)
{
  car_stopped_t thread = in_call (LIBC, SYS_nanosleep, -516);
  put_frame (LIBC);
  expect (&thread, CAR_SAFE_HANDLER);
  put_frame (JEMALLOC);
  expect (&thread, CAR_SAFE_HANDLER);
  put_frame (APP);
  expect (&thread, CAR_SAFE_YES);
  put_frame (0x77); /* only a left-over of an address */
  expect (&thread, CAR_SAFE_YES);
  put_frame (LIBC);
  thread.stack_size = 512 + 8; /* no room for a frame: nothing is read beyond */
  expect (&thread, CAR_SAFE_YES);
}

static void an_allocator_that_waits (void **state)
{
  car_stopped_t thread = in_call (LIBC, SYS_nanosleep, -516);
  put (64, JEMALLOC);
  expect (&thread, CAR_SAFE_CODE);
}

static void a_signal_that_waits (void **state)
{
  car_stopped_t thread = in_call (LIBC, SYS_epoll_wait, -EINTR);
  struct user_regs_struct kernel, alone;
  thread.deliverable = 1 << 9;
  expect (&thread, CAR_SAFE_SIGNAL);
  car_safe_resume (&thread, &kernel, &alone);
  assert_memory_equal (&kernel, &thread.regs, sizeof kernel); /* that -EINTR is the signal's */
}

/* The call that is made again: number, two bytes back. */
static void assert_again (const struct user_regs_struct *regs, uint64_t number)
{
  assert_int_equal (regs->rax, number);
  assert_int_equal (regs->rip, LIBC - 2);
  assert_int_equal ((int64_t) regs->orig_rax, -1);
}

static void how_a_call_goes_on (void **state)
{
  struct user_regs_struct kernel, alone;
  const int64_t left_to_the_kernel[] = {-512, -513, -514, -516};
  for (size_t i = 0; i < 4; i++) {
    car_stopped_t thread = in_call (LIBC, SYS_poll, left_to_the_kernel[i]);
    car_safe_resume (&thread, &kernel, &alone);
    assert_memory_equal (&kernel, &thread.regs, sizeof kernel);
    assert_again (&alone, SYS_poll);
  }
  car_stopped_t thread = in_call (LIBC, SYS_epoll_wait, -EINTR); /* the kernel would show it */
  car_safe_resume (&thread, &kernel, &alone);
  assert_again (&kernel, SYS_epoll_wait);
  assert_again (&alone, SYS_epoll_wait);
  thread = in_call (LIBC, SYS_connect, -EINTR); /* made again, it would fail */
  car_safe_resume (&thread, &kernel, &alone);
  assert_int_equal ((int64_t) kernel.rax, -EINTR);
  assert_int_equal ((int64_t) alone.rax, -EINTR);
  thread = in_call (LIBC, SYS_recvfrom, 17); /* done */
  car_safe_resume (&thread, &kernel, &alone);
  assert_memory_equal (&kernel, &thread.regs, sizeof kernel);
  assert_int_equal (alone.rax, 17);
  assert_int_equal (alone.rip, LIBC);
}

static void a_call_that_was_made_again_before (void **state)
{
  struct user_regs_struct kernel, alone;
  car_stopped_t thread = in_call (LIBC, SYS_restart_syscall, -516);
  const uint8_t poll_code[7] = {0xb8, SYS_poll, 0, 0, 0, 0x0f, 0x05};
  const uint8_t mmap_code[7] = {0xb8, SYS_mmap, 0, 0, 0, 0x0f, 0x05};
  memcpy (thread.before_rip, poll_code, 7);
  car_safe_resume (&thread, &kernel, &alone);
  assert_memory_equal (&kernel, &thread.regs, sizeof kernel);
  assert_again (&alone, SYS_poll);
  memcpy (thread.before_rip, mmap_code, 7);
  car_safe_resume (&thread, &kernel, &alone);
  assert_again (&alone, SYS_restart_syscall);
}

static int set_up (void **state)
{
  return car_maps_parse (text, sizeof text - 1, &maps);
}

static int tear_down (void **state)
{
  car_maps_clear (&maps);
  return 0;
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (running),
      cmocka_unit_test (waiting),
      cmocka_unit_test (waiting_on_a_futex),
      cmocka_unit_test (only_on_its_own_stack),
      cmocka_unit_test (a_handler_that_interrupted_malloc),
      cmocka_unit_test (an_allocator_that_waits),
      cmocka_unit_test (a_signal_that_waits),
      cmocka_unit_test (how_a_call_goes_on),
      cmocka_unit_test (a_call_that_was_made_again_before),
  };
  return cmocka_run_group_tests (tests, set_up, tear_down);
}
