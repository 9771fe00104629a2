/* SPDX-License-Identifier: Apache-2.0 */
#include "signal_frame.h"

#include <cpuid.h>
#include <string.h>

#include "../../../common/status.h"

#define LEGACY_SIZE  512 /* FXSAVE area */
#define HEADER_SIZE  64  /* of the extended area: which components are in use */
#define SOFTWARE_AT  464 /* in the legacy area: left to software by the processor */
#define MAGIC_1      0x46505853u
#define MAGIC_2      0x46505845u
#define TILE_MASK    (3ull << 17) /* AMX: granted to a process on demand, left out while unused */
#define COMPONENTS   63
#define KEEP_STACK   0x40 /* no valid mode: the alternate signal stack stays what it is */
#define FLAG_XSTATE  1
#define FLAG_SS      (2 | 4)
#define CODE_SEGMENT 0x33
#define DATA_SEGMENT 0x2b

/* As the kernel lays it out; glibc's own type of that name is larger. */
typedef struct {
  uint64_t flags, link;
  uint64_t stack_at;
  uint32_t stack_mode, pad;
  uint64_t stack_size;
  uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
  uint16_t cs, gs, fs, ss;
  uint64_t err, trap, old_mask, cr2, xstate, reserved[8];
  uint64_t mask;
} ucontext_bytes_t;
_Static_assert(sizeof (ucontext_bytes_t) == 304, "the kernel's ucontext");
_Static_assert(offsetof (ucontext_bytes_t, rsp) == 160 && offsetof (ucontext_bytes_t, rip) == 168 &&
                   offsetof (ucontext_bytes_t, xstate) == 224 && offsetof (ucontext_bytes_t, mask) == 296,
               "the kernel's ucontext");

typedef struct {
  uint32_t magic_1, extended_size;
  uint64_t components;
  uint32_t size, pad[7];
} software_t;
_Static_assert(SOFTWARE_AT + sizeof (software_t) == LEGACY_SIZE, "what is left to software");

/* Bytes of an image that holds `components`. */
static size_t image_size (uint64_t components)
{
  size_t size = LEGACY_SIZE + HEADER_SIZE;
  for (unsigned i = 2; i < COMPONENTS; i++) {
    unsigned bytes, at, flags, unused;
    if (!(components & 1ull << i) || !__get_cpuid_count (0xd, i, &bytes, &at, &flags, &unused))
      continue;
    size = at + bytes > size ? at + bytes : size;
  }
  return size;
}

static void fill (ucontext_bytes_t *out, const struct user_regs_struct *regs, uint64_t mask, uint64_t xstate)
{
  *out = (ucontext_bytes_t){.flags = FLAG_XSTATE | FLAG_SS,
                            .stack_mode = KEEP_STACK,
                            .r8 = regs->r8,
                            .r9 = regs->r9,
                            .r10 = regs->r10,
                            .r11 = regs->r11,
                            .r12 = regs->r12,
                            .r13 = regs->r13,
                            .r14 = regs->r14,
                            .r15 = regs->r15,
                            .rdi = regs->rdi,
                            .rsi = regs->rsi,
                            .rbp = regs->rbp,
                            .rbx = regs->rbx,
                            .rdx = regs->rdx,
                            .rax = regs->rax,
                            .rcx = regs->rcx,
                            .rsp = regs->rsp,
                            .rip = regs->rip,
                            .eflags = regs->eflags,
                            .cs = CODE_SEGMENT,
                            .ss = DATA_SEGMENT,
                            .xstate = xstate,
                            .mask = mask};
}

int car_signal_frame (const car_context_t *context, uint64_t restorer, uint64_t top,
                      uint8_t out[CAR_SIGNAL_FRAME_MAX], uint64_t *ret_at, size_t *ret_size)
{
  uint64_t enabled, used;
  if (context->xstate_size < LEGACY_SIZE + HEADER_SIZE || context->xstate_size > CAR_XSTATE_MAX)
    return WEFT_E_MALFORMED;
  memcpy (&enabled, context->xstate + SOFTWARE_AT, sizeof enabled); /* ptrace puts XCR0 there */
  memcpy (&used, context->xstate + LEGACY_SIZE, sizeof used);
  uint64_t components = used & TILE_MASK ? enabled : enabled & ~TILE_MASK;
  size_t size = used & TILE_MASK ? context->xstate_size : image_size (components);
  if (size > context->xstate_size)
    return WEFT_E_MALFORMED;
  uint64_t image_at = (top - size - sizeof (uint32_t)) & ~63ull;
  uint64_t at = image_at - sizeof (ucontext_bytes_t) - CAR_SIGNAL_FRAME_UC;
  software_t software = {.magic_1 = MAGIC_1,
                         .extended_size = (uint32_t) (size + sizeof (uint32_t)),
                         .components = components,
                         .size = (uint32_t) size};
  uint32_t magic_2 = MAGIC_2;
  ucontext_bytes_t ucontext;
  fill (&ucontext, &context->regs, context->mask, image_at);
  uint8_t *image = out + (image_at - at);
  memset (out, 0, CAR_SIGNAL_FRAME_UC);
  memcpy (out + 8, &restorer, sizeof restorer);
  memcpy (out + CAR_SIGNAL_FRAME_UC, &ucontext, sizeof ucontext);
  memcpy (image, context->xstate, size);
  memcpy (image + SOFTWARE_AT, &software, sizeof software);
  memcpy (image + size, &magic_2, sizeof magic_2);
  *ret_at = at;
  *ret_size = (size_t) (image_at - at) + size + sizeof magic_2;
  return 0;
}
