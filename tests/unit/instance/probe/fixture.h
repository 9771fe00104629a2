/* SPDX-License-Identifier: Apache-2.0 */
/* fixture: shared objects that a test compiles for itself, in every way a
 * linker may lay out a GOT. Header only. */
#ifndef TEST_FIXTURE_H
#define TEST_FIXTURE_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char fixture_dir[] = "/tmp/weft-test-XXXXXX";

static const char fixture_source[] = "#include <dlfcn.h>\n"
                                     "#include <unistd.h>\n"
                                     "#ifdef OWN_READ\n"
                                     "ssize_t read (int fd, void *p, size_t n) { return 4242; }\n"
                                     "#endif\n"
                                     "long fx_read (int fd, void *p, size_t n) { return read (fd, p, n); }\n"
                                     "int fx_close (int fd) { return close (fd); }\n"
                                     "void *fx_dlopen (const char *n) { return dlopen (n, RTLD_NOW); }\n"
                                     "#ifdef ADDRESS\n"
                                     "void *fx_address (void) { return (void *) read; }\n"
                                     "#endif\n";

/* 0, or what `cc` or the shell answered. */
static inline int fixture_shell (const char *command)
{
  int status = system (command);
  return status;
}

static inline int fixture_begin (void)
{
  char path[128];
  if (!mkdtemp (fixture_dir))
    return -1;
  snprintf (path, sizeof path, "%s/fixture.c", fixture_dir);
  FILE *file = fopen (path, "w");
  if (!file)
    return -1;
  fputs (fixture_source, file);
  return fclose (file);
}

static inline int fixture_end (void)
{
  char command[128];
  snprintf (command, sizeof command, "rm -rf %s", fixture_dir);
  return fixture_shell (command);
}

static inline void fixture_path (char *out, size_t size, const char *name)
{
  snprintf (out, size, "%s/%s", fixture_dir, name);
}

/* Compiles the source to <dir>/<name> with these flags. */
static inline int fixture_build (const char *name, const char *flags)
{
  char command[512];
  snprintf (command, sizeof command, "cc -O1 -shared -fPIC -o %s/%s %s/fixture.c %s", fixture_dir, name,
            fixture_dir, flags);
  return fixture_shell (command);
}

/* Lines of /proc/self/maps that name the file, one after the other. */
static inline void fixture_maps (const char *name, char *out, size_t size)
{
  char line[512];
  FILE *file = fopen ("/proc/self/maps", "r");
  out[0] = 0;
  size_t at = 0;
  while (file && fgets (line, sizeof line, file))
    if (strstr (line, name) && at + strlen (line) < size)
      at += (size_t) snprintf (out + at, size - at, "%s", line);
  if (file)
    fclose (file);
}

/* Where in the data of that file the value stands; NULL: nowhere. */
static inline uint64_t *fixture_find (const char *name, uint64_t value)
{
  char maps[4096];
  fixture_maps (name, maps, sizeof maps);
  for (char *line = strtok (maps, "\n"); line; line = strtok (NULL, "\n")) {
    char *end;
    uintptr_t from = strtoul (line, &end, 16);
    uintptr_t to = strtoul (end + 1, &end, 16); /* past the '-' */
    if (strncmp (end, " r", 2) != 0 || end[3] == 'x')
      continue;
    for (uint64_t *p = (uint64_t *) from; p < (uint64_t *) to; p++)
      if (*p == value)
        return p;
  }
  return NULL;
}

#endif
