/* SPDX-License-Identifier: Apache-2.0 */
#include "keys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "endpoint.h"
#include "limits.h"
#include "status.h"

/* RFC 32 of ZeroMQ. */
static const char z85[] =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

int weft_key_valid (const char *text, size_t size)
{
  if (size != WEFT_KEY_TEXT - 1)
    return 0;
  for (size_t n = 0; n < size; n++)
    if (!text[n] || !strchr (z85, text[n]))
      return 0;
  return 1;
}

int weft_keys_directory (const char *given, char out[WEFT_KEYS_DIR_MAX])
{
  const char *wanted = given ? given : getenv ("WEFT_KEYS");
  char here[PATH_MAX] = "", path[2 * PATH_MAX];
  *out = 0;
  if (!wanted || !*wanted)
    return 0;
  /* Absolute: a sidecar works in another directory. */
  if (wanted[0] != '/' && !getcwd (here, sizeof here))
    return WEFT_E_NOT_FOUND;
  int size = snprintf (path, sizeof path, "%s%s%s", here, *here ? "/" : "", wanted);
  if (size < 0 || size >= WEFT_KEYS_DIR_MAX - WEFT_KEY_NAME_MAX - 32) /* file names follow */
    return WEFT_E_RANGE;
  memcpy (out, path, (size_t) size + 1);
  return 0;
}

/* One line, without its end. 0 or WEFT_E_MALFORMED. */
static int take_line (const char *line, size_t size, weft_key_pair_t *pair)
{
  static const char open[] = "public ", closed[] = "secret ";
  size_t head = sizeof open - 1;
  while (size > 0 && (line[size - 1] == ' ' || line[size - 1] == '\r'))
    size--;
  if (size == 0 || line[0] == '#')
    return 0;
  if (size < head || !weft_key_valid (line + head, size - head))
    return WEFT_E_MALFORMED;
  char *to = NULL;
  if (memcmp (line, open, head) == 0)
    to = pair->public_key;
  else if (memcmp (line, closed, head) == 0)
    to = pair->secret_key;
  if (!to || *to) /* unknown, or given twice */
    return WEFT_E_MALFORMED;
  memcpy (to, line + head, WEFT_KEY_TEXT - 1);
  return 0;
}

static int take_text (const char *text, size_t size, weft_key_pair_t *pair)
{
  int status = 0;
  while (status == 0 && size > 0) {
    const char *end = memchr (text, '\n', size);
    size_t length = end ? (size_t) (end - text) : size;
    status = take_line (text, length, pair);
    length += end != NULL;
    text += length;
    size -= length;
  }
  return status;
}

/* K1 */
static int check_file (int fd, const char *path, int secret, char *why, size_t why_size)
{
  struct stat st;
  if (fstat (fd, &st) < 0 || !S_ISREG (st.st_mode)) {
    snprintf (why, why_size, "%s is no regular file; make keys with `weft keys DIR`", path);
    return WEFT_E_DENIED;
  }
  if (st.st_uid != geteuid () && st.st_uid != 0) {
    snprintf (why, why_size, "%s belongs to another user (uid %u); make keys of your own", path,
              (unsigned) st.st_uid);
    return WEFT_E_DENIED;
  }
  unsigned open = (unsigned) st.st_mode & (secret ? 077 : 022);
  if (open) {
    snprintf (why, why_size, "%s is open to others (mode %04o); run chmod %s on it%s", path,
              (unsigned) st.st_mode & 07777, secret ? "600" : "644",
              secret ? ", and make a new key if others may have read it" : "");
    return WEFT_E_DENIED;
  }
  return 0;
}

int weft_keys_read (const char *path, int secret, weft_key_pair_t *ret_pair, char *why, size_t why_size)
{
  char text[WEFT_KEY_FILE_MAX];
  weft_key_pair_t pair = {{0}, {0}};
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) {
    int missing = errno == ENOENT || errno == ENOTDIR;
    snprintf (why, why_size, "%s: %s%s", path, strerror (errno),
              missing ? "; make it with `weft keys DIR`" : "");
    return missing ? WEFT_E_NOT_FOUND : WEFT_E_IO;
  }
  int status = check_file (fd, path, secret, why, why_size);
  ssize_t size = status == 0 ? read (fd, text, sizeof text) : 0;
  close (fd);
  if (status < 0)
    return status;
  status = size < 0 ? WEFT_E_IO : 0;
  if (size == (ssize_t) sizeof text || (size >= 0 && take_text (text, (size_t) size, &pair) < 0) ||
      !pair.public_key[0] || (secret && !pair.secret_key[0]))
    status = status ? status : WEFT_E_MALFORMED;
  explicit_bzero (text, sizeof text);
  if (status == 0)
    *ret_pair = pair;
  else
    snprintf (why, why_size, "%s is no key file; copy it again, or make a new one with `weft keys DIR`",
              path);
  explicit_bzero (&pair, sizeof pair);
  return status;
}

/* K3. Where nothing is yet nobody is obeyed; a sidecar, which waits, makes the directory first. */
static int check_directory (const char *dir, char *why, size_t why_size)
{
  struct stat st;
  if (lstat (dir, &st) < 0)
    return 0;
  if (!S_ISDIR (st.st_mode)) {
    snprintf (why, why_size, "%s is no directory; choose with --controller", dir);
    return WEFT_E_DENIED;
  }
  if (st.st_uid != geteuid () && st.st_uid != 0) {
    snprintf (why, why_size,
              "%s belongs to another user (uid %u), who could instruct your VMs; choose with --controller, "
              "or be that user",
              dir, (unsigned) st.st_uid);
    return WEFT_E_DENIED;
  }
  if (st.st_mode & 022) {
    snprintf (why, why_size, "%s can be written by others (mode %04o); run chmod 700 on it", dir,
              (unsigned) st.st_mode & 07777);
    return WEFT_E_DENIED;
  }
  return 0;
}

int weft_keys_for (const char *address, const char *dir, const char *role, weft_keys_t *ret_keys, char *why,
                   size_t why_size)
{
  weft_keys_t keys = {.plain_tcp = ret_keys->plain_tcp};
  weft_key_pair_t theirs;
  char path[WEFT_KEYS_DIR_MAX + 32];
  const char *ipc = weft_endpoint_directory (address);
  int status = 0;
  if (ipc)
    status = check_directory (ipc, why, why_size);
  else if (*dir) {
    snprintf (path, sizeof path, "%s/controller.pub", dir);
    status = weft_keys_read (path, 0, &theirs, why, why_size);
    snprintf (path, sizeof path, "%s/%s.key", dir, role);
    if (status == 0)
      status = weft_keys_read (path, 1, &keys.own, why, why_size);
    if (status == 0)
      memcpy (keys.controller, theirs.public_key, sizeof keys.controller);
    keys.loaded = status == 0;
  } else if (!keys.plain_tcp && !weft_endpoint_is_loopback (address)) {
    snprintf (
        why, why_size,
        "plain tcp beyond this host would obey whoever answers there; give --keys DIR, or --plain-tcp if "
        "nobody else can reach that network");
    status = WEFT_E_DENIED;
  }
  if (status == 0)
    *ret_keys = keys;
  weft_keys_clear (&keys);
  return status;
}

void weft_keys_clear (weft_keys_t *keys)
{
  explicit_bzero (keys, sizeof *keys);
}
