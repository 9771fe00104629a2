/* SPDX-License-Identifier: Apache-2.0 */
#include "processes.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

void car_processes_each (car_process_t *each, void *arg)
{
  DIR *dir = opendir ("/proc");
  struct dirent *entry;
  while (dir && (entry = readdir (dir))) {
    char *end;
    long pid = strtol (entry->d_name, &end, 10);
    if (!*end && pid > 0 && pid != getpid ())
      each (arg, (pid_t) pid);
  }
  if (dir)
    closedir (dir);
}
