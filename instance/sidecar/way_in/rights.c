/* SPDX-License-Identifier: Apache-2.0 */
#include "rights.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../common/status.h"
#include "../claim.h"
#include "landing.h"
#include "seccomp.h"

#define CAPABILITY  19 /* CAP_SYS_PTRACE */
#define PAUSE_MS    2
#define YAMA        "/proc/sys/kernel/yama/ptrace_scope"
#define YAMA_PARENT 1 /* only its own ancestors … */
#define YAMA_ADMIN  2 /* only who is capable … */
#define YAMA_NOBODY 3 /* nobody may trace it */

int car_rights_capable (void)
{
  return car_target_number (getpid (), "CapEff:", 16) >> CAPABILITY & 1;
}

int car_rights_yama (void)
{
  char text[16] = "";
  int fd = open (YAMA, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return 0;
  ssize_t got = read (fd, text, sizeof text - 1);
  close (fd);
  return got > 0 ? (int) strtol (text, NULL, 10) : 0;
}

int car_rights_judge (const car_target_t *target, int yama, int capable, char *why, size_t why_size)
{
  if (target->tracer)
    snprintf (why, why_size, "process %d traces it (a debugger, strace); end that first",
              (int) target->tracer);
  else if (target->seccomp == SECCOMP_MODE_STRICT)
    snprintf (why, why_size,
              "it may read, write and end and nothing else (strict seccomp); start it without");
  else if (target->shadow_stack)
    snprintf (why, why_size,
              "it runs with a shadow stack; start it with `weft run`, or with GLIBC_TUNABLES="
              "glibc.cpu.x86_shstk=off");
  else if (yama >= YAMA_NOBODY)
    snprintf (why, why_size,
              "kernel.yama.ptrace_scope is %d, nobody may trace here; start it with `weft run`", yama);
  else if (yama >= YAMA_PARENT && !capable)
    snprintf (why, why_size, "kernel.yama.ptrace_scope is %d; run weft as root, or set it to 0", yama);
  else if (!target->dumpable && !capable)
    snprintf (why, why_size, "%s", CAR_RIGHTS_NOT_DUMPABLE);
  else
    return 0;
  return WEFT_E_UNSUPPORTED;
}

/* Another of us, in the middle of joining: it is done in a moment, and whose turn it is decides
 * turn.h. Anybody else stays. */
static pid_t tracer_that_stays (const car_target_t *target)
{
  pid_t tracer = target->tracer;
  char name[32] = "";
  for (int ms = 0; tracer && ms < CAR_RIGHTS_OURS_MS; ms += PAUSE_MS) {
    if (car_target_read (tracer, "comm", name, sizeof name) > 0 && strcmp (name, CAR_CLAIM_PROGRAM "\n") != 0)
      break;
    poll (NULL, 0, PAUSE_MS);
    tracer = (pid_t) car_target_number (target->pid, CAR_TARGET_TRACER, 10);
  }
  return tracer;
}

int car_rights_check (const car_target_t *target, char *why, size_t why_size)
{
  car_landing_t landing;
  car_target_t now = *target;
  now.tracer = tracer_that_stays (target);
  int status = car_rights_judge (&now, car_rights_yama (), car_rights_capable (), why, why_size);
  if (status == 0)
    status = car_seccomp_check (target->pid, why, why_size);
  if (status == 0)
    status = car_landing_read (target->pid, &landing, why, why_size);
  if (status == 0)
    car_landing_clear (&landing);
  return status;
}
