/* SPDX-License-Identifier: Apache-2.0 */
/* dlopen: see dlopen.h. */
#include "dlopen.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "../../common/status.h"

/* Read and called by the assembly below. */
void *probe_dlopen_real PROBE_HIDDEN;
void *probe_dlopen_try (const char *name, int flags) PROBE_HIDDEN;
void probe_hook_dlopen (void) PROBE_HIDDEN;

static const probe_dlopen_watch_t *watcher;

/* The handle; NULL: pass the call on as if we were not there. So is one that
 * failed: the RPATH of the true caller may find what ours did not, and the
 * error text is then its own. '$' may stand for the caller's $ORIGIN. */
void *probe_dlopen_try (const char *name, int flags)
{
  void *handle = NULL;
  int saved = errno;
  if (name && strchr (name, '/') && !strchr (name, '$')) {
    void *(*real) (const char *, int);
    memcpy (&real, &probe_dlopen_real, sizeof real);
    handle = real (name, flags);
  }
  if (handle) {
    saved = errno;
    watcher->opened ();
  } else if (name)
    watcher->opens ();
  errno = saved;
  return handle;
}

/* On entry the stack is 8 off a multiple of 16; two pushes and 8 bytes align it
 * for the call. To pass on, arguments and stack are put back first. */
__asm__(".text\n"
        ".globl probe_hook_dlopen\n"
        ".hidden probe_hook_dlopen\n"
        ".type probe_hook_dlopen, @function\n"
        "probe_hook_dlopen:\n"
        "  .cfi_startproc\n"
        "  endbr64\n"
        "  pushq %rdi\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  pushq %rsi\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  subq $8, %rsp\n"
        "  .cfi_adjust_cfa_offset 8\n"
        "  call probe_dlopen_try\n"
        "  addq $8, %rsp\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  popq %rsi\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  popq %rdi\n"
        "  .cfi_adjust_cfa_offset -8\n"
        "  testq %rax, %rax\n"
        "  je 1f\n"
        "  ret\n"
        "1: jmp *probe_dlopen_real(%rip)\n"
        "  .cfi_endproc\n"
        ".size probe_hook_dlopen, . - probe_hook_dlopen\n");

int probe_dlopen_resolve (const probe_dlopen_watch_t *watch, probe_call_t *ret_call)
{
  probe_call_t call = {.hook = (void *) probe_hook_dlopen, .everywhere = 1};
  int status = probe_call_find ("dlopen", &call);
  if (status != 0)
    return status;
  watcher = watch;
  probe_dlopen_real = call.original;
  *ret_call = call;
  return 0;
}
