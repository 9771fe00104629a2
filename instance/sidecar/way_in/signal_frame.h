/* SPDX-License-Identifier: Apache-2.0 */
/* signal_frame: what the kernel would push for a signal handler, made by hand:
 * a thread that runs into it (rt_sigreturn) has its registers, its vector
 * state and its signal mask as before, whoever else has died.
 *
 *   ret_at + 0   word      for the caller's use
 *         + 8    restorer  return address: to rt_sigreturn
 *         + 16   ucontext  304 bytes
 *         + 320  XSAVE image, at a multiple of 64; its end mark */
#ifndef CAR_SIGNAL_FRAME_H
#define CAR_SIGNAL_FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#define CAR_XSTATE_MAX       16384 /* bytes: AVX-512 takes 2.7 KiB, AMX 11 */
#define CAR_SIGNAL_FRAME_MAX (CAR_XSTATE_MAX + 512)
#define CAR_SIGNAL_FRAME_UC  16 /* where the ucontext is in it */

typedef struct {
  struct user_regs_struct regs;
  uint64_t mask;         /* blocked signals */
  const uint8_t *xstate; /* as ptrace gives it (NT_X86_XSTATE) */
  size_t xstate_size;
} car_context_t;

/* Writes the frame for a place below `top` into out. *ret_at: the address it
 * must stand at, a multiple of 16. 0, or WEFT_E_MALFORMED: no XSAVE image. */
int car_signal_frame (const car_context_t *context, uint64_t restorer, uint64_t top,
                      uint8_t out[CAR_SIGNAL_FRAME_MAX], uint64_t *ret_at, size_t *ret_size);

#endif
