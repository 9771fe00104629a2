/* SPDX-License-Identifier: Apache-2.0 */
#include "find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../common/status.h"
#include "layout.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define LINK  "/memfd:" SHM_MEMFD_NAME " (deleted)"

/* "Uid:\t<real>\t<effective>\t<saved>\t<fs>": 1 if `uid` is one of them. */
static int has_uid (pid_t pid, uid_t uid)
{
  char path[64], line[256];
  snprintf (path, sizeof path, "/proc/%d/status", (int) pid);
  FILE *file = fopen (path, "re");
  int found = 0;
  while (file && !found && fgets (line, sizeof line, file)) {
    char *at = line + 4;
    for (int i = 0; i < 4 && strncmp (line, "Uid:", 4) == 0; i++)
      found |= strtoul (at, &at, 10) == uid;
  }
  if (file)
    fclose (file);
  return found;
}

uint32_t shm_find_inner (const char *path, const char *name)
{
  char line[256];
  uint32_t inner = 0;
  FILE *file = fopen (path, "re");
  while (file && !inner && fgets (line, sizeof line, file))
    if (strncmp (line, name, strlen (name)) == 0) {
      const char *last = strrchr (line, '\t');
      inner = last ? (uint32_t) strtoul (last + 1, NULL, 10) : 0;
    }
  if (file)
    fclose (file);
  return inner;
}

static uint32_t inner_pid (pid_t pid)
{
  char path[64];
  snprintf (path, sizeof path, "/proc/%d/status", (int) pid);
  return shm_find_inner (path, "NStgid:");
}

static int check_file (int fd, pid_t pid, const uid_t *uid)
{
  struct stat st;
  int seals = fcntl (fd, F_GET_SEALS);
  if (seals < 0 || fstat (fd, &st) != 0 || (seals & SEALS) != SEALS || st.st_size != (off_t) SHM_SIZE)
    return WEFT_E_MALFORMED;
  return (uid && st.st_uid == *uid) || has_uid (pid, st.st_uid) ? 0 : WEFT_E_DENIED;
}

/* pid: as its process sees it; 0: not known. */
static int check_head (const shm_head_t *shared, uint32_t pid)
{
  shm_head_t head;
  if (__atomic_load_n (&shared->magic, __ATOMIC_ACQUIRE) != SHM_MAGIC)
    return WEFT_E_NOT_FOUND; /* being made */
  memcpy (&head, shared, sizeof head);
  if (head.version > SHM_VERSION)
    return WEFT_E_VERSION;
  if (head.version == 0 || head.struct_size < sizeof head || head.total_size != SHM_SIZE)
    return WEFT_E_MALFORMED;
  /* A child that the fork handlers did not reach still holds its parent's. */
  return !pid || head.pid == pid ? 0 : WEFT_E_NOT_FOUND;
}

static int map_fd (int fd, uint32_t pid, void **ret_base)
{
  void *base = mmap (NULL, SHM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED)
    return WEFT_E_IO;
  int status = check_head (base, pid);
  if (status != 0)
    munmap (base, SHM_SIZE);
  else
    *ret_base = base;
  return status;
}

int shm_find_passed (int fd, pid_t pid, uid_t uid, void **ret_base)
{
  int status = check_file (fd, pid, &uid);
  return status == 0 ? map_fd (fd, inner_pid (pid), ret_base) : status;
}

/* One entry of /proc/PID/fd. NOT_FOUND: no memory of a probe. */
static int try_fd (pid_t pid, const char *number, void **ret_base)
{
  char path[NAME_MAX + 64], link[sizeof LINK + 1];
  snprintf (path, sizeof path, "/proc/%d/fd/%s", (int) pid, number);
  ssize_t n = readlink (path, link, sizeof link);
  if (n != (ssize_t) sizeof LINK - 1 || memcmp (link, LINK, sizeof LINK - 1) != 0)
    return WEFT_E_NOT_FOUND;
  int fd = open (path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return errno == ENOENT ? WEFT_E_NOT_FOUND : errno == EACCES || errno == EPERM ? WEFT_E_DENIED : WEFT_E_IO;
  uint32_t inner = inner_pid (pid);
  int status = inner ? check_file (fd, pid, NULL) : WEFT_E_NOT_FOUND;
  if (status == 0)
    status = map_fd (fd, inner, ret_base);
  close (fd);
  return status;
}

/* What does not pass is the answer only if nothing passes. */
int shm_find (pid_t pid, void **ret_base)
{
  char path[64];
  snprintf (path, sizeof path, "/proc/%d/fd", (int) pid);
  DIR *directory = opendir (path);
  if (!directory)
    return errno == EACCES || errno == EPERM ? WEFT_E_DENIED : errno == ENOENT ? WEFT_E_GONE : WEFT_E_IO;
  int status = WEFT_E_NOT_FOUND;
  struct dirent *entry;
  while (status != 0 && (entry = readdir (directory))) {
    int one = entry->d_name[0] == '.' ? WEFT_E_NOT_FOUND : try_fd (pid, entry->d_name, ret_base);
    if (one != WEFT_E_NOT_FOUND)
      status = one;
  }
  closedir (directory);
  return status;
}
