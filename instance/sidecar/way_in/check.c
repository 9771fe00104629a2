/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../../common/status.h"
#include "../claim.h"
#include "hotspot.h"
#include "rights.h"

void car_check_line (const car_target_t *target, const char *why, char *out, size_t size)
{
  if (!target->vm[0] && target->readable)
    snprintf (out, size, "pid %d is not a process VM (%s, no known runtime); %s", (int) target->pid,
              target->comm, why);
  else if (!target->vm[0])
    snprintf (out, size, "cannot join %d (%s): %s", (int) target->pid, target->comm, why);
  else
    snprintf (out, size, "cannot join %d (%s%s%s): %s", (int) target->pid, car_target_vm_name (target->vm),
              target->version[0] ? " " : "", target->version, why);
}

static void refuse_unless_ours (const car_target_t *target, car_check_t *check)
{
  char name[64], user[72];
  int known = car_target_user (target->uid, name, sizeof name);
  snprintf (user, sizeof user, "%s%s", known ? "" : "uid ", name);
  if (geteuid () != 0 && geteuid () != target->uid)
    snprintf (check->why, sizeof check->why, "it belongs to %s; run weft as %s or as root", user, user);
  else if (!target->readable && !target->dumpable)
    snprintf (check->why, sizeof check->why, "%s", CAR_RIGHTS_NOT_DUMPABLE);
  else if (!target->readable)
    snprintf (
        check->why, sizeof check->why,
        "/proc/%d/maps cannot be read (a kernel thread, or no right to trace it); run weft as root with "
        "CAP_SYS_PTRACE",
        (int) target->pid);
}

/* A probe that is there already decides before everything else. */
static int look_for_probe (const car_target_t *target, car_check_t *check)
{
  shm_reader_t *reader = NULL;
  int status = shm_reader_open (target->pid, &reader);
  if (status == WEFT_E_VERSION) {
    snprintf (check->why, sizeof check->why,
              "a probe of another weft release is in it; use that release, or restart the process");
    return 1;
  }
  if (status < 0)
    return 0;
  shm_status_t now;
  shm_reader_status (reader, &now);
  if (car_claim_holder (reader) > 0) {
    check->way = CAR_WAY_JOINED;
    check->leaving = now.state >= SHM_STATE_LEAVING;
    snprintf (check->name, sizeof check->name, "already joined");
    memcpy (check->instance, shm_control (shm_reader_base (reader))->instance, WEFT_UUID_SIZE);
    car_claim_service (reader, NULL, check->service);
  } else if (now.state < SHM_STATE_LEAVING) {
    check->way = CAR_WAY_ADOPT;
    snprintf (check->name, sizeof check->name, "probe is there");
  }
  shm_reader_destroy (&reader);
  return check->way != CAR_WAY_NONE;
}

/* VMs of which the boundary and the thread are all that is needed. */
static int by_ptrace (const car_target_t *target, int any)
{
  return strcmp (target->vm, "cpython") == 0 || (any && !target->vm[0]);
}

void car_check (const car_target_t *target, int any, car_check_t *ret_check)
{
  car_check_t *check = ret_check;
  memset (check, 0, sizeof *check);
  if (target->zombie) {
    snprintf (check->why, sizeof check->why,
              "it has ended and waits for its parent (a zombie); give the pid of a running process");
    return;
  }
  refuse_unless_ours (target, check);
  if (!check->why[0] && target->borrows)
    snprintf (check->why, sizeof check->why,
              "it still has the memory of the process that started it (vfork) and is about to become another "
              "program; give the pid of the one that started it, or try again");
  if (check->why[0] || look_for_probe (target, check))
    return;
  if (!target->vm[0] && !any)
    snprintf (check->why, sizeof check->why, "`weft profile` without a pid lists what can be joined");
  else if (target->bits32)
    snprintf (check->why, sizeof check->why, "it is a 32-bit program; run it on a 64-bit runtime");
  else if (target->musl)
    snprintf (check->why, sizeof check->why, "its C library is musl; run it on a runtime built for glibc");
  else if (by_ptrace (target, any)) {
    if (car_rights_check (target, check->why, sizeof check->why) == 0) {
      check->way = CAR_WAY_PTRACE;
      snprintf (check->name, sizeof check->name, "ptrace, ~0.4 ms stop%s",
                target->seccomp ? ", if its filter allows it" : "");
    }
  } else if (strcmp (target->vm, "jvm") != 0)
    snprintf (check->why, sizeof check->why,
              "a running %s cannot be joined by this version; start it with `weft run`",
              car_target_vm_name (target->vm));
  else if (car_hotspot_check (target, check->why, sizeof check->why) == 0) {
    check->way = CAR_WAY_HOTSPOT;
    snprintf (check->name, sizeof check->name, "attach protocol");
  }
}
