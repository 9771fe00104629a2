/* SPDX-License-Identifier: Apache-2.0 */
#include "boundary.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../../common/status.h"
#include "elf.h"
#include "maps.h"
#include "remote.h"

#define URING     "anon_inode:[io_uring]"
#define VM_ITSELF "libjvm.so" /* its own I/O runs in VM state and is left alone */

const char *const car_boundary_names[] = {"read",
                                          "readv",
                                          "recv",
                                          "recvfrom",
                                          "recvmsg",
                                          "write",
                                          "writev",
                                          "send",
                                          "sendto",
                                          "sendmsg",
                                          "sendfile",
                                          "sendfile64",
                                          "connect",
                                          "accept",
                                          "accept4",
                                          "shutdown",
                                          "close",
                                          "dup",
                                          "dup2",
                                          "dup3",
                                          "poll",
                                          "ppoll",
                                          "select",
                                          "pselect",
                                          "epoll_wait",
                                          "epoll_pwait",
                                          "epoll_pwait2",
                                          "close_range",
                                          "closefrom",
                                          "fcntl",
                                          "fcntl64",
                                          "recvmmsg",
                                          "sendmmsg",
                                          "splice",
                                          "__read_chk",
                                          "__recv_chk",
                                          "__recvfrom_chk",
                                          "__poll_chk",
                                          "__ppoll_chk",
                                          "__read",
                                          "__write",
                                          "__connect",
                                          "__send",
                                          "__close",
                                          "__dup2",
                                          "__fcntl",
                                          "__poll",
                                          "__select",
                                          "dlopen",
                                          "getsockopt",
                                          "getaddrinfo",
                                          "gethostbyname",
                                          "gethostbyname2",
                                          "gethostbyname_r",
                                          "gethostbyname2_r",
                                          NULL};

int car_boundary_has (const char *name)
{
  for (size_t i = 0; car_boundary_names[i]; i++)
    if (strcmp (car_boundary_names[i], name) == 0)
      return 1;
  return 0;
}

typedef struct {
  unsigned slots;
  int vm_itself;
} count_t;

static void count_slot (void *arg, const char *name, uint64_t slot)
{
  count_t *count = arg;
  count->slots += count->vm_itself ? strcmp (name, "dlopen") == 0 : car_boundary_has (name);
}

static void take_tls (car_boundary_t *out, car_elf_t *elf, const char *name)
{
  uint64_t address;
  int library = strncmp (name, "libssl", 6) == 0 || strncmp (name, "libgnutls", 9) == 0;
  if (out->tls[0] || (!library && car_elf_function (elf, "SSL_write", &address) < 0))
    return;
  snprintf (out->tls, sizeof out->tls, "%s", name);
  out->tls_inside = !library;
}

static void read_object (pid_t pid, const car_map_t *map, car_boundary_t *out)
{
  const char *name = car_map_base_name (map);
  count_t count = {.vm_itself = strcmp (name, VM_ITSELF) == 0};
  car_elf_t *elf = NULL;
  int status = car_elf_open (car_remote_read_elf, &pid, map->from, &elf);
  if (status == WEFT_E_MALFORMED || status == WEFT_E_UNSUPPORTED)
    return; /* data that somebody has mapped */
  if (status < 0 || car_elf_slots (elf, count_slot, &count) < 0)
    out->foreign++;
  else {
    take_tls (out, elf, name);
    out->slots += count.slots;
    if (count.slots && out->objects < CAR_BOUNDARY_OBJECTS_MAX) {
      snprintf (out->object[out->objects].name, CAR_BOUNDARY_NAME_MAX, "%.*s", CAR_BOUNDARY_NAME_MAX - 1,
                name);
      out->object[out->objects++].slots = count.slots;
    }
  }
  car_elf_destroy (&elf);
}

static int has_uring (pid_t pid)
{
  char path[64], link[64];
  int found = 0;
  snprintf (path, sizeof path, "/proc/%d/fd", (int) pid);
  DIR *dir = opendir (path);
  struct dirent *entry;
  while (dir && !found && (entry = readdir (dir))) {
    ssize_t size = readlinkat (dirfd (dir), entry->d_name, link, sizeof link - 1);
    link[size > 0 ? size : 0] = '\0';
    found = strcmp (link, URING) == 0;
  }
  if (dir)
    closedir (dir);
  return found;
}

int car_boundary_read (pid_t pid, car_boundary_t *ret_boundary)
{
  car_maps_t maps;
  unsigned char byte;
  memset (ret_boundary, 0, sizeof *ret_boundary);
  int status = car_maps_read (pid, &maps);
  if (status < 0)
    return status;
  for (size_t i = 0; status == 0 && i < maps.count; i++) {
    const car_map_t *map = &maps.map[i];
    if (!map->first)
      continue;
    if (map->kind == CAR_MAP_PROBE)
      ret_boundary->probes++;
    else if (map->kind == CAR_MAP_LIBC || map->kind == CAR_MAP_LOADER)
      status = car_remote_read (pid, map->from, &byte, sizeof byte);
    else
      read_object (pid, map, ret_boundary);
  }
  car_maps_clear (&maps);
  ret_boundary->uring = has_uring (pid);
  return status;
}
