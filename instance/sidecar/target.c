/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../common/clocks.h"
#include "../../common/status.h"
#include "listens.h"
#include "service_name.h"

#define STOPPED_PAUSE_MS 5 /* between two looks at one that is stopped */
#define RELEASE_UP_MAX   5 /* directories between libjvm.so and the `release` file */

ssize_t car_target_read (pid_t pid, const char *file, char *out, size_t size)
{
  char path[64];
  snprintf (path, sizeof path, "/proc/%d/%s", (int) pid, file);
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return WEFT_E_IO;
  size_t at = 0;
  ssize_t got = 0;
  while (at < size - 1) {
    got = read (fd, out + at, size - 1 - at);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    at += (size_t) got;
  }
  close (fd);
  if (got < 0)
    return WEFT_E_IO;
  out[at] = '\0';
  return (ssize_t) at;
}

uint64_t car_target_image (pid_t pid)
{
  /* The auxiliary vector holds AT_RANDOM, AT_BASE and AT_ENTRY: addresses that
   * the kernel draws anew for every program image. */
  char text[4096];
  ssize_t size = car_target_read (pid, "auxv", text, sizeof text);
  if (size <= 0)
    return 0;
  uint64_t hash = 0xcbf29ce484222325ull;
  for (ssize_t i = 0; i < size; i++)
    hash = (hash ^ (uint8_t) text[i]) * 0x100000001b3ull;
  return hash ? hash : 1;
}

int car_target_is_same (const car_target_t *self)
{
  return car_target_image (self->pid) == self->image;
}

/* 1: what is done to its memory is done to its parent's. Unknown where the kernel does not compare. */
static int borrows (pid_t pid)
{
  pid_t parent = 0;
  return car_target_state (pid, &parent) && parent > 0 && syscall (SYS_kcmp, pid, parent, KCMP_VM, 0, 0) == 0;
}

const char *car_target_vm_name (const char *vm)
{
  static const char *const names[][2] = {
      {"jvm", "HotSpot"}, {"cpython", "CPython"}, {"node", "Node.js"}, {"ruby", "Ruby"}, {"php", "PHP"}};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp (vm, names[i][0]) == 0)
      return names[i][1];
  return "process";
}

static const char *line_of (const char *text, const char *key)
{
  size_t size = strlen (key);
  for (const char *at = text; at; at = strchr (at, '\n') ? strchr (at, '\n') + 1 : NULL)
    if (strncmp (at, key, size) == 0)
      return at + size;
  return NULL;
}

static uint64_t number_of (const char *text, const char *key, int base)
{
  const char *at = line_of (text, key);
  return at ? strtoull (at, NULL, base) : 0;
}

uint64_t car_target_number (pid_t pid, const char *key, int base)
{
  char text[8192];
  return car_target_read (pid, "status", text, sizeof text) > 0 ? number_of (text, key, base) : 0;
}

char car_target_state (pid_t pid, pid_t *ret_parent)
{
  char text[1024] = "";
  car_target_read (pid, "stat", text, sizeof text);
  const char *after = strrchr (text, ')'); /* "PID (NAME) S PARENT …": a name may hold anything */
  int known = after && strlen (after) > 4;
  if (ret_parent)
    *ret_parent = known ? (pid_t) strtol (after + 4, NULL, 10) : 0;
  return known ? after[2] : '\0';
}

int car_target_await_continued (pid_t pid, unsigned timeout_ms)
{
  uint64_t until_ns = weft_mono_ns () + timeout_ms * WEFT_NS_PER_MS;
  while (car_target_state (pid, NULL) == 'T') {
    if (weft_mono_ns () >= until_ns)
      return WEFT_E_STATE;
    poll (NULL, 0, STOPPED_PAUSE_MS);
  }
  return 0;
}

/* "Uid: real effective saved file" */
static unsigned second_number (const char *text)
{
  char *end;
  strtoul (text, &end, 10);
  return (unsigned) strtoul (end, NULL, 10);
}

/* From /proc/PID/status. WEFT_E_NOT_FOUND when there is no such process. */
static int read_status (car_target_t *target)
{
  char text[8192];
  if (car_target_read (target->pid, "status", text, sizeof text) <= 0)
    return WEFT_E_NOT_FOUND;
  const char *at = line_of (text, "Tgid:");
  if (!at || strtol (at, NULL, 10) != target->pid)
    return WEFT_E_NOT_FOUND;
  target->nspid = target->pid;
  if ((at = line_of (text, "NStgid:"))) { /* outermost first; the last is its own */
    char *end;
    for (long value = strtol (at, &end, 10); end != at && *at != '\n'; value = strtol (at, &end, 10)) {
      target->nspid = (pid_t) value;
      at = end;
      if (*at == '\n')
        break;
    }
  }
  if ((at = line_of (text, "Uid:")))
    target->uid = second_number (at);
  if ((at = line_of (text, "Gid:")))
    target->gid = second_number (at);
  target->signals_caught = number_of (text, "SigCgt:", 16);
  target->tracer = (pid_t) number_of (text, CAR_TARGET_TRACER, 10);
  target->seccomp = (int) number_of (text, "Seccomp:", 10);
  if ((at = line_of (text, "x86_Thread_features:")))
    target->shadow_stack = strncmp (at + strspn (at, "\t "), "shstk", 5) == 0;
  if ((at = line_of (text, "State:")))
    target->zombie = at[strspn (at, "\t ")] == 'Z' || at[strspn (at, "\t ")] == 'X';
  if ((at = line_of (text, "Name:"))) {
    at += strspn (at, "\t ");
    size_t size = strcspn (at, "\n");
    size = size < sizeof target->comm ? size : sizeof target->comm - 1;
    for (size_t i = 0; i < size; i++)
      target->comm[i] = at[i] >= 0x20 && at[i] < 0x7f ? at[i] : '?';
    target->comm[size] = '\0';
  }
  return 0;
}

static void set_runtime (car_target_t *target, const char *vm, const char *path, const char *version)
{
  if (target->vm[0])
    return;
  snprintf (target->vm, sizeof target->vm, "%s", vm);
  snprintf (target->library, sizeof target->library, "%s", path);
  size_t size = strspn (version, "0123456789.");
  if (size >= sizeof target->version)
    size = sizeof target->version - 1;
  while (size > 0 && version[size - 1] == '.') /* of "3.11.so" */
    size--;
  memcpy (target->version, version, size);
  target->version[size] = '\0';
}

/* A mapped file or the executable may give the runtime away. */
static void look_at_path (car_target_t *target, const char *path)
{
  const char *slash = strrchr (path, '/');
  const char *base = slash ? slash + 1 : path;
  if (strcmp (base, "libjvm.so") == 0)
    set_runtime (target, "jvm", path, "");
  else if (strncmp (base, "libpython3", 10) == 0)
    set_runtime (target, "cpython", path, base + 9);
  else if (strncmp (base, "libruby", 7) == 0)
    set_runtime (target, "ruby", path, base + 7 + strcspn (base + 7, "0123456789"));
  else if (strncmp (base, "ld-musl", 7) == 0)
    target->musl = 1;
}

static void look_at_executable (car_target_t *target)
{
  const char *slash = strrchr (target->exe, '/');
  const char *base = slash ? slash + 1 : target->exe;
  if (strncmp (base, "python3", 7) == 0)
    set_runtime (target, "cpython", "", base + 6);
  else if (strcmp (base, "node") == 0 || strcmp (base, "nodejs") == 0)
    set_runtime (target, "node", "", "");
  else if (strncmp (base, "php", 3) == 0)
    set_runtime (target, "php", "", base + strcspn (base, "0123456789"));
}

static void read_maps (car_target_t *target)
{
  char path[64];
  snprintf (path, sizeof path, "/proc/%d/maps", (int) target->pid);
  FILE *file = fopen (path, "re");
  if (!file)
    return;
  char *line = NULL;
  size_t room = 0;
  ssize_t size;
  while ((size = getline (&line, &room, file)) > 0) {
    target->readable = 1;
    if (line[size - 1] == '\n')
      line[size - 1] = '\0';
    char *name = strchr (line, '/');
    char *deleted = name ? strstr (name, " (deleted)") : NULL;
    if (deleted)
      *deleted = '\0';
    if (name && strlen (name) < CAR_PATH_MAX)
      look_at_path (target, name);
  }
  free (line);
  fclose (file);
}

static void read_executable (car_target_t *target)
{
  char path[64];
  snprintf (path, sizeof path, "/proc/%d/exe", (int) target->pid);
  ssize_t size = readlink (path, target->exe, sizeof target->exe - 1);
  target->exe[size > 0 ? size : 0] = '\0';
  unsigned char ident[EI_NIDENT];
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return;
  if (read (fd, ident, sizeof ident) == (ssize_t) sizeof ident && memcmp (ident, ELFMAG, SELFMAG) == 0)
    target->bits32 = ident[EI_CLASS] == ELFCLASS32;
  close (fd);
}

/* JAVA_VERSION="17.0.15" in the `release` file of the JDK that libjvm is from. */
static void read_jvm_version (car_target_t *target)
{
  char path[CAR_PATH_MAX + 64];
  int prefix = snprintf (path, sizeof path, "/proc/%d/root", (int) target->pid);
  snprintf (path + prefix, sizeof path - (size_t) prefix, "%s", target->library);
  for (int up = 0; up < RELEASE_UP_MAX; up++) {
    char *slash = strrchr (path + prefix, '/');
    if (!slash)
      return;
    *slash = '\0';
    char file[CAR_PATH_MAX + 80], text[4096];
    snprintf (file, sizeof file, "%s/release", path);
    int fd = open (file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
      continue;
    ssize_t size = read (fd, text, sizeof text - 1);
    close (fd);
    text[size > 0 ? size : 0] = '\0';
    const char *at = line_of (text, "JAVA_VERSION=\"");
    if (!at)
      return;
    size_t length = strspn (at, "0123456789._");
    if (length < sizeof target->version) {
      memcpy (target->version, at, length);
      target->version[length] = '\0';
    }
    return;
  }
}

/* The files in /proc of one that is not belong to root. */
static int is_dumpable (const car_target_t *target)
{
  char path[64];
  struct stat info;
  snprintf (path, sizeof path, "/proc/%d/mem", (int) target->pid);
  return stat (path, &info) < 0 || info.st_uid == target->uid;
}

unsigned car_target_threads (pid_t pid, const char *name)
{
  char path[64], file[320], comm[32];
  unsigned count = 0;
  snprintf (path, sizeof path, "/proc/%d/task", (int) pid);
  DIR *dir = opendir (path);
  struct dirent *entry;
  while (dir && (entry = readdir (dir))) {
    if (entry->d_name[0] == '.')
      continue;
    snprintf (file, sizeof file, "task/%s/comm", entry->d_name);
    if (car_target_read (pid, file, comm, sizeof comm) > 0)
      count += strncmp (comm, name, strlen (name)) == 0;
  }
  if (dir)
    closedir (dir);
  return count;
}

int car_target_shares (pid_t pid, const char *kind)
{
  char path[64], own[64];
  struct stat theirs, ours;
  snprintf (path, sizeof path, "/proc/%d/ns/%s", (int) pid, kind);
  snprintf (own, sizeof own, "/proc/self/ns/%s", kind);
  if (stat (path, &theirs) < 0 || stat (own, &ours) < 0)
    return WEFT_E_IO;
  return theirs.st_ino == ours.st_ino;
}

int car_target_user (uid_t uid, char *out, size_t size)
{
  char room[1024];
  struct passwd entry, *found = NULL;
  int known = getpwuid_r (uid, &entry, room, sizeof room, &found) == 0 && found;
  if (known)
    snprintf (out, size, "%s", found->pw_name);
  else
    snprintf (out, size, "%u", (unsigned) uid);
  return known;
}

static int look (pid_t pid, car_target_t *target)
{
  *target = (car_target_t){.pid = pid};
  if (pid > 0)
    target->image = car_target_image (pid);
  int status = pid > 0 ? read_status (target) : WEFT_E_NOT_FOUND;
  if (status < 0)
    return status;
  target->borrows = borrows (pid);
  read_executable (target);
  read_maps (target);
  look_at_executable (target);
  return 0;
}

int car_target_is_vm (pid_t pid)
{
  car_target_t target;
  return look (pid, &target) == 0 && target.vm[0] && !target.zombie && !target.borrows;
}

int car_target_identify (pid_t pid, const char *service, car_target_t *ret_target)
{
  car_target_t target;
  int status = look (pid, &target);
  if (status < 0)
    return status;
  if (strcmp (target.vm, "jvm") == 0)
    read_jvm_version (&target);
  target.dumpable = is_dumpable (&target);
  target.other_mounts = car_target_shares (pid, "mnt") == 0;
  car_listens (pid, target.listens);
  car_service_name (&target, service);
  *ret_target = target;
  return 0;
}
