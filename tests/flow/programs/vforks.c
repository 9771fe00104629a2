/* SPDX-License-Identifier: Apache-2.0 */
/* vforks: a child of vfork that takes its time before it becomes another program: until then its memory is
 * its parent's. Prints the child's pid, and at the end how often the parent has mapped a probe. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main (void)
{
  static const struct timespec step = {0, 20000000};
  char line[512];
  int status, ours = 0;
  /* NOLINTBEGIN: what a careful program does not do is what is joined */
  pid_t child = vfork ();
  if (child == 0) {
    int size = snprintf (line, sizeof line, "%d\n", (int) getpid ());
    if (write (STDOUT_FILENO, line, (size_t) size) < 0)
      _exit (1);
    while (access ("go", F_OK) != 0)
      nanosleep (&step, NULL);
    execl ("/bin/true", "true", (char *) NULL);
    _exit (1);
  }
  /* NOLINTEND */
  if (waitpid (child, &status, 0) != child || status)
    return 1;
  FILE *maps = fopen ("/proc/self/maps", "r");
  while (maps && fgets (line, sizeof line, maps))
    ours += strstr (line, "libweft_probe") != NULL;
  printf ("%d of a probe\n", ours);
  return maps ? 0 : 1;
}
