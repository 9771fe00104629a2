/* SPDX-License-Identifier: Apache-2.0 */
/* target: what a process is, found out without touching it: only /proc is
 * read. Everything in here was written by somebody else and may lie; it is
 * cut, cleaned of control characters and checked again by the way in. */
#ifndef CAR_TARGET_H
#define CAR_TARGET_H

#include <stdint.h>
#include <sys/types.h>

#include "../../common/limits.h"
#include "listens.h"

#define CAR_PATH_MAX 512 /* longer paths of a target are treated as unknown */
/* Why it cannot be joined, where we ourselves are short of it. */
#define CAR_NO_MEMORY "no memory is left here for the sidecar; free some, then try again"

typedef struct {
  pid_t pid;
  pid_t nspid; /* inside its own pid namespace */
  uid_t uid;   /* effective */
  gid_t gid;
  uint64_t signals_caught; /* bit n-1: has a handler for signal n */
  uint64_t image;          /* car_target_image, before anything else was read */
  int zombie, readable;    /* readable: its maps could be read */
  int borrows;             /* its memory is its parent's: a child of vfork that has not called exec yet */
  int seccomp;             /* 0: none, 1 strict, 2: filters its system calls */
  int dumpable;            /* its owner may look into it */
  int shadow_stack;        /* returns are checked by the processor */
  pid_t tracer;            /* a debugger, 0: none */
  int bits32, musl;
  int other_mounts; /* lives in another mount namespace */
  char comm[16];
  char exe[CAR_PATH_MAX];
  char library[CAR_PATH_MAX]; /* of the runtime, as the target sees it; "" if it is the executable */
  char vm[16];                /* jvm, cpython, node, ruby, php; "": none of them */
  char version[WEFT_VM_VERSION_MAX];
  char service[WEFT_SERVICE_MAX];
  char listens[CAR_LISTENS_MAX]; /* ":8080 :8081" */
} car_target_t;

/* service: name given by the user or NULL. 0; WEFT_E_NOT_FOUND: no such
 * process (a thread's id is none). What cannot be read is left empty. */
int car_target_identify (pid_t pid, const char *service, car_target_t *ret_target);
/* 1: a living process VM. Less work than to identify it. */
int car_target_is_vm (pid_t pid);
/* Threads of it whose names begin with `name`. */
unsigned car_target_threads (pid_t pid, const char *name);
/* The number behind `key` ("CapEff:") in its status; 0 also where there is none. */
uint64_t car_target_number (pid_t pid, const char *key, int base);
#define CAR_TARGET_TRACER "TracerPid:"
/* 'S', 'T', 'Z' … as /proc has it, and the pid of its parent (ret_parent may be NULL). 0 for
 * both: no such process. */
char car_target_state (pid_t pid, pid_t *ret_parent);
/* Waits for one that is stopped (SIGSTOP, a terminal) to be continued by whoever stopped it. 0, or WEFT_E_STATE. */
int car_target_await_continued (pid_t pid, unsigned timeout_ms);
#define CAR_TARGET_STOPPED_MS 10000
#define CAR_TARGET_STOPPED                                                                                   \
  "it is stopped (SIGSTOP, or a terminal); continue it with `kill -CONT %d`, then try again"
/* 1: it lives in the same namespace of a kind ("net", "mnt" …) as we do, 0: in another one;
 * WEFT_E_IO: that cannot be seen. */
int car_target_shares (pid_t pid, const char *kind);
/* Name of a user, or the number where there is none (0 then; else 1). */
int car_target_user (uid_t uid, char *out, size_t size);
/* "HotSpot" for "jvm"; "process" for "". Never NULL. */
const char *car_target_vm_name (const char *vm);
/* Changes at every exec of the process; 0: cannot be read. */
uint64_t car_target_image (pid_t pid);
/* 1: it still is the program that it was when it was identified. Asked last of all
 * before anything is changed: what is known of another one's memory is wrong. */
int car_target_is_same (const car_target_t *self);
#define CAR_TARGET_CHANGED "it has become another program meanwhile (exec); try again"
/* Reads a small /proc file whole: at most size - 1 bytes, terminated. Number of
 * bytes, or WEFT_E_IO. */
ssize_t car_target_read (pid_t pid, const char *file, char *out, size_t size);

#endif
