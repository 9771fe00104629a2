/* SPDX-License-Identifier: Apache-2.0 */
#include "service_name.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ENVIRON_MAX 65536 /* bytes of an environment or command line that are looked at */

/* Service names become topics and terminal text: printable, no blanks, no '/'. */
static void set_clean (char out[WEFT_SERVICE_MAX], const char *text, size_t size)
{
  size_t at = 0;
  for (size_t i = 0; i < size && text[i] && at < WEFT_SERVICE_MAX - 1; i++)
    out[at++] = text[i] > 0x20 && text[i] < 0x7f && text[i] != '/' ? text[i] : '_';
  out[at] = '\0';
}

static const char *base_of (const char *path)
{
  const char *slash = strrchr (path, '/');
  return slash ? slash + 1 : path;
}

/* Without directory and without `suffix` (".py"). */
static void set_file (char out[WEFT_SERVICE_MAX], const char *path)
{
  static const char *const suffixes[] = {".py", ".pyc", ".jar", ".war", ".java",
                                         ".js", ".mjs", ".cjs", ".rb",  ".php"};
  const char *base = base_of (path);
  size_t size = strlen (base);
  for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
    size_t suffix = strlen (suffixes[i]);
    if (size > suffix && strcmp (base + size - suffix, suffixes[i]) == 0) {
      size -= suffix;
      break;
    }
  }
  set_clean (out, base, size);
}

/* Options of the `java` launcher whose value is the next word. */
static int java_takes_value (const char *word)
{
  static const char *const options[] = {"-cp",
                                        "-classpath",
                                        "--class-path",
                                        "-p",
                                        "--module-path",
                                        "--upgrade-module-path",
                                        "--add-modules",
                                        "--add-opens",
                                        "--add-exports",
                                        "--add-reads",
                                        "--patch-module",
                                        "--limit-modules",
                                        "--enable-native-access",
                                        "--source"};
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
    if (strcmp (word, options[i]) == 0)
      return 1;
  return 0;
}

static const char *next_word (const char *word, const char *end)
{
  const char *next = word + strlen (word) + 1;
  return next < end ? next : NULL;
}

static void from_java (const char *word, const char *end, char out[WEFT_SERVICE_MAX])
{
  while ((word = next_word (word, end))) {
    const char *value = next_word (word, end);
    if (strcmp (word, "-jar") == 0) {
      if (value)
        set_file (out, value);
      return;
    }
    if (strcmp (word, "-m") == 0 || strcmp (word, "--module") == 0) {
      if (value)
        word = value;
    } else if (java_takes_value (word) && value) {
      word = value;
      continue;
    } else if (word[0] == '-' || word[0] == '@' || word[0] == '\0')
      continue;
    const char *dot = strrchr (word, '.');
    if (strchr (word, '/') || (dot && strcmp (dot, ".java") == 0))
      set_file (out, word); /* a source file, or module/class */
    else
      set_clean (out, dot ? dot + 1 : word, WEFT_SERVICE_MAX);
    dot = strrchr (out, '.');
    if (dot)
      memmove (out, dot + 1, strlen (dot + 1) + 1);
    return;
  }
}

static void from_script (const char *vm, const char *word, const char *end, char out[WEFT_SERVICE_MAX])
{
  int python = strcmp (vm, "cpython") == 0;
  while ((word = next_word (word, end))) {
    const char *value = next_word (word, end);
    if (python && strcmp (word, "-m") == 0) {
      if (value)
        set_clean (out, value, WEFT_SERVICE_MAX);
      return;
    }
    if (python && strcmp (word, "-c") == 0)
      return;
    if (value && ((python && (strcmp (word, "-X") == 0 || strcmp (word, "-W") == 0)) ||
                  (!python && (strcmp (word, "-r") == 0 || strcmp (word, "--require") == 0 ||
                               strcmp (word, "--import") == 0)))) {
      word = value;
      continue;
    }
    if (word[0] == '-' || word[0] == '\0')
      continue;
    set_file (out, word);
    return;
  }
}

void car_service_from_words (const char *vm, const char *words, size_t size, char out[WEFT_SERVICE_MAX])
{
  out[0] = '\0';
  if (size == 0)
    return;
  const char *end = words + size;
  if (strcmp (vm, "jvm") == 0)
    from_java (words, end, out);
  else if (vm[0])
    from_script (vm, words, end, out);
}

void car_service_from_cgroup (const char *text, char out[WEFT_SERVICE_MAX])
{
  out[0] = '\0';
  for (const char *line = text; line && *line; line = strchr (line, '\n') ? strchr (line, '\n') + 1 : NULL) {
    size_t size = strcspn (line, "\n");
    const char *at = NULL;
    for (size_t i = 0; i < size; i++) /* the innermost component that is a unit */
      if (line[i] == '/')
        at = line + i + 1;
    static const char suffix[] = ".service";
    size_t unit = at ? size - (size_t) (at - line) : 0;
    if (unit <= sizeof suffix - 1 || memcmp (at + unit - (sizeof suffix - 1), suffix, sizeof suffix - 1) != 0)
      continue;
    if (memchr (at, '@', unit)) /* user@1000, getty@tty1: a session, not a service */
      continue;
    set_clean (out, at, unit - (sizeof suffix - 1));
    return;
  }
}

static int from_environment (pid_t pid, char out[WEFT_SERVICE_MAX])
{
  static const char key[] = "OTEL_SERVICE_NAME=";
  char text[ENVIRON_MAX];
  ssize_t size = car_target_read (pid, "environ", text, sizeof text);
  for (const char *at = text; size > 0 && at < text + size; at += strlen (at) + 1)
    if (strncmp (at, key, sizeof key - 1) == 0 && at[sizeof key - 1]) {
      set_clean (out, at + sizeof key - 1, WEFT_SERVICE_MAX);
      return 1;
    }
  return 0;
}

/* The unit says something only if it is not ours as well (a shell, a CI job). */
static int from_unit (pid_t pid, char out[WEFT_SERVICE_MAX])
{
  char theirs[4096], ours[4096];
  if (car_target_read (pid, "cgroup", theirs, sizeof theirs) < 0 ||
      car_target_read (getpid (), "cgroup", ours, sizeof ours) < 0 || strcmp (theirs, ours) == 0)
    return 0;
  car_service_from_cgroup (theirs, out);
  return out[0] != '\0';
}

void car_service_name (car_target_t *target, const char *given)
{
  if (given && given[0]) {
    set_clean (target->service, given, strlen (given));
    return;
  }
  if (from_environment (target->pid, target->service) || from_unit (target->pid, target->service))
    return;
  char words[ENVIRON_MAX];
  ssize_t size = car_target_read (target->pid, "cmdline", words, sizeof words);
  if (size > 0)
    car_service_from_words (target->vm, words, (size_t) size, target->service);
  if (!target->service[0])
    set_clean (target->service, target->comm, sizeof target->comm);
}
