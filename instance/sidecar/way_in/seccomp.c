/* SPDX-License-Identifier: Apache-2.0 */
#include "seccomp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../common/status.h"
#include "../target.h"

#define CAPABILITY 21 /* CAP_SYS_ADMIN */
#define FILTERS    "Seccomp_filters:"
#define THREAD                                                                                               \
  (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS)
#define PAGES          8192
#define TABLE_CALLS    (sizeof calls / sizeof calls[0])
#define NO_CLONE3      (SECCOMP_RET_ERRNO | ENOSYS)
#define TELLS_A_THREAD (CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

typedef struct {
  const char *name;
  int number;
  int without; /* it may fail with an error: libc or the probe do without */
  uint64_t args[4];
} call_t;

#define CALL(name, ...)                                                                                      \
  {                                                                                                          \
#name, SYS_##name, 0,                                                                                    \
    {                                                                                                        \
      __VA_ARGS__                                                                                            \
    }                                                                                                        \
  }
#define WITHOUT(name, ...)                                                                                   \
  {                                                                                                          \
#name, SYS_##name, 1,                                                                                    \
    {                                                                                                        \
      __VA_ARGS__                                                                                            \
    }                                                                                                        \
  }

/* What stub, pthread_create, the loader and the probe use, in about this order. */
static const call_t calls[] = {CALL (mmap, 0, PAGES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS),
                               CALL (mmap, 0, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS),
                               CALL (mmap, 0, PAGES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK),
                               CALL (mmap, 0, PAGES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED),
                               CALL (mmap, 0, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED),
                               CALL (mprotect, PAGES, PAGES, PROT_READ | PROT_WRITE),
                               CALL (mprotect, PAGES, PAGES, PROT_READ),
                               CALL (munmap, PAGES, PAGES),
                               CALL (clone, THREAD | TELLS_A_THREAD, PAGES),
                               WITHOUT (clone3, PAGES, 88),
                               WITHOUT (set_robust_list, PAGES, 24),
                               WITHOUT (rseq, PAGES, 32),
                               CALL (rt_sigaction, 33, PAGES),
                               CALL (rt_sigprocmask, 2),
                               CALL (rt_sigreturn, 0),
                               CALL (restart_syscall, 0), /* of the kernel, for a wait that was interrupted */
                               CALL (prlimit64, 0, 3),
                               CALL (geteuid, 0),
                               CALL (sched_yield, 0),
                               CALL (nanosleep, PAGES),
                               CALL (clock_nanosleep, 0),
                               CALL (memfd_create, PAGES, 1),
                               CALL (ftruncate, 3, PAGES),
                               CALL (fcntl, 3, F_ADD_SEALS),
                               CALL (fcntl, 3, F_DUPFD_CLOEXEC, 3),
                               CALL (fcntl, 3, F_GETFL),
                               CALL (openat, (uint64_t) AT_FDCWD, PAGES, O_RDONLY | O_CLOEXEC),
                               CALL (open, PAGES, O_RDONLY),
                               CALL (read, 3, PAGES, 4096),
                               CALL (pread64, 3, PAGES, 4096),
                               CALL (write, 3, PAGES, 8),
                               CALL (fstat, 3),
                               CALL (newfstatat, 3, PAGES, PAGES, 0x1000),
                               CALL (lseek, 3),
                               CALL (close, 3),
                               CALL (brk, 0),
                               CALL (madvise, PAGES, PAGES, MADV_DONTNEED),
                               CALL (getpid, 0),
                               CALL (gettid, 0),
                               CALL (prctl, PR_SET_NAME, PAGES),
                               CALL (getrandom, PAGES, 16),
                               CALL (clock_gettime, 3),
                               CALL (futex, PAGES, FUTEX_WAIT),
                               CALL (futex, PAGES, FUTEX_WAKE),
                               CALL (futex, PAGES, FUTEX_WAIT | FUTEX_PRIVATE_FLAG),
                               WITHOUT (membarrier, 0),
                               CALL (poll, PAGES, 1),
                               CALL (getsockopt, 3, SOL_SOCKET, SO_TYPE),
                               CALL (getsockopt, 3, 6, 11), /* IPPROTO_TCP, TCP_INFO */
                               CALL (getsockname, 3),
                               CALL (getpeername, 3),
                               CALL (ioctl, 3, FIONREAD),
                               CALL (ioctl, 3, 0x5411), /* SIOCOUTQ */
                               CALL (sendmsg, 3, PAGES, MSG_NOSIGNAL),
                               CALL (recvmsg, 3, PAGES),
                               CALL (socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC),
                               CALL (connect, 3, PAGES, 16),
                               CALL (exit, 0)};

static int allows (uint32_t said, const call_t *call)
{
  uint32_t action = said & SECCOMP_RET_ACTION_FULL;
  if (action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG)
    return 1;
  /* Any other error than this one libc takes for the answer. */
  return call->number == SYS_clone3 ? said == NO_CLONE3 : call->without && action == SECCOMP_RET_ERRNO;
}

const char *car_seccomp_judge (const struct sock_filter *code, unsigned count)
{
  for (size_t i = 0; i < TABLE_CALLS; i++) {
    struct seccomp_data data = {
        .nr = calls[i].number, .arch = AUDIT_ARCH_X86_64, .instruction_pointer = PAGES};
    for (unsigned n = 0; n < 4; n++)
      data.args[n] = calls[i].args[n];
    if (!allows (car_bpf_run (code, count, &data), &calls[i]))
      return calls[i].name;
  }
  return NULL;
}

const char *car_seccomp_refuses (pid_t tid)
{
  struct sock_filter *code = calloc (CAR_SECCOMP_CODE_MAX, sizeof *code);
  const char *refused = code ? NULL : "no memory to read it";
  for (uintptr_t n = 0; code && !refused; n++) {
    long count = syscall (SYS_ptrace, PTRACE_SECCOMP_GET_FILTER, tid, n, NULL);
    if (count < 0 && errno == ENOENT && n > 0)
      break; /* that was the last one */
    if (count <= 0 || count > CAR_SECCOMP_CODE_MAX || n == CAR_SECCOMP_FILTERS_MAX ||
        syscall (SYS_ptrace, PTRACE_SECCOMP_GET_FILTER, tid, n, code) != count)
      refused = "it cannot be read";
    else
      refused = car_seccomp_judge (code, (unsigned) count);
  }
  free (code);
  return refused;
}

/* 1: every thread has as many as the first one. */
static int same_everywhere (pid_t pid, uint64_t wanted)
{
  char path[64];
  snprintf (path, sizeof path, "/proc/%d/task", (int) pid);
  DIR *dir = opendir (path);
  struct dirent *entry;
  int same = 1; /* of one that is gone, too: it is told by others */
  while (dir && same && (entry = readdir (dir))) {
    long tid = strtol (entry->d_name, NULL, 10);
    same = tid <= 0 || car_target_number ((pid_t) tid, FILTERS, 10) == wanted;
  }
  if (dir)
    closedir (dir);
  return same;
}

int car_seccomp_check (pid_t pid, char *why, size_t why_size)
{
  uint64_t count = car_target_number (pid, FILTERS, 10);
  if (count > 0 && !(car_target_number (getpid (), "CapEff:", 16) >> CAPABILITY & 1))
    snprintf (why, why_size,
              "it filters its system calls (seccomp), and only root may read the filter; run weft as root, "
              "or start "
              "it with `weft run`");
  else if (!same_everywhere (pid, count))
    snprintf (
        why, why_size,
        "its threads filter their system calls differently (seccomp); start it with `weft run`, or without "
        "the filter");
  else
    return 0;
  return WEFT_E_UNSUPPORTED;
}
