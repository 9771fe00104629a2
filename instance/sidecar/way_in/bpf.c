/* SPDX-License-Identifier: Apache-2.0 */
#include "bpf.h"

#include <string.h>

#define REFUSED SECCOMP_RET_KILL_PROCESS /* what no kernel takes */

typedef struct {
  uint32_t a, x, memory[BPF_MEMWORDS];
} machine_t;

/* The word at an offset of the call's data. 0: there is none. */
static int data_word (const struct seccomp_data *call, uint32_t at, uint32_t *ret_word)
{
  if (at % sizeof *ret_word || at > sizeof *call - sizeof *ret_word)
    return 0;
  memcpy (ret_word, (const uint8_t *) call + at, sizeof *ret_word);
  return 1;
}

/* Instructions that load, into A or X. 0: no such one. */
static int load (machine_t *m, const struct sock_filter *i, const struct seccomp_data *call, uint32_t *to)
{
  int is_x = BPF_CLASS (i->code) == BPF_LDX;
  switch (BPF_MODE (i->code)) {
  case BPF_IMM:
    *to = i->k;
    return 1;
  case BPF_LEN:
    *to = sizeof *call;
    return 1;
  case BPF_MEM:
    *to = i->k < BPF_MEMWORDS ? m->memory[i->k] : 0;
    return i->k < BPF_MEMWORDS;
  case BPF_ABS:
    return !is_x && BPF_SIZE (i->code) == BPF_W && data_word (call, i->k, to);
  }
  return 0;
}

static int compute (machine_t *m, const struct sock_filter *i)
{
  uint32_t with = BPF_SRC (i->code) == BPF_X ? m->x : i->k;
  switch (BPF_OP (i->code)) {
  case BPF_ADD:
    m->a += with;
    return 1;
  case BPF_SUB:
    m->a -= with;
    return 1;
  case BPF_MUL:
    m->a *= with;
    return 1;
  case BPF_DIV:
    m->a = with ? m->a / with : 0;
    return with != 0;
  case BPF_OR:
    m->a |= with;
    return 1;
  case BPF_AND:
    m->a &= with;
    return 1;
  case BPF_XOR:
    m->a ^= with;
    return 1;
  case BPF_LSH:
    m->a = with < 32 ? m->a << with : 0;
    return 1;
  case BPF_RSH:
    m->a = with < 32 ? m->a >> with : 0;
    return 1;
  case BPF_NEG:
    m->a = 0 - m->a;
    return 1;
  }
  return 0;
}

/* How many instructions are skipped. -1: no such jump. */
static int64_t jump (const machine_t *m, const struct sock_filter *i)
{
  uint32_t with = BPF_SRC (i->code) == BPF_X ? m->x : i->k;
  switch (BPF_OP (i->code)) {
  case BPF_JA:
    return i->k;
  case BPF_JEQ:
    return m->a == with ? i->jt : i->jf;
  case BPF_JGT:
    return m->a > with ? i->jt : i->jf;
  case BPF_JGE:
    return m->a >= with ? i->jt : i->jf;
  case BPF_JSET:
    return m->a & with ? i->jt : i->jf;
  }
  return -1;
}

static int store (machine_t *m, const struct sock_filter *i)
{
  if (i->k >= BPF_MEMWORDS)
    return 0;
  m->memory[i->k] = BPF_CLASS (i->code) == BPF_ST ? m->a : m->x;
  return 1;
}

static int transfer (machine_t *m, const struct sock_filter *i)
{
  if (BPF_MISCOP (i->code) == BPF_TAX)
    m->x = m->a;
  else
    m->a = m->x;
  return BPF_MISCOP (i->code) == BPF_TAX || BPF_MISCOP (i->code) == BPF_TXA;
}

uint32_t car_bpf_run (const struct sock_filter *code, unsigned count, const struct seccomp_data *call)
{
  machine_t m = {.a = 0};
  for (uint64_t at = 0; at < count; at++) { /* F1 */
    const struct sock_filter *i = &code[at];
    int64_t skipped;
    int known = 0;
    switch (BPF_CLASS (i->code)) {
    case BPF_LD:
      known = load (&m, i, call, &m.a);
      break;
    case BPF_LDX:
      known = load (&m, i, call, &m.x);
      break;
    case BPF_ST:
    case BPF_STX:
      known = store (&m, i);
      break;
    case BPF_ALU:
      known = compute (&m, i);
      break;
    case BPF_JMP:
      skipped = jump (&m, i);
      known = skipped >= 0;
      at += known ? (uint64_t) skipped : 0;
      break;
    case BPF_RET:
      return BPF_RVAL (i->code) == BPF_A ? m.a : i->k;
    case BPF_MISC:
      known = transfer (&m, i);
      break;
    }
    if (!known)
      return REFUSED;
  }
  return REFUSED;
}
