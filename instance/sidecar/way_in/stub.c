/* SPDX-License-Identifier: Apache-2.0 */
/* stub: see stub.h. Assembly, so that what is copied is exactly this, whatever
 * compiler and sanitizer build the rest. Registers that functions keep: rbx is
 * the data; in the stopped thread r13 is its ucontext. */
#include "stub.h"

#include <sys/syscall.h>

/* Of the stopped thread before it goes on alone: half a millisecond on its processor, then some 10 ms. */
#define SPINS  10000
#define YIELDS 20000

#define OFFSET(field, at) _Static_assert(offsetof (car_stub_data_t, field) == (at), "the code says " #at)
OFFSET (hijacked, 0);
OFFSET (created, 4);
OFFSET (state, 8);
OFFSET (fd, 12);
OFFSET (result, 16);
OFFSET (out, 20);
OFFSET (patience, 24);
OFFSET (pause, 32);
OFFSET (all_signals, 48);
OFFSET (pthread_create, 56);
OFFSET (pthread_detach, 64);
OFFSET (dlopen, 72);
OFFSET (dlsym, 80);
OFFSET (dlerror, 88);
OFFSET (entry, 96);
OFFSET (error, 104);
OFFSET (leave, 112);
OFFSET (thread, 120);
OFFSET (symbol, 128);
OFFSET (memory_name, 160);
OFFSET (path, 192);
_Static_assert(sizeof (car_stub_data_t) <= CAR_STUB_PAGE, "one page");
_Static_assert(SYS_mprotect == 10 && SYS_munmap == 11 && SYS_rt_sigprocmask == 14 && SYS_rt_sigreturn == 15 &&
                   SYS_sched_yield == 24 && SYS_nanosleep == 35 && SYS_close == 3 && SYS_memfd_create == 319,
               "the numbers in the code");
#define TEXT_OF(number) #number
#define TEXT(macro)     TEXT_OF (macro)

__asm__(
    ".pushsection .rodata.car_stub, \"a\", @progbits\n"
    ".globl car_stub_code, car_stub_code_end, car_stub_entry\n"
    ".hidden car_stub_code, car_stub_code_end, car_stub_entry\n"
    ".balign 16\n"
    "car_stub_code:\n"

    /* ---- the stopped thread */
    "car_stub_entry:\n"
    "  mov $10, %eax\n" /* the data becomes writable: mprotect (data, page, RW) */
    "  mov %rbx, %rdi\n"
    "  mov $" TEXT (
        CAR_STUB_PAGE) ", %esi\n"
                       "  mov $3, %edx\n"
                       "  syscall\n"
                       "  test %eax, %eax\n"
                       "  jnz 3f\n"
                       "  lea 120(%rbx), %rdi\n" /* pthread_create (&thread, NULL, starter, data) */
                       "  xor %esi, %esi\n"
                       "  lea car_stub_starter(%rip), %rdx\n"
                       "  mov %rbx, %rcx\n"
                       "  call *56(%rbx)\n"
                       "  mov %eax, 4(%rbx)\n"
                       "  movl $1, (%rbx)\n"
                       "  mov $" TEXT (
                           SPINS) ", %r12d\n"
                                  "1:\n"
                                  "  pause\n"
                                  "  dec %r12d\n"
                                  "  jnz 1b\n"
                                  "  mov $" TEXT (
                                      YIELDS) ", %r12d\n"
                                              "2:\n" /* sched_yield: no call here may leave the kernel a timeout to remember */
                                              "  mov $24, %eax\n"
                                              "  syscall\n"
                                              "  dec %r12d\n"
                                              "  jnz 2b\n"
                                              "  movl $2, (%rbx)\n"
                                              "3:\n"
                                              "  mov %r13, %rsp\n"
                                              "  mov $15, %eax\n"
                                              "  syscall\n"
                                              "  hlt\n"

                                              /* ---- the new thread: starter (data) */
                                              "car_stub_starter:\n"
                                              "  push %rbx\n"
                                              "  push %rbp\n"
                                              "  push %r12\n"
                                              "  mov %rdi, %rbx\n"
                                              "  mov $14, %eax\n" /* rt_sigprocmask (SIG_SETMASK, all, NULL, 8): B2 */
                                              "  mov $2, %edi\n"
                                              "  lea 48(%rbx), %rsi\n"
                                              "  xor %edx, %edx\n"
                                              "  mov $8, %r10d\n"
                                              "  syscall\n"
                                              "  mov %fs:0x10, %rdi\n"
                                              "  call *64(%rbx)\n" /* pthread_detach (self) */
                                              "  xor %eax, %eax\n" /* WAITING to STARTED, unless cancelled */
                                              "  mov $1, %ecx\n"
                                              "  lock cmpxchg %ecx, 8(%rbx)\n"
                                              "  jne 8f\n"
                                              "  mov 96(%rbx), %rax\n"
                                              "  test %rax, %rax\n"
                                              "  jnz 6f\n"
                                              "  movl $17, %esi\n" /* memfd_create (name, MFD_CLOEXEC | MFD_EXEC); older kernels know no MFD_EXEC */
                                              "4:\n"
                                              "  lea 160(%rbx), %rdi\n"
                                              "  mov $319, %eax\n"
                                              "  syscall\n"
                                              "  cmp $-22, %eax\n"
                                              "  jne 1f\n"
                                              "  cmp $1, %esi\n"
                                              "  mov $1, %esi\n"
                                              "  jne 4b\n"
                                              "1:\n"
                                              "  mov %eax, 12(%rbx)\n"
                                              "  movl $3, 8(%rbx)\n"
                                              "  mov 24(%rbx), %ebp\n"
                                              "5:\n" /* for the library */
                                              "  cmpl $2, 8(%rbx)\n"
                                              "  je 1f\n"
                                              "  cmpl $6, 8(%rbx)\n"
                                              "  je 7f\n"
                                              "  call car_stub_pause\n"
                                              "  dec %ebp\n"
                                              "  jnz 5b\n"
                                              "  jmp 7f\n"
                                              "1:\n"
                                              "  lea 192(%rbx), %rdi\n" /* dlopen (path, RTLD_NOW) */
                                              "  mov $2, %esi\n"
                                              "  call *72(%rbx)\n"
                                              "  test %rax, %rax\n"
                                              "  jz 1f\n"
                                              "  mov %rax, %rdi\n" /* dlsym (handle, symbol) */
                                              "  lea 128(%rbx), %rsi\n"
                                              "  call *80(%rbx)\n"
                                              "  test %rax, %rax\n"
                                              "  jz 1f\n"
                                              "6:\n"
                                              "  call *%rax\n"
                                              "  mov %eax, 16(%rbx)\n"
                                              "  jmp 7f\n"
                                              "1:\n"
                                              "  call *88(%rbx)\n" /* dlerror () */
                                              "  mov %rax, 104(%rbx)\n"
                                              "  movl $" TEXT (
                                                  CAR_STUB_NOT_LOADED) ", 16(%rbx)\n"
                                                                       "7:\n"
                                                                       "  mov 12(%rbx), %edi\n"
                                                                       "  test %edi, %edi\n"
                                                                       "  js 1f\n"
                                                                       "  mov $3, %eax\n"
                                                                       "  syscall\n"
                                                                       "1:\n"
                                                                       "  movl $5, 8(%rbx)\n"
                                                                       "8:\n" /* for the injector to read it, and for the stopped thread to be out */
                                                                       "  mov 24(%rbx), %ebp\n"
                                                                       "1:\n"
                                                                       "  cmpl $4, 8(%rbx)\n"
                                                                       "  je 2f\n"
                                                                       "  call car_stub_pause\n"
                                                                       "  dec %ebp\n"
                                                                       "  jnz 1b\n"
                                                                       "2:\n"
                                                                       "  xor %eax, %eax\n"
                                                                       "  cmpl $0, 20(%rbx)\n"
                                                                       "  je 3f\n" /* not known: the pages stay (B3) */
                                                                       "  lea -" TEXT (
                                                                           CAR_STUB_PAGE) "(%rbx), %rdi\n"
                                                                                          "  mov $2 * " TEXT (
                                                                                              CAR_STUB_PAGE) ", %esi\n"
                                                                                                             "  mov 112(%rbx), %rdx\n"
                                                                                                             "  mov $11, %eax\n"
                                                                                                             "  pop %r12\n"
                                                                                                             "  pop %rbp\n"
                                                                                                             "  pop %rbx\n"
                                                                                                             "  jmp *%rdx\n" /* munmap, and back to where threads end */
                                                                                                             "3:\n"
                                                                                                             "  pop %r12\n"
                                                                                                             "  pop %rbp\n"
                                                                                                             "  pop %rbx\n"
                                                                                                             "  ret\n"

                                                                                                             "car_stub_pause:\n" /* nanosleep (pause, NULL) */
                                                                                                             "  lea 32(%rbx), %rdi\n"
                                                                                                             "  xor %esi, %esi\n"
                                                                                                             "  mov $35, %eax\n"
                                                                                                             "  syscall\n"
                                                                                                             "  ret\n"
                                                                                                             "car_stub_code_end:\n"
                                                                                                             ".popsection\n");
