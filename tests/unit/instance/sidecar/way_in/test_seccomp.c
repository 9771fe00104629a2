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
#include <linux/audit.h>
#include <sys/syscall.h>

#include "../../../../../instance/sidecar/way_in/seccomp.h"

#define SIZE(code)  ((unsigned) (sizeof (code) / sizeof (code)[0]))
#define NUMBER      BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, nr))
#define IS(number)  BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1)
#define SAY(action) BPF_STMT (BPF_RET | BPF_K, action)

static uint32_t run (const struct sock_filter *code, unsigned count)
{
  struct seccomp_data call = {
      .nr = SYS_mmap, .arch = AUDIT_ARCH_X86_64, .args = {0x1111222233334444ull, 7, 5}};
  return car_bpf_run (code, count, &call);
}

/* Each instruction, with what it gives worked out by hand. */
static void each_instruction (void **state)
{
  const struct {
    uint16_t code;
    uint32_t with, wanted; /* on 12 in A, and 5 in X where it takes that */
  } row[] = {{BPF_ADD | BPF_K, 3, 15},    {BPF_SUB | BPF_K, 13, UINT32_MAX}, {BPF_MUL | BPF_X, 0, 60},
             {BPF_DIV | BPF_X, 0, 2},     {BPF_OR | BPF_K, 3, 15},           {BPF_AND | BPF_K, 6, 4},
             {BPF_XOR | BPF_X, 0, 9},     {BPF_LSH | BPF_K, 4, 192},         {BPF_RSH | BPF_K, 2, 3},
             {BPF_NEG, 0, (uint32_t) -12}};
  for (unsigned i = 0; i < SIZE (row); i++) {
    struct sock_filter code[] = {BPF_STMT (BPF_LDX | BPF_IMM, 5), BPF_STMT (BPF_LD | BPF_IMM, 12),
                                 BPF_STMT (BPF_ALU | row[i].code, row[i].with),
                                 BPF_STMT (BPF_RET | BPF_A, 0)};
    assert_int_equal (run (code, SIZE (code)), row[i].wanted);
  }
  const struct {
    uint16_t code;
    uint32_t with;
    int taken; /* with SYS_mmap, 9, in A */
  } jumps[] = {{BPF_JEQ, 9, 1}, {BPF_JEQ, 8, 0},  {BPF_JGT, 8, 1},  {BPF_JGT, 9, 0},
               {BPF_JGE, 9, 1}, {BPF_JGE, 10, 0}, {BPF_JSET, 8, 1}, {BPF_JSET, 6, 0}};
  for (unsigned i = 0; i < SIZE (jumps); i++) {
    struct sock_filter code[] = {NUMBER, BPF_JUMP (BPF_JMP | jumps[i].code | BPF_K, jumps[i].with, 1, 0),
                                 SAY (100), SAY (200)};
    assert_int_equal (run (code, SIZE (code)), jumps[i].taken ? 200 : 100);
  }
  struct sock_filter memory[] = {
      BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, args) + 4),
      BPF_STMT (BPF_ST, 15),
      BPF_STMT (BPF_LD | BPF_IMM, 0),
      BPF_STMT (BPF_MISC | BPF_TAX, 0),
      BPF_STMT (BPF_LDX | BPF_MEM, 15),
      BPF_STMT (BPF_JMP | BPF_JA, 1),
      SAY (1),
      BPF_STMT (BPF_MISC | BPF_TXA, 0),
      BPF_STMT (BPF_RET | BPF_A, 0)};
  assert_int_equal (run (memory, SIZE (memory)), 0x11112222);
}

/* What no kernel takes: outside of the data, of the memory, of the program; by zero; no instruction. */
static void what_is_no_program_is_refused (void **state)
{
  const struct sock_filter bad[] = {BPF_STMT (BPF_LD | BPF_W | BPF_ABS, 64),
                                    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, 2),
                                    BPF_STMT (BPF_LD | BPF_W | BPF_ABS, UINT32_MAX),
                                    BPF_STMT (BPF_LD | BPF_B | BPF_ABS, 0),
                                    BPF_STMT (BPF_LD | BPF_MEM, 16),
                                    BPF_STMT (BPF_ST, 16),
                                    BPF_STMT (BPF_ALU | BPF_DIV | BPF_K, 0),
                                    BPF_STMT (BPF_JMP | BPF_JA, UINT32_MAX),
                                    BPF_STMT (BPF_JMP | 0xf0, 0),
                                    BPF_STMT (BPF_LD | BPF_W | BPF_IND, 0)};
  for (unsigned i = 0; i < SIZE (bad); i++) {
    struct sock_filter code[] = {bad[i], SAY (SECCOMP_RET_ALLOW)};
    assert_int_equal (run (code, SIZE (code)), SECCOMP_RET_KILL_PROCESS);
  }
  assert_int_equal (run (bad, 0), SECCOMP_RET_KILL_PROCESS);
}

static void names_what_is_refused (void **state)
{
  struct sock_filter all[] = {SAY (SECCOMP_RET_ALLOW)}, logs[] = {SAY (SECCOMP_RET_LOG)},
                     none[] = {SAY (SECCOMP_RET_KILL_PROCESS)};
  assert_null (car_seccomp_judge (all, 1));
  assert_null (car_seccomp_judge (logs, 1));
  assert_string_equal (car_seccomp_judge (none, 1), "mmap");
  const struct {
    int number;
    uint32_t action;
    const char *wanted;
  } row[] = {{SYS_memfd_create, SECCOMP_RET_ERRNO | EPERM, "memfd_create"},
             {SYS_memfd_create, SECCOMP_RET_TRAP, "memfd_create"},
             {SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS, NULL}, /* libc takes clone then */
             {SYS_clone3, SECCOMP_RET_ERRNO | EPERM, "clone3"},
             {SYS_rseq, SECCOMP_RET_ERRNO | EPERM, NULL},
             {SYS_rseq, SECCOMP_RET_KILL_PROCESS, "rseq"},
             {SYS_ptrace, SECCOMP_RET_KILL_PROCESS, NULL}}; /* not needed there */
  for (unsigned i = 0; i < SIZE (row); i++) {
    struct sock_filter code[] = {NUMBER, IS ((uint32_t) row[i].number), SAY (row[i].action),
                                 SAY (SECCOMP_RET_ALLOW)};
    const char *said = car_seccomp_judge (code, SIZE (code));
    assert_true ((said == NULL) == (row[i].wanted == NULL));
    if (said)
      assert_string_equal (said, row[i].wanted);
  }
}

/* One by its arguments: pages to execute, and nothing else of mmap. */
static void looks_at_arguments (void **state)
{
  struct sock_filter code[] = {NUMBER,
                               BPF_JUMP (BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
                               BPF_STMT (BPF_LD | BPF_W | BPF_ABS, offsetof (struct seccomp_data, args) + 16),
                               BPF_JUMP (BPF_JMP | BPF_JSET | BPF_K, 4, 0, 1),
                               SAY (SECCOMP_RET_ERRNO | EPERM),
                               SAY (SECCOMP_RET_ALLOW)};
  assert_string_equal (car_seccomp_judge (code, SIZE (code)), "mmap");
}

int main (void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test (each_instruction),
      cmocka_unit_test (what_is_no_program_is_refused),
      cmocka_unit_test (names_what_is_refused),
      cmocka_unit_test (looks_at_arguments),
  };
  return cmocka_run_group_tests (tests, NULL, NULL);
}
